//! A step function called with other options.

use workflow::{Failure, step, workflow};

#[derive(Debug, thiserror::Error)]
#[error("sold out")]
struct SoldOut;

#[step(retries = 3)]
async fn reserve(order: &u32) -> Result<u32, SoldOut> {
    Ok(*order)
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let first = reserve(&order).await?;
    #[step(name = "second", retries = 9)]
    let second = reserve(&order).await?;
    #[step(name = "third", timeout = "1s", retry_if(|_: &SoldOut| true))]
    reserve(&order).await?;
    #[step(name = "fourth")]
    let fourth = reserve(&order).await;
    Ok(first + second + fourth.unwrap_or_default())
}

fn main() {}
