//! What a loop carries is set by it.

use workflow::{Failure, step, workflow};

#[step]
async fn counted(n: u32) -> u32 {
    n
}

#[workflow]
async fn checkout() -> Result<u32, Failure> {
    let total = 0;
    #[carry(total)]
    'items: for n in 0..3 {
        counted(n + total).await?;
    }
    Ok(total)
}

fn main() {}
