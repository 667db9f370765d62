//! A step in place borrows.

use workflow::{Failure, step, workflow};

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    #[step(name = "count", blocking)]
    let count = { order + 1 }?;
    Ok(count)
}

fn main() {}
