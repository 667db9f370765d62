//! Undoing what a run has done: its ledger, newest entry first, each undo a step of its own.
//!
//! The workflow's code is over by then and is not run again: what is left is the ledger and the table of undos. Every
//! attempt is recorded, so a crash resumes where it was; one that was cut off is made again.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;

use tokio::time::Instant;

use super::driver::Exit;
use super::live::{Command, Live};
use super::registry::Entry;
use super::take_up::Coming;
use super::{Engine, Inner, retry};
use crate::codec;
use crate::context::{
    ATTEMPTS, CurrentStep, Park, UNDO_TIMEOUT, Undo, UndoArgs, Values, intervened, seal_values,
    undo_failed, undo_missing,
};
use crate::replay::{
    Attempt, Backoff, Body, Failure, FailureKind, Finished, Ledger, LedgerEntry, Location, Record,
    RunId, RunState, Unwinding, ledger_location,
};
use crate::store::{Append, Appended, InboxChange, Parked, Post, RunPatch, StoreError};

/// A run that is being rolled back.
pub(super) struct Rollback {
    pub(super) inner: Arc<Inner>,
    pub(super) live: Arc<Live>,
    pub(super) entry: Entry,
    pub(super) ledger: Ledger,
    /// The number of the run's last record.
    pub(super) last_seq: u64,
    /// What the keys of its steps are derived from.
    pub(super) seed: (u128, u32),
    /// The run's row says that it is parked.
    pub(super) was_parked: bool,
}

impl Rollback {
    /// Undoes what is left, and ends the run.
    pub(super) async fn run(mut self) -> Exit {
        if let Some(Unwinding::Cancelled) = self.ledger.unwinds() {
            // Again with each drive: a crash may have come in between.
            let (inner, run) = (Arc::clone(&self.inner), self.live.run);
            tokio::spawn(async move { inner.cancel_and_undo_children(run).await });
        }
        while let Some(entry) = self.ledger.newest().cloned() {
            if let Some(by) = self.live.evicted_by() {
                return Told::Evicted(by).exit();
            }
            if let Some(exit) = self.undo(entry).await {
                return exit;
            }
        }
        let (finished, state) = match self.ledger.unwinds() {
            Some(Unwinding::Failed(failure)) => {
                (Finished::Failed(failure.clone()), RunState::Failed)
            }
            _ => (Finished::Cancelled, RunState::Cancelled),
        };
        let body = Body::Finished(finished.clone());
        match self.append(Location::root(), body, Some(state), None).await {
            Some(exit) => exit,
            None => Exit::Finished(finished),
        }
    }

