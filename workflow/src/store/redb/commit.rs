//! The commit: everything that is queued, as one value of the journal, in one transaction.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::blocking::{Place, in_place};
use super::core::{Core, Writer};
use super::judge::{Seen, Staged, Stored, Verdict};
use super::queue::{Change, Refusal, Request, Slot};
use super::tables::JOURNAL;
use crate::store::encoding::Writer as Bytes;
use crate::store::{Appended, StoreError};

/// An append under way.
#[derive(Debug)]
pub(super) struct Appending<'a> {
    core: &'a Arc<Core>,
    state: State,
}

#[derive(Debug)]
enum State {
    New(Result<Change, StoreError>),
    Waiting(Arc<Slot>),
    Done,
}

impl<'a> Appending<'a> {
    pub(super) fn new(core: &'a Arc<Core>, change: Result<Change, StoreError>) -> Self {
        Self {
            core,
            state: State::New(change),
        }
    }
}

impl Future for Appending<'_> {
    type Output = Result<Appended, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let core = self.core;
        let slot = match std::mem::replace(&mut self.state, State::Done) {
            State::New(Err(error)) => return Poll::Ready(Err(error)),
            State::New(Ok(change)) => match core.queue.push(change, cx.waker().clone()) {
                Err(error) => return Poll::Ready(Err(error)),
                Ok((slot, leads)) => {
                    // From here on a drop must find the slot.
                    self.state = State::Waiting(Arc::clone(&slot));
                    if leads {
                        core.lead(&slot);
                    }
                    slot
                }
            },
            State::Waiting(slot) => slot,
            State::Done => return Poll::Pending,
        };
        loop {
            slot.wait(cx.waker());
            if let Some(answer) = slot.taken() {
                self.state = State::Done;
                return Poll::Ready(answer);
            }
            if !core.queue.take_role() {
                self.state = State::Waiting(slot);
                return Poll::Pending;
            }
            core.lead(&slot);
        }
    }
}

impl Drop for Appending<'_> {
    fn drop(&mut self) {
        if let State::Waiting(slot) = &self.state {
            slot.leave();
            if !self.core.queue.pass_on() {
                self.core.signal.nudge();
            }
        }
    }
}

/// The role of committing. Given back however its holder goes.
struct Role(Arc<Core>);

impl Drop for Role {
    fn drop(&mut self) {
        if !self.0.queue.release() {
            self.0.signal.nudge();
        }
    }
}

/// Why a commit is tried no more often: the disk does not get better by asking.
const TRIES: u32 = 3;
/// So many batches fit in one commit.
const GROUP: usize = 4096;
/// So many commits one task does at most before it lets another do the next.
const ROUNDS: u32 = 16;

impl Core {
    /// Commits until `own` has its answer, on a thread that may wait. The caller has the role.
    fn lead(self: &Arc<Self>, own: &Slot) {
        let role = Role(Arc::clone(self));
        let serve = |role: &Role| {
            for _ in 0..ROUNDS {
                role.0.round();
                if own.is_answered() {
                    break;
                }
            }
        };
        match Place::now() {
            Place::Here => serve(&role),
            Place::Worker => in_place(|| serve(&role)),
            // The thread is there for this; it goes on as long as there is something to do.
            Place::Aside(runtime) => drop(runtime.spawn_blocking(move || {
                while !role.0.queue.is_empty() {
                    role.0.round();
                }
            })),
        }
    }

    /// As the last to be asked: commits what nobody else commits.
    pub(super) fn lead_if_offered(self: &Arc<Self>) {
        if self.queue.take_role() {
            let role = Role(Arc::clone(self));
            role.0.round();
        }
    }

    /// One commit of everything that is queued. After a panic nothing is committed any more: nobody knows what it left.
    pub(super) fn round(&self) {
        let commit = || {
            let pressing = self.tail().is_pressing(&self.options);
            if pressing {
                // What fails here is tried again by the keeper, and the commit below tells of the disk.
                drop(self.fold_slice());
            }
            self.commit();
        };
        if catch_unwind(AssertUnwindSafe(commit)).is_err() {
            self.queue.refuse(Refusal::Panicked);
            // Unanswered requests tell their waiters when they go.
            drop(self.queue.drain(usize::MAX));
        }
    }

