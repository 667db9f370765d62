//! Fragments that borrow, change, are generic, and call themselves.

use workflow::{Failure, fragment, sleep, step, workflow};

#[step]
async fn count(order: u32) -> u32 {
    order
}

#[fragment]
async fn add(total: &mut u32, title: &str, n: u32) -> Result<(), Failure> {
    *total += count(n + title.len() as u32).await?;
    Ok(())
}

#[fragment]
async fn all<I: Iterator<Item = u32> + Send>(items: I) -> Result<Vec<u32>, Failure> {
    let mut counted = Vec::new();
    'items: for item in items {
        counted.push(count(item).await?);
    }
    Ok(counted)
}

#[fragment]
async fn down(n: u32) -> Result<u32, Failure> {
    if n == 0 {
        return Ok(0);
    }
    sleep!(nap, "1s").await;
    Ok(down(n - 1).await? + 1)
}

struct Shop(u32);

impl Shop {
    #[fragment]
    async fn settle(&self, n: u32) -> Result<u32, Failure> {
        Ok(count(self.0 + n).await?)
    }
}

#[workflow]
async fn checkout(orders: Vec<u32>, title: String) -> Result<u32, Failure> {
    let mut total = 0;
    add(&mut total, &title, 1).await?;
    let counted = all(orders.into_iter()).await?;
    let shop = Shop(3);
    Ok(total + counted.len() as u32 + down(3).await? + shop.settle(1).await?)
}

fn main() {}
