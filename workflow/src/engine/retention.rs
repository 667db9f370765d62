//! How long runs are kept after their end, and how they are deleted.
//!
//! 1. Nothing is deleted that nobody asked to be deleted: without a [`Retention`] every run is kept.
//! 2. What counts is when a run ended. A run that is recovered or rewound is live again, and begins anew when it ends.
//! 3. A sweep reads the rows page by page and deletes in small transactions, with pauses: commits come in between. It keeps no
//!    place of its own: one that was cut off is made again from the beginning, and what was deleted is not there any more.
//! 4. A run's children are deleted before it or with it, so that a new run of its id finds none of them.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::task::JoinHandle;

use super::board::Told;
use super::{Definition, Engine, Inner};
use crate::context::Workflow;
use crate::error::Error;
use crate::replay::{Body, Kind, Record, RunId, RunKey, RunState, Timestamp, Waiting};
use crate::store::{Deleted, Deletion, Loaded, RunFilter, RunRow, StoreError};

/// So many runs are deleted in one transaction.
const BATCH: usize = 64;
/// So many rows are read at a time.
const PAGE: usize = 256;
/// After a batch a sweep rests so many times as long as the batch took.
const REST: u32 = 4;
/// A sweep rests so long at least.
const LEAST: Duration = Duration::from_millis(1);
/// How often is swept at most, and at least.
const EVERY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(900));
/// How often a deletion is tried again because the run changed meanwhile.
const TRIES: u32 = 16;

/// How long runs are kept after their end, by how they ended. For
/// [`EngineBuilder::retention`](super::EngineBuilder::retention).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    completed: Option<Duration>,
    failed: Option<Duration>,
    cancelled: Option<Duration>,
}

impl Retention {
    /// Every run is kept for ever: what holds for workflows of which nothing is said.
    pub fn forever() -> Self {
        Self::default()
    }

    /// Every run is kept for `keep` after its end.
    pub fn all(keep: Duration) -> Self {
        Self::forever().completed(keep).failed(keep).cancelled(keep)
    }

    /// Runs that completed are kept for `keep` after that.
    #[must_use]
    pub fn completed(mut self, keep: Duration) -> Self {
        self.completed = Some(keep);
        self
    }

    /// Runs that failed are kept for `keep` after that. As long as one is there it can be
    /// [recovered](super::Engine::recover).
    #[must_use]
    pub fn failed(mut self, keep: Duration) -> Self {
        self.failed = Some(keep);
        self
    }

    /// Runs that were cancelled are kept for `keep` after that.
    #[must_use]
    pub fn cancelled(mut self, keep: Duration) -> Self {
        self.cancelled = Some(keep);
        self
    }

    fn keep(self, state: RunState) -> Option<Duration> {
        match state {
            RunState::Completed => self.completed,
            RunState::Failed => self.failed,
            RunState::Cancelled => self.cancelled,
            _ => None,
        }
    }

    fn shortest(self) -> Option<Duration> {
        let all = [self.completed, self.failed, self.cancelled];
        all.into_iter().flatten().min()
    }
}

/// What a sweep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Swept {
    /// How many runs it deleted, children among them.
    pub deleted: u64,
    /// How many it left though their time is over: the parent of each has not ended, or a child.
    pub awaited: u64,
}

/// Why a run was not deleted. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeleteError {
    /// There is none.
    #[error("there is no run `{id}`")]
    NotFound {
        /// The id.
        id: String,
    },
    /// It has not ended.
    #[error("run `{id}` is {state}, so it cannot be deleted: cancel it first")]
    Live {
        /// The run.
        id: RunId,
        /// Its state.
        state: RunState,
    },
    /// Its parent has not ended, and may look back at it.
    #[error("run `{id}` is a child of `{parent}`, which has not ended, so it cannot be deleted")]
    Awaited {
        /// The run.
        id: RunId,
        /// Its parent.
        parent: RunId,
    },
    /// A child of it has not ended.
    #[error("run `{child}`, a child of `{id}`, has not ended, so `{id}` cannot be deleted")]
    Child {
        /// The run.
        id: RunId,
        /// The child.
        child: RunId,
    },
    /// The run changes faster than it can be deleted.
    #[error("run `{id}` keeps changing; try again")]
    Busy {
        /// The run.
        id: RunId,
    },
    /// The store failed. Whether it was deleted is unknown; deleting it again is safe.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is said of how long runs are kept, and the task that sees to it.
#[derive(Default)]
pub(crate) struct Retentions {
    others: Retention,
    by_workflow: HashMap<&'static str, Retention>,
    task: Mutex<Option<JoinHandle<()>>>,
    /// Held by who sweeps: one is enough.
    sweeping: tokio::sync::Mutex<()>,
}

impl Retentions {
    /// Said of every workflow of which nothing else is said.
    pub(super) fn others(&mut self, retention: Retention) {
        self.others = retention;
    }

