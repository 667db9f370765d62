//! A plain `async fn` is not durable.

use workflow::workflow;

async fn plain(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> u32 {
    let n = plain(order).await;
    n + 1
}

fn main() {}
