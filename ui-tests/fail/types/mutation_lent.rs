//! A step cannot be lent something to change, and a fragment can only be renamed. (UA-80)

use workflow::{Failure, fragment, step, workflow};

async fn add(total: &mut u32, n: u32) -> u32 {
    *total += n;
    *total
}

#[fragment]
async fn settle(total: &mut u32) -> Result<(), Failure> {
    *total += 1;
    Ok(())
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let mut total = 0;
    #[step(name = "sum")]
    let sum = add(&mut total, order).await?;
    #[step(name = "settled", retries = 2)]
    settle(&mut total).await?;
    Ok(sum + total)
}

fn main() {}