    pub(super) fn of<Arguments, F: Definition<Arguments>>(&mut self, retention: Retention) {
        self.by_workflow.insert(F::Workflow::NAME, retention);
    }

    pub(super) fn workflows(&self) -> impl Iterator<Item = &'static str> {
        self.by_workflow.keys().copied()
    }

    /// Whether a run's time is over.
    fn is_over(&self, row: &RunRow, now: Timestamp) -> bool {
        let said = self.by_workflow.get(&*row.workflow);
        let keep = said.unwrap_or(&self.others).keep(row.state);
        match (keep, row.finished_at) {
            (Some(keep), Some(at)) => at.after(keep) <= now,
            _ => false,
        }
    }

    /// How often is swept, if there is anything to sweep for.
    fn every(&self) -> Option<Duration> {
        let said = self.by_workflow.values().chain([&self.others]);
        let shortest = said.filter_map(|said| said.shortest()).min()?;
        Some((shortest / 10).clamp(EVERY.0, EVERY.1))
    }

    pub(super) fn start(inner: &Arc<Inner>) {
        let Some(every) = inner.retentions.every() else {
            return;
        };
        let task = tokio::spawn(sweep_again(Arc::downgrade(inner), every));
        *inner.retentions.task() = Some(task);
    }

    pub(super) fn stop(&self) -> Option<JoinHandle<()>> {
        let task = self.task().take();
        task.inspect(JoinHandle::abort)
    }

    fn task(&self) -> std::sync::MutexGuard<'_, Option<JoinHandle<()>>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Retentions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retentions")
            .field("others", &self.others)
            .field("by_workflow", &self.by_workflow)
            .finish_non_exhaustive()
    }
}

async fn sweep_again(inner: Weak<Inner>, every: Duration) {
    loop {
        // Not held while waiting, so that the engine can be dropped.
        match inner.upgrade() {
            Some(inner) if !inner.is_closing() => {
                let swept = inner.sweep().await;
                match swept {
                    Ok(Swept { deleted: 0, .. }) => {}
                    Ok(Swept { deleted, .. }) => tracing::info!(deleted, "old runs deleted"),
                    Err(error) => {
                        tracing::error!(%error, "old runs could not be deleted; it is tried again");
                    }
                }
            }
            _ => return,
        }
        tokio::time::sleep(every).await;
    }
}

impl Engine {
    /// Deletes now what the engine's [retention](super::EngineBuilder::retention) says is kept no longer, and waits until that is
    /// done. The engine does the same by itself from time to time.
    ///
    /// # Errors
    /// The store failed. What was deleted before stays so.
    ///
    /// # Cancel safety
    /// When this future is dropped some are deleted and some not yet; each is whole or gone.
    pub async fn gc(&self) -> Result<Swept, Error> {
        Ok(self.inner.sweep().await?)
    }

    /// Deletes one run that has ended, with its children: its row and history, its inbox and dead letters, its dedup keys, the
    /// answers to the requests in its history. Values that it [`put`](crate::CurrentStep::put) stay. It is one transaction.
    ///
    /// Its id is free then: starting it again starts a new run, which has its effects again, under the same idempotency keys.
    ///
    /// # Errors
    /// [`DeleteError`]: there is none, it or one of its children has not ended, its parent has not, or the store failed.
    pub async fn delete(&self, id: impl AsRef<str>) -> Result<(), DeleteError> {
        let inner = &self.inner;
        let run = RunId::from_stored(id.as_ref());
        for _ in 0..TRIES {
            let row = inner.store.find(&run).await?;
            let row = row.ok_or_else(|| DeleteError::NotFound {
                id: run.to_string(),
            })?;
            if !row.state.is_final() {
                let (id, state) = (row.id, row.state);
                return Err(DeleteError::Live { id, state });
            }
            let family = match inner.family(row.key).await? {
                Family::Ended(family) => family,
                Family::Live(child) => {
                    return Err(DeleteError::Child { id: run, child });
                }
            };
            // The last is the run itself.
            let answer = inner.delete(family).await?.pop();
            match (answer, row.parent) {
                (Some(Deleted::Deleted), _) => return Ok(()),
                (Some(Deleted::Awaited), Some((parent, _))) => {
                    return Err(DeleteError::Awaited { id: run, parent });
                }
                _ => {}
            }
        }
        Err(DeleteError::Busy { id: run })
    }
}

/// A run with its children and theirs.
enum Family {
    /// All of them have ended. The run is the last.
    Ended(Vec<Deletion>),
    /// This one has not.
    Live(RunId),
}

