//! What a person who waits is shown.

use std::time::Duration;

use workflow::Timestamp;
use workflow::operation::{Indicator, Operation, Progress, Snapshot, feedback};

use super::{START, clock, millis, settle};

/// Of an operation that has begun and reported this.
async fn running(progress: Option<Progress>) -> Snapshot {
    let work = Operation::define("work", move |cx| {
        let progress = progress.clone();
        async move {
            if let Some(progress) = progress {
                cx.progress(progress);
            }
            tokio::time::sleep(millis(3_000)).await;
            Ok::<_, String>(())
        }
    })
    .clock(clock())
    .build();
    let run = tokio::spawn(work.run().into_future());
    settle().await;
    let snapshot = work.snapshot();
    run.await.unwrap().unwrap();
    snapshot
}

fn after(snapshot: &Snapshot, elapsed: i64) -> Indicator {
    let feedback = feedback(snapshot, Timestamp::from_millis(START + elapsed));
    assert_eq!(feedback.elapsed, millis(u64::try_from(elapsed).unwrap()));
    feedback.indicator
}

// OPR-FBK-01
#[tokio::test(start_paused = true)]
async fn the_longer_it_takes_the_more_is_shown() {
    let plain = running(Some(Progress::new(3).message("copying"))).await;
    assert_eq!(after(&plain, 199), Indicator::None);
    assert_eq!(after(&plain, 200), Indicator::Activity);
    assert_eq!(after(&plain, 999), Indicator::Activity);
    assert_eq!(after(&plain, 1_000), Indicator::Indeterminate);
    assert_eq!(after(&plain, 9_999), Indicator::Indeterminate);
    let message = Some("copying".to_owned());
    assert_eq!(after(&plain, 10_000), Indicator::Status { message });
    let silent = running(None).await;
    assert_eq!(after(&silent, 10_000), Indicator::Status { message: None });
    // The clock went back.
    assert_eq!(
        feedback(&plain, Timestamp::from_millis(0)).elapsed,
        Duration::ZERO
    );

    let percent = |current, total| async move {
        match after(
            &running(Some(Progress::new(current).of(total))).await,
            1_000,
        ) {
            Indicator::Determinate { percent } => Some(percent),
            other => {
                assert_eq!(other, Indicator::Indeterminate);
                None
            }
        }
    };
    assert_eq!(percent(12, 10).await, Some(100));
    assert_eq!(percent(-1, 10).await, Some(0));
    assert_eq!(percent(2, 3).await, Some(67));
    assert_eq!(percent(i64::MAX, i64::MAX).await, Some(100));
    assert_eq!(percent(3, 0).await, None);
    let halfway = running(Some(Progress::new(1).of(2))).await;
    assert_eq!(after(&halfway, 999), Indicator::Activity);
    assert_eq!(
        after(&halfway, 60_000),
        Indicator::Determinate { percent: 50 }
    );

    // Ended, and never begun.
    let work = Operation::define("work", |_| async {
        tokio::time::sleep(millis(3_000)).await;
        Ok::<_, String>(())
    })
    .clock(clock())
    .build();
    let idle = feedback(&work.snapshot(), Timestamp::from_millis(START + 9_000));
    assert_eq!(
        (idle.indicator, idle.elapsed),
        (Indicator::None, Duration::ZERO)
    );
    work.run().await.unwrap();
    let ended = feedback(&work.snapshot(), Timestamp::from_millis(START + 90_000));
    assert_eq!(
        (ended.indicator, ended.elapsed),
        (Indicator::None, millis(3_000))
    );
}
