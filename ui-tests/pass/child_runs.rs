//! A workflow awaited in a workflow is a run of its own: waited for or not, under another id or another name, and anywhere that
//! something durable may stand. (UA-23, UA-77)

#![deny(warnings, clippy::all, clippy::pedantic)]

use workflow::{Channel, Failure, RunId, fragment, join, race, recv, sleep, step, workflow};

static NEWS: Channel<String> = Channel::new("news");
static ASK: Channel<u32, String> = Channel::new("ask");

#[workflow]
async fn parcel(item: String) -> Result<u32, Failure> {
    sleep!(pack, "1h").await;
    Ok(u32::try_from(item.len()).unwrap_or(u32::MAX))
}

#[workflow]
async fn plain(n: u32) -> u32 {
    n
}

#[fragment]
async fn two(item: &str) -> Result<u32, Failure> {
    let first = parcel(item.to_owned()).await?;
    #[step(name = "other")]
    let second = parcel(item.to_owned()).await?;
    Ok(first + second)
}

#[workflow]
async fn order(item: String) -> Result<u32, Failure> {
    let weight = parcel(item.clone()).await?;
    #[step(name = "again")]
    let again = parcel(item.clone()).await?;
    #[step(name = "tried")]
    let tried = parcel(item.clone()).await;
    #[step(name = "given")]
    let given = parcel(item.clone()).id("my-parcel").await?;
    #[step(name = "left")]
    let left: RunId = parcel(item.clone()).detach().await?;
    #[step(name = "left_too")]
    parcel(item.clone()).id(left.to_string()).detach().await?;
    let number = plain(weight).await?;
    let (a, b) = join!(both, a = plain(1).await?, b = two(&item).await?).await?;
    let won = race!(
        first,
        packed = parcel(item.clone()).await?,
        told = recv!(news, NEWS).await?.len() as u32,
        late = {
            sleep!(window, "1h").await;
            0
        }
    )
    .await?;
    Ok(again + tried.unwrap_or(0) + given + number + a + b + won.value)
}

#[workflow]
async fn answers() -> Result<(), Failure> {
    let first = recv!(first, ASK).await?;
    let second = recv!(second, ASK).await?;
    let answer = first.to_string();
    first.reply(answer).await?;
    #[step(name = "answer_second")]
    second.reply(String::new()).await?;
    let third = recv!(third, ASK, timeout = "1h").await?;
    if let Some(third) = third {
        #[step(name = "answer_third")]
        let given = third.reply(String::new()).await;
        given?;
    }
    Ok(())
}

fn main() {}
