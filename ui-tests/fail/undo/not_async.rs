//! An undo gives a future.

use workflow::{Failure, checkpoint, step, workflow};

#[step]
async fn reserve(order: u32) -> Result<u32, std::io::Error> {
    Ok(order)
}

async fn release(order: u32) {
    drop(order);
}

fn now(order: u32) {
    drop(order);
}

#[workflow]
async fn checkout(order: u32) -> Result<(), Failure> {
    checkpoint!(begun);
    #[step(undo(now))]
    reserve(order).await?;
    Ok(())
}

fn main() {}
