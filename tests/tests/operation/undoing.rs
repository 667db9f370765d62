//! Undoing what was done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use workflow::Backoff;
use workflow::operation::{
    Definition, Operation, RollbackError, RunError, Snapshot, Status, Undo, blocked,
};

use super::{Told, millis, statuses};

/// Does and undoes something, and tells.
fn telling(name: &'static str, told: &Told) -> Definition<u32> {
    let (does, undoes) = (told.clone(), told.clone());
    Operation::define(name, move |_| {
        does.say(format!("did {name}"));
        async { Ok::<_, String>(7) }
    })
    .undo(move |result, _| {
        undoes.say(format!("undid {name} {result:?}"));
        async { Ok::<_, String>(()) }
    })
}

// OPR-RBK-01
#[tokio::test(start_paused = true)]
async fn children_are_undone_newest_first_and_then_the_operation() {
    let told = Told::default();
    let (a, b) = (telling("a", &told), telling("b", &told));
    let undoes = told.clone();
    let parent = Operation::define("parent", move |cx| {
        let (a, b) = (a.clone(), b.clone());
        async move {
            cx.child(a).await?;
            cx.child(b).await?;
            Ok::<_, RunError>("both".to_owned())
        }
    })
    .undo(move |result, cx| {
        undoes.say(format!("undid parent {result:?}"));
        async move {
            cx.log("undone");
            Ok::<_, String>(())
        }
    })
    .build();
    parent.run().await.unwrap();
    let seen = statuses(&parent);
    parent.rollback().await.unwrap();
    assert_eq!(
        told.all(),
        [
            "did a",
            "did b",
            "undid b Some(7)",
            "undid a Some(7)",
            "undid parent Some(\"both\")"
        ]
    );
    assert_eq!(
        *seen.lock().unwrap(),
        [Status::RollingBack, Status::RolledBack]
    );
    let snapshot = parent.snapshot();
    assert_eq!(snapshot.undo(), Undo::Done);
    assert!(
        snapshot
            .children()
            .iter()
            .all(|child| child.status() == Status::RolledBack)
    );
    assert_eq!(snapshot.logs().last().unwrap().text, "undone");
    // Once.
    let again = parent.rollback().await.unwrap_err();
    assert_eq!(
        again.to_string(),
        "operation `parent` is rolled back: there is nothing to undo"
    );
    assert_eq!(told.all().len(), 5);
}

// OPR-RBK-03
#[tokio::test(start_paused = true)]
async fn a_failed_one_is_undone_without_a_result_after_what_its_attempts_did() {
    let told = Told::default();
    let part = telling("part", &told);
    let undoes = told.clone();
    let parent = Operation::<u32>::define("parent", move |cx| {
        let part = part.clone();
        async move {
            cx.child(part).await?;
            Err(anyhow::anyhow!("no"))
        }
    })
    .retries(1)
    .backoff(Backoff::fixed(Duration::ZERO))
    .undo(move |result, _| {
        undoes.say(format!("undid parent {result:?}"));
        async { Ok::<_, String>(()) }
    })
    .build();
    parent.run().await.unwrap_err();
    let failed = parent.snapshot();
    assert_eq!((failed.children().len(), failed.earlier().len()), (1, 1));
    parent.rollback().await.unwrap();
    assert_eq!(
        told.all(),
        [
            "did part",
            "did part",
            "undid part Some(7)",
            "undid part Some(7)",
            "undid parent None"
        ],
        "also what the first attempt did"
    );
}

#[tokio::test(start_paused = true)]
async fn running_a_failed_one_again_does_not_lose_what_is_to_be_undone() {
    let told = Told::default();
    let part = telling("part", &told);
    let parent = Operation::define("parent", move |cx| {
        let part = part.clone();
        async move {
            if cx.released::<bool>() == Some(true) {
                return Ok(());
            }
            cx.child(part).await?;
            Err(RunError::from(blocked("wait")))
        }
    })
    .undo(|_, _| async { Ok::<_, String>(()) })
    .build();
    parent.run().await.unwrap_err();
    parent.release(true).unwrap().await.unwrap();
    parent.rollback().await.unwrap();
    assert_eq!(told.all(), ["did part", "undid part Some(7)"]);
}

