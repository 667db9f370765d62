//! A loop's name is its label.

use workflow::{Failure, sleep, step, workflow};

#[step]
async fn reserve(order: &u32) -> u32 {
    *order
}

#[workflow]
async fn checkout(orders: Vec<u32>) -> Result<u32, Failure> {
    let mut total = 0;
    for order in &orders {
        total += reserve(order).await?;
    }
    while total < 10 {
        sleep!(nap, "1s").await;
        total += 1;
    }
    loop {
        sleep!(wait, "1s").await;
        break;
    }
    Ok(total)
}

fn main() {}
