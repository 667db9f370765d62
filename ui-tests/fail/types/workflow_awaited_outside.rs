//! A workflow is run by the engine, or by another workflow. (UA-77)

use workflow::{Failure, workflow};

#[workflow]
async fn parcel(order: u32) -> u32 {
    order
}

async fn handler() -> Result<u32, Failure> {
    parcel(1).await
}

fn main() {}
