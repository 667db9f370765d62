//! Passing over.

use workflow::operation::{Operation, Refused, RunError, Status};

use super::{at, clock};

// OPR-SKP-01
#[tokio::test(start_paused = true)]
async fn only_what_has_not_begun_is_skipped() {
    let idle = Operation::define("idle", |_| async { Ok::<_, String>(1) })
        .clock(clock())
        .build();
    idle.skip().unwrap();
    let skipped = idle.snapshot();
    assert_eq!(skipped.status(), Status::Skipped);
    assert_eq!(skipped.completed_at(), Some(at(0)));
    assert_eq!(
        idle.skip(),
        Err(Refused::NotSkippable {
            name: "idle".to_owned(),
            status: Status::Skipped
        })
    );
    assert_eq!(idle.snapshot(), skipped);

    let done = Operation::define("done", |_| async { Ok::<_, String>(1) }).build();
    done.run().await.unwrap();
    assert!(matches!(
        done.skip(),
        Err(Refused::NotSkippable {
            status: Status::Succeeded,
            ..
        })
    ));
}

// OPR-SKP-02
#[tokio::test(start_paused = true)]
async fn what_was_skipped_runs_only_after_a_reset() {
    let work = Operation::define("work", |_| async { Ok::<_, String>(1) }).build();
    work.skip().unwrap();
    let refused = RunError::Refused(Refused::Skipped {
        name: "work".to_owned(),
    });
    assert_eq!(work.run().await, Err(refused));
    assert_eq!(work.snapshot().status(), Status::Skipped);
    work.reset().unwrap();
    assert_eq!(work.snapshot().status(), Status::Idle);
    assert_eq!(work.snapshot().completed_at(), None);
    assert_eq!(work.run().await, Ok(1));
}
