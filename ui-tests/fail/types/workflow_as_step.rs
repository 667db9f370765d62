//! A workflow is not a step. (UA-77)

use workflow::{Failure, workflow};

#[workflow]
async fn charge(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let n = charge(order).await?;
    Ok(n)
}

fn main() {}
