//! A workflow outlives its caller.

use workflow::workflow;

#[workflow]
async fn checkout(order: &str, items: &[u32]) -> usize {
    order.len() + items.len()
}

fn main() {}
