//! A number alone is no time.

use workflow::{Channel, Failure, recv, sleep, workflow};

static PAYMENT: Channel<u32> = Channel::new("payment");

#[workflow]
async fn checkout() -> Result<u32, Failure> {
    sleep!(nap, 15).await;
    let paid = recv!(paid, PAYMENT, timeout = 900).await?;
    Ok(paid.unwrap_or(0))
}

fn main() {}
