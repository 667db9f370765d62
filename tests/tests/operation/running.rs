//! One run, from its beginning to its end.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use workflow::FailureKind;
use workflow::operation::{Operation, Refused, RunError, Status, Undo};

use super::{at, clock, millis, settle};

// OPR-RUN-01
#[tokio::test(start_paused = true)]
async fn a_run_is_queued_running_and_succeeded() {
    let answer = Operation::define("answer", |cx| async move {
        assert_eq!(cx.number(), 1);
        tokio::time::sleep(millis(250)).await;
        Ok::<_, String>(42)
    })
    .clock(clock())
    .build();
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    answer.observe(move |event| {
        seen.lock().unwrap().push((event.from(), event.to()));
        Ok::<_, String>(())
    });
    assert_eq!(answer.run().await, Ok(42));
    assert_eq!(
        *events.lock().unwrap(),
        [
            (Status::Idle, Status::Queued),
            (Status::Queued, Status::Running),
            (Status::Running, Status::Succeeded)
        ]
    );
    let snapshot = answer.snapshot();
    assert_eq!(snapshot.attempt(), 1);
    assert_eq!(snapshot.result::<i32>(), Some(42));
    assert_eq!(snapshot.started_at(), Some(at(0)));
    assert_eq!(snapshot.completed_at(), Some(at(250)));
    assert_eq!(snapshot.failure(), None);
}

/// An error that says something odd, without sources and without being made by anybody's derive.
#[derive(Debug)]
struct Odd;

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("odd")
    }
}

impl std::error::Error for Odd {}

async fn failing<E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static>(
    error: impl Fn() -> E + Send + Sync + 'static,
) -> (FailureKind, String) {
    let failing = Operation::<()>::define("failing", move |_| {
        let error = error();
        // The future is not made to be `Send` by the error.
        std::future::ready(Err(error.into()))
    })
    .build();
    let Err(RunError::Failed(failure)) = failing.run().await else {
        panic!("it fails");
    };
    let snapshot = failing.snapshot();
    assert_eq!(snapshot.status(), Status::Failed);
    assert_eq!(snapshot.failure(), Some(&failure));
    assert!(snapshot.completed_at().is_some());
    (failure.kind(), failure.message().to_owned())
}

// OPR-RUN-02
#[tokio::test(start_paused = true)]
async fn whatever_it_fails_with_has_a_kind_and_a_text() {
    let kind = FailureKind::Exhausted;
    assert_eq!(failing(|| "a text").await, (kind, "a text".to_owned()));
    assert_eq!(failing(|| Odd).await, (kind, "odd".to_owned()));
    assert_eq!(
        failing(|| anyhow::anyhow!("any")).await,
        (kind, "any".to_owned())
    );
    let at_once = Operation::<()>::define("at_once", |_| -> std::future::Ready<Result<(), Odd>> {
        panic!("before there was a future")
    })
    .build();
    let Err(RunError::Failed(failure)) = at_once.run().await else {
        panic!("it fails");
    };
    assert_eq!(failure.kind(), FailureKind::Panicked);
    assert_eq!(failure.message(), "before there was a future");
    assert_eq!(failure.location().to_string(), "at_once");
}

#[tokio::test(start_paused = true)]
async fn a_result_that_json_does_not_keep_is_a_failure_now() {
    let nan = Operation::define("nan", |_| async { Ok::<_, String>(f64::NAN) })
        .retries(3)
        .build();
    let Err(RunError::Failed(failure)) = nan.run().await else {
        panic!("it fails");
    };
    assert_eq!(failure.kind(), FailureKind::Encode);
    assert_eq!(
        nan.snapshot().attempt(),
        1,
        "another attempt would not help"
    );
}

// OPR-RUN-03
#[tokio::test(start_paused = true)]
async fn a_second_run_is_refused_and_the_first_goes_on() {
    let slow = Operation::define("slow", |_| async {
        tokio::time::sleep(millis(100)).await;
        Ok::<_, String>("first".to_owned())
    })
    .build();
    let first = tokio::spawn(slow.run().into_future());
    settle().await;
    let revision = slow.snapshot().revision();
    assert_eq!(
        slow.run().await,
        Err(RunError::Refused(Refused::AlreadyRunning {
            name: "slow".to_owned(),
            status: Status::Running
        }))
    );
    assert_eq!(slow.snapshot().revision(), revision, "nothing was changed");
    assert_eq!(first.await.unwrap(), Ok("first".to_owned()));
}

