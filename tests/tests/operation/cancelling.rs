//! Cancelling.

use std::sync::mpsc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;
use workflow::operation::{Operation, Progress, Refused, RunError, Status};

use super::{Told, at, clock, millis, reported, settle};

// OPR-CAN-01
#[tokio::test(start_paused = true)]
async fn work_that_does_not_look_is_cancelled_at_once() {
    let (send_late, late) = oneshot::channel();
    let send_late = std::sync::Mutex::new(Some(send_late));
    let deaf = Operation::define("deaf", move |cx| {
        // Somebody else still has it after it was cancelled.
        let _ = send_late.lock().unwrap().take().unwrap().send(cx.clone());
        async move {
            tokio::time::sleep(Duration::from_secs(9)).await;
            cx.progress(Progress::new(99));
            Ok::<_, String>(())
        }
    })
    .clock(clock())
    .build();
    let began = Instant::now();
    let run = tokio::spawn(deaf.run().into_future());
    let late = late.await.unwrap();
    tokio::time::sleep(millis(20)).await;
    assert!(deaf.cancel("changed my mind"));
    assert!(late.cancellation().is_cancelled());
    let snapshot = deaf.snapshot();
    assert_eq!(
        snapshot.status(),
        Status::Cancelled,
        "when `cancel` returns"
    );
    assert_eq!(snapshot.reason(), Some("changed my mind"));
    assert_eq!(snapshot.completed_at(), Some(at(20)));
    assert_eq!(
        run.await.unwrap(),
        Err(RunError::Cancelled {
            name: "deaf".to_owned(),
            reason: "changed my mind".to_owned()
        })
    );
    assert_eq!(began.elapsed(), millis(20));
    late.progress(Progress::new(100));
    late.log("late");
    assert_eq!(deaf.snapshot(), snapshot, "what comes late is ignored");
    assert!(!deaf.cancel("again"), "there is nothing to cancel any more");
    assert_eq!(deaf.snapshot(), snapshot);
}

// OPR-CAN-02
#[tokio::test(start_paused = true)]
async fn cancelling_an_idle_one_is_forgotten() {
    let work = Operation::define("work", |_| async { Ok::<_, String>(1) }).build();
    assert!(!work.cancel("too early"));
    assert_eq!(work.snapshot().status(), Status::Idle);
    assert_eq!(work.run().await, Ok(1));
}

// OPR-CAN-03
#[tokio::test(start_paused = true)]
async fn the_callers_signal_cancels_it_and_its_children() {
    let child = Operation::<()>::define("child", |_| async {
        std::future::pending::<()>().await;
        Ok::<_, String>(())
    });
    let parent = Operation::define("parent", move |cx| {
        let child = child.clone();
        async move { cx.child(child).await }
    })
    .retries(3)
    .build();
    let signal = tokio::time::sleep(millis(70));
    let began = Instant::now();
    let Err(RunError::Cancelled { reason, .. }) = parent.run().cancel_on(signal).await else {
        panic!("it was cancelled");
    };
    assert_eq!(reason, "its caller's signal");
    assert_eq!(began.elapsed(), millis(70));
    let snapshot = parent.snapshot();
    assert_eq!(
        (snapshot.status(), snapshot.attempt()),
        (Status::Cancelled, 1)
    );
    assert_eq!(snapshot.children()[0].status(), Status::Cancelled);
    assert_eq!(snapshot.children()[0].reason(), Some("its caller's signal"));
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_has_fired_before_ends_it_at_once() {
    let work = Operation::<()>::define("work", |_| async {
        std::future::pending::<()>().await;
        Ok::<_, String>(())
    })
    .build();
    let run = work.run().cancel_on(std::future::ready(())).await;
    assert!(matches!(run, Err(RunError::Cancelled { .. })));
    assert_eq!(work.snapshot().status(), Status::Cancelled);
    assert!(matches!(
        work.run().cancel_on(tokio::time::sleep(millis(1))).await,
        Err(RunError::Cancelled { .. })
    ));
}

// OPR-CAN-06
#[tokio::test(start_paused = true)]
async fn what_still_goes_on_after_a_cancel_is_not_joined_by_another() {
    // A thread that is busy.
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let busy = Operation::define_blocking("busy", move |cx| {
        cx.progress(Progress::new(1));
        wait.lock().unwrap().recv().unwrap();
        Ok::<_, String>(cx.number())
    })
    .build();
    let run = tokio::spawn(busy.run().into_future());
    reported(&busy).await;
    assert!(busy.cancel("enough"));
    assert!(matches!(
        run.await.unwrap(),
        Err(RunError::Cancelled { .. })
    ));
    let still = || {
        RunError::Refused(Refused::StillStopping {
            name: "busy".to_owned(),
        })
    };
    assert_eq!(busy.run().await, Err(still()));
    assert_eq!(busy.snapshot().status(), Status::Cancelled);
    go.send(()).unwrap();
    busy.stopped().await;
    go.send(()).unwrap();
    assert_eq!(busy.run().await, Ok(1));

    // An async body that has not been dropped yet: its task was not polled since.
    let told = Told::default();
    let says = told.clone();
    let slow = Operation::<()>::define("slow", move |_| {
        let dropped = Says(says.clone());
        async move {
            std::future::pending::<()>().await;
            drop(dropped);
            Ok::<_, String>(())
        }
    })
    .build();
    let run = tokio::spawn(slow.run().into_future());
    settle().await;
    assert!(slow.cancel("enough"));
    assert!(matches!(
        slow.run().await,
        Err(RunError::Refused(Refused::StillStopping { .. }))
    ));
    slow.stopped().await;
    assert_eq!(told.all(), ["dropped"]);
    run.await.unwrap().unwrap_err();
}

struct Says(Told);

impl Drop for Says {
    fn drop(&mut self) {
        self.0.say("dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_the_run_cancels_it() {
    let told = Told::default();
    let says = told.clone();
    let work = Operation::<()>::define("work", move |_| {
        let dropped = Says(says.clone());
        async move {
            std::future::pending::<()>().await;
            drop(dropped);
            Ok::<_, String>(())
        }
    })
    .build();
    let late = tokio::time::timeout(millis(10), work.run().into_future()).await;
    assert!(late.is_err());
    assert_eq!(told.all(), ["dropped"]);
    let snapshot = work.snapshot();
    assert_eq!(snapshot.status(), Status::Cancelled);
    assert_eq!(
        snapshot.reason(),
        Some("the future that ran it was dropped")
    );
    // Nothing is left that would stand in another run's way.
    tokio::time::timeout(millis(10), work.run().into_future())
        .await
        .unwrap_err();
    assert_eq!(told.count("dropped"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_comes_with_the_result_wins() {
    let slot: std::sync::Arc<std::sync::Mutex<Option<Operation<u32>>>> = std::sync::Arc::default();
    let own = std::sync::Arc::clone(&slot);
    let work = Operation::define("work", move |_| {
        let own = own.lock().unwrap().clone().unwrap();
        async move {
            own.cancel("from within");
            Ok::<_, String>(1)
        }
    })
    .build();
    *slot.lock().unwrap() = Some(work.clone());
    assert!(matches!(work.run().await, Err(RunError::Cancelled { .. })));
    assert_eq!(work.snapshot().result_json(), None);
    *slot.lock().unwrap() = None;
}
