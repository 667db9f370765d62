//! Nothing of ours is found by the lints that a careful crate denies, and nothing is `unsafe`.

#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, missing_debug_implementations, unused)]
#![deny(unreachable_pub, unused_qualifications, single_use_lifetimes, unused_lifetimes)]
#![deny(rust_2018_idioms, let_underscore_drop, unnameable_types)]

use workflow::{Failure, join, sleep, step, workflow};

/// Holds.
#[step]
pub(crate) async fn reserve(order: &str) -> u64 {
    order.len() as u64
}

/// Is called by nobody.
#[workflow]
async fn checkout(order: String, items: Vec<String>) -> Result<u64, Failure> {
    let mut total = reserve(&order).await?;
    'items: for item in items {
        if item.is_empty() {
            break;
        }
        total += reserve(&item).await?;
    }
    'down: loop {
        sleep!(nap, "1s").await;
        if total > 3 {
            break 'down;
        }
        total += 1;
    }
    let (a, b) = join!(both, a = { reserve(&order).await? }, b = { 2 }).await?;
    Ok(total + a + b)
}

fn main() {}
