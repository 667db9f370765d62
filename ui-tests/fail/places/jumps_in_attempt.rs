//! Nothing jumps out of an attempt.

use workflow::{Failure, attempt, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(orders: Vec<u32>) -> Result<u32, Failure> {
    'all: for order in orders {
        let held = attempt!(book, {
            if order == 1 {
                return Ok(1);
            }
            if order == 2 {
                continue;
            }
            if order == 3 {
                break 'all;
            }
            // These stay inside.
            'tries: loop {
                if reserve(order).await? == 0 {
                    continue 'tries;
                }
                break;
            }
            order
        })
        .await;
        drop(held);
    }
    Ok(0)
}

fn main() {}
