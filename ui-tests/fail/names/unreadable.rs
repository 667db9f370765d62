//! There is no call to read a name from.

use workflow::{Failure, step, workflow};

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    #[step]
    let count = { order + 1 }?;
    Ok(count)
}

fn main() {}
