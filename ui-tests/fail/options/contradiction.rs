//! What may run again cannot run at most once.

use workflow::step;

#[step(at_most_once, ephemeral)]
async fn reserve(order: u32) -> u32 {
    order
}

fn main() {}