impl Inner {
    /// Deletes every run whose time is over.
    async fn sweep(&self) -> Result<Swept, StoreError> {
        let _alone = self.retentions.sweeping.lock().await;
        let mut swept = Swept::default();
        if self.retentions.every().is_none() {
            return Ok(swept);
        }
        let mut filter = RunFilter {
            limit: PAGE,
            ..RunFilter::default()
        };
        let mut batch = Vec::new();
        let mut begun = tokio::time::Instant::now();
        loop {
            let page = self.store.list(&filter).await?;
            let now = self.clock.now();
            for row in page.rows {
                if !self.retentions.is_over(&row, now) {
                    continue;
                }
                if self.is_awaited(&row).await? {
                    swept.awaited += 1;
                    continue;
                }
                match self.family(row.key).await? {
                    Family::Ended(family) => batch.extend(family),
                    Family::Live(_) => swept.awaited += 1,
                }
                // A family may be of many: children come first, so it may go in parts.
                while batch.len() >= BATCH {
                    let rest = batch.split_off(BATCH);
                    self.sweep_batch(batch, &mut swept).await?;
                    batch = rest;
                    tokio::time::sleep((begun.elapsed() * REST).max(LEAST)).await;
                    begun = tokio::time::Instant::now();
                }
            }
            let Some(next) = page.next else { break };
            filter.after = Some(next);
            // A page without anything to delete is work, too.
            tokio::time::sleep(LEAST).await;
        }
        self.sweep_batch(batch, &mut swept).await?;
        Ok(swept)
    }

    async fn sweep_batch(&self, batch: Vec<Deletion>, swept: &mut Swept) -> Result<(), StoreError> {
        if batch.is_empty() {
            return Ok(());
        }
        for answer in self.delete(batch).await? {
            match answer {
                Deleted::Deleted => swept.deleted += 1,
                Deleted::Awaited => swept.awaited += 1,
                // It was recovered meanwhile, or deleted with its parent.
                Deleted::Live | Deleted::Changed | Deleted::Missing => {}
            }
        }
        Ok(())
    }

    /// Deletes runs, and tells those who wait for one.
    async fn delete(&self, deletions: Vec<Deletion>) -> Result<Vec<Deleted>, StoreError> {
        let runs: Vec<_> = deletions.iter().map(|deletion| deletion.run).collect();
        let deleted = self.store.delete(deletions).await?;
        for (run, answer) in runs.into_iter().zip(&deleted) {
            if *answer == Deleted::Deleted {
                self.runs().strayed.remove(&run);
                if let Some(board) = self.boards.find(run) {
                    board.tell_if_untold(Told::Gone);
                }
            }
        }
        Ok(deleted)
    }

    /// Whether a run is a child that is not detached, of a parent that has not ended.
    async fn is_awaited(&self, row: &RunRow) -> Result<bool, StoreError> {
        let Some((parent, _)) = row.parent.as_ref().filter(|_| !row.detached) else {
            return Ok(false);
        };
        let parent = self.store.find(parent).await?;
        Ok(parent.is_some_and(|parent| !parent.state.is_final()))
    }

    /// A run and everything that is deleted with it, children first.
    async fn family(&self, run: RunKey) -> Result<Family, StoreError> {
        let mut family = Vec::new();
        let mut seen = BTreeSet::from([run]);
        let mut next = vec![run];
        while let Some(run) = next.pop() {
            let Some(Loaded { row, history }) = self.store.load(run).await? else {
                continue;
            };
            family.push(Deletion {
                run,
                expected_seq: row.last_seq,
                requests: requests(&history),
            });
            for child in children(&row, &history) {
                let Some(child) = self.store.find(&child).await? else {
                    continue;
                };
                let ours = matches!(&child.parent, Some((parent, _)) if *parent == row.id);
                if !ours || !seen.insert(child.key) {
                    continue;
                }
                if child.state.is_final() {
                    next.push(child.key);
                } else if !child.detached {
                    return Ok(Family::Live(child.id));
                }
            }
        }
        family.reverse();
        Ok(Family::Ended(family))
    }
}

/// The requests that a history took and may have answered.
fn requests(history: &[Record]) -> Vec<u128> {
    let replies =
        |record: &Record| matches!(&record.body, Body::Ended(ended) if ended.kind == Kind::Reply);
    if !history.iter().any(replies) {
        return Vec::new();
    }
    // Of one that was no request there is no answer, and so none to be deleted.
    let taken = history.iter().filter_map(|record| match &record.body {
        Body::Taken(messages) => Some(messages),
        _ => None,
    });
    taken.flatten().map(|message| message.id).collect()
}

/// The ids that the children have of which a history tells. There may be none of an id, or another's: who looks them up sees.
fn children(row: &RunRow, history: &[Record]) -> Vec<RunId> {
    let mut children = Vec::new();
    for record in history {
        match &record.body {
            Body::Waiting(Waiting::Child { id, .. }) => children.push(id.clone()),
            // Of a detached one that is all there is. One that was given an id lives by itself.
            Body::Ended(ended) if ended.kind == Kind::Child => {
                let usual = |generation| RunId::child(&row.id, &record.location, generation);
                children.extend((0..=row.generation).map(usual));
            }
            _ => {}
        }
    }
    children
}
