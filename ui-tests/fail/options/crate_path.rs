//! `crate` is a path.

use workflow::workflow;

#[workflow(crate = "workflow")]
async fn checkout(order: u32) -> u32 {
    order
}

fn main() {}
