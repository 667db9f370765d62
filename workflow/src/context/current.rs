//! What a step's body may know of itself.

use std::cell::RefCell;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::derived::{self, Purpose};
use super::{News, Progress, Watching};
use crate::replay::{Attempt, Failure, Location, RunId, Timestamp};

/// The step whose body is running: which attempt it is, until when it has time, and what names its effect.
///
/// ```no_run
/// # async fn put(_: &str, _: &str) {}
/// # async fn charge() {
/// let step = workflow::current_step();
/// put("Idempotency-Key", &step.idempotency_key()).await;
/// # }
/// ```
///
/// In an undo it tells of the step that is undone, and of the undo's attempt: with the key that the step gave, a provider can say
/// whether there is anything to undo.
///
/// # Panics
/// When no step's body is running on this thread; [`try_current_step`] says so instead.
#[track_caller]
pub fn current_step() -> CurrentStep {
    try_current_step().expect(
        "`current_step()` is called from a step's body, and not from a task that it spawned",
    )
}

/// The step whose body, or whose undo, is running on this thread, if there is one.
pub fn try_current_step() -> Option<CurrentStep> {
    CURRENT.with_borrow(Clone::clone)
}

thread_local! {
    static CURRENT: RefCell<Option<CurrentStep>> = const { RefCell::new(None) };
}

/// An attempt of a step, from the inside. Cheap to clone, and may be taken along into tasks and threads.
#[derive(Clone)]
pub struct CurrentStep(Arc<Inner>);

struct Inner {
    run: RunId,
    location: Location,
    /// Where its key is derived from.
    origin: Location,
    number: u32,
    deadline: Option<Timestamp>,
    last: Option<Failure>,
    seed: (u128, u32),
    cancellation: Cancellation,
    /// Who watches it.
    watch: Option<Arc<dyn Watching>>,
    /// What it was released with, as JSON.
    released: Option<String>,
    /// What it puts into the store; absent where nobody would write it.
    values: Option<Mutex<Vec<Put>>>,
}

/// A key, and the JSON of its value; without one the key is removed.
pub(crate) type Put = (String, Option<Vec<u8>>);

/// Why a value was not put.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PutError {
    /// It cannot be written as JSON.
    #[error("the value for `{key}` cannot be written as JSON")]
    Encode {
        /// Its key.
        key: String,
        /// Why not.
        source: serde_json::Error,
    },
    /// What runs is not a step, nor the undo of one.
    #[error(
        "`{key}` cannot be put here: only a step and the undo of a step write values with their record"
    )]
    NoRecord {
        /// Its key.
        key: String,
    },
    /// Keys that begin with a NUL are the library's own.
    #[error("`{}` cannot be put: keys that begin with a NUL are the library's own; let it begin with something else", key.escape_debug())]
    Own {
        /// Its key.
        key: String,
    },
}

impl CurrentStep {
    /// One whose key is derived as at `origin`.
    pub(super) fn derived(
        run: RunId,
        location: Location,
        origin: Location,
        attempt: Attempt,
        deadline: Option<Timestamp>,
        seed: (u128, u32),
    ) -> Self {
        let mut inner = Inner::new(run, location, origin, attempt, deadline, seed);
        inner.values = None;
        Self(Arc::new(inner))
    }

    /// One whose key is derived as at `origin`, and whose values are written with its record.
    pub(crate) fn recorded(
        run: RunId,
        location: Location,
        origin: Location,
        attempt: Attempt,
        deadline: Option<Timestamp>,
        seed: (u128, u32),
    ) -> Self {
        let inner = Inner::new(run, location, origin, attempt, deadline, seed);
        Self(Arc::new(inner))
    }

    /// The same, watched by somebody.
    pub(super) fn watched_by(self, watch: Arc<dyn Watching>) -> Self {
        let mut step = self;
        // It was just made, so it is nobody else's.
        if let Some(inner) = Arc::get_mut(&mut step.0) {
            inner.released = watch.released(&inner.location);
            inner.watch = Some(watch);
        }
        step
    }

    /// The stand-in for a step that is awaited outside of workflows, in a unit test, say.
    pub(super) fn alone() -> Self {
        let attempt = Attempt {
            number: 1,
            last: None,
        };
        Self::recorded(
            RunId::from_stored("no-run"),
            Location::root(),
            Location::root(),
            attempt,
            None,
            (0, 0),
        )
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.0.number
    }

