//! A branch has a name.

use workflow::{Failure, join, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let (a, b) = join!(both, reserve(order).await?, other = reserve(order).await?).await?;
    Ok(a + b)
}

fn main() {}
