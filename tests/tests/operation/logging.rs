//! Log lines and progress.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow::operation::{Attempt, Operation, Progress, Snapshot};

use super::{at, clock, millis};

fn lines(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.logs().map(|line| &*line.text).collect()
}

async fn five_lines(limit: usize) -> Snapshot {
    let work = Operation::define("work", |cx| async move {
        for line in 1..=5 {
            cx.log(format!("line {line}"));
        }
        Ok::<_, String>(())
    })
    .max_logs(limit)
    .clock(clock())
    .build();
    work.run().await.unwrap();
    work.snapshot()
}

// OPR-LOG-01
#[tokio::test(start_paused = true)]
async fn the_last_lines_are_kept_in_order() {
    let snapshot = five_lines(2).await;
    assert_eq!(lines(&snapshot), ["line 4", "line 5"]);
    let last = snapshot.logs().last().unwrap();
    assert_eq!((last.at, last.attempt), (at(0), 1));
}

// OPR-LOG-02
#[tokio::test(start_paused = true)]
async fn a_limit_of_zero_keeps_none() {
    assert_eq!(lines(&five_lines(0).await), [""; 0]);
}

// OPR-LOG-03
#[tokio::test(start_paused = true)]
async fn many_lines_are_few_notices_and_all_are_there_in_the_end() {
    let work = Operation::define("work", |cx| async move {
        for line in 0..10_000 {
            cx.log(line.to_string());
        }
        Ok::<_, String>(())
    })
    .max_logs(20_000)
    .build();
    let before = work.snapshot().revision();
    work.run().await.unwrap();
    let snapshot = work.snapshot();
    assert_eq!(snapshot.logs().len(), 10_000);
    assert_eq!(lines(&snapshot)[9_999], "9999");
    let notices = snapshot.revision() - before;
    assert!((3..=203).contains(&notices), "{notices}");
}

#[tokio::test(start_paused = true)]
async fn a_single_line_is_shown_in_time_to_who_watches() {
    let work = Operation::define("work", |cx| async move {
        cx.log("here");
        cx.progress(Progress::new(3).of(10));
        tokio::time::sleep(Duration::from_secs(50)).await;
        Ok::<_, String>(())
    })
    .build();
    let watch = work.watch();
    let run = tokio::spawn(work.run().into_future());
    tokio::time::sleep(millis(20)).await;
    let shown = watch.latest();
    assert_eq!(lines(&shown), ["here"]);
    assert_eq!(shown.progress().unwrap().percent(), Some(30));
    run.await.unwrap().unwrap();
}

// OPR-LOG-04
#[tokio::test(start_paused = true)]
async fn what_an_ended_attempt_says_is_ignored() {
    let attempts: Arc<Mutex<Vec<Attempt>>> = Arc::default();
    let kept = Arc::clone(&attempts);
    let work = Operation::define("work", move |cx| {
        let earlier = kept.lock().unwrap().last().cloned();
        kept.lock().unwrap().push(cx.clone());
        async move {
            cx.log(format!("attempt {}", cx.number()));
            let Some(earlier) = earlier else {
                return Err("once more");
            };
            // The first attempt goes on in some other task.
            assert!(earlier.cancellation().is_cancelled());
            earlier.log("late");
            earlier.progress(Progress::new(99));
            earlier.wait_for("nothing", std::future::ready(())).await;
            Ok(())
        }
    })
    .retries(1)
    .build();
    work.run().await.unwrap();
    let snapshot = work.snapshot();
    assert_eq!(lines(&snapshot), ["attempt 1", "attempt 2"]);
    assert_eq!(snapshot.progress(), None);
    for attempt in attempts.lock().unwrap().iter() {
        attempt.log("after the end");
    }
    assert_eq!(work.snapshot(), snapshot);
}
