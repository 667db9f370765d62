//! Operations: units of work that one can watch, retry, cancel and undo.
//!
//! An [`Operation`] is work with a face: a person who waits for it sees its status, how far it is and what it logs. It is tried again
//! after an error, ends in time, can be cancelled at any moment, runs other operations below itself, and knows how what it did is
//! undone. It needs a tokio runtime and nothing else: no engine and no store. Within a `#[step]`'s body it gives the step a face.
//!
//! # What it goes through
//!
//! ```text
//! idle -> queued -> running -> succeeded -> rolling back -> rolled back
//!                    |    ^      failed           |    ^
//!                    v    |      cancelled        v    |
//!                   waiting -> retrying         rollback failed
//!                       blocked -> (release) -> queued
//! ```
//!
//! - **[Define](Operation::define) it, [build](Definition::build) it, [run](Operation::run) it.** The work is an async closure that is
//!   called for each attempt with an [`Attempt`]: through it goes all that the work says. Work that blocks its thread is defined by
//!   [`Operation::define_blocking`].
//! - **Look at it.** [`Operation::snapshot`] is the present [`Snapshot`], [`Operation::watch`] gives them as they come,
//!   [`Operation::observe`] tells of every change of [`Status`]. [`feedback`] says what to show to a person who waits.
//! - **Errors.** A failed attempt is followed by another as [`Definition::retries`] and [`Definition::backoff`] say, unless its error is
//!   [`critical`](crate::critical) or [`Definition::retry_if`] says no. An error made by [`blocked`] ends it as blocked instead, until
//!   somebody [releases](Operation::release) it.
//! - **Time and cancelling.** Async work that times out or is cancelled is dropped: that is how it is cancelled, as everywhere in
//!   async Rust. A thread cannot be dropped; it has to look at [`Attempt::cancellation`]. While it does not stop, the operation is
//!   not tried again, and is refused to run: [`Refused::StillStopping`]. What an ended attempt says is ignored.
//! - **Children.** [`Attempt::child`] runs an operation below this one.
//! - **Undoing.** [`Operation::rollback`] undoes the children, newest first, and then the operation itself; also what failed attempts
//!   did. An undo that fails stops it there, and the next rollback goes on with that one.
//! - **Records.** A [`Snapshot`] serialises; [`Operation::restore`] takes it back in another process.
//! - **Several.** A [`Plan`] runs operations by what depends on what, so many at a time.
//!
//! An operation is not durable by itself: it is as durable as what you do with its snapshots. What has to survive by itself is a
//! `#[step]`.

mod attempt;
mod definition;
mod error;
mod failing;
mod feedback;
mod flight;
mod observe;
mod plan;
mod restore;
mod rollback;
mod shared;
mod snapshot;
mod state;
mod step;
mod work;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use attempt::Attempt;
pub use definition::Definition;
pub use error::{Refused, RestoreError, RollbackError, RunError};
pub use feedback::{Feedback, Indicator, feedback};
pub use observe::{Event, ObserverError, Watch};
pub use plan::{OnFailure, Plan, PlanBuilder, PlanError, PlanFailure};
pub use snapshot::{LogLine, Snapshot, Status, Undo};

pub use crate::context::{Blocked, Progress, blocked};

use crate::codec::BoxError;
use definition::Core;
use flight::Flight;
use shared::Shared;
use work::{BoxFuture, Work};

