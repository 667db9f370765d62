//! The workflow: what happens to one order.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use workflow::{Failure, join, race, sleep, step, workflow};

use crate::effects::World;
use crate::orders::Order;

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Receipt {
    Shipped { charge: String, parcel: String },
    Expired,
}

#[derive(Debug, thiserror::Error)]
#[error("{0} is sold out")]
struct SoldOut(String);

#[step(retries = 5, backoff(fixed, wait = "10ms"))]
async fn reserve(world: &World, order: &Order) -> Result<String, Failed> {
    if let Some(item) = order.items.iter().find(|item| item.sku == "unicorn") {
        // Trying again would not help.
        return Err(workflow::critical(SoldOut(item.sku.clone())).into());
    }
    Ok(world.act("reserve")?)
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

#[step(timeout = "5s")]
async fn charge(world: &World, order: &Order) -> Result<String, io::Error> {
    let cents: u64 = order
        .items
        .iter()
        .map(|item| u64::from(item.count) * item.cents)
        .sum();
    world.act(&format!("charge {cents}"))
}

#[step]
async fn pack(world: &World, order: &Order) -> Result<String, io::Error> {
    world.act(&format!("pack {}", order.items.len()))
}

#[step]
async fn invoice(world: &World, order: &Order) -> Result<String, io::Error> {
    world.act(&format!("invoice {}", order.customer))
}

#[step]
async fn release(world: &World, hold: &str) -> Result<String, io::Error> {
    world.act(&format!("release {hold}"))
}

#[workflow]
pub async fn checkout(order: Order, #[state] world: World) -> Result<Receipt, Failure> {
    let hold = reserve(&world, &order).await?;
    let settled = race!(
        settle,
        paid = {
            // A customer who never pays is one who pays after the window.
            let takes = order.pays_after.unwrap_or(60_000);
            sleep!(payment, Duration::from_millis(takes)).await;
            Some(charge(&world, &order).await?)
        },
        expired = {
            sleep!(window, "300ms").await;
            None
        }
    )
    .await?;
    let Some(charge) = settled.value else {
        release(&world, &hold).await?;
        return Ok(Receipt::Expired);
    };
    let (parcel, _) = join!(
        fulfil,
        parcel = pack(&world, &order).await?,
        papers = invoice(&world, &order).await?,
    )
    .await?;
    sleep!(cool_off, "20ms").await;
    Ok(Receipt::Shipped { charge, parcel })
}
