//! A state given to sites in loops and branches, and shadowed by a local. (RVT-HOST-02)

use workflow::{Failure, join, step, workflow};

#[derive(Clone)]
struct Stock(u32);

#[step]
async fn count(stock: &Stock, order: u32) -> u32 {
    stock.0 + order
}

#[workflow]
async fn checkout(orders: Vec<u32>, #[state] stock: Stock) -> Result<u32, Failure> {
    'orders: for order in orders {
        count(&stock, order).await?;
    }
    let (a, b) = join!(both, a = count(&stock, 1).await?, b = 2).await?;
    #[step(name = "peek")]
    let seen = { stock.0 }?;
    let stock = a + b;
    Ok(stock + seen)
}

fn main() {}
