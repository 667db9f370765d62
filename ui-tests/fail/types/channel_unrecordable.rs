//! What is sent is recorded.

use workflow::{Channel, Failure, recv, workflow};

struct Payment;

static PAYMENT: Channel<Payment> = Channel::new("payment");

#[workflow]
async fn checkout() -> Result<(), Failure> {
    recv!(paid, PAYMENT).await?;
    Ok(())
}

fn main() {}
