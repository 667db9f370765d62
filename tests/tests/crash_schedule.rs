//! A schedule whose process is killed again and again: no firing is lost, and none is repeated, though its run is deleted soon.
//!
//! The test starts itself as the process that is killed.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![allow(clippy::print_stdout, reason = "the test reads it")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use workflow::{
    Clock, Engine, Failure, Missed, PutError, Retention, Schedule, Timestamp, cron, current_step,
    step, workflow,
};
use workflow_tests::mortal::until_killed;

const DIR: &str = "WORKFLOW_TEST_SCHEDULE_DIR";
/// When the test began, in milliseconds.
const BEGAN: &str = "WORKFLOW_TEST_SCHEDULE_BEGAN";
/// So many firings at least.
const FIRINGS: i64 = 400;
/// So much faster runs the schedule's clock, which begins with the year.
const FAST: i64 = 25;
const YEAR: i64 = 1_767_225_600_000;

/// Keeps a row that names this very call, with its record. So a firing that is repeated has two.
#[step]
async fn keep(at: i64) -> Result<(), PutError> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    println!("entered {at}");
    std::io::stdout().flush().unwrap();
    current_step().put(format!("fired/{at}/{}-{call}", std::process::id()), &at)
}

#[workflow]
async fn tick(at: i64) -> Result<(), Failure> {
    keep(at).await
}

/// As of a process that was never killed.
#[derive(Debug)]
struct Fast(i64);

impl Clock for Fast {
    fn now(&self) -> Timestamp {
        let now = Timestamp::from(SystemTime::now()).as_millis();
        Timestamp::from_millis(YEAR + (now - self.0) * FAST)
    }
}

async fn engine(dir: &Path, began: i64) -> Engine {
    let ticks = Schedule::new("ticks", cron!("* * * * * *"), |firing| {
        tick(firing.at().as_millis())
    });
    Engine::builder()
        .workflow(tick)
        .schedule(ticks.missed(Missed::All))
        .retention(Retention::all(Duration::ZERO))
        .clock(Fast(began))
        .code_id(1)
        .open(dir.join("runs.redb"))
        .await
        .unwrap()
}

/// What the process does that is started by the test below: nothing when nobody started it.
#[tokio::test(flavor = "multi_thread")]
async fn the_process() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let began = std::env::var(BEGAN).unwrap().parse().unwrap();
    let engine = engine(Path::new(&dir), began).await;
    let ticks = engine.schedule("ticks");
    println!(
        "next {}",
        ticks.status().await.unwrap().next.unwrap().as_millis()
    );
    std::io::stdout().flush().unwrap();
    let end = Timestamp::from_millis(YEAR + FIRINGS * 1_000);
    while ticks.status().await.unwrap().next.unwrap() < end {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("done");
    engine.shutdown(Duration::from_secs(1)).await.unwrap();
}

// UA-63
#[tokio::test]
async fn after_kills_at_any_moment_each_firing_was_started_once() {
    let dir = tempfile::tempdir().unwrap();
    let began = Timestamp::from(SystemTime::now()).as_millis();
    let (mut kills, mut first) = (0, None);
    // Killed at the n-th step that is entered, n being something else each time.
    for turn in 0_u32.. {
        let began = began.to_string();
        let variables = [(DIR, dir.path().as_os_str()), (BEGAN, began.as_ref())];
        let done = until_killed(3 + turn * 7 % 19, &variables, |line| {
            if let Some((_, next)) = line.split_once("next ") {
                first.get_or_insert(next.parse::<i64>().unwrap());
            }
        });
        if done {
            break;
        }
        kills += 1;
        assert!(kills < 200, "it never ends");
    }
    assert!(kills >= 5, "it was killed {kills} times");

    let engine = engine(dir.path(), began).await;
    let ticks = engine.schedule("ticks");
    ticks.pause("it is enough").await.unwrap();
    let (last, _) = ticks.status().await.unwrap().last.unwrap();
    let expected: Vec<_> = (first.unwrap()..=last.as_millis()).step_by(1_000).collect();
    let mut calls = BTreeMap::<i64, u32>::new();
    // The last runs end yet.
    for _ in 0..500 {
        let rows: Vec<(String, i64)> = engine.values("fired/", None, 100_000).await.unwrap();
        calls = BTreeMap::new();
        for (_, at) in rows {
            *calls.entry(at).or_default() += 1;
        }
        if calls.len() >= expected.len() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    engine.shutdown(Duration::from_secs(1)).await.unwrap();
    let expected: BTreeMap<_, _> = expected.into_iter().map(|at| (at, 1)).collect();
    assert_eq!(calls, expected, "after {kills} kills");
}
