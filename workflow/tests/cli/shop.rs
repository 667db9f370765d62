//! A shop whose runs are in every state that matters, at an instant that never passes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use workflow::store::RunFilter;
use workflow::{
    Channel, Clock, Engine, Failure, RunState, Schedule, Timestamp, checkpoint, cron, race, recv,
    sleep, step, workflow,
};

pub static PAYMENT: Channel<u64> = Channel::new("payment");

/// An id that is hard on shells, terminals and file systems.
pub const ODD: &str = "żółw 'n $(x) 龜🐢\u{202e}";

/// 2035-01-01T00:00:00.000Z, for ever: what the command line writes by the computer's clock is in its past, and so due.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(2_051_222_400_000)
    }
}

/// How often something was charged.
#[derive(Debug, Clone, Default)]
pub struct Till(pub Arc<AtomicUsize>);

#[step(retries = 0)]
async fn charge(till: &Till, cents: u64) -> Result<String, std::io::Error> {
    till.0.fetch_add(1, Ordering::SeqCst);
    if cents == 0 {
        return Err(std::io::Error::other("nothing to charge"));
    }
    Ok(format!("charged {cents}"))
}

#[workflow]
pub async fn order(cents: u64, #[state] till: Till) -> Result<u64, Failure> {
    charge(&till, cents).await?;
    let won = race!(
        settle,
        paid = recv!(payment, PAYMENT).await?,
        expired = {
            sleep!(window, "30d").await;
            0
        }
    )
    .await?;
    Ok(won.value)
}

#[workflow]
pub async fn broken(#[state] till: Till) -> Result<(), Failure> {
    charge(&till, 7).await?;
    panic!("out of cheese\u{1b}[31m");
}

#[workflow]
pub async fn trip(#[state] till: Till) -> Result<(), Failure> {
    checkpoint!(begun);
    #[step(undo(refund))]
    charge(&till, 9).await?;
    sleep!(think, "30d").await;
    Ok(())
}

async fn refund(_: String, till: Till) -> Result<(), std::io::Error> {
    till.0.fetch_add(100, Ordering::SeqCst);
    Ok(())
}

/// A store with runs `done`, `waits`, `failed`, `broken`, `trip` and one that is odd, closed.
pub struct Shop {
    pub dir: TempDir,
    pub till: Till,
}

impl Shop {
    pub fn new() -> Self {
        let shop = Self {
            dir: TempDir::new().unwrap(),
            till: Till::default(),
        };
        shop.open(async |engine| {
            let done = engine.start("done", order(5)).await.unwrap();
            engine.send("done", &PAYMENT, &5).await.unwrap();
            assert_eq!(done.result().await.unwrap(), 5);
            engine.start("waits", order(6)).await.unwrap();
            let failed = engine.start("failed", order(0)).await.unwrap();
            failed.result().await.unwrap_err();
            let broken = engine.start("broken", broken()).await.unwrap();
            broken.result().await.unwrap_err();
            engine.start("trip", trip()).await.unwrap();
            engine.start(ODD, order(8)).await.unwrap();
            for id in ["waits", "trip", ODD] {
                until(&engine, id, RunState::Waiting).await;
            }
        });
        shop
    }

    pub fn store(&self) -> PathBuf {
        self.dir.path().join("orders.redb")
    }

    /// Lets the shop's own program at the store.
    pub fn open<T>(&self, work: impl AsyncFnOnce(Engine) -> T) -> T {
        open(&self.store(), &self.till, work)
    }

    pub fn charged(&self) -> usize {
        self.till.0.load(Ordering::SeqCst)
    }

    /// Everything that the store says of its runs, but for how often it was opened.
    pub fn runs(&self) -> String {
        let rows = self.open(async |engine| engine.list(&RunFilter::default()).await.unwrap().rows);
        format!("{rows:#?}")
    }
}

fn open<T>(path: &Path, till: &Till, work: impl AsyncFnOnce(Engine) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let engine = Engine::builder()
            .workflow(order)
            .workflow(broken)
            .workflow(trip)
            .schedule(Schedule::new("rent", cron!("0 0 1 * *"), |_| order(7)));
        let engine = engine
            .state(till.clone())
            .clock(Still)
            .code_id(1)
            .open(path)
            .await
            .unwrap();
        let done = work(engine.clone());
        let done = tokio::time::timeout(Duration::from_secs(30), done).await;
        let done = done.expect("it does not take half a minute");
        engine.shutdown(Duration::from_secs(1)).await.unwrap();
        done
    })
}

/// Waits until the run is in this state.
pub async fn until(engine: &Engine, id: &str, state: RunState) {
    while engine.status(id).await.unwrap().state != state {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
