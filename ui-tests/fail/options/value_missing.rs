//! A value is needed.

use workflow::step;

#[step(retries)]
async fn reserve(order: u32) -> u32 {
    order
}

fn main() {}
