//! Several channels are received from when they give one type.

use workflow::{Channel, Failure, recv, workflow};

static CASH: Channel<u32> = Channel::new("cash");
static CARD: Channel<String> = Channel::new("card");

#[workflow]
async fn checkout() -> Result<(), Failure> {
    recv!(paid, [CASH, CARD]).await?;
    Ok(())
}

fn main() {}
