//! How many runs of a workflow are under way at once: in this process, after it, and while some of them wait.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use workflow::store::{BoxFuture, Page, RunFilter, Store, StoreError};
use workflow::{
    BuildError, Channel, Engine, EngineBuilder, Failure, Limit, MemoryStore, RunState, recv, sleep,
    step, workflow,
};
use workflow_tests::{World, pass, pass_on};

static GO: Channel<()> = Channel::new("go");

/// Which bodies run now, by key, and the most there ever were of one.
#[derive(Debug, Clone, Default)]
struct Gauge(Arc<Mutex<HashMap<String, usize>>>, Arc<AtomicUsize>, Order);

type Order = Arc<Mutex<Vec<String>>>;

struct Within(Gauge, String);

impl Gauge {
    fn enter(&self, key: &str, run: &str) -> Within {
        let mut now = self.0.lock().unwrap();
        let count = now.entry(key.to_owned()).or_default();
        *count += 1;
        self.1.fetch_max(*count, Ordering::SeqCst);
        self.2.lock().unwrap().push(run.to_owned());
        Within(self.clone(), key.to_owned())
    }

    fn most(&self) -> usize {
        self.1.load(Ordering::SeqCst)
    }

    /// The runs in the order in which their bodies began.
    fn order(&self) -> Vec<String> {
        self.2.lock().unwrap().clone()
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap().get_mut(&self.1).unwrap() -= 1;
    }
}

#[step(timeout = "none")]
async fn work(gauge: &Gauge, key: &str, run: &str, millis: u64) {
    let _within = gauge.enter(key, run);
    pass(millis).await;
}

#[workflow]
async fn plain(#[state] gauge: Gauge, key: String, run: String) -> Result<(), Failure> {
    work(&gauge, &key, &run, 100).await
}

#[workflow]
async fn sleeps(#[state] gauge: Gauge, key: String, run: String) -> Result<(), Failure> {
    work(&gauge, &key, &run, 100).await?;
    sleep!(long, "1h").await;
    #[step(name = "again")]
    work(&gauge, &key, &run, 100).await
}

#[workflow]
async fn receives(#[state] gauge: Gauge, key: String, run: String) -> Result<(), Failure> {
    work(&gauge, &key, &run, 100).await?;
    recv!(go, GO).await?;
    Ok(())
}

#[workflow]
async fn breaks(#[state] gauge: Gauge, key: String, run: String) -> Result<(), Failure> {
    work(&gauge, &key, &run, 100).await?;
    assert!(run != "a", "it cannot go on");
    Ok(())
}

#[workflow]
async fn parent(runs: Vec<String>) -> Result<(), Failure> {
    'each: for run in runs {
        plain("k".to_owned(), run).detach().await?;
    }
    Ok(())
}

fn all(world: &World, gauge: &Gauge) -> EngineBuilder {
    world
        .engine()
        .workflow(plain)
        .workflow(sleeps)
        .workflow(receives)
        .workflow(breaks)
        .workflow(parent)
        .state(gauge.clone())
}

async fn state(engine: &Engine, id: &str) -> RunState {
    engine.status(id).await.unwrap().state
}

#[tokio::test(start_paused = true)]
async fn runs_over_the_limit_are_stored_and_begun_in_start_order() {
    let (world, gauge) = (World::new(), Gauge::default());
    let builder = all(&world, &gauge).limit(plain, Limit::working(2));
    let engine = builder.build().await.unwrap();
    let ids = ["a", "b", "c", "d", "e"];
    let mut runs = Vec::new();
    for id in ids {
        let call = plain("k".to_owned(), id.to_owned());
        runs.push(engine.start(id, call).await.unwrap());
    }
    pass(10).await;
    for (place, id) in ids.iter().enumerate() {
        let status = engine.status(id).await.unwrap();
        let queued = status.queued;
        match place.checked_sub(2) {
            None => assert_eq!(queued, None),
            Some(ahead) => {
                assert_eq!(status.state, RunState::Pending);
                let queued = queued.unwrap();
                assert_eq!(
                    (queued.limit, queued.key, queued.ahead),
                    (Some(2), None, ahead)
                );
            }
        }
    }
    // Those that wait for a slot are not in memory.
    assert_eq!(engine.in_memory(), 2);
    for run in runs {
        run.result().await.unwrap();
        assert_eq!(run.status().await.unwrap().queued, None);
    }
    assert_eq!(
        (gauge.most(), gauge.order()),
        (2, ids.map(str::to_owned).to_vec())
    );
}

