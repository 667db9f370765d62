//! Beginning at the same time as somebody else, and leaving memory while something is in the way.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use workflow::replay::{RunKey, RunState};
use workflow::store::{BoxFuture, Loaded, Store, StoreError};
use workflow::{Engine, Failure, MemoryStore, StartError, sleep, step, workflow};
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
async fn others(millis: u64) -> Result<u64, Failure> {
    sleep!(nap, Duration::from_millis(millis)).await;
    Ok(millis)
}

#[workflow]
async fn hanging(#[state] calls: Counter) -> Result<u64, Failure> {
    hang(&calls).await
}

static BROKEN: AtomicBool = AtomicBool::new(true);

#[workflow]
async fn broken_once() -> Result<u64, Failure> {
    assert!(!BROKEN.swap(false, Ordering::SeqCst), "broken");
    Ok(7)
}

async fn engine(world: &World, calls: &Counter, room: usize, store: impl Store) -> Engine {
    world
        .engine()
        .shared_store(Arc::new(store))
        .state(calls.clone())
        .in_memory(room)
        .workflow(working)
        .workflow(others)
        .workflow(hanging)
        .workflow(broken_once)
        .build()
        .await
        .unwrap()
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_hours(3), future)
        .await
        .expect("it hangs")
}

/// An engine whose look at the store is out of date when it begins a run: another engine has run "a" to its end since.
async fn overtaken(room: usize) -> (Engine, Counter) {
    let (world, calls) = (World::new(), Counter::default());
    let slow = SlowStore::over(&world.store);
    let late_one = engine(&world, &calls, room, slow.clone()).await;
    if room == 1 {
        late_one.start("full", hanging()).await.unwrap();
    }
    late(&slow.finds, [100]);
    let first = engine(
        &world,
        &Counter::default(),
        10,
        SlowStore::over(&world.store),
    )
    .await;
    tokio::spawn(async move {
        pass(10).await;
        assert_eq!(first.run("a", working(5)).await.unwrap(), 5);
    });
    (late_one, calls)
}

