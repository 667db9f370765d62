//! How many runs of a workflow begin in a time: in this process, after it, and while some of them wait for other things.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use workflow::store::{RunFilter, Store};
use workflow::{
    BuildError, Call, Channel, Clock, Engine, EngineBuilder, Failure, Limit, Rate, RunState,
    Timestamp, TokioClock, recv, sleep, step, workflow,
};
use workflow_tests::{World, pass};

use crate::either::Either;

const MINUTE: Duration = Duration::from_mins(1);

/// When the bodies of runs were entered, in seconds since the world began.
#[derive(Debug, Clone)]
struct Log(Arc<Mutex<Vec<(u64, String)>>>, TokioClock);

impl Log {
    fn new() -> Self {
        let clock = TokioClock::starting_at(Timestamp::from_millis(0));
        Self(Arc::default(), clock)
    }

    fn millis(&self) -> u64 {
        self.1.now().as_millis().try_into().unwrap()
    }

    /// The runs that were entered, by the second.
    fn seconds(&self) -> BTreeMap<u64, Vec<String>> {
        let mut seconds: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (at, run) in self.0.lock().unwrap().iter() {
            seconds.entry(at / 1_000).or_default().push(run.clone());
        }
        // At one time there is no order.
        for runs in seconds.values_mut() {
            runs.sort_unstable();
        }
        seconds
    }

    /// How many were entered, by the second.
    fn counts(&self) -> Vec<(u64, usize)> {
        let seconds = self.seconds().into_iter();
        seconds.map(|(at, runs)| (at, runs.len())).collect()
    }
}

#[step(timeout = "none")]
async fn work(log: &Log, run: &str, millis: u64) {
    log.0.lock().unwrap().push((log.millis(), run.to_owned()));
    pass(millis).await;
}

#[workflow]
async fn export(#[state] log: Log, key: String, run: String, millis: u64) -> Result<(), Failure> {
    work(&log, &run, millis).await
}

#[workflow]
async fn twice(#[state] log: Log, key: String, run: String) -> Result<(), Failure> {
    work(&log, &run, 0).await?;
    sleep!(long, "10s").await;
    #[step(name = "again")]
    work(&log, &format!("{run} again"), 0).await
}

#[workflow]
async fn parent(runs: Vec<String>) -> Result<(), Failure> {
    'each: for run in runs {
        export("x".to_owned(), run, 0).detach().await?;
    }
    Ok(())
}

fn all(builder: EngineBuilder, log: &Log) -> EngineBuilder {
    builder
        .workflow(export)
        .workflow(twice)
        .workflow(parent)
        .state(log.clone())
}

fn call(key: &str, run: &str) -> Call<export> {
    export(key.to_owned(), run.to_owned(), 0)
}

