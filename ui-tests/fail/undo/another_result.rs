//! An undo gives nothing, or a result of nothing.

use workflow::{Failure, checkpoint, step, workflow};

#[step]
async fn reserve(order: u32) -> Result<u32, std::io::Error> {
    Ok(order)
}

async fn release(order: u32) {
    drop(order);
}

async fn count(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<(), Failure> {
    checkpoint!(begun);
    #[step(undo(count))]
    reserve(order).await?;
    Ok(())
}

fn main() {}
