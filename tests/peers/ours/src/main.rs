//! The library. `OURS_RELAXED=1` for a store that does not wait for the disk.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use kit::{Error, Peer, at_the_end, effect, step_begins, step_ended};
use workflow::store::RedbStore;
use workflow::{Engine, Failure, RunHandle, sleep, step, workflow};

#[step]
async fn one(run: u64, i: u64) -> u64 {
    effect(run, i)
}

#[workflow]
async fn steps(run: u64, n: u64) -> Result<u64, Failure> {
    let mut sum = 0;
    'all: for i in 0..n {
        let since = step_begins();
        sum += one(run, i).await?;
        step_ended(since);
    }
    at_the_end();
    Ok(sum)
}

#[workflow]
async fn sleeper(run: u64) -> Result<u64, Failure> {
    let x = one(run, 0).await?;
    sleep!(nap, "1h").await;
    Ok(x)
}

struct Ours(Engine);

impl Peer for Ours {
    type Run = RunHandle<steps>;

    async fn open(dir: &Path) -> Result<Self, Error> {
        let mut store = RedbStore::builder();
        if std::env::var_os("OURS_RELAXED").is_some() {
            store = store.relaxed(Duration::from_millis(100));
        }
        let engine = Engine::builder()
            .workflow(steps)
            .workflow(sleeper)
            .store(store.open(dir.join("w.redb"))?)
            .build()
            .await?;
        Ok(Self(engine))
    }

    async fn start(&self, run: u64, n: u64) -> Result<Self::Run, Error> {
        Ok(self.0.start(run.to_string(), steps(run, n)).await?)
    }

    async fn end(&self, run: Self::Run) -> Result<(), Error> {
        run.result().await?;
        Ok(())
    }

    async fn park(&self, run: u64) -> Result<(), Error> {
        self.0.start(run.to_string(), sleeper(run)).await?;
        Ok(())
    }

    async fn parked(&self, _runs: u64) -> Result<(), Error> {
        while self.0.in_memory() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    async fn resume(&self, runs: u64) -> Result<u64, Error> {
        let mut found = 0;
        for run in 0..runs {
            // The kill may have come before this run was started.
            if let Ok(run) = self.0.attach::<steps>(run.to_string()).await {
                run.result().await?;
                found += 1;
            }
        }
        Ok(found)
    }
}

fn main() -> ExitCode {
    kit::main::<Ours>()
}