async fn start(engine: &Engine, ids: impl IntoIterator<Item = u32>) {
    for id in ids {
        let id = format!("{id:03}");
        engine.start(&*id, call("x", &id)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_begin_than_the_rate_says_and_the_others_wait_in_no_memory() {
    for either in Either::each() {
        let log = Log::new();
        let builder = all(either.engine(), &log).rate(export, Rate::per(10, MINUTE));
        let engine = builder.build().await.unwrap();
        let began = engine.start("first", call("x", "first")).await.unwrap();
        let began = began.status().await.unwrap().created_at;
        start(&engine, 0..24).await;
        pass(1_000).await;
        assert_eq!(engine.in_memory(), 0);
        for (id, ahead, minutes) in [("009", 0, 1), ("018", 9, 1), ("019", 10, 2), ("023", 14, 2)] {
            let status = engine.status(id).await.unwrap();
            assert_eq!(status.state, RunState::Pending);
            let queued = status.queued.unwrap();
            assert_eq!(queued.rate, Some(Rate::per(10, MINUTE)));
            assert_eq!(
                (queued.limit, queued.key, queued.ahead),
                (None, None, ahead)
            );
            assert_eq!(queued.not_before, Some(began.after(minutes * MINUTE)));
        }
        pass(200_000).await;
        assert_eq!(log.counts(), [(0, 10), (60, 10), (120, 5)]);
        let late = log.seconds().remove(&120).unwrap();
        assert!(late.iter().all(|id| &**id >= "019"), "{late:?}");
        engine.shutdown(Duration::ZERO).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_stretch_of_time_lies_anywhere() {
    let (world, log) = (World::new(), Log::new());
    let builder = all(world.engine(), &log).rate(export, Rate::per(10, MINUTE));
    let engine = builder.build().await.unwrap();
    start(&engine, 0..5).await;
    pass(59_000).await;
    start(&engine, 10..25).await;
    pass(300_000).await;
    assert_eq!(log.counts(), [(0, 5), (59, 5), (60, 5), (119, 5)]);
}

#[tokio::test(start_paused = true)]
async fn each_key_has_begins_of_its_own() {
    let (world, log) = (World::new(), Log::new());
    let builder = all(world.engine(), &log);
    let builder = builder.rate_per(
        export,
        Rate::per(1, MINUTE),
        |(key, ..): &(String, String, u64)| key.clone(),
    );
    let engine = builder.build().await.unwrap();
    for (id, key) in [("a", "x"), ("b", "x"), ("c", "y"), ("d", "y")] {
        engine.start(id, call(key, id)).await.unwrap();
    }
    let queued = engine.status("b").await.unwrap().queued.unwrap();
    assert_eq!((queued.key.as_deref(), queued.ahead), (Some("x"), 0));
    pass(100_000).await;
    assert_eq!(log.seconds()[&0], ["a", "c"]);
    assert_eq!(log.seconds()[&60], ["b", "d"]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_or_a_shutdown_forgets_no_begin() {
    for (crash, deleted) in [(true, false), (true, true), (false, false)] {
        for either in Either::each() {
            let log = Log::new();
            let name = format!("{crash}-{deleted}");
            let by_key = |key: &(String, String, u64)| key.0.clone();
            let build = |either: &Either| {
                all(either.engine(), &log).rate_per(export, Rate::per(3, MINUTE), by_key)
            };
            let engine = build(&either).build().await.unwrap();
            for id in 0..8 {
                let id = format!("{name}-{id}");
                engine.start(&*id, call(&name, &id)).await.unwrap();
            }
            pass(10_000).await;
            if deleted {
                // Whatever becomes of a run that was begun.
                engine.delete(format!("{name}-0")).await.unwrap();
            }
            let left = either.crash();
            if !crash {
                engine.shutdown(Duration::ZERO).await.unwrap();
            }
            drop(engine);
            pass(10_000).await;
            let engine = build(&left).build().await.unwrap();
            let last = format!("{name}-8");
            engine.start(&*last, call(&name, &last)).await.unwrap();
            pass(1).await;
            let queued = engine.status(&last).await.unwrap().queued.unwrap();
            assert_eq!(queued.ahead, 5);
            pass(300_000).await;
            assert_eq!(log.counts(), [(0, 3), (60, 3), (120, 3)], "{name}");
            engine.shutdown(Duration::ZERO).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_begun_goes_on_whatever_the_rate_and_does_not_count_again() {
    for either in Either::each() {
        let log = Log::new();
        let rate = Rate::per(2, MINUTE);
        let build = |either: &Either| {
            all(either.engine(), &log)
                .rate(export, rate)
                .rate(twice, rate)
        };
        let engine = build(&either).build().await.unwrap();
        for id in ["a", "b", "c"] {
            let call = export("x".to_owned(), id.to_owned(), 30_000);
            engine.start(id, call).await.unwrap();
        }
        for id in ["s", "t"] {
            let call = twice("x".to_owned(), id.to_owned());
            engine.start(id, call).await.unwrap();
        }
        pass(5_000).await;
        // Nothing of them is recorded but that they are begun.
        assert_eq!(engine.status("a").await.unwrap().state, RunState::Running);
        let left = either.crash();
        drop(engine);
        pass(1).await;
        let engine = build(&left).build().await.unwrap();
        pass(200_000).await;
        let seconds = log.seconds();
        assert_eq!(seconds.keys().copied().collect::<Vec<_>>(), [0, 5, 10, 60]);
        assert_eq!(seconds[&0], ["a", "b", "s", "t"]);
        assert_eq!(seconds[&5], ["a", "b"]);
        assert_eq!(seconds[&10], ["s again", "t again"]);
        assert_eq!(seconds[&60], ["c"]);
        engine.shutdown(Duration::ZERO).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_begun_before_anything_of_it_is_done_also_when_nobody_waits_for_its_beginning() {
    for either in Either::each() {
        let log = Log::new();
        let build = |either: &Either| all(either.engine(), &log).rate(export, Rate::per(1, MINUTE));
        let engine = build(&either).build().await.unwrap();
        let running = engine.clone();
        let call_a = export("x".to_owned(), "a".to_owned(), 30_000);
        let task = tokio::spawn(async move { running.run("a", call_a).await });
        pass(1_000).await;
        let left = either.crash();
        task.abort();
        drop((engine, task));
        pass(1).await;
        let engine = build(&left).build().await.unwrap();
        engine.start("b", call("x", "b")).await.unwrap();
        pass(100_000).await;
        let seconds = log.seconds();
        assert_eq!(seconds.keys().copied().collect::<Vec<_>>(), [0, 1, 60]);
        assert_eq!(seconds[&1], ["a"]);
        assert_eq!(seconds[&60], ["b"]);
        engine.shutdown(Duration::ZERO).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn children_count_and_so_do_runs_whose_time_has_come() {
    let (world, log) = (World::new(), Log::new());
    let builder = all(world.engine(), &log).rate(export, Rate::per(2, MINUTE));
    let engine = builder.build().await.unwrap();
    let runs = ["a", "b", "c"].map(str::to_owned).to_vec();
    engine.start("p", parent(runs)).await.unwrap();
    for id in ["d", "e"] {
        let call = call("x", id).delay(Duration::from_secs(90));
        engine.start(id, call).await.unwrap();
    }
    pass(300_000).await;
    let seconds = log.seconds();
    assert_eq!(seconds[&0], ["a", "b"]);
    assert_eq!(seconds[&60], ["c"]);
    assert_eq!(seconds[&90], ["d"]);
    assert_eq!(seconds[&120], ["e"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_time_came_while_no_engine_was_there_counts_too() {
    for either in Either::each() {
        let log = Log::new();
        let build = |either: &Either| all(either.engine(), &log).rate(export, Rate::per(1, MINUTE));
        let engine = build(&either).build().await.unwrap();
        start(&engine, [0]).await;
        let late = call("x", "late").delay(Duration::from_secs(10));
        engine.start("late", late).await.unwrap();
        pass(5_000).await;
        let left = either.crash();
        drop(engine);
        pass(20_000).await;
        let engine = build(&left).build().await.unwrap();
        pass(1).await;
        assert_eq!(
            engine.status("late").await.unwrap().state,
            RunState::Waiting
        );
        start(&engine, [1]).await;
        pass(300_000).await;
        let seconds = log.seconds();
        assert_eq!(seconds[&60], ["late"]);
        assert_eq!(seconds[&120], ["001"]);
        engine.shutdown(Duration::ZERO).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_cancelled_while_it_waits_takes_no_begin_from_others() {
    let (world, log) = (World::new(), Log::new());
    let builder = all(world.engine(), &log).rate(export, Rate::per(1, MINUTE));
    let engine = builder.build().await.unwrap();
    start(&engine, 0..4).await;
    pass(1_000).await;
    engine.cancel("001").await.unwrap();
    engine.cancel("002").and_undo().await.unwrap();
    pass(300_000).await;
    assert_eq!(log.counts(), [(0, 1), (60, 1)]);
    assert_eq!(log.seconds()[&60], ["003"]);
}

#[tokio::test(start_paused = true)]
async fn a_limit_and_a_rate_are_both_kept_and_neither_holds_up_who_needs_only_the_other() {
    let (world, log) = (World::new(), Log::new());
    let builder = all(world.engine(), &log)
        .limit(twice, Limit::working(1))
        .rate_per(
            twice,
            Rate::per(1, MINUTE),
            |(key, _): &(String, String)| key.clone(),
        )
        .limit(export, Limit::unfinished(1))
        .rate(export, Rate::per(2, MINUTE));
    let engine = builder.build().await.unwrap();
    for (id, key) in [("a", "x"), ("b", "x"), ("c", "y")] {
        let call = twice(key.to_owned(), id.to_owned());
        engine.start(id, call).await.unwrap();
    }
    for id in ["k", "l", "m"] {
        let call = export("x".to_owned(), id.to_owned(), 20_000);
        engine.start(id, call).await.unwrap();
    }
    pass(1_000).await;
    let queued = engine.status("m").await.unwrap().queued.unwrap();
    assert_eq!((queued.limit, queued.ahead), (Some(1), 1));
    pass(200_000).await;
    let mut seconds = log.seconds();
    // `b` waits for its rate and `c` begins; `a` goes on while `b` waits.
    assert_eq!(seconds.remove(&0).unwrap(), ["a", "c", "k"]);
    assert_eq!(seconds.remove(&10).unwrap(), ["a again", "c again"]);
    assert_eq!(seconds.remove(&20).unwrap(), ["l"]);
    assert_eq!(seconds.remove(&60).unwrap(), ["b", "m"]);
    assert_eq!(seconds.remove(&70).unwrap(), ["b again"]);
    assert!(seconds.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_begin_counts_from_when_there_is_room_for_it() {
    let (world, log) = (World::new(), Log::new());
    let builder = all(world.engine(), &log)
        .in_memory(1)
        .rate(export, Rate::per(1, MINUTE));
    let engine = builder.build().await.unwrap();
    let long = export("x".to_owned(), "long".to_owned(), 110_000);
    engine.start("long", long).await.unwrap();
    start(&engine, 0..2).await;
    pass(300_000).await;
    // At a minute the next one might begin, and there is no room for it until 110 s.
    let seconds = log.counts();
    assert_eq!(seconds, [(0, 1), (110, 1), (170, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_recovered_or_forked_begins_again() {
    #[step(retries = 0)]
    async fn fails(log: &Log, run: &str) -> Result<(), std::io::Error> {
        log.0.lock().unwrap().push((log.millis(), run.to_owned()));
        Err(std::io::Error::other("not today"))
    }
    #[workflow]
    async fn shaky(#[state] log: Log, run: String) -> Result<(), Failure> {
        fails(&log, &run).await
    }
    let (world, log) = (World::new(), Log::new());
    let builder = all(world.engine(), &log).workflow(shaky);
    let engine = builder
        .rate(shaky, Rate::per(1, MINUTE))
        .build()
        .await
        .unwrap();
    engine.run("a", shaky("a".to_owned())).await.unwrap_err();
    engine.recover("a").await.unwrap();
    engine.fork("a", "b", None).await.unwrap();
    pass(300_000).await;
    assert_eq!(log.counts(), [(0, 1), (60, 1), (120, 1)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_of_begins_is_no_value_of_the_application_and_does_not_grow() {
    let (world, log) = (World::new(), Log::new());
    let rate = Rate::per(3, Duration::from_secs(1));
    let builder = all(world.engine(), &log);
    let builder = builder.rate_per(export, rate, |(key, ..): &(String, String, u64)| {
        key.clone()
    });
    let engine = builder.build().await.unwrap();
    for id in 0..200 {
        let id = id.to_string();
        engine.run(&*id, call(&id, &id)).await.unwrap();
        pass(100).await;
    }
    let kept = world.store.values("", None, 1_000).await.unwrap();
    assert!((10..=12).contains(&kept.len()), "{}", kept.len());
    for prefix in ["", "\0", "\0begun/"] {
        let values: Vec<(String, String)> = engine.values(prefix, None, 9).await.unwrap();
        assert_eq!(values, []);
    }
    assert_eq!(engine.value::<String>(&kept[0].0).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_holds_runs_up_for_an_interval_at_most() {
    /// Paused time, less so many milliseconds.
    #[derive(Debug, Clone)]
    struct Wrong(TokioClock, Arc<AtomicI64>);
    impl Clock for Wrong {
        fn now(&self) -> Timestamp {
            let now = self.0.now().as_millis() - self.1.load(Ordering::SeqCst);
            Timestamp::from_millis(now)
        }
    }
    for restart in [false, true] {
        let (world, log) = (World::new(), Log::new());
        let clock = Wrong(world.clock(), Arc::default());
        let build = |world: &World| {
            let builder = all(world.engine(), &log).clock(clock.clone());
            builder.rate(export, Rate::per(2, MINUTE))
        };
        let mut engine = build(&world).build().await.unwrap();
        start(&engine, 0..4).await;
        pass(10_000).await;
        clock.1.store(86_400_000, Ordering::SeqCst);
        if restart {
            let world = world.crash();
            drop(engine);
            pass(1).await;
            engine = build(&world).build().await.unwrap();
        }
        pass(71_000).await;
        assert_eq!(log.0.lock().unwrap().len(), 4, "restart: {restart}");
        assert_eq!(engine.in_memory(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_of_a_workflow_that_is_not_registered_is_refused() {
    let builder = World::new().engine().rate(export, Rate::per(1, MINUTE));
    assert!(matches!(
        builder.build().await,
        Err(BuildError::NotRegistered {
            workflow: "export",
            what: "rate"
        })
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever is started, delayed, cancelled and cut off when: in no stretch of time begin more than the rate says, and everything
    /// comes to its end.
    #[test]
    fn no_order_of_events_breaks_a_rate(
        events in prop::collection::vec((0u8..9, 0u64..30_000), 1..40),
        begins in 1usize..4,
        limit in prop::option::of((1usize..3, any::<bool>())),
        room in 1usize..4,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let log = Log::new();
            let build = |world: &World| {
                let key = |(key, _): &(String, String)| key.clone();
                let rate = Rate::per(begins, MINUTE);
                let builder = all(world.engine(), &log).rate_per(twice, rate, key).in_memory(room);
                match limit {
                    Some((runs, true)) => builder.limit(twice, Limit::unfinished(runs)),
                    Some((runs, false)) => builder.limit_per(twice, Limit::working(runs), key),
                    None => builder,
                }
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
                    _ => {
                        let key = if event % 2 == 0 { "x" } else { "y" };
                        let id = format!("{key}{number:03}");
                        let mut call = twice(key.to_owned(), id.clone()).priority(i32::from(event));
                        if event > 6 {
                            call = call.delay(Duration::from_millis(3 * millis));
                        }
                        engine.start(&*id, call).await.unwrap();
                        started.insert(id);
                    }
                }
                if event < 5 {
                    pass(millis).await;
                }
            }
            pass(100 * 60_000).await;
            let mut first: BTreeMap<String, u64> = BTreeMap::new();
            for (at, run) in log.0.lock().unwrap().iter() {
                if !run.ends_with("again") {
                    first.entry(run.clone()).or_insert(*at);
                }
            }
            for key in ["x", "y"] {
                let of_key = first.iter().filter(|(run, _)| run.starts_with(key));
                let mut times: Vec<_> = of_key.map(|(_, at)| *at).collect();
                times.sort_unstable();
                for window in times.windows(begins + 1) {
                    prop_assert!(window[begins] - window[0] >= 60_000, "{window:?} of {times:?}");
                }
            }
            let page = engine.list(&RunFilter::default()).await.unwrap();
            for row in page.rows {
                prop_assert!(row.state.is_final(), "{} is {}", row.id, row.state);
            }
            prop_assert_eq!(engine.in_memory(), 0);
            Ok(())
        })?;
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_first_of_all_is_begun_and_does_not_count_again() {
    static GO: Channel<u32> = Channel::new("go");
    #[workflow]
    async fn listens() -> Result<u32, Failure> {
        recv!(go, GO).await
    }
    for either in Either::each() {
        let build = |either: &Either| {
            let builder = either.engine().workflow(listens);
            builder
                .rate(listens, Rate::per(1, 60 * MINUTE))
                .limit(listens, Limit::unfinished(1))
        };
        let engine = build(&either).build().await.unwrap();
        let run = engine.start("a", listens()).await.unwrap();
        engine.start("b", listens()).await.unwrap();
        pass(60_000).await;
        assert_eq!(engine.in_memory(), 0);
        let left = either.crash();
        drop((run, engine));
        pass(1).await;
        let engine = build(&left).build().await.unwrap();
        pass(1_000).await;
        assert!(engine.status("a").await.unwrap().queued.is_none());
        assert_eq!(
            engine.status("b").await.unwrap().queued.unwrap().limit,
            Some(1)
        );
        engine.send("a", &GO, &7).await.unwrap();
        pass(1_000).await;
        assert_eq!(engine.status("a").await.unwrap().state, RunState::Completed);
        engine.shutdown(Duration::ZERO).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_panics_keeps_nobody_else_from_being_driven() {
    for either in Either::each() {
        let log = Log::new();
        let build = |either: &Either| {
            let builder = all(either.engine(), &log);
            builder.rate_per(
                export,
                Rate::per(1, MINUTE),
                |(_, run, _): &(String, String, u64)| {
                    assert!(!run.is_empty(), "a run has a name");
                    run.clone()
                },
            )
        };
        let engine = build(&either).build().await.unwrap();
        let runs = ["", "a", ""].map(str::to_owned).to_vec();
        engine.run("p", parent(runs)).await.unwrap();
        engine
            .start("s", twice("x".to_owned(), "s".to_owned()))
            .await
            .unwrap();
        pass(5_000).await;
        // Those without a key are counted together.
        assert_eq!(log.seconds()[&0], ["", "a", "s"]);
        let left = either.crash();
        drop(engine);
        pass(1).await;
        let engine = build(&left).build().await.unwrap();
        pass(100_000).await;
        assert_eq!(log.seconds()[&10], ["s again"]);
        assert_eq!(log.seconds()[&60], [""]);
        engine.shutdown(Duration::ZERO).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_could_not_begin_because_it_was_not_known_begins_at_its_rate_once_it_is() {
    for either in Either::each() {
        let log = Log::new();
        let old = either.engine().workflow(parent).state(log.clone());
        let engine = old.build().await.unwrap();
        let runs = ["a", "b", "c"].map(str::to_owned).to_vec();
        engine.run("p", parent(runs)).await.unwrap();
        pass(1_000).await;
        let left = either.crash();
        drop(engine);
        pass(1).await;
        let builder = all(left.engine(), &log).code_id(2);
        let engine = builder
            .rate(export, Rate::per(1, MINUTE))
            .build()
            .await
            .unwrap();
        let filter = RunFilter::default();
        pass(30_000).await;
        let rows = engine.list(&filter).await.unwrap().rows;
        let queued = rows.iter().filter(|row| row.state == RunState::Parked);
        assert_eq!(queued.count(), 2, "they wait, and say why they did before");
        pass(200_000).await;
        assert_eq!(log.counts(), [(1, 1), (61, 1), (121, 1)]);
        let rows = engine.list(&filter).await.unwrap().rows;
        assert!(rows.iter().all(|row| row.parked.is_none()), "{rows:?}");
        engine.shutdown(Duration::ZERO).await.unwrap();
    }
}
