//! What is written in a body is in scope, or written out.

use workflow::{Failure, workflow};

async fn get() -> u32 {
    7
}

#[workflow]
async fn checkout() -> Result<u32, Failure> {
    #[workflow::step]
    let n = get().await?;
    sleep!(nap, "1s").await;
    Ok(n)
}

fn main() {}
