//! What is refused and awaited besides is one mistake: a step's body.

use workflow::{Failure, step, workflow};

#[workflow]
async fn checkout() -> Result<usize, Failure> {
    #[step(name = "order")]
    let order = std::future::ready(std::fs::read("order")).await?;
    let other = std::fs::metadata("order").await;
    drop(other);
    Ok(order.len())
}

fn main() {}
