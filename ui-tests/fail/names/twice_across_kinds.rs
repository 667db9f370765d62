//! One name, whatever bears it. (RVT-VER-08)

use workflow::{Channel, Failure, attempt, recv, removed, send, step, version, workflow};

static PAYMENT: Channel<u32> = Channel::new("payment");

#[step]
async fn pay(order: u32) -> u32 {
    order
}

#[workflow]
async fn parcel(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let a = recv!(paid, PAYMENT).await?;
    send!(paid, "shop", PAYMENT, a).await?;
    let b = pay(order).await?;
    let c = attempt!(pay, { 1 }).await?;
    let d = parcel(order).await?;
    let e = version!(parcel, 2).await;
    removed!(old, kind = "step");
    'old: for _ in 0..2 {
        pay(order).await?;
    }
    Ok(a + b + c + d + e)
}

#[workflow]
async fn two_children(order: u32) -> Result<u32, Failure> {
    let a = parcel(order).await?;
    let b = parcel(order).await?;
    parcel(order).detach().await?;
    Ok(a + b)
}

#[workflow]
async fn two_replies() -> Result<(), Failure> {
    static ASK: Channel<u32, u32> = Channel::new("ask");
    let first = recv!(first, ASK).await?;
    let second = recv!(second, ASK).await?;
    first.reply(1).await?;
    second.reply(2).await
}

fn main() {}
