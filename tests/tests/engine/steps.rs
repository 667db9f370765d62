//! Steps: values, failures, retries, timeouts.

use std::fmt::Error as Boom;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow::{Engine, ErrorEvent, Failure, FailureKind, RunState, critical, step, workflow};
use workflow_tests::{Counter, World, pass};

#[step]
async fn number(n: u32) -> u32 {
    n
}

#[step(retries = 3, backoff(fixed, wait = "5ms"))]
async fn flaky(calls: &Counter, failures: usize) -> Result<String, Boom> {
    if calls.hit() <= failures {
        return Err(Boom);
    }
    Ok("success".into())
}

#[step]
async fn hopeless(calls: &Counter) -> Result<(), workflow::Critical> {
    calls.hit();
    Err(critical("Unrecoverable"))
}

#[step(timeout = "5ms")]
async fn slow(calls: &Counter) -> u32 {
    calls.hit();
    pass(25).await;
    1
}

#[step(
    timeout = "5ms",
    retry_on_timeout,
    retries = 2,
    backoff(fixed, wait = "1ms")
)]
async fn slow_again(calls: &Counter) -> u32 {
    calls.hit();
    pass(25).await;
    1
}

#[step(timeout = "none")]
async fn unhurried() -> u32 {
    pass(10_000_000).await;
    7
}

#[workflow]
async fn three() -> Result<u32, Failure> {
    #[step(name = "one")]
    let one = number(1).await?;
    #[step(name = "two")]
    let two = number(2).await?;
    Ok(one + two + number(3).await?)
}

#[workflow]
async fn trying(failures: usize, #[state] calls: Counter) -> Result<String, Failure> {
    flaky(&calls, failures).await
}

#[workflow]
async fn giving_up(#[state] calls: Counter) -> Result<(), Failure> {
    hopeless(&calls).await
}

#[workflow]
async fn timing_out(again: bool, #[state] calls: Counter) -> Result<u32, Failure> {
    if again {
        slow_again(&calls).await
    } else {
        slow(&calls).await
    }
}

#[workflow]
async fn taking_time() -> Result<u32, Failure> {
    unhurried().await
}

#[workflow]
async fn plainly_wrong() -> anyhow::Result<u32> {
    anyhow::bail!("boom")
}

type Events = Arc<Mutex<Vec<ErrorEvent>>>;

async fn engine(world: &World, calls: &Counter) -> (Engine, Events) {
    let events = Events::default();
    let heard = Arc::clone(&events);
    let engine = world
        .engine()
        .state(calls.clone())
        .workflow(three)
        .workflow(trying)
        .workflow(giving_up)
        .workflow(timing_out)
        .workflow(taking_time)
        .workflow(plainly_wrong)
        .on_error(move |event| heard.lock().unwrap().push(event.clone()))
        .build()
        .await
        .unwrap();
    (engine, events)
}

// RVT-STEP-01 RVT-STEP-04 RVT-HANDLE-01
#[tokio::test(start_paused = true)]
async fn steps_give_their_values_in_order() {
    let (engine, _) = engine(&World::new(), &Counter::default()).await;
    assert_eq!(engine.run("a", three()).await.unwrap(), 6);
    let status = engine.status("a").await.unwrap();
    assert_eq!(status.state, RunState::Completed);
}

// RVT-STEP-02 RVT-STEP-05 RVT-STORE-01 RVT-HOST-08
#[tokio::test(start_paused = true)]
async fn a_step_that_fails_twice_succeeds_and_is_not_run_again_after_a_restart() {
    let (world, calls) = (World::new(), Counter::default());
    let (first, _) = engine(&world, &calls).await;
    assert_eq!(first.run("a", trying(2)).await.unwrap(), "success");
    assert_eq!(calls.count(), 3);
    drop(first);
    let (second, _) = engine(&world.crash(), &calls).await;
    assert_eq!(second.run("a", trying(2)).await.unwrap(), "success");
    assert_eq!(calls.count(), 3);
}

