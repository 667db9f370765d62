//! A state is an input that is not recorded. (RVT-HOST-02)

use workflow::{Failure, step, workflow};

#[derive(Clone)]
struct Stock(u32);

#[step]
async fn reserve(stock: &Stock, order: u32) -> u32 {
    stock.0 + order
}

#[workflow]
async fn checkout(order: u32, #[state] stock: Stock) -> Result<u32, Failure> {
    if stock.0 > 3 {
        return Ok(0);
    }
    Ok(reserve(&stock, order).await?)
}

fn main() {}
