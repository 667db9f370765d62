//! The user's tokens are underlined.

use workflow::{Failure, step, workflow};

#[step]
async fn reserve(order: u32, item: &str) -> u32 {
    order + item.len() as u32
}

#[step]
async fn charge(order: u32, item: u32) -> u32 {
    order + item
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let n = reserve("one", "two").await?;
    let m: String = charge(order).await?;
    Ok(n)
}

fn main() {}
