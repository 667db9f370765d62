//! durare. `DURARE_STORE` is `sqlite` (its default: WAL, `synchronous=NORMAL`), `sqlite-full` (`synchronous=FULL`: no commit is lost
//! in a power cut), or the address of a Postgres database.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use durare::{
    DurableContext, DurableEngine, Error as DurareError, PostgresProvider, STATUS_SUCCESS,
    SqliteProvider, StateProvider, WorkflowHandle, WorkflowOptions,
};
use kit::{Error, Peer, at_the_end, effect, step_begins, step_ended};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

async fn steps(context: DurableContext, (run, n): (u64, u64)) -> Result<u64, DurareError> {
    let mut sum = 0;
    for i in 0..n {
        let since = step_begins();
        sum += context
            .step("s", || async { Ok::<_, DurareError>(effect(run, i)) })
            .await?;
        step_ended(since);
    }
    at_the_end();
    Ok(sum)
}

async fn sleeper(context: DurableContext, (run,): (u64,)) -> Result<u64, DurareError> {
    context
        .step("s", || async { Ok::<_, DurareError>(effect(run, 0)) })
        .await?;
    context.sleep(Duration::from_secs(3600)).await?;
    Ok(0)
}

async fn store(dir: &Path) -> Result<Arc<dyn StateProvider>, Error> {
    let file = dir.join("d.db");
    let choice = std::env::var("DURARE_STORE").unwrap_or_else(|_| "sqlite".to_owned());
    Ok(match choice.as_str() {
        "sqlite" => {
            Arc::new(SqliteProvider::connect(&format!("sqlite://{}", file.display())).await?)
        }
        "sqlite-full" => {
            let options = SqliteConnectOptions::new()
                .filename(file)
                .create_if_missing(true)
                .foreign_keys(true)
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full)
                .busy_timeout(Duration::from_secs(5));
            let pool = SqlitePoolOptions::new()
                .max_connections(5)
                .connect_with(options)
                .await?;
            Arc::new(SqliteProvider::from_pool(pool))
        }
        address => Arc::new(PostgresProvider::connect(address).await?),
    })
}

struct Durare(DurableEngine);

impl Peer for Durare {
    type Run = WorkflowHandle<u64>;

    async fn open(dir: &Path) -> Result<Self, Error> {
        let mut engine = DurableEngine::new(store(dir).await?).await?;
        engine.register("steps", steps);
        engine.register("sleeper", sleeper);
        Ok(Self(engine))
    }

    async fn start(&self, run: u64, n: u64) -> Result<Self::Run, Error> {
        let id = WorkflowOptions::with_id(run.to_string());
        Ok(self.0.start::<_, u64>("steps", (run, n), id).await?)
    }

    async fn end(&self, run: Self::Run) -> Result<(), Error> {
        run.await?;
        Ok(())
    }

    async fn park(&self, run: u64) -> Result<(), Error> {
        let id = WorkflowOptions::with_id(run.to_string());
        self.0.start::<_, u64>("sleeper", (run,), id).await?;
        Ok(())
    }

    async fn wake(&self) -> Result<(), Error> {
        self.0.recover().await?;
        Ok(())
    }

    async fn resume(&self, runs: u64) -> Result<u64, Error> {
        let found = self.0.recover().await?;
        for run in 0..runs {
            let run = self.0.retrieve_workflow::<u64>(&run.to_string()).await?;
            // The handle of a recovered run looks every 100 ms; this looks more often.
            while run.get_status().await?.status != STATUS_SUCCESS {
                tokio::time::sleep(Duration::from_micros(500)).await;
            }
        }
        Ok(found as u64)
    }
}

fn main() -> ExitCode {
    kit::main::<Durare>()
}