/// A unit of work that one can watch, retry, cancel and undo. Cheap to clone; every clone is the same operation.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use workflow::Backoff;
/// use workflow::operation::{Operation, Progress, Status};
///
/// let upload = Operation::define("upload", |cx| async move {
///     cx.progress(Progress::new(0).of(2).message("two files"));
///     if cx.number() == 1 {
///         return Err("the line is down"); // tried again in a second
///     }
///     cx.log("both are there");
///     Ok(2)
/// })
/// .title("Uploading")
/// .retries(2)
/// .backoff(Backoff::fixed(Duration::from_secs(1)))
/// .timeout(Duration::from_secs(30))
/// .undo(|files: Option<u32>, cx| async move {
///     cx.log(format!("deleting {files:?} files"));
///     Ok::<_, std::io::Error>(())
/// })
/// .build();
///
/// assert_eq!(upload.run().await?, 2);
/// let seen = upload.snapshot();
/// assert_eq!((seen.status(), seen.attempt()), (Status::Succeeded, 2));
///
/// upload.rollback().await?;
/// assert_eq!(upload.snapshot().status(), Status::RolledBack);
/// # Ok(())
/// # }
/// ```
pub struct Operation<T> {
    shared: Arc<Shared>,
    result: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned + Send + 'static> Operation<T> {
    /// Begins to define an operation, by its name and its work: called for each attempt.
    ///
    /// The name is free text; its record and the keys of its effects hang on it. The result has to survive JSON: what
    /// [`run`](Self::run) gives is what the record says, read back.
    pub fn define<F, E>(
        name: impl Into<String>,
        work: impl Fn(Attempt) -> F + Send + Sync + 'static,
    ) -> Definition<T>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        Definition::new(name.into(), Work::new(work))
    }

    /// Begins to define an operation whose work blocks its thread: it is run on one of tokio's threads for that. It has to look at
    /// [`Attempt::cancellation`] to be cancelled.
    pub fn define_blocking<E>(
        name: impl Into<String>,
        work: impl Fn(Attempt) -> Result<T, E> + Send + Sync + 'static,
    ) -> Definition<T>
    where
        E: Into<BoxError> + 'static,
    {
        Definition::new(name.into(), Work::blocking(work))
    }

    pub(self) fn new(core: Arc<Core>) -> Self {
        Self {
            shared: Shared::new(core),
            result: PhantomData,
        }
    }

    /// Runs it, to be awaited: everything of an earlier run is cleared, and its work begins anew. After a success its undo goes
    /// with that; what a run without success left to be undone is still undone by a rollback.
    ///
    /// Nothing happens before it is awaited. The work is driven by whoever awaits, within that task.
    ///
    /// # Errors
    /// [`RunError::Refused`] when it is running, was skipped, closed, or has work that has not stopped; [`RunError::Failed`] with
    /// the last attempt's error; [`RunError::Blocked`]; [`RunError::Cancelled`].
    ///
    /// # Cancel safety
    /// Dropping the future cancels the operation: its work is dropped, and it shows as cancelled.
    pub fn run(&self) -> Run<T> {
        Run {
            operation: self.clone(),
            signal: None,
        }
    }

    /// Lets a blocked operation go on: what is given here is what its work finds by [`Attempt::released`] when it is run again,
    /// and a child of it that blocked finds it, too. It is part of the snapshot when this returns; awaiting what this gives
    /// [runs](Self::run) it.
    ///
    /// # Errors
    /// [`Refused::NotBlocked`], [`Refused::Closed`]; [`Refused::Payload`] when it does not serialise.
    pub fn release(&self, payload: impl Serialize) -> Result<Run<T>, Refused> {
        let name = self.shared.name();
        let json = serde_json::to_string(&payload).map_err(|error| Refused::Payload {
            name: name.clone(),
            reason: error.to_string(),
        })?;
        self.shared.change(|state| {
            let status = state.record.status;
            if state.closed {
                return Err(Refused::Closed { name });
            }
            if status != Status::Blocked {
                return Err(Refused::NotBlocked { name, status });
            }
            state.record.released = Some(json);
            state.show();
            Ok(())
        })?;
        Ok(self.run())
    }
}

