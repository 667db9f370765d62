//! What an operation is at the moment, and how that changes.
//!
//! # Invariants
//!
//! 1. The lock is never held while user code runs or over an await.
//! 2. Locks are taken from a parent down to its children, never upwards.
//! 3. Only the attempt that [`State::writer`] names writes: what an ended attempt says is ignored.
//! 4. While something is in flight there is a [`Flight`](super::flight::Flight), and its end leaves a status that is not in flight.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::observe::{Event, Observer};
use super::shared::Shared;
use super::snapshot::{LogLine, Record, Snapshot, Status, Undo};
use crate::context::Cancellation;
use crate::replay::{Failure, Timestamp};

/// Changes that are not of status are shown this often at most, ..
pub(super) const SHOWN_EVERY: Duration = Duration::from_millis(16);
/// .. or when there are so many of them.
const SHOWN_AT: u32 = 50;

/// What the lock guards.
pub(super) struct State {
    /// All but children and log lines.
    pub(super) record: Record,
    pub(super) lines: VecDeque<Arc<LogLine>>,
    /// Of the present attempt.
    pub(super) children: Vec<Arc<Shared>>,
    /// Of earlier attempts, because their undo is owed.
    pub(super) earlier: Vec<Arc<Shared>>,
    /// Stops what is in flight; there while it is.
    pub(super) flight: Option<Cancellation>,
    /// Stops the attempt.
    pub(super) attempt: Cancellation,
    /// Counts attempts and undos.
    pub(super) epoch: u64,
    /// The attempt or undo that may write.
    pub(super) writer: Option<u64>,
    /// What the attempt waits for, the latest last.
    pub(super) waits: Vec<(u64, String)>,
    /// Threads that have not let go.
    pub(super) threads: usize,
    pub(super) closed: bool,
    pub(super) observers: Vec<Observer>,
    pub(super) events: VecDeque<Event>,
    /// Whether somebody is telling the observers.
    pub(super) telling: bool,
    shown: Snapshot,
    shown_at: Instant,
    unshown: u32,
    watch: Option<watch::Sender<Snapshot>>,
}

impl State {
    pub(super) fn new(record: Record) -> Self {
        let shown = Snapshot::new(record.clone());
        Self {
            record,
            lines: VecDeque::new(),
            children: Vec::new(),
            earlier: Vec::new(),
            flight: None,
            attempt: Cancellation::default(),
            epoch: 0,
            writer: None,
            waits: Vec::new(),
            threads: 0,
            closed: false,
            observers: Vec::new(),
            events: VecDeque::new(),
            telling: false,
            watch: Some(watch::Sender::new(shown.clone())),
            shown,
            shown_at: Instant::now(),
            unshown: 0,
        }
    }

    /// Gives it another status, and shows that.
    pub(super) fn set(&mut self, status: Status) {
        let from = std::mem::replace(&mut self.record.status, status);
        self.show();
        if !self.closed && !self.observers.is_empty() {
            let snapshot = self.shown.clone();
            self.events.push_back(Event { from, snapshot });
        }
    }

    /// Ends it with this status.
    pub(super) fn complete(&mut self, status: Status, now: Timestamp) {
        self.record.completed_at = Some(now);
        self.record.retry_at = None;
        self.set(status);
    }

    /// Notes a change that may be shown later; true when it was shown now.
    pub(super) fn touch(&mut self) -> bool {
        self.unshown += 1;
        let now = self.unshown >= SHOWN_AT || self.shown_at.elapsed() >= SHOWN_EVERY;
        if now {
            self.show();
        }
        now
    }

    /// When a change that is not shown yet is to be.
    pub(super) fn show_at(&self) -> Option<Instant> {
        (self.unshown > 0).then(|| self.shown_at + SHOWN_EVERY)
    }

    /// Shows it as it is now.
    pub(super) fn show(&mut self) {
        if self.closed {
            return;
        }
        self.record.revision += 1;
        let mut record = self.record.clone();
        record.children = snapshots(&self.children);
        record.earlier = snapshots(&self.earlier);
        record.logs = self.lines.iter().cloned().collect();
        self.shown = Snapshot::new(record);
        self.shown_at = Instant::now();
        self.unshown = 0;
        if let Some(watch) = &self.watch {
            watch.send_replace(self.shown.clone());
        }
    }

    /// The snapshot of now.
    pub(super) fn snapshot(&mut self) -> Snapshot {
        if self.is_behind() {
            self.show();
        }
        self.shown.clone()
    }

    /// Whether something here or below is not shown yet.
    fn is_behind(&self) -> bool {
        let mut below = self.children.iter().chain(&self.earlier);
        self.unshown > 0 || below.any(|child| child.lock().is_behind())
    }

    pub(super) fn watch(&mut self) -> Option<watch::Receiver<Snapshot>> {
        let watch = self.watch.as_ref()?;
        let mut receiver = watch.subscribe();
        receiver.mark_changed();
        Some(receiver)
    }

    /// Whether what it ran has not let go though its status says that it has ended.
    pub(super) fn is_stopping(&self) -> bool {
        !self.record.status.is_in_flight() && (self.flight.is_some() || self.threads > 0)
    }

    /// Whether a rollback would run anything.
    pub(super) fn owes_undo(&self) -> bool {
        let mut below = self.children.iter().chain(&self.earlier);
        self.record.undo == Undo::Owed || below.any(|child| child.lock().owes_undo())
    }

    /// Makes it new for another execution. Undos that an execution without success left owed stay so.
    pub(super) fn start_over(&mut self) {
        let goes_on = matches!(
            self.record.status,
            Status::Blocked | Status::Failed | Status::Cancelled
        );
        if goes_on {
            self.put_children_aside();
        } else {
            if self.record.attempt > 0 {
                // What it does from now on is another effect.
                self.record.generation += 1;
                self.record.released = None;
            }
            self.children.clear();
            self.earlier.clear();
            self.record.undo = Undo::None;
        }
        let record = &mut self.record;
        record.reason = None;
        record.progress = None;
        record.attempt = 0;
        record.started_at = None;
        record.completed_at = None;
        record.retry_at = None;
        record.result = None;
        record.failure = None;
        self.lines.clear();
    }

    /// Takes the children of an ended attempt out of the tree; what is owed an undo is kept for that.
    pub(super) fn put_children_aside(&mut self) {
        let children = std::mem::take(&mut self.children);
        self.earlier.extend(
            children
                .into_iter()
                .filter(|child| child.lock().owes_undo()),
        );
    }

    /// Ends what the present writer may write.
    pub(super) fn fence(&mut self) {
        self.writer = None;
        self.waits.clear();
    }

    /// Says why the last attempt failed.
    pub(super) fn failed(&mut self, failure: &Failure) {
        self.record.failure = Some(failure.clone());
        self.record.reason = None;
    }

    /// Closes it: nothing is shown any more.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.observers.clear();
        self.events.clear();
        self.children.clear();
        self.earlier.clear();
        self.unshown = 0;
        self.watch = None;
    }
}

fn snapshots(operations: &[Arc<Shared>]) -> Vec<Snapshot> {
    let each = operations.iter();
    each.map(|operation| operation.lock().snapshot()).collect()
}
