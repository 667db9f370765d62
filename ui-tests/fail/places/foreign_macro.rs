//! What another macro does with its tokens is not known.

use workflow::{Failure, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<(), Failure> {
    println!("{}", reserve(order).await?);
    Ok(())
}

fn main() {}
