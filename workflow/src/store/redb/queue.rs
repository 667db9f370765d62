//! Who commits: whoever waits for it.
//!
//! 1. At most one task has the *role* of committing. It commits everything that is queued, for all.
//! 2. When its own batch is durable it has done enough: if others are queued it offers the role and wakes one of them.
//! 3. An offered role is anybody's: the next that is polled or that comes takes it. A waiter that goes away while the role
//!    is offered passes the offer on. If nobody takes it, the keeper does. So no dropped future strands another.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::draft::Encoded;
use super::entry::Entry;
use crate::replay::{NewMessage, Payload, RunId, RunKey, Timestamp};
use crate::store::transition::Transition;
use crate::store::{Appended, Deleted, Deletion, Delivery, InboxChange, Post, Rewrite, StoreError};

/// What waits to be committed.
#[derive(Debug, Default)]
pub(super) struct Queue(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    waiting: VecDeque<Request>,
    role: Role,
    /// How many the last commit took.
    last: usize,
    refuses: Option<Refusal>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Role {
    #[default]
    Free,
    Offered,
    Taken,
}

/// Why nothing is taken any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The store was closed.
    Closed,
    /// A commit panicked: nobody knows what is in memory.
    Panicked,
}

/// One append that waits.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) slot: Arc<Slot>,
}

/// What is to be written.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are batches, each in the slot's own memory"
)]
#[derive(Debug)]
pub(super) enum Change {
    /// This batch, which does nothing to messages; its writer had seen the inbox so far.
    Batch(Entry, u64),
    /// This batch, which does.
    Mail(Box<Mail>),
    /// The delivery of a message.
    Deliver(Box<Deliver>),
    /// The cancellation of a run, made when the row to be cancelled is known.
    Cancel(RunKey, Timestamp),
    /// What an operator changes in runs.
    Rewrite(Vec<Rewrite>),
    /// Runs that are deleted.
    Delete(Vec<Deletion>),
    /// Values that concern no run.
    Put(Vec<(String, Option<Payload>)>),
}

/// A batch with what it does to messages and to others.
#[derive(Debug, Clone)]
pub(super) struct Mail {
    pub(super) transition: Transition,
    pub(super) records: Encoded,
    pub(super) inbox: InboxChange,
    pub(super) posts: Vec<Post>,
}

/// A message to be delivered.
#[derive(Debug)]
pub(super) struct Deliver {
    pub(super) to: RunId,
    pub(super) message: NewMessage,
    pub(super) at: Timestamp,
    pub(super) keep_until: Timestamp,
}

/// What became of a change.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    Appended(Appended),
    Delivered(Delivery),
    Deleted(Vec<Deleted>),
    Put,
}

/// What is asked, and where the answer is put. It stays with the one who waits, and so goes on the thread that it came
/// from: memory that another thread frees is slow to get again.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) change: Change,
    waiter: Mutex<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    answer: Option<Result<Outcome, StoreError>>,
    waker: Waker,
    answered: bool,
    gone: bool,
}

impl Queue {
    /// Queues what this slot asks. `true` when the caller has the role now.
    pub(super) fn push(&self, slot: &Arc<Slot>) -> Result<bool, StoreError> {
        let mut inner = self.lock();
        if let Some(refusal) = inner.refuses {
            return Err(refusal.error());
        }
        inner.waiting.push_back(Request {
            slot: Arc::clone(slot),
        });
        let leads = inner.role != Role::Taken;
        inner.role = Role::Taken;
        Ok(leads)
    }

    /// Takes the role, if it is to be had and there is work.
    pub(super) fn take_role(&self) -> bool {
        let mut inner = self.lock();
        let takes = inner.role != Role::Taken && !inner.waiting.is_empty();
        if takes {
            inner.role = Role::Taken;
        }
        takes
    }

    /// Gives the role back, or offers it. `false` when there is nobody to offer it to, but work.
    pub(super) fn release(&self) -> bool {
        let mut inner = self.lock();
        inner.role = if inner.waiting.is_empty() {
            Role::Free
        } else {
            Role::Offered
        };
        inner.wake_one()
    }

    /// Passes an offered role on, when a waiter that may have been woken for it goes away.
    pub(super) fn pass_on(&self) -> bool {
        let inner = self.lock();
        inner.role != Role::Offered || inner.wake_one()
    }

    /// Up to `limit` requests, the oldest first.
    pub(super) fn drain(&self, limit: usize) -> Vec<Request> {
        let mut inner = self.lock();
        let count = inner.waiting.len().min(limit);
        inner.last = count;
        inner.waiting.drain(..count).collect()
    }

    /// Puts requests back, before all others.
    pub(super) fn put_back(&self, requests: Vec<Request>) {
        let mut inner = self.lock();
        for request in requests.into_iter().rev() {
            inner.waiting.push_front(request);
        }
    }

    /// Takes nothing more.
    pub(super) fn refuse(&self, refusal: Refusal) {
        let mut inner = self.lock();
        inner.refuses.get_or_insert(refusal);
    }

    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.lock().refuses
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// How many the last commit took.
    pub(super) fn last(&self) -> usize {
        self.lock().last
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing that is done under the lock panics half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Wakes the first who is still there.
    fn wake_one(&self) -> bool {
        self.waiting.is_empty() || self.waiting.iter().any(|request| request.slot.wake())
    }
}

impl Slot {
    pub(super) fn new(change: Change) -> Self {
        Self {
            change,
            waiter: Mutex::new(Waiter {
                answer: None,
                waker: Waker::noop().clone(),
                answered: false,
                gone: false,
            }),
        }
    }

    /// Gives the answer.
    pub(super) fn answer(&self, answer: Result<Outcome, StoreError>) {
        self.settle(answer).wake();
    }

    /// Puts the answer there, and says whom to wake.
    #[must_use]
    pub(super) fn settle(&self, answer: Result<Outcome, StoreError>) -> Waker {
        let mut waiter = self.lock();
        waiter.answer = Some(answer);
        waiter.answered = true;
        std::mem::replace(&mut waiter.waker, Waker::noop().clone())
    }

    /// The answer, if it is there.
    pub(super) fn taken(&self) -> Option<Result<Outcome, StoreError>> {
        self.lock().answer.take()
    }

    pub(super) fn is_answered(&self) -> bool {
        self.lock().answered
    }

    /// Whom to wake from now on.
    pub(super) fn wait(&self, waker: &Waker) {
        let mut waiter = self.lock();
        if !waiter.waker.will_wake(waker) {
            waiter.waker.clone_from(waker);
        }
    }

    /// The one who waited is gone.
    pub(super) fn leave(&self) {
        self.lock().gone = true;
    }

    fn wake(&self) -> bool {
        let waiter = self.lock();
        if !waiter.gone {
            waiter.waker.wake_by_ref();
        }
        !waiter.gone
    }

    fn lock(&self) -> MutexGuard<'_, Waiter> {
        self.waiter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that goes away without an answer was lost to a panic: its waiter must learn that.
impl Drop for Request {
    fn drop(&mut self) {
        if !self.slot.is_answered() {
            self.slot.answer(Err(Refusal::Panicked.error()));
        }
    }
}

impl Refusal {
    pub(super) fn error(self) -> StoreError {
        match self {
            Self::Closed => StoreError::Closed,
            Self::Panicked => StoreError::Io {
                operation: "committing",
                retryable: false,
                source: "a commit panicked: open the store again".into(),
            },
        }
    }
}
