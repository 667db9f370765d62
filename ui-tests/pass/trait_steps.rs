//! A trait with steps, behind a pointer: declared without a body and with one. (UA-50)

use std::sync::Arc;

use workflow::{Failure, step, workflow};

trait Gateway: Send + Sync {
    #[step]
    async fn charge(&self, cents: u64) -> Result<String, std::io::Error>;

    #[step(retries = 3)]
    async fn refund(&self, cents: u64) -> u64 {
        cents
    }
}

struct Bank;

impl Gateway for Bank {
    #[step(retries = 0)]
    async fn charge(&self, cents: u64) -> Result<String, std::io::Error> {
        Ok(cents.to_string())
    }
}

#[workflow]
async fn checkout(cents: u64, #[state] gateway: Arc<dyn Gateway>) -> Result<String, Failure> {
    let receipt = gateway.charge(cents).await?;
    gateway.refund(cents).await?;
    Ok(receipt)
}

fn main() {
    let _: Arc<dyn Gateway> = Arc::new(Bank);
}
