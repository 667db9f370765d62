//! How many messages, and for how long.

use workflow::{Channel, Failure, recv, workflow};

static PAYMENT: Channel<u32> = Channel::new("payment");

#[workflow]
async fn checkout() -> Result<usize, Failure> {
    let several = recv!(several, PAYMENT, count = "3").await?;
    let timed = recv!(timed, PAYMENT, timeout = 15).await?;
    Ok(several.len() + timed.map_or(0, |_| 1))
}

fn main() {}
