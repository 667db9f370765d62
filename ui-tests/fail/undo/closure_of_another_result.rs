//! A closure that undoes gives nothing, too.

use workflow::{Failure, checkpoint, step, workflow};

#[step]
async fn reserve(order: u32) -> Result<u32, std::io::Error> {
    Ok(order)
}

#[workflow]
async fn checkout(order: u32) -> Result<(), Failure> {
    checkpoint!(begun);
    #[step(undo(|held: u32| async move { held }))]
    reserve(order).await?;
    Ok(())
}

fn main() {}
