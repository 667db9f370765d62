//! The same explicit name twice. (RVT-STEP-19, UA-06)

use workflow::{Failure, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[step]
async fn charge(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    #[step(name = "same")]
    let first = reserve(order).await?;
    #[step(name = "same")]
    let second = charge(order).await?;
    Ok(first + second)
}

fn main() {}
