//! What an operator does to a run: retry what failed, go back, go back in a run of its own.
//!
//! Each is worked out from the run's history and written in one transaction. While that is done the run is out of memory and is
//! not brought back; if it changes all the same, by a cancellation or a child's end, it is worked out anew.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::start::derive_seed;
use super::take_up::Coming;
use super::{Engine, Inner, RunHandle};
use crate::context::Workflow;
use crate::replay::{
    Body, Control, InvalidRunId, Location, Message, Record, Recovery, Rewind, RewindError, RunId,
    RunKey, RunState, fork, newest_positions,
};
use crate::store::{
    Append, Appended, InboxChange, Loaded, NewRun, Post, Rewrite, RunPatch, RunRow, StoreError,
};

/// How often something is worked out anew because the run changed meanwhile.
const TRIES: u32 = 16;
/// How often it is looked whether a run on its way into memory has come.
const LOOK: Duration = Duration::from_millis(5);

/// Why something could not be done to a run. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// There is none.
    #[error("there is no run `{id}`")]
    NotFound {
        /// The id.
        id: String,
    },
    /// It is in a state in which this cannot be done.
    #[error("run `{id}` is {state}, so it cannot be {what}")]
    State {
        /// The run.
        id: RunId,
        /// Its state.
        state: RunState,
        /// What was to be done.
        what: &'static str,
    },
    /// Its history cannot be taken back to there.
    #[error("run `{id}`: {source}")]
    History {
        /// The run.
        id: RunId,
        /// Why not.
        source: RewindError,
    },
    /// A child that it failed by cannot be recovered.
    #[error("run `{id}` failed by its child `{child}`, which cannot be recovered: {source}")]
    Child {
        /// The run.
        id: RunId,
        /// The child.
        child: RunId,
        /// Why not.
        source: Box<Self>,
    },
    /// The new run's id cannot be one.
    #[error(transparent)]
    InvalidId(#[from] InvalidRunId),
    /// The new run's id belongs to another run.
    #[error("there is a run `{id}` already: give the fork another id")]
    Exists {
        /// The id.
        id: RunId,
    },
    /// It is a guide. What takes one back is its flow's: `back`, `retry`, `rollback`.
    #[error(
        "run `{id}` is a guide, so it cannot be {what} here: press `back`, `retry` or `rollback` on it"
    )]
    Guide {
        /// The run.
        id: RunId,
        /// What was to be done.
        what: &'static str,
    },
    /// The run changes faster than it can be rewritten.
    #[error("run `{id}` keeps changing; try again")]
    Busy {
        /// The run.
        id: RunId,
    },
    /// The engine is shutting down.
    #[error("the engine is shutting down")]
    ShuttingDown,
    /// The store failed. Whether it was done is unknown; doing it again is safe, but a rewind then may be a second one.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a rewind did, or would do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rewound {
    /// To where: what was recorded there is done again.
    pub to: Location,
    /// The generation of the run from then on. It is in idempotency keys, in what is derived, and in the ids of children.
    pub generation: u32,
    /// The records that are deleted, in order.
    pub removed: Vec<Record>,
    /// The messages that go back into the inbox. Requests that were answered do not.
    pub returned: Vec<Message>,
    /// The children that are cancelled, as far as they have not ended.
    pub cancelled: Vec<RunId>,
}

impl Engine {
    /// Takes a run back to a location, whatever its workflow: `engine.rewind("order-17", "items[3]/ship")`. What is recorded there, and
    /// what lies sequentially after it, is deleted, and the run goes on from there; an empty location is the run's beginning. What
    /// ran beside it, in another branch of a join, stays. Effects are not undone.
    ///
    /// Messages that were taken after it are in the inbox again, at their old place; children that were started after it are
    /// cancelled. The run's generation grows, so that idempotency keys, `uuid!` and `random!` from there on and the ids of children
    /// are others than before. It is one transaction.
    ///
    /// # Errors
    /// [`ControlError`]: there is no such run or location, the location lies in a race that is won or in an iteration that is no
    /// longer kept, or the run was cancelled or is rolling back.
    pub async fn rewind(
        &self,
        id: impl AsRef<str>,
        location: impl fmt::Display,
    ) -> Result<Rewound, ControlError> {
        let run = self.run_of(id.as_ref()).await?;
        self.inner.rewind(run, &location.to_string()).await
    }

    /// Says what [`rewind`](Self::rewind) would do, and does nothing.
    ///
    /// # Errors
    /// As [`rewind`](Self::rewind).
    pub async fn rewind_dry_run(
        &self,
        id: impl AsRef<str>,
        location: impl fmt::Display,
    ) -> Result<Rewound, ControlError> {
        let run = self.run_of(id.as_ref()).await?;
        let loaded = self.inner.loaded(run).await?;
        let location = location.to_string();
        let planned = self.inner.plan_rewind(&loaded, &location).await;
        planned.map(|(_, rewound)| rewound)
    }

