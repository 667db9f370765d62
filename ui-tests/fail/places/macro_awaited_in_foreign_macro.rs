//! One mistake is told once, whatever is done with its value.

use std::time::Duration;

use workflow::{Failure, join, sleep, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<(), Failure> {
    println!("{:?}", sleep!(nap, Duration::from_secs(1)).await);
    let both = vec![join!(both, a = reserve(order).await?, b = 2).await?];
    let naps = vec![sleep!(again, "1s").await; 2];
    assert_eq!(both.len() + naps.len(), 1, "of {both:?} {}", reserve(order).await?);
    Ok(())
}

fn main() {}
