//! Not a duration, and one that is too long.

use workflow::step;

#[step(timeout = "10 seconds")]
async fn reserve(order: u32) -> u32 {
    order
}

#[step(timeout = "99999999999999999999d")]
async fn wait(order: u32) -> u32 {
    order
}

fn main() {}
