//! Time limits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::time::Instant;
use workflow::FailureKind;
use workflow::operation::{Operation, Progress, Refused, RunError, Status};

use super::{Told, millis, reported, settle, statuses};

/// Counts itself, and the most there ever were at once.
struct Inside(Arc<(AtomicUsize, AtomicUsize)>);

impl Inside {
    fn enter(counts: &Arc<(AtomicUsize, AtomicUsize)>) -> Self {
        let now = counts.0.fetch_add(1, Ordering::SeqCst) + 1;
        counts.1.fetch_max(now, Ordering::SeqCst);
        Self(Arc::clone(counts))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

// OPR-TMO-01
#[tokio::test(start_paused = true)]
async fn cooperative_work_over_its_limit_is_tried_again_never_twice_at_once() {
    let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let (inside, told) = (Arc::clone(&counts), Told::default());
    let says = told.clone();
    let slow = Operation::<()>::define("slow", move |cx| {
        let (inside, told) = (Inside::enter(&inside), says.clone());
        async move {
            cx.cancellation().cancelled().await;
            // Its clean-up takes a while, and it is given that.
            tokio::time::sleep(millis(40)).await;
            told.say(format!("cleaned up after {}", cx.number()));
            drop(inside);
            Err("interrupted")
        }
    })
    .retries(1)
    .backoff(workflow::Backoff::fixed(Duration::ZERO))
    .timeout(millis(100))
    .grace(millis(50))
    .build();
    let seen = statuses(&slow);
    let began = Instant::now();
    let Err(RunError::Failed(failure)) = slow.run().await else {
        panic!("it fails");
    };
    assert_eq!(
        (failure.kind(), failure.attempts()),
        (FailureKind::TimedOut, 2)
    );
    assert_eq!(told.all(), ["cleaned up after 1", "cleaned up after 2"]);
    assert_eq!(counts.1.load(Ordering::SeqCst), 1, "never two at once");
    assert_eq!(began.elapsed(), millis(280));
    assert_eq!(
        *seen.lock().unwrap(),
        [
            Status::Queued,
            Status::Running,
            Status::Retrying,
            Status::Failed
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn async_work_that_does_not_look_is_dropped_at_its_limit_and_tried_again() {
    let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let inside = Arc::clone(&counts);
    let deaf = Operation::<()>::define("deaf", move |_| {
        let inside = Inside::enter(&inside);
        async move {
            tokio::time::sleep(Duration::from_secs(9)).await;
            drop(inside);
            Ok::<_, String>(())
        }
    })
    .retries(1)
    .backoff(workflow::Backoff::fixed(Duration::ZERO))
    .timeout(millis(100))
    .build();
    let began = Instant::now();
    let Err(RunError::Failed(failure)) = deaf.run().await else {
        panic!("it fails");
    };
    assert_eq!(
        (failure.kind(), failure.attempts()),
        (FailureKind::TimedOut, 2)
    );
    assert_eq!(began.elapsed(), millis(200));
    assert_eq!(
        (
            counts.0.load(Ordering::SeqCst),
            counts.1.load(Ordering::SeqCst)
        ),
        (0, 1)
    );
}

// OPR-TMO-02
#[tokio::test(start_paused = true)]
async fn a_thread_that_ignores_its_limit_gets_no_second_attempt() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let told = Told::default();
    let says = told.clone();
    let deaf = Operation::define_blocking("deaf", move |cx| {
        says.say(format!("attempt {}", cx.number()));
        cx.progress(Progress::new(1));
        wait.lock().unwrap().recv().unwrap();
        cx.progress(Progress::new(2));
        cx.log("late");
        says.say("ended");
        Ok::<_, String>("late".to_owned())
    })
    .retries(2)
    .timeout(millis(100))
    .grace(millis(50))
    .build();
    let run = tokio::spawn(deaf.run().into_future());
    // Time stands still while a thread is busy: it is moved by hand.
    reported(&deaf).await;
    for _ in 0..3 {
        tokio::time::advance(millis(51)).await;
        settle().await;
    }
    let Err(RunError::Failed(failure)) = run.await.unwrap() else {
        panic!("it fails");
    };
    assert_eq!(
        (failure.kind(), failure.attempts()),
        (FailureKind::TimedOut, 1)
    );
    assert!(failure.message().contains("did not stop"), "{failure}");
    let failed = deaf.snapshot();
    // Until its thread has ended, there is no other beside it.
    let refused = RunError::Refused(Refused::StillStopping {
        name: "deaf".to_owned(),
    });
    assert_eq!(deaf.run().await, Err(refused));
    go.send(()).unwrap();
    deaf.stopped().await;
    assert_eq!(told.all(), ["attempt 1", "ended"]);
    assert_eq!(
        deaf.snapshot(),
        failed,
        "late result, progress and log are ignored"
    );
    assert_eq!(failed.progress(), Some(&Progress::new(1)));
    go.send(()).unwrap();
    assert_eq!(deaf.run().await, Ok("late".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_heeds_its_token_is_tried_again() {
    let heedful = Operation::define_blocking("heedful", |cx| {
        cx.progress(Progress::new(cx.number().into()));
        while cx.number() == 1 && !cx.cancellation().is_cancelled() {
            std::thread::yield_now();
        }
        Ok::<_, String>(cx.number())
    })
    .retries(1)
    .backoff(workflow::Backoff::fixed(Duration::ZERO))
    .timeout(millis(100))
    .build();
    let run = tokio::spawn(heedful.run().into_future());
    reported(&heedful).await;
    tokio::time::advance(millis(101)).await;
    assert_eq!(run.await.unwrap(), Ok(2));
}
