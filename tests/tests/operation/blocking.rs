//! Work that cannot go on before somebody does something, and work that waits.

use workflow::operation::{Operation, Refused, RunError, Snapshot, Status, blocked};

use super::{Told, millis, settle, statuses};

/// Publishes once somebody has approved.
fn publish() -> workflow::operation::Definition<String> {
    Operation::define("publish", |cx| async move {
        let Some(by) = cx.released::<String>() else {
            return Err(blocked("needs an approval"));
        };
        cx.log(format!("approved by {by}"));
        Ok(by)
    })
    .retries(3)
}

// OPR-BLK-01
#[tokio::test(start_paused = true)]
async fn blocked_work_is_not_tried_again() {
    let publish = publish().build();
    let Err(RunError::Blocked(why)) = publish.run().await else {
        panic!("it is blocked");
    };
    assert_eq!(why.reason(), "needs an approval");
    let snapshot = publish.snapshot();
    assert_eq!(snapshot.status(), Status::Blocked);
    assert_eq!(snapshot.reason(), Some("needs an approval"));
    assert_eq!((snapshot.attempt(), snapshot.completed_at()), (1, None));
    assert_eq!(snapshot.failure(), None);
}

// OPR-BLK-02
#[tokio::test(start_paused = true)]
async fn a_child_that_blocks_blocks_a_parent_that_passes_it_on() {
    let parent = Operation::define("parent", |cx| async move {
        let by = cx.child(publish()).await?;
        Ok::<_, anyhow::Error>(by)
    })
    .retries(3)
    .build();
    assert!(matches!(parent.run().await, Err(RunError::Blocked(_))));
    let snapshot = parent.snapshot();
    assert_eq!(
        (snapshot.status(), snapshot.attempt()),
        (Status::Blocked, 1)
    );
    assert_eq!(snapshot.reason(), Some("needs an approval"));
    assert_eq!(snapshot.children()[0].status(), Status::Blocked);
    // What the parent is released with is for whom it waited.
    assert_eq!(parent.release("Ada").unwrap().await, Ok("Ada".to_owned()));
}

// OPR-BLK-03
#[tokio::test(start_paused = true)]
async fn released_it_runs_again_with_the_payload_also_after_a_crash() {
    let first = publish().build();
    first.run().await.unwrap_err();
    let release = first.release("Grace").unwrap();
    // The process ends before it went on; what is left is the record.
    let record = serde_json::to_string(&first.snapshot()).unwrap();
    drop((release, first));
    let record: Snapshot = serde_json::from_str(&record).unwrap();
    assert_eq!(record.status(), Status::Blocked);
    let second = publish().build();
    second.restore(&record).unwrap();
    assert_eq!(second.run().await, Ok("Grace".to_owned()));

    // In one process.
    let third = publish().build();
    third.run().await.unwrap_err();
    assert_eq!(third.release("Ada").unwrap().await, Ok("Ada".to_owned()));
    // It was for that run: the next one asks again.
    assert!(matches!(third.run().await, Err(RunError::Blocked(_))));
}

#[tokio::test(start_paused = true)]
async fn only_what_is_blocked_is_released_and_it_may_be_cancelled() {
    let publish = publish().build();
    let refused = publish.release(1).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "operation `publish` is idle, and only a blocked one can be released"
    );
    publish.run().await.unwrap_err();
    let map = std::collections::BTreeMap::from([((1, 2), 3)]);
    assert!(matches!(publish.release(map), Err(Refused::Payload { .. })));
    assert!(publish.cancel("never mind"));
    assert_eq!(publish.snapshot().status(), Status::Cancelled);
    assert!(matches!(
        publish.release(1),
        Err(Refused::NotBlocked { .. })
    ));
}

// OPR-WAI-01
#[tokio::test(start_paused = true)]
async fn while_it_waits_it_says_so() {
    let asking = Operation::define("asking", |cx| async move {
        cx.wait_for("an answer", tokio::time::sleep(millis(50)))
            .await;
        Ok::<_, String>(())
    })
    .build();
    let seen = statuses(&asking);
    let run = tokio::spawn(asking.run().into_future());
    settle().await;
    assert_eq!(asking.snapshot().reason(), Some("an answer"));
    run.await.unwrap().unwrap();
    assert_eq!(
        *seen.lock().unwrap(),
        [
            Status::Queued,
            Status::Running,
            Status::Waiting,
            Status::Running,
            Status::Succeeded
        ]
    );
    assert_eq!(asking.snapshot().reason(), None);
}

#[tokio::test(start_paused = true)]
async fn of_waits_that_overlap_the_last_one_ends_it() {
    let told = Told::default();
    let says = told.clone();
    let asking = Operation::define("asking", move |cx| {
        let told = says.clone();
        async move {
            tokio::join!(
                cx.wait_for("the long one", tokio::time::sleep(millis(90))),
                async {
                    cx.wait_for("the short one", tokio::time::sleep(millis(30)))
                        .await;
                    told.say("short");
                }
            );
            Ok::<_, String>(())
        }
    })
    .build();
    let run = tokio::spawn(asking.run().into_future());
    tokio::time::sleep(millis(60)).await;
    assert_eq!(told.all(), ["short"]);
    let meanwhile = asking.snapshot();
    assert_eq!(meanwhile.status(), Status::Waiting);
    assert_eq!(meanwhile.reason(), Some("the long one"));
    run.await.unwrap().unwrap();
}