impl<T> Operation<T> {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.shared.core.name
    }

    /// What it looks like now. After it was closed: what it looked like then.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot()
    }

    /// Its snapshots as they come; the first is the present one. Changes of status are shown at once, progress and log lines
    /// every 16 ms or 50 of them.
    pub fn watch(&self) -> Watch {
        let watch = self.shared.lock().watch();
        Watch(watch.unwrap_or_else(|| {
            // It was closed: the last one, and the end.
            let mut last = tokio::sync::watch::Sender::new(self.snapshot()).subscribe();
            last.mark_changed();
            last
        }))
    }

    /// Tells of every change of status, in order, on the thread that makes it; so it should be quick. It cannot hurt the
    /// operation: what it gives as an error, and its panics, are told to [`Definition::on_observer_error`].
    pub fn observe<E: Into<BoxError>>(
        &self,
        observer: impl Fn(&Event) -> Result<(), E> + Send + Sync + 'static,
    ) {
        let observer: observe::Observer =
            Arc::new(move |event| observer(event).map_err(Into::into));
        self.shared.change(|state| {
            if !state.closed {
                state.observers.push(observer);
            }
        });
    }

    /// Cancels it and its children, if it is in flight or blocked: when this returns it is cancelled, for this reason, and what its
    /// work says is ignored. Its work is dropped when the task that runs it is next polled, which it was woken for.
    ///
    /// False when there was nothing to cancel; that is forgotten, and it may be run. A rollback is not cancelled.
    pub fn cancel(&self, reason: impl Into<String>) -> bool {
        self.shared.cancel(&reason.into())
    }

    /// Passes it over, while it is idle or queued.
    ///
    /// # Errors
    /// [`Refused::NotSkippable`], [`Refused::Closed`].
    pub fn skip(&self) -> Result<(), Refused> {
        self.shared.skip(None)
    }

    /// Makes it idle, as if it had never been run; undos that are owed are given up.
    ///
    /// # Errors
    /// [`Refused::AlreadyRunning`] while it is in flight, [`Refused::StillStopping`], [`Refused::Closed`].
    pub fn reset(&self) -> Result<(), Refused> {
        self.shared.reset()
    }

    /// Undoes what it did: its children, newest first, then itself. What failed attempts did is undone, too.
    ///
    /// # Errors
    /// [`RollbackError`]: it is in flight or still stopping, there is nothing to undo, an undo is not known (nothing is undone
    /// then), or one failed: what was undone stays so, and the next rollback goes on with the one that failed.
    ///
    /// # Cancel safety
    /// Dropping the future stops it as a failing undo would. The undo that was under way is run again by the next rollback.
    pub async fn rollback(&self) -> Result<(), RollbackError> {
        rollback::roll_back(Arc::clone(&self.shared)).await
    }

    /// Takes back what a snapshot says, in a later process say: its status, its result, what is to be undone. Observers are not
    /// told. Whose undo is to be known, also of children, is said by [`Definition::knows`].
    ///
    /// # Errors
    /// [`RestoreError`]: the operation is in flight; the record was, and [`Snapshot::interrupted`] makes it one that is not; or it
    /// is one of another operation or type.
    pub fn restore(&self, record: &Snapshot) -> Result<(), RestoreError> {
        self.shared.restore(record)
    }

    /// Resolves when nothing goes on that it ran: no task drives it, and no thread is busy with it.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn stopped(&self) {
        self.shared.stopped().await;
    }

    /// Closes it for good: cancels it, drops its children and observers, ends its watches. Its snapshot stays as it is.
    pub fn close(&self) {
        self.shared.close();
    }
}

impl<T> Clone for Operation<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            result: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Operation<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation")
            .field("name", &self.name())
            .field("status", &self.shared.lock().record.status)
            .finish_non_exhaustive()
    }
}

/// A run of an operation, to be awaited. Made by [`Operation::run`] and [`Operation::release`].
#[must_use = "help: `.await` it: an operation that is not awaited does not run"]
pub struct Run<T> {
    operation: Operation<T>,
    signal: Option<BoxFuture<()>>,
}

impl<T> Run<T> {
    /// Cancels the operation, and its children, when this future ends: another token's `cancelled()`, a shutdown signal.
    ///
    /// ```no_run
    /// # use workflow::operation::{Operation, RunError};
    /// # async fn upload(upload: Operation<u32>) -> Result<u32, RunError> {
    /// let step = workflow::current_step();
    /// upload.run().cancel_on(step.cancellation().cancelled()).await
    /// # }
    /// ```
    pub fn cancel_on(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.signal = Some(Box::pin(signal));
        self
    }
}

impl<T: DeserializeOwned + Send + 'static> IntoFuture for Run<T> {
    type Output = Result<T, RunError>;
    type IntoFuture = std::pin::Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { operation, signal } = self;
            Flight::queue(&operation.shared, None)?.run(signal).await
        })
    }
}

impl<T> fmt::Debug for Run<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Run").field(&self.operation).finish()
    }
}