// RVT-STEP-08 RVT-STEP-14 RVT-STORE-02 RVT-STEP-21
#[tokio::test(start_paused = true)]
async fn a_step_that_always_fails_is_exhausted_after_its_retries() {
    let (world, calls) = (World::new(), Counter::default());
    let (first, _) = engine(&world, &calls).await;
    let error = first.run("a", trying(9)).await.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!(failure.kind(), FailureKind::Exhausted);
    assert_eq!((failure.attempts(), calls.count()), (4, 4));
    let status = first.status("a").await.unwrap();
    assert_eq!(status.state, RunState::Failed);
    let stored = first.attach::<trying>("a").await.unwrap();
    let records = format!("{:?}", stored.history().await.unwrap());
    assert!(records.contains("core::fmt::Error"), "{records}");
    drop((stored, first));
    let (second, _) = engine(&world.crash(), &calls).await;
    let again = second.run("a", trying(9)).await.unwrap_err();
    assert_eq!(again.failure(), error.failure());
    assert_eq!(calls.count(), 4);
}

// RVT-STEP-06
#[tokio::test(start_paused = true)]
async fn one_event_tells_of_an_attempt_that_is_followed_by_another() {
    let calls = Counter::default();
    let (engine, events) = engine(&World::new(), &calls).await;
    engine.run("a", trying(1)).await.unwrap();
    engine.shutdown(Duration::ZERO).await.unwrap();
    let events = events.lock().unwrap();
    let [
        event @ ErrorEvent::Step {
            attempt: 1,
            max_retries: 3,
            failure,
            retry: Some(retry),
            ..
        },
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!(event.remaining_retries(), 3);
    assert!(event.will_retry());
    assert_eq!(retry.delay, Duration::from_millis(5));
    assert_eq!(failure.message(), Boom.to_string());
    assert_eq!(failure.type_name(), "core::fmt::Error");
}

// RVT-STEP-09 RVT-STEP-10
#[tokio::test(start_paused = true)]
async fn a_critical_error_ends_the_step_at_once_and_is_told_once() {
    let calls = Counter::default();
    let (engine, events) = engine(&World::new(), &calls).await;
    let error = engine.run("a", giving_up()).await.unwrap_err();
    assert_eq!(error.failure().unwrap().kind(), FailureKind::Critical);
    engine.shutdown(Duration::ZERO).await.unwrap();
    assert_eq!(calls.count(), 1);
    let events = events.lock().unwrap();
    let [
        event @ ErrorEvent::Step {
            attempt: 1,
            failure,
            ..
        },
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert!(!event.will_retry());
    assert_eq!(failure.message(), "Unrecoverable");
}

// RVT-STEP-12
#[tokio::test(start_paused = true)]
async fn an_error_of_the_workflow_itself_is_told_once() {
    let (engine, events) = engine(&World::new(), &Counter::default()).await;
    let error = engine.run("a", plainly_wrong()).await.unwrap_err();
    assert_eq!(error.failure().unwrap().message(), "boom");
    engine.shutdown(Duration::ZERO).await.unwrap();
    let events = events.lock().unwrap();
    assert!(
        matches!(&events[..], [ErrorEvent::Workflow { failure, .. }] if failure.message() == "boom")
    );
}

// RVT-STEP-16
#[tokio::test(start_paused = true)]
async fn a_timeout_is_final_unless_the_step_says_otherwise() {
    let calls = Counter::default();
    let (engine, _) = engine(&World::new(), &calls).await;
    let error = engine.run("a", timing_out(false)).await.unwrap_err();
    assert_eq!(error.failure().unwrap().kind(), FailureKind::TimedOut);
    assert_eq!(calls.count(), 1);
}

// RVT-STEP-17
#[tokio::test(start_paused = true)]
async fn a_step_that_retries_on_timeout_does_so() {
    let calls = Counter::default();
    let (engine, _) = engine(&World::new(), &calls).await;
    let error = engine.run("a", timing_out(true)).await.unwrap_err();
    assert_eq!(error.failure().unwrap().attempts(), 3);
    assert_eq!(calls.count(), 3);
}

// RVT-STEP-24
#[tokio::test(start_paused = true)]
async fn a_step_without_a_timeout_takes_its_time() {
    let (engine, _) = engine(&World::new(), &Counter::default()).await;
    assert_eq!(engine.run("a", taking_time()).await.unwrap(), 7);
}
