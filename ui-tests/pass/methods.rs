//! Steps as methods and associated functions, in an inherent and a generic impl. (UA-50)

use workflow::{Failure, step, workflow};

#[derive(Clone)]
struct Stock<T>(T);

impl<T: Clone + Send + Sync + 'static> Stock<T> {
    #[step(retries = 0)]
    async fn reserve(&self, order: &str) -> Result<usize, std::io::Error> {
        Ok(order.len())
    }

    #[step]
    async fn count() -> u32 {
        1
    }
}

#[workflow]
async fn checkout(order: String, #[state] stock: Stock<u8>) -> Result<usize, Failure> {
    let held = stock.reserve(&order).await?;
    let count = Stock::<u8>::count().await?;
    Ok(held + count as usize)
}

fn main() {}
