//! An undo stands in a workflow.

use workflow::{Failure, fragment, step};

#[step]
async fn reserve(order: u32) -> Result<u32, std::io::Error> {
    Ok(order)
}

async fn release(order: u32) {
    drop(order);
}

#[fragment]
async fn part(order: u32) -> Result<(), Failure> {
    #[step(undo(release))]
    reserve(order).await?;
    Ok(())
}

fn main() {}
