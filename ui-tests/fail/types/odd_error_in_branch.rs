//! Not an error, and so not one in a branch.

use workflow::{Failure, join, workflow};

struct Odd;

fn odd() -> Result<u32, Odd> {
    Err(Odd)
}

#[workflow]
async fn checkout() -> Result<u32, Failure> {
    let (a, b) = join!(both, a = odd()?, b = 2).await?;
    Ok(a + b)
}

fn main() {}
