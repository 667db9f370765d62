//! How a run that the store has comes into memory again.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::board::Told;
use super::driver::Begin;
use super::live::Live;
use super::quarantine::Claim;
use super::registry::Entry;
use super::rollback::Rollback;
use super::room::{Place, Seat};
use super::{Inner, retry, telemetry};
use crate::replay::{Begun, HistoryError, Ledger, ParkReason, Record, Replay, RunKey, RunState};
use crate::store::{Loaded, RunRow, StoreError};

/// A run on its way into memory. Nobody else brings it there.
pub(crate) struct Coming {
    inner: Arc<Inner>,
    run: RunKey,
}

impl Coming {
    /// Nothing when it is there, or on its way, or the engine is closing.
    pub(super) fn of(inner: &Arc<Inner>, run: RunKey) -> Option<Self> {
        let mut runs = inner.runs();
        let free = !inner.is_closing()
            && !runs.by_key.contains_key(&run)
            && !runs.coming.contains_key(&run);
        free.then(|| {
            runs.coming.insert(run, false);
            Self {
                inner: Arc::clone(inner),
                run,
            }
        })
    }

    /// It is there; true when it was cancelled on its way.
    fn arrived(self) -> bool {
        self.inner.runs().coming.remove(&self.run) == Some(true)
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        self.inner.runs().coming.remove(&self.run);
    }
}

/// What becomes of a run that was loaded: the same for a drive and for a preflight, which only says so.
pub(super) enum Course {
    /// It cannot go on: its workflow is not registered.
    Stands((ParkReason, String)),
    /// Its code is over, and what it did is undone.
    Unwinds(Entry, Ledger),
    /// Its code is replayed over its history.
    Replays {
        entry: Entry,
        /// Unless it is known to end the process.
        hopeless: Option<(ParkReason, String)>,
    },
}

impl Course {
    fn entry(&self) -> Option<&Entry> {
        match self {
            Self::Stands(_) => None,
            Self::Unwinds(entry, _) | Self::Replays { entry, .. } => Some(entry),
        }
    }
}

impl Inner {
    /// What becomes of a run, by what the store says of it.
    pub(super) fn course(&self, row: &RunRow, history: &[Record], claim: Claim) -> Course {
        let Some(entry) = self.registry.get(&row.workflow) else {
            let detail = format!(
                "workflow `{}` is not registered with this engine",
                row.workflow
            );
            return Course::Stands((ParkReason::Unregistered, detail));
        };
        let ledger = Ledger::of(history);
        if ledger.unwinds().is_some() {
            return Course::Unwinds(entry, ledger);
        }
        let hopeless = claim.hopeless().filter(|_| row.state != RunState::Parked);
        Course::Replays { entry, hopeless }
    }

    /// A run's machine, from its history.
    pub(super) fn replay_of(
        &self,
        entry: &Entry,
        history: Vec<Record>,
        row: &RunRow,
    ) -> Result<Replay, HistoryError> {
        let Some(alive) = &entry.alive else {
            return Replay::load(history, self.code, row.standing());
        };
        let mut alive = alive(&*self.codec, &history);
        self.forget_strayed(row.key, |visit| {
            alive.iter().all(|it| it.visit.as_ref() != Some(visit))
        });
        let strayed = self.strayed(row.key);
        for alive in &mut alive {
            let visit = alive.visit.as_ref();
            if visit.is_some_and(|visit| strayed.iter().any(|it| it.visit == *visit)) {
                alive.visit = None;
                alive.earlier.clear();
            }
        }
        Replay::load_alive(history, self.code, row.standing(), &alive)
    }

    /// Brings a run back into memory, when there is room, if it is not there, and if this engine drives any.
    pub(crate) fn wake(self: &Arc<Self>, run: RunKey) {
        self.bring_back(run, None);
    }

    /// The same, where it is known where the run stands among those that wait for room.
    pub(super) fn wake_at(self: &Arc<Self>, place: Place) {
        self.bring_back(place.run, Some(place));
    }

    fn bring_back(self: &Arc<Self>, run: RunKey, place: Option<Place>) {
        // One that is queued is woken when it has what it waits for.
        if !self.drives || self.limits.is_queued(run) {
            return;
        }
        let Some(coming) = Coming::of(self, run) else {
            return;
        };
        if let Some(seat) = self.room.try_enter() {
            tokio::spawn(Arc::clone(self).take_up(coming, seat));
            return;
        }
        drop(coming);
        if let Some(place) = place {
            return self.room.queue(place);
        }
        let inner = Arc::clone(self);
        tokio::spawn(async move {
            let place = inner.place_of(run).await;
            inner.room.queue(place);
        });
    }

    /// Takes in the runs that wait for room, when it is their turn.
    pub(super) fn opens_room(self: &Arc<Self>) {
        let (weak, runtime) = (Arc::downgrade(self), Handle::current());
        self.room.takes_in(move |run, seat| {
            let Some(inner) = weak.upgrade() else { return };
            runtime.spawn(async move {
                // One that is in a line for something else meanwhile is woken when it has that.
                if !inner.limits.is_queued(run)
                    && let Some(coming) = Coming::of(&inner, run)
                {
                    inner.take_up(coming, seat).await;
                }
            });
        });
    }

    /// Where a run stands among those that wait. One that cannot be read stands where those do of which nothing was said; it is read
    /// again when it is its turn.
    async fn place_of(&self, run: RunKey) -> Place {
        let row = self.store.row(run).await.ok().flatten();
        Place::new(row.map_or(0, |row| row.priority), run)
    }

