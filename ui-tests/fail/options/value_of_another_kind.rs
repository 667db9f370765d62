//! Not a number, and not a text.

use workflow::step;

#[step(retries = "many", timeout = 10)]
async fn reserve(order: u32) -> u32 {
    order
}

fn main() {}
