//! Operations as their users see them: programs of nothing but tokio and operations, in paused time.
#![allow(
    clippy::unwrap_used,
    clippy::too_long_first_doc_paragraph,
    reason = "tests"
)]

mod blocking;
mod cancelling;
mod children;
mod closing;
mod feedback;
mod logging;
mod plans;
mod restoring;
mod retrying;
mod running;
mod skipping;
mod steps;
mod timing;
mod undoing;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow::operation::{Operation, Status};
use workflow::{Timestamp, TokioClock};

/// The clock of most tests: starts at 1 000 000 ms, runs with tokio's.
fn clock() -> TokioClock {
    TokioClock::starting_at(Timestamp::from_millis(START))
}

const START: i64 = 1_000_000;

/// So many milliseconds after the clock's start.
fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(START + millis)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What happened, in order, told from wherever.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn say(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn count(&self, what: &str) -> usize {
        self.all().iter().filter(|told| *told == what).count()
    }
}

/// The statuses that an operation goes through from now on.
fn statuses<T>(operation: &Operation<T>) -> Arc<Mutex<Vec<Status>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&seen);
    operation.observe(move |event| {
        into.lock().unwrap().push(event.to());
        Ok::<_, String>(())
    });
    seen
}

/// Lets whatever is ready go on, without time passing.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Lets a thread go on, in real time, until the operation has reported progress. Virtual time stands still meanwhile.
async fn reported<T>(operation: &Operation<T>) {
    while operation.snapshot().progress().is_none() {
        tokio::task::yield_now().await;
    }
}
