//! What one holds of a run.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::any::AnyWorkflow;
use super::board::{Board, Told};
use super::{AttachError, Cancel, Engine, ParkedRun, Queued};
use crate::codec;
use crate::context::{Output, ToRun, Workflow};
use crate::error::Error;
use crate::graph::RunGraph;
use crate::replay::{
    Body, History, InvalidRunId, Location, Record, RunId, RunKey, RunState, Timestamp,
};
use crate::store::{Parked, StoreError};

/// A run that could not be begun leaves memory, and is told of at once after that: within this.
const FAREWELL: Duration = Duration::from_millis(20);

/// A run of workflow `W`, whether in memory, waiting, or long ended. Cheap to clone; dropping it does nothing to the run.
pub struct RunHandle<W: Workflow> {
    engine: Engine,
    id: RunId,
    run: RunKey,
    board: Arc<Board>,
    workflow: PhantomData<fn() -> W>,
}

/// What a run is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Its id.
    pub id: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// What it is doing.
    pub state: RunState,
    /// Why it is parked, if it is.
    pub parked: Option<Parked>,
    /// When it wakes, if it waits for a time.
    pub wake_at: Option<Timestamp>,
    /// The channels it waits on, if it waits for messages: those of all its receives, in the order in which they began.
    pub waits_for: Vec<String>,
    /// How many times it was rewound, or undone and recovered.
    pub generation: u32,
    /// The run that started it, and where in that run.
    pub parent: Option<(RunId, Location)>,
    /// When it was started.
    pub created_at: Timestamp,
    /// When its history last grew.
    pub updated_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// How many records its history has had.
    pub records: u64,
    /// What `progress!` last published, as JSON.
    pub progress: Option<String>,
    /// Before which time it was not to begin, if its start [said so](crate::Call::delay). As long as that is ahead, it has not begun.
    pub not_before: Option<Timestamp>,
    /// Its [priority](crate::Call::priority).
    pub priority: i32,
    /// That it could go on, and waits for a slot of its workflow's [`Limit`](crate::Limit) or for its [`Rate`](crate::Rate).
    pub queued: Option<Queued>,
}

impl<W: Workflow> RunHandle<W> {
    pub(super) fn new(engine: Engine, id: RunId, run: RunKey) -> Self {
        let board = engine.inner.boards.board(run);
        Self {
            engine,
            id,
            run,
            board,
            workflow: PhantomData,
        }
    }

