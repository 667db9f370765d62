//! What a preflight says of live runs is what the next drive of each finds, and it does nothing to them.

mod foretold;
mod report;
mod running;
mod undo;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use workflow::replay::RunKey;
use workflow::store::{
    Append, Appended, BoxFuture, Deleted, Deletion, Delivery, RedbStore, Rewrite, RunFilter, Store,
    StoreError,
};
use workflow::{
    BuildError, Channel, Engine, EngineBuilder, Error, Failure, Kind, ParkReason, PreflightFinding,
    PreflightReport, RunId, RunState, Timestamp, checkpoint, join, race, recv, rollback, sleep,
    step, version, workflow,
};
use workflow_tests::program::Random;
use workflow_tests::{Counter, SlowStore, World, late, pass, pass_on};

static PAID: Channel<u64> = Channel::new("paid");

#[step]
async fn open(calls: &Counter, n: u64) -> u64 {
    calls.hit();
    n
}

/// Takes its time, so that runs are cut off in it.
#[step(timeout = "none")]
async fn ship(calls: &Counter, item: u64) -> u64 {
    calls.hit();
    pass(120_000).await;
    item
}

#[step]
async fn audit(calls: &Counter) -> u64 {
    calls.hit();
    1
}

#[step]
async fn close(calls: &Counter, total: u64) -> Result<u64, std::io::Error> {
    calls.hit();
    Ok(total)
}

mod before {
    use super::*;

    #[workflow(name = "flow")]
    pub async fn flow(n: u64, #[state] calls: Counter) -> Result<u64, Failure> {
        let mut total = open(&calls, n).await?;
        'items: for item in 0..n % 4 {
            total += ship(&calls, item).await?;
            sleep!(gap, "10m").await;
        }
        if n % 3 == 0 {
            let won = race!(
                settle,
                paid = recv!(payment, PAID).await?,
                late = {
                    sleep!(window, "30m").await;
                    0
                }
            )
            .await?;
            total += won.value;
        }
        let (left, ()) = join!(
            both,
            left = audit(&calls).await?,
            right = {
                sleep!(hold, "20m").await;
            }
        )
        .await?;
        #[carry(total)]
        'pages: loop {
            total += left;
            #[step(name = "page")]
            ship(&calls, total).await?;
            if total > n + 8 {
                break;
            }
            sleep!(turn, "5m").await;
        }
        Ok(close(&calls, total).await?)
    }
}

mod after {
    use super::*;

    /// The code of today: some of what it does for some runs is other than it was.
    #[workflow(name = "flow")]
    pub async fn flow(n: u64, #[state] calls: Counter) -> Result<u64, Failure> {
        let mut total = open(&calls, n).await?;
        if n % 13 == 1 {
            // Inserted: only those that have not gone further go on.
            #[step(name = "check")]
            audit(&calls).await?;
        }
        'items: for item in 0..n % 4 {
            if n % 11 == 2 && item == 1 {
                // Inserted in the second iteration.
                #[step(name = "weigh")]
                audit(&calls).await?;
            }
            total += ship(&calls, item).await?;
            sleep!(gap, "10m").await;
        }
        assert!(n % 17 != 5, "not what was expected");
        if n % 3 == 0 {
            let won = race!(
                settle,
                paid = recv!(payment, PAID).await?,
                late = {
                    sleep!(window, "30m").await;
                    0
                }
            )
            .await?;
            total += won.value;
        }
        // Gated: it stops none.
        if version!(checked, 2).await >= 2 {
            #[step(name = "first")]
            audit(&calls).await?;
        }
        let (left, ()) = join!(
            both,
            left = {
                if n % 7 == 3 {
                    // Renamed.
                    #[step(name = "review")]
                    let found = audit(&calls).await?;
                    found
                } else {
                    audit(&calls).await?
                }
            },
            right = {
                sleep!(hold, "20m").await;
            }
        )
        .await?;
        #[carry(total)]
        'pages: loop {
            total += left;
            #[step(name = "page")]
            ship(&calls, total).await?;
            if total > n + 8 {
                break;
            }
            if n % 5 == 4 {
                sleep!(rest, "5m").await;
            } else {
                sleep!(turn, "5m").await;
            }
        }
        Ok(close(&calls, total).await?)
    }
}

mod retyped {
    use super::*;

