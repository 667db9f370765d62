//! An attempt is a name and a block.

use workflow::{Failure, attempt, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    attempt!(nothing).await?;
    let a: u32 = attempt!(no_block, reserve(order).await?).await?;
    let b: u32 = attempt!(two, { reserve(order).await? }, 2).await?;
    let c: u32 = attempt!(labelled, 'out: { reserve(order).await? }).await?;
    let d: u32 = attempt!({ reserve(order).await? }).await?;
    Ok(a + b + c + d)
}

fn main() {}
