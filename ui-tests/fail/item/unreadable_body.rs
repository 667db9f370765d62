//! A body that does not parse.

use workflow::workflow;

#[workflow]
async fn checkout(order: u32) -> u32 {
    let total = order +;
    total
}

fn main() {}
