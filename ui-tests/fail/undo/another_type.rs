//! An undo takes what the step gives.

use workflow::{Failure, checkpoint, step, workflow};

#[step]
async fn reserve(order: u32) -> Result<u32, std::io::Error> {
    Ok(order)
}

async fn release(order: u32) {
    drop(order);
}

async fn untext(order: String) {
    drop(order);
}

#[workflow]
async fn checkout(order: u32) -> Result<(), Failure> {
    checkpoint!(begun);
    #[step(undo(untext))]
    reserve(order).await?;
    Ok(())
}

fn main() {}
