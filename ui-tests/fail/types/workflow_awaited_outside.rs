//! A workflow is run by the engine, or by another workflow. (UA-77)

use workflow::workflow;

#[workflow]
async fn parcel(order: u32) -> u32 {
    order
}

async fn handler() -> u32 {
    parcel(1).await
}

fn main() {}
