//! Another order on every replay. (UA-11, its first half)

use std::collections::HashMap;

use workflow::{Failure, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<(), Failure> {
    let items = HashMap::from([(order, 1)]);
    'items: for (item, _) in items {
        reserve(item).await?;
    }
    Ok(())
}

fn main() {}
