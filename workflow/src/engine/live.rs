//! What the rest of the engine knows of a run that is in memory.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Wake, Waker};

use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::hooks::{ErrorEvent, Retry};
use super::long::Length;
use super::{Inner, telemetry};
use crate::replay::{AttemptState, Body, Finished, Location, Record, RunId, RunKey};

/// A run in memory.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) id: RunId,
    pub(crate) run: RunKey,
    pub(crate) workflow: &'static str,
    /// The hash of its input, to tell the same start from another one.
    pub(crate) input_hash: u64,
    /// Where it stands among others: its children have the same if nothing else is said.
    pub(crate) priority: i32,
    pub(crate) wakes: Arc<Wakes>,
    /// Its jobs that occupy a thread, also those that an earlier drive began.
    pub(crate) threads: Arc<Threads>,
    command: Mutex<Option<Command>>,
    /// The number of the last append of this claim. A claim lasts as long as the opening of the store, so it
    /// goes on counting from where an earlier drive of the same claim stopped.
    number: AtomicU64,
    /// The number of its last record when it was loaded.
    loaded_seq: AtomicU64,
    /// The store has it: it was loaded, or its beginning was written.
    durable: AtomicBool,
    /// Asked to leave memory.
    evicting: Mutex<Evicting>,
    /// The retries of the steps whose failures are not yet recorded.
    failing: Mutex<Vec<(Location, u32, u32)>>,
    /// The run that waits for its end.
    awaited_by: OnceLock<RunId>,
    /// What it published last, as JSON, if it did since it came into memory.
    progress: Mutex<Option<String>>,
    pub(super) length: Length,
    /// The task that drives it.
    task: Mutex<Task>,
}

/// How many jobs of a run occupy a thread.
#[derive(Debug, Default)]
pub(crate) struct Threads(AtomicUsize);

impl Threads {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// One job more, until what this gives is dropped.
    pub(crate) fn occupy(self: &Arc<Self>) -> Occupied {
        self.0.fetch_add(1, Ordering::SeqCst);
        Occupied(Arc::clone(self))
    }
}

/// A thread is occupied.
pub(crate) struct Occupied(Arc<Threads>);

impl Drop for Occupied {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether a run was asked to leave memory.
#[derive(Debug, Default)]
struct Evicting {
    /// By then.
    by: Option<Instant>,
    /// And then asked to come back.
    back: bool,
}

/// The task that drives a run, or begins it.
#[derive(Debug, Default)]
enum Task {
    /// Not known yet.
    #[default]
    Unknown,
    Known(AbortHandle),
    /// It was aborted, or is as soon as it is known.
    Aborted,
}

/// What a run is told from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// The store has it cancelled.
    Cancelled,
    /// Leave memory; bodies may end until then.
    Evict { by: Instant },
    /// Stop here and undo what was done; bodies may end until then.
    CancelAndUndo { by: Instant },
}

impl Live {
    pub(crate) fn new(
        id: RunId,
        run: RunKey,
        workflow: &'static str,
        input_hash: u64,
        number: u64,
    ) -> Self {
        Self {
            id,
            run,
            workflow,
            input_hash,
            priority: 0,
            wakes: Arc::default(),
            threads: Arc::default(),
            command: Mutex::default(),
            number: AtomicU64::new(number),
            loaded_seq: AtomicU64::new(0),
            durable: AtomicBool::new(false),
            evicting: Mutex::default(),
            failing: Mutex::default(),
            awaited_by: OnceLock::new(),
            progress: Mutex::default(),
            length: Length::default(),
            task: Mutex::default(),
        }
    }

    /// The same, with threads that an earlier drive left behind.
    pub(crate) fn with_threads(mut self, threads: Arc<Threads>) -> Self {
        self.threads = threads;
        self
    }

    /// The same, with the priority that its row says.
    pub(crate) fn with_priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// It is driven by this task.
    pub(crate) fn driven_by(&self, task: AbortHandle) {
        let mut slot = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        match *slot {
            Task::Aborted => task.abort(),
            Task::Unknown | Task::Known(_) => *slot = Task::Known(task),
        }
    }

