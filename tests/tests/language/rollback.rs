//! Rolling back, and what comes in between: eviction, cancellations, panics, deploys, children.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

use workflow::replay::Body;
use workflow::store::RunFilter;
use workflow::{
    Bytes, Codec, Engine, EngineBuilder, Error, ErrorEvent, Failure, ParkReason, RunState,
    checkpoint, join, race, settle, sleep, step, workflow,
};
use workflow_tests::{Fault, FaultStore, World, pass};

/// What the undo of a step does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Undo {
    #[default]
    Works,
    TakesTenSeconds,
    Hangs,
    Panics,
    Fails,
}

/// What the outside world saw, and how its undos go.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<(Vec<String>, Undo)>>);

impl Log {
    fn say(&self, what: impl Into<String>) {
        self.0.lock().unwrap().0.push(what.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().0.clone()
    }

    fn undos(&self, how: Undo) {
        self.0.lock().unwrap().1 = how;
    }

    fn undone(&self) -> Vec<String> {
        let all = self.all().into_iter();
        all.filter(|said| said.starts_with("undo")).collect()
    }
}

#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Step(#[from] Failure),
    #[error("the wind has turned")]
    Wind,
}

#[step]
async fn book(log: &Log, what: String) -> String {
    log.say(&*what);
    what
}

#[step(retries = 0)]
async fn fail(log: &Log) -> Result<(), std::io::Error> {
    log.say("failed");
    Err(std::io::Error::other("sold out"))
}

#[step(timeout = "none")]
async fn slow(log: &Log) -> String {
    log.say("slow begins");
    tokio::time::sleep(Duration::from_secs(5)).await;
    log.say("slow ends");
    "slow".to_owned()
}

async fn unbook(what: String, log: Log) -> Result<(), std::io::Error> {
    let how = log.0.lock().unwrap().1;
    match how {
        Undo::Works => {}
        Undo::TakesTenSeconds => tokio::time::sleep(Duration::from_secs(10)).await,
        Undo::Hangs => std::future::pending().await,
        Undo::Panics => panic!("the undo panics"),
        Undo::Fails => return Err(std::io::Error::other("closed")),
    }
    log.say(format!("undo {what}"));
    Ok(())
}

async fn unbook_maybe(what: Option<String>, log: Log) {
    log.say(format!("undo {what:?}"));
}

/// Fails by its own error.
#[workflow]
async fn trip(#[state] log: Log) -> Result<(), Broken> {
    checkpoint!(begun);
    #[step(name = "hotel", undo(unbook))]
    book(&log, "hotel".to_owned()).await?;
    #[step(name = "car", undo(unbook))]
    book(&log, "car".to_owned()).await?;
    Err(Broken::Wind)
}

/// What a trip was, without its car.
mod without_car {
    use super::{Broken, Log, book, unbook};
    use workflow::{checkpoint, removed, step, workflow};

    #[workflow]
    pub(super) async fn trip(#[state] log: Log) -> Result<(), Broken> {
        checkpoint!(begun);
        #[step(name = "hotel", undo(unbook))]
        book(&log, "hotel".to_owned()).await?;
        removed!(car, kind = "step", undo = unbook);
        Err(Broken::Wind)
    }
}

mod without_undo {
    use super::*;

    #[workflow]
    pub(super) async fn trip(#[state] log: Log) -> Result<(), Broken> {
        book(&log, "hotel".to_owned()).await?;
        Ok(())
    }
}

#[step(retries = 0)]
async fn keyed(log: &Log) -> Result<String, std::io::Error> {
    log.say(workflow::current_step().idempotency_key());
    Err(std::io::Error::other("no answer"))
}

async fn unkeyed(_: Option<String>, log: Log) {
    tokio::task::yield_now().await;
    let step = workflow::current_step();
    log.say(format!("{} {}", step.run_id(), step.location()));
    log.say(step.idempotency_key());
}

// U12
#[workflow]
async fn keys(#[state] log: Log) -> Result<(), Failure> {
    checkpoint!(begun);
    #[step(name = "pay", undo(unkeyed))]
    keyed(&log).await?;
    Ok(())
}

