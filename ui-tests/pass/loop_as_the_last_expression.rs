//! A loop's value is the function's.

use workflow::{Failure, step, workflow};

#[step]
async fn count(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let mut order = order;
    'again: loop {
        order = count(order).await?;
        if order > 3 {
            break Ok(order);
        }
    }
}

#[workflow]
async fn drain(orders: Vec<u32>) {
    'orders: for order in orders {
        let _ = count(order).await;
    }
}

fn main() {}
