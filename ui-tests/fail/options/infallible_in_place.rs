//! In place, the type tells.

use workflow::{Failure, step, workflow};

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    #[step(name = "count", infallible)]
    let count = { order + 1 }?;
    Ok(count)
}

fn main() {}
