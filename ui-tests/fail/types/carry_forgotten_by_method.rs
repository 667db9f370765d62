//! The same, by a method.

use workflow::{Failure, step, workflow};

#[step]
async fn counted(n: u32) -> u32 {
    n
}

#[workflow]
async fn checkout(items: Vec<u32>) -> Result<u32, Failure> {
    let mut total = 0;
    let mut seen = Vec::new();
    #[carry(total)]
    'items: for item in items {
        total += counted(item).await?;
        seen.push(item);
    }
    Ok(total + seen.len() as u32)
}

fn main() {}
