//! Attempts after the first.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use workflow::operation::{Definition, Operation, RunError, Status};
use workflow::{Backoff, FailureKind};

use super::{at, clock, millis, settle, statuses};

/// Fails so many times, then gives the number of the attempt that succeeded.
fn failing(times: u32) -> Definition<u32> {
    Operation::define("flaky", move |cx| async move {
        if cx.number() <= times {
            return Err(format!("failure {}", cx.number()));
        }
        Ok(cx.number())
    })
    .clock(clock())
    .backoff(Backoff::fixed(Duration::ZERO))
}

// OPR-RTY-01
#[tokio::test(start_paused = true)]
async fn a_failure_is_followed_by_another_attempt() {
    let flaky = failing(1).retries(1).build();
    let seen = statuses(&flaky);
    assert_eq!(flaky.run().await, Ok(2));
    assert_eq!(
        *seen.lock().unwrap(),
        [
            Status::Queued,
            Status::Running,
            Status::Retrying,
            Status::Succeeded
        ]
    );
}

// OPR-RTY-02
#[tokio::test(start_paused = true)]
async fn between_attempts_it_waits_and_shows_why() {
    let flaky = Operation::define("flaky", |cx| async move {
        if let Some(failure) = cx.last_failure() {
            assert_eq!(failure.message(), "failure 1");
            tokio::time::sleep(millis(10)).await;
            return Ok(());
        }
        Err("failure 1")
    })
    .retries(1)
    .backoff(Backoff::fixed(millis(300)))
    .clock(clock())
    .build();
    let run = tokio::spawn(flaky.run().into_future());
    settle().await;
    let waiting = flaky.snapshot();
    assert_eq!(waiting.status(), Status::Waiting);
    assert_eq!(waiting.failure().unwrap().message(), "failure 1");
    assert_eq!(waiting.retry_at(), Some(at(300)));
    assert_eq!(waiting.completed_at(), None);
    tokio::time::sleep(millis(301)).await;
    let retrying = flaky.snapshot();
    assert_eq!(retrying.status(), Status::Retrying);
    assert_eq!((retrying.failure(), retrying.retry_at()), (None, None));
    run.await.unwrap().unwrap();
}

// OPR-RTY-03
#[tokio::test(start_paused = true)]
async fn cancelled_between_attempts_it_ends_at_once() {
    let flaky = failing(9)
        .retries(9)
        .backoff(Backoff::fixed(Duration::from_secs(5000)))
        .build();
    let began = Instant::now();
    let run = tokio::spawn(flaky.run().into_future());
    settle().await;
    assert_eq!(flaky.snapshot().status(), Status::Waiting);
    assert!(flaky.cancel("no patience"));
    let Err(RunError::Cancelled { reason, .. }) = run.await.unwrap() else {
        panic!("it was cancelled");
    };
    assert_eq!(reason, "no patience");
    assert_eq!(began.elapsed(), Duration::ZERO);
    let snapshot = flaky.snapshot();
    assert_eq!(
        (snapshot.status(), snapshot.attempt()),
        (Status::Cancelled, 1)
    );
    assert_eq!((snapshot.retry_at(), snapshot.failure()), (None, None));
    assert!(snapshot.completed_at().is_some());
}

// OPR-RTY-04
#[tokio::test(start_paused = true)]
async fn when_every_attempt_fails_the_last_error_counts() {
    let flaky = failing(9).retries(2).build();
    let Err(RunError::Failed(failure)) = flaky.run().await else {
        panic!("it fails");
    };
    assert_eq!(failure.kind(), FailureKind::Exhausted);
    assert_eq!((failure.message(), failure.attempts()), ("failure 3", 3));
    let snapshot = flaky.snapshot();
    assert_eq!((snapshot.status(), snapshot.attempt()), (Status::Failed, 3));
    assert_eq!(snapshot.failure(), Some(&failure));
}

/// Notes how long the operation waits before attempts 2, 3, and so on, in milliseconds.
fn waits_of(operation: &Operation<()>) -> Arc<Mutex<Vec<u128>>> {
    let waits = Arc::new(Mutex::new(Vec::new()));
    let (into, last) = (Arc::clone(&waits), Mutex::new(Instant::now()));
    operation.observe(move |event| {
        let mut last = last.lock().unwrap();
        if event.to() == Status::Retrying {
            into.lock().unwrap().push(last.elapsed().as_millis());
        }
        *last = Instant::now();
        Ok::<_, String>(())
    });
    waits
}

async fn waits(definition: Definition<()>) -> Vec<u128> {
    let operation = definition.build();
    let waits = waits_of(&operation);
    operation.run().await.unwrap_err();
    waits.lock().unwrap().clone()
}

// OPR-RTY-05
#[tokio::test(start_paused = true)]
async fn waits_grow_to_their_cap_and_jitter_comes_from_the_seed() {
    let policy = Backoff::exponential(millis(100), 2.0, millis(500));
    let failing = || Operation::<()>::define("failing", |_| async { Err("no") }).retries(5);
    assert_eq!(
        waits(failing().backoff(policy)).await,
        [100, 200, 400, 500, 500]
    );
    let jittery = Backoff {
        jitter: 0.5,
        ..policy
    };
    let first = waits(failing().backoff(jittery).seed(7)).await;
    let again = waits(failing().backoff(jittery).seed(7)).await;
    let other = waits(failing().backoff(jittery).seed(8)).await;
    assert_eq!(first, again, "the same seed waits the same");
    assert_ne!(first, other);
    for (wait, base) in first.iter().zip([100, 200, 400, 500, 500]) {
        assert!((base..=base * 3 / 2 + 1).contains(wait), "{wait} of {base}");
    }
    // What a record goes on with has its seed, whatever the definition draws by itself.
    let drawn = failing().backoff(jittery).retries(3).build();
    drawn.run().await.unwrap_err();
    let restored = failing().backoff(jittery).retries(3).build();
    restored.restore(&drawn.snapshot()).unwrap();
    let of_drawn = waits_of(&drawn);
    drawn.run().await.unwrap_err();
    let of_restored = waits_of(&restored);
    restored.run().await.unwrap_err();
    assert_eq!(*of_drawn.lock().unwrap(), *of_restored.lock().unwrap());
    assert_eq!(of_drawn.lock().unwrap().len(), 3);
}

// OPR-RTY-07
#[tokio::test(start_paused = true)]
async fn an_error_that_another_attempt_would_not_mend_is_the_last() {
    let declined = Operation::<()>::define("declined", |_| async {
        let error = workflow::critical("card declined");
        Err(anyhow::Error::new(error).context("charging"))
    })
    .retries(5)
    .build();
    let Err(RunError::Failed(failure)) = declined.run().await else {
        panic!("it fails");
    };
    assert_eq!(
        (failure.kind(), failure.attempts()),
        (FailureKind::Critical, 1)
    );
    assert_eq!(
        (failure.message(), failure.chain()),
        ("charging", &["card declined".to_owned()][..])
    );

    let picky = failing(9)
        .retries(5)
        .retry_if(|error| error.to_string() != "failure 2")
        .build();
    let Err(RunError::Failed(failure)) = picky.run().await else {
        panic!("it fails");
    };
    assert_eq!(
        (failure.kind(), failure.attempts()),
        (FailureKind::Critical, 2)
    );
}
