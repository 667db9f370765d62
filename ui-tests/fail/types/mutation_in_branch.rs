//! A replay would not see the change. (UA-80)

use workflow::{Failure, join, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let mut total = 0;
    join!(both, a = { total += reserve(order).await?; }, b = 2).await?;
    Ok(total)
}

fn main() {}