    /// The run's id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(super) fn key(&self) -> RunKey {
        self.run
    }

    pub(super) fn board(&self) -> &Board {
        &self.board
    }

    /// What the run is doing.
    ///
    /// # Errors
    /// The store failed.
    pub async fn status(&self) -> Result<Status, Error> {
        Ok(self.engine.status(self.id.as_str()).await?)
    }

    /// What the run's [`progress!`](crate::progress) last published; `None` when it has published nothing. Also asked of a
    /// run that waits or has ended.
    ///
    /// # Errors
    /// [`Error::Progress`] when it is not a `T`, or the store failed.
    pub async fn progress<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        let Some(json) = self.status().await?.progress else {
            return Ok(None);
        };
        serde_json::from_str(&json)
            .map(Some)
            .map_err(|error| Error::Progress {
                id: self.id.clone(),
                detail: error.to_string(),
            })
    }

    /// Waits for the run's end, across sleeps of any length, and gives its value. Asked again, it gives the same.
    ///
    /// # Errors
    /// [`Error::Failed`], [`Error::Cancelled`], [`Error::Parked`], [`Error::ShutDown`], or the store failed.
    ///
    /// # Cancel safety
    /// Dropping this future does not stop the run.
    pub async fn result(&self) -> Result<Output<W>, Error> {
        match self.told().await? {
            // Only where this engine began it at the same time as another one: the run is that one's.
            Told::Taken { by, input_hash } => {
                let run = self
                    .engine
                    .rejoin_taken::<W>(W::NAME, by, input_hash)
                    .await?;
                run.read(run.told().await?)
            }
            told => self.read(told),
        }
    }

    async fn told(&self) -> Result<Told, StoreError> {
        // A run in memory tells by itself. One that is not may have ended before this process began.
        let inner = &self.engine.inner;
        if !inner.is_coming(self.run) {
            if let Some(told) = self.told_by_store().await? {
                return Ok(told);
            }
            if self.is_gone().await? {
                return Ok(Told::Gone);
            }
        } else if inner.is_live(self.run) {
            // If it is just leaving, whoever waits for it wants it back.
            inner.come_back(self.run, false);
        }
        Ok(self.board.told().await)
    }

    /// Whether the store does not have it, nor is it being begun: it was deleted.
    async fn is_gone(&self) -> Result<bool, StoreError> {
        let inner = &self.engine.inner;
        for pause in [Duration::ZERO, FAREWELL] {
            tokio::time::sleep(pause).await;
            let there = inner.is_coming(self.run) || self.board.known().is_some();
            if there || inner.store.row(self.run).await?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The run's value if it has ended, without waiting: `None` while it has not, also when the value is `()`.
    ///
    /// # Errors
    /// As [`result`](Self::result).
    pub async fn try_result(&self) -> Result<Option<Output<W>>, Error> {
        match self.told_by_store().await? {
            Some(told) => self.read(told).map(Some),
            None => Ok(None),
        }
    }

    /// The run's records so far, in order.
    ///
    /// # Errors
    /// The store failed.
    pub async fn history(&self) -> Result<Vec<Record>, Error> {
        let loaded = self.engine.inner.store.load(self.run).await?;
        Ok(loaded.map(|loaded| loaded.history).unwrap_or_default())
    }

    /// The run's history, to be read, or kept and replayed by [`testing`](crate::testing). As [`Engine::export`].
    ///
    /// # Errors
    /// The store failed.
    pub async fn export(&self) -> Result<History, AttachError> {
        self.engine.export(self.id.as_str()).await
    }

    /// The run so far, laid over the picture of its workflow: `run.graph().await?.mermaid()`. The [guide](crate::guide::graph)
    /// shows one.
    ///
    /// # Errors
    /// The store failed.
    pub async fn graph(&self) -> Result<RunGraph, Error> {
        let history = self.history().await?;
        if W::NAME != AnyWorkflow::NAME {
            return Ok(W::GRAPH.of_run(&history));
        }
        let known = match history.first().map(|record| &record.body) {
            Some(Body::Begun(begun)) => self.engine.inner.registry.graph(&begun.workflow),
            _ => None,
        };
        Ok(known.unwrap_or(W::GRAPH).of_run(&history))
    }

    /// Follows the run's committed records from number `from` on (1 is the first), until the run has ended.
    pub fn watch(&self, from: u64) -> Watch<W> {
        self.board.watch();
        Watch {
            handle: self.clone(),
            next: from.max(1),
            ready: Vec::new(),
            behind: true,
            over: false,
        }
    }

    /// Takes the run out of memory: nothing new is begun, step bodies may end within `grace`, and what they gave is
    /// saved. It goes on at its deadline, with [`Engine::resume`], or when an engine opens the store again. False when
    /// it was not in memory.
    pub fn evict(&self, grace: Duration) -> bool {
        self.engine.inner.evict(self.run, grace)
    }

    /// Cancels the run. When it was awaited it is durable, and nothing of the run is written any more. [`Cancel::and_undo`]
    /// undoes first what was done.
    ///
    /// # Errors
    /// [`CancelError::Ended`](super::CancelError::Ended) when it had ended before, or the store failed.
    pub fn cancel(&self) -> Cancel {
        self.engine.cancel(self.id.as_str())
    }

    async fn told_by_store(&self) -> Result<Option<Told>, StoreError> {
        let inner = &self.engine.inner;
        let Some(row) = inner.store.row(self.run).await? else {
            return Ok(None);
        };
        if row.state == RunState::Parked && !inner.is_coming(self.run) {
            let Some(parked) = row.parked else {
                return Ok(None);
            };
            if inner.may_try(&parked) {
                // Other code could not go on with it. This one has not tried yet, and whoever asks wants it to.
                inner.wake(self.run);
                return Ok(None);
            }
            let Parked { reason, detail, .. } = parked;
            return Ok(Some(Told::Parked(ParkedRun {
                id: row.id,
                reason,
                detail,
            })));
        }
        if !row.state.is_final() {
            if row.state.is_active() {
                // It was cut off or evicted; whoever waits for it wants it driven.
                inner.wake(self.run);
            }
            return Ok(None);
        }
        if row.state == RunState::Cancelled {
            return Ok(Some(Told::Cancelled));
        }
        let loaded = inner.store.load(self.run).await?;
        Ok(loaded.map(|loaded| Told::of_last(loaded.history.into_iter().next_back())))
    }

    fn read(&self, told: Told) -> Result<Output<W>, Error> {
        let codec = &*self.engine.inner.codec;
        match told {
            Told::Completed(payload) => {
                let unreadable = |detail: String| Error::Result {
                    id: self.id.clone(),
                    detail,
                };
                let json =
                    codec::open(codec, &payload).map_err(|error| unreadable(error.to_string()))?;
                serde_json::from_slice(&json).map_err(|error| unreadable(error.to_string()))
            }
            Told::Failed(failure) => Err(Error::Failed(codec::open_failure(codec, failure))),
            Told::Cancelled => Err(Error::Cancelled(self.id.clone())),
            Told::Parked(parked) => Err(Error::Parked(parked)),
            Told::Unborn { retryable, detail } => {
                Err(super::start::unborn(retryable, detail).into())
            }
            Told::Gone => Err(Error::Attach(AttachError::NotFound {
                id: self.id.to_string(),
            })),
            Told::ShutDown | Told::Taken { .. } => Err(Error::ShutDown(self.id.clone())),
        }
    }
}

/// A handle names its run, so that a message can be sent to it from within another.
impl<W: Workflow> ToRun for RunHandle<W> {
    fn to_run(&self) -> Result<RunId, InvalidRunId> {
        Ok(self.id.clone())
    }
}

impl<W: Workflow> Clone for RunHandle<W> {
    fn clone(&self) -> Self {
        Self {
            engine: self.engine.clone(),
            id: self.id.clone(),
            run: self.run,
            board: Arc::clone(&self.board),
            workflow: PhantomData,
        }
    }
}

impl<W: Workflow> fmt::Debug for RunHandle<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunHandle")
            .field("workflow", &W::NAME)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// What a [`Watch`] gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watched {
    /// A committed record.
    Record(Arc<Record>),
    /// Records with these numbers, both included, were deleted before they were read: an iteration was pruned, a race was
    /// lost, a site was removed.
    Gap {
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
    },
}

