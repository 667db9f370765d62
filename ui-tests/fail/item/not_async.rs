//! A workflow is `async`.

use workflow::workflow;

#[workflow]
fn checkout(order: u32) -> u32 {
    order
}

fn main() {}
