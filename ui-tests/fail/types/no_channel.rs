//! Not a channel.

use workflow::{Failure, recv, send, workflow};

static PAYMENT: &str = "payment";

#[workflow]
async fn checkout() -> Result<(), Failure> {
    let paid: u32 = recv!(paid, PAYMENT).await?;
    send!(tell, "shop", PAYMENT, paid).await?;
    Ok(())
}

fn main() {}
