//! A flag is a word.

use workflow::step;

#[step(ephemeral = "yes")]
async fn reserve(order: u32) -> u32 {
    order
}

fn main() {}
