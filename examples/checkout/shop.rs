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
