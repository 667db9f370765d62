//! Options are a list.

use workflow::step;

#[step(retries = 3; timeout = "10s")]
async fn reserve(order: u32) -> u32 {
    order
}

fn main() {}