    /// Undoes one entry; how the drive ends, if it does.
    async fn undo(&mut self, entry: LedgerEntry) -> Option<Exit> {
        let undo = self.entry.undos.iter().find(|undo| undo.path == entry.undo);
        let Some(undo) = undo else {
            return Some(self.park(undo_missing(&entry)).await);
        };
        let mut attempt = entry.attempts;
        for tried in 1..=ATTEMPTS {
            attempt += 1;
            let done = match self.attempt_in_time(undo, &entry, attempt).await {
                Ok(done) => done,
                Err(exit) => return Some(exit),
            };
            let failure = done.as_ref().err().cloned();
            let (done, values) = match done {
                Ok(values) => (Ok(()), values),
                Err(failure) => (Err(failure), Values::new()),
            };
            if let Some(exit) = self.record(&entry, attempt, done, values).await {
                return Some(exit);
            }
            let failure = failure?;
            if tried == ATTEMPTS {
                let park = undo_failed(&entry, &failure.to_string());
                return Some(self.park(park).await);
            }
            let wait = Backoff::DEFAULT.wait(tried, 0.0);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                told = told(&self.live) => return Some(told.exit()),
            }
        }
        None
    }

    /// One attempt, unless the run is told to stop: what is evicted may end its attempt, and have it recorded.
    async fn attempt_in_time(
        &self,
        undo: &Undo,
        entry: &LedgerEntry,
        number: u32,
    ) -> Result<Result<Values, Failure>, Exit> {
        let attempt = tokio::time::timeout(UNDO_TIMEOUT, self.attempt(undo, entry, number));
        tokio::pin!(attempt);
        let told = tokio::select! {
            biased;
            told = told(&self.live) => told,
            done = &mut attempt => return Ok(done.unwrap_or_else(|_| Err(timed_out(entry)))),
        };
        match told {
            Told::Cancelled => Err(told.exit()),
            Told::Evicted(by) => match tokio::time::timeout_at(by, attempt).await {
                Ok(done) => Ok(done.unwrap_or_else(|_| Err(timed_out(entry)))),
                Err(_) => Err(told.exit()),
            },
        }
    }

    /// One attempt, and the values that it put. A panic is a failed one.
    async fn attempt(
        &self,
        undo: &Undo,
        entry: &LedgerEntry,
        number: u32,
    ) -> Result<Values, Failure> {
        let failed = |kind, message: String| Failure::new(kind, entry.location.clone(), message);
        let output = entry
            .output
            .as_ref()
            .map(|payload| codec::open(&*self.inner.codec, payload))
            .transpose()
            .map_err(|error| failed(FailureKind::Decode, error.to_string()))?;
        let (run, location) = (self.live.id.clone(), entry.location.clone());
        let deadline = self.inner.clock.now().after(UNDO_TIMEOUT);
        let attempt = Attempt { number, last: None };
        let origin = location.clone();
        let step = CurrentStep::recorded(run, location, origin, attempt, Some(deadline), self.seed);
        let args = UndoArgs::new(output, Arc::clone(&self.inner.states), step.clone());
        let begun = std::panic::catch_unwind(AssertUnwindSafe(|| undo.begin(args)));
        let mut undoing = match begun {
            Ok(Ok(undoing)) => {
                let intervening = self.inner.intervening.as_ref();
                intervened(intervening, self.live.workflow, &step, undoing)
            }
            Ok(Err(error)) => return Err(failed(FailureKind::Decode, error.to_string())),
            Err(panic) => {
                let said = super::driver::panic_message(&*panic).to_owned();
                return Err(failed(FailureKind::Panicked, said));
            }
        };
        let ended = std::future::poll_fn(|cx| {
            match std::panic::catch_unwind(AssertUnwindSafe(|| undoing.as_mut().poll(cx))) {
                Ok(polled) => polled.map(Ok),
                Err(panic) => {
                    let said = super::driver::panic_message(&*panic).to_owned();
                    Poll::Ready(Err(said))
                }
            }
        })
        .await;
        match ended {
            Ok(Ok(())) => {
                let (codec, limit) = (&*self.inner.codec, self.inner.payload_limit);
                let sealed = seal_values(codec, limit, step.take_values());
                sealed.map_err(|error| failed(FailureKind::Encode, error.to_string()))
            }
            Ok(Err(error)) => Err(Failure::from_error(
                FailureKind::Exhausted,
                entry.location.clone(),
                "",
                &*error,
            )),
            Err(said) => Err(failed(FailureKind::Panicked, said)),
        }
    }

    async fn record(
        &mut self,
        entry: &LedgerEntry,
        attempt: u32,
        outcome: Result<(), Failure>,
        values: Values,
    ) -> Option<Exit> {
        let failure = outcome.as_ref().err().cloned();
        let body = Body::Undone {
            undoes: entry.number,
            attempt,
            outcome,
            skipped: None,
        };
        self.ledger.take(&ledger_location(entry.number), &body);
        let exit = self
            .append_with(ledger_location(entry.number), body, None, None, values)
            .await;
        if let (None, Some(failure)) = (&exit, failure) {
            self.inner.reporter.report(super::ErrorEvent::Undo {
                run: self.live.id.clone(),
                location: entry.location.clone(),
                attempt,
                failure,
            });
        }
        exit
    }

    async fn park(&mut self, Park { reason, detail, .. }: Park) -> Exit {
        let parked = Parked {
            reason,
            by: self.inner.code,
            detail,
        };
        let patch = Some(parked.clone());
        match self
            .write(Vec::new(), Some(RunState::Parked), patch, Values::new())
            .await
        {
            Some(exit) => exit,
            None => Exit::Parked(parked),
        }
    }

    async fn append(
        &mut self,
        location: Location,
        body: Body,
        state: Option<RunState>,
        parked: Option<Parked>,
    ) -> Option<Exit> {
        self.append_with(location, body, state, parked, Values::new())
            .await
    }

    async fn append_with(
        &mut self,
        location: Location,
        body: Body,
        state: Option<RunState>,
        parked: Option<Parked>,
        values: Values,
    ) -> Option<Exit> {
        let record = Record {
            seq: self.last_seq + 1,
            at: self.inner.clock.now(),
            code: self.inner.code,
            location,
            body,
        };
        self.write(vec![record], state, parked, values).await
    }

    /// Writes durably, again and again while the store fails; how the drive ends, if it does.
    async fn write(
        &mut self,
        records: Vec<Record>,
        state: Option<RunState>,
        parked: Option<Parked>,
        values: Values,
    ) -> Option<Exit> {
        let back = std::mem::take(&mut self.was_parked);
        let state = state.or(back.then_some(RunState::RollingBack));
        let patch = RunPatch {
            state,
            parked: match parked {
                Some(parked) => Some(Some(parked)),
                None => back.then_some(None),
            },
            wake_at: Some(None),
            waits: Some(None),
            at: self.inner.clock.now(),
            code: self.inner.code,
            ..RunPatch::default()
        };
        let written = records.len() as u64;
        let append = Append {
            run: self.live.run,
            epoch: self.inner.identity.boot,
            number: self.live.number(),
            expected_seq: self.last_seq,
            create: None,
            records,
            deletes: Vec::new(),
            patch,
            inbox: InboxChange::default(),
            posts: if values.is_empty() {
                Vec::new()
            } else {
                vec![Post::Values(values)]
            },
        };
        let mut tried = 0;
        loop {
            match self.inner.store.append(append.clone()).await {
                Ok(Appended::Applied | Appended::AlreadyApplied) => {
                    self.last_seq += written;
                    self.tell(&append.records);
                    return None;
                }
                Ok(refused) => return Some(Exit::Refused(refused)),
                Err(error) if error.is_retryable() && tried < retry::STORAGE_ATTEMPTS => {
                    tried += 1;
                    tokio::time::sleep(retry::storage(tried)).await;
                }
                Err(error) => {
                    return Some(Exit::Storage {
                        error,
                        unborn: false,
                    });
                }
            }
        }
    }

    fn tell(&self, records: &[Record]) {
        self.live.report(&self.inner, records);
        if let Some(board) = self.inner.boards.find(self.live.run)
            && board.is_watched()
        {
            board.publish(records);
        }
    }
}

