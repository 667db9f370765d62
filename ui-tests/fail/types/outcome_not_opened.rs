//! A step's outcome is a `Result`, whatever the step returns.

use workflow::{Failure, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let held: u32 = reserve(order).await;
    Ok(held + 1)
}

fn main() {}
