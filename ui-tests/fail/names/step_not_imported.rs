//! An attribute on an expression has to be in scope, as any other.

use workflow::{Failure, workflow};

async fn get() -> u32 {
    7
}

#[workflow]
async fn checkout() -> Result<u32, Failure> {
    #[step]
    let n = get().await?;
    Ok(n)
}

fn main() {}
