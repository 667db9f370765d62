//! A name is a word.

use workflow::{Failure, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    #[step(name = "re serve")]
    let held = reserve(order).await?;
    Ok(held)
}

fn main() {}
