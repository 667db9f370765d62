//! Races between memory and the store: leaving, loading, cancelling, beginning.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use workflow::{Clock, Engine, Error, Failure, ParkReason, race, sleep, step, workflow};
use workflow_tests::{Counter, Fault, FaultStore, SlowStore, World, late, pass};

#[step(timeout = "none")]
async fn work(calls: &Counter, millis: u64) -> u64 {
    calls.hit();
    pass(millis).await;
    millis
}

#[step(timeout = "none")]
async fn hang(calls: &Counter) -> u64 {
    calls.hit();
    pending::<()>().await;
    0
}

#[workflow]
async fn working(millis: u64, #[state] calls: Counter) -> Result<u64, Failure> {
    let first = work(&calls, millis).await?;
    Ok(first)
}

#[workflow]
async fn napping(#[state] calls: Counter) -> Result<u64, Failure> {
    sleep!(nap, "1h").await;
    let first = work(&calls, 1).await?;
    Ok(first)
}

#[workflow]
async fn hanging(#[state] calls: Counter) -> Result<u64, Failure> {
    hang(&calls).await
}

#[workflow]
async fn deadline(#[state] calls: Counter) -> Result<u64, Failure> {
    let won = race!(
        r,
        done = hang(&calls).await?,
        late = {
            sleep!(window, "1h").await;
            7
        }
    )
    .await?;
    Ok(won.value)
}

struct Bomb;
impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[workflow]
async fn bombs() -> Result<u64, Failure> {
    let bomb = Bomb;
    sleep!(nap, "1h").await;
    std::mem::forget(bomb);
    Ok(1)
}

static BROKEN: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(true);

#[workflow]
async fn flaky(#[state] calls: Counter) -> Result<u64, Failure> {
    let first = work(&calls, 1).await?;
    assert!(
        !BROKEN.swap(false, std::sync::atomic::Ordering::SeqCst),
        "broken"
    );
    Ok(first)
}

async fn engine(
    world: &World,
    calls: &Counter,
    room: usize,
    store: impl workflow::store::Store,
) -> Engine {
    let engine = world
        .engine()
        .shared_store(Arc::new(store))
        .state(calls.clone())
        .in_memory(room);
    engine
        .workflow(working)
        .workflow(napping)
        .workflow(hanging)
        .workflow(deadline)
        .workflow(bombs)
        .workflow(flaky)
        .build()
        .await
        .unwrap()
}

/// Lets every task that is ready have one turn.
async fn turn() {
    let mut once = false;
    std::future::poll_fn(|cx| {
        cx.waker().wake_by_ref();
        if std::mem::replace(&mut once, true) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_hours(3), future)
        .await
        .expect("it hangs")
}

#[tokio::test(start_paused = true)]
async fn evicted_while_replaying_wakes_at_its_deadline() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls, 10, SlowStore::over(&world.store)).await;
    let run = engine.start("a", napping()).await.unwrap();
    pass(1_000).await;
    let at = run.status().await.unwrap().wake_at.unwrap();
    let wait = at.as_millis() - world.clock().now().as_millis();
    pass(u64::try_from(wait).unwrap()).await;
    // The timetable has woken it; its code was not polled yet.
    let (watching, evicted) = (engine.clone(), run.clone());
    let evicting = tokio::spawn(async move {
        while watching.in_memory() == 0 {
            turn().await;
        }
        evicted.evict(Duration::ZERO)
    });
    assert!(evicting.await.unwrap());
    pass(1_000_000).await;
    assert_eq!(run.try_result().await.unwrap(), Some(1));
}

#[tokio::test(start_paused = true)]
async fn evicted_beside_a_body_wakes_at_its_deadline() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls, 10, SlowStore::over(&world.store)).await;
    let run = engine.start("a", deadline()).await.unwrap();
    pass(10).await;
    run.evict(Duration::ZERO);
    pass(10).await;
    assert_eq!(engine.in_memory(), 0);
    pass(2 * 3_600_000).await;
    assert!(run.status().await.unwrap().state.is_final());
}