    #[step]
    async fn open(calls: &Counter, n: u64) -> Vec<u64> {
        calls.hit();
        vec![n]
    }

    #[workflow(name = "flow")]
    pub async fn flow(n: u64, #[state] calls: Counter) -> Result<u64, Failure> {
        Ok(open(&calls, n).await?[0])
    }
}

mod widened {
    use super::*;

    #[workflow(name = "flow")]
    pub async fn flow(n: u64, more: u32, #[state] calls: Counter) -> Result<u64, Failure> {
        Ok(open(&calls, n).await? + u64::from(more))
    }
}

/// A store that may be read, and nothing else.
#[derive(Debug)]
struct ReadOnly(Arc<dyn Store>);

fn written() -> ! {
    panic!("something was written")
}

impl Store for ReadOnly {
    pass_on!(0: identity row load first due active inbox dead_letters answer value values list find close);

    fn allocate(&self) -> RunKey {
        written()
    }

    fn append(&self, _: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
        written()
    }

    fn cancel(&self, _: RunKey, _: Timestamp) -> BoxFuture<'_, Result<Appended, StoreError>> {
        written()
    }

    fn rewrite(&self, _: Vec<Rewrite>) -> BoxFuture<'_, Result<Appended, StoreError>> {
        written()
    }

    fn delete(&self, _: Vec<Deletion>) -> BoxFuture<'_, Result<Vec<Deleted>, StoreError>> {
        written()
    }

    fn put(
        &self,
        _: Vec<(String, Option<workflow::Payload>)>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        written()
    }

    fn deliver<'a>(
        &'a self,
        _: &'a RunId,
        _: workflow::replay::NewMessage,
        _: Timestamp,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<Delivery, StoreError>> {
        written()
    }
}

/// Everything there is of every run, as the store would write it.
async fn bytes(store: &dyn Store) -> Vec<u8> {
    let filter = RunFilter {
        limit: usize::MAX - 1,
        ..RunFilter::default()
    };
    let mut bytes = Vec::new();
    for row in store.list(&filter).await.unwrap().rows {
        workflow::store::encoding::encode_row(&row, &mut bytes);
        for record in store.load(row.key).await.unwrap().unwrap().history {
            workflow::store::encoding::encode_record(&record, &mut bytes);
        }
        for message in store.inbox(row.key, 0, 1_000).await.unwrap() {
            bytes.extend_from_slice(&message.payload.bytes);
        }
    }
    bytes
}

/// A builder over this world whose store may only be read.
fn reading(world: &World, code: u64) -> EngineBuilder {
    let below = Arc::<workflow::MemoryStore>::clone(&world.store);
    let builder = Engine::builder().store(ReadOnly(below));
    builder.clock(world.clock()).code_id(code)
}

/// So many runs of the code of before, each cut off somewhere.
async fn many(runs: u64, calls: &Counter) -> World {
    let world = World::new();
    let builder = world.engine().state(calls.clone()).workflow(before::flow);
    let engine = builder.in_memory(1_000_000).build().await.unwrap();
    let mut random = Random::new(7);
    // Some last, at most, for two and a half hours.
    let pause = 9_000_000 / runs.max(1);
    for n in 0..runs {
        let run = engine
            .start(format!("run-{n}"), before::flow(n))
            .await
            .unwrap();
        if random.percent(30) {
            run.send(&PAID, &1).await.unwrap();
        }
        if random.percent(2) {
            run.evict(Duration::ZERO);
        }
        pass(random.below(2 * pause + 1)).await;
    }
    drop(engine);
    world.crash()
}

/// Every run that would stop or stays stopped, with the reason.
fn foretold(report: &PreflightReport) -> BTreeMap<String, ParkReason> {
    let findings = report.findings.iter();
    findings
        .flat_map(|finding| {
            finding
                .examples
                .iter()
                .map(|id| (id.to_string(), finding.reason))
        })
        .collect()
}

async fn rows(world: &World, state: Option<RunState>) -> Vec<workflow::store::RunRow> {
    let filter = RunFilter {
        states: state.into_iter().collect(),
        limit: usize::MAX - 1,
        ..RunFilter::default()
    };
    world.store.list(&filter).await.unwrap().rows
}

/// The one finding of a report.
fn only(report: &PreflightReport) -> &PreflightFinding {
    let [finding] = &report.findings[..] else {
        panic!("{report}");
    };
    finding
}
