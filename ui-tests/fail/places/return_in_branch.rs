//! A branch ends with its value.

use workflow::{Failure, join, workflow};

#[workflow]
async fn checkout() -> Result<u32, Failure> {
    let (a, _) = join!(both, a = { return Ok(1); }, b = 2).await?;
    Ok(a)
}

fn main() {}
