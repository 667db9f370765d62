//! What a loop carries is recorded.

use workflow::{Failure, step, workflow};

struct Cursor(u32);

#[step]
async fn counted(n: u32) -> u32 {
    n
}

#[workflow]
async fn checkout() -> Result<u32, Failure> {
    let mut cursor = Cursor(0);
    #[carry(cursor)]
    'items: for n in 0..3 {
        cursor.0 += counted(n).await?;
    }
    Ok(cursor.0)
}

fn main() {}
