//! A name is a word.

use workflow::workflow;

#[workflow(name = "check out/2")]
async fn checkout(order: u32) -> u32 {
    order
}

fn main() {}
