//! A workflow that cannot fail passes no failure on.

use workflow::{step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> u32 {
    reserve(order).await?
}

fn main() {}
