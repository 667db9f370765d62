//! What the engine says to the log. Apart from the other tests, and one at a time: which events are of interest is
//! remembered per process.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use workflow::store::RedbStore;
use workflow::{Failure, critical, sleep, step, workflow};
use workflow_tests::{Counter, World, pass};

static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// What was said, a line per event or new span: its level, then its fields.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<(Level, String)>>>);

impl Log {
    fn at_least(&self, level: Level) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        lines
            .iter()
            .filter(|(of, _)| *of <= level)
            .map(|(_, line)| line.clone())
            .collect()
    }

    /// The names of what was said that has one, with some of the fields.
    fn told(&self, fields: &[&str]) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        let named = lines
            .iter()
            .filter(|(_, line)| line.starts_with("workflow."));
        let told = named.map(|(level, line)| {
            let mut told = format!("{level} {}", line.split(' ').next().unwrap());
            for field in line.split(' ').skip(1) {
                if fields
                    .iter()
                    .any(|name| field.starts_with(&format!("{name}=")))
                {
                    let _ = write!(told, " {field}");
                }
            }
            told
        });
        told.collect()
    }

    fn note(&self, level: Level, name: &str, fields: impl FnOnce(&mut Line)) {
        let mut line = Line(name.to_owned());
        fields(&mut line);
        self.0.lock().unwrap().push((level, line.0));
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("workflow")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.note(*span.metadata().level(), span.metadata().name(), |line| {
            span.record(line);
        });
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let name = event.metadata().name();
        // One without a name of its own is called after the line that it stands on.
        let name = if name.starts_with("workflow.") {
            name
        } else {
            "event"
        };
        self.note(*event.metadata().level(), name, |line| {
            event.record(line);
        });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[step]
async fn note(calls: &Counter) -> u32 {
    u32::try_from(calls.hit()).unwrap()
}

#[workflow]
async fn napping(#[state] calls: Counter) -> Result<u32, Failure> {
    let one = note(&calls).await?;
    sleep!(nap, "1h").await;
    Ok(one)
}

// UA-27
#[tokio::test(start_paused = true)]
async fn a_run_that_sleeps_and_wakes_says_nothing_alarming_and_replays_in_silence() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    let (world, calls) = (World::new(), Counter::default());
    let engine = world
        .engine()
        .workflow(napping)
        .state(calls.clone())
        .build()
        .await
        .unwrap();
    assert_eq!(engine.run("r", napping()).await.unwrap(), 1);
    assert_eq!(log.at_least(Level::WARN), Vec::<String>::new());
    let steps = log
        .at_least(Level::INFO)
        .into_iter()
        .filter(|line| line.starts_with("workflow.step"));
    let steps: Vec<_> = steps.collect();
    assert_eq!(
        steps.len(),
        1,
        "a step that is replayed has no span: {steps:?}"
    );
    assert!(
        steps[0].contains("location=note") && steps[0].contains("attempt=1"),
        "{steps:?}"
    );
}

#[step(retries = 1, backoff(fixed, wait = "200ms"))]
async fn wavers(calls: &Counter) -> Result<usize, std::io::Error> {
    pass(30).await;
    match calls.hit() {
        1 => Err(std::io::Error::other("not yet")),
        call => Ok(call),
    }
}

#[workflow]
async fn wavering(#[state] calls: Counter) -> Result<usize, Failure> {
    let one = wavers(&calls).await?;
    sleep!(nap, "1h").await;
    match declined().await {
        Ok(_) => Ok(one),
        Err(failure) => Err(failure),
    }
}

