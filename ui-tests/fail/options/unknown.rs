//! One that does not exist, and one that was misspelt.

use workflow::step;

#[step(retry = 3)]
async fn reserve(order: u32) -> u32 {
    order
}

#[step(colour = "red")]
async fn paint(order: u32) -> u32 {
    order
}

fn main() {}