    /// Stops driving it where it stands, as a crash would.
    pub(crate) fn abort(&self) {
        let mut slot = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Task::Known(task) = std::mem::replace(&mut *slot, Task::Aborted) {
            task.abort();
        }
    }

    /// Tells the driver. A cancellation is not taken back by an eviction. One with undo is told again and again, and an eviction
    /// once: it does not get lost over it.
    pub(crate) fn tell(&self, command: Command) {
        let mut slot = self.command.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*slot, command) {
            (Some(Command::Cancelled), _)
            | (Some(Command::Evict { .. }), Command::CancelAndUndo { .. }) => {}
            _ => *slot = Some(command),
        }
        drop(slot);
        self.wakes.wake_driver();
    }

    /// Asks it to leave memory, unless it was asked before to do so by then.
    pub(crate) fn evict_by(&self, by: Instant) {
        let mut evicting = self.evicting.lock().unwrap_or_else(PoisonError::into_inner);
        let sooner = evicting.by.is_none_or(|known| by < known);
        if sooner {
            evicting.by = Some(by);
        }
        evicting.back = false;
        drop(evicting);
        if sooner {
            self.tell(Command::Evict { by });
        }
    }

    /// By when it was asked to leave memory, if it was.
    pub(crate) fn evicted_by(&self) -> Option<Instant> {
        let evicting = self.evicting.lock().unwrap_or_else(PoisonError::into_inner);
        evicting.by
    }

    /// It is a child that this run waits for.
    pub(crate) fn set_awaited_by(&self, parent: RunId) {
        // Set once, when it comes into memory.
        let _ = self.awaited_by.set(parent);
    }

    pub(crate) fn awaited_by(&self) -> Option<&RunId> {
        self.awaited_by.get()
    }

    pub(crate) fn set_progress(&self, json: String) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        *progress = Some(json);
    }

    /// What it published last, if it did since it came into memory.
    pub(crate) fn progress(&self) -> Option<String> {
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.clone()
    }

    /// It is to look whether it stays in memory.
    pub(crate) fn look(&self) {
        self.wakes.wake_driver();
    }

    /// Something came into its inbox.
    pub(crate) fn news(&self) {
        self.wakes.news.store(true, Ordering::SeqCst);
        self.wakes.wake_driver();
    }

    /// Asks it to come back once it has left, if it is leaving: when it was evicted, or `parked`.
    pub(crate) fn come_back(&self, parked: bool) {
        let mut evicting = self.evicting.lock().unwrap_or_else(PoisonError::into_inner);
        evicting.back |= parked || evicting.by.is_some();
    }

    /// Whether it was asked to come back.
    pub(crate) fn comes_back(&self) -> bool {
        let evicting = self.evicting.lock().unwrap_or_else(PoisonError::into_inner);
        evicting.back
    }

    /// It was loaded with its history up to here.
    pub(crate) fn follows(&self, seq: u64) {
        self.loaded_seq.store(seq, Ordering::Relaxed);
        self.set_durable();
    }

    /// The store has it. Said before its board is told: whoever makes a board after that finds it said here.
    pub(crate) fn set_durable(&self) {
        self.durable.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_durable(&self) -> bool {
        self.durable.load(Ordering::SeqCst)
    }

    pub(crate) fn last_seq(&self) -> u64 {
        self.loaded_seq.load(Ordering::Relaxed)
    }

    pub(crate) fn command(&self) -> Option<Command> {
        self.command
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// The number of the next append.
    pub(crate) fn number(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A step's attempt failed; the event follows when that is recorded.
    pub(crate) fn failing(&self, location: Location, attempt: u32, max_retries: u32) {
        self.failing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((location, attempt, max_retries));
    }

    fn max_retries(&self, location: &Location, attempt: u32) -> u32 {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let found = failing
            .iter()
            .position(|(at, number, _)| at == location && *number == attempt);
        found.map_or(0, |index| failing.swap_remove(index).2)
    }

    /// Tells the error hooks what these committed records say went wrong.
    pub(crate) fn report(&self, inner: &Inner, records: &[Record]) {
        telemetry::committed(self, records);
        for record in records {
            let event = match &record.body {
                Body::Attempt {
                    number,
                    state: AttemptState::Failed { failure, wake_at },
                } => ErrorEvent::Step {
                    run: self.id.clone(),
                    location: record.location.clone(),
                    attempt: *number,
                    max_retries: self.max_retries(&record.location, *number),
                    failure: failure.clone(),
                    retry: Some(Retry {
                        at: *wake_at,
                        delay: wake_at.since(record.at),
                    }),
                },
                Body::Ended(ended) => match &ended.outcome {
                    Err(failure) => ErrorEvent::Step {
                        run: self.id.clone(),
                        location: record.location.clone(),
                        attempt: ended.attempts,
                        max_retries: self.max_retries(&record.location, ended.attempts),
                        failure: failure.clone(),
                        retry: None,
                    },
                    Ok(_) => continue,
                },
                // A failure of a step was told of when the step ended.
                Body::Finished(Finished::Failed(failure))
                    if failure.location().is_root() || !failure.branches().is_empty() =>
                {
                    ErrorEvent::Workflow {
                        run: self.id.clone(),
                        failure: failure.clone(),
                    }
                }
                _ => continue,
            };
            inner.reporter.report(event);
        }
    }
}

/// The code's waker. It wakes the driver's task only when the driver is not at it anyway.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    code: AtomicBool,
    outside: AtomicBool,
    /// Something came into the run's inbox.
    news: AtomicBool,
    /// The driver is in its poll, and will look at the flags before it returns.
    driving: AtomicBool,
    task: Mutex<Option<Waker>>,
}

// `driving` and the flags are a Dekker pair: the driver clears `driving` and then reads the flags, a waker sets a flag
// and then reads `driving`. Sequential consistency makes one of the two see the other.
impl Wakes {
    /// The driver begins its poll.
    pub(crate) fn begin(&self, waker: &Waker) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        match &*task {
            Some(known) if known.will_wake(waker) => {}
            _ => *task = Some(waker.clone()),
        }
        self.driving.store(true, Ordering::SeqCst);
    }

    /// The driver is about to return; false when it must not, because it was woken meanwhile.
    pub(crate) fn end(&self) -> bool {
        self.driving.store(false, Ordering::SeqCst);
        let woken = self.code.load(Ordering::SeqCst) || self.outside.load(Ordering::SeqCst);
        if woken {
            self.driving.store(true, Ordering::SeqCst);
        }
        !woken
    }

    /// The code is to be polled.
    pub(crate) fn wake_code(&self) {
        self.wake(&self.code);
    }

    /// Whether the code is to be polled; asked once.
    pub(crate) fn take_code(&self) -> bool {
        self.code.swap(false, Ordering::SeqCst)
    }

    /// Whether there is a command to look at; asked once.
    pub(crate) fn take_outside(&self) -> bool {
        self.outside.swap(false, Ordering::SeqCst)
    }

    /// Whether something came into the run's inbox; asked once.
    pub(crate) fn take_news(&self) -> bool {
        self.news.swap(false, Ordering::SeqCst)
    }

    fn wake_driver(&self) {
        self.wake(&self.outside);
    }

    fn wake(&self, flag: &AtomicBool) {
        flag.store(true, Ordering::SeqCst);
        if self.driving.load(Ordering::SeqCst) {
            return;
        }
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = &*task {
            task.wake_by_ref();
        }
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_code();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_code();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_becomes_known_after_the_abort_is_aborted() {
        let id = RunId::new("a").unwrap();
        let live = Live::new(id, RunKey(1), "w", 0, 0);
        live.abort();
        let task = tokio::spawn(std::future::pending::<()>());
        live.driven_by(task.abort_handle());
        assert!(task.await.unwrap_err().is_cancelled());
    }
}