#[tokio::test(start_paused = true)]
async fn what_happens_to_a_run_is_told_by_names_that_stay_and_once() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    let (world, calls) = (World::new(), Counter::default());
    let engine = world.engine().workflow(wavering).workflow(napping);
    let engine = engine.state(calls.clone()).build().await.unwrap();
    engine.start("w", wavering()).await.unwrap();
    pass(60_000).await;
    let fields = [
        "run",
        "workflow",
        "location",
        "attempt",
        "attempts",
        "elapsed_ms",
        "delay_ms",
        "kind",
    ];
    assert_eq!(
        log.told(&fields),
        [
            "INFO workflow.run run=w workflow=\"wavering\"",
            "DEBUG workflow.run.started run=w workflow=\"wavering\"",
            "INFO workflow.step location=wavers attempt=1",
            "INFO workflow.step.retried run=w workflow=\"wavering\" location=wavers attempt=1 kind=exhausted delay_ms=200",
            "INFO workflow.step location=wavers attempt=2",
            "DEBUG workflow.step.completed run=w workflow=\"wavering\" location=wavers attempts=2 elapsed_ms=30",
        ]
    );
    // What is replayed is not told again.
    let world = world.crash();
    drop(engine);
    log.0.lock().unwrap().clear();
    let engine = world.engine().workflow(wavering).workflow(napping);
    let engine = engine.state(calls.clone()).build().await.unwrap();
    let run = engine.attach::<wavering>("w").await.unwrap();
    run.result().await.unwrap_err();
    assert_eq!(
        log.told(&["run", "location", "records", "attempts"]),
        [
            "DEBUG workflow.run.loaded run=w records=4",
            "INFO workflow.run run=w",
            "INFO workflow.step location=declined",
            "INFO workflow.step.failed run=w location=declined attempts=1",
            "INFO workflow.run.failed run=w location=declined",
        ]
    );
    log.0.lock().unwrap().clear();
    engine.start("n", napping()).await.unwrap();
    engine.cancel("n").await.unwrap();
    assert_eq!(
        log.told(&["run"]).last().unwrap(),
        "INFO workflow.run.cancelled run=n"
    );
}

#[step(retries = 0)]
async fn declined() -> Result<u32, workflow::Critical> {
    Err(critical("declined"))
}

#[workflow]
async fn declining() -> Result<u32, Failure> {
    declined().await
}

// RVT-STEP-26
#[tokio::test(start_paused = true)]
async fn an_error_hook_that_panics_is_warned_of_once_and_harms_nothing() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    let world = World::new();
    // Its own message would clutter the test's output.
    std::panic::set_hook(Box::new(|_| {}));
    let engine = world
        .engine()
        .workflow(declining)
        .on_error(|_| panic!("the hook is broken"))
        .build()
        .await
        .unwrap();
    let failure = engine.run("r", declining()).await.unwrap_err();
    assert_eq!(failure.failure().unwrap().message(), "declined");
    engine.shutdown(Duration::from_secs(1)).await.unwrap();
    drop(std::panic::take_hook());
    let warned = log.at_least(Level::WARN);
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0].contains("an error hook panicked"), "{warned:?}");
}

// UA-36
#[tokio::test(start_paused = true)]
async fn at_start_one_line_says_how_many_runs_go_on_and_how_many_do_not() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let (world, calls) = (World::new(), Counter::default());
    let engine = world
        .engine()
        .workflow(napping)
        .state(calls.clone())
        .build()
        .await
        .unwrap();
    for id in ["a", "b", "c"] {
        engine.start(id, napping()).await.unwrap();
    }
    pass(10).await;
    let world = world.crash();
    drop(engine);
    // A program that does not know the workflow parks what comes due, and says why.
    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    let engine = world.engine().workflow(declining).build().await.unwrap();
    pass(3_600_100).await;
    let parked = log.at_least(Level::WARN);
    assert_eq!(parked.len(), 3, "{parked:?}");
    assert!(
        parked
            .iter()
            .all(|line| line.contains("unregistered") && line.contains("napping")),
        "{parked:?}"
    );
    drop(engine);
    let world = world.crash();
    let engine = world.engine().workflow(declining).build().await.unwrap();
    pass(10).await;
    let said = log.at_least(Level::INFO);
    let last = said.last().unwrap();
    assert!(
        last.contains("parked=3") && last.contains("resumed=0"),
        "{said:?}"
    );
    drop(engine);
    // One that knows it goes on with them by itself.
    let world = world.crash();
    let engine = world
        .engine()
        .code_id(2)
        .workflow(napping)
        .state(calls.clone())
        .build()
        .await
        .unwrap();
    assert_eq!(engine.run("a", napping()).await.unwrap(), 1);
}

