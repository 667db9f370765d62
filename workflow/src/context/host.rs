//! What the floor above gives to this one.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use super::{CurrentStep, Intervening};
use crate::replay::{Location, Record, Timestamp};
use crate::store::{BoxFuture, StoreError};

/// What a run needs of the world. The engine is one.
pub trait Host: Send + Sync {
    /// What the engine's clock says.
    fn now(&self) -> Timestamp;

    /// What says that, wherever it is taken.
    fn clock(&self) -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
        let now = self.now();
        Arc::new(move || now)
    }

    /// Resolves after `duration`. Only the timeouts of steps ask for it, and only once a body was pending.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// Runs `job` on a thread that may block. It never panics.
    fn run_blocking(&self, job: Box<dyn FnOnce() + Send>);

    /// How many such jobs have not ended.
    fn stopping(&self) -> usize {
        0
    }

    /// A random number from 0.0 up to 1.0, for jitter.
    fn random_unit(&self) -> f64;

    /// An attempt of a step failed, the step having so many retries in all. What follows from that is recorded next.
    fn attempt_failed(&self, location: &Location, attempt: u32, max_retries: u32) {
        let _ = (location, attempt, max_retries);
    }

    /// The code published how far it has come, as JSON.
    fn progress(&self, json: &str) {
        let _ = json;
    }

    /// What the run's row has of what was published.
    fn published(&self) -> Option<String> {
        None
    }

    /// What the code published cannot be written, and is passed over.
    fn unpublished(&self, detail: &str) {
        let _ = detail;
    }

    /// What the run's drivers in this process share with its code; made when there is none yet.
    fn desk(&self, make: fn() -> Arc<dyn Desk>) -> Arc<dyn Desk> {
        make()
    }

    /// What there is to say of it when the code of this visit does not fit its records.
    fn strayed(&self, visit: &Location) -> Option<String> {
        let _ = visit;
        None
    }

    /// What the run has recorded, as the store has it.
    fn history(&self) -> BoxFuture<'static, Result<Vec<Record>, StoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Who is asked before a body begins, and the name of the run's workflow.
    fn intervening(&self) -> Option<(&Arc<dyn Intervening>, &str)> {
        None
    }

    /// What surrounds the polls of an attempt's body, asked once per attempt.
    fn step_span(&self, step: &CurrentStep) -> Option<Box<dyn StepSpan>> {
        let _ = step;
        None
    }
}

/// Where the drivers of a run in this process and the run's own code meet. The engine keeps it as long as one of them does, and tells
/// it when the run leaves memory; what goes on at it is theirs.
pub trait Desk: Any + Send + Sync {
    /// The run has left memory; true when somebody at the desk wants it back.
    fn left(&self, left: Left) -> bool;

    /// What parts of the run's code share, whatever the desk is.
    fn shared(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// What the run has said could not be written, and is written again after a while.
    fn not_written(&self, error: &str) {
        let _ = error;
    }

    /// After that, it was written.
    fn written(&self) {}
}

/// How a run left memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// It waits, and comes back.
    Away,
    /// Its end is durable.
    Ended {
        /// By being cancelled.
        cancelled: bool,
    },
    /// It cannot go on as things are, and why.
    Stopped(String),
}

/// What surrounds each poll of a step's body: a tracing span, say.
pub trait StepSpan: Send {
    /// Calls `poll`, once.
    fn in_scope(&self, poll: &mut dyn FnMut());
}