    /// When this attempt times out, by the engine's clock.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.0.deadline
    }

    /// How the attempt before this one failed.
    pub fn last_failure(&self) -> Option<&Failure> {
        self.0.last.as_ref()
    }

    /// The run's id.
    pub fn run_id(&self) -> &RunId {
        &self.0.run
    }

    /// Where in the run the step is.
    pub fn location(&self) -> &Location {
        &self.0.location
    }

    /// A key for this step's effect, 32 hexadecimal digits: the same for every attempt and after every crash, another one for
    /// every other step, iteration and run, and another one after the run was rewound. For HTTP headers and the like.
    pub fn idempotency_key(&self) -> String {
        format!(
            "{:032x}",
            derived::derive(self.0.seed, &self.0.origin, Purpose::IdempotencyKey)
        )
    }

    /// Tells when nobody waits for this attempt any more: it timed out, lost a race, or the run was cancelled. The future of an
    /// async body is dropped then; a blocking body must look.
    pub fn cancellation(&self) -> &Cancellation {
        &self.0.cancellation
    }

    /// Says how far the step is. In a guided flow it is shown with the stage's operations ([`View::operations`]); the last that was said is
    /// written with what the guide records next, and after a second at the latest, so that it is there after a crash. A run that is
    /// no guide shows it to nobody. As what `progress!` publishes it is stored as plain JSON, whatever the engine's codec: put no secret into it.
    ///
    /// ```no_run
    /// # async fn copy(_: &str) {}
    /// # async fn all(files: Vec<String>) {
    /// use workflow::operation::Progress;
    ///
    /// let step = workflow::current_step();
    /// for (done, file) in files.iter().enumerate() {
    ///     step.progress(Progress::new(done as i64).of(files.len() as i64).message(file));
    ///     copy(file).await;
    /// }
    /// # }
    /// ```
    ///
    /// [`View::operations`]: field@crate::guided::View::operations
    pub fn progress(&self, progress: Progress) {
        self.tell(News::Progress(progress));
    }

    /// Adds a line to the log that is shown with the step's progress, in a guided flow. A run that is no guide shows it to nobody: what
    /// is for the program's own log goes through `tracing`, as anywhere.
    pub fn log(&self, line: impl Into<String>) {
        self.tell(News::Logged(line.into()));
    }

    /// Awaits something that is not this step's work, an answer from outside, and shows meanwhile that it waits for that.
    ///
    /// # Cancel safety
    /// As that of `future`.
    pub async fn waiting<F: Future>(&self, reason: impl Into<String>, future: F) -> F::Output {
        let waiting = Waiting(self);
        self.tell(News::Waits(Some(reason.into())));
        let output = future.await;
        drop(waiting);
        output
    }

    /// What the step was let go on with, when it was [`blocked`](crate::blocked) before and somebody released it
    /// ([`Guide::release`](crate::guided::Guide::release)); nothing when nobody did, or when that is no `P`.
    pub fn released<P: DeserializeOwned>(&self) -> Option<P> {
        serde_json::from_str(self.0.released.as_deref()?).ok()
    }

    fn tell(&self, news: News<'_>) {
        // What an attempt says that nobody waits for any more is not its step's.
        if let Some(watch) = &self.0.watch
            && !self.0.cancellation.is_cancelled()
        {
            watch.tell(&self.0.location, news);
        }
    }

    /// Keeps a value of your own in the engine's store, as JSON, in the very transaction that records this step: after a crash at
    /// any instant both are there or neither, so the value is written exactly once though the body may run again. When this
    /// attempt fails, nothing of it is written. It replaces the value that the key has; of two steps at once the one recorded
    /// last wins. [`Engine::value`](crate::Engine::value) reads it, and a listing by prefix with
    /// [`Engine::values`](crate::Engine::values), from when the step is recorded on.
    ///
    /// Values belong to no run: they stay when it ends, and when it is cancelled, rewound or rolled back. An undo of a step puts and
    /// removes them in the transaction that records the undo. Outside of a run, in a unit test of the step, they go nowhere.
    ///
    /// ```
    /// # use workflow::{current_step, step};
    /// # #[derive(Debug, thiserror::Error)] #[error(transparent)] struct Error(#[from] workflow::PutError);
    /// #[step]
    /// async fn book(order: String, seats: u32) -> Result<u32, Error> {
    ///     current_step().put(format!("bookings/{order}"), &seats)?;
    ///     Ok(seats)
    /// }
    /// ```
    ///
    /// # Errors
    /// [`PutError::Encode`]; [`PutError::Own`] when the key begins with a NUL; and [`PutError::NoRecord`] in an operation, or in the undo of a stage. A value over the payload limit
    /// fails the step with [`FailureKind::Encode`](crate::FailureKind::Encode).
    pub fn put<T: Serialize + ?Sized>(
        &self,
        key: impl Into<String>,
        value: &T,
    ) -> Result<(), PutError> {
        let key = key.into();
        match serde_json::to_vec(value) {
            Ok(json) => self.put_json(key, Some(json)),
            Err(source) => Err(PutError::Encode { key, source }),
        }
    }

    /// Removes what [`put`](Self::put) wrote under this key, in the transaction that records this step. Nothing happens when there
    /// is nothing.
    ///
    /// # Errors
    /// [`PutError::Own`] and [`PutError::NoRecord`], as `put`.
    pub fn remove(&self, key: impl Into<String>) -> Result<(), PutError> {
        self.put_json(key.into(), None)
    }

    fn put_json(&self, key: String, json: Option<Vec<u8>>) -> Result<(), PutError> {
        if key.starts_with('\0') {
            return Err(PutError::Own { key });
        }
        match &self.0.values {
            Some(values) => {
                let mut values = values.lock().unwrap_or_else(PoisonError::into_inner);
                values.push((key, json));
                Ok(())
            }
            None => Err(PutError::NoRecord { key }),
        }
    }

    /// What it put. Of a key the last word comes last.
    pub(crate) fn take_values(&self) -> Vec<Put> {
        let values = self.0.values.as_ref();
        let values = values.map(|values| values.lock().unwrap_or_else(PoisonError::into_inner));
        values
            .map(|mut values| std::mem::take(&mut *values))
            .unwrap_or_default()
    }

    /// Makes this the current step of the thread until the guard is dropped.
    pub(super) fn enter(&self) -> Entered {
        Entered(CURRENT.replace(Some(self.clone())))
    }
}

