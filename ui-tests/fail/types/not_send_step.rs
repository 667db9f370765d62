//! A step and a fragment move between threads.

use std::rc::Rc;

use workflow::{Failure, fragment, step};

async fn pause() {}

#[step]
async fn reserve(order: u32) -> u32 {
    let shared = Rc::new(order);
    pause().await;
    *shared
}

#[fragment]
async fn settle(order: u32) -> Result<u32, Failure> {
    let shared = Rc::new(order);
    let n = reserve(order).await?;
    Ok(n + *shared)
}

fn main() {}
