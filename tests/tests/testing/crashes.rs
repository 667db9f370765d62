//! Workflows that come out the same after every crash, one for each part of the language.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use workflow::testing::{Broken, Crashes, crash_everywhere};
use workflow::{
    Channel, Failure, Request, checkpoint, current_step, join, join_all, now, race, recv, sleep,
    step, uuid, workflow,
};

/// What the world has of effects, by what names them. It takes each one once.
#[derive(Debug, Clone, Default)]
struct World(Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>);

impl World {
    fn has(&self, what: &str, key: String) {
        let mut all = self.0.lock().unwrap();
        all.entry(what.to_owned()).or_default().insert(key);
    }

    fn takes_back(&self, what: &str, key: &str) {
        let mut all = self.0.lock().unwrap();
        all.entry(what.to_owned()).or_default().remove(key);
    }

    fn count(&self) -> BTreeMap<String, usize> {
        let all = self.0.lock().unwrap();
        all.iter()
            .map(|(what, keys)| (what.clone(), keys.len()))
            .collect()
    }
}

#[step(retries = 2, backoff(fixed, wait = "1m"))]
async fn act(world: &World, what: &str) -> Result<u32, std::io::Error> {
    tokio::time::sleep(Duration::from_millis(5)).await;
    world.has(what, current_step().idempotency_key());
    Ok(u32::try_from(what.len()).unwrap())
}

static PAID: Channel<u32> = Channel::new("paid");
static ASK: Channel<u32, u32> = Channel::new("ask");

#[workflow]
async fn parcel(what: String, #[state] world: World) -> Result<u32, Failure> {
    let packed = act(&world, &what).await?;
    sleep!(transit, "2d").await;
    Ok(packed)
}

/// A bit of everything that waits.
#[workflow]
async fn order(items: u32, #[state] world: World) -> Result<(u32, String), Failure> {
    let began = now!(began).await;
    let id = uuid!(id);
    #[step(name = "reserve")]
    let held = act(&world, "reserve").await?;
    let won = race!(
        settle,
        paid = recv!(payment, PAID).await?,
        late = {
            sleep!(window, "1h").await;
            0
        }
    )
    .await?;
    let sizes = join_all!(
        pack,
        for item in 0..items {
            #[step(name = "wrap")]
            let size = act(&world, &format!("wrap {item}")).await?;
            size
        }
    )
    .await?;
    let (sent, told) = join!(
        out,
        sent = parcel("box".to_owned()).await?,
        told = {
            #[step(name = "mail")]
            let mail = act(&world, "mail").await?;
            mail
        }
    )
    .await?;
    let mut total = held + won.value + sent + told + sizes.iter().sum::<u32>();
    #[carry(total)]
    'days: loop {
        sleep!(day, "1d").await;
        total += 1;
        if total.is_multiple_of(7) {
            break;
        }
    }
    let took = now!(ended).await.since(began);
    assert!(took >= Duration::from_secs(86_400));
    Ok((total, id.to_string()))
}

fn crashed(order: workflow::Call<order>) -> workflow::testing::CrashEverywhere<order> {
    crash_everywhere(order)
        .workflow(parcel)
        .fresh(World::default)
        .effect("effects", World::count)
}

// UH-H1
#[tokio::test]
async fn a_workflow_that_waits_for_everything_comes_out_the_same() -> Result<(), Broken> {
    let crashes = crashed(order(2))
        .send(&PAID, 40)
        .fail("reserve", 1, "busy")
        .await?;
    crashes.assert_all_sites();
    assert!(crashes.crashes() > 50, "{crashes}");
    Ok(())
}

#[tokio::test]
async fn what_is_not_reached_is_told_with_its_line() -> Result<(), Broken> {
    let crashes = crashed(order(0)).await?;
    let text = crashes.to_string();
    assert!(text.contains("never reached: `pack[]/wrap` ("), "{text}");
    assert!(text.contains("tests/testing/crashes.rs:"), "{text}");
    let never = crashes.sites_never_reached();
    let never: Vec<_> = never.iter().map(|site| site.path).collect();
    // Of no items there is no record.
    assert_eq!(never, ["pack", "pack[]/wrap"], "{text}");
    Ok(())
}

#[tokio::test]
async fn a_late_message_is_late_after_every_crash() -> Result<(), Broken> {
    let late = Duration::from_secs(2 * 3_600 + 1);
    crashed(order(1))
        .send_after(late, &PAID, 40)
        .await
        .map(drop)
}

#[tokio::test]
async fn the_same_crashes_come_again() -> Result<(), Broken> {
    let points = async || -> Result<Crashes, Broken> { crashed(order(2)).send(&PAID, 1).await };
    let (one, other) = (points().await?, points().await?);
    assert_eq!(one.points(), other.points());
    let alone = crashed(order(2)).send(&PAID, 1).only(17).await?;
    assert_eq!(alone.points(), [one.points()[16].clone()]);
    let at = crashed(order(2))
        .send(&PAID, 1)
        .at("settle/paid/payment")
        .await?;
    assert!(!at.points().is_empty() && at.crashes() < 6, "{at}");
    assert!(
        at.points().iter().all(|point| point.contains("payment")),
        "{:?}",
        at.points()
    );
    Ok(())
}

#[derive(Debug, thiserror::Error)]
#[error("no seats")]
struct NoSeats;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Seat(String);

#[step]
async fn book(world: &World, what: &str) -> Seat {
    let key = current_step().idempotency_key();
    world.has(what, key.clone());
    Seat(key)
}

#[step(retries = 0)]
async fn ticket() -> Result<(), NoSeats> {
    Err(NoSeats)
}

async fn cancel(seat: Seat, world: World) {
    tokio::time::sleep(Duration::from_millis(5)).await;
    world.takes_back("seats", &seat.0);
}

#[workflow]
async fn trip(#[state] world: World) -> Result<(), Failure> {
    checkpoint!(begun);
    #[step(name = "there", undo(cancel))]
    book(&world, "seats").await?;
    #[step(name = "back", undo(cancel))]
    book(&world, "seats").await?;
    ticket().await
}

#[tokio::test]
async fn what_is_undone_is_undone_after_every_crash() -> Result<(), Broken> {
    let crashes = crash_everywhere(trip())
        .fresh(World::default)
        .effect("left", World::count)
        .await?;
    let text = crashes.points().join("\n");
    assert!(
        text.contains("the body of attempt 1 of the undo of `back`"),
        "{text}"
    );
    crashes.assert_all_sites();
    Ok(())
}

#[workflow]
async fn desk(limit: u32) -> Result<u32, Failure> {
    let mut total = 0;
    #[carry(total)]
    'open: loop {
        let asked: Request<u32, u32> = recv!(asked, ASK).await?;
        total += *asked;
        asked.reply(total).await?;
        if total >= limit {
            break;
        }
    }
    Ok(total)
}

#[tokio::test]
async fn a_request_is_answered_once_whatever_happens() -> Result<(), Broken> {
    let answers = |run: workflow::RunHandle<desk>| async move {
        for (number, value) in [3_u32, 4, 5].into_iter().enumerate() {
            let answer = run
                .request_once(&ASK, format!("ask {number}"), &value)
                .await?;
            assert!(answer >= value);
        }
        Ok(())
    };
    let crashes = crash_everywhere(desk(12)).script(answers).await?;
    crashes.assert_all_sites();
    Ok(())
}