    /// Retries a run that failed: the failures that ended it are forgotten, with their attempts, and it goes on where they were. What
    /// the workflow went on after stays as it is. When it failed by the failure of a child, the child is recovered, too. A run
    /// that has rolled back is taken back to its first checkpoint instead, as by [`rewind`](Self::rewind): what was undone is done
    /// again. It is one transaction.
    ///
    /// # Errors
    /// [`ControlError`]: there is no such run, it did not fail, or there is nothing to retry.
    pub async fn recover(&self, id: impl AsRef<str>) -> Result<(), ControlError> {
        let run = self.run_of(id.as_ref()).await?;
        self.inner.recover(run).await
    }

    /// Starts a new run from a copy of another's history, whatever its workflow. As [`RunHandle::fork`].
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn fork(
        &self,
        of: impl AsRef<str>,
        id: impl AsRef<str>,
        location: Option<&str>,
    ) -> Result<RunId, ControlError> {
        let id = RunId::new(id)?;
        let run = self.run_of(of.as_ref()).await?;
        self.inner.fork(run, &id, location).await?;
        Ok(id)
    }

    async fn run_of(&self, id: &str) -> Result<RunKey, ControlError> {
        let found = self.inner.store.find(&RunId::from_stored(id)).await?;
        let row = found.ok_or_else(|| ControlError::NotFound { id: id.to_owned() })?;
        Ok(row.key)
    }
}

impl<W: Workflow> RunHandle<W> {
    /// Takes the run back to a location. As [`Engine::rewind`].
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn rewind(&self, location: impl fmt::Display) -> Result<Rewound, ControlError> {
        let inner = &self.engine().inner;
        inner.rewind(self.key(), &location.to_string()).await
    }

    /// Says what [`rewind`](Self::rewind) would do, and does nothing.
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn rewind_dry_run(
        &self,
        location: impl fmt::Display,
    ) -> Result<Rewound, ControlError> {
        self.engine()
            .rewind_dry_run(self.id().as_str(), location)
            .await
    }

    /// Retries the run, which failed. As [`Engine::recover`].
    ///
    /// # Errors
    /// [`ControlError`].
    pub async fn recover(&self) -> Result<(), ControlError> {
        self.engine().inner.recover(self.key()).await
    }

    /// Starts a new run from a copy of this one's history: it goes on where this one is, or does its last stretch again. With a
    /// location, it goes on from there, as this one would after a [`rewind`](Self::rewind). This run stays as it is.
    ///
    /// What is copied is not done again. The copy has no inbox; requests that this run took it cannot answer; children
    /// that have not ended it starts anew, under its own id.
    ///
    /// # Errors
    /// [`ControlError::Exists`], [`ControlError::InvalidId`], or as [`rewind`](Self::rewind).
    pub async fn fork(
        &self,
        id: impl AsRef<str>,
        location: Option<&str>,
    ) -> Result<Self, ControlError> {
        let id = RunId::new(id)?;
        let run = self.engine().inner.fork(self.key(), &id, location).await?;
        Ok(Self::new(self.engine().clone(), id, run))
    }
}

impl Inner {
    async fn rewind(
        self: &Arc<Self>,
        run: RunKey,
        location: &str,
    ) -> Result<Rewound, ControlError> {
        self.rewriting(run, || async {
            let loaded = self.loaded(run).await?;
            let (rewrite, rewound) = self.plan_rewind(&loaded, location).await?;
            Ok((vec![rewrite], Vec::new(), rewound))
        })
        .await
    }

    async fn recover(self: &Arc<Self>, run: RunKey) -> Result<(), ControlError> {
        self.rewriting(run, || async {
            let mut rewrites = Vec::new();
            let mut children = Vec::new();
            let mut runs = vec![(run, None::<RunId>)];
            while let Some((run, parent)) = runs.pop() {
                let loaded = self.loaded(run).await?;
                let planned = match self.plan_recovery(&loaded) {
                    Err(ControlError::History {
                        source: RewindError::Undone { .. },
                        ..
                    }) => self.plan_from_checkpoint(&loaded).await,
                    planned => planned,
                };
                match planned {
                    Ok((rewrite, failed)) => {
                        rewrites.push(rewrite);
                        for child in failed {
                            let id = child.to_string();
                            let row = self.store.find(&child).await?;
                            let row = row.ok_or(ControlError::NotFound { id })?;
                            children.push(row.key);
                            runs.push((row.key, Some(loaded.row.id.clone())));
                        }
                    }
                    Err(error) => {
                        return Err(match parent {
                            None => error,
                            Some(id) => ControlError::Child {
                                id,
                                child: loaded.row.id,
                                source: Box::new(error),
                            },
                        });
                    }
                }
            }
            Ok((rewrites, children, ()))
        })
        .await
    }

