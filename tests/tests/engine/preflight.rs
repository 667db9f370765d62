//! What a preflight says of live runs is what the next drive of each finds, and it does nothing to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use workflow::replay::RunKey;
use workflow::store::{
    Append, Appended, BoxFuture, Delivery, RedbStore, Rewrite, RunFilter, Store, StoreError,
};
use workflow::{
    Channel, Engine, EngineBuilder, Error, Failure, Kind, ParkReason, PreflightReport, Record,
    RunId, RunState, Timestamp, checkpoint, join, race, recv, sleep, step, version, workflow,
};
use workflow_tests::program::Random;
use workflow_tests::{Counter, World, pass, pass_on};

static PAID: Channel<u64> = Channel::new("paid");

#[step]
async fn open(calls: &Counter, n: u64) -> u64 {
    calls.hit();
    n
}

#[step]
async fn ship(calls: &Counter, item: u64) -> u64 {
    calls.hit();
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
        // Gated: it stops none.
        if version!(checked, 2).await >= 2 {
            #[step(name = "first")]
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

impl ReadOnly {
    fn written(&self) -> ! {
        panic!("something was written")
    }
}

impl Store for ReadOnly {
    pass_on!(0: identity row load first due active inbox dead_letters answer list find close);

    fn allocate(&self) -> RunKey {
        self.written()
    }

    fn append(&self, _: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
        self.written()
    }

    fn cancel(&self, _: RunKey, _: Timestamp) -> BoxFuture<'_, Result<Appended, StoreError>> {
        self.written()
    }

    fn rewrite(&self, _: Vec<Rewrite>) -> BoxFuture<'_, Result<Appended, StoreError>> {
        self.written()
    }

    fn deliver<'a>(
        &'a self,
        _: &'a RunId,
        _: workflow::replay::NewMessage,
        _: Timestamp,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<Delivery, StoreError>> {
        self.written()
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
        state,
        limit: usize::MAX - 1,
        ..RunFilter::default()
    };
    world.store.list(&filter).await.unwrap().rows
}

// SEMANTICS invariant 17; UA-03: nothing of the new code's steps has run when a divergence is told.
async fn what_is_foretold_is_what_happens(runs: u64) {
    let (old, new) = (Counter::default(), Counter::default());
    let world = many(runs, &old).await;
    let before = bytes(&*world.store).await;

    let builder = reading(&world, 2).state(new.clone()).workflow(after::flow);
    let report = builder.preflight().examples(usize::MAX).await.unwrap();
    let foretold = foretold(&report);
    assert_eq!(new.count(), 0, "a step was run");
    assert_eq!(bytes(&*world.store).await, before);
    let live = rows(&world, None).await;
    let live: Vec<_> = live
        .into_iter()
        .filter(|row| !row.state.is_final())
        .collect();
    assert_eq!(report.runs, live.len() as u64);
    assert_eq!(report.fits + report.would_stop(), report.runs);
    assert_eq!(report.would_stop(), foretold.len() as u64);

    // Driven: every one of them, also those that would wait for long.
    let world = world.crash();
    let builder = world.engine().code_id(2).state(new.clone());
    let engine = builder
        .workflow(after::flow)
        .in_memory(1_000_000)
        .build()
        .await
        .unwrap();
    for row in &live {
        engine.resume(row.id.as_str()).await.unwrap();
    }
    pass(1).await;
    let mut parked = BTreeMap::new();
    for row in rows(&world, Some(RunState::Parked)).await {
        parked.insert(row.id.to_string(), row.parked.unwrap().reason);
    }
    assert_eq!(parked, foretold);
    drop(engine);

    // All of it was tried: runs that go on and runs that do not, for each reason and each kind of edit.
    if runs >= 1_000 {
        let at = |path: &str| {
            let mut findings = report.findings.iter();
            findings.any(|finding| {
                let location = finding.location.as_ref();
                location.is_some_and(|location| location.path() == path)
            })
        };
        for path in ["check", "items[]/weigh", "both/left/review", "pages[]/rest"] {
            assert!(at(path), "nothing at {path}:\n{report}");
        }
        assert!(report.fits > runs / 10, "{report}");
        assert!(
            parked
                .values()
                .any(|reason| *reason == ParkReason::Panicked)
        );
    }
}

// UA-09: the report is of the first thing that does not fit.
#[tokio::test(start_paused = true)]
async fn a_preflight_foretells_exactly_which_of_many_runs_stop() {
    what_is_foretold_is_what_happens(2_000).await;
}

#[tokio::test(start_paused = true)]
#[ignore = "takes longer; `cargo test --release -- --ignored preflight`"]
async fn a_preflight_foretells_exactly_which_of_ten_thousand_runs_stop() {
    what_is_foretold_is_what_happens(10_000).await;
}