#[workflow(name = "napping")]
async fn renamed(#[state] calls: Counter) -> Result<u32, Failure> {
    #[step(name = "jot")]
    let one = note(&calls).await?;
    sleep!(nap, "1h").await;
    Ok(one)
}

// UA-45: all but the old line, which no record holds.
#[tokio::test(start_paused = true)]
async fn a_divergence_is_told_whole_by_the_log_the_status_and_the_error() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let (world, calls) = (World::new(), Counter::default());
    let builder = world.engine().workflow(napping).state(calls.clone());
    let engine = builder.build().await.unwrap();
    engine.start("order-17", napping()).await.unwrap();
    pass(10).await;
    let world = world.crash();
    drop(engine);

    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    let builder = world.engine().code_id(2).workflow(renamed);
    let engine = builder.state(calls.clone()).build().await.unwrap();
    engine.resume("order-17").await.unwrap();
    let run = engine.attach::<renamed>("order-17").await.unwrap();
    let error = run.result().await.unwrap_err().to_string();
    let status = run.status().await.unwrap();
    let logged = log.at_least(Level::WARN);
    assert_eq!(logged.len(), 1, "{logged:?}");
    let parked = status.parked.as_ref().unwrap();
    let shown = format!("{} {} {}", status.id, status.workflow, parked.detail);
    let hints = ["removed or renamed", "ways out"];
    let parts = ["order-17", "step `note`", "`jot`", "logs.rs:"];
    for told in [&logged[0], &shown, &error] {
        for part in parts.iter().chain(&hints) {
            assert!(told.contains(part), "{part} is not in: {told}");
        }
    }
    assert!(logged[0].contains("napping") && shown.contains("napping"));
}

// UA-66
#[tokio::test]
async fn an_opening_that_has_to_repair_an_older_file_says_so() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.redb");
    let killed = directory.path().join("killed.redb");
    drop(RedbStore::open(&path).unwrap());
    // As a program of format 1 left it when it was killed amid steps.
    let database = redb::Database::open(&path).unwrap();
    let txn = database.begin_write().unwrap();
    let journal = redb::TableDefinition::<u64, &[u8]>::new("workflow.journal");
    txn.open_table(journal).unwrap();
    txn.commit().unwrap();
    std::fs::copy(&path, &killed).unwrap();
    drop(database);

    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    let repair = || {
        let lines = log.at_least(Level::INFO).into_iter();
        let lines = lines.filter(|line| line.contains("killed.redb"));
        lines.collect::<Vec<_>>()
    };
    drop(RedbStore::open(&killed).unwrap());
    let lines = repair();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("was not closed"), "{lines:?}");
    assert!(lines[1].contains("is repaired"), "{lines:?}");

    drop(RedbStore::open(&killed).unwrap());
    assert_eq!(repair(), lines, "it was closed");
}

#[step]
async fn poll(count: u32) -> u32 {
    count + 1
}

/// Keeps all of its iterations.
#[workflow]
async fn hoarding() -> Result<u32, Failure> {
    let mut count = 0;
    'polls: while count < 30 {
        count = poll(count).await?;
    }
    Ok(count)
}

/// Keeps a few.
#[workflow]
async fn thrifty() -> Result<u32, Failure> {
    let mut count = 0;
    #[carry(count, every = 2, keep = 2)]
    'polls: while count < 200 {
        count = poll(count).await?;
    }
    Ok(count)
}

// UA-56
#[tokio::test(start_paused = true)]
async fn a_history_that_grows_long_is_warned_of_once_with_where_it_grows() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let log = Log::default();
    let _listening = tracing::subscriber::set_default(log.clone());
    let world = World::new();
    let engine = world.engine().workflow(hoarding).workflow(thrifty);
    let engine = engine.long_history(20).build().await.unwrap();
    engine.run("thrifty", thrifty()).await.unwrap();
    pass(1).await;
    assert_eq!(log.at_least(Level::WARN), [] as [String; 0]);
    engine.run("hoarding", hoarding()).await.unwrap();
    pass(1).await;
    let warned = log.at_least(Level::WARN);
    assert_eq!(warned.len(), 1, "{warned:?}");
    for part in ["run=hoarding", "polls[]/poll ", "grows long"] {
        assert!(warned[0].contains(part), "{warned:?}");
    }
}
