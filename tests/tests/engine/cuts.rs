//! Races whose winner, losers and their records are cut off or changed at the worst instant.

use std::sync::Arc;
use std::time::Duration;

use workflow::replay::Body;
use workflow::{Error, Failure, ParkReason, race, sleep, step, workflow};
use workflow_tests::{Counter, Fault, FaultStore, World, pass};

#[step(timeout = "none")]
async fn after(calls: &Counter, millis: u64) -> u64 {
    calls.hit();
    pass(millis).await;
    millis
}

/// In what order the calls come is told by the states: `.0` counts the winner's, `.1` the loser's.
#[derive(Debug, Clone, Default)]
struct Sides(Counter, Counter);

#[workflow]
async fn decided(#[state] sides: Sides) -> Result<u64, Failure> {
    let won = race!(
        r,
        fast = {
            let one = after(&sides.0, 20).await?;
            #[step(name = "two")]
            let two = after(&sides.0, 20).await?;
            one + two
        },
        slow = {
            let one = after(&sides.1, 5).await?;
            #[step(name = "two")]
            let two = after(&sides.1, 10_000).await?;
            one + two
        }
    )
    .await?;
    sleep!(nap, "1h").await;
    Ok(won.value)
}

// RVT-FIX-30: clean-up and winner are one batch, so there is no instant in between; every one there is is tried.
#[tokio::test(start_paused = true)]
async fn a_race_that_is_cut_off_at_any_append_has_one_winner_and_repeats_nothing_recorded() {
    let mut whole = false;
    let mut cut = 1;
    while !whole {
        let (world, sides) = (World::new(), Sides::default());
        let faults = (0..cut).map(|_| Fault::None).chain([Fault::Before; 1_000]);
        let store = FaultStore::over(&world.store, faults);
        let builder = world.engine().shared_store(Arc::new(store.clone()));
        let builder = builder.state(sides.clone()).workflow(decided);
        let engine = builder.build().await.unwrap();
        let run = engine.start("a", decided()).await.unwrap();
        pass(500).await;
        whole = store.left() >= 1_000;
        let history = run.history().await.unwrap();
        let recorded = |place: &str| {
            history.iter().any(|record| {
                matches!(record.body, Body::Ended(_)) && record.location.to_string() == place
            })
        };
        let winner = history
            .iter()
            .any(|record| matches!(record.body, Body::Decided { .. }));
        let losers_first = recorded("r/slow/after");
        let (fast, slow) = (sides.0.count(), sides.1.count());
        assert!(!(winner && losers_first), "the loser's records are gone");
        drop((run, engine));

        let world = world.crash();
        let builder = world.engine().state(sides.clone()).workflow(decided);
        let engine = builder.build().await.unwrap();
        pass(500).await;
        let run = engine.attach::<decided>("a").await.unwrap();
        if winner {
            assert_eq!((sides.0.count(), sides.1.count()), (fast, slow));
        }
        // The loser's second step may have been under way; its first, once recorded, is not done again.
        assert!(sides.1.count() <= slow + if losers_first { 1 } else { 2 });
        assert_eq!(run.result().await.unwrap(), 40, "cut after {cut}");
        cut += 1;
    }
    assert!(cut > 5, "{cut}");
}

/// As `decided`, deployed with another first step in the branch that wins.
#[workflow(name = "decided")]
async fn edited(#[state] sides: Sides) -> Result<u64, Failure> {
    let won = race!(
        r,
        fast = {
            #[step(name = "renamed")]
            let one = after(&sides.0, 20).await?;
            #[step(name = "two")]
            let two = after(&sides.0, 20).await?;
            one + two
        },
        slow = {
            let one = after(&sides.1, 5).await?;
            #[step(name = "two")]
            let two = after(&sides.1, 10_000).await?;
            one + two
        }
    )
    .await?;
    sleep!(nap, "1h").await;
    Ok(won.value)
}

// RVT-FIX-26: before the race is decided, and after.
#[tokio::test(start_paused = true)]
async fn a_branch_that_does_not_fit_its_history_wins_no_race() {
    for (cut, decided_then) in [(30, false), (500, true)] {
        let (world, sides) = (World::new(), Sides::default());
        let builder = world.engine().state(sides.clone()).workflow(decided);
        let engine = builder.build().await.unwrap();
        let run = engine.start("a", decided()).await.unwrap();
        pass(cut).await;
        let before = run.history().await.unwrap();
        let is_decided = |record: &workflow::Record| matches!(record.body, Body::Decided { .. });
        assert_eq!(before.iter().any(is_decided), decided_then);
        let calls = (sides.0.count(), sides.1.count());
        drop((run, engine));

        let world = world.crash();
        let builder = world.engine().code_id(2).state(sides.clone());
        let engine = builder.workflow(edited).build().await.unwrap();
        engine.resume("a").await.unwrap();
        let run = engine.attach::<edited>("a").await.unwrap();
        let Err(Error::Parked(parked)) = run.result().await else {
            panic!("cut at {cut}: it went on");
        };
        assert_eq!(parked.reason, ParkReason::Diverged);
        assert!(parked.detail.contains("renamed"), "{}", parked.detail);
        assert_eq!(run.history().await.unwrap(), before);
        assert_eq!((sides.0.count(), sides.1.count()), calls);
    }
}

/// Counts how many bodies were dropped before their end.
#[derive(Debug, Clone, Default)]
struct Stopped(Counter);

struct Running<'a>(&'a Stopped);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.0.hit();
    }
}

#[step(timeout = "none")]
async fn sleeps_in_memory(stopped: &Stopped) -> u64 {
    let running = Running(stopped);
    pass(3_600_000).await;
    std::mem::forget(running);
    1
}

#[workflow]
async fn two_sleepers(#[state] stopped: Stopped) -> Result<u64, Failure> {
    let won = race!(
        r,
        step = sleeps_in_memory(&stopped).await?,
        nap = {
            sleep!(nap, "2h").await;
            2
        }
    )
    .await?;
    Ok(won.value)
}

// RVT-FIX-28
#[tokio::test(start_paused = true)]
async fn an_eviction_stops_a_branch_that_sleeps_in_memory_and_ends_promptly() {
    let (world, stopped) = (World::new(), Stopped::default());
    let builder = world.engine().state(stopped.clone());
    let engine = builder.workflow(two_sleepers).build().await.unwrap();
    let run = engine.start("a", two_sleepers()).await.unwrap();
    pass(1_000).await;
    assert!(run.evict(Duration::from_secs(1)));
    pass(1_001).await;
    assert_eq!((engine.in_memory(), stopped.0.count()), (0, 1));
    engine.resume("a").await.unwrap();
    assert_eq!(run.result().await.unwrap(), 1);
}
