//! Every form of `recv!` and `send!`.

#![deny(warnings, clippy::all, clippy::pedantic)]

use std::time::Duration;

use workflow::{Channel, Failure, Request, RunId, fragment, recv, send, workflow};

static CASH: Channel<u32> = Channel::new("cash");
static CARD: Channel<u32> = Channel::new("card");
static ASK: Channel<String, u32> = Channel::new("ask");

mod shop {
    pub static VOUCHER: workflow::Channel<u32> = workflow::Channel::new("voucher");
}

/// Whatever a channel carries.
#[fragment]
async fn next<T>(channel: &Channel<T>) -> Result<T, Failure>
where
    T: serde::Serialize + serde::de::DeserializeOwned + Send + Sync + 'static,
{
    recv!(next, channel).await
}

#[fragment]
async fn told<T>(to: &RunId, channel: &Channel<T>, value: T) -> Result<(), Failure>
where
    T: serde::Serialize + serde::de::DeserializeOwned + Send + Sync + 'static,
{
    send!(told, to, channel, value).await
}

#[workflow]
async fn checkout(limit: u32, other: String, run: RunId) -> Result<u32, Failure> {
    let mut sum = recv!(one, CASH).await?;
    sum += recv!(lent, &CASH).await?;
    sum += workflow::recv!(path, shop::VOUCHER).await?;
    sum += recv!(several, [CASH, CARD, shop::VOUCHER]).await?;
    sum += recv!(lent_several, [&CASH, &CARD]).await?;
    sum += recv!(timed, CASH, timeout = "15m").await?.unwrap_or(0);
    sum += recv!(polled, [CASH, CARD], timeout = "0s").await?.unwrap_or(0);
    let wait = Duration::from_secs(u64::from(limit));
    let some: Vec<u32> = recv!(some, CASH, count = 10).await?;
    let few = recv!(few, [CASH, CARD], count = limit, timeout = wait).await?;
    let all = recv!(all, CASH, timeout = wait * 2, exactly = limit + 1).await?;
    let asked: Request<String, u32> = recv!(asked, ASK).await?;
    let length = u32::try_from(asked.len()).unwrap_or(0);
    asked.reply(length).await?;
    let more: Vec<Request<String, u32>> = recv!(more, ASK, count = 3).await?;
    'answers: for request in more {
        request.reply(sum).await?;
    }
    while let Some(more) = some.first()
        && sum < *more
    {
        sum += 1;
    }
    if let Ok(Some(late)) = recv!(late, CASH, timeout = "1s").await {
        sum += late;
    }
    sum += next(&CARD).await?;
    send!(text, "shop", CASH, sum).await?;
    send!(string, &other, &CASH, sum).await?;
    send!(moved, other, shop::VOUCHER, sum).await?;
    send!(id, run, CASH, few.len() as u32).await?;
    send!(asked_of, "shop", ASK, String::new()).await?;
    told(&run, &CARD, sum).await?;
    let sent = send!(formatted, format!("shop-{sum}"), CASH, all.len() as u32).await;
    sent
        .map(|()| sum)
}

fn main() {}
