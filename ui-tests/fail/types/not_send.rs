//! A workflow moves between threads.

use std::rc::Rc;

use workflow::{Failure, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let shared = Rc::new(order);
    let n = reserve(order).await?;
    Ok(n + *shared)
}

fn main() {}
