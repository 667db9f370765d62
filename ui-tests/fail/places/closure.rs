//! How often a closure runs is not up to the workflow.

use workflow::{Failure, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(orders: Vec<u32>) -> Result<usize, Failure> {
    let held: Vec<_> = orders.iter().map(async |order| reserve(*order).await).collect();
    Ok(held.len())
}

fn main() {}
