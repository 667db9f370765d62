//! What users of other libraries reported, asked of this one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use workflow::replay::{RunKey, RunState, Timestamp};
use workflow::store::{Identity, RunFilter, Store, StoreError};
use workflow::{
    BuildError, Clock, Engine, Error, Failure, MemoryStore, ParkReason, critical, join, sleep,
    step, workflow,
};
use workflow_tests::{Counter, SlowStore, World, pass};

#[step(timeout = "none")]
async fn after(calls: &Counter, millis: u64) -> u64 {
    calls.hit();
    pass(millis).await;
    millis
}

#[step(retries = 2, backoff(fixed, wait = "1s"))]
async fn refuses(calls: &Counter) -> Result<u64, std::fmt::Error> {
    calls.hit();
    Err(std::fmt::Error)
}

#[step]
async fn declined() -> Result<u64, workflow::Critical> {
    Err(critical("declined"))
}

#[workflow]
async fn beside_a_timer(#[state] calls: Counter) -> Result<u64, Failure> {
    let (done, ()) = join!(
        both,
        done = after(&calls, 1_000).await?,
        timer = {
            sleep!(nap, "100ms").await;
        }
    )
    .await?;
    Ok(done)
}

// UA-16: whatever reaches a run from outside while a step of it is in flight.
#[tokio::test(start_paused = true)]
async fn a_step_in_flight_is_not_begun_again_by_what_reaches_its_run() {
    let (world, calls) = (World::new(), Counter::default());
    let builder = world.engine().state(calls.clone());
    let engine = builder.workflow(beside_a_timer).build().await.unwrap();
    let run = engine.start("a", beside_a_timer()).await.unwrap();
    pass(10).await;
    engine.resume("a").await.unwrap();
    engine.start("a", beside_a_timer()).await.unwrap();
    let mut watch = run.watch(1);
    while tokio::time::timeout(Duration::from_millis(300), watch.next())
        .await
        .is_ok()
    {
        engine.resume("a").await.unwrap();
    }
    assert_eq!(run.try_result().await.unwrap(), None, "it is in flight");
    assert_eq!(run.result().await.unwrap(), 1_000);
    assert_eq!(calls.count(), 1);
}

static BROKEN: AtomicBool = AtomicBool::new(true);

#[workflow]
async fn one_arm_panics(#[state] calls: Counter) -> Result<u64, Failure> {
    let arms = join!(
        both,
        good = after(&calls, 50).await?,
        bad = {
            let one = after(&calls, 5).await?;
            #[nondeterministic(reason = "what the test is told by")]
            assert!(!BROKEN.load(Ordering::SeqCst), "broken");
            one
        }
    )
    .await;
    // Whoever catches every failure does not catch this: it is none of the workflow's.
    Ok(arms.map_or(0, |(good, bad)| good + bad))
}

// UA-18
#[tokio::test(start_paused = true)]
async fn an_arm_that_cannot_go_on_stops_the_whole_workflow_with_its_reason() {
    let (world, calls) = (World::new(), Counter::default());
    let builder = world.engine().state(calls.clone());
    let engine = builder.workflow(one_arm_panics).build().await.unwrap();
    let run = engine.start("a", one_arm_panics()).await.unwrap();
    let Err(Error::Parked(parked)) = run.result().await else {
        panic!("it went on without its arm");
    };
    assert_eq!(parked.reason, ParkReason::Panicked);
    assert!(parked.detail.contains("broken"), "{}", parked.detail);
    BROKEN.store(false, Ordering::SeqCst);
    engine.resume("a").await.unwrap();
    assert_eq!(run.result().await.unwrap(), 55);
    assert_eq!(calls.count(), 3, "what had ended is not done again");
}

/// An engine with one workflow, which is told every failed attempt.
async fn refusing(world: &World, calls: &Counter, heard: &Counter) -> Engine {
    let heard = heard.clone();
    let hear = move |_: &workflow::ErrorEvent| {
        heard.hit();
    };
    let builder = world.engine().state(calls.clone()).on_error(hear);
    let builder = builder.in_memory(100_000).workflow(retrying);
    builder.build().await.unwrap()
}

