//! What a step's body may know of itself.

use std::cell::RefCell;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

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
}

impl CurrentStep {
    pub(crate) fn new(
        run: RunId,
        location: Location,
        attempt: Attempt,
        deadline: Option<Timestamp>,
        seed: (u128, u32),
    ) -> Self {
        let origin = location.clone();
        Self::derived(run, location, origin, attempt, deadline, seed)
    }

    /// The same, with a key that is derived as at another location.
    pub(super) fn derived(
        run: RunId,
        location: Location,
        origin: Location,
        attempt: Attempt,
        deadline: Option<Timestamp>,
        seed: (u128, u32),
    ) -> Self {
        Self(Arc::new(Inner {
            run,
            location,
            origin,
            number: attempt.number,
            deadline,
            last: attempt.last,
            seed,
            cancellation: Cancellation::default(),
            watch: None,
            released: None,
        }))
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
        Self::new(
            RunId::from_stored("no-run"),
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

    /// Makes this the current step of the thread until the guard is dropped.
    pub(super) fn enter(&self) -> Entered {
        Entered(CURRENT.replace(Some(self.clone())))
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
