//! A branch ends with its value.

use workflow::{Failure, join, workflow};

#[workflow]
async fn checkout(orders: Vec<u32>) -> Result<(), Failure> {
    'orders: for order in orders {
        join!(both, a = { if order > 3 { break 'orders; } }, b = { if order > 4 { continue; } }).await?;
    }
    Ok(())
}

fn main() {}
