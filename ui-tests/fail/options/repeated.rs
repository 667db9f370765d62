//! Each is given once.

use workflow::step;

#[step(retries = 3, retries = 4)]
async fn reserve(order: u32) -> u32 {
    order
}

fn main() {}