#[workflow]
async fn retrying(#[state] calls: Counter) -> Result<u64, Failure> {
    refuses(&calls).await
}

// UA-61
#[tokio::test(start_paused = true)]
async fn of_runs_that_are_cancelled_in_bulk_while_they_retry_nothing_remains() {
    const RUNS: usize = 5_000;
    let (world, calls, heard) = (World::new(), Counter::default(), Counter::default());
    let engine = refusing(&world, &calls, &heard).await;
    for i in 0..RUNS {
        engine.start(format!("r{i}"), retrying()).await.unwrap();
    }
    pass(500).await;
    assert_eq!(calls.count(), RUNS);
    for i in 0..RUNS {
        engine.cancel(format!("r{i}")).await.unwrap();
    }
    pass(1).await;
    assert_eq!(engine.in_memory(), 0);
    let (calls_then, heard_then) = (calls.count(), heard.count());
    pass(60_000).await;
    assert_eq!((calls.count(), heard.count()), (calls_then, heard_then));
    let due = Store::due(&*world.store, None, Timestamp::MAX, 9);
    assert_eq!(due.await.unwrap(), []);
    let active = Store::active(&*world.store, None, 9);
    assert_eq!(active.await.unwrap(), Vec::<RunKey>::new());
}

// RVT-HOST-04
#[tokio::test(start_paused = true)]
async fn what_an_error_hook_changes_broadcasts_and_enqueues_is_so_once_per_attempt() {
    let (world, calls, changed) = (World::new(), Counter::default(), Counter::default());
    let (broadcast, mut listening) = tokio::sync::broadcast::channel(16);
    let (queue, mut queued) = tokio::sync::mpsc::unbounded_channel();
    let state = changed.clone();
    let engine = world.engine().state(calls.clone()).workflow(retrying);
    let hook = move |event: &workflow::ErrorEvent| {
        state.hit();
        broadcast.send(event.clone()).unwrap();
        queue.send(event.clone()).unwrap();
    };
    let engine = engine.on_error(hook).build().await.unwrap();
    engine.run("a", retrying()).await.unwrap_err();
    engine.shutdown(Duration::from_secs(1)).await.unwrap();
    // Nobody hears of it again when it is only read again.
    let world = world.crash();
    let engine = refusing(&world, &calls, &changed).await;
    engine.run("a", retrying()).await.unwrap_err();
    engine.shutdown(Duration::from_secs(1)).await.unwrap();
    assert_eq!((calls.count(), changed.count()), (3, 3));
    for attempt in 1..=3 {
        let heard = listening.try_recv().unwrap();
        assert_eq!(heard, queued.try_recv().unwrap());
        assert!(
            matches!(heard, workflow::ErrorEvent::Step { attempt: at, .. } if at == attempt),
            "{heard:?}"
        );
    }
    assert!(listening.try_recv().is_err() && queued.try_recv().is_err());
}

static IMPATIENT: AtomicBool = AtomicBool::new(true);

#[workflow]
async fn gives_up() -> Result<u64, Failure> {
    let declined = declined().await;
    #[nondeterministic(reason = "what the test is told by")]
    assert!(!IMPATIENT.load(Ordering::SeqCst), "{declined:?}");
    Ok(7)
}

// RVT-HOST-07
#[tokio::test(start_paused = true)]
async fn a_workflow_that_panics_at_a_failure_is_parked_and_can_be_woken_again() {
    let world = World::new();
    let engine = world.engine().workflow(gives_up).build().await.unwrap();
    let run = engine.start("a", gives_up()).await.unwrap();
    let Err(Error::Parked(parked)) = run.result().await else {
        panic!("it is not parked");
    };
    assert!(parked.detail.contains("declined"), "{}", parked.detail);
    let status = run.status().await.unwrap();
    assert_eq!(status.state, RunState::Parked);
    assert_eq!(engine.in_memory(), 0);
    IMPATIENT.store(false, Ordering::SeqCst);
    engine.resume("a").await.unwrap();
    assert_eq!(run.result().await.unwrap(), 7);
}