impl Inner {
    fn new(
        run: RunId,
        location: Location,
        origin: Location,
        attempt: Attempt,
        deadline: Option<Timestamp>,
        seed: (u128, u32),
    ) -> Self {
        Self {
            run,
            location,
            origin,
            number: attempt.number,
            deadline,
            last: attempt.last,
            seed,
            cancellation: Cancellation::default(),
            values: Some(Mutex::default()),
            watch: None,
            released: None,
        }
    }
}

impl fmt::Debug for CurrentStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentStep")
            .field("run", &self.0.run)
            .field("location", &self.0.location)
            .field("attempt", &self.0.number)
            .finish_non_exhaustive()
    }
}

/// A step waits within its body, as long as this is held.
struct Waiting<'s>(&'s CurrentStep);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.tell(News::Waits(None));
    }
}

pub(super) struct Entered(Option<CurrentStep>);

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// A token that says when an attempt of a step, or of an operation, is no longer wanted.
#[derive(Clone, Default)]
pub struct Cancellation(Arc<Token>);

#[derive(Default)]
struct Token {
    cancelled: AtomicBool,
    wakers: Mutex<Vec<Option<Waker>>>,
}

impl Cancellation {
    /// Whether the attempt is no longer wanted.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// Resolves when the attempt is no longer wanted.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled {
            token: self.clone(),
            slot: None,
        }
    }

    pub(crate) fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
        let wakers = std::mem::take(&mut *self.wakers());
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    fn wakers(&self) -> std::sync::MutexGuard<'_, Vec<Option<Waker>>> {
        self.0.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancellation")
            .field(&self.is_cancelled())
            .finish()
    }
}

/// Resolves when an attempt is no longer wanted. Made by [`Cancellation::cancelled`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Cancelled {
    token: Cancellation,
    slot: Option<usize>,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut wakers = this.token.wakers();
        // Looked at under the lock: `cancel` sets it before it takes the wakers.
        if this.token.is_cancelled() {
            return Poll::Ready(());
        }
        let free = || wakers.iter().position(Option::is_none);
        let slot = this.slot.or_else(free).unwrap_or(wakers.len());
        let waker = Some(task.waker().clone());
        match wakers.get_mut(slot) {
            Some(known) => *known = waker,
            None => wakers.push(waker),
        }
        this.slot = Some(slot);
        Poll::Pending
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        if let Some(slot) = self.slot
            && let Some(waker) = self.token.wakers().get_mut(slot)
        {
            *waker = None;
        }
    }
}
