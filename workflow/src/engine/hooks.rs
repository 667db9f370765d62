//! What the engine reports to whoever runs it. Hooks follow committed records and cannot fail or delay a run.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::replay::{Failure, Location, ParkReason, RunId, Timestamp};

/// Something went wrong in a run, and that is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorEvent {
    /// An attempt of a step failed.
    Step {
        /// The run.
        run: RunId,
        /// The step.
        location: Location,
        /// Which attempt, from 1.
        attempt: u32,
        /// How many retries the step has, this one included if there is one.
        max_retries: u32,
        /// How it failed.
        failure: Failure,
        /// The next attempt, if there is one.
        retry: Option<Retry>,
    },
    /// An attempt to undo a step failed.
    Undo {
        /// The run.
        run: RunId,
        /// The step.
        location: Location,
        /// Which attempt, from 1.
        attempt: u32,
        /// How it failed.
        failure: Failure,
    },
    /// The workflow returned an error that no step event told of before.
    Workflow {
        /// The run.
        run: RunId,
        /// How it failed.
        failure: Failure,
    },
    /// The run cannot go on as things are.
    Parked {
        /// The run.
        run: RunId,
        /// Why.
        reason: ParkReason,
        /// The whole report.
        detail: String,
    },
}

impl ErrorEvent {
    /// How many attempts are left after this one, for a step.
    pub fn remaining_retries(&self) -> u32 {
        match self {
            Self::Step {
                attempt,
                max_retries,
                retry: Some(_),
                ..
            } => max_retries.saturating_sub(attempt - 1),
            _ => 0,
        }
    }

    /// Whether the step is tried again.
    pub fn will_retry(&self) -> bool {
        matches!(self, Self::Step { retry: Some(_), .. })
    }
}

/// When a step is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// The instant, as recorded.
    pub at: Timestamp,
    /// How long that is from the failure.
    pub delay: Duration,
}

type Hook = dyn Fn(&ErrorEvent) + Send + Sync;

/// The hooks that were given to the builder.
#[derive(Clone, Default)]
pub(crate) struct Hooks(Vec<Arc<Hook>>);

impl Hooks {
    pub(crate) fn add(&mut self, hook: impl Fn(&ErrorEvent) + Send + Sync + 'static) {
        self.0.push(Arc::new(hook));
    }

    /// Starts what tells the hooks, in order, on a thread where they may block.
    pub(crate) fn start(self) -> Reporter {
        if self.0.is_empty() {
            return Reporter::default();
        }
        let (sender, mut events) = mpsc::unbounded_channel::<ErrorEvent>();
        let task = tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                let hooks = self.clone();
                let told = tokio::task::spawn_blocking(move || {
                    let harmed = hooks.tell(&event);
                    (harmed, event)
                });
                // Its error would be the runtime going down: nobody is left to tell.
                if let Ok((harmed @ 1.., event)) = told.await {
                    tracing::warn!(?event, harmed, "an error hook panicked");
                }
            }
        });
        Reporter(Mutex::new(Some((sender, task))))
    }

    /// Calls every hook. How many of them panicked.
    fn tell(&self, event: &ErrorEvent) -> usize {
        let panics = |hook: &&Arc<Hook>| catch_unwind(AssertUnwindSafe(|| hook(event))).is_err();
        self.0.iter().filter(panics).count()
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} hooks", self.0.len())
    }
}

/// Where events are handed in.
#[derive(Debug, Default)]
pub(crate) struct Reporter(Mutex<Option<(mpsc::UnboundedSender<ErrorEvent>, JoinHandle<()>)>>);

impl Reporter {
    fn inner(&self) -> MutexGuard<'_, Option<(mpsc::UnboundedSender<ErrorEvent>, JoinHandle<()>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False when nobody listens, and no event need be made.
    pub(crate) fn listens(&self) -> bool {
        self.inner().is_some()
    }

    pub(crate) fn report(&self, event: ErrorEvent) {
        if let Some((sender, _)) = &*self.inner() {
            // Refused only when the task is gone with its runtime.
            let _ = sender.send(event);
        }
    }

    /// Takes no more events, and waits until the hooks have heard the others.
    pub(crate) async fn finish(&self) {
        let taken = self.inner().take();
        if let Some((sender, task)) = taken {
            drop(sender);
            let _ = task.await;
        }
    }
}