    /// Takes a run out of memory, rewrites it by what `plan` says, with others, and drives it again.
    async fn rewriting<T, P>(
        self: &Arc<Self>,
        run: RunKey,
        plan: impl Fn() -> P,
    ) -> Result<T, ControlError>
    where
        P: Future<Output = Result<(Vec<Rewrite>, Vec<RunKey>, T), ControlError>>,
    {
        // What is refused does not disturb the run.
        plan().await?;
        let held = self.hold(run).await?;
        let mut written = Err(None);
        for _ in 0..TRIES {
            let (rewrites, others, done) = match plan().await {
                Ok(planned) => planned,
                Err(error) => {
                    written = Err(Some(error));
                    break;
                }
            };
            let posts: Vec<_> = rewrites
                .iter()
                .map(|rewrite| (rewrite.run, rewrite.posts.clone()))
                .collect();
            match self.store.rewrite(rewrites).await {
                Ok(Appended::Applied | Appended::AlreadyApplied) => {
                    for (run, posts) in posts {
                        self.posted(run, &posts);
                    }
                    written = Ok((others, done));
                    break;
                }
                // It has changed since it was read.
                Ok(_) => {}
                Err(error) => {
                    written = Err(Some(error.into()));
                    break;
                }
            }
        }
        drop(held);
        let others = written.as_ref().map(|(others, _)| others.clone());
        for run in others.unwrap_or_default().into_iter().chain([run]) {
            if written.is_ok()
                && let Some(board) = self.boards.find(run)
            {
                board.begin_again();
            }
            // Also where nothing was done: it was taken out of memory, and may have missed what woke it.
            self.wake_if_due(run).await;
        }
        match written {
            Ok((_, done)) => Ok(done),
            Err(Some(error)) => Err(error),
            Err(None) => Err(ControlError::Busy {
                id: self.loaded(run).await?.row.id,
            }),
        }
    }

    async fn wake_if_due(self: &Arc<Self>, run: RunKey) {
        match self.store.row(run).await {
            Ok(Some(row)) if row.is_due(self.clock.now()) => self.wake(run),
            Ok(Some(RunRow {
                wake_at: Some(at), ..
            })) => self.scheduler.at(at, run),
            _ => {}
        }
    }

