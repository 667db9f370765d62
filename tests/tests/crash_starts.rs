//! Runs that begin later, in the order of their priorities, and so many in a time, while their process is killed again and again.
//!
//! The test starts itself as the process that is killed. Time is paused there, and goes on in the next process where it stood when the last
//! one said something.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![allow(clippy::print_stdout, reason = "the test reads it")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use workflow::store::{RunFilter, Store};
use workflow::{
    Clock, Engine, Failure, Rate, RedbStore, RunState, Timestamp, TokioClock, step, workflow,
};
use workflow_tests::mortal::until_killed;

const DIR: &str = "WORKFLOW_TEST_STARTS_DIR";
const NOW: &str = "WORKFLOW_TEST_STARTS_NOW";
const RUNS: u32 = 40;
const BEGINS: usize = 4;
const INTERVAL: Duration = Duration::from_mins(1);

/// Says that it was entered, where a kill cannot take that back.
#[step(timeout = "none")]
async fn enter(run: u32, clock: &TokioClock) {
    println!("entered {run} {}", clock.now().as_millis());
    std::io::stdout().flush().unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
}

#[workflow]
async fn entered(run: u32, #[state] clock: TokioClock) -> Result<(), Failure> {
    enter(run, &clock).await?;
    #[step(name = "again")]
    enter(run, &clock).await
}

/// Each third run is not to begin before a time of its own.
fn not_before(run: u32) -> Option<i64> {
    run.is_multiple_of(3).then(|| i64::from(run) * 15_000)
}

/// What the process does that is started by the test below: nothing when nobody started it.
#[tokio::test(start_paused = true)]
async fn the_process() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let now = std::env::var(NOW).unwrap().parse().unwrap();
    let clock = TokioClock::starting_at(Timestamp::from_millis(now));
    let store = RedbStore::open(Path::new(&dir).join("runs.redb")).unwrap();
    let engine = Engine::builder()
        .workflow(entered)
        .rate(entered, Rate::per(BEGINS, INTERVAL))
        .state(clock)
        .clock(clock)
        .code_id(1)
        .store(store);
    let engine = engine.build().await.unwrap();
    for run in 0..RUNS {
        let mut call = entered(run).priority(i32::from(run.is_multiple_of(7)));
        if let Some(time) = not_before(run) {
            call = call.not_before(Timestamp::from_millis(time));
        }
        engine.start(format!("run-{run}"), call).await.unwrap();
    }
    for run in 0..RUNS {
        let run = engine.attach::<entered>(format!("run-{run}")).await;
        run.unwrap().result().await.unwrap();
    }
    println!("done");
    engine.shutdown(Duration::from_secs(1)).await.unwrap();
}

/// The begins that the store has: when, by run.
async fn begins(store: &RedbStore) -> Vec<(u64, i64)> {
    let values = store.values("\0begun/", None, 1_000).await.unwrap();
    let begins = values.iter().map(|(key, _)| {
        let mut parts = key.rsplit('/');
        let mut number = || u64::from_str_radix(parts.next().unwrap(), 16).unwrap();
        let (run, at) = (number(), number());
        (run, at.cast_signed())
    });
    begins.collect()
}

#[tokio::test]
async fn after_kills_at_any_moment_no_rate_was_broken_and_no_run_begun_early_or_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("runs.redb");
    // When each run was begun: as the store says, or as it said itself when it was first entered in the life that began it.
    let mut begun: BTreeMap<u64, i64> = BTreeMap::new();
    let mut now = 0_i64;
    let mut kills = 0;
    for turn in 0_u32.. {
        let mut entered = Vec::new();
        let then = now.to_string();
        let variables = [(DIR, dir.path().as_os_str()), (NOW, then.as_ref())];
        let done = until_killed(1 + turn * 7 % 13, &variables, |line| {
            // The test's own name stands before what comes first.
            if let Some(at) = line.find("entered ") {
                let mut words = line[at..].split(' ').skip(1);
                let run: u32 = words.next().unwrap().parse().unwrap();
                now = words.next().unwrap().parse().unwrap();
                entered.push((run, now));
            }
        });
        let store = RedbStore::open(&file).unwrap();
        for (run, at) in begins(&store).await {
            begun.entry(run).or_insert(at);
        }
        let rows = store.list(&RunFilter::default()).await.unwrap().rows;
        store.close().await.unwrap();
        for (run, at) in entered {
            let id = format!("run-{run}");
            let row = rows.iter().find(|row| row.id.as_str() == id).unwrap();
            begun.entry(row.key.0).or_insert(at);
        }
        if done {
            break;
        }
        kills += 1;
        assert!(kills < 200, "it never ends");
    }
    assert!(kills >= 5, "it was killed {kills} times");

    let store = RedbStore::open(&file).unwrap();
    let rows = store.list(&RunFilter::default()).await.unwrap().rows;
    assert_eq!(rows.len(), RUNS as usize);
    for row in &rows {
        assert_eq!(row.state, RunState::Completed, "{}", row.id);
        let run: u32 = row.id.as_str()["run-".len()..].parse().unwrap();
        let at = begun[&row.key.0];
        assert!(Some(at) >= not_before(run), "{run} began at {at}");
        assert_eq!(row.priority, i32::from(run.is_multiple_of(7)));
    }
    let mut times: Vec<_> = begun.into_values().collect();
    times.sort_unstable();
    assert_eq!(times.len(), RUNS as usize);
    for window in times.windows(BEGINS + 1) {
        assert!(
            window[BEGINS] - window[0] >= 60_000,
            "{window:?} of {times:?}"
        );
    }
}
