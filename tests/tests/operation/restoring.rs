//! Records, and what is taken back from them.

use std::error::Error;
use std::fmt;

use workflow::operation::{
    Definition, Operation, RestoreError, RollbackError, RunError, Snapshot, Status,
};
use workflow::{FailureKind, Timestamp};

use super::{Told, millis, settle};

/// As another process would read it.
fn written(snapshot: &Snapshot) -> Snapshot {
    serde_json::from_str(&serde_json::to_string(snapshot).unwrap()).unwrap()
}

fn slow(told: &Told) -> Definition<u64> {
    let told = told.clone();
    Operation::define("slow", move |cx| async move {
        cx.log("at it");
        tokio::time::sleep(millis(100)).await;
        Ok::<_, String>(u64::MAX)
    })
    .undo(move |result, _| {
        told.say(format!("undid {result:?}"));
        async { Ok::<_, String>(()) }
    })
}

// OPR-RST-01
#[tokio::test(start_paused = true)]
async fn nothing_in_flight_is_restored_and_nothing_is_restored_over_it() {
    let told = Told::default();
    let running = slow(&told).build();
    let idle = running.snapshot();
    let run = tokio::spawn(running.run().into_future());
    settle().await;
    let in_flight = running.snapshot();
    assert!(matches!(
        running.restore(&idle),
        Err(RestoreError::InFlight {
            status: Status::Running,
            ..
        })
    ));
    assert_eq!(running.snapshot(), in_flight);
    let other = slow(&told).build();
    assert_eq!(
        other.restore(&written(&in_flight)),
        Err(RestoreError::RecordInFlight {
            name: "slow".to_owned(),
            at: "slow".to_owned(),
            status: Status::Running
        })
    );
    assert_eq!(other.snapshot().status(), Status::Idle);
    run.await.unwrap().unwrap();

    // The way out, when its process is gone.
    let now = Timestamp::from_millis(5);
    other.restore(&in_flight.interrupted(now)).unwrap();
    let restored = other.snapshot();
    assert_eq!(
        (restored.status(), restored.completed_at()),
        (Status::Failed, Some(now))
    );
    assert_eq!(restored.failure().unwrap().kind(), FailureKind::Interrupted);
    assert_eq!(other.run().await, Ok(u64::MAX));
}

// OPR-RST-02
#[tokio::test(start_paused = true)]
async fn a_restored_success_is_undone_with_its_recorded_result() {
    let told = Told::default();
    let first = slow(&told).build();
    first.run().await.unwrap();
    let record = written(&first.snapshot());
    assert_eq!(record, first.snapshot());
    let second = slow(&told).build();
    second.restore(&record).unwrap();
    let restored = second.snapshot();
    assert_eq!(restored.status(), Status::Succeeded);
    assert_eq!(restored.result::<u64>(), Some(u64::MAX));
    assert_eq!(restored.logs().next().unwrap().text, "at it");
    second.rollback().await.unwrap();
    assert_eq!(told.all(), [format!("undid Some({})", u64::MAX)]);
}

// OPR-RST-03
#[tokio::test(start_paused = true)]
async fn a_record_of_another_operation_is_refused() {
    let told = Told::default();
    let other = Operation::define("other", |_| async { Ok::<_, String>(1) }).build();
    other.run().await.unwrap();
    let slow = slow(&told).build();
    let before = slow.snapshot();
    let refused = slow.restore(&other.snapshot()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the record is one of operation `other`, not of `slow`"
    );
    // Nor one whose result is of another type.
    let typed = Operation::define("slow", |_| async { Ok::<_, String>("text".to_owned()) }).build();
    typed.run().await.unwrap();
    assert!(matches!(
        slow.restore(&typed.snapshot()),
        Err(RestoreError::Result { .. })
    ));
    assert_eq!(slow.snapshot(), before);
}

#[tokio::test(start_paused = true)]
async fn children_are_undone_after_a_restore_by_those_who_know_them() {
    let told = Told::default();
    let child = slow(&told);
    let parent = |child: Definition<u64>| {
        Operation::define("parent", move |cx| {
            let child = child.clone();
            async move { cx.child(child).await }
        })
    };
    let first = parent(child.clone()).build();
    first.run().await.unwrap();
    let record = written(&first.snapshot());

    let forgetful = parent(child.clone()).build();
    forgetful.restore(&record).unwrap();
    assert_eq!(
        forgetful.rollback().await,
        Err(RollbackError::Unknown {
            name: "parent".to_owned(),
            child: "parent/slow".to_owned()
        })
    );
    assert_eq!(
        forgetful.snapshot().status(),
        Status::Succeeded,
        "it was not begun"
    );

    let knowing = parent(child.clone()).knows(&child).build();
    knowing.restore(&record).unwrap();
    let restored = knowing.snapshot().children()[0].clone();
    assert_eq!(restored.status(), Status::Succeeded);
    assert_eq!(restored.result::<u64>(), Some(u64::MAX));
    knowing.rollback().await.unwrap();
    assert_eq!(told.all(), [format!("undid Some({})", u64::MAX)]);
}

/// Its own source, for ever.
#[derive(Debug)]
struct Cyclic;

impl fmt::Display for Cyclic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("round and round")
    }
}

impl Error for Cyclic {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self)
    }
}

/// Panics when asked what it says.
struct Mute;

impl fmt::Debug for Mute {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Err(fmt::Error)
    }
}

impl fmt::Display for Mute {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("no comment")
    }
}

impl Error for Mute {}

// OPR-SER-01
#[tokio::test(start_paused = true)]
async fn whatever_it_fails_with_its_record_is_written_and_keeps_the_text() {
    let fails = |error: fn() -> Box<dyn Error + Send + Sync>| async move {
        let work = Operation::<()>::define("work", move |_| async move { Err(error()) }).build();
        let Err(RunError::Failed(failure)) = work.run().await else {
            panic!("it fails");
        };
        let record = written(&work.snapshot());
        assert_eq!(record.failure(), Some(&failure));
        (failure.message().to_owned(), failure.chain().to_vec())
    };
    let (text, chain) = fails(|| Box::new(Cyclic)).await;
    assert_eq!((&*text, chain.len()), ("round and round", 0));
    let (text, _) = fails(|| Box::new(Mute)).await;
    assert_eq!(text, "an error that panicked when asked what it says");
    let (text, chain) = fails(|| {
        let io = std::io::Error::other(anyhow::anyhow!("disk \u{0}\"full\"").context("writing"));
        anyhow::Error::new(io).context("saving").into()
    })
    .await;
    assert_eq!(text, "saving");
    assert_eq!(chain.last().unwrap(), "disk \u{0}\"full\"");
}
