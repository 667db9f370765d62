//! A rollback names a checkpoint that stands before it, in its block or in one around it.

use workflow::{Failure, checkpoint, rollback, workflow};

#[workflow]
async fn nowhere(order: u32) -> Result<u32, Failure> {
    rollback!(back, to = begun).await;
    checkpoint!(begun);
    Ok(order)
}

#[workflow]
async fn in_a_block(order: u32) -> Result<u32, Failure> {
    if order > 3 {
        checkpoint!(begun);
    }
    rollback!(back, to = begun).await;
    Ok(order)
}

#[workflow]
async fn without_a_name(order: u32) -> Result<u32, Failure> {
    checkpoint!(begun);
    rollback!(back).await;
    Ok(order)
}

fn main() {}
