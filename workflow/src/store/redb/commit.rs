//! The commit: everything that is queued, as one frame of the log.

use std::iter;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::runtime::Handle;

use super::blocking::{Place, in_place};
use super::core::Core;
use super::draft::Draft;
use super::entry::Entry;
use super::judge::{Seen, Staged, Stored, Verdict};
use super::log::{HEAD, Log, Place as LogPlace, Unwritten};
use super::queue::{Change, Outcome, Refusal, Request, Slot};
use crate::store::encoding::Writer;
use crate::store::{Appended, Committed, StoreError};

/// A change under way, and how its outcome is told.
#[derive(Debug)]
pub(super) struct Appending<'a, T> {
    core: &'a Arc<Core>,
    state: State,
    tell: fn(Outcome) -> Option<T>,
}

#[derive(Debug)]
enum State {
    New(Result<Arc<Slot>, StoreError>),
    Waiting(Arc<Slot>),
    Done,
}

impl<'a, T> Appending<'a, T> {
    pub(super) fn new(
        core: &'a Arc<Core>,
        change: Result<Change, StoreError>,
        tell: fn(Outcome) -> Option<T>,
    ) -> Self {
        Self {
            core,
            state: State::New(change.map(|change| Arc::new(Slot::new(change)))),
            tell,
        }
    }
}

impl<T> Future for Appending<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let core = self.core;
        let slot = match std::mem::replace(&mut self.state, State::Done) {
            State::New(Err(error)) => return Poll::Ready(Err(error)),
            State::New(Ok(slot)) => {
                slot.wait(cx.waker());
                let leads = match core.queue.push(&slot) {
                    Err(error) => return Poll::Ready(Err(error)),
                    Ok(leads) => leads,
                };
                // From here on a drop must find the slot.
                self.state = State::Waiting(Arc::clone(&slot));
                if leads {
                    core.lead(&slot);
                }
                slot
            }
            State::Waiting(slot) => slot,
            State::Done => return Poll::Pending,
        };
        loop {
            slot.wait(cx.waker());
            if let Some(answer) = slot.taken() {
                self.state = State::Done;
                let told = answer.map(self.tell);
                return Poll::Ready(told.and_then(|told| told.ok_or(StoreError::Closed)));
            }
            if !core.queue.take_role() {
                self.state = State::Waiting(slot);
                return Poll::Pending;
            }
            core.lead(&slot);
        }
    }
}

impl<T> Drop for Appending<'_, T> {
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

impl Role {
    /// Commits until `own` has its answer.
    fn serve(&self, own: &Slot) {
        for _ in 0..ROUNDS {
            self.0.round();
            if own.is_answered() {
                break;
            }
        }
    }
}

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
/// When a commit is of so many, a thread of its own does the next ones: no worker has to give up its tasks for each.
const CROWD: usize = 8;
/// So many commits one task does at most before it lets another do the next.
const ROUNDS: u32 = 16;

impl Core {
    /// Commits until `own` has its answer, on a thread that may wait. The caller has the role.
    fn lead(self: &Arc<Self>, own: &Slot) {
        let role = Role(Arc::clone(self));
        match Place::now() {
            Place::Here => role.serve(own),
            Place::Worker(_) if self.queue.last() < CROWD => in_place(|| role.serve(own)),
            Place::Worker(runtime) => {
                // Not one of the runtime's blocking threads: all of them may be taken by what waits for a commit.
                let many = std::thread::Builder::new().name("workflow-commit".to_owned());
                let spawned = many.spawn(move || {
                    let _runtime = runtime.enter();
                    role.0.serve_many();
                });
                // The role went with what could not be started.
                if spawned.is_err() && self.queue.take_role() {
                    in_place(|| Role(Arc::clone(self)).serve(own));
                }
            }
            // The thread is there for this; it goes on as long as there is something to do.
            Place::Aside(runtime) => {
                drop(runtime.spawn_blocking(move || role.0.serve_many()));
            }
        }
    }

    /// Commits as long as there is something to commit.
    fn serve_many(&self) {
        while !self.queue.is_empty() {
            let begun = Instant::now();
            self.round();
            self.gather(begun.elapsed() / 2);
        }
    }

