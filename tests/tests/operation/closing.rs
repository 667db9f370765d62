//! Closing for good.

use workflow::operation::{Operation, Refused, RestoreError, RollbackError, RunError, Status};

use super::{settle, statuses};

// OPR-DIS-01
#[tokio::test(start_paused = true)]
async fn a_closed_operation_is_not_run() {
    let work = Operation::define("work", |_| async { Ok::<_, String>(1) }).build();
    work.close();
    let closed = || Refused::Closed {
        name: "work".to_owned(),
    };
    assert_eq!(work.run().await, Err(RunError::Refused(closed())));
    assert_eq!(work.skip(), Err(closed()));
    assert_eq!(work.reset(), Err(closed()));
    assert!(matches!(
        work.rollback().await,
        Err(RollbackError::Closed { .. })
    ));
    assert!(matches!(
        work.restore(&work.snapshot()),
        Err(RestoreError::Closed { .. })
    ));
    assert_eq!(work.snapshot().status(), Status::Idle);
    work.close();
}

#[tokio::test(start_paused = true)]
async fn closing_ends_what_runs_and_who_watches() {
    let child = Operation::<()>::define("child", |_| async {
        std::future::pending::<()>().await;
        Ok::<_, String>(())
    });
    let work = Operation::define("work", move |cx| cx.child(child.clone())).build();
    let seen = statuses(&work);
    let mut watch = work.watch();
    let run = tokio::spawn(work.run().into_future());
    settle().await;
    work.close();
    let snapshot = work.snapshot();
    assert_eq!(
        (snapshot.status(), snapshot.reason()),
        (Status::Cancelled, Some("closed"))
    );
    assert_eq!(snapshot.children()[0].status(), Status::Cancelled);
    assert!(matches!(
        run.await.unwrap(),
        Err(RunError::Cancelled { .. })
    ));
    work.stopped().await;
    assert_eq!(work.snapshot(), snapshot, "later changes do not show");
    assert_eq!(watch.next().await, Some(snapshot));
    assert_eq!(watch.next().await, None);
    let mut late = work.watch();
    assert_eq!(late.next().await.unwrap().status(), Status::Cancelled);
    assert_eq!(late.next().await, None);
    assert_eq!(*seen.lock().unwrap().last().unwrap(), Status::Cancelled);
}