// UA-57
#[tokio::test(start_paused = true)]
async fn a_run_whose_history_cannot_be_read_can_be_cancelled() {
    let (world, calls) = (World::new(), Counter::default());
    let store = SlowStore::over(&world.store);
    let builder = world.engine().shared_store(Arc::new(store.clone()));
    let builder = builder.state(calls.clone()).workflow(retrying);
    let engine = builder.build().await.unwrap();
    engine.start("a", retrying()).await.unwrap();
    pass(500).await;
    engine
        .attach::<retrying>("a")
        .await
        .unwrap()
        .evict(Duration::ZERO);
    pass(10).await;
    assert_eq!(engine.in_memory(), 0);
    store.newer.store(true, Ordering::SeqCst);
    engine.cancel("a").await.unwrap();
    assert_eq!(engine.status("a").await.unwrap().state, RunState::Cancelled);
    pass(60_000).await;
    assert_eq!(calls.count(), 1);
}

/// What another process would open the store as, once its file is no longer held: the same runs, by a newer claim.
#[derive(Debug)]
struct TakenOver(Arc<MemoryStore>);

impl Store for TakenOver {
    fn identity(&self) -> Identity {
        let Identity { id, boot } = self.0.identity();
        Identity { id, boot: boot + 1 }
    }

    workflow_tests::pass_on! {
        0: allocate append cancel rewrite delete find row load first due active deliver inbox dead_letters answer value values put list close
    }
}

/// How long a step takes in one process.
#[derive(Debug, Clone, Default)]
struct Pace(Counter, u64);

#[step(timeout = "none")]
async fn paced(pace: &Pace) -> usize {
    let begun = pace.0.hit();
    pass(pace.1).await;
    begun
}

#[workflow]
async fn two_steps(#[state] pace: Pace) -> Result<usize, Failure> {
    let first = paced(&pace).await?;
    #[step(name = "second")]
    let second = paced(&pace).await?;
    Ok(first + second)
}

// UA-35
#[tokio::test(start_paused = true)]
async fn an_owner_that_was_taken_over_records_nothing_and_leaves_the_run_whole() {
    let world = World::new();
    let (stale, fresh) = (
        Pace(Counter::default(), 1_000),
        Pace(Counter::default(), 500),
    );
    let builder = world.engine().state(stale.clone());
    let old = builder.workflow(two_steps).build().await.unwrap();
    let paused = old.start("a", two_steps()).await.unwrap();
    pass(10).await;
    let store = TakenOver(Arc::clone(&world.store));
    let builder = world.engine().shared_store(Arc::new(store));
    let builder = builder.state(fresh.clone()).workflow(two_steps);
    let new = builder.build().await.unwrap();
    // The new owner is through with the first step when the old one's body ends, too.
    pass(995).await;
    assert_eq!((old.in_memory(), new.in_memory()), (0, 1));
    assert!(matches!(paused.result().await, Err(Error::ShutDown(_))));
    assert_eq!(new.run("a", two_steps()).await.unwrap(), 3);
    let history = paused.history().await.unwrap();
    assert_eq!(history.len(), 4, "{history:?}");
    assert_eq!((stale.0.count(), fresh.0.count()), (1, 2));
    // Nor is it taken up again by whoever asks the old one.
    assert_eq!(paused.result().await.unwrap(), 3);
    assert_eq!((stale.0.count(), fresh.0.count()), (1, 2));
}

