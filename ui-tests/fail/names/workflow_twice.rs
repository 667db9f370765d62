//! Two workflows of one name in one module: the compiler points at both. (UA-05)

use workflow::workflow;

#[workflow]
async fn checkout(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> u32 {
    order + 1
}

fn main() {}
