//! memable, on its one persistent store: redb, a durable commit for each step.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use kit::{Error, Peer, at_the_end, effect, step_begins, step_ended};
use memable::{Context, Engine, EngineError, Invocation, WorkflowState};

async fn steps(context: Context) -> Result<(), EngineError> {
    let (run, n): (u64, u64) = context.input()?.expect("a run has an input");
    let mut sum = 0;
    for i in 0..n {
        let since = step_begins();
        sum += context
            .step(&format!("s{i}"))
            .run(async move || Ok(effect(run, i)))
            .await?;
        step_ended(since);
    }
    at_the_end();
    assert_eq!(sum, n * n.saturating_sub(1) / 2);
    Ok(())
}

async fn sleeper(context: Context) -> Result<(), EngineError> {
    let run: u64 = context.input()?.expect("a run has an input");
    let _: u64 = context
        .step("s0")
        .run(async move || Ok(effect(run, 0)))
        .await?;
    context.timer("nap", Duration::from_secs(3600))?;
    Ok(())
}

struct Memable {
    engine: Engine,
    asleep: Mutex<Vec<Invocation>>,
}

impl Peer for Memable {
    type Run = Invocation;

    async fn open(dir: &Path) -> Result<Self, Error> {
        let mut engine = Engine::builder()
            .resume_on_start(false)
            .open(dir.join("m.redb"))?
            .build();
        engine.register("steps", steps);
        engine.register("sleeper", sleeper);
        engine.start().await?;
        Ok(Self {
            engine,
            asleep: Mutex::default(),
        })
    }

    async fn start(&self, run: u64, n: u64) -> Result<Self::Run, Error> {
        Ok(self.engine.invoke("steps").input((run, n)).await?)
    }

    async fn end(&self, run: Self::Run) -> Result<(), Error> {
        match run.wait().await {
            WorkflowState::Completed(_) => Ok(()),
            other => Err(other.to_string().into()),
        }
    }

    async fn park(&self, run: u64) -> Result<(), Error> {
        let run = self.engine.invoke("sleeper").input(run).await?;
        self.asleep.lock().expect("no holder panics").push(run);
        Ok(())
    }

    async fn parked(&self, _runs: u64) -> Result<(), Error> {
        let runs = std::mem::take(&mut *self.asleep.lock().expect("no holder panics"));
        for run in runs {
            match run.wait().await {
                WorkflowState::Suspended { .. } => {}
                other => return Err(other.to_string().into()),
            }
        }
        Ok(())
    }

    async fn wake(&self) -> Result<(), Error> {
        for (id, _) in self.engine.list_instances("sleeper")? {
            self.engine.resume("sleeper", id).await?;
        }
        Ok(())
    }

    async fn resume(&self, _runs: u64) -> Result<u64, Error> {
        let mut found = Vec::new();
        for (id, _) in self.engine.list_instances("steps")? {
            found.push(self.engine.resume("steps", id).await?);
        }
        let count = found.len() as u64;
        for run in found {
            self.end(run).await?;
        }
        Ok(count)
    }
}

fn main() -> ExitCode {
    kit::main::<Memable>()
}
