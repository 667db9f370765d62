//! The shop: the steps that touch the world, and the workflow that says in which order.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use workflow::{Failure, current_step, join, race, sleep, step, workflow};

use crate::effects::{Effect, Effects};
use crate::orders::Order;

/// Cheap to clone: each run gets one.
#[derive(Debug, Clone)]
pub(crate) struct Shop {
    pub(crate) effects: Arc<Effects>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ShopError {
    #[error("the warehouse is busy")]
    Busy,
    #[error("{0} is sold out")]
    SoldOut(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    Paid,
    Expired,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Receipt {
    pub(crate) outcome: Outcome,
    pub(crate) cents: u64,
}

impl Shop {
    /// Every 23rd order finds the warehouse busy at first, and is tried again. What is sold out stays so.
    #[step(retries = 5, backoff(fixed, wait = "20ms"), retry_if(|e: &ShopError| !matches!(e, ShopError::SoldOut(_))))]
    async fn reserve(&self, order: &Order) -> Result<Effect, ShopError> {
        if let Some(item) = order.items.iter().find(|item| item.quantity > 12) {
            return Err(ShopError::SoldOut(item.sku.clone()));
        }
        if number(order).is_multiple_of(23) && current_step().attempt() == 1 {
            return Err(ShopError::Busy);
        }
        Ok(self.effects.have()?)
    }

    /// The customer pays. Most do so at once, some never do.
    #[step(timeout = "none")]
    async fn payment(&self, order: &Order) -> Result<Effect, ShopError> {
        let slow = number(order).is_multiple_of(17);
        tokio::time::sleep(Duration::from_millis(if slow { 60_000 } else { 10 })).await;
        Ok(self.effects.have()?)
    }

    /// A real one would give `current_step().idempotency_key()` to its provider.
    #[step(retries = 5, timeout = "10s")]
    async fn charge(&self, _order: &Order) -> Result<Effect, ShopError> {
        Ok(self.effects.have()?)
    }

    #[step]
    async fn pack(&self, _order: &Order) -> Result<Effect, ShopError> {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(self.effects.have()?)
    }

    #[step]
    async fn mail(&self, _customer: &str) -> Result<Effect, ShopError> {
        Ok(self.effects.have()?)
    }

    #[step]
    async fn release(&self, _order: &Order) -> Result<Effect, ShopError> {
        Ok(self.effects.have()?)
    }
}

/// One order, from the shelf to the door.
#[workflow]
pub(crate) async fn checkout(order: Order, #[state] shop: Shop) -> Result<Receipt, Failure> {
    shop.reserve(&order).await?;
    let settled = race!(
        settle,
        paid = {
            shop.payment(&order).await?;
            Outcome::Paid
        },
        expired = {
            sleep!(window, "300ms").await;
            Outcome::Expired
        }
    )
    .await?;
    if settled.value == Outcome::Expired {
        shop.release(&order).await?;
        return Ok(Receipt {
            outcome: Outcome::Expired,
            cents: 0,
        });
    }
    shop.charge(&order).await?;
    sleep!(cool_off, "50ms").await;
    join!(
        fulfil,
        packed = shop.pack(&order).await?,
        mailed = shop.mail(&order.customer).await?
    )
    .await?;
    Ok(Receipt {
        outcome: Outcome::Paid,
        cents: order.cents,
    })
}

/// The digits of an order's id.
fn number(order: &Order) -> u64 {
    let digits = order.id.chars().filter(char::is_ascii_digit);
    digits.collect::<String>().parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use workflow::testing::{Broken, Steps, crash_everywhere, engine, expect};

    use super::*;
    use crate::orders::Item;

    fn order(number: u32, quantity: u32) -> Order {
        Order {
            id: format!("order-{number}"),
            customer: "Ada".to_owned(),
            items: vec![Item {
                sku: "book".to_owned(),
                quantity,
            }],
            cents: 500,
        }
    }

    fn shop() -> Shop {
        Shop {
            effects: Arc::new(Effects::nameless()),
        }
    }

    /// A crash at each commit and each await changes neither how the order ends nor what was done for it.
    async fn survives(order: Order) -> Result<String, Broken> {
        let crashes = crash_everywhere(checkout(order))
            .fresh(shop)
            .effect("done", |shop: &Shop| shop.effects.places())
            .await?;
        Ok(crashes.to_string())
    }

    #[tokio::test]
    async fn an_order_that_is_paid_survives_every_crash() -> Result<(), Broken> {
        let crashes = survives(order(1, 1)).await?;
        assert!(crashes.contains("9 of 10 sites crashed"), "{crashes}");
        assert!(crashes.contains("never reached: `release`"), "{crashes}");
        Ok(())
    }

    #[tokio::test]
    async fn one_that_nobody_pays_does_too() -> Result<(), Broken> {
        survives(order(17, 1)).await.map(drop)
    }

    #[tokio::test]
    async fn one_that_finds_the_warehouse_busy_does_too() -> Result<(), Broken> {
        survives(order(23, 1)).await.map(drop)
    }

    #[tokio::test]
    async fn one_that_cannot_be_had_does_too() -> Result<(), Broken> {
        survives(order(1, 13)).await.map(drop)
    }

    #[tokio::test]
    async fn a_charge_that_fails_is_tried_again() -> Result<(), Box<dyn std::error::Error>> {
        let steps = Steps::of(checkout).fail("charge", 2, "the bank is closed");
        let builder = engine().workflow(checkout).state(shop());
        let engine = builder.steps(&steps).build().await?;
        let run = engine.start("order-1", checkout(order(1, 1))).await?;
        assert_eq!(run.result().await?.outcome, Outcome::Paid);
        expect(&run.export().await?)
            .won("settle", "paid")
            .attempts("charge", 3)
            .in_order("cool_off", "fulfil/packed/pack")
            .nothing_at("release")
            .completed();
        Ok(())
    }
}
