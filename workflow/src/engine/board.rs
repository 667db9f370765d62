//! What those who hold a handle on a run are told of it: an ending, a parking, the records as they are committed.
//!
//! A run has a board only while somebody holds one, so a waiting run that nobody watches costs nothing here. Boards
//! follow committed records: nothing they do can fail or delay a run.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;

use super::error::ParkedRun;
use crate::replay::{Body, Failure, Finished, Payload, Record, RunKey};

/// How many records a board keeps for those who watch; who falls further behind reads the store.
const KEPT: usize = 256;

/// What became of a run in this process.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    Completed(Payload),
    Failed(Failure),
    Cancelled,
    Parked(ParkedRun),
    /// Its beginning could not be stored.
    Unborn {
        retryable: bool,
        detail: String,
    },
    /// Another engine on this store began a run of that id first.
    Taken {
        by: RunKey,
        input_hash: u64,
    },
    /// It was deleted.
    Gone,
    /// The engine is gone, or could not bring the run to an end here.
    ShutDown,
}

impl Told {
    /// What a final run's last record says.
    pub(crate) fn of_last(last: Option<Record>) -> Self {
        match last.map(|record| record.body) {
            Some(Body::Finished(Finished::Completed(payload))) => Self::Completed(payload),
            Some(Body::Finished(Finished::Failed(failure))) => Self::Failed(failure),
            _ => Self::Cancelled,
        }
    }
}

#[derive(Debug, Default)]
struct State {
    told: Option<Told>,
    durable: bool,
    watchers: usize,
    /// How many answers to requests it was told of.
    answers: u64,
    rolls_back: bool,
    recent: VecDeque<Arc<Record>>,
    last_seq: u64,
}

/// The board of one run.
#[derive(Debug, Default)]
pub(crate) struct Board {
    state: Mutex<State>,
    changed: Notify,
}

impl Board {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run has at least one durable record.
    pub(crate) fn tell_durable(&self) {
        // Told once: whoever waits for the end is not woken by every commit.
        if !std::mem::replace(&mut self.state().durable, true) {
            self.changed.notify_waiters();
        }
    }

    pub(crate) fn tell(&self, told: Told) {
        self.state().told = Some(told);
        self.changed.notify_waiters();
    }

    /// The same, for who was not told anything yet.
    pub(crate) fn tell_if_untold(&self, told: Told) {
        self.state().told.get_or_insert(told);
        self.changed.notify_waiters();
    }

    /// What was told of the run.
    pub(crate) fn known(&self) -> Option<Told> {
        self.state().told.clone()
    }

    /// An answer to a request is durable.
    pub(crate) fn answer(&self) {
        self.state().answers += 1;
        self.changed.notify_waiters();
    }

    /// How many answers there were.
    pub(crate) fn answers(&self) -> u64 {
        self.state().answers
    }

    /// Waits until there are more answers than that, or the run came to its end, or the engine is gone.
    pub(crate) async fn answered(&self, seen: u64) {
        self.until(|state| {
            let ended = matches!(&state.told, Some(told) if !matches!(told, Told::Parked(_)));
            (ended || state.answers != seen).then_some(())
        })
        .await;
    }

    /// The run's code is over, and what it did is being undone.
    pub(crate) fn roll_back(&self) {
        self.state().rolls_back = true;
        self.changed.notify_waiters();
    }

    /// Waits until the run is being undone, came to its end, or cannot go on.
    pub(crate) async fn rolled_back(&self) {
        self.until(|state| (state.rolls_back || state.told.is_some()).then_some(()))
            .await;
    }

    /// The run is driven again: what was told of its last drive no longer holds.
    pub(crate) fn reopen(&self) {
        let mut state = self.state();
        if matches!(state.told, Some(Told::Parked(_) | Told::ShutDown)) {
            state.told = None;
        }
    }

    /// The run goes on after its end, or from before it: nothing that was told of it holds any more.
    pub(crate) fn begin_again(&self) {
        self.state().told = None;
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.state().watchers > 0
    }

