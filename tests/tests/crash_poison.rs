//! A step that ends its process, again and again: its run ends as failed, and the runs beside it are done all the same.
//!
//! The test starts itself as the process that is killed.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use workflow::{Engine, Error, Failure, FailureKind, RunState, sleep, step, workflow};

const DIR: &str = "WORKFLOW_TEST_POISON_DIR";

#[step(retries = 2)]
async fn poison() -> u32 {
    std::process::abort();
}

#[step]
async fn slow(millis: u64) -> u64 {
    tokio::time::sleep(Duration::from_millis(millis)).await;
    millis
}

#[workflow]
async fn deadly(first: bool) -> Result<u32, Failure> {
    if first {
        slow(1).await?;
    }
    sleep!(nap, "20ms").await;
    poison().await
}

#[workflow]
async fn harmless(steps: u32) -> Result<u64, Failure> {
    let mut sum = 0;
    'steps: for _ in 0..steps {
        sum += slow(40).await?;
    }
    Ok(sum)
}

async fn engine(dir: &Path) -> Engine {
    Engine::builder()
        .workflow(deadly)
        .workflow(harmless)
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
    let bad = engine.start("bad", deadly(true)).await.unwrap();
    for run in 0..5 {
        let id = format!("good-{run}");
        engine.start(id, harmless(6)).await.unwrap();
    }
    for run in 0..5 {
        let good = engine
            .attach::<harmless>(format!("good-{run}"))
            .await
            .unwrap();
        assert_eq!(good.result().await.unwrap(), 240);
    }
    // The poison is what is left; its process ends in it, or it has ended.
    let _ = bad.result().await;
    engine.shutdown(Duration::from_secs(1)).await.unwrap();
}

// U19
#[tokio::test]
async fn a_step_that_kills_the_process_fails_its_run_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut deaths = 0;
    loop {
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_process", "--quiet"])
            .env(DIR, dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        if status.success() {
            break;
        }
        deaths += 1;
        assert!(deaths < 12, "the poison is never given up");
    }
    assert!(deaths >= 3, "it was tried {deaths} times");

    let engine = engine(dir.path()).await;
    let bad = engine.attach::<deadly>("bad").await.unwrap();
    match bad.result().await {
        Err(Error::Failed(failure)) => {
            assert_eq!(failure.kind(), FailureKind::Interrupted);
            assert!(failure.attempts() >= 3, "{}", failure.attempts());
            assert_eq!(failure.location().to_string(), "poison");
        }
        other => panic!("{other:?}"),
    }
    for run in 0..5 {
        let status = engine.status(format!("good-{run}")).await.unwrap();
        assert_eq!(status.state, RunState::Completed);
    }
    engine.shutdown(Duration::from_secs(1)).await.unwrap();
}