impl Watched {
    /// The record, if it is one.
    pub fn record(&self) -> Option<&Arc<Record>> {
        match self {
            Self::Record(record) => Some(record),
            Self::Gap { .. } => None,
        }
    }
}

/// The committed records of a run, as they come. Made by [`RunHandle::watch`].
pub struct Watch<W: Workflow> {
    handle: RunHandle<W>,
    next: u64,
    ready: Vec<Arc<Record>>,
    behind: bool,
    over: bool,
}

impl<W: Workflow> Watch<W> {
    /// The next record, or that some are missing; `None` after the run's last one, or when the engine was shut down.
    ///
    /// # Errors
    /// The store failed; asking again is safe.
    ///
    /// # Cancel safety
    /// Nothing is lost when this future is dropped.
    pub async fn next(&mut self) -> Result<Option<Watched>, Error> {
        while self.ready.is_empty() {
            if self.behind {
                // What is stored first. What is committed from now on is on the board, because it is watched.
                let stored = self.handle.history().await?;
                // Whoever watches from beyond the end is not told of it.
                self.over |=
                    matches!(stored.last(), Some(last) if matches!(last.body, Body::Finished(_)));
                self.ready = stored
                    .into_iter()
                    .filter(|record| record.seq >= self.next)
                    .map(Arc::new)
                    .collect();
                self.behind = false;
            } else if self.over {
                return Ok(None);
            } else {
                tokio::select! {
                    biased;
                    records = self.handle.board.records(self.next) => match records {
                        Some(records) => self.ready = records,
                        None => self.behind = true,
                    },
                    () = self.handle.board.ended() => {
                        // Once more: its last records may have come before it was told.
                        self.behind = true;
                        self.over = true;
                    }
                }
            }
            self.ready.reverse();
        }
        let missing = self.ready.last().filter(|record| record.seq > self.next);
        if let Some(record) = missing {
            let (from, to) = (self.next, record.seq - 1);
            self.next = record.seq;
            return Ok(Some(Watched::Gap { from, to }));
        }
        let record = self.ready.pop();
        if let Some(record) = &record {
            self.next = record.seq + 1;
            self.over |= matches!(record.body, Body::Finished(_));
        }
        Ok(record.map(Watched::Record))
    }

    /// The number of the record that comes next: give it to [`RunHandle::watch`] to go on from here.
    pub fn position(&self) -> u64 {
        self.next
    }
}

impl<W: Workflow> Drop for Watch<W> {
    fn drop(&mut self) {
        self.handle.board.unwatch();
    }
}

impl<W: Workflow> fmt::Debug for Watch<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("run", &self.handle.id)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}
