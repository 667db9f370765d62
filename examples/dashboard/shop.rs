//! What the shop does.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use workflow::guided::{Faults, Flow, stage};
use workflow::{
    Channel, Failure, checkpoint, current_step, join, progress, race, recv, sleep, step, workflow,
};

/// What customers pay by.
pub(crate) static PAYMENT: Channel<u64> = Channel::new("payment");
/// What customers ask, and what they are told.
pub(crate) static QUESTION: Channel<String, String> = Channel::new("question");

#[derive(Debug, thiserror::Error)]
pub(crate) enum ShopError {
    #[error("the warehouse does not answer")]
    Away,
    #[error("{0} is too heavy for a parcel")]
    TooHeavy(String),
    #[error("all rooms in {0} are taken")]
    Full(String),
}

/// Answers at the third attempt.
#[step(retries = 3, backoff(fixed, wait = "300ms"))]
async fn reserve(item: &str) -> Result<String, ShopError> {
    tokio::time::sleep(Duration::from_millis(30)).await;
    if current_step().attempt() < 3 {
        return Err(ShopError::Away);
    }
    Ok(format!("one {item}, shelf 12"))
}

#[step(retries = 0)]
async fn pack(item: &str) -> Result<String, ShopError> {
    tokio::time::sleep(Duration::from_millis(60)).await;
    if item == "stone" {
        return Err(ShopError::TooHeavy(item.to_owned()));
    }
    Ok(format!("a parcel with {item}"))
}

#[step]
async fn invoice(item: &str, cents: u64) -> String {
    tokio::time::sleep(Duration::from_millis(40)).await;
    format!("{item}: {cents} cents")
}

#[step]
async fn ship(parcel: &str) -> String {
    format!("{parcel} is on its way")
}

/// Packs and bills side by side, waits for the money, answers questions meanwhile, and ships.
#[workflow]
pub(crate) async fn order(item: String, cents: u64) -> Result<String, Failure> {
    reserve(&item).await?;
    let (parcel, _) = join!(
        prepare,
        goods = pack(&item).await?,
        papers = invoice(&item, cents).await?
    )
    .await?;
    progress!(serde_json::json!({ "packed": parcel }));
    'open: loop {
        let won = race!(
            next,
            paid = {
                recv!(payment, PAYMENT).await?;
                true
            },
            asked = {
                let question = recv!(question, QUESTION).await?;
                let answer = format!("{}: once it is paid", question.value());
                question.reply(answer).await?;
                false
            },
            expired = {
                sleep!(window, "2h").await;
                true
            },
        )
        .await?;
        if won.value {
            break 'open;
        }
    }
    Ok(ship(&parcel).await?)
}

#[step]
async fn flight(to: &str) -> String {
    format!("seat 12A to {to}")
}

async fn give_back(seat: String) -> Result<(), ShopError> {
    drop(seat);
    Ok(())
}

#[step(retries = 1, backoff(fixed, wait = "100ms"))]
async fn room(place: &str) -> Result<String, ShopError> {
    Err(ShopError::Full(place.to_owned()))
}

/// Books a seat and finds no room: the seat is given back.
#[workflow]
pub(crate) async fn trip(to: String) -> Result<String, Failure> {
    checkpoint!(booking);
    #[step(undo(give_back))]
    let seat = flight(&to).await?;
    let room = room(&to).await?;
    Ok(format!("{seat}, {room}"))
}

/// Sleeps for long.
#[workflow]
pub(crate) async fn later(what: String) -> Result<String, Failure> {
    sleep!(until_then, "30d").await;
    Ok(what)
}

/// One of many.
#[workflow]
pub(crate) async fn tick(number: usize) -> usize {
    number
}

#[step]
async fn weigh(item: &str) -> usize {
    item.len()
}

/// A parcel's way to its door. It weighs parcels since today, and calls its wait otherwise: that does not fit what runs of yesterday did.
#[workflow(name = "delivery", shared_name)]
pub(crate) async fn delivery(item: String) -> Result<String, Failure> {
    let parcel = pack(&item).await?;
    weigh(&parcel).await?;
    sleep!(collected, "12h").await;
    Ok(parcel)
}

/// The program of yesterday.
pub(crate) mod before {
    use super::{Failure, pack, sleep, workflow};

    #[workflow(name = "delivery", shared_name)]
    pub(crate) async fn delivery(item: String) -> Result<String, Failure> {
        let parcel = pack(&item).await?;
        sleep!(pick_up, "12h").await;
        Ok(parcel)
    }
}

/// What a person who signs up gives.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Person {
    name: String,
    newsletter: bool,
}

pub(crate) fn signup() -> Result<Flow<Person>, Faults> {
    Flow::<Person>::builder("signup")
        .stage(
            stage("name")
                .start()
                .title("What is your name?")
                .check(|person: &Person, problems| {
                    problems.when(person.name.is_empty(), "name", "a name is needed");
                })
                .to("news"),
        )
        .stage(
            stage("news")
                .title("Do you want our news?")
                .skippable()
                .to("done"),
        )
        .stage(stage("done").terminal())
        .build()
}
