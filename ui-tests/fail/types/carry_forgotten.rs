//! A local that the loop changes and does not carry: a replay that starts in the middle would not see the changes.

use workflow::{Failure, step, workflow};

#[step]
async fn counted(n: u32) -> u32 {
    n
}

#[workflow]
async fn checkout() -> Result<u32, Failure> {
    let mut total = 0;
    let mut count = 0;
    #[carry(total)]
    'again: loop {
        total += counted(total).await?;
        count += 1;
        if total > 100 {
            break 'again;
        }
    }
    Ok(total + count)
}

fn main() {}
