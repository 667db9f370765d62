//! `anyhow::Result`, an alias, a plain value, nothing. (UA-76)

use workflow::{Failure, step, workflow};

type ShopResult<T> = Result<T, ShopError>;

#[derive(Debug, thiserror::Error)]
enum ShopError {
    #[error("sold out")]
    SoldOut,
    #[error(transparent)]
    Step(#[from] Failure),
}

#[step]
async fn any(order: u32) -> anyhow::Result<u32> {
    Ok(order)
}

#[step]
async fn alias(order: u32) -> ShopResult<u32> {
    Err(ShopError::SoldOut).or(Ok(order))
}

#[step]
async fn nothing() {}

#[workflow]
async fn with_anyhow(order: u32, customer: String) -> anyhow::Result<u32> {
    let n: u32 = customer.parse()?;
    Ok(any(order).await? + n)
}

#[workflow]
async fn with_alias(order: u32) -> ShopResult<u32> {
    let n = alias(order).await?;
    if n == 0 {
        return Err(ShopError::SoldOut);
    }
    Ok(n)
}

#[workflow]
async fn plain(order: u32) -> u32 {
    any(order).await.unwrap_or(0)
}

#[workflow]
async fn unit() {
    let _ = nothing().await;
}

fn main() {}