// UA-30
#[tokio::test(start_paused = true)]
async fn a_run_that_waits_holds_its_slot_or_gives_it_back_as_the_limit_says() {
    for (limit, begins) in [(Limit::unfinished(1), false), (Limit::working(1), true)] {
        for waiting in ["time", "message"] {
            let (world, gauge) = (World::new(), Gauge::default());
            let builder = all(&world, &gauge)
                .limit(sleeps, limit)
                .limit(receives, limit);
            let engine = builder.build().await.unwrap();
            let (key, a, b) = ("k".to_owned(), "a".to_owned(), "b".to_owned());
            if waiting == "time" {
                engine.start("a", sleeps(key.clone(), a)).await.unwrap();
                engine.start("b", sleeps(key, b)).await.unwrap();
            } else {
                engine.start("a", receives(key.clone(), a)).await.unwrap();
                engine.start("b", receives(key, b)).await.unwrap();
            }
            pass(60_000).await;
            assert_eq!(state(&engine, "a").await, RunState::Waiting);
            let began = gauge.order().contains(&"b".to_owned());
            assert_eq!(began, begins, "{limit:?}, one that waits for a {waiting}");
            let queued = engine.status("b").await.unwrap().queued;
            assert_eq!(queued.is_some(), !begins);
            for id in ["a", "b"] {
                if waiting == "message" {
                    engine.send(id, &GO, &()).await.unwrap();
                }
                pass(2 * 3_600_000).await;
                assert_eq!(state(&engine, id).await, RunState::Completed);
            }
            assert_eq!(gauge.most(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_would_linger_gives_its_slot_to_one_that_comes() {
    let (world, gauge) = (World::new(), Gauge::default());
    let builder = all(&world, &gauge)
        .linger(std::time::Duration::from_hours(2))
        .limit(receives, Limit::working(1));
    let engine = builder.build().await.unwrap();
    let call = |id: &str| receives("k".to_owned(), id.to_owned());
    engine.start("a", call("a")).await.unwrap();
    pass(1_000).await;
    assert_eq!(engine.in_memory(), 1);
    engine.start("b", call("b")).await.unwrap();
    pass(10).await;
    assert_eq!(gauge.order(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn each_key_has_slots_of_its_own() {
    let (world, gauge) = (World::new(), Gauge::default());
    let builder =
        all(&world, &gauge).limit_per(plain, Limit::working(1), |(key, _run)| key.clone());
    let engine = builder.build().await.unwrap();
    for (id, key) in [("a", "x"), ("b", "x"), ("c", "y")] {
        let call = plain(key.to_owned(), id.to_owned());
        engine.start(id, call).await.unwrap();
    }
    pass(10).await;
    assert_eq!(gauge.order(), ["a", "c"]);
    let queued = engine.status("b").await.unwrap().queued.unwrap();
    assert_eq!((queued.key.as_deref(), queued.ahead), (Some("x"), 0));
    pass(1_000).await;
    assert_eq!((gauge.order().len(), gauge.most()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_holds_its_slot_after_a_restart_too() {
    let (world, gauge) = (World::new(), Gauge::default());
    let by_key = |world: &World| {
        all(world, &gauge).limit_per(sleeps, Limit::unfinished(1), |(key, _)| key.clone())
    };
    let engine = by_key(&world).build().await.unwrap();
    let call = |key: &str, id: &str| sleeps(key.to_owned(), id.to_owned());
    engine.start("a", call("x", "a")).await.unwrap();
    engine.start("b", call("x", "b")).await.unwrap();
    pass(60_000).await;
    let world = world.crash();
    drop(engine);
    let engine = by_key(&world).build().await.unwrap();
    // Started before it is known who holds what.
    engine.start("c", call("x", "c")).await.unwrap();
    engine.start("d", call("y", "d")).await.unwrap();
    pass(60_000).await;
    assert_eq!(gauge.order(), ["a", "d"]);
    assert_eq!(engine.status("b").await.unwrap().queued.unwrap().ahead, 0);
    assert_eq!(engine.status("c").await.unwrap().queued.unwrap().ahead, 1);
    pass(4 * 3_600_000).await;
    assert_eq!(gauge.most(), 1);
    for id in ["a", "b", "c", "d"] {
        assert_eq!(state(&engine, id).await, RunState::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_cut_off_in_its_work_goes_before_those_that_wait() {
    for limit in [Limit::working(1), Limit::unfinished(1)] {
        let (world, gauge) = (World::new(), Gauge::default());
        let engine = all(&world, &gauge)
            .limit(plain, limit)
            .build()
            .await
            .unwrap();
        for id in ["a", "b", "c"] {
            let call = plain("k".to_owned(), id.to_owned());
            engine.start(id, call).await.unwrap();
        }
        pass(50).await;
        let world = world.crash();
        drop(engine);
        pass(1).await;
        let engine = all(&world, &gauge)
            .limit(plain, limit)
            .build()
            .await
            .unwrap();
        pass(10_000).await;
        assert_eq!(gauge.order(), ["a", "a", "b", "c"]);
        assert_eq!((gauge.most(), engine.in_memory()), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_cancelled_gives_its_slot_or_its_place_to_others() {
    for undo in [false, true] {
        let (world, gauge) = (World::new(), Gauge::default());
        let builder = all(&world, &gauge).limit(sleeps, Limit::unfinished(1));
        let engine = builder.build().await.unwrap();
        for id in ["a", "b", "c"] {
            let call = sleeps("k".to_owned(), id.to_owned());
            engine.start(id, call).await.unwrap();
        }
        pass(60_000).await;
        for id in ["b", "a"] {
            let cancel = engine.cancel(id);
            let cancelled = if undo {
                cancel.and_undo().await
            } else {
                cancel.await
            };
            cancelled.unwrap();
        }
        pass(60_000).await;
        assert_eq!(gauge.order(), ["a", "c"]);
        assert_eq!(state(&engine, "b").await, RunState::Cancelled);
    }
}

// UA-34
#[tokio::test(start_paused = true)]
async fn a_parked_run_does_not_keep_the_others_waiting() {
    for limit in [Limit::working(1), Limit::unfinished(1)] {
        let (world, gauge) = (World::new(), Gauge::default());
        let engine = all(&world, &gauge)
            .limit(breaks, limit)
            .build()
            .await
            .unwrap();
        for id in ["a", "b"] {
            let call = breaks("k".to_owned(), id.to_owned());
            engine.start(id, call).await.unwrap();
        }
        pass(10_000).await;
        assert_eq!(state(&engine, "a").await, RunState::Parked);
        assert_eq!(state(&engine, "b").await, RunState::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn children_count_as_any_other_run() {
    let (world, gauge) = (World::new(), Gauge::default());
    let builder = all(&world, &gauge).limit(plain, Limit::working(2));
    let engine = builder.build().await.unwrap();
    let runs = (0..6).map(|run| run.to_string()).collect();
    engine.run("p", parent(runs)).await.unwrap();
    pass(10_000).await;
    assert_eq!((gauge.most(), gauge.order().len()), (2, 6));
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_a_workflow_that_is_not_there_is_refused() {
    let world = World::new();
    let built = world
        .engine()
        .limit(parent, Limit::working(1))
        .build()
        .await;
    let error = built.unwrap_err();
    assert!(matches!(
        error,
        BuildError::NotRegistered {
            workflow: "parent",
            what: "limit"
        }
    ));
}

/// Notes which listings it is asked for.
#[derive(Debug)]
struct Listed {
    store: MemoryStore,
    waiting: Arc<AtomicUsize>,
}

impl Store for Listed {
    pass_on!(store: identity allocate append cancel rewrite delete find row load first due active deliver inbox dead_letters answer value values put close);

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Page, StoreError>> {
        if filter.states == [RunState::Waiting] {
            self.waiting.fetch_add(1, Ordering::SeqCst);
        }
        self.store.list(filter)
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_limit_that_holds_while_waiting_looks_at_the_runs_that_wait() {
    for (limit, scans) in [
        (None, 0),
        (Some(Limit::working(1)), 0),
        (Some(Limit::unfinished(1)), 1),
    ] {
        let waiting = Arc::new(AtomicUsize::new(0));
        let store = Listed {
            store: MemoryStore::new(),
            waiting: Arc::clone(&waiting),
        };
        let mut builder = all(&World::new(), &Gauge::default()).store(store);
        if let Some(limit) = limit {
            builder = builder.limit(sleeps, limit);
        }
        let _engine = builder.build().await.unwrap();
        pass(10).await;
        assert_eq!(waiting.load(Ordering::SeqCst), scans);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Whatever is started, cancelled and cut off when: never more than the limit, and everything comes to its end.
    #[test]
    fn no_order_of_events_breaks_a_limit(
        events in prop::collection::vec((0u8..8, 0u64..400), 1..40),
        slots in 1usize..4,
        holds in any::<bool>(),
        seconds in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let limit = if holds { Limit::unfinished(slots) } else { Limit::working(slots) };
            let gauge = Gauge::default();
            let build = |world: &World| {
                all(world, &gauge)
                    .limit_per(sleeps, limit, |(key, _)| key.clone())
                    .linger(std::time::Duration::from_secs(if seconds { 7_200 } else { 1 }))
            };
            let mut world = World::new();
            let mut engine = build(&world).build().await.unwrap();
            let mut started = BTreeSet::new();
            for (number, (event, millis)) in events.into_iter().enumerate() {
                match event {
                    0 => {
                        world = world.crash();
                        drop(engine);
                        pass(1).await;
                        engine = build(&world).build().await.unwrap();
                    }
                    1 => {
                        if let Some(id) = started.pop_first() {
                            let cancelled = engine.cancel(&id).await;
                            drop(cancelled);
                        }
                    }
                    2 => pass(3_700_000).await,
                    _ => {
                        let id = format!("{number:03}");
                        let key = if event < 5 { "x" } else { "y" };
                        let call = sleeps(key.to_owned(), id.clone());
                        engine.start(&*id, call).await.unwrap();
                        started.insert(id);
                    }
                }
                pass(millis).await;
                if holds {
                    prop_assert!(unfinished(&world.store).await <= slots);
                }
            }
            pass(100 * 3_700_000).await;
            prop_assert!(gauge.most() <= slots);
            let page = engine.list(&RunFilter::default()).await.unwrap();
            for row in page.rows {
                prop_assert!(row.state.is_final(), "{} is {}", row.id, row.state);
            }
            prop_assert_eq!(engine.in_memory(), 0);
            Ok(())
        })?;
    }
}

/// The most runs of a key that have begun and not ended.
async fn unfinished(store: &MemoryStore) -> usize {
    let mut by_key: HashMap<bool, usize> = HashMap::new();
    let page = store.list(&RunFilter::default()).await.unwrap();
    for row in page.rows {
        if row.state.is_final() || row.state == RunState::Pending {
            continue;
        }
        let first = store.first(row.key).await.unwrap().unwrap();
        let workflow::replay::Body::Begun(begun) = first.body else {
            unreachable!()
        };
        let key = begun.input.bytes.windows(3).any(|part| part == b"\"x\"");
        *by_key.entry(key).or_default() += 1;
    }
    by_key.into_values().max().unwrap_or(0)
}
