//! A fragment called at two sites: what is in it is told apart by the sites. (UA-07)

use workflow::{Failure, fragment, step, workflow};

#[step]
async fn count(order: u32) -> u32 {
    order
}

#[fragment]
async fn helper(order: u32) -> Result<u32, Failure> {
    Ok(count(order).await?)
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let first = helper(order).await?;
    #[step(name = "second")]
    let second = helper(order).await?;
    Ok(first + second)
}

fn main() {}
