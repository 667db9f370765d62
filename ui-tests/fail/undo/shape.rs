//! An undo is a path or a closure.

use workflow::{Failure, checkpoint, step, workflow};

#[step]
async fn reserve(order: u32) -> Result<u32, std::io::Error> {
    Ok(order)
}

async fn release(order: u32) {
    drop(order);
}

#[workflow]
async fn checkout(order: u32) -> Result<(), Failure> {
    checkpoint!(begun);
    #[step(undo(release(3)))]
    reserve(order).await?;
    #[step(name = "again", undo = release)]
    reserve(order).await?;
    #[step(name = "third", undo)]
    reserve(order).await?;
    Ok(())
}

fn main() {}
