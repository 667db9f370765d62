//! An argument is read anew on every replay, and a map then has another order. (UA-11, its first half)

use std::collections::{BTreeMap, HashMap};

use workflow::{Failure, fragment, join_all, step, workflow};

#[step]
async fn ship(item: String) -> u32 {
    item.len() as u32
}

#[fragment]
async fn each(items: &HashMap<String, u32>) -> Result<(), Failure> {
    'items: for item in items.keys() {
        ship(item.clone()).await?;
    }
    Ok(())
}

#[workflow]
async fn checkout(
    items: HashMap<String, u32>,
    paid: std::collections::HashSet<String>,
) -> Result<u32, Failure> {
    // What is the same in any order may be asked for.
    let total: u32 = items.values().sum();
    let first = paid.iter().next().cloned();
    each(&items).await?;
    'items: for (item, _) in &items {
        ship(item.clone()).await?;
    }
    join_all!(every, for item in paid { ship(item).await? }).await?;
    let counts: Vec<u32> = items.values().copied().collect();
    let sorted: BTreeMap<String, u32> = items.into_iter().collect();
    Ok(total + first.map_or(0, |item| item.len() as u32) + (sorted.len() + counts.len()) as u32)
}

fn main() {}
