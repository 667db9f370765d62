//! Operations below operations.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow::operation::{Definition, Operation, Progress, Refused, RunError, Snapshot, Status};
use workflow::{Backoff, FailureKind};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

use super::{Told, millis, settle};

fn child(name: &'static str, takes: u64) -> Definition<String> {
    Operation::define(name, move |cx| async move {
        cx.progress(Progress::new(1).of(2));
        tokio::time::sleep(millis(takes)).await;
        Ok::<_, String>(format!("{name} is done"))
    })
}

// OPR-CHD-01
#[tokio::test(start_paused = true)]
async fn a_child_is_in_the_tree_and_gives_its_result() {
    let parent = Operation::define("parent", |cx| async move {
        let result = cx.child(child("copy", 100)).await?;
        Ok::<_, RunError>(result)
    })
    .build();
    let mut watch = parent.watch();
    let run = tokio::spawn(parent.run().into_future());
    tokio::time::sleep(millis(50)).await;
    // Who only watches the parent sees its child, also what that has reported.
    watch.next().await.unwrap();
    let shown = watch.latest().children()[0].clone();
    assert_eq!((shown.name(), shown.status()), ("copy", Status::Running));
    assert_eq!(shown.progress(), Some(&Progress::new(1).of(2)));
    assert_eq!(run.await.unwrap(), Ok("copy is done".to_owned()));
    let after = parent.snapshot().children()[0].clone();
    assert_eq!(after.status(), Status::Succeeded);
    assert_eq!(after.result::<String>().as_deref(), Some("copy is done"));
}

// OPR-CHD-02
#[tokio::test(start_paused = true)]
async fn what_a_failed_attempt_left_running_is_cancelled() {
    let told = Told::default();
    let says = told.clone();
    let lingering = Operation::define("lingering", move |cx| {
        let told = says.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            told.say("a leftover went on");
            drop(cx);
            Ok::<_, String>(())
        }
    });
    let left: Arc<Mutex<Vec<_>>> = Arc::default();
    let tasks = Arc::clone(&left);
    let parent = Operation::define("parent", move |cx| {
        let (lingering, tasks) = (lingering.clone(), Arc::clone(&tasks));
        async move {
            if cx.number() == 1 {
                tasks
                    .lock()
                    .unwrap()
                    .push(tokio::spawn(cx.child(lingering)));
                settle().await;
                return Err("first".into());
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
            cx.child(child("second", 10))
                .await
                .map_err(anyhow::Error::from)?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
        }
    })
    .retries(1)
    .backoff(Backoff::fixed(Duration::ZERO))
    .build();
    parent.run().await.unwrap();
    let left = left.lock().unwrap().pop().unwrap();
    let left = left.await.unwrap();
    let Err(RunError::Cancelled { reason, .. }) = left else {
        panic!("it was cancelled");
    };
    assert_eq!(reason, "the attempt that ran it has ended");
    assert_eq!(told.all(), [""; 0]);
    let snapshot = parent.snapshot();
    let names: Vec<_> = snapshot.children().iter().map(Snapshot::name).collect();
    assert_eq!(names, ["second"]);
}

// OPR-CHD-04
#[tokio::test(start_paused = true)]
async fn a_child_whose_failure_is_caught_stays_in_the_tree() {
    let bad = Operation::<()>::define("bad", |_| async { Err("no luck") });
    let parent = Operation::define("parent", move |cx| {
        let bad = bad.clone();
        async move { Ok::<_, String>(cx.child(bad).await.is_err()) }
    })
    .build();
    assert_eq!(parent.run().await, Ok(true));
    let snapshot = parent.snapshot();
    assert_eq!(snapshot.status(), Status::Succeeded);
    assert_eq!(snapshot.children()[0].status(), Status::Failed);
    let failure = snapshot.children()[0].failure().unwrap();
    assert_eq!(failure.message(), "no luck");
    assert_eq!(failure.location().to_string(), "parent/bad");
}

// OPR-CHD-05
#[tokio::test(start_paused = true)]
async fn an_attempt_that_has_ended_runs_no_child() {
    let kept: Arc<Mutex<Option<workflow::operation::Attempt>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let parent = Operation::define("parent", move |cx| {
        *keep.lock().unwrap() = Some(cx);
        async { Ok::<_, String>(()) }
    })
    .build();
    parent.run().await.unwrap();
    let told = Told::default();
    let says = told.clone();
    let late = Operation::define("late", move |_| {
        says.say("it ran");
        async { Ok::<_, String>(()) }
    });
    let cx = kept.lock().unwrap().take().unwrap();
    assert_eq!(
        cx.child(late).await,
        Err(RunError::Refused(Refused::Stale {
            name: "parent".to_owned(),
            attempt: 1
        }))
    );
    assert_eq!(told.all(), [""; 0]);
    assert_eq!(parent.snapshot().children().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_childs_failure_fails_the_parent_and_a_critical_one_for_good() {
    let fails = |critical: bool| {
        let child = Operation::<()>::define("child", move |_| async move {
            if critical {
                return Err::<(), BoxError>(workflow::critical("never").into());
            }
            Err("not now".into())
        });
        Operation::define("parent", move |cx| cx.child(child.clone()))
            .retries(1)
            .backoff(Backoff::fixed(Duration::ZERO))
            .build()
    };
    let Err(RunError::Failed(failure)) = fails(false).run().await else {
        panic!("it fails");
    };
    assert_eq!(
        (failure.kind(), failure.attempts()),
        (FailureKind::Child, 2)
    );
    let Err(RunError::Failed(failure)) = fails(true).run().await else {
        panic!("it fails");
    };
    assert_eq!(
        (failure.kind(), failure.attempts()),
        (FailureKind::Critical, 1)
    );
    assert_eq!(failure.message(), "`parent/child` failed (critical): never");
}

#[tokio::test(start_paused = true)]
async fn children_may_run_at_once_and_their_keys_are_their_own_in_every_attempt() {
    let keys = Told::default();
    let says = keys.clone();
    let keyed = Operation::define("keyed", move |cx| {
        says.say(cx.idempotency_key());
        async { Ok::<_, String>(()) }
    });
    let parent = Operation::define("parent", move |cx| {
        let (one, two) = (cx.child(keyed.clone()), cx.child(keyed.clone()));
        async move {
            let (one, two) = tokio::join!(one, two);
            one.and(two)?;
            if cx.number() == 1 {
                return Err(anyhow::anyhow!("once more"));
            }
            Ok(())
        }
    })
    .retries(1)
    .build();
    parent.run().await.unwrap();
    let keys = keys.all();
    assert_eq!(keys.len(), 4);
    assert_ne!(keys[0], keys[1]);
    assert_eq!(keys[..2], keys[2..], "another attempt has the same effects");
}
