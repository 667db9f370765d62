//! The value of an attempt is the block's.

use workflow::{Failure, attempt, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let held = attempt!(book, {
        let held = reserve(order).await?;
        Ok(held)
    })
    .await;
    held
}

fn main() {}
