//! An attempt of an operation, from the inside.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::definition::Definition;
use super::error::{Refused, RunError};
use super::flight::Flight;
use super::shared::{Shared, derive, derive_seed};
use super::snapshot::{LogLine, Status};
use super::state::State;
use crate::context::{Cancellation, Progress};
use crate::replay::Failure;

/// An attempt of an operation, from the inside: what its work is given. Cheap to clone, and may be taken along into tasks and
/// threads.
///
/// When the attempt has ended, because its work returned, timed out or was cancelled, nothing that is said here is heard any more:
/// progress and log lines are ignored, and no child is run.
///
/// An undo is given one, too: its children are refused.
#[derive(Clone)]
pub struct Attempt {
    shared: Arc<Shared>,
    epoch: u64,
    number: u32,
    key: u128,
    seed: u64,
    last: Option<Failure>,
    released: Option<String>,
    cancellation: Cancellation,
}

impl Attempt {
    /// The attempt that begins in this state.
    pub(super) fn new(shared: &Arc<Shared>, state: &mut State, last: Option<Failure>) -> Self {
        state.epoch += 1;
        state.writer = Some(state.epoch);
        state.attempt = Cancellation::default();
        let record = &state.record;
        Self {
            shared: Arc::clone(shared),
            epoch: state.epoch,
            number: record.attempt,
            key: derive(record.seed, "key", record.generation.into()),
            seed: derive_seed(record.seed, "children", record.generation.into()),
            last,
            released: record.released.clone(),
            cancellation: state.attempt.clone(),
        }
    }

    /// Which attempt this is, from 1. An undo is told how many there were.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// How the attempt before this one failed.
    pub fn last_failure(&self) -> Option<&Failure> {
        self.last.as_ref()
    }

    /// Tells when nobody waits for this attempt any more: it timed out, was cancelled, or has ended. An async body is dropped then
    /// (when it timed out, after its [grace](Definition::grace)); a blocking one must look.
    pub fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    /// A key for this operation's effect, 32 hexadecimal digits: the same for every attempt, after a restore, and when it is run
    /// again after it failed, was blocked or was cancelled; another one when it is run again after a success, a reset or a
    /// rollback. Its undo has the same.
    pub fn idempotency_key(&self) -> String {
        format!("{:032x}", self.key)
    }

    /// What the operation was [released](super::Operation::release) with after it was blocked; nothing when it was not, or with
    /// something of another type. It stays until the operation starts over after a success, a reset or a rollback.
    pub fn released<P: DeserializeOwned>(&self) -> Option<P> {
        serde_json::from_str(self.released.as_deref()?).ok()
    }

    /// Says how far the work is.
    ///
    /// ```
    /// # use workflow::operation::{Attempt, Progress};
    /// # fn f(cx: Attempt) {
    /// cx.progress(Progress::new(3).of(10).message("copying"));
    /// # }
    /// ```
    pub fn progress(&self, progress: Progress) {
        self.write(|state| {
            state.record.progress = Some(progress);
            state.touch();
        });
    }

    /// Writes a line into the operation's log.
    pub fn log(&self, text: impl Into<String>) {
        let line = Arc::new(LogLine {
            at: self.shared.now(),
            attempt: self.number,
            text: text.into(),
        });
        let most = self.shared.core.max_logs();
        self.write(|state| {
            if most == 0 {
                return;
            }
            while state.lines.len() >= most {
                state.lines.pop_front();
            }
            state.lines.push_back(line);
            state.touch();
        });
    }

    /// Awaits a future; meanwhile the operation is [`Status::Waiting`], for what `reason` says. Of several that overlap, the
    /// last to end ends that.
    pub async fn wait_for<F: Future>(&self, reason: impl Into<String>, future: F) -> F::Output {
        let _waiting = Waiting::begin(self, reason.into());
        future.await
    }

    /// Runs a child: an operation that is seen below this one, is cancelled with it, and is undone before it.
    ///
    /// Nothing happens before the future is awaited; dropping it cancels the child. A child that is not awaited to its end, in a task
    /// say, is cancelled when the attempt ends. A child's failure is an error like any other: passed on with `?` it ends the
    /// attempt, and one that is [`critical`](crate::critical) or blocked stays so.
    ///
    /// # Errors
    /// [`RunError`]: as [`Operation::run`](super::Operation::run) gives it; [`Refused::Stale`] when the attempt has ended.
    pub fn child<U>(
        &self,
        definition: Definition<U>,
    ) -> impl Future<Output = Result<U, RunError>> + Send + use<U>
    where
        U: Serialize + DeserializeOwned + Send + 'static,
    {
        let attempt = self.clone();
        async move {
            let flight = attempt.launch(&definition)?;
            drop(definition);
            flight.run(None).await
        }
    }

    fn launch<U>(&self, definition: &Definition<U>) -> Result<Flight, Refused> {
        let core = &definition.core;
        let child = self.write(|state| {
            if state.record.status == Status::RollingBack {
                return None;
            }
            // The same child has the same seed in every attempt.
            let same = |child: &&Arc<Shared>| child.core.name == core.name;
            let ordinal = state.children.iter().filter(same).count() as u64;
            let child = self.shared.child(core, self.seed, ordinal);
            // What the parent is released with is for the child that blocked it.
            child.lock().record.released.clone_from(&self.released);
            state.children.push(Arc::clone(&child));
            Some(child)
        });
        let Some(child) = child.flatten() else {
            return Err(Refused::Stale {
                name: self.shared.name(),
                attempt: self.number,
            });
        };
        Flight::queue(&child, None)
    }

    /// Changes the state if this attempt may still.
    fn write<R>(&self, write: impl FnOnce(&mut State) -> R) -> Option<R> {
        self.shared
            .change(|state| (state.writer == Some(self.epoch)).then(|| write(state)))
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Counts a thread until what this gives is dropped.
    pub(super) fn occupy(&self) -> Occupied {
        self.shared.change(|state| state.threads += 1);
        Occupied(Arc::clone(&self.shared))
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("operation", &self.shared.core.name)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// A thread that work occupies, also after its attempt was given up.
pub(super) struct Occupied(Arc<Shared>);

impl Drop for Occupied {
    fn drop(&mut self) {
        self.0.change(|state| state.threads -= 1);
        self.0.let_go.notify_waiters();
    }
}

/// Work that waits.
struct Waiting<'a> {
    attempt: &'a Attempt,
    id: u64,
}

impl<'a> Waiting<'a> {
    fn begin(attempt: &'a Attempt, reason: String) -> Self {
        let id = attempt.write(|state| {
            let id = state.waits.last().map_or(0, |(last, _)| last + 1);
            state.record.reason = Some(reason.clone());
            state.waits.push((id, reason));
            match state.record.status {
                Status::Running | Status::Retrying => state.set(Status::Waiting),
                _ => {
                    state.touch();
                }
            }
            id
        });
        let id = id.unwrap_or_default();
        Self { attempt, id }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.attempt.write(|state| {
            state.waits.retain(|(id, _)| *id != self.id);
            state.record.reason = state.waits.last().map(|(_, reason)| reason.clone());
            if state.waits.is_empty() && state.record.status == Status::Waiting {
                state.set(Status::Running);
            } else {
                state.touch();
            }
        });
    }
}