    fn commit(&self) {
        let writer = &mut *self.writer();
        let mut requests = self.queue.drain(GROUP);
        for left in (0..TRIES).rev() {
            if requests.is_empty() {
                return;
            }
            if writer.broken
                && let Err(error) = self.recover(writer)
            {
                return fail(requests, error);
            }
            let staged = match self.stage(requests) {
                Ok(staged) => staged,
                Err((requests, error)) => return fail(requests, error),
            };
            let Some(error) = self.write(writer, &staged) else {
                return self.publish(staged);
            };
            writer.broken = true;
            let commit = self.tail().next;
            requests = staged.into_iter().map(|staged| staged.request).collect();
            if !error.is_retryable() || left == 0 {
                return fail(requests, error);
            }
            // The failed commit may be in the file all the same; only the file can tell.
            if self.recover(writer).is_ok() && self.tail().next > commit {
                return requests
                    .iter()
                    .for_each(|request| request.slot.answer(Ok(Appended::Applied)));
            }
        }
    }

    /// Writes the batches as one value, durably.
    fn write(&self, writer: &mut Writer, staged: &[Staged]) -> Option<StoreError> {
        if staged.is_empty() {
            return None;
        }
        writer.scratch.clear();
        for staged in staged {
            Bytes(&mut writer.scratch).bytes(&staged.entry.bytes);
        }
        let commit = self.tail().next;
        let value = &writer.scratch[..];
        let written = self.file.with("committing", |database| {
            let txn = database.begin_write()?;
            txn.open_table(JOURNAL)?.insert(commit, value)?;
            Ok(txn.commit()?)
        });
        written.err()
    }

    /// Shows the durable batches to readers, and tells those who wait.
    fn publish(&self, staged: Vec<Staged>) {
        if staged.is_empty() {
            return;
        }
        let mut tail = self.tail();
        let commit = tail.next;
        let mut requests = Vec::with_capacity(staged.len());
        for Staged {
            request,
            entry,
            stored,
        } in staged
        {
            tail.push(commit, &entry, stored);
            requests.push(request);
        }
        let full = tail.is_full(&self.options);
        drop(tail);
        for request in &requests {
            request.slot.answer(Ok(Appended::Applied));
        }
        self.signal.committed(full);
    }

    /// Answers what can be answered at once, and gives what is to be written. Of each run only the first: what follows
    /// is judged when that is durable.
    fn stage(&self, requests: Vec<Request>) -> Result<Vec<Staged>, (Vec<Request>, StoreError)> {
        let mut staged = Vec::with_capacity(requests.len());
        let mut later = Vec::new();
        let mut seen = Seen::new(requests.len());
        let mut requests = Some(requests);
        let tail = self.tail();
        let done = self.file.with("committing", |database| {
            let mut stored = Stored::new(self, database);
            for request in requests.take().unwrap_or_default() {
                if !seen.first(&request.change) {
                    later.push(request);
                    continue;
                }
                match stored.judge(&tail, &request.change) {
                    Ok(Verdict::Write(entry, stored)) => staged.push(Staged {
                        request,
                        entry,
                        stored,
                    }),
                    Ok(Verdict::Answer(answer)) => request.slot.answer(Ok(answer)),
                    Err(failed) => request
                        .slot
                        .answer(Err(self.file.told("committing", failed))),
                }
            }
            Ok(())
        });
        drop(tail);
        self.queue.put_back(later);
        match done {
            Ok(()) => Ok(staged),
            Err(error) => Err((requests.unwrap_or_default(), error)),
        }
    }
}

/// Tells everybody the same.
fn fail(requests: Vec<Request>, error: StoreError) {
    let retryable = error.is_retryable();
    let error = Arc::new(error);
    for request in &requests {
        let source = Box::new(Arc::clone(&error));
        request.slot.answer(Err(StoreError::Io {
            operation: "committing",
            retryable,
            source,
        }));
    }
}
