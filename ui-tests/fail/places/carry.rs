//! What `#[carry]` says, and where it stands. (RVT-FIX-71)

use workflow::{Failure, step, workflow};

#[step]
async fn counted(n: u32) -> u32 {
    n
}

#[workflow]
async fn misplaced() -> Result<u32, Failure> {
    let mut total = 0;
    #[carry(total)]
    for n in 0..3 {
        total += n;
    }
    #[carry(total)]
    let more = counted(total).await?;
    Ok(total + more)
}

#[workflow]
async fn lists() -> Result<u32, Failure> {
    let mut total = 0;
    #[carry]
    'a: for n in 0..3 {
        total += counted(n).await?;
    }
    #[carry(every = 3)]
    'b: for n in 0..3 {
        total += counted(n).await?;
    }
    #[carry(total.x)]
    'c: for n in 0..3 {
        total += counted(n).await?;
    }
    #[carry(total, total)]
    'd: for n in 0..3 {
        total += counted(n).await?;
    }
    #[carry(total, often = 3)]
    'e: for n in 0..3 {
        total += counted(n).await?;
    }
    #[carry(total, every = 0, keep = 0)]
    'g: for n in 0..3 {
        total += counted(n).await?;
    }
    #[key(n)]
    #[carry(total)]
    'f: for n in 0..3 {
        total += counted(n).await?;
    }
    Ok(total)
}

fn main() {}
