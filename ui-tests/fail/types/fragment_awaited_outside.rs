//! A fragment is a part of a run.

use workflow::{Failure, fragment, step};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[fragment]
async fn settle(order: u32) -> Result<u32, Failure> {
    reserve(order).await
}

async fn handler() -> Result<u32, Failure> {
    settle(1).await
}

fn main() {}
