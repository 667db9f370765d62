//! Types and functions that nobody else sees: in workflows, steps and fragments of every visibility, in a module, in a
//! function, and over a type that is `pub(crate)`.

#![deny(warnings)]

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use workflow::{Failure, fragment, step, workflow};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    items: Vec<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Receipt(u32);

#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
#[error("sold out")]
struct SoldOut;

#[derive(Clone)]
struct Stock;

#[step]
async fn reserve(_stock: &Stock, order: &Order) -> Result<Receipt, SoldOut> {
    order.items.first().copied().map(Receipt).ok_or(SoldOut)
}

#[step]
async fn echo<T: Serialize + DeserializeOwned + Clone + Send + Sync>(value: &T) -> T {
    value.clone()
}

#[fragment]
async fn twice<T>(value: &T) -> Result<(T, T), Failure>
where
    T: Serialize + DeserializeOwned + Clone + Send + Sync,
{
    let first = echo(value).await?;
    #[step(name = "again")]
    let second = echo(value).await?;
    Ok((first, second))
}

#[workflow]
async fn checkout(order: Order, #[state] stock: Stock) -> Result<Receipt, Failure> {
    let (order, _) = twice(&order).await?;
    reserve(&stock, &order).await
}

mod shop {
    use super::{Failure, Serialize, step, workflow};

    #[derive(Debug, Clone, Serialize, serde::Deserialize)]
    pub(crate) struct Basket {
        pub(super) size: u32,
    }

    #[step]
    pub(super) async fn weigh(basket: &Basket) -> u32 {
        basket.size
    }

    #[workflow]
    pub(crate) async fn pack(basket: Basket) -> Result<Basket, Failure> {
        let size = weigh(&basket).await?;
        Ok(Basket { size })
    }
}

fn main() {
    #[workflow]
    async fn local(order: Order) -> Result<u32, Failure> {
        #[derive(Clone, Serialize, Deserialize)]
        struct Sum(u32);
        #[step(name = "sum")]
        let sum = { Sum(order.items.iter().sum()) }?;
        Ok(sum.0)
    }
    let basket = shop::Basket { size: 1 };
    let _ = (shop::pack(basket), checkout(Order { items: Vec::new() }));
    let _ = (local(Order { items: Vec::new() }), shop::weigh);
    assert_eq!((local::NAME, shop::pack::NAME, checkout::SITES.len()), ("local", "pack", 2));
}
