//! Guided flows in durable code that are not written as they are meant.

use workflow::guided::Flow;
use workflow::{fragment, guide, Failure};

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Bank;

#[fragment]
async fn lacks() -> Result<(), Failure> {
    guide!(billing).await?;
    Ok(())
}

#[fragment]
async fn twice(flow: Flow<Bank>) -> Result<(), Failure> {
    guide!(billing, Bank, Bank).await?;
    guide!(again, Bank, flow = flow.clone(), flow = flow.clone()).await?;
    Ok(())
}

#[fragment]
async fn unnamed() -> Result<(), Failure> {
    guide!(Bank {}).await?;
    Ok(())
}

fn outside() {
    guide!(billing, Bank);
}

fn main() {}
