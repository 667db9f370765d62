//! The shapes of a backoff.

use workflow::step;

#[step(backoff(linear, wait = "1s"))]
async fn shape(order: u32) -> u32 {
    order
}

#[step(backoff(exponential, factor = 0.5))]
async fn factor(order: u32) -> u32 {
    order
}

#[step(backoff(exponential, jitter = -1))]
async fn jitter(order: u32) -> u32 {
    order
}

fn main() {}