fn timed_out(entry: &LedgerEntry) -> Failure {
    let message = format!("the undo did not end within {UNDO_TIMEOUT:?}");
    Failure::new(FailureKind::TimedOut, entry.location.clone(), message)
}

/// What stops a rollback from outside.
#[derive(Clone, Copy)]
enum Told {
    /// The store has the run cancelled.
    Cancelled,
    /// It is to leave memory by then.
    Evicted(Instant),
}

impl Told {
    fn exit(self) -> Exit {
        match self {
            Self::Cancelled => Exit::Refused(Appended::Final),
            // What is being undone is undone again by the next drive.
            Self::Evicted(_) => Exit::Suspended(None),
        }
    }
}

/// Resolves when the run is told from outside to stop here.
async fn told(live: &Live) -> Told {
    std::future::poll_fn(|cx| {
        live.wakes.begin(cx.waker());
        // A thread of a body that was given up may still wake the code that is over.
        live.wakes.take_code();
        if live.wakes.take_outside()
            && let Some(Command::Cancelled) = live.command()
        {
            return Poll::Ready(Told::Cancelled);
        }
        // It may have been told before, while the code was still driven.
        if let Some(by) = live.evicted_by() {
            return Poll::Ready(Told::Evicted(by));
        }
        if !live.wakes.end() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    })
    .await
}

