//! A workflow is started by the engine, or by another workflow.

use workflow::{Failure, RunId, workflow};

#[workflow]
async fn parcel(order: u32) -> u32 {
    order
}

async fn handler() -> Result<RunId, Failure> {
    parcel(1).detach().await
}

fn main() {}
