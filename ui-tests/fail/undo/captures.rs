//! An undo captures nothing.

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
    let reason = "late".to_owned();
    #[step(undo(|held: u32| async move { drop((held, &reason)) }))]
    reserve(order).await?;
    #[step(name = "again", undo(|_held: u32| async move { drop(order) }))]
    reserve(order).await?;
    let handler = release;
    #[step(name = "third", undo(handler))]
    reserve(order).await?;
    Ok(())
}

fn main() {}