// OPR-RUN-04
#[tokio::test(start_paused = true)]
async fn run_again_it_starts_over() {
    let runs = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&runs);
    let keys = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&keys);
    let counting = Operation::define("counting", move |cx| {
        let run = count.fetch_add(1, Ordering::SeqCst) + 1;
        noted.lock().unwrap().push(cx.idempotency_key());
        async move {
            cx.log(format!("run {run}"));
            if run == 2 {
                // Nothing of the first run is to be seen any more.
                tokio::time::sleep(millis(500)).await;
            }
            Ok::<_, String>(run)
        }
    })
    .undo(|_, _| async { Ok::<_, String>(()) })
    .clock(clock())
    .build();
    assert_eq!(counting.run().await, Ok(1));
    let again = tokio::spawn(counting.run().into_future());
    settle().await;
    let meanwhile = counting.snapshot();
    assert_eq!(meanwhile.status(), Status::Running);
    assert_eq!(meanwhile.result_json(), None);
    assert_eq!(meanwhile.completed_at(), None);
    let lines: Vec<_> = meanwhile.logs().map(|line| line.text.clone()).collect();
    assert_eq!(lines, ["run 2"]);
    assert_eq!(meanwhile.undo(), Undo::Owed);
    assert_eq!(again.await.unwrap(), Ok(2));
    assert_eq!(counting.snapshot().attempt(), 1);
    let keys = keys.lock().unwrap();
    assert_ne!(keys[0], keys[1], "the second run has another effect");
}

// OPR-RUN-05
#[tokio::test(start_paused = true)]
async fn observers_that_fail_are_reported_and_do_no_harm() {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&reports);
    let watched = Operation::define("watched", |_| async { Ok::<_, String>(()) })
        .on_observer_error(move |error| {
            noted.lock().unwrap().push(error.to_string());
            panic!("so does who is told of it");
        })
        .build();
    watched.observe(|event| match event.to() {
        Status::Running => panic!("no"),
        _ => Err("I never work"),
    });
    assert_eq!(watched.run().await, Ok(()));
    assert_eq!(
        *reports.lock().unwrap(),
        [
            "an observer of operation `watched` failed when it became queued: I never work",
            "an observer of operation `watched` failed when it became running: no",
            "an observer of operation `watched` failed when it became succeeded: I never work",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_observer_may_act_and_all_are_told_in_order() {
    let work = Operation::define("work", |_| async {
        std::future::pending::<()>().await;
        Ok::<_, String>(())
    })
    .build();
    let acting = work.clone();
    work.observe(move |event| {
        if event.to() == Status::Running {
            acting.cancel("an observer said so");
        }
        Ok::<_, String>(())
    });
    let seen = super::statuses(&work);
    let cancelled = work.run().await;
    assert!(
        matches!(cancelled, Err(RunError::Cancelled { reason, .. }) if reason == "an observer said so")
    );
    assert_eq!(
        *seen.lock().unwrap(),
        [Status::Queued, Status::Running, Status::Cancelled]
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_gives_the_present_snapshot_and_then_the_later_ones() {
    let work = Operation::define("work", |_| async {
        tokio::time::sleep(millis(10)).await;
        Ok::<_, String>(1)
    })
    .build();
    let mut watch = work.watch();
    assert_eq!(watch.next().await.unwrap().status(), Status::Idle);
    let running = tokio::spawn(work.run().into_future());
    let mut revision = 0;
    let mut seen = Vec::new();
    while let Some(snapshot) = watch.next().await {
        assert!(snapshot.revision() > revision);
        revision = snapshot.revision();
        seen.push(snapshot.status());
        if snapshot.status() == Status::Succeeded {
            break;
        }
    }
    assert_eq!(seen, [Status::Running, Status::Succeeded]);
    running.await.unwrap().unwrap();
    drop(work);
    assert!(watch.next().await.is_none(), "nobody has it any more");
}

#[test]
fn without_a_runtime_it_is_refused() {
    let work = Operation::define("work", |_| async { Ok::<_, String>(1) }).build();
    let mut run = std::pin::pin!(work.run().into_future());
    let mut task = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(Err(RunError::Refused(refused))) = run.as_mut().poll(&mut task)
    else {
        panic!("it is refused at once");
    };
    assert!(matches!(refused, Refused::NoRuntime { .. }));
    assert_eq!(work.snapshot().status(), Status::Idle);
}
