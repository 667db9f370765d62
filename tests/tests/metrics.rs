//! What the engine tells the `metrics` facade, as a recorder hears it.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metrics::{
    Counter as Counts, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata,
    Recorder, SharedString, Unit, with_local_recorder,
};
use workflow::{AnyWorkflow, Channel, Engine, Failure, RedbStore, sleep, step, workflow};
use workflow_tests::{Counter, World, pass};

/// Every metric with its labels, and what was recorded of it, in order.
#[derive(Debug, Clone, Default)]
struct Heard(Arc<Mutex<BTreeMap<String, Vec<f64>>>>);

/// One metric.
#[derive(Debug)]
struct One(Heard, String);

impl Heard {
    fn one(&self, key: &Key) -> Arc<One> {
        let labels = key
            .labels()
            .map(|label| format!(" {}={}", label.key(), label.value()));
        let name = format!("{}{}", key.name(), labels.collect::<String>());
        Arc::new(One(self.clone(), name))
    }

    fn of(&self, name: &str) -> Vec<f64> {
        self.0
            .lock()
            .unwrap()
            .get(name)
            .cloned()
            .unwrap_or_default()
    }
}

impl One {
    fn note(&self, value: f64) {
        let mut all = self.0.0.lock().unwrap();
        all.entry(self.1.clone()).or_default().push(value);
    }
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
impl CounterFn for One {
    fn increment(&self, value: u64) {
        self.note(value as f64);
    }

    fn absolute(&self, value: u64) {
        self.note(value as f64);
    }
}

impl GaugeFn for One {
    fn increment(&self, _: f64) {
        unreachable!("gauges are set");
    }

    fn decrement(&self, _: f64) {
        unreachable!("gauges are set");
    }

    fn set(&self, value: f64) {
        self.note(value);
    }
}

impl HistogramFn for One {
    fn record(&self, value: f64) {
        self.note(value);
    }
}

impl Recorder for Heard {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counts {
        Counts::from_arc(self.one(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.one(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.one(key))
    }
}

static PARCEL: Channel<u32> = Channel::new("parcel");

#[step(retries = 1, backoff(fixed, wait = "200ms"))]
async fn ship(item: u32, calls: &Counter) -> Result<u32, std::io::Error> {
    pass(250).await;
    if calls.hit() == 1 {
        return Err(std::io::Error::other("not yet"));
    }
    if item == 9 {
        return Err(std::io::Error::other("never"));
    }
    Ok(item)
}

#[workflow]
async fn parcels(items: Vec<u32>, #[state] calls: Counter) -> Result<u32, Failure> {
    let mut sum = 0;
    'items: for item in items {
        sum += ship(item, &calls).await?;
    }
    sleep!(rest, "1h").await;
    Ok(sum)
}

#[workflow]
async fn panics() {
    sleep!(nap, "1ms").await;
    panic!("oh no");
}

#[test]
fn what_happens_is_counted_and_timed_under_the_documented_names() {
    let heard = Heard::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    with_local_recorder(&heard, || runtime.block_on(story()));

    let of = |name: &str| heard.of(name);
    let total = |name: &str| of(name).iter().sum::<f64>();
    let is = |name: &str, value: f64| {
        assert!((total(name) - value).abs() < 1e-9, "{name}: {:?}", of(name));
    };
    is("workflow_runs_started_total workflow=parcels", 3.0);
    is(
        "workflow_runs_ended_total workflow=parcels state=completed",
        1.0,
    );
    is(
        "workflow_runs_ended_total workflow=parcels state=failed",
        1.0,
    );
    is(
        "workflow_runs_ended_total workflow=parcels state=cancelled",
        1.0,
    );
    is(
        "workflow_runs_parked_total workflow=panics reason=panicked",
        1.0,
    );
    // One series for all iterations.
    let step = "workflow=parcels step=items[]/ship";
    is(&format!("workflow_step_retries_total {step}"), 2.0);
    assert_eq!(
        of(&format!("workflow_step_seconds {step} outcome=completed")),
        [0.25; 2]
    );
    assert_eq!(
        of(&format!("workflow_step_seconds {step} outcome=failed")),
        [0.25]
    );
    assert_eq!(of("workflow_replay_records workflow=parcels").len(), 1);
    assert!(of("workflow_replay_records workflow=parcels")[0] >= 5.0);
    assert!(
        of("workflow_timer_lag_seconds")
            .iter()
            .all(|lag| *lag < 0.1)
    );
    assert!(of("workflow_timer_lag_seconds").len() >= 2);
    let (commits, records) = (of("workflow_commit_seconds"), of("workflow_commit_records"));
    assert_eq!(commits.len(), records.len());
    assert!(records.iter().any(|records| *records > 0.0));
    let in_memory = of("workflow_runs_in_memory");
    assert!(in_memory.contains(&1.0));
    assert!(in_memory.last().unwrap().abs() < 1e-9);
}

#[test]
fn the_commits_of_the_embedded_store_are_counted_and_timed() {
    let heard = Heard::default();
    let directory = tempfile::tempdir().unwrap();
    // Whoever waits for a commit makes it: here that is the thread of the test, on which the recorder listens.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap();
    with_local_recorder(&heard, || {
        runtime.block_on(async {
            let store = RedbStore::open(directory.path().join("s.redb")).unwrap();
            let engine = Engine::builder()
                .workflow(parcels)
                .state(Counter::default());
            let engine = engine.store(store).build().await.unwrap();
            engine.send("later", &PARCEL, &1).await.unwrap();
            engine.shutdown(Duration::ZERO).await.unwrap();
        });
    });
    assert_eq!(heard.of("workflow_store_commit_batches"), [1.0]);
    let seconds = heard.of("workflow_store_commit_seconds");
    assert!(seconds.len() == 1 && seconds[0] > 0.0, "{seconds:?}");
}

async fn story() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = world.engine().workflow(parcels).workflow(panics);
    let engine = engine.state(calls.clone()).build().await.unwrap();
    assert_eq!(engine.run("p1", parcels(vec![1, 2])).await.unwrap(), 3);
    engine.run("p2", parcels(vec![9])).await.unwrap_err();
    engine.start("p3", parcels(vec![])).await.unwrap();
    engine.cancel("p3").await.unwrap();
    engine.run("x", panics()).await.unwrap_err();
    assert!(engine.attach::<AnyWorkflow>("p3").await.is_ok());
    engine.shutdown(Duration::ZERO).await.unwrap();
}
