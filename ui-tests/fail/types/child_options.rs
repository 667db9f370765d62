//! A child run is not tried again by its parent: its steps are, each by itself. (UA-77)

use workflow::{Failure, step, workflow};

#[workflow]
async fn parcel(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    #[step(name = "first", retries = 3)]
    let first = parcel(order).await?;
    #[step(name = "second", timeout = "1m")]
    parcel(order).detach().await?;
    Ok(first)
}

fn main() {}
