//! What stands in a macro is a list of expressions.

use workflow::{Failure, join, workflow};

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let (a, b) = join!(both, a = order + , b = order).await?;
    Ok(a + b)
}

fn main() {}
