//! The input is written down.

use workflow::workflow;

struct Order(u32);

#[workflow]
async fn checkout(order: Order) -> u32 {
    order.0
}

fn main() {}
