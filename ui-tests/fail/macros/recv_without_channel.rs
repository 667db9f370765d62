//! A set of channels has one at least.

use workflow::{Channel, Failure, recv, workflow};

static PAYMENT: Channel<u32> = Channel::new("payment");

#[workflow]
async fn checkout() -> Result<u32, Failure> {
    let none: u32 = recv!(none, []).await?;
    let paid = recv!(paid, PAYMENT).await?;
    Ok(none + paid)
}

fn main() {}
