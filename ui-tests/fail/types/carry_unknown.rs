//! There is no such local.

use workflow::{Failure, step, workflow};

#[step]
async fn counted(n: u32) -> u32 {
    n
}

#[workflow]
async fn checkout() -> Result<(), Failure> {
    #[carry(cursor)]
    'items: for n in 0..3 {
        counted(n).await?;
    }
    Ok(())
}

fn main() {}
