//! duroxide, on its SQLite store (WAL, `synchronous=NORMAL`). `DUROXIDE_TUNED=1` for four workers of each kind that poll every
//! millisecond, where the defaults are two and 100 ms.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
};
use kit::{Error, Peer, at_the_end, effect};

const LONG: Duration = Duration::from_secs(600);

async fn step(_context: ActivityContext, input: String) -> Result<String, String> {
    let (run, i) = two_numbers(&input)?;
    Ok(effect(run, i).to_string())
}

/// A step is not timed here: the code of a run begins anew for each of its steps.
async fn steps(context: OrchestrationContext, input: String) -> Result<String, String> {
    let (run, n) = two_numbers(&input)?;
    let mut sum = 0;
    for i in 0..n {
        let outcome = context
            .schedule_activity("step", format!("{run} {i}"))
            .await?;
        sum += outcome.parse::<u64>().map_err(|error| error.to_string())?;
    }
    at_the_end();
    Ok(sum.to_string())
}

async fn sleeper(context: OrchestrationContext, input: String) -> Result<String, String> {
    context
        .schedule_activity("step", format!("{input} 0"))
        .await?;
    context.schedule_timer(Duration::from_secs(3600)).await;
    Ok(String::new())
}

fn two_numbers(text: &str) -> Result<(u64, u64), String> {
    let numbers = text.split_once(' ').and_then(|(one, other)| {
        let (one, other) = (one.parse().ok()?, other.parse().ok()?);
        Some((one, other))
    });
    numbers.ok_or_else(|| format!("not two numbers: {text}"))
}

struct Duroxide {
    client: Client,
    _runtime: Arc<Runtime>,
}

impl Peer for Duroxide {
    type Run = String;

    async fn open(dir: &Path) -> Result<Self, Error> {
        let file = dir.join("d.db");
        if !file.exists() {
            std::fs::File::create(&file)?;
        }
        let address = format!("sqlite:{}", file.display());
        let store = Arc::new(SqliteProvider::new(&address, None).await?);
        let activities = ActivityRegistry::builder().register("step", step).build();
        let orchestrations = OrchestrationRegistry::builder()
            .register("steps", steps)
            .register("sleeper", sleeper)
            .build();
        let mut options = RuntimeOptions::default();
        if std::env::var_os("DUROXIDE_TUNED").is_some() {
            options.dispatcher_min_poll_interval = Duration::from_millis(1);
            options.orchestration_concurrency = 4;
            options.worker_concurrency = 4;
        }
        let runtime =
            Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
        Ok(Self {
            client: Client::new(store),
            _runtime: runtime,
        })
    }

    async fn start(&self, run: u64, n: u64) -> Result<Self::Run, Error> {
        let id = run.to_string();
        let input = format!("{run} {n}");
        self.client
            .start_orchestration(&id, "steps", input)
            .await
            .map_err(|error| format!("{error:?}"))?;
        Ok(id)
    }

    async fn end(&self, run: Self::Run) -> Result<(), Error> {
        match self.client.wait_for_orchestration(&run, LONG).await {
            Ok(OrchestrationStatus::Completed { .. }) => Ok(()),
            other => Err(format!("run {run}: {other:?}").into()),
        }
    }

    async fn park(&self, run: u64) -> Result<(), Error> {
        self.client
            .start_orchestration(&run.to_string(), "sleeper", run.to_string())
            .await
            .map_err(|error| format!("{error:?}"))?;
        Ok(())
    }

    async fn resume(&self, runs: u64) -> Result<u64, Error> {
        for run in 0..runs {
            self.end(run.to_string()).await?;
        }
        Ok(runs)
    }
}

fn main() -> ExitCode {
    kit::main::<Duroxide>()
}
