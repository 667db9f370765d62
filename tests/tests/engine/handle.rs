//! Handles: watching, cancelling, evicting; room in memory; hooks that panic; values over the limit.

use std::time::Duration;

use workflow::{CancelError, Engine, Error, Failure, FailureKind, RunState, sleep, step, workflow};
use workflow_tests::{Counter, World, pass};

#[step(timeout = "none")]
async fn work(calls: &Counter, millis: u64) -> u64 {
    calls.hit();
    pass(millis).await;
    millis
}

#[step(retries = 1, backoff(fixed, wait = "1ms"))]
async fn large(calls: &Counter) -> String {
    calls.hit();
    "x".repeat(5_000)
}

#[step(retries = 1, backoff(fixed, wait = "1ms"))]
async fn panics(calls: &Counter) -> u64 {
    assert!(calls.hit() > 1, "not yet");
    3
}

#[workflow]
async fn working(millis: u64, #[state] calls: Counter) -> Result<u64, Failure> {
    let first = work(&calls, millis).await?;
    sleep!(nap, "1m").await;
    Ok(first)
}

#[workflow]
async fn oversize(#[state] calls: Counter) -> String {
    match large(&calls).await {
        Ok(_) => "stored".into(),
        Err(failure) => format!("{} {failure}", failure.kind()),
    }
}

#[workflow]
async fn shaky(#[state] calls: Counter) -> Result<u64, Failure> {
    panics(&calls).await
}

async fn engine(world: &World, calls: &Counter, room: usize) -> Engine {
    let engine = world
        .engine()
        .state(calls.clone())
        .in_memory(room)
        .payload_limit(1_000);
    let engine = engine.workflow(working).workflow(oversize).workflow(shaky);
    engine
        .on_error(|_| panic!("a bad hook"))
        .build()
        .await
        .unwrap()
}

// RVT-HIST-01
#[tokio::test(start_paused = true)]
async fn a_watch_sees_every_committed_record_in_order_and_ends() {
    let engine = engine(&World::new(), &Counter::default(), 100).await;
    let run = engine.start("a", working(50)).await.unwrap();
    let mut watch = run.watch(1);
    let mut seen = Vec::new();
    while let Some(watched) = watch.next().await.unwrap() {
        seen.push((**watched.record().unwrap()).clone());
    }
    let history = run.history().await.unwrap();
    assert_eq!(seen, history);
    assert!(history.len() >= 4);
    let mut later = run.watch(3);
    let third = later.next().await.unwrap().unwrap();
    assert_eq!(third.record().unwrap().seq, 3);
}

// RVT-EVICT-02 RVT-EVICT-05 RVT-FIX-22
#[tokio::test(start_paused = true)]
async fn a_cancelled_run_stays_cancelled_whether_it_works_or_waits() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls, 100).await;
    for (id, after) in [("working", 10), ("waiting", 100)] {
        let run = engine.start(id, working(50)).await.unwrap();
        pass(after).await;
        run.cancel().await.unwrap();
        assert!(matches!(run.result().await, Err(Error::Cancelled(_))));
        let history = run.history().await.unwrap();
        pass(100_000).await;
        let status = run.status().await.unwrap();
        assert_eq!((status.state, status.wake_at), (RunState::Cancelled, None));
        assert_eq!(run.history().await.unwrap(), history);
        assert!(matches!(run.cancel().await, Err(CancelError::Ended { .. })));
    }
    let done = engine.start("done", working(1)).await.unwrap();
    assert_eq!(done.result().await.unwrap(), 1);
    assert!(matches!(
        done.cancel().await,
        Err(CancelError::Ended { .. })
    ));
}

// RVT-EVICT-01
#[tokio::test(start_paused = true)]
async fn a_body_may_end_within_the_grace_of_an_eviction_and_is_dropped_beyond_it() {
    for (grace, entered) in [(1_000, 1), (10, 2)] {
        let (world, calls) = (World::new(), Counter::default());
        let engine = engine(&world, &calls, 100).await;
        let run = engine.start("a", working(200)).await.unwrap();
        pass(50).await;
        assert!(run.evict(Duration::from_millis(grace)));
        pass(500).await;
        assert_eq!(engine.in_memory(), 0);
        engine.resume("a").await.unwrap();
        assert_eq!(run.result().await.unwrap(), 200);
        assert_eq!(calls.count(), entered, "grace {grace}");
    }
}

#[tokio::test(start_paused = true)]
async fn more_runs_than_there_is_room_for_wait_for_it() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls, 2).await;
    let mut runs = Vec::new();
    for i in 0..20 {
        runs.push(engine.start(format!("r{i}"), working(50)).await.unwrap());
        assert!(engine.in_memory() <= 2);
    }
    for run in runs {
        assert_eq!(run.result().await.unwrap(), 50);
    }
    assert_eq!(calls.count(), 20);
}

// UA-49 RVT-STORE-08
#[tokio::test(start_paused = true)]
async fn a_value_over_the_limit_fails_once_and_the_workflow_can_handle_it() {
    let calls = Counter::default();
    let engine = engine(&World::new(), &calls, 100).await;
    let said = engine.run("a", oversize()).await.unwrap();
    assert!(said.starts_with(FailureKind::Encode.word()), "{said}");
    assert!(said.contains("large") && said.contains("1000"), "{said}");
    assert_eq!(calls.count(), 1);
}

// RVT-FIX-43
#[tokio::test(start_paused = true)]
async fn a_panic_in_a_step_is_retried_and_one_in_a_hook_is_harmless() {
    let calls = Counter::default();
    let engine = engine(&World::new(), &calls, 100).await;
    assert_eq!(engine.run("a", shaky()).await.unwrap(), 3);
    engine.shutdown(Duration::ZERO).await.unwrap();
    assert_eq!(calls.count(), 2);
}

// RVT-HANDLE-03: an id that was never started is told as such.
#[tokio::test(start_paused = true)]
async fn an_id_that_was_never_started_is_not_found() {
    let engine = engine(&World::new(), &Counter::default(), 100).await;
    assert!(matches!(
        engine.status("no").await,
        Err(workflow::AttachError::NotFound { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn a_run_in_memory_that_nobody_held_on_to_is_started_again_at_once() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls, 8).await;
    drop(engine.start("a", working(3_600_000)).await.unwrap());
    pass(10).await;
    let again = engine.start("a", working(3_600_000));
    let again = tokio::time::timeout(Duration::from_secs(1), again).await;
    let run = again.expect("it is durable, and said so").unwrap();
    assert_eq!(run.result().await.unwrap(), 3_600_000);
    assert_eq!(calls.count(), 1);
}
