//! Each option is given once.

use workflow::{Failure, join_all, step, workflow};

#[step]
async fn ship(item: u32) -> u32 {
    item
}

#[workflow]
async fn checkout(items: Vec<u32>) -> Result<(), Failure> {
    join_all!(every, limit = 1, limit = 2, for item in items { ship(item).await? }).await?;
    Ok(())
}

fn main() {}
