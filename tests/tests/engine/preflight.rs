//! What a preflight says of live runs is what the next drive of each finds, and it does nothing to them.

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
#[ignore = "takes longer: `.ci/run` runs it"]
async fn a_preflight_foretells_exactly_which_of_ten_thousand_runs_stop() {
    what_is_foretold_is_what_happens(10_000).await;
}

mod other {
    use super::*;

    #[workflow]
    pub async fn other(n: u64) -> u64 {
        sleep!(pause, "1h").await;
        n
    }

    #[workflow]
    pub async fn done(n: u64) -> u64 {
        n
    }
}

mod saga {
    use super::*;

    async fn take_back(_n: u64) -> Result<(), std::io::Error> {
        Err(std::io::Error::other("not now"))
    }

    #[workflow]
    pub async fn saga(#[state] calls: Counter) -> Result<u64, Failure> {
        checkpoint!(begun);
        #[step(undo(take_back))]
        let n = open(&calls, 3).await?;
        #[step(name = "never", retries = 0)]
        std::future::ready(Err::<u64, std::io::Error>(std::io::Error::other("full"))).await?;
        Ok(n)
    }
}

mod saga_without {
    use super::*;

    #[workflow(name = "saga")]
    pub async fn saga(#[state] calls: Counter) -> Result<u64, Failure> {
        checkpoint!(begun);
        let n = open(&calls, 3).await?;
        // What is new after the gate is not foretold: here it does not end.
        #[step(name = "never", retries = 0, timeout = "none")]
        std::future::pending::<Result<u64, std::io::Error>>().await?;
        Ok(n)
    }
}

mod gated {
    use super::*;

    #[workflow]
    pub async fn gate(newest: u32) -> u32 {
        let way = version!(way, 3).await;
        sleep!(pause, "1h").await;
        way + newest
    }
}

mod ungated {
    use super::*;

    #[workflow(name = "gate")]
    pub async fn gate(newest: u32) -> u32 {
        let way = version!(way, 2).await;
        sleep!(pause, "1h").await;
        way + newest
    }
}

/// The one finding of a report.
fn only(report: &PreflightReport) -> &PreflightFinding {
    let [finding] = &report.findings[..] else {
        panic!("{report}");
    };
    finding
}

// UA-43 UA-45
#[tokio::test(start_paused = true)]
async fn the_report_groups_by_cause_and_says_where_in_the_source() {
    let calls = Counter::default();
    let world = World::new();
    let builder = world.engine().state(calls.clone()).workflow(before::flow);
    let engine = builder.build().await.unwrap();
    for n in [1, 5, 9, 13, 2, 6] {
        // All in the first gap: of one iteration or another.
        engine
            .start(format!("o-{n}"), before::flow(n))
            .await
            .unwrap();
        pass(400_000).await;
    }
    drop(engine);
    let world = world.crash();
    let counted = calls.count();
    let run = || reading(&world, 2).state(calls.clone());

    let report = run()
        .workflow(retyped::flow)
        .preflight()
        .examples(2)
        .await
        .unwrap();
    let finding = only(&report);
    assert_eq!((finding.reason, finding.runs), (ParkReason::Decode, 6));
    assert_eq!(finding.examples.len(), 2);
    assert_eq!(finding.location.as_ref().unwrap().to_string(), "open");
    let site = finding.site.unwrap();
    assert!((site.name, site.kind) == ("open", Kind::Call) && site.file.ends_with("preflight.rs"));
    assert!(
        finding.detail.contains("alloc::vec::Vec<u64>"),
        "{}",
        finding.detail
    );

    let report = run().workflow(widened::flow).preflight().await.unwrap();
    let finding = only(&report);
    assert_eq!((finding.reason, finding.runs), (ParkReason::Decode, 6));
    assert!(finding.detail.contains("`more`"), "{}", finding.detail);

    let report = run().workflow(other_gap::flow).preflight().await.unwrap();
    let finding = only(&report);
    assert_eq!((finding.reason, finding.runs), (ParkReason::Diverged, 6));
    let divergence = finding.divergence.as_ref().unwrap();
    assert_eq!(divergence.location.path(), "items[]/pause");
    let told = report.to_string();
    for said in [
        "this code stops 6 runs (6 live runs",
        "0 runs go on with this code",
        "6 runs of `flow` would stop: diverged at `items[]/pause`",
        "preflight.rs:",
        "o-1, o-5, o-9 and 3 more",
        "recorded: sleep `items[0]/gap`",
        "it is now: nowhere in the code",
        "ways out:",
    ] {
        assert!(told.contains(said), "`{said}` is not in:\n{told}");
    }
    assert_eq!((report.code(), report.is_clean()), (2, false));
    assert_eq!(calls.count(), counted, "a step was run");
}