    async fn take_up(self: Arc<Self>, coming: Coming, seat: Seat) {
        if self.is_closing() {
            return;
        }
        let run = coming.run;
        let Loaded { mut row, history } = match self.store.load(run).await {
            Ok(Some(loaded)) => loaded,
            Ok(None) => return self.frees(run),
            Err(error) => {
                tracing::error!(?run, %error, "a run could not be loaded");
                if error.is_retryable() {
                    self.scheduler
                        .at(self.clock.now().after(retry::STORAGE_PAUSE), run);
                } else {
                    self.park_unread(run, &error).await;
                }
                return;
            }
        };
        if row.state.is_final() {
            self.frees(run);
            self.tell(run, Told::of_last(history.into_iter().next_back()));
            return;
        }
        if row.epoch > self.identity.boot {
            // Whoever opened the store since drives it: bodies begun here would be begun twice, and in vain.
            return self.tell(run, Told::ShutDown);
        }
        if let Some(at) = row.not_before.filter(|at| *at > self.clock.now())
            && !row.has_begun()
        {
            // Whoever wants it now waits for its time, too.
            self.frees(run);
            if row.wake_at == Some(at) {
                return self.scheduler.suspended(at, run);
            }
            // One that was taken back is in no index of deadlines: nobody reads when its time comes.
            return self.scheduler.at(at, run);
        }
        let place = Place::new(row.priority, run);
        let gate = self.gate_of(&row, Begun::of(&history));
        if let Some(gate) = &gate {
            if row.state == RunState::RollingBack {
                self.limits.hold(gate, place);
            } else if !self.limits.take(gate, place, self.clock.now()) {
                self.enqueue(gate, place);
                drop((coming, seat));
                // It may have got it before it was no longer on its way.
                let granted = self.limits.granted_with(run, self.clock.now());
                self.grant(granted);
                return self.wake(run);
            }
        }
        let claim = self.claim_of(&row);
        if self.holds_back(run, claim) {
            return;
        }
        let number = self.last_number(&row);
        let begun = Begun::of(&history);
        let (seed, hash) = begun.map_or(((0, 0), 0), |begun| {
            ((begun.seed, begun.generation), begun.input_hash)
        });
        let input = begun.map(|begun| begun.input.clone());
        let course = self.course(&row, &history, claim);
        let workflow = course.entry().map_or("", |entry| entry.name);
        let live = Live::new(row.id.clone(), run, workflow, hash, number);
        let live = live.with_threads(self.threads_of(run));
        let live = Arc::new(live.with_priority(row.priority));
        live.follows(row.last_seq);
        if let Some(progress) = row.progress.clone() {
            live.set_progress(progress);
        }
        self.weigh(&live, &history);
        if let Some((parent, _)) = &row.parent
            && !row.detached
        {
            live.set_awaited_by(parent.clone());
        }
        if !self.enter(&live) {
            return;
        }
        if coming.arrived() {
            // Cancelled since it was read.
            self.leave(&live);
            self.frees(run);
            self.tell(run, Told::Cancelled);
            return;
        }
        let (entry, hopeless) = match course {
            Course::Stands(parked) => {
                let exit = self.park(&live, parked).await;
                return self.left_memory(&live, exit);
            }
            Course::Unwinds(entry, ledger) => {
                let rollback = Rollback {
                    inner: Arc::clone(&self),
                    live: Arc::clone(&live),
                    entry,
                    ledger,
                    last_seq: row.last_seq,
                    seed,
                    was_parked: row.parked.is_some(),
                };
                return self.launch_rollback(&live, rollback, seat);
            }
            Course::Replays { entry, hopeless } => (entry, hopeless),
        };
        self.check_children(&row.id, &history);
        if let Some(parked) = hopeless {
            let exit = self.park(&live, parked).await;
            return self.left_memory(&live, exit);
        }
        // First: what is staked is begun, too.
        if let Some(exit) = self.record_begin(&live, &mut row, gate.as_ref()).await {
            return self.left_memory(&live, exit);
        }
        if let Some(exit) = self.stake(&live, &mut row, claim).await {
            return self.left_memory(&live, exit);
        }
        telemetry::loaded(&live, history.len());
        let mut replay = self.replay_of(&entry, history, &row);
        if let Ok(replay) = &mut replay {
            replay.handle_unclean(claim.died, self.clock.now());
        }
        match (replay, input) {
            (Ok(replay), Some(input)) => {
                self.launch(
                    &live,
                    entry,
                    replay,
                    &input,
                    Begin::Loaded {
                        parked: row.parked.is_some(),
                    },
                    seat,
                );
            }
            (Err(error), _) => {
                let exit = self
                    .park(&live, (ParkReason::NewerFormat, error.to_string()))
                    .await;
                self.left_memory(&live, exit);
            }
            (Ok(_), None) => {
                self.leave(&live);
                self.frees(run);
            }
        }
    }

    /// A run needs no slot any more: who waits for one gets it.
    pub(super) fn frees(self: &Arc<Self>, run: RunKey) {
        let granted = self.limits.release(run, self.clock.now());
        self.grant(granted);
    }

    /// Parks a run whose history this program cannot read: its bytes stay, and whoever waits for it is told.
    async fn park_unread(self: &Arc<Self>, run: RunKey, error: &StoreError) {
        let row = match self.store.row(run).await {
            Ok(Some(row)) if !row.state.is_final() => row,
            _ => return,
        };
        let live = Arc::new(Live::new(
            row.id.clone(),
            run,
            "",
            0,
            self.last_number(&row),
        ));
        live.follows(row.last_seq);
        if !self.enter(&live) {
            return;
        }
        let reason = match error {
            StoreError::Newer { .. } => ParkReason::NewerFormat,
            _ => ParkReason::Storage,
        };
        let exit = self.park(&live, (reason, error.to_string())).await;
        self.left_memory(&live, exit);
    }
}
