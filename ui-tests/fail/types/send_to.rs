//! A message goes to a run.

use workflow::{Channel, Failure, send, workflow};

static PAYMENT: Channel<u32> = Channel::new("payment");

#[workflow]
async fn checkout(order: u32) -> Result<(), Failure> {
    send!(tell, order, PAYMENT, 1).await?;
    Ok(())
}

fn main() {}
