//! A type that is no workflow's.

use workflow::{Call, Output, workflow};

struct Order;

#[workflow]
async fn checkout(order: u32) -> u32 {
    order
}

fn receipt(_: Output<Order>) {}

fn call() -> Call<checkout> {
    checkout(1)
}

fn main() {}
