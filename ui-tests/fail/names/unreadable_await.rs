//! A step that was made before it is awaited.

use workflow::{Failure, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let held = reserve(order);
    Ok(held.await?)
}

fn main() {}