    /// Waits until as many are queued as the last commit answered: most of those come again at once, and what comes a
    /// moment too late waits for a whole commit. Never longer than `limit`.
    fn gather(&self, limit: Duration) {
        let last = self.queue.last();
        if last < CROWD {
            return;
        }
        let begun = Instant::now();
        while self.queue.len() < last && begun.elapsed() < limit {
            std::thread::yield_now();
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
        let mut committed = None;
        let commit = || {
            if let Err(error) = self.mend() {
                return fail(self.queue.drain(GROUP), error);
            }
            let pressing = self.tail().is_pressing(&self.options);
            if pressing {
                // What fails here is tried again by the keeper, and the commit below tells of the disk.
                drop(self.fold_slice());
            }
            while !self.commit(&mut committed) {
                if let Err(error) = self.fold_slice() {
                    return fail(self.queue.drain(GROUP), error);
                }
            }
        };
        if catch_unwind(AssertUnwindSafe(commit)).is_err() {
            self.queue.refuse(Refusal::Panicked);
            // Unanswered requests tell their waiters when they go.
            drop(self.queue.drain(usize::MAX));
        }
        if let Some(committed) = committed {
            self.listener.tell(committed);
        }
    }

    /// One commit. `false` when there is no room for it in the log before something is folded; then it is queued again. `told` is
    /// what is to be told of it, if anybody listens.
    fn commit(&self, told: &mut Option<Committed>) -> bool {
        let log = &mut *self.log();
        let staged = match self.stage(self.queue.drain(GROUP)) {
            Ok(staged) => staged,
            Err((requests, error)) => {
                fail(requests, error);
                return true;
            }
        };
        if staged.is_empty() {
            return true;
        }
        let (mut frame, parts) = joined(&staged);
        let mut left = TRIES;
        let requests = |staged: Vec<Staged>| staged.into_iter().map(|staged| staged.request);
        loop {
            left -= 1;
            let begun = self.listener.begin();
            match self.write(log, &mut frame) {
                Ok(place) => {
                    *told = begun.map(|begun| Committed {
                        batches: parts.len(),
                        took: begun.elapsed(),
                    });
                    self.publish(staged, frame.into(), place, parts);
                }
                Err(Unwritten::Full) => {
                    self.queue.put_back(requests(staged).collect());
                    return false;
                }
                Err(Unwritten::Failed(error)) if error.is_retryable() && left > 0 => continue,
                Err(Unwritten::Failed(error)) => fail(requests(staged).collect(), error),
            }
            return true;
        }
    }

    /// Writes the next frame of the log.
    fn write(&self, log: &mut Log, frame: &mut [u8]) -> Result<LogPlace, Unwritten> {
        let relaxed = self.options.relaxed;
        if let (Some(wait), Some(since)) = (relaxed, log.unsynced_since())
            && since.elapsed() >= wait
        {
            self.sync(log)?;
        }
        let (number, oldest) = {
            let tail = self.tail();
            (tail.next, tail.begins())
        };
        log.append(&self.file, number, frame, oldest, relaxed.is_none())
    }

    /// Shows the durable batches to readers, and tells those who wait.
    fn publish(
        &self,
        staged: Vec<Staged>,
        frame: Bytes,
        place: LogPlace,
        parts: Vec<Range<usize>>,
    ) {
        let mut tail = self.tail();
        let mut requests = Vec::with_capacity(staged.len());
        let batches = parts.len();
        let mut parts = parts.into_iter().map(|part| frame.slice(part));
        for mut staged in staged {
            let stored = staged.stored.take();
            if let Some(part) = parts.next() {
                tail.push(&staged.entry().transition, part, stored);
            }
            for ((entry, stored), part) in staged.more.into_iter().zip(parts.by_ref()) {
                tail.push(&entry.transition, part, stored);
            }
            requests.push((staged.request, staged.outcome));
        }
        tail.close(frame, place, batches);
        let full = tail.is_full(&self.options);
        drop(tail);
        let wakers = requests
            .iter()
            .map(|(request, outcome)| request.slot.settle(Ok(outcome.clone())))
            .collect();
        // Those who wait let go of it last.
        drop(requests);
        Wakes::wake(wakers);
        self.signal.committed(full);
    }

    /// Answers what can be answered at once, and gives what is to be written. Of each run only the first: what follows
    /// is judged when that is durable.
    fn stage(&self, requests: Vec<Request>) -> Result<Vec<Staged>, (Vec<Request>, StoreError)> {
        let mut staged = Vec::with_capacity(requests.len());
        let mut later = Vec::new();
        let mut seen = Seen::new(requests.len());
        let mut draft = Draft::default();
        let mut requests = Some(requests);
        let tail = self.tail();
        let done = self.file.with("committing", |database| {
            let mut stored = Stored::new(self, database);
            for request in requests.take().unwrap_or_default() {
                if !seen.first(&request.slot.change) {
                    later.push(request);
                    continue;
                }
                let change = &request.slot.change;
                match stored.judge(&tail, &mut draft, &mut seen, &staged, change) {
                    Ok(Verdict::Write(made, stored)) => staged.push(Staged {
                        request,
                        made,
                        stored,
                        more: Vec::new(),
                        drafted: false,
                        outcome: Outcome::Appended(Appended::Applied),
                    }),
                    Ok(Verdict::WriteAll(written, outcome)) => {
                        let mut more = written.into_iter();
                        if let Some((entry, stored)) = more.next() {
                            staged.push(Staged {
                                request,
                                made: Some(entry),
                                stored,
                                more: more.collect(),
                                drafted: true,
                                outcome,
                            });
                        }
                    }
                    Ok(Verdict::Later) => later.push(request),
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

/// Tasks that are to be woken, however this goes.
struct Wakes(Vec<Waker>);

impl Wakes {
    /// Wakes them. Many are woken from a task: a runtime that is told from outside takes a lock for each, and each may
    /// wake a worker that has fallen asleep since the last.
    fn wake(wakers: Vec<Waker>) {
        let many = wakers.len() >= CROWD;
        let wakes = Self(wakers);
        if many && let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { drop(wakes) });
        }
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        for waker in self.0.drain(..) {
            waker.wake();
        }
    }
}

/// The batches as one frame, and where each stands in it.
fn joined(staged: &[Staged]) -> (Vec<u8>, Vec<Range<usize>>) {
    // A length takes no more than that before it.
    const LENGTH: usize = 5;
    let entries = || {
        staged
            .iter()
            .flat_map(|staged| iter::once(staged.entry()).chain(staged.others()))
    };
    let size = |entry: &Entry| entry.bytes.len() + LENGTH;
    let mut frame = Vec::with_capacity(HEAD + entries().map(size).sum::<usize>());
    frame.resize(HEAD, 0);
    let mut parts = Vec::with_capacity(staged.len());
    for Entry { bytes, .. } in entries() {
        Writer(&mut frame).bytes(bytes);
        parts.push(frame.len() - bytes.len()..frame.len());
    }
    (frame, parts)
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
