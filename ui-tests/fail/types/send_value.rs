//! A message has its channel's type.

use workflow::{Channel, Failure, send, workflow};

static PAYMENT: Channel<u32> = Channel::new("payment");

#[workflow]
async fn checkout(order: String) -> Result<(), Failure> {
    send!(tell, &order, PAYMENT, "much").await?;
    Ok(())
}

fn main() {}
