//! Starts what comes due: a task for each schedule.
//!
//! 1. A run that is started, and that its firing was, are one transaction. So a crash loses none and repeats none, also when the run
//!    is long deleted.
//! 2. What is passed over is written before anything later is started.
//! 3. Whoever changes something of a schedule holds its gate, and the task looks again when it was told.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

use super::Kept;
use super::rows::{Fired, Rows};
use crate::engine::driver::panic_message;
use crate::engine::start::Asked;
use crate::engine::{Inner, StartError, retry};
use crate::replay::{RunId, RunKey, Terms, Timestamp};
use crate::schedule::{Firing, Missed, Overlap};
use crate::store::{Appended, Post, StoreError};

/// What a task waits for before it looks again.
enum Until {
    /// It was told that something changed.
    Told,
    /// A firing is due then.
    At(Timestamp),
    /// A run has ended.
    Ended(RunKey),
}

/// Why a firing was not started. It is tried again.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("what gives the workflow's input panicked: {0}")]
    Panicked(String),
}

/// Keeps a schedule until the engine is gone.
pub(super) async fn keep(inner: Weak<Inner>, kept: Arc<Kept>) {
    loop {
        // Not held while waiting, so that the engine can be dropped.
        let Some(inner) = inner.upgrade().filter(|inner| !inner.is_closing()) else {
            return;
        };
        let (until, board) = match inner.fire_due(&kept).await {
            Ok(Until::Ended(run)) => {
                let board = inner.boards.board(run);
                // Looked at again with a board: whoever ended before there was one told nobody.
                if let Ok(false) = inner.is_under_way(run).await {
                    continue;
                }
                kept.note_trouble(None);
                (Until::Ended(run), Some(board))
            }
            Ok(until) => {
                kept.note_trouble(None);
                (until, None)
            }
            Err(trouble) => {
                let schedule = kept.plan.name();
                tracing::error!(schedule, %trouble, "a schedule could not be kept; it is tried again");
                kept.note_trouble(Some(trouble.to_string()));
                let again = inner.clock.now().after(retry::STORAGE_PAUSE);
                (Until::At(again), None)
            }
        };
        let clock = Arc::clone(&inner.clock);
        drop(inner);
        let due = async {
            let Until::At(at) = until else {
                return std::future::pending().await;
            };
            loop {
                let left = at.since(clock.now());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(clock.longest_wait())).await;
            }
        };
        let ended = async {
            let Some(board) = &board else {
                return std::future::pending().await;
            };
            // Another engine may end it, which tells nobody here.
            drop(tokio::time::timeout(clock.longest_wait(), board.ended()).await);
        };
        tokio::select! {
            () = due => {}
            () = ended => {}
            () = kept.changed.notified() => {}
        }
    }
}

impl Inner {
    /// Starts what is due, and says when to look again.
    async fn fire_due(self: &Arc<Self>, kept: &Kept) -> Result<Until, Trouble> {
        loop {
            // Given back after each: whoever pauses it meanwhile does not wait for all that is made up.
            let _alone = kept.gate.lock().await;
            if let Some(until) = self.fire_next(kept).await? {
                return Ok(until);
            }
        }
    }

    /// Starts what is due next, or passes it over. When nothing is, says when to look again.
    async fn fire_next(self: &Arc<Self>, kept: &Kept) -> Result<Option<Until>, Trouble> {
        let plan = &kept.plan;
        self.drive_unsure(kept).await?;
        let (fired, rows) = self.look(kept).await?;
        if rows.paused().is_some() {
            return Ok(Some(Until::Told));
        }
        // What is started later than its time by some is due later by as much.
        let due = plan.due(self.clock.now());
        let through = rows.through(plan);
        match plan.after(through) {
            None => return Ok(Some(Until::Told)),
            Some(next) if next > due => return Ok(Some(Until::At(next.after(plan.delay())))),
            Some(_) => {}
        }
        let recent = plan.recent(through, due);
        let at = match plan.missed() {
            Missed::All => plan.after(recent).filter(|at| *at <= due),
            Missed::Latest => plan.latest(recent, due),
            Missed::Skip => {
                let opened = plan.due(self.opened_at);
                plan.latest(recent, due).filter(|at| *at > opened)
            }
        };
        let Some(at) = at else {
            self.pass_over(kept, fired, due, "missed").await?;
            return Ok(None);
        };
        if plan.overlap() != Overlap::Start
            && let Some(run) = self.last_run(&fired).await?
        {
            if plan.overlap() == Overlap::Wait {
                return Ok(Some(Until::Ended(run)));
            }
            self.pass_over(kept, fired, at, "the last run has not ended")
                .await?;
            return Ok(None);
        }
        self.fire(kept, fired, at).await?;
        Ok(None)
    }

