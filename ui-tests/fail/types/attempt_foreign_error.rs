//! An attempt stops failures, and nothing else. (RVT-TRY-11)

use workflow::{Failure, attempt, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(text: String) -> Result<u32, Failure> {
    let held = attempt!(book, {
        let order: u32 = text.parse::<u32>()?;
        reserve(order).await?
    })
    .await;
    held
}

fn main() {}
