//! A workflow has other options than a step.

use workflow::{fragment, workflow};

#[workflow(retries = 3)]
async fn checkout(order: u32) -> u32 {
    order
}

#[fragment(name = "other")]
async fn settle(order: u32) -> u32 {
    order
}

#[workflow(shared_name = "checkout")]
async fn refund(order: u32) -> u32 {
    order
}

fn main() {}