    /// What the store has of a schedule. When it is seen for the first time, or says something else than before, it fires as it says
    /// from now on, and that is noted: what it would have said before now is past.
    pub(super) async fn look(&self, kept: &Kept) -> Result<(Fired, Rows), StoreError> {
        let plan = &kept.plan;
        let mut rows = Rows::of(&*self.store, plan.name()).await?;
        let before = match rows.fired.take() {
            Some(fired) if fired.says == plan.says() => {
                rows.fired = Some(fired.clone());
                return Ok((fired, rows));
            }
            before => before,
        };
        let through = plan.due(self.clock.now());
        if let Some(before) = &before {
            let (schedule, was, is) = (plan.name(), &before.says, plan.says());
            tracing::info!(schedule, %was, %is, "a schedule says something else than before; it fires as it says now");
        }
        let fired = Fired {
            cron: plan.cron().to_string(),
            zone: plan.zone().to_owned(),
            says: plan.says(),
            through,
            next: plan.after(through),
            last: before.and_then(|before| before.last),
        };
        self.write_fired(kept, &fired).await?;
        rows.fired = Some(fired.clone());
        Ok((fired, rows))
    }

    /// Firings up to `through` are not started.
    async fn pass_over(
        &self,
        kept: &Kept,
        fired: Fired,
        through: Timestamp,
        because: &str,
    ) -> Result<(), StoreError> {
        let schedule = kept.plan.name();
        tracing::info!(schedule, because, "a firing is passed over");
        let next = kept.plan.after(through);
        let fired = Fired {
            through,
            next,
            ..fired
        };
        self.write_fired(kept, &fired).await
    }

    async fn write_fired(&self, kept: &Kept, fired: &Fired) -> Result<(), StoreError> {
        let value = fired.value(kept.plan.name())?;
        self.store.put(vec![value]).await
    }

    /// A store that failed may have written what it was given all the same. Then there is a run that nobody drives yet.
    async fn drive_unsure(self: &Arc<Self>, kept: &Kept) -> Result<(), StoreError> {
        let id = kept.unsure().clone();
        let Some(id) = id else { return Ok(()) };
        if let Some(row) = self.store.find(&id).await? {
            self.wake(row.key);
        }
        *kept.unsure() = None;
        Ok(())
    }

    /// The run of the last firing, if it has not ended.
    async fn last_run(&self, fired: &Fired) -> Result<Option<RunKey>, StoreError> {
        let Some(id) = fired.last_run() else {
            return Ok(None);
        };
        let row = self.store.find(&id).await?;
        let row = row.filter(|row| !row.state.is_final());
        Ok(row.map(|row| row.key))
    }

    async fn is_under_way(&self, run: RunKey) -> Result<bool, StoreError> {
        let row = self.store.row(run).await?;
        Ok(row.is_some_and(|row| !row.state.is_final()))
    }

    /// Starts the run of a firing.
    async fn fire(
        self: &Arc<Self>,
        kept: &Kept,
        fired: Fired,
        at: Timestamp,
    ) -> Result<(), Trouble> {
        let plan = &kept.plan;
        let firing = plan.firing(at);
        let id = firing.run();
        let fired = Fired {
            through: at,
            next: plan.after(at),
            last: Some((at, id.to_string())),
            ..fired
        };
        let asked = self.asked_by(kept, firing)?;
        let posts = vec![Post::Values(vec![fired.value(plan.name())?])];
        *kept.unsure() = Some(id.clone());
        let begun = self.begin_stored(asked, posts).await?;
        *kept.unsure() = None;
        match begun {
            Appended::Applied | Appended::AlreadyApplied => {
                let schedule = plan.name();
                let late_ms = millis(at.after(plan.delay()), self.clock.now());
                tracing::info!(schedule, run = %id, late_ms, "a schedule fires");
                Ok(())
            }
            // It was started by a backfill, and that nobody has to start it is all that is left to say.
            Appended::Exists(_) => Ok(self.write_fired(kept, &fired).await?),
            Appended::Lost | Appended::Final => Err(StartError::ShuttingDown.into()),
        }
    }

    /// What a firing asks to be started.
    pub(super) fn asked_by(&self, kept: &Kept, firing: Firing) -> Result<Asked, Trouble> {
        let plan = &kept.plan;
        let id = firing.run();
        let workflow = plan.workflow();
        // The code is the user's.
        let input = catch_unwind(AssertUnwindSafe(|| plan.input(firing)))
            .map_err(|panic| Trouble::Panicked(panic_message(&*panic).to_owned()))?;
        let entry = self.registry.get(workflow);
        let entry = entry.ok_or(StartError::NotRegistered { workflow })?;
        let (input, terms) = input.map_or_else(
            |error| (Err(error), Terms::default()),
            |(json, terms)| (Ok(json), terms),
        );
        Ok(self.asked_of(id, entry, input, terms)?)
    }
}

fn millis(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.since(from).as_millis()).unwrap_or(u64::MAX)
}

impl Kept {
    /// The run of which the store did not say whether it was started.
    fn unsure(&self) -> MutexGuard<'_, Option<RunId>> {
        self.unsure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes why it cannot fire now, or that it can.
    fn note_trouble(&self, why: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }
}
