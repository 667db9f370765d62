//! A message goes to a run, over a channel, and has a value.

use workflow::{Channel, Failure, send, workflow};

static PAYMENT: Channel<u32> = Channel::new("payment");

#[workflow]
async fn checkout(order: String) -> Result<(), Failure> {
    send!(nothing).await?;
    send!(no_value, &order, PAYMENT).await?;
    send!(much, &order, PAYMENT, 1, 2).await?;
    send!(&order, PAYMENT, 1).await?;
    Ok(())
}

fn main() {}