    /// Records became durable.
    pub(crate) fn publish(&self, records: &[Record]) {
        let mut state = self.state();
        if let Some(last) = records.last() {
            state.last_seq = last.seq;
        }
        for record in records {
            if state.recent.len() == KEPT {
                state.recent.pop_front();
            }
            state.recent.push_back(Arc::new(record.clone()));
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Waits until `look` finds what it looks for. Cancel-safe.
    async fn until<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that a change in between is not missed.
            changed.as_mut().enable();
            if let Some(found) = look(&mut self.state()) {
                return found;
            }
            changed.await;
        }
    }

    /// Waits until the run came to an end, or cannot go on.
    pub(crate) async fn told(&self) -> Told {
        self.until(|state| state.told.clone()).await
    }

    /// Waits until the run came to an end, or the engine is gone.
    pub(crate) async fn ended(&self) {
        self.until(|state| {
            matches!(&state.told, Some(told) if !matches!(told, Told::Parked(_))).then_some(())
        })
        .await;
    }

    /// Waits until the run's beginning is durable; what it was told before that otherwise.
    pub(crate) async fn durable(&self) -> Result<(), Told> {
        self.until(|state| match (&state.told, state.durable) {
            (_, true) => Some(Ok(())),
            (Some(told), false) => Some(Err(told.clone())),
            (None, false) => None,
        })
        .await
    }

    /// Waits for the records from `from` on. `None` when they are no longer here: read the store.
    pub(crate) async fn records(&self, from: u64) -> Option<Vec<Arc<Record>>> {
        self.until(|state| {
            let first = state.recent.front().map_or(u64::MAX, |record| record.seq);
            if from >= first {
                let new: Vec<_> = state
                    .recent
                    .iter()
                    .filter(|record| record.seq >= from)
                    .cloned()
                    .collect();
                return (!new.is_empty()).then_some(Some(new));
            }
            (state.last_seq >= from).then_some(None)
        })
        .await
    }

    pub(crate) fn watch(&self) {
        self.state().watchers += 1;
    }

    pub(crate) fn unwatch(&self) {
        let mut state = self.state();
        state.watchers -= 1;
        if state.watchers == 0 {
            state.recent = VecDeque::new();
        }
    }
}

/// The boards that somebody holds.
#[derive(Debug, Default)]
pub(crate) struct Boards(Mutex<Map>);

#[derive(Debug, Default)]
struct Map {
    boards: HashMap<RunKey, Weak<Board>>,
    /// At this size those that nobody holds are swept out.
    sweep_at: usize,
}

impl Boards {
    fn map(&self) -> MutexGuard<'_, Map> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The board of a run, made when there is none.
    pub(crate) fn board(&self, run: RunKey) -> Arc<Board> {
        let mut map = self.map();
        if let Some(board) = map.boards.get(&run).and_then(Weak::upgrade) {
            return board;
        }
        if map.boards.len() >= map.sweep_at {
            // Handles outlive their runs, so not all are swept when a run leaves memory.
            map.boards.retain(|_, board| board.strong_count() > 0);
            map.sweep_at = (map.boards.len() * 2).max(1_024);
        }
        let board = Arc::default();
        map.boards.insert(run, Arc::downgrade(&board));
        board
    }

    /// The board of a run, if somebody holds it.
    pub(crate) fn find(&self, run: RunKey) -> Option<Arc<Board>> {
        self.map().boards.get(&run)?.upgrade()
    }

    /// Forgets a board that nobody holds any more.
    pub(crate) fn sweep(&self, run: RunKey) {
        let boards = &mut self.map().boards;
        if boards
            .get(&run)
            .is_some_and(|board| board.strong_count() == 0)
        {
            boards.remove(&run);
        }
    }

    /// Tells everybody: the engine is going.
    pub(crate) fn tell_all(&self, told: &Told) {
        let held: Vec<_> = self
            .map()
            .boards
            .values()
            .filter_map(Weak::upgrade)
            .collect();
        for board in held {
            if board.state().told.is_none() {
                board.tell(told.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_that_nobody_holds_any_more_do_not_pile_up() {
        let boards = Boards::default();
        let kept = boards.board(RunKey(0));
        for run in 1..100_000 {
            drop(boards.board(RunKey(run)));
        }
        assert!(boards.map().boards.len() <= 1_025);
        assert!(Arc::ptr_eq(&kept, &boards.board(RunKey(0))));
    }
}
