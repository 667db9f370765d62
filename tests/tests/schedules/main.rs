//! Runs by the calendar: when a schedule says so, once, and what becomes of it when nothing ran, when somebody paused it, or when it
//! says something else.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod expressions;
mod firing;
mod jumps;
mod operating;

use std::time::Duration;

use workflow::store::RunFilter;
use workflow::{
    Engine, EngineBuilder, Failure, MemoryStore, Schedule, Timestamp, TokioClock, sleep, workflow,
};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Says when it was meant to be.
#[workflow]
pub async fn report(at: String) -> Result<String, Failure> {
    Ok(at)
}

/// Takes so many seconds.
#[workflow]
pub async fn slow(seconds: u64) -> Result<(), Failure> {
    sleep!(work, Duration::from_secs(seconds)).await;
    Ok(())
}

/// A clock and a store, over which engines come and go.
struct Life {
    clock: TokioClock,
    store: std::sync::Arc<MemoryStore>,
}

impl Life {
    /// It begins at this instant: `2026-03-28T12:00:00Z`.
    fn from(instant: &str) -> Self {
        Self {
            clock: TokioClock::starting_at(at(instant)),
            store: MemoryStore::new().into(),
        }
    }

    fn builder(&self) -> EngineBuilder {
        let store = std::sync::Arc::<MemoryStore>::clone(&self.store);
        Engine::builder()
            .workflow(report)
            .workflow(slow)
            .shared_store(store)
            .clock(self.clock)
    }

    async fn engine(&self, schedule: Schedule) -> Engine {
        self.builder().schedule(schedule).build().await.unwrap()
    }

    /// The process is killed. Who opens the store finds what was written by then.
    fn killed(self, engine: Engine) -> Self {
        let store = self.store.crash().into();
        drop(engine);
        Self { store, ..self }
    }
}

fn at(instant: &str) -> Timestamp {
    let instant: jiff::Timestamp = instant.parse().unwrap();
    Timestamp::from_millis(instant.as_millisecond())
}

fn utc(at: Timestamp) -> String {
    let instant = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap();
    instant.to_string()
}

/// The ids of all runs, in the order in which they were started, without what comes before the instant.
async fn fired(engine: &Engine) -> Vec<String> {
    let filter = RunFilter {
        limit: 100_000,
        ..RunFilter::default()
    };
    let rows = engine.list(&filter).await.unwrap().rows;
    let ids = rows
        .iter()
        .map(|row| row.id.as_str().split_once('@').unwrap().1.to_owned());
    ids.collect()
}