mod other_gap {
    use super::*;

    #[workflow(name = "flow")]
    pub async fn flow(n: u64, #[state] calls: Counter) -> Result<u64, Failure> {
        let mut total = open(&calls, n).await?;
        'items: for item in 0..n % 4 {
            total += ship(&calls, item).await?;
            sleep!(pause, "10m").await;
        }
        Ok(total)
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_judged_is_said_and_has_a_code_of_its_own() {
    let calls = Counter::default();
    let world = World::new();
    let builder = world.engine().state(calls.clone()).workflow(before::flow);
    let engine = builder
        .workflow(other::other)
        .workflow(other::done)
        .build()
        .await
        .unwrap();
    engine.start("a", before::flow(1)).await.unwrap();
    engine.start("b", other::other(1)).await.unwrap();
    engine.run("c", other::done(1)).await.unwrap();
    pass(10).await;
    drop(engine);
    let world = world.crash();

    // `done` has no live run, and need not be there.
    let report = reading(&world, 2)
        .workflow(before::flow)
        .preflight()
        .await
        .unwrap();
    assert_eq!((report.runs, report.code(), report.would_stop()), (2, 3, 1));
    assert!(!report.is_clean() && !report.is_whole());
    let [missing] = &report.missing_states[..] else {
        panic!("{report}");
    };
    assert_eq!(
        (missing.workflow, missing.parameter, missing.runs),
        ("flow", "calls", 1)
    );
    assert_eq!(only(&report).reason, ParkReason::Unregistered);
    let told = report.to_string();
    for said in [
        "not every run could be judged",
        "1 run of `flow` not looked at: it needs `calls: workflow_tests::Counter`",
        "1 run of `other` would stop: unregistered",
        "workflow `other` is not registered",
    ] {
        assert!(told.contains(said), "`{said}` is not in:\n{told}");
    }

    let builder = reading(&world, 2).state(calls).workflow(before::flow);
    let report = builder.workflow(other::other).preflight().await.unwrap();
    assert_eq!(
        (report.code(), report.fits, report.is_clean()),
        (0, 2, true)
    );
    assert!(
        report.to_string().contains("this code stops no run"),
        "{report}"
    );
    assert!(report.findings.is_empty() && report.missing_states.is_empty());

    // What is wrong with the description itself.
    let none = Engine::builder().preflight().await.unwrap_err();
    assert!(matches!(none, Error::Build(BuildError::NoStore)));
    let twice = reading(&world, 2)
        .workflow(before::flow)
        .workflow(after::flow);
    let twice = twice.preflight().await.unwrap_err();
    assert!(matches!(twice, Error::Build(BuildError::SameName { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_history_that_cannot_be_read_is_a_finding_and_a_store_that_fails_is_an_error() {
    let world = World::new();
    let engine = world.engine().workflow(other::other).build().await.unwrap();
    engine.start("a", other::other(1)).await.unwrap();
    pass(10).await;
    drop(engine);
    let slow = SlowStore::over(&world.store);
    slow.newer.store(true, Ordering::SeqCst);
    let ask = |store| {
        Engine::builder()
            .store(store)
            .workflow(other::other)
            .preflight()
    };
    let report = ask(slow.clone()).await.unwrap();
    let finding = only(&report);
    assert_eq!((finding.reason, finding.runs), (ParkReason::NewerFormat, 1));
    assert_eq!(
        (report.code(), report.is_whole(), report.is_clean()),
        (3, false, false)
    );
    slow.newer.store(false, Ordering::SeqCst);
    assert!(ask(slow).await.unwrap().is_clean());

    let closed = Arc::new(world.store.crash());
    closed.close().await.unwrap();
    let builder = Engine::builder()
        .shared_store(closed)
        .workflow(other::other);
    assert!(matches!(
        builder.preflight().await.unwrap_err(),
        Error::Store(_)
    ));
}

#[tokio::test(start_paused = true)]
async fn runs_that_are_parked_already_are_told_apart_and_do_not_hold_a_deploy_back() {
    let (calls, world) = (Counter::default(), World::new());
    let builder = world.engine().state(calls.clone()).workflow(before::flow);
    let engine = builder.build().await.unwrap();
    for n in [1, 5, 4] {
        engine
            .start(format!("o-{n}"), before::flow(n))
            .await
            .unwrap();
    }
    // Those that stand in the loop have shipped something.
    pass(200_000).await;
    drop(engine);
    // The code of build 2 parks those that stand in the loop.
    let world = world.crash();
    let builder = world.engine().code_id(2).state(calls.clone());
    let engine = builder.workflow(other_gap::flow).build().await.unwrap();
    for n in [1, 5] {
        engine.resume(format!("o-{n}")).await.unwrap();
    }
    pass(10).await;
    drop(engine);
    let world = world.crash();

    let ask = |code| reading(&world, code).state(calls.clone());
    // Another build with the same fault. What is parked stays so; `o-4` fits neither.
    let report = ask(3).workflow(other_gap::flow).preflight().await.unwrap();
    assert_eq!(
        (report.stay_parked(), report.would_stop(), report.code()),
        (2, 1, 2)
    );
    let parked: Vec<_> = report
        .findings
        .iter()
        .filter(|finding| finding.parked > 0)
        .collect();
    assert_eq!(
        (parked.len(), parked[0].runs, parked[0].reason),
        (1, 0, ParkReason::Diverged)
    );
    let told = report.to_string();
    assert!(
        told.contains("2 parked runs of `flow` would stay so: diverged"),
        "{told}"
    );

    // One that is right: they are taken up again.
    let report = ask(3).workflow(before::flow).preflight().await.unwrap();
    assert_eq!((report.revived, report.resumable, report.fits), (2, 0, 1));
    assert_eq!((report.code(), report.is_clean()), (0, true));
    assert!(
        report
            .to_string()
            .contains("2 parked runs will be taken up"),
        "{report}"
    );
    // The build that parked them does not try them again by itself.
    let report = ask(2).workflow(before::flow).preflight().await.unwrap();
    assert_eq!((report.revived, report.resumable, report.code()), (0, 2, 0));
    assert!(report.to_string().contains("when resumed"), "{report}");

    // With only parked runs left that do not fit, nothing holds the deploy back: this code stops none.
    let engine = world.engine().code_id(2).state(calls.clone());
    let engine = engine.workflow(other_gap::flow).build().await.unwrap();
    engine.cancel("o-4").await.unwrap();
    drop(engine);
    let world = world.crash();
    let report = reading(&world, 3).state(calls.clone());
    let report = report.workflow(other_gap::flow).preflight().await.unwrap();
    assert_eq!((report.would_stop(), report.stay_parked()), (0, 2));
    assert_eq!((report.code(), report.is_clean()), (0, true));
    assert!(
        report.to_string().contains("this code stops no run"),
        "{report}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_rolls_back_needs_its_undos_and_not_its_code() {
    let (calls, world) = (Counter::default(), World::new());
    let builder = world.engine().state(calls.clone()).workflow(saga::saga);
    let engine = builder.build().await.unwrap();
    engine.start("s", saga::saga()).await.unwrap();
    // Between two attempts to undo.
    pass(300).await;
    drop(engine);
    let world = world.crash();
    let [row] = &rows(&world, None).await[..] else {
        panic!()
    };
    assert_eq!(row.state, RunState::RollingBack);
    let ask = || reading(&world, 2).state(calls.clone());
    let report = ask().workflow(saga::saga).preflight().await.unwrap();
    assert_eq!((report.fits, report.code()), (1, 0));
    let report = ask()
        .workflow(saga_without::saga)
        .preflight()
        .await
        .unwrap();
    let finding = only(&report);
    assert_eq!((finding.reason, finding.runs), (ParkReason::UndoMissing, 1));
    assert_eq!(finding.site.unwrap().name, "open");

    // As the next drive finds.
    let engine = world.engine().code_id(2).state(calls.clone());
    let engine = engine.workflow(saga_without::saga).build().await.unwrap();
    pass(10).await;
    let parked = engine.status("s").await.unwrap().parked.unwrap();
    assert_eq!(
        (parked.reason, &parked.detail),
        (finding.reason, &finding.detail)
    );
}

// Cut off after each of its commits: also between the failure that ends it and the beginning of its undoing.
#[tokio::test(start_paused = true)]
async fn a_saga_is_judged_by_what_its_next_drive_needs_wherever_it_was_cut_off() {
    let mut found = Vec::new();
    for commit in 0..6 {
        let (calls, world) = (Counter::default(), World::new());
        let slow = SlowStore::over(&world.store);
        // Written, and never told.
        late(&slow.appends, (0..commit).map(|_| 0).chain([3_600_000]));
        let builder = Engine::builder()
            .store(slow)
            .clock(world.clock())
            .code_id(1);
        let builder = builder.state(calls.clone()).workflow(saga::saga);
        let engine = builder.build().await.unwrap();
        let start = engine.start("s", saga::saga());
        // Whether it was told of its start does not matter.
        let _ = tokio::time::timeout(Duration::from_millis(300), start).await;
        pass(100).await;
        drop(engine);
        let world = world.crash();
        let report = reading(&world, 2).state(calls.clone());
        let report = report
            .workflow(saga_without::saga)
            .preflight()
            .await
            .unwrap();
        let foretold = foretold(&report);

        let engine = world.engine().code_id(2).state(calls.clone());
        let engine = engine.workflow(saga_without::saga).build().await.unwrap();
        pass(10_000).await;
        let parked = engine.status("s").await.unwrap().parked;
        let parked = parked.map(|parked| ("s".to_owned(), parked.reason));
        assert_eq!(
            parked.clone().into_iter().collect::<BTreeMap<_, _>>(),
            foretold,
            "{commit}"
        );
        found.push(parked.is_some());
        if engine.status("s").await.unwrap().state.is_final() {
            // Nothing was armed yet, or all of it was done.
            found.pop();
        }
    }
    assert!(
        found.iter().filter(|parked| **parked).count() >= 2,
        "{found:?}"
    );
}

mod rolling {
    use super::*;

    async fn put_back(_n: u64) {
        pass(10_000).await;
    }

    #[workflow(name = "rolling")]
    pub async fn with(#[state] calls: Counter) -> Result<u64, Failure> {
        checkpoint!(begun);
        #[step(undo(put_back))]
        let n = open(&calls, 3).await?;
        rollback!(back, to = begun).await;
        Ok(n)
    }

    #[workflow(name = "rolling")]
    pub async fn without(#[state] calls: Counter) -> Result<u64, Failure> {
        checkpoint!(begun);
        let n = open(&calls, 3).await?;
        rollback!(back, to = begun).await;
        Ok(n)
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_at_a_rollback_needs_the_undo_that_comes_first() {
    let (calls, world) = (Counter::default(), World::new());
    let builder = world.engine().state(calls.clone()).workflow(rolling::with);
    let engine = builder.build().await.unwrap();
    engine.start("r", rolling::with()).await.unwrap();
    pass(100).await;
    drop(engine);
    let world = world.crash();
    let ask = || reading(&world, 2).state(calls.clone());
    let report = ask().workflow(rolling::with).preflight().await.unwrap();
    assert_eq!((report.fits, report.code()), (1, 0), "{report}");
    let report = ask().workflow(rolling::without).preflight().await.unwrap();
    let finding = only(&report);
    assert_eq!((finding.reason, finding.runs), (ParkReason::UndoMissing, 1));

    // As the next drive finds.
    let engine = world.engine().code_id(2).state(calls.clone());
    let engine = engine.workflow(rolling::without).build().await.unwrap();
    pass(10).await;
    let parked = engine.status("r").await.unwrap().parked.unwrap();
    assert_eq!(
        (parked.reason, &parked.detail),
        (finding.reason, &finding.detail)
    );
}

#[tokio::test(start_paused = true)]
async fn a_version_that_this_code_does_not_know_is_told() {
    let world = World::new();
    let engine = world.engine().workflow(gated::gate).build().await.unwrap();
    engine.start("g", gated::gate(1)).await.unwrap();
    pass(10).await;
    drop(engine);
    let world = world.crash();
    let report = reading(&world, 2)
        .workflow(ungated::gate)
        .preflight()
        .await
        .unwrap();
    let finding = only(&report);
    assert_eq!(finding.reason, ParkReason::Version);
    let site = finding.site.unwrap();
    assert_eq!((site.name, site.kind), ("way", Kind::Version));
    assert!(
        finding.detail.contains("version 3 of `way`"),
        "{}",
        finding.detail
    );
}

macro_rules! smuggle {
    () => {
        std::future::pending::<()>().await
    };
}

mod smuggling {
    use super::*;

    #[workflow(name = "done")]
    pub async fn done(n: u64) -> u64 {
        smuggle!();
        n
    }
}

mod slow {
    use super::*;

    #[step(timeout = "none")]
    async fn wait() {
        pass(3_600_000).await;
    }

    #[workflow(name = "done")]
    pub async fn done(n: u64) -> Result<u64, Failure> {
        wait().await?;
        Ok(n)
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_nothing_recorded_can_wake_is_told() {
    let world = World::new();
    let engine = world.engine().workflow(slow::done).build().await.unwrap();
    engine.start("d", slow::done(1)).await.unwrap();
    drop(engine);
    let world = world.crash();
    let report = reading(&world, 2)
        .workflow(smuggling::done)
        .preflight()
        .await
        .unwrap();
    let finding = only(&report);
    assert_eq!((finding.reason, finding.runs), (ParkReason::NotDurable, 1));
    // As the next drive finds.
    let engine = world
        .engine()
        .code_id(2)
        .workflow(smuggling::done)
        .build()
        .await
        .unwrap();
    pass(10).await;
    let parked = engine.status("d").await.unwrap().parked.unwrap();
    assert_eq!(
        (parked.reason, &parked.detail),
        (finding.reason, &finding.detail)
    );
}

#[tokio::test(start_paused = true)]
async fn a_running_engine_is_asked_and_nothing_of_it_changes() {
    let (calls, world) = (Counter::default(), World::new());
    let builder = world.engine().state(calls.clone()).workflow(before::flow);
    let engine = builder.build().await.unwrap();
    for n in 0..20 {
        engine
            .start(format!("o-{n}"), before::flow(n))
            .await
            .unwrap();
        pass(100_000).await;
    }
    // What is due at this very instant is done first.
    pass(10).await;
    let before = bytes(&*world.store).await;
    let counted = calls.count();
    let report = engine.preflight().await.unwrap();
    assert!(
        report.is_clean() && report.fits == report.runs && report.runs > 5,
        "{report}"
    );
    assert_eq!(calls.count(), counted);
    assert_eq!(bytes(&*world.store).await, before);
    // Nor does it hold anything back.
    pass(100_000_000).await;
    assert!(
        rows(&world, None)
            .await
            .iter()
            .all(|row| row.state == RunState::Completed)
    );
}

#[tokio::test(start_paused = true)]
async fn how_far_it_is_is_told_up_to_the_end() {
    let calls = Counter::default();
    let world = many(600, &calls).await;
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let hook = Arc::clone(&told);
    let builder = reading(&world, 2).state(calls).workflow(after::flow);
    let report = builder
        .preflight()
        .on_progress(move |progress| hook.lock().unwrap().push(*progress))
        .await
        .unwrap();
    let told = told.lock().unwrap();
    let last = told.last().unwrap();
    assert_eq!(
        (last.runs, last.of, last.records),
        (report.runs, report.runs, report.records)
    );
    assert_eq!(last.found, report.would_stop());
    assert!(told.is_sorted_by_key(|progress| (progress.runs, progress.records)));
    assert!(told.iter().all(|progress| progress.runs <= progress.of));
}

#[tokio::test]
async fn the_file_of_a_store_is_the_same_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("runs.redb");
    let calls = Counter::default();
    let builder = Engine::builder()
        .state(calls.clone())
        .workflow(before::flow);
    let engine = builder.open(&file).await.unwrap();
    for n in 0..50 {
        engine
            .start(format!("o-{n}"), before::flow(n))
            .await
            .unwrap();
    }
    engine.shutdown(Duration::ZERO).await.unwrap();
    let store = Arc::new(RedbStore::open(&file).unwrap());
    // Opening it counts one more opening; that settles before anything is asked.
    store.fold().unwrap();
    let before = std::fs::read(&file).unwrap();
    let counted = calls.count();
    let shared: Arc<dyn Store> = Arc::<RedbStore>::clone(&store);
    let builder = Engine::builder().state(calls.clone()).shared_store(shared);
    let report = builder.workflow(after::flow).preflight().await.unwrap();
    assert_eq!(report.runs, 50);
    assert!(report.would_stop() > 0, "{report}");
    assert!(std::fs::read(&file).unwrap() == before, "the file changed");
    assert_eq!(calls.count(), counted);
}
