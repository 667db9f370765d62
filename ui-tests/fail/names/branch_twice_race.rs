//! Two branches of one name. (RVT-FIX-75)

use workflow::{Failure, race, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let won = race!(first, stock = reserve(order).await?, stock = reserve(order).await?).await?;
    Ok(won.value)
}

fn main() {}
