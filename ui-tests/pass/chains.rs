//! Awaits in the arguments of awaits, and in the middle of chains.

use workflow::{Failure, step, workflow};

#[step]
async fn one(order: u32) -> u32 {
    order
}

#[step]
async fn two(order: u32) -> String {
    order.to_string()
}

#[workflow]
async fn checkout(order: u32) -> Result<usize, Failure> {
    Ok(two(one(order).await?.pow(2)).await?.trim().len())
}

fn main() {}
