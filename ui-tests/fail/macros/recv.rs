//! What follows the channel are options, each given once.

use workflow::{Channel, Failure, recv, workflow};

static PAYMENT: Channel<u32> = Channel::new("payment");

#[workflow]
async fn checkout() -> Result<u32, Failure> {
    let a: u32 = recv!(a).await?;
    let b: u32 = recv!(b, timeout = "1s").await?;
    let c = recv!(c, PAYMENT, "1s").await?;
    let d = recv!(d, PAYMENT, within = "1s").await?;
    let e = recv!(e, PAYMENT, timeout = "1s", timeout = "2s").await?;
    let f = recv!(f, PAYMENT, count = 2, exactly = 3).await?;
    let g = recv!(g, PAYMENT, timeout = "soon").await?;
    let h: u32 = recv!(PAYMENT).await?;
    Ok(a + b + c + d + e.unwrap_or(0) + f.len() as u32 + g.unwrap_or(0) + h)
}

fn main() {}