#[tokio::test(start_paused = true)]
async fn a_run_that_another_engine_began_first_is_joined() {
    for room in [1, 10] {
        let (late_one, _) = overtaken(room).await;
        let run = soon(late_one.start("a", working(5))).await.unwrap();
        assert_eq!(soon(run.result()).await.unwrap(), 5, "room {room}");
    }
    let (late_one, _) = overtaken(10).await;
    assert_eq!(soon(late_one.run("a", working(5))).await.unwrap(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_another_engine_began_first_is_told_from_ones_own() {
    for room in [1, 10] {
        let (late_one, _) = overtaken(room).await;
        let error = soon(late_one.start("a", working(6))).await.unwrap_err();
        assert!(matches!(error, StartError::OtherInput { .. }), "{error:?}");
        let (late_one, _) = overtaken(room).await;
        let error = soon(late_one.start("a", others(5))).await.unwrap_err();
        assert!(
            matches!(error, StartError::OtherWorkflow { .. }),
            "{error:?}"
        );
    }
    let (late_one, _) = overtaken(10).await;
    let error = soon(late_one.run("a", working(6))).await.unwrap_err();
    assert!(
        matches!(error, workflow::Error::Start(StartError::OtherInput { .. })),
        "{error:?}"
    );
}

/// Counts how many whole histories are read.
#[derive(Debug)]
struct CountsLoads(Arc<MemoryStore>, Arc<AtomicUsize>);

impl Store for CountsLoads {
    fn load(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Loaded>, StoreError>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.load(run)
    }

    workflow_tests::pass_on! {
        0: identity allocate append cancel rewrite delete find row first due active deliver inbox dead_letters answer value values put list close
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_made_again_does_not_read_the_history() {
    let (world, calls) = (World::new(), Counter::default());
    let loads = Arc::default();
    let store = CountsLoads(Arc::clone(&world.store), Arc::clone(&loads));
    let engine = engine(&world, &calls, 10, store).await;
    engine.run("a", working(5)).await.unwrap();
    let again = engine.start("a", working(5)).await.unwrap();
    let other = engine.start("a", working(6)).await.unwrap_err();
    assert!(matches!(other, StartError::OtherInput { .. }), "{other:?}");
    assert_eq!(loads.load(Ordering::SeqCst), 0);
    assert_eq!(again.result().await.unwrap(), 5);
    assert_eq!(loads.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_keeps_to_its_grace_while_the_store_fails() {
    let (world, calls) = (World::new(), Counter::default());
    let faults = [Fault::None].into_iter().chain([Fault::Before; 100]);
    let engine = engine(&world, &calls, 10, FaultStore::over(&world.store, faults)).await;
    let run = engine.start("a", working(5)).await.unwrap();
    pass(1_000).await;
    let begun = Instant::now();
    let waiting = tokio::spawn(async move { run.result().await });
    engine.shutdown(Duration::from_secs(2)).await.unwrap();
    assert!(
        begun.elapsed() <= Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    let told = waiting.await.unwrap();
    assert!(
        matches!(told, Err(workflow::Error::ShutDown(_))),
        "{told:?}"
    );
    // What could not be written is done again, by an engine whose store works.
    let world = world.crash();
    let engine = self::engine(&world, &calls, 10, SlowStore::over(&world.store)).await;
    assert_eq!(engine.run("a", working(5)).await.unwrap(), 5);
}

#[tokio::test(start_paused = true)]
async fn within_the_grace_of_a_shutdown_a_failing_store_is_tried_again() {
    let (world, calls) = (World::new(), Counter::default());
    let faults = [Fault::None].into_iter().chain([Fault::Before; 7]);
    let engine = engine(&world, &calls, 10, FaultStore::over(&world.store, faults)).await;
    engine.start("a", working(5)).await.unwrap();
    pass(100).await;
    engine.shutdown(Duration::from_mins(1)).await.unwrap();
    let world = world.crash();
    let engine = self::engine(&world, &calls, 10, SlowStore::over(&world.store)).await;
    assert_eq!(engine.run("a", working(5)).await.unwrap(), 5);
    assert_eq!(calls.count(), 1, "what the body gave was saved");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_resumed_while_it_leaves_comes_back() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls, 10, SlowStore::over(&world.store)).await;
    let run = engine.start("a", working(100)).await.unwrap();
    pass(10).await;
    run.evict(Duration::from_secs(1));
    pass(10).await;
    assert_eq!(engine.in_memory(), 1, "its body is still ending");
    engine.resume("a").await.unwrap();
    pass(1_000).await;
    assert_eq!(run.try_result().await.unwrap(), Some(100));
    assert_eq!(calls.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_result_of_a_run_that_leaves_is_waited_for_as_of_one_that_left() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls, 10, SlowStore::over(&world.store)).await;
    let run = engine.start("a", working(100)).await.unwrap();
    pass(10).await;
    run.evict(Duration::from_secs(1));
    assert_eq!(soon(run.result()).await.unwrap(), 100);
    assert_eq!(calls.count(), 1);
}

// RVT-HOST-07: parked and not crashed, and woken again, also by an operator who is faster than the run's own leaving.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_resumed_as_soon_as_it_is_seen_parked_comes_back() {
    for wait in [50, 500] {
        BROKEN.store(true, Ordering::SeqCst);
        let (world, calls) = (World::new(), Counter::default());
        let store = SlowStore::over(&world.store);
        let engine = engine(&world, &calls, 10, store.clone()).await;
        late(&store.appends, [0, 100]);
        let run = engine.start("a", broken_once()).await.unwrap();
        pass(wait).await;
        assert_eq!(run.status().await.unwrap().state, RunState::Parked);
        assert_eq!(engine.in_memory(), usize::from(wait < 100));
        engine.resume("a").await.unwrap();
        assert_eq!(soon(run.result()).await.unwrap(), 7);
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_resumption_and_an_eviction_while_it_leaves_the_last_counts() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls, 10, SlowStore::over(&world.store)).await;
    let run = engine.start("a", working(100)).await.unwrap();
    pass(10).await;
    run.evict(Duration::from_secs(1));
    engine.resume("a").await.unwrap();
    run.evict(Duration::from_secs(1));
    pass(10_000).await;
    assert_eq!(engine.in_memory(), 0);
    assert_eq!(run.status().await.unwrap().state, RunState::Running);
}

#[tokio::test(start_paused = true)]
async fn a_beginning_without_room_is_not_written_after_the_engine_was_dropped() {
    let (world, calls) = (World::new(), Counter::default());
    // The first answer comes late, so that the drop falls between the write's beginning and its end.
    let store = SlowStore::over(&world.store);
    let engine = engine(&world, &calls, 1, store.clone()).await;
    engine.start("full", hanging()).await.unwrap();
    late(&store.appends, [1_000]);
    let starting = tokio::spawn({
        let engine = engine.clone();
        async move { engine.start("a", working(5)).await.map(drop) }
    });
    pass(10).await;
    starting.abort();
    let _ = starting.await;
    let held = Arc::clone(&world.store);
    let before = Arc::strong_count(&held);
    drop(store);
    drop(engine);
    pass(10).await;
    // Nothing of the engine holds the store any more: the file of a real one could be opened again.
    assert!(Arc::strong_count(&held) < before - 1);
    assert_eq!(Arc::strong_count(&held), 2);
}
