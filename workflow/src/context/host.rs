//! What the floor above gives to this one.

use std::time::Duration;

use super::CurrentStep;
use crate::replay::{Location, Timestamp};
use crate::store::BoxFuture;

/// What a run needs of the world. The engine is one.
pub trait Host: Send + Sync {
    /// What the engine's clock says.
    fn now(&self) -> Timestamp;

    /// Resolves after `duration`. Only the timeouts of steps ask for it, and only once a body was pending.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// Runs `job` on a thread that may block. It never panics.
    fn run_blocking(&self, job: Box<dyn FnOnce() + Send>);

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

    /// What the code published cannot be written, and is passed over.
    fn unpublished(&self, detail: &str) {
        let _ = detail;
    }

    /// What surrounds the polls of an attempt's body, asked once per attempt.
    fn step_span(&self, step: &CurrentStep) -> Option<Box<dyn StepSpan>> {
        let _ = step;
        None
    }
}

/// What surrounds each poll of a step's body: a tracing span, say.
pub trait StepSpan: Send {
    /// Calls `poll`, once.
    fn in_scope(&self, poll: &mut dyn FnMut());
}
