//! dbos, the official SDK for Rust. It has Postgres only: `DBOS_STORE` is the address of a database.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use dbos::{Config, DBOS, EngineOnly, StartOptions, WorkflowHandle, WorkflowRef};
use kit::{Error, Peer, at_the_end, effect, step_begins, step_ended};

async fn steps((run, n): (u64, u64)) -> dbos::Result<u64> {
    let mut sum = 0;
    for i in 0..n {
        let since = step_begins();
        sum += dbos::step("s", move || async move { dbos::Result::Ok(effect(run, i)) }).await?;
        step_ended(since);
    }
    at_the_end();
    Ok(sum)
}

async fn sleeper((run,): (u64,)) -> dbos::Result<u64> {
    dbos::step("s", move || async move { dbos::Result::Ok(effect(run, 0)) }).await?;
    dbos::sleep::<EngineOnly>(Duration::from_secs(3600)).await?;
    Ok(0)
}

struct Dbos {
    engine: DBOS,
    steps: WorkflowRef<(u64, u64), u64, EngineOnly>,
    sleeper: WorkflowRef<(u64,), u64, EngineOnly>,
}

impl Peer for Dbos {
    type Run = WorkflowHandle<u64, EngineOnly>;

    async fn open(_dir: &Path) -> Result<Self, Error> {
        let address = std::env::var("DBOS_STORE")?;
        let engine = DBOS::new(Config {
            app_version: Some("1".to_owned()),
            outcome_poll_interval: Some(Duration::from_millis(10)),
            ..Config::new("bench", address)
        });
        let steps = engine.register_workflow("steps", steps)?;
        let sleeper = engine.register_workflow("sleeper", sleeper)?;
        engine.launch().await?;
        Ok(Self {
            engine,
            steps,
            sleeper,
        })
    }

    async fn start(&self, run: u64, n: u64) -> Result<Self::Run, Error> {
        let id = run.to_string();
        let options = StartOptions {
            workflow_id: Some(&id),
            ..StartOptions::default()
        };
        Ok(self.steps.start_with((run, n), options).await?)
    }

    async fn end(&self, run: Self::Run) -> Result<(), Error> {
        run.result().await?;
        Ok(())
    }

    async fn park(&self, run: u64) -> Result<(), Error> {
        self.sleeper.start((run,)).await?;
        Ok(())
    }

    async fn resume(&self, runs: u64) -> Result<u64, Error> {
        for run in 0..runs {
            let run = self
                .engine
                .retrieve_workflow::<u64, EngineOnly>(&run.to_string())?;
            run.result().await?;
        }
        Ok(runs)
    }
}

fn main() -> ExitCode {
    kit::main::<Dbos>()
}
