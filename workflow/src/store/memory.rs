//! A store in memory: the reference for every other one, and what tests use.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::transition::Transition;
use super::{
    Append, Appended, BoxFuture, Identity, Loaded, Page, RunFilter, RunRow, Store, StoreError,
};
use crate::replay::{Record, RunId, RunKey, Timestamp};

/// Keeps runs in memory, and forgets them when it is dropped.
///
/// An append is "durable" from the moment it resolves: [`MemoryStore::crash`] gives what a restart after a crash at this
/// instant would find.
pub struct MemoryStore {
    state: Mutex<State>,
}

#[derive(Clone)]
struct State {
    identity: Identity,
    allocated: u64,
    closed: bool,
    runs: BTreeMap<RunKey, Run>,
    ids: HashMap<RunId, RunKey>,
    due: BTreeSet<(Timestamp, RunKey)>,
    active: BTreeSet<RunKey>,
}

#[derive(Clone)]
struct Run {
    row: RunRow,
    history: Vec<Record>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self {
            state: Mutex::new(State {
                identity: Identity {
                    id: Identity::random(),
                    boot: 1,
                },
                allocated: 0,
                closed: false,
                runs: BTreeMap::new(),
                ids: HashMap::new(),
                due: BTreeSet::new(),
                active: BTreeSet::new(),
            }),
        }
    }

    /// What one would find who opened this store again after the process was killed now. This one goes on as if nothing
    /// had happened, as a stale owner would.
    #[must_use]
    pub fn crash(&self) -> Self {
        let mut state = self.lock().clone();
        state.identity.boot += 1;
        state.closed = false;
        Self {
            state: Mutex::new(state),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No user code runs under the lock, and no step of a change to the state panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers at the first poll, in the order of first polls.
    fn answer<'a, T: Send>(
        &'a self,
        ask: impl FnOnce(&mut State) -> Result<T, StoreError> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            let mut state = self.lock();
            if state.closed {
                Err(StoreError::Closed)
            } else {
                ask(&mut state)
            }
        })
    }
}

impl State {
    fn append(&mut self, append: Append) -> Result<Appended, StoreError> {
        let (transition, records) = append.split()?;
        let row = self.runs.get(&transition.run).map(|run| &run.row);
        let taken = transition
            .create
            .as_ref()
            .and_then(|new| self.ids.get(&new.id).copied());
        if let Some(refused) = transition.judge(row, taken)? {
            return Ok(refused);
        }
        self.write(&transition, records);
        Ok(Appended::Applied)
    }

    fn cancel(&mut self, key: RunKey, at: Timestamp) -> Appended {
        let Some(run) = self.runs.get(&key).filter(|run| !run.row.state.is_final()) else {
            return Appended::Final;
        };
        let (transition, record) = Transition::cancel(&run.row, at);
        self.write(&transition, vec![record]);
        Appended::Applied
    }

    fn write(&mut self, transition: &Transition, records: Vec<Record>) {
        if let Some(new) = &transition.create {
            self.ids.insert(new.id.clone(), transition.run);
            let run = Run {
                row: transition.created(new),
                history: Vec::new(),
            };
            self.runs.insert(transition.run, run);
        }
        let Some(run) = self.runs.get_mut(&transition.run) else {
            return;
        };
        if let Some(wake_at) = run.row.wake_at {
            self.due.remove(&(wake_at, run.row.key));
        }
        self.active.remove(&run.row.key);

        transition.apply(&mut run.row);
        if !transition.deletes.is_empty() {
            run.history
                .retain(|record| !transition.deletes(&record.location));
        }
        run.history.extend(records);

        if let Some(wake_at) = run.row.wake_at {
            self.due.insert((wake_at, run.row.key));
        }
        if run.row.state.is_active() {
            self.active.insert(run.row.key);
        }
    }

    fn list(&self, filter: &RunFilter) -> Page {
        let mut fitting = self
            .after(filter.after)
            .map(|run| &run.row)
            .filter(|row| row.fits(filter));
        let rows: Vec<_> = fitting.by_ref().take(filter.limit).cloned().collect();
        let next = fitting.next().and(rows.last().map(|row| row.key));
        Page { rows, next }
    }

    fn after(&self, after: Option<RunKey>) -> impl Iterator<Item = &Run> {
        self.runs.range(beyond(after)).map(|(_, run)| run)
    }
}

fn beyond(after: Option<RunKey>) -> (Bound<RunKey>, Bound<RunKey>) {
    (
        after.map_or(Bound::Unbounded, Bound::Excluded),
        Bound::Unbounded,
    )
}

impl Store for MemoryStore {
    fn identity(&self) -> Identity {
        self.lock().identity
    }

    fn allocate(&self) -> RunKey {
        let mut state = self.lock();
        state.allocated += 1;
        RunKey(state.allocated)
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
        self.answer(|state| state.append(append))
    }

    fn cancel(&self, run: RunKey, at: Timestamp) -> BoxFuture<'_, Result<Appended, StoreError>> {
        self.answer(move |state| Ok(state.cancel(run, at)))
    }

    fn find<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRow>, StoreError>> {
        self.answer(|state| {
            let run = state.ids.get(id).and_then(|key| state.runs.get(key));
            Ok(run.map(|run| run.row.clone()))
        })
    }

    fn row(&self, run: RunKey) -> BoxFuture<'_, Result<Option<RunRow>, StoreError>> {
        self.answer(move |state| Ok(state.runs.get(&run).map(|run| run.row.clone())))
    }

    fn load(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Loaded>, StoreError>> {
        self.answer(move |state| {
            let run = state.runs.get(&run);
            Ok(run.map(|run| Loaded {
                row: run.row.clone(),
                history: run.history.clone(),
            }))
        })
    }

    fn first(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Record>, StoreError>> {
        self.answer(move |state| {
            let run = state.runs.get(&run);
            Ok(run.and_then(|run| run.history.first().cloned()))
        })
    }

    fn due(
        &self,
        after: Option<(Timestamp, RunKey)>,
        until: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(Timestamp, RunKey)>, StoreError>> {
        self.answer(move |state| {
            // A range that ends before it begins is empty, and the set does not take it.
            if after.is_some_and(|after| after >= (until, RunKey(u64::MAX))) {
                return Ok(Vec::new());
            }
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            let due = state
                .due
                .range((from, Bound::Included((until, RunKey(u64::MAX)))));
            Ok(due.take(limit).copied().collect())
        })
    }

    fn active(
        &self,
        after: Option<RunKey>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>> {
        self.answer(move |state| {
            Ok(state
                .active
                .range(beyond(after))
                .take(limit)
                .copied()
                .collect())
        })
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.answer(|state| Ok(state.list(filter)))
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.answer(|state| {
            state.closed = true;
            Ok(())
        })
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("MemoryStore")
            .field("boot", &state.identity.boot)
            .field("runs", &state.runs.len())
            .finish()
    }
}
