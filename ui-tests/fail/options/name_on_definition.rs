//! A step is named where it stands in a workflow.

use workflow::step;

#[step(name = "other")]
async fn reserve(order: u32) -> u32 {
    order
}

fn main() {}