    /// Has a run out of memory, and nobody brings it back as long as what this gives is kept.
    pub(crate) async fn hold(self: &Arc<Self>, run: RunKey) -> Result<Coming, ControlError> {
        loop {
            if self.is_closing() {
                return Err(ControlError::ShuttingDown);
            }
            let left = self.left.notified();
            tokio::pin!(left);
            left.as_mut().enable();
            if let Some(held) = Coming::of(self, run) {
                return Ok(held);
            }
            self.evict(run, Duration::ZERO);
            tokio::select! {
                () = left => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    async fn loaded(&self, run: RunKey) -> Result<Loaded, ControlError> {
        let loaded = self.store.load(run).await?;
        loaded.ok_or_else(|| ControlError::NotFound {
            id: format!("number {}", run.0),
        })
    }

    async fn plan_rewind(
        &self,
        loaded: &Loaded,
        location: &str,
    ) -> Result<(Rewrite, Rewound), ControlError> {
        let Loaded { row, history } = loaded;
        refuse_guide(row, history, "rewound")?;
        refuse_in(
            row,
            &[RunState::Cancelled, RunState::RollingBack],
            "rewound",
        )?;
        let plan = Rewind::plan(history, location).map_err(|source| of_history(row, source))?;
        let mut returned = Vec::new();
        for message in plan.taken() {
            // Only requests are answered, and only their ids are known to be.
            let answered = self.store.answer(message.id).await?.is_some();
            if !answered {
                returned.push(message.clone());
            }
        }
        let generation = row.generation + 1;
        let cancelled: Vec<_> = plan.children().cloned().collect();
        let control = Control::Rewound {
            to: plan.to.clone(),
            generation,
            removed: plan.removed.len() as u64,
        };
        let mut rewrite = self.rewrite(row, &plan.removed, control);
        rewrite.patch.generation = Some(generation);
        rewrite.returns.clone_from(&returned);
        rewrite.posts = cancelled.iter().cloned().map(Post::Cancel).collect();
        let rewound = Rewound {
            to: plan.to,
            generation,
            removed: plan.removed,
            returned,
            cancelled,
        };
        Ok((rewrite, rewound))
    }

    fn plan_recovery(&self, loaded: &Loaded) -> Result<(Rewrite, Vec<RunId>), ControlError> {
        let Loaded { row, history } = loaded;
        refuse_guide(row, history, "recovered")?;
        if row.state != RunState::Failed {
            return Err(ControlError::State {
                id: row.id.clone(),
                state: row.state,
                what: "recovered",
            });
        }
        let plan = Recovery::plan(history).map_err(|source| of_history(row, source))?;
        let rewrite = self.rewrite(row, &plan.removed, Control::Recovered);
        Ok((rewrite, plan.children))
    }

    /// The recovery of a run that rolled back: what was undone is done again, from its first checkpoint on.
    async fn plan_from_checkpoint(
        &self,
        loaded: &Loaded,
    ) -> Result<(Rewrite, Vec<RunId>), ControlError> {
        let checkpoint = |record: &&Record| record.body == Body::Checkpoint;
        let to = match loaded.history.iter().find(checkpoint) {
            Some(checkpoint) => checkpoint.location.to_string(),
            // Undone without one: from the beginning, then.
            None => String::new(),
        };
        let (rewrite, _) = self.plan_rewind(loaded, &to).await?;
        Ok((rewrite, Vec::new()))
    }

    /// A rewrite after which the run goes on at once.
    fn rewrite(&self, row: &RunRow, removed: &[Record], control: Control) -> Rewrite {
        let location = Location::root();
        self.going_on(row, removed, location, Body::Control(control))
    }

    /// A rewrite after which the run goes on at once, with this behind it instead of what is removed.
    pub(crate) fn going_on(
        &self,
        row: &RunRow,
        removed: &[Record],
        location: Location,
        body: Body,
    ) -> Rewrite {
        let at = self.clock.now();
        Rewrite {
            run: row.key,
            expected_seq: row.last_seq,
            remove: removed.iter().map(|record| record.seq).collect(),
            records: vec![Record {
                seq: row.last_seq + 1,
                at,
                code: self.code,
                location,
                body,
            }],
            patch: RunPatch {
                state: Some(RunState::Pending),
                parked: Some(None),
                wake_at: Some(None),
                waits: Some(None),
                unclean: Some(0),
                at,
                code: self.code,
                ..RunPatch::default()
            },
            returns: Vec::new(),
            posts: Vec::new(),
        }
    }

    async fn fork(
        self: &Arc<Self>,
        from: RunKey,
        id: &RunId,
        location: Option<&str>,
    ) -> Result<RunKey, ControlError> {
        if self.is_closing() {
            return Err(ControlError::ShuttingDown);
        }
        let Loaded { row, history } = self.loaded(from).await?;
        refuse_guide(&row, &history, "forked")?;
        refuse_in(&row, &[RunState::RollingBack], "forked")?;
        let rewind = location.map(|location| Rewind::plan(&history, location));
        let rewind = rewind
            .transpose()
            .map_err(|source| of_history(&row, source))?;
        let seed = derive_seed(self.identity.id, id);
        let mut records = fork(&history, rewind.as_ref(), &row.id, seed);
        let at = self.clock.now();
        records.push(Record {
            seq: records.len() as u64 + 1,
            at,
            code: self.code,
            location: Location::root(),
            body: Body::Control(Control::Forked { seed }),
        });
        let run = self.store.allocate();
        let append = Append {
            run,
            epoch: self.identity.boot,
            number: 1,
            expected_seq: 0,
            create: Some(NewRun {
                id: id.clone(),
                workflow: row.workflow,
                parent: None,
                detached: false,
                not_before: None,
                priority: row.priority,
            }),
            records,
            deletes: Vec::new(),
            patch: RunPatch {
                state: Some(RunState::Pending),
                generation: Some(row.generation),
                at,
                code: self.code,
                ..RunPatch::default()
            },
            inbox: InboxChange::default(),
            posts: Vec::new(),
        };
        match self.store.append(append).await? {
            Appended::Applied | Appended::AlreadyApplied => {
                self.wake(run);
                Ok(run)
            }
            _ => Err(ControlError::Exists { id: id.clone() }),
        }
    }
}

/// A guide goes on by its newest position, and not by what its history holds: records that were deleted behind it would say nothing.
fn refuse_guide(row: &RunRow, history: &[Record], what: &'static str) -> Result<(), ControlError> {
    if !newest_positions(history).is_empty() {
        let id = row.id.clone();
        return Err(ControlError::Guide { id, what });
    }
    Ok(())
}

fn refuse_in(row: &RunRow, states: &[RunState], what: &'static str) -> Result<(), ControlError> {
    if states.contains(&row.state) {
        return Err(ControlError::State {
            id: row.id.clone(),
            state: row.state,
            what,
        });
    }
    Ok(())
}

fn of_history(row: &RunRow, source: RewindError) -> ControlError {
    ControlError::History {
        id: row.id.clone(),
        source,
    }
}
