//! A shop's order, in which everything stands that can be drawn.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow::{
    Channel, Failure, attempt, checkpoint, fragment, join, join_all, now, race, recv, removed,
    rollback, send, settle, sleep, step, uuid, version, workflow,
};

pub(crate) static PAYMENT: Channel<u32> = Channel::new("payment");
pub(crate) static VOUCHER: Channel<u32> = Channel::new("voucher");
pub(crate) static NEWS: Channel<String> = Channel::new("news");

/// What the world does with an order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shop(Arc<Mutex<Vec<String>>>);

impl Shop {
    /// From now on it refuses whatever is named so.
    pub(crate) fn refuse(&self, what: &str) {
        self.0.lock().unwrap().push(what.to_owned());
    }

    /// From now on it refuses nothing.
    pub(crate) fn allow(&self) {
        self.0.lock().unwrap().clear();
    }

    fn ask(&self, what: &str) -> Result<String, std::io::Error> {
        if self.0.lock().unwrap().iter().any(|refused| refused == what) {
            return Err(std::io::Error::other("refused"));
        }
        Ok(what.to_owned())
    }
}

#[step(retries = 2, backoff(fixed, wait = "1m"))]
pub(crate) async fn ask(shop: &Shop, what: &str) -> Result<String, std::io::Error> {
    shop.ask(what)
}

pub(crate) async fn take_back(what: String, shop: Shop) -> Result<(), std::io::Error> {
    shop.ask(&format!("take back {what}")).map(drop)
}

#[fragment]
pub(crate) async fn notify(shop: &Shop, whom: &str) -> Result<(), Failure> {
    #[step(name = "mail")]
    ask(shop, whom).await?;
    sleep!(pause, "1m").await;
    Ok(())
}

#[workflow]
pub(crate) async fn parcel(item: u32) -> Result<u32, Failure> {
    sleep!(packing, "1h").await;
    Ok(item)
}

/// Where orders are told of.
#[workflow]
pub(crate) async fn ledger() -> Result<String, Failure> {
    Ok(recv!(news, NEWS).await?)
}

/// It has one of everything.
#[workflow]
pub(crate) async fn order(
    items: Vec<u32>,
    express: bool,
    #[state] shop: Shop,
) -> Result<u32, Failure> {
    removed!(greet, kind = "step");
    let placed = now!(placed).await;
    let id = uuid!(token);
    checkpoint!(begun);
    #[step(name = "hold", undo(take_back))]
    ask(&shop, "hold").await?;
    if items.is_empty() {
        #[step(name = "decline")]
        ask(&shop, "decline").await?;
        return Ok(0);
    }
    let won = race!(
        settle,
        paid = {
            let cents = recv!(payment, [PAYMENT, VOUCHER]).await?;
            #[step(name = "book-in")]
            ask(&shop, "book-in").await?;
            cents
        },
        expired = {
            sleep!(window, "15m").await;
            0
        },
        free = {
            #[step(name = "lottery")]
            ask(&shop, "lottery").await?;
            0
        },
    )
    .await?;
    let priced = attempt!(pricing, {
        #[step(name = "quote")]
        ask(&shop, "quote").await?;
        #[step(name = "check")]
        ask(&shop, "check").await?
    })
    .await;
    if priced.is_err() {
        rollback!(back, to = begun).await;
    }
    settle!(paid);
    'lines: for item in &items {
        #[step(name = "pick")]
        ask(&shop, &item.to_string()).await?;
        match item % 3 {
            0 => continue,
            1 => {
                #[step(name = "wrap")]
                ask(&shop, "wrap").await?;
            }
            _ => {
                #[step(name = "stamp")]
                ask(&shop, "stamp").await?;
                if express {
                    #[step(name = "hurry")]
                    ask(&shop, "hurry").await?;
                    break;
                }
            }
        }
        sleep!(breath, "1m").await;
    }
    for item in &items {
        if *item > 1_000 {
            return Ok(*item);
        }
        if *item == 0 {
            break;
        }
    }
    let mut left = 2_u32;
    #[carry(left)]
    'drain: while left > 0 {
        sleep!(beat, "1m").await;
        left -= 1;
    }
    let parcels = join_all!(
        parcels,
        for item in items {
            join!(
                both,
                sent = parcel(item).await?,
                told = notify(&shop, "sender").await?
            )
            .await?
            .0
        }
    )
    .await?;
    if version!(thanks, 2).await >= 2 {
        notify(&shop, "customer").await?;
    }
    send!(
        tell,
        "ledger",
        &NEWS,
        format!("{placed} {id} {}", parcels.len())
    )
    .await?;
    let mut tries = 0;
    'poll: loop {
        sleep!(tick, "1m").await;
        tries += 1;
        if tries < 2 {
            continue 'poll;
        }
        match won.value {
            0 => return Ok(0),
            _ => break 'poll,
        }
    }
    sleep!(rest, Duration::from_secs(1)).await;
    Ok(won.value)
}
