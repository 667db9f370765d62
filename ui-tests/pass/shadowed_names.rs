//! Locals that are shadowed, also in branches and loops.

use workflow::{Failure, join, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(mut order: u32) -> Result<u32, Failure> {
    order += 1;
    let order = reserve(order).await?;
    let order = {
        #[step(name = "again")]
        let order = reserve(order).await?;
        order + 1
    };
    let (order, other) = join!(both, order = { let order = order + 1; order }, other = order).await?;
    Ok(order + other)
}

fn main() {}