#[tokio::test(start_paused = true)]
async fn what_never_began_or_still_goes_on_is_not_undone() {
    let told = Told::default();
    let idle = telling("idle", &told).build();
    assert!(matches!(
        idle.rollback().await,
        Err(RollbackError::NothingToUndo {
            status: Status::Idle,
            ..
        })
    ));
    let slow = Operation::define("slow", |_| async {
        tokio::time::sleep(millis(50)).await;
        Ok::<_, String>(())
    })
    .undo(|_, _| async { Ok::<_, String>(()) })
    .build();
    let (run, refused) = tokio::join!(slow.run().into_future(), async {
        tokio::time::sleep(millis(10)).await;
        slow.rollback().await
    });
    run.unwrap();
    assert!(matches!(
        refused,
        Err(RollbackError::InFlight {
            status: Status::Running,
            ..
        })
    ));
    assert_eq!(told.all(), [""; 0]);
}

// OPR-RBK-05
#[tokio::test(start_paused = true)]
async fn a_rollback_goes_on_from_the_undo_that_failed() {
    let told = Told::default();
    let broken = Arc::new(AtomicBool::new(true));
    let (a, c) = (telling("a", &told), telling("c", &told));
    let (breaks, undoes) = (Arc::clone(&broken), told.clone());
    let b = Operation::define("b", |_| async { Ok::<_, String>(2) }).undo(move |result, _| {
        let broken = breaks.load(Ordering::SeqCst);
        undoes.say(format!("undo b {result:?}"));
        async move {
            if broken {
                Err("the other side is down")
            } else {
                Ok(())
            }
        }
    });
    let parent = Operation::define("parent", move |cx| {
        let (a, b, c) = (a.clone(), b.clone(), c.clone());
        async move {
            cx.child(a).await?;
            cx.child(b).await?;
            cx.child(c).await?;
            Ok::<_, RunError>(())
        }
    })
    .build();
    parent.run().await.unwrap();
    let Err(RollbackError::Failed(failure)) = parent.rollback().await else {
        panic!("an undo failed");
    };
    assert_eq!(
        failure.to_string(),
        "`parent/b` failed (rollback): the other side is down"
    );
    let snapshot = parent.snapshot();
    assert_eq!(snapshot.status(), Status::RollbackFailed);
    let below: Vec<_> = snapshot.children().iter().map(Snapshot::status).collect();
    assert_eq!(
        below,
        [
            Status::Succeeded,
            Status::RollbackFailed,
            Status::RolledBack
        ]
    );
    assert!(
        snapshot
            .failure()
            .unwrap()
            .message()
            .contains("the other side is down")
    );
    // Half undone, it is not run.
    let refused = parent.run().await.unwrap_err();
    assert!(
        refused.to_string().contains("rolled back in part"),
        "{refused}"
    );

    broken.store(false, Ordering::SeqCst);
    parent.rollback().await.unwrap();
    assert_eq!(
        told.all(),
        [
            "did a",
            "did c",
            "undid c Some(7)",
            "undo b Some(2)",
            "undo b Some(2)",
            "undid a Some(7)"
        ],
        "c is not undone again"
    );
    parent.run().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_rollback_that_is_dropped_can_be_gone_on_with() {
    let told = Told::default();
    let undoes = told.clone();
    let work = Operation::define("work", |_| async { Ok::<_, String>(1) })
        .undo(move |_, cx| {
            let told = undoes.clone();
            async move {
                told.say(cx.idempotency_key());
                tokio::time::sleep(millis(50)).await;
                told.say("undone");
                assert!(matches!(
                    cx.child(Operation::define("c", |_| async { Ok::<_, String>(1) }))
                        .await,
                    Err(RunError::Refused(_))
                ));
                Ok::<_, String>(())
            }
        })
        .build();
    work.run().await.unwrap();
    tokio::time::timeout(millis(20), work.rollback())
        .await
        .unwrap_err();
    assert_eq!(work.snapshot().status(), Status::RollbackFailed);
    work.rollback().await.unwrap();
    let told = told.all();
    assert_eq!(told[0], told[1]);
    assert_eq!(told[2..], ["undone"]);
}
