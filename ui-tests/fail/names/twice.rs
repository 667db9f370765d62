//! The same step twice in one scope; in a loop each iteration is a scope of its own. (UA-06, UA-07)

use workflow::{Failure, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let first = reserve(order).await?;
    let second = reserve(order + 1).await?;
    Ok(first + second)
}

fn main() {}