/// Why an undo was not skipped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkipUndoError {
    /// There is no such run.
    #[error("there is no run `{id}`")]
    NotFound {
        /// The id asked for.
        id: String,
    },
    /// It is not parked because of an undo.
    #[error("run `{id}` is {state}, and not parked because of an undo")]
    NotParked {
        /// The run.
        id: RunId,
        /// What it is doing.
        state: RunState,
    },
    /// It is not the entry that the run is at: entries are undone newest first.
    #[error("run `{id}` is at entry {at} of its ledger, and not at {asked}")]
    OtherEntry {
        /// The run.
        id: RunId,
        /// The entry that it is at; 0 when there is none.
        at: u64,
        /// The entry asked for.
        asked: u64,
    },
    /// Somebody else wrote to the run meanwhile.
    #[error("run `{id}` was written to meanwhile: look again")]
    Changed {
        /// The run.
        id: RunId,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Engine {
    /// Skips an undo that keeps failing, or that the code no longer has, and goes on rolling back. `entry` is the number that the
    /// run's parking names; `reason` is recorded.
    ///
    /// # Errors
    /// [`SkipUndoError`].
    pub async fn skip_undo(
        &self,
        id: impl AsRef<str>,
        entry: u64,
        reason: impl Into<String>,
    ) -> Result<(), SkipUndoError> {
        let inner = &self.inner;
        let id = RunId::from_stored(id.as_ref());
        let Some(row) = inner.store.find(&id).await? else {
            return Err(SkipUndoError::NotFound { id: id.to_string() });
        };
        let at_undo = row
            .parked
            .as_ref()
            .is_some_and(|parked| parked.reason.is_of_undo());
        // Nobody else drives it meanwhile: the two would write under the same number.
        let coming = Coming::of(inner, row.key).filter(|_| at_undo);
        let Some(coming) = coming else {
            return Err(SkipUndoError::NotParked {
                id,
                state: row.state,
            });
        };
        let loaded = inner.store.load(row.key).await?;
        let ledger = Ledger::of(&loaded.map(|loaded| loaded.history).unwrap_or_default());
        let at = ledger.newest().map_or(0, |newest| newest.number);
        if at != entry {
            return Err(SkipUndoError::OtherEntry {
                id,
                at,
                asked: entry,
            });
        }
        let now = inner.clock.now();
        let body = Body::Undone {
            undoes: entry,
            attempt: 0,
            outcome: Ok(()),
            skipped: Some(reason.into()),
        };
        let record = Record {
            seq: row.last_seq + 1,
            at: now,
            code: inner.code,
            location: ledger_location(entry),
            body,
        };
        let append = Append {
            run: row.key,
            epoch: inner.identity.boot,
            number: inner.last_number(&row) + 1,
            expected_seq: row.last_seq,
            create: None,
            records: vec![record],
            deletes: Vec::new(),
            patch: RunPatch {
                // A part that the code itself undoes is gone on with by the code.
                state: Some(match ledger.unwinds() {
                    Some(_) => RunState::RollingBack,
                    None => RunState::Running,
                }),
                parked: Some(None),
                at: now,
                code: inner.code,
                ..RunPatch::default()
            },
            inbox: InboxChange::default(),
            posts: Vec::new(),
        };
        match inner.store.append(append).await {
            Ok(Appended::Applied | Appended::AlreadyApplied) => {
                drop(coming);
                inner.boards.board(row.key).reopen();
                inner.wake(row.key);
                Ok(())
            }
            Ok(_) | Err(StoreError::Conflict { .. }) => Err(SkipUndoError::Changed { id }),
            Err(error) => Err(error.into()),
        }
    }
}