#[tokio::test(start_paused = true)]
async fn shutdown_keeps_its_own_deadline_after_a_patient_eviction() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls, 10, SlowStore::over(&world.store)).await;
    let run = engine.start("a", hanging()).await.unwrap();
    pass(10).await;
    run.evict(Duration::from_hours(1));
    pass(10).await;
    tokio::time::timeout(
        Duration::from_mins(1),
        engine.shutdown(Duration::from_secs(1)),
    )
    .await
    .expect("hangs")
    .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_workflow_that_panics_when_dropped() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls, 10, SlowStore::over(&world.store)).await;
    let run = engine.start("a", bombs()).await.unwrap();
    pass(10).await;
    assert_eq!(engine.in_memory(), 0, "it leaves memory");
    run.cancel().await.unwrap();
    assert!(matches!(soon(run.result()).await, Err(Error::Cancelled(_))));
    soon(engine.shutdown(Duration::from_secs(1))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stale_load_repeats_no_recorded_body() {
    let (world, calls) = (World::new(), Counter::default());
    let store = SlowStore::over(&world.store);
    let engine = engine(&world, &calls, 10, store.clone()).await;
    let run = engine.start("a", napping()).await.unwrap();
    pass(100).await;
    pass(3_590_000).await;
    // An operator resumes it, and the answer takes its time.
    late(&store.loads, [20_000]);
    engine.resume("a").await.unwrap();
    pass(60_000).await;
    assert_eq!(calls.count(), 1);
    assert_eq!(soon(run.result()).await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_body_begins_after_a_cancel() {
    let (world, calls) = (World::new(), Counter::default());
    let store = SlowStore::over(&world.store);
    let engine = engine(&world, &calls, 10, store.clone()).await;
    let run = engine.start("a", napping()).await.unwrap();
    pass(100).await;
    late(&store.loads, [1_000]);
    pass(3_600_000).await;
    run.cancel().await.unwrap();
    pass(10_000).await;
    assert_eq!(calls.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn result_after_a_resume_waits_for_the_resumed_run() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls, 10, SlowStore::over(&world.store)).await;
    let run = engine.start("a", flaky()).await.unwrap();
    assert!(
        matches!(run.result().await, Err(Error::Parked(parked)) if parked.reason == ParkReason::Panicked)
    );
    engine.resume("a").await.unwrap();
    assert_eq!(soon(run.result()).await.unwrap(), 1);
}
#[tokio::test(start_paused = true)]
async fn a_watch_beyond_the_end_ends() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls, 10, SlowStore::over(&world.store)).await;
    engine.run("a", working(5)).await.unwrap();
    let run = engine.attach::<working>("a").await.unwrap();
    let last = run.history().await.unwrap().len() as u64;
    let mut watch = run.watch(last + 1);
    assert!(soon(watch.next()).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn who_joins_a_beginning_that_is_given_up_is_told() {
    let (world, calls) = (World::new(), Counter::default());
    let store = SlowStore::over(&world.store);
    let engine = engine(&world, &calls, 1, store.clone()).await;
    engine.start("full", hanging()).await.unwrap();
    pass(10).await;
    late(&store.appends, [1_000]);
    let first = tokio::spawn({
        let engine = engine.clone();
        async move { engine.start("a", working(5)).await }
    });
    pass(1).await;
    let second = tokio::spawn({
        let engine = engine.clone();
        async move { engine.start("a", working(5)).await }
    });
    pass(1).await;
    first.abort();
    let started = soon(second).await.unwrap();
    if started.is_err() {
        soon(engine.start("a", working(5))).await.unwrap();
    }
    engine.cancel("full").await.unwrap();
    pass(10_000).await;
    assert_eq!(calls.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn who_joins_a_beginning_that_fails_is_told() {
    let (world, calls) = (World::new(), Counter::default());
    let full = engine(
        &world,
        &calls,
        1,
        FaultStore::over(&world.store, [Fault::None, Fault::Before]),
    )
    .await;
    full.start("full", hanging()).await.unwrap();
    let starts: Vec<_> = (0..3)
        .map(|_| {
            let engine = full.clone();
            tokio::spawn(async move { engine.start("a", working(5)).await.map(drop) })
        })
        .collect();
    for start in starts {
        let _ = soon(start).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_find_repeats_no_recorded_body() {
    let (world, calls) = (World::new(), Counter::default());
    let store = SlowStore::over(&world.store);
    let engine = engine(&world, &calls, 10, store.clone()).await;
    late(&store.finds, [100]);
    let slow = tokio::spawn({
        let engine = engine.clone();
        async move { engine.run("a", working(5)).await }
    });
    pass(1).await;
    assert_eq!(soon(engine.run("a", working(5))).await.unwrap(), 5);
    assert_eq!(soon(slow).await.unwrap().unwrap(), 5);
    assert_eq!(calls.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_result_right_after_a_deploy_is_that_of_the_new_code() {
    let (world, calls) = (World::new(), Counter::default());
    let before = world
        .engine()
        .state(calls.clone())
        .workflow(other::moody)
        .build()
        .await
        .unwrap();
    assert!(matches!(
        before.run("a", other::moody()).await,
        Err(Error::Parked(_))
    ));
    drop(before);
    let world = world.crash();
    let after = world
        .engine()
        .code_id(2)
        .state(calls.clone())
        .workflow(fixed::moody)
        .build()
        .await
        .unwrap();
    let run = after.attach::<fixed::moody>("a").await.unwrap();
    assert_eq!(soon(run.result()).await.unwrap(), 1);
}

mod other {
    use super::*;

    #[workflow]
    pub async fn moody(#[state] calls: Counter) -> Result<u64, Failure> {
        work(&calls, 1).await?;
        panic!("a bug");
    }
}

mod fixed {
    use super::*;

    #[workflow]
    pub async fn moody(#[state] calls: Counter) -> Result<u64, Failure> {
        work(&calls, 1).await
    }
}
