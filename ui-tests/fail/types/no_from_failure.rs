//! The workflow's error takes a step's failure in.

use workflow::{step, workflow};

#[derive(Debug, thiserror::Error)]
enum ShopError {
    #[error("sold out")]
    SoldOut,
}

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, ShopError> {
    let n = reserve(order).await?;
    if n == 0 { Err(ShopError::SoldOut) } else { Ok(n) }
}

fn main() {}