#[workflow]
async fn with_undos(undoes: bool, #[state] log: Log) -> Result<(), Failure> {
    checkpoint!(begun);
    if undoes {
        #[step(name = "undone", undo(unbook))]
        book(&log, "hotel".to_owned()).await?;
    } else {
        #[step(name = "kept")]
        book(&log, "hotel".to_owned()).await?;
    }
    Ok(())
}

#[workflow]
async fn waits(#[state] log: Log) -> Result<(), Failure> {
    checkpoint!(begun);
    #[step(name = "hotel", undo(unbook))]
    book(&log, "hotel".to_owned()).await?;
    #[step(name = "slow", undo(unbook_maybe))]
    slow(&log).await?;
    sleep!(long, "1h").await;
    Ok(())
}

#[workflow]
async fn parent(fails: bool, #[state] log: Log) -> Result<(), Failure> {
    checkpoint!(begun);
    #[step(name = "deposit", undo(unbook))]
    book(&log, "deposit".to_owned()).await?;
    child(fails).await?;
    Ok(())
}

#[workflow]
async fn child(fails: bool, #[state] log: Log) -> Result<(), Failure> {
    checkpoint!(begun);
    #[step(name = "guide", undo(unbook))]
    book(&log, "guide".to_owned()).await?;
    if fails {
        fail(&log).await?;
    }
    sleep!(long, "1h").await;
    Ok(())
}

#[workflow]
async fn impatient() -> Result<(), Failure> {
    race!(
        race,
        trip = child(true).await?,
        late = sleep!(window, "5s").await
    )
    .await?;
    sleep!(long, "1h").await;
    Ok(())
}

#[workflow]
async fn rounds(settles: bool, #[state] log: Log) -> Result<(), Failure> {
    checkpoint!(begun);
    let mut round = 0u32;
    #[carry(round, every = 1, keep = 1)]
    'rounds: while round < 6 {
        #[step(name = "round", undo(unbook))]
        book(&log, format!("round {round}")).await?;
        if settles {
            settle!(paid);
        }
        round += 1;
    }
    sleep!(nap, "1h").await;
    fail(&log).await?;
    Ok(())
}

#[workflow]
async fn branches(#[state] log: Log) -> Result<(), Failure> {
    checkpoint!(begun);
    let won = race!(
        fastest,
        plain = {
            #[step(name = "plain", undo(|what: String, log: Log| async move { log.say(format!("undo {what}")) }))]
            slow(&log).await?;
        },
        unsure = {
            #[step(name = "unsure", undo(unbook_maybe))]
            slow(&log).await?;
        },
        fast = sleep!(quick, "1s").await
    )
    .await?;
    assert_eq!(won.branch, "fast");
    let both = join!(
        both,
        good = {
            #[step(name = "good", undo(unbook))]
            book(&log, "good".to_owned()).await?
        },
        bad = fail(&log).await?
    )
    .await;
    both.map(|_| ())
}

fn builder(world: &World, log: &Log) -> EngineBuilder {
    let builder = world.engine().state(log.clone());
    let builder = builder.workflow(waits).workflow(parent).workflow(child);
    let builder = builder.workflow(impatient);
    builder.workflow(rounds).workflow(branches)
}

async fn engine(world: &World, log: &Log) -> Engine {
    builder(world, log).workflow(trip).build().await.unwrap()
}

