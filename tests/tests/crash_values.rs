//! Rows of an application in the engine's store, while its process is killed again and again.
//!
//! The test starts itself as the process that is killed.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![allow(clippy::print_stdout, reason = "the test reads it")]

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use workflow::replay::{Body, Record};
use workflow::{Engine, Failure, PutError, current_step, step, workflow};
use workflow_tests::mortal::until_killed;

const DIR: &str = "WORKFLOW_TEST_VALUES_DIR";
const RUNS: u32 = 4;
const STEPS: u32 = 60;

/// Says that it was entered, where a kill cannot take that back, and keeps a row that names this very call.
#[step]
async fn charge(run: u32, number: u32) -> Result<String, PutError> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let call = format!("{}-{call}", std::process::id());
    println!("entered {run} {number}");
    std::io::stdout().flush().unwrap();
    current_step().put(format!("charges/{run}/{number:03}"), &call)?;
    Ok(call)
}

#[workflow]
async fn charges(run: u32) -> Result<u32, Failure> {
    'all: for number in 0..STEPS {
        charge(run, number).await?;
    }
    Ok(run)
}

async fn engine(dir: &Path) -> Engine {
    Engine::builder()
        .workflow(charges)
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
    let engine = engine(Path::new(&dir)).await;
    for run in 0..RUNS {
        engine
            .start(format!("run-{run}"), charges(run))
            .await
            .unwrap();
    }
    for run in 0..RUNS {
        let run = engine.attach::<charges>(format!("run-{run}")).await;
        run.unwrap().result().await.unwrap();
    }
    println!("done");
    engine
        .shutdown(std::time::Duration::from_secs(1))
        .await
        .unwrap();
}

fn calls(history: &[Record]) -> Vec<String> {
    let outcomes = history.iter().filter_map(|record| match &record.body {
        Body::Ended(ended) => ended.outcome.as_ref().ok(),
        _ => None,
    });
    let calls = outcomes.filter_map(|payload| serde_json::from_slice(&payload.bytes).ok());
    calls.collect()
}

// UA-52
#[tokio::test]
async fn after_kills_at_any_moment_each_row_is_there_once_and_of_the_call_that_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let (mut kills, mut entered) = (0, 0);
    // Killed at the n-th step that is entered, n being something else each time.
    for turn in 0_u32.. {
        let done = until_killed(
            5 + turn * 7 % 23,
            &[(DIR, dir.path().as_os_str())],
            |line| {
                entered += u32::from(line.contains("entered"));
            },
        );
        if done {
            break;
        }
        kills += 1;
        assert!(kills < 200, "it never ends");
    }
    assert!(kills >= 5, "it was killed {kills} times");
    assert!(entered >= RUNS * STEPS);

    let engine = engine(dir.path()).await;
    for run in 0..RUNS {
        let handle = engine
            .attach::<charges>(format!("run-{run}"))
            .await
            .unwrap();
        let recorded = calls(&handle.history().await.unwrap());
        let prefix = format!("charges/{run}/");
        let rows: Vec<(String, String)> = engine.values(&prefix, None, 1_000).await.unwrap();
        let expected = recorded[..STEPS as usize].iter().enumerate();
        let expected =
            expected.map(|(number, call)| (format!("{prefix}{number:03}"), call.clone()));
        assert_eq!(rows, expected.collect::<Vec<_>>(), "run {run}");
    }
    engine
        .shutdown(std::time::Duration::from_secs(1))
        .await
        .unwrap();
}