// UA-70: a transaction held open during a body would keep every other run from committing.
#[tokio::test]
async fn while_a_body_takes_its_time_other_runs_commit_to_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let slow = Pace(Counter::default(), u64::MAX);
    let builder = Engine::builder().state(slow.clone()).workflow(two_steps);
    let builder = builder.state(Counter::default()).workflow(gives_up_never);
    let engine = builder.open(folder.path().join("s.redb")).await.unwrap();
    let hangs = engine.start("slow", two_steps()).await.unwrap();
    for i in 0..20 {
        let run = engine.run(format!("r{i}"), gives_up_never());
        assert_eq!(run.await.unwrap(), 7);
    }
    assert_eq!(slow.0.count(), 1);
    assert_eq!(hangs.try_result().await.unwrap(), None);
    engine.shutdown(Duration::ZERO).await.unwrap();
}

#[workflow]
async fn gives_up_never(#[state] calls: Counter) -> Result<u64, Failure> {
    after(&calls, 0).await?;
    Ok(7)
}

// UA-72: of the two ways, the server's own endpoint; a second server is told what to do.
#[tokio::test]
async fn a_second_engine_on_a_file_is_told_to_ask_the_first_which_goes_on_answering() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.redb");
    let builder = || {
        Engine::builder()
            .state(Counter::default())
            .workflow(gives_up_never)
    };
    let first = builder().open(&path).await.unwrap();
    first.run("a", gives_up_never()).await.unwrap();
    let error = builder().open(&path).await.unwrap_err();
    assert!(
        matches!(error, BuildError::Store(StoreError::Locked { .. })),
        "{error:?}"
    );
    assert!(
        error
            .to_string()
            .contains("ask it instead of opening its file"),
        "{error}"
    );
    let listed = first.list(&RunFilter::default()).await.unwrap();
    assert_eq!(listed.rows.len(), 1);
    assert_eq!(first.run("b", gives_up_never()).await.unwrap(), 7);
    first.shutdown(Duration::ZERO).await.unwrap();
    builder().open(&path).await.unwrap();
}

#[workflow]
async fn naps_and_retries(seed: u64, #[state] calls: Counter) -> Result<u64, Failure> {
    let mut slept = 0;
    'naps: for i in 0..10_u64 {
        let millis = 1 + (seed * 7 + i * 13) % 50;
        sleep!(nap, Duration::from_millis(millis)).await;
        slept += millis;
    }
    unsteady(&calls).await?;
    Ok(slept)
}

#[step(retries = 1_000, backoff(fixed, wait = "30ms"))]
async fn unsteady(calls: &Counter) -> Result<(), std::fmt::Error> {
    if calls.hit().is_multiple_of(3) {
        Ok(())
    } else {
        Err(std::fmt::Error)
    }
}

// UA-24: 10,000 sleeps of 1 to 50 ms, and retries, over engines that die at odd instants.
#[tokio::test(start_paused = true)]
async fn no_sleep_and_no_retry_is_lost_or_late_over_engines_that_die() {
    const RUNS: u64 = 1_000;
    let calls = Counter::default();
    let mut world = World::new();
    let engine = |world: &World| {
        let builder = world.engine().state(calls.clone()).in_memory(10_000);
        builder.workflow(naps_and_retries).build()
    };
    let first = engine(&world).await.unwrap();
    for i in 0..RUNS {
        let id = format!("r{i}");
        first.start(id, naps_and_retries(i)).await.unwrap();
    }
    drop(first);
    for turn in 0..30 {
        world = world.crash();
        let dies = engine(&world).await.unwrap();
        pass(1 + (turn * 29) % 47).await;
        drop(dies);
    }
    world = world.crash();
    let last = engine(&world).await.unwrap();
    let begun = world.clock().now();
    for i in 0..RUNS {
        let slept = (0..10).map(|n| 1 + (i * 7 + n * 13) % 50).sum::<u64>();
        let run = last.run(format!("r{i}"), naps_and_retries(i));
        assert_eq!(run.await.unwrap(), slept);
    }
    // Ten naps of at most 50 ms, and a few retries: nobody waited for a period of polling.
    let took = world.clock().now().since(begun);
    assert!(took <= Duration::from_secs(1), "{took:?}");
}