fn parked(error: Error) -> ParkReason {
    match error {
        Error::Parked(parked) => parked.reason,
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_undo_costs_no_commit_beyond_that_of_its_step() {
    let mut counts = Vec::new();
    for undoes in [true, false] {
        let (world, log) = (World::new(), Log::default());
        let store = FaultStore::over(&world.store, [Fault::None; 100]);
        let builder = Engine::builder().clock(world.clock()).state(log);
        let engine = builder.workflow(with_undos).store(store.clone());
        let engine = engine.build().await.unwrap();
        engine.run("a", with_undos(undoes)).await.unwrap();
        counts.push(100 - store.left());
    }
    assert_eq!(counts[0], counts[1]);
}

// U12
#[tokio::test(start_paused = true)]
async fn an_undo_knows_the_step_that_it_undoes_and_its_idempotency_key() {
    let (world, log) = (World::new(), Log::default());
    let engine = world.engine().state(log.clone()).workflow(keys);
    let engine = engine.build().await.unwrap();
    engine.run("a", keys()).await.unwrap_err();
    let all = log.all();
    assert_eq!(all[1..], ["a pay".to_owned(), all[0].clone()]);
    assert!(workflow::try_current_step().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_rolled_back_is_told_of_as_any_that_fails() {
    let (world, log) = (World::new(), Log::default());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ears = Arc::clone(&heard);
    let builder = builder(&world, &log).workflow(trip);
    let engine = builder
        .on_error(move |event| {
            if let ErrorEvent::Workflow { failure, .. } = event {
                ears.lock().unwrap().push(failure.to_string());
            }
        })
        .build()
        .await
        .unwrap();
    let Error::Failed(failure) = engine.run("a", trip()).await.unwrap_err() else {
        panic!()
    };
    assert!(failure.to_string().contains("the wind has turned"));
    pass(10).await;
    assert_eq!(*heard.lock().unwrap(), [failure.to_string()]);
}

#[tokio::test(start_paused = true)]
async fn an_undo_that_hangs_or_panics_is_a_failed_attempt_and_does_not_hold_the_run_for_ever() {
    for how in [Undo::Hangs, Undo::Panics] {
        let (world, log) = (World::new(), Log::default());
        let engine = engine(&world, &log).await;
        log.undos(how);
        let error = engine.run("a", trip()).await.unwrap_err();
        assert_eq!(parked(error), ParkReason::UndoFailed, "{how:?}");
        log.undos(Undo::Works);
        engine.resume("a").await.unwrap();
        let run = engine.attach::<trip>("a").await.unwrap();
        assert!(matches!(run.result().await, Err(Error::Failed(_))));
        assert_eq!(log.undone(), ["undo car", "undo hotel"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_lets_the_undo_under_way_end_and_begins_no_other() {
    let (world, log) = (World::new(), Log::default());
    log.undos(Undo::TakesTenSeconds);
    let first = engine(&world, &log).await;
    first.start("a", trip()).await.unwrap();
    pass(1_000).await;
    first.shutdown(Duration::from_secs(59)).await.unwrap();
    assert_eq!(log.undone(), ["undo car"]);

    let second = engine(&world.crash(), &log).await;
    let run = second.attach::<trip>("a").await.unwrap();
    assert!(matches!(run.result().await, Err(Error::Failed(_))));
    assert_eq!(log.undone(), ["undo car", "undo hotel"]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_an_undo_beyond_its_grace() {
    let (world, log) = (World::new(), Log::default());
    log.undos(Undo::Hangs);
    let first = engine(&world, &log).await;
    first.start("a", trip()).await.unwrap();
    pass(1_000).await;
    let before = tokio::time::Instant::now();
    first.shutdown(Duration::from_secs(2)).await.unwrap();
    assert!(before.elapsed() < Duration::from_secs(3));
    log.undos(Undo::Works);
    let second = engine(&world.crash(), &log).await;
    let run = second.attach::<trip>("a").await.unwrap();
    assert!(matches!(run.result().await, Err(Error::Failed(_))));
    assert_eq!(log.undone(), ["undo car", "undo hotel"]);
}

#[tokio::test(start_paused = true)]
async fn an_undo_that_code_no_longer_has_parks_the_run_until_code_has_it_again() {
    let (mut world, log) = (World::new(), Log::default());
    log.undos(Undo::Fails);
    let first = engine(&world, &log).await;
    let error = first.run("a", trip()).await.unwrap_err();
    assert_eq!(parked(error), ParkReason::UndoFailed);
    log.undos(Undo::Works);

    world = world.crash();
    let deployed = builder(&world, &log)
        .workflow(without_undo::trip)
        .code_id(2);
    let second = deployed.build().await.unwrap();
    second.resume("a").await.unwrap();
    let run = second.attach::<without_undo::trip>("a").await.unwrap();
    let Err(Error::Parked(parked)) = run.result().await else {
        panic!()
    };
    assert_eq!(parked.reason, ParkReason::UndoMissing);
    assert!(
        parked.detail.contains("no undo at `car`"),
        "{}",
        parked.detail
    );

    world = world.crash();
    let third = builder(&world, &log).workflow(trip).code_id(3);
    let third = third.build().await.unwrap();
    let run = third.attach::<trip>("a").await.unwrap();
    assert!(matches!(run.result().await, Err(Error::Failed(_))));
    assert_eq!(log.undone(), ["undo car", "undo hotel"]);
}

// U12, U14
#[tokio::test(start_paused = true)]
async fn a_step_that_was_removed_with_its_undo_is_undone_where_it_was_done() {
    let (mut world, log) = (World::new(), Log::default());
    log.undos(Undo::Fails);
    let first = engine(&world, &log).await;
    first.run("a", trip()).await.unwrap_err();
    log.undos(Undo::Works);

    world = world.crash();
    let deployed = builder(&world, &log).workflow(without_car::trip).code_id(2);
    let second = deployed.build().await.unwrap();
    second.resume("a").await.unwrap();
    let run = second.attach::<without_car::trip>("a").await.unwrap();
    assert!(matches!(run.result().await, Err(Error::Failed(_))));
    assert_eq!(log.undone(), ["undo car", "undo hotel"]);
    // A run that never had it has nothing of it to undo.
    let fresh = second.run("b", without_car::trip()).await;
    assert!(matches!(fresh, Err(Error::Failed(_))));
    assert_eq!(log.undone(), ["undo car", "undo hotel", "undo hotel"]);
}

// M8
#[tokio::test(start_paused = true)]
async fn a_body_that_runs_when_the_run_is_cancelled_ends_before_its_undo() {
    let (world, log) = (World::new(), Log::default());
    let engine = engine(&world, &log).await;
    let run = engine.start("a", waits()).await.unwrap();
    pass(1_000).await;
    let (one, two) = tokio::join!(run.cancel().and_undo(), engine.cancel("a").and_undo());
    one.unwrap();
    two.unwrap();
    assert!(matches!(run.result().await, Err(Error::Cancelled(_))));
    let all = [
        "hotel",
        "slow begins",
        "slow ends",
        r#"undo Some("slow")"#,
        "undo hotel",
    ];
    assert_eq!(log.all(), all);
    run.cancel().and_undo().await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_whose_undo_is_stuck_stays_a_failed_one_when_it_is_cancelled() {
    let (world, log) = (World::new(), Log::default());
    let engine = engine(&world, &log).await;
    log.undos(Undo::Fails);
    engine.run("a", trip()).await.unwrap_err();
    log.undos(Undo::Works);
    let run = engine.attach::<trip>("a").await.unwrap();
    run.cancel().and_undo().await.unwrap();
    let Err(Error::Failed(failure)) = run.result().await else {
        panic!()
    };
    assert!(failure.to_string().contains("the wind has turned"));
    assert_eq!(log.undone(), ["undo car", "undo hotel"]);
}

#[tokio::test(start_paused = true)]
async fn cancelling_with_undo_in_an_engine_that_is_gone_is_an_error() {
    let (world, log) = (World::new(), Log::default());
    let engine = engine(&world, &log).await;
    let run = engine.start("a", waits()).await.unwrap();
    pass(20_000).await;
    engine.shutdown(Duration::ZERO).await.unwrap();
    let cancelled = tokio::time::timeout(Duration::from_secs(9), run.cancel().and_undo());
    cancelled.await.expect("it does not hang").unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_child_is_undone_before_its_parent_is_told_and_undone_itself() {
    let (world, log) = (World::new(), Log::default());
    let engine = engine(&world, &log).await;
    log.undos(Undo::TakesTenSeconds);
    engine.run("a", parent(true)).await.unwrap_err();
    let all = ["deposit", "guide", "failed", "undo guide", "undo deposit"];
    assert_eq!(log.all(), all);
}

// M8, M9
#[tokio::test(start_paused = true)]
async fn what_a_cancelled_run_waited_for_is_undone_too() {
    let (world, log) = (World::new(), Log::default());
    let engine = engine(&world, &log).await;
    let run = engine.start("a", parent(false)).await.unwrap();
    pass(60_000).await;
    run.cancel().and_undo().await.unwrap();
    assert!(matches!(run.result().await, Err(Error::Cancelled(_))));
    pass(60_000).await;
    let mut undone = log.undone();
    // No order is promised between runs.
    undone.sort();
    assert_eq!(undone, ["undo deposit", "undo guide"]);
    let runs = engine.list(&RunFilter::default()).await.unwrap().rows;
    assert!(runs.iter().all(|run| run.state == RunState::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_undoes_itself_is_not_cut_off_by_a_parent_that_no_longer_waits_for_it() {
    for cancel in [false, true] {
        let (world, log) = (World::new(), Log::default());
        let engine = engine(&world, &log).await;
        log.undos(Undo::TakesTenSeconds);
        let run = engine.start("a", impatient()).await.unwrap();
        pass(3_000).await;
        if cancel {
            run.cancel().await.unwrap();
        }
        pass(60_000).await;
        assert_eq!(log.all(), ["guide", "failed", "undo guide"]);
        let runs = engine.list(&RunFilter::default()).await.unwrap().rows;
        assert_eq!(runs[1].state, RunState::Failed);
    }
}

/// No cipher, but nothing is readable.
struct Flipped;

impl Codec for Flipped {
    fn id(&self) -> u8 {
        7
    }

    fn seal(&self, json: Vec<u8>) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(json.into_iter().map(|byte| !byte).collect())
    }

    fn open(
        &self,
        _: u8,
        sealed: Bytes,
    ) -> Result<Bytes, Box<dyn std::error::Error + Send + Sync>> {
        Ok(sealed.iter().map(|byte| !byte).collect())
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_ledger_holds_is_sealed_and_an_undo_gets_it_opened() {
    let (world, log) = (World::new(), Log::default());
    log.undos(Undo::Fails);
    let open = async |world: &World| {
        let builder = builder(world, &log).workflow(trip).codec(Flipped);
        builder.build().await.unwrap()
    };
    let first = open(&world).await;
    first.run("a", trip()).await.unwrap_err();
    log.undos(Undo::Works);
    let second = open(&world.crash()).await;
    second.resume("a").await.unwrap();
    let run = second.attach::<trip>("a").await.unwrap();
    assert!(matches!(run.result().await, Err(Error::Failed(_))));
    assert_eq!(log.undone(), ["undo car", "undo hotel"]);
    for record in run.history().await.unwrap() {
        if let Body::Armed { output, .. } = record.body {
            let output = output.unwrap();
            assert!(output.codec == 7 && !output.bytes.starts_with(b"\""));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_ledger_outlives_pruned_iterations_and_settling_bounds_it() {
    let (world, log) = (World::new(), Log::default());
    let first = engine(&world, &log).await;
    first.start("a", rounds(false)).await.unwrap();
    first.start("b", rounds(true)).await.unwrap();
    pass(60_000).await;
    assert_eq!(first.in_memory(), 0);
    drop(first);
    let second = engine(&world.crash(), &log).await;
    let run = second.attach::<rounds>("b").await.unwrap();
    let told = format!("{:?}", run.history().await.unwrap());
    assert!(told.matches("Armed").count() <= 1, "{told}");
    pass(4_000_000).await;
    let ended = run.result().await;
    assert!(matches!(ended, Err(Error::Failed(_))), "{ended:?}");
    let all: Vec<_> = (0..6)
        .rev()
        .map(|round| format!("undo round {round}"))
        .collect();
    assert_eq!(
        log.undone(),
        all,
        "of the first run, and none of the second"
    );
}

// U12
#[tokio::test(start_paused = true)]
async fn of_losers_dropped_in_their_bodies_those_are_undone_whose_undo_takes_the_unknown() {
    let (world, log) = (World::new(), Log::default());
    let engine = engine(&world, &log).await;
    engine.run("a", branches()).await.unwrap_err();
    assert_eq!(log.undone(), ["undo good", "undo None"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_parked_is_undone_when_it_is_cancelled() {
    let (world, log) = (World::new(), Log::default());
    let first = engine(&world, &log).await;
    first.start("a", waits()).await.unwrap();
    pass(60_000).await;
    let world = world.crash();
    // It does not know the workflow.
    let other = world.engine().state(log.clone()).workflow(trip).code_id(2);
    let other = other.build().await.unwrap();
    other.resume("a").await.unwrap();
    pass(10).await;
    assert_eq!(other.status("a").await.unwrap().state, RunState::Parked);
    other.cancel("a").and_undo().await.unwrap();
    pass(10).await;
    assert_eq!(log.undone(), Vec::<String>::new());

    let last = builder(&world.crash(), &log).code_id(3);
    let last = last.build().await.unwrap();
    let run = last.attach::<waits>("a").await.unwrap();
    assert!(matches!(run.result().await, Err(Error::Cancelled(_))));
    assert_eq!(log.undone(), [r#"undo Some("slow")"#, "undo hotel"]);
}

/// Keeps the waker of the code that polls it.
#[derive(Clone, Default)]
struct Keeper(Arc<Mutex<Option<Waker>>>, Arc<AtomicUsize>);

#[workflow]
async fn woken(#[state] keeper: Keeper, #[state] log: Log) -> Result<(), Failure> {
    checkpoint!(begun);
    #[step(name = "kept", undo(|(): (), keeper: Keeper| polled(keeper)))]
    keep(&keeper).await?;
    fail(&log).await?;
    Ok(())
}

#[step]
async fn keep(keeper: &Keeper) {
    std::future::poll_fn(|cx| {
        *keeper.0.lock().unwrap() = Some(cx.waker().clone());
        std::task::Poll::Ready(())
    })
    .await;
}

async fn polled(keeper: Keeper) {
    keeper.0.lock().unwrap().take().unwrap().wake();
    let sleep = tokio::time::sleep(Duration::from_secs(1));
    tokio::pin!(sleep);
    std::future::poll_fn(|cx| {
        // Ends by itself if it is polled again and again.
        if keeper.1.fetch_add(1, Ordering::SeqCst) > 1_000 {
            return std::task::Poll::Ready(());
        }
        sleep.as_mut().poll(cx)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_still_wakes_the_code_of_a_run_that_is_undone_does_not_keep_it_busy() {
    let (world, keeper) = (World::new(), Keeper::default());
    let engine = world.engine().state(keeper.clone()).state(Log::default());
    let engine = engine.workflow(woken).build().await.unwrap();
    engine.run("a", woken()).await.unwrap_err();
    assert!(keeper.1.load(Ordering::SeqCst) < 10);
}

/// A body that yields, has its effect, yields, and may then not end.
#[step(retries = 0, timeout = "1s")]
async fn effect(log: &Log, ends: bool) -> String {
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
    log.say("effect");
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
    if !ends {
        std::future::pending::<()>().await;
    }
    "done".to_owned()
}

// U12
#[workflow]
async fn model(ends: bool, #[state] log: Log) -> Result<(), Failure> {
    checkpoint!(begun);
    #[step(name = "effect", undo(unbook_maybe))]
    effect(&log, ends).await?;
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Cancel,
    Crash,
    CrashAndCancel,
}

// U12: an effect that was had is undone, or the run completed; wherever it is cancelled or cut off.
#[tokio::test(start_paused = true)]
async fn wherever_a_run_is_cut_off_or_cancelled_no_effect_is_left_behind() {
    let mut seen = [0; 3];
    for (cut, ends) in [Cut::Cancel, Cut::Crash, Cut::CrashAndCancel]
        .into_iter()
        .flat_map(|cut| [(cut, true), (cut, false)])
    {
        for polls in 0..40 {
            let (mut world, log) = (World::new(), Log::default());
            let open = async |world: &World| {
                let builder = world.engine().state(log.clone());
                builder.workflow(model).build().await.unwrap()
            };
            let mut engine = open(&world).await;
            engine.start("a", model(ends)).await.unwrap();
            for _ in 0..polls {
                tokio::task::yield_now().await;
            }
            if cut != Cut::Cancel {
                world = world.crash();
                engine = open(&world).await;
            }
            let run = engine.attach::<model>("a").await.unwrap();
            if cut != Cut::Crash {
                // It may have come to its end before.
                let _ = run.cancel().and_undo().await;
            }
            let ended = run.result().await;
            let all = log.all();
            let last_effect = all.iter().rposition(|said| said == "effect");
            let undo = all.iter().position(|said| said.starts_with("undo"));
            let context = format!("{cut:?} after {polls}, {ended:?}: {all:?}");
            match &ended {
                Ok(()) => assert_eq!(undo, None, "{context}"),
                Err(_) => assert!(last_effect.is_none() || undo > last_effect, "{context}"),
            }
            assert!(log.undone().len() <= 1, "{context}");
            seen[0] += usize::from(ended.is_ok());
            seen[1] += usize::from(ended.is_err() && last_effect.is_some());
            seen[2] += usize::from(last_effect.is_none());
        }
    }
    assert!(seen.iter().all(|seen| *seen > 0), "{seen:?}");
}
