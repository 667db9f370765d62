//! The recorded input has one type.

use workflow::workflow;

#[workflow]
async fn checkout<T: Clone>(order: u32) -> u32 {
    order
}

fn main() {}
