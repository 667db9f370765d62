//! A branch may give up with any error.

use workflow::{Failure, join, step, workflow};

#[derive(Debug, thiserror::Error)]
#[error("sold out")]
struct SoldOut;

#[step]
async fn reserve(order: u32) -> Result<u32, SoldOut> {
    Ok(order)
}

#[workflow]
async fn checkout(order: String) -> Result<u32, Failure> {
    let (a, b, c) = join!(
        both,
        own = {
            let held = reserve(1).await?;
            if held == 0 {
                Err(SoldOut)?;
            }
            held
        },
        number = order.parse::<u32>()?,
        any = anyhow::Ok(3)?,
    )
    .await?;
    Ok(a + b + c)
}

fn main() {}
