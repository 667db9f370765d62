//! A store in memory: the reference for every other one, and what tests use.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::census::{Census, Tally};
use super::delete::{self, Deleted, Deletion};
use super::mail::{self, Effect, Stray, View};
use super::rewrite::{self, Rewrite};
use super::transition::Transition;
use super::{
    Answer, Append, Appended, BoxFuture, DeadLetter, Delivery, Identity, Loaded, Page, RunFilter,
    RunRow, Store, StoreError,
};
use crate::replay::{Message, NewMessage, Payload, Record, RunId, RunKey, Timestamp};

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
    /// By id and arrival, and by when they lapse.
    strays: BTreeMap<(RunId, u64), Stray>,
    lapses: BTreeSet<(Timestamp, RunId, u64)>,
    answers: HashMap<u128, Answer>,
    values: BTreeMap<String, Payload>,
    /// How much was written.
    commits: u64,
}

#[derive(Clone)]
struct Run {
    row: RunRow,
    history: Vec<Record>,
    inbox: BTreeMap<u64, Message>,
    dead: BTreeMap<u64, DeadLetter>,
    /// The ids of delivered messages, by channel and dedup key.
    delivered: HashMap<(String, String), u128>,
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
                strays: BTreeMap::new(),
                lapses: BTreeSet::new(),
                answers: HashMap::new(),
                values: BTreeMap::new(),
                commits: 0,
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
    fn ask<'a, T: Send>(
        &'a self,
        work: impl FnOnce(&mut State) -> Result<T, StoreError> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            let mut state = self.lock();
            if state.closed {
                Err(StoreError::Closed)
            } else {
                work(&mut state)
            }
        })
    }
}

impl State {
    fn advance(&mut self, transition: &Transition, records: Vec<Record>) {
        self.commits += 1;
        if let Some(new) = &transition.create {
            self.ids.insert(new.id.clone(), transition.run);
            let run = Run {
                row: transition.created(new),
                history: Vec::new(),
                inbox: BTreeMap::new(),
                dead: BTreeMap::new(),
                delivered: HashMap::new(),
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
        if transition.deletes_run() {
            // Nobody else has the id as long as this one is there.
            self.ids.remove(&run.row.id);
            self.runs.remove(&transition.run);
            return;
        }

        transition.apply(&mut run.row);
        for effect in &transition.effects {
            run.receive(effect);
        }
        if transition.prunes() {
            run.history
                .retain(|record| !transition.deletes(record.seq, &record.location));
        }
        run.history.extend(records);

        if let Some(wake_at) = run.row.wake_at {
            self.due.insert((wake_at, run.row.key));
        }
        if run.row.state.is_active() {
            self.active.insert(run.row.key);
        }
    }

    /// What concerns no run that is there.
    fn keep(&mut self, effect: Effect) {
        self.commits += 1;
        match effect {
            Effect::Stray(to, stray) => {
                let arrival = stray.message.arrival;
                self.lapses.insert((stray.keep_until, to.clone(), arrival));
                self.strays.insert((to, arrival), stray);
            }
            Effect::Lapse(to, arrival) => {
                let place = (to, arrival);
                if let Some(stray) = self.strays.remove(&place) {
                    self.lapses.remove(&(stray.keep_until, place.0, arrival));
                }
            }
            Effect::Answer(request, answer) => {
                self.answers.insert(request, answer);
            }
            Effect::Value(key, Some(value)) => {
                self.values.insert(key, value);
            }
            Effect::Value(key, None) => {
                self.values.remove(&key);
            }
            Effect::Gone(requests) => {
                for request in requests {
                    self.answers.remove(&request);
                }
            }
            Effect::Put(_) | Effect::Take(_) | Effect::Dead(_) => {}
        }
    }

    fn list(&self, filter: &RunFilter) -> Page {
        let walk: Box<dyn Iterator<Item = (&RunKey, &Run)>> = match filter.after {
            _ if !filter.newest_first => Box::new(self.runs.range(beyond(filter.after))),
            Some(after) => Box::new(self.runs.range(..after).rev()),
            None => Box::new(self.runs.iter().rev()),
        };
        let (mut rows, mut last) = (Vec::new(), None);
        for (looked, (key, run)) in walk.enumerate() {
            if looked >= filter.look_at {
                return Page { rows, next: last };
            }
            if run.row.fits(filter) {
                if rows.len() == filter.limit {
                    let next = rows.last().map(|row: &RunRow| row.key);
                    return Page { rows, next };
                }
                rows.push(run.row.clone());
            }
            last = Some(*key);
        }
        Page { rows, next: None }
    }
}

impl Run {
    fn receive(&mut self, effect: &Effect) {
        match effect {
            Effect::Put(message) => {
                if let Some(key) = &message.dedup {
                    let place = (message.channel.clone(), key.clone());
                    self.delivered.insert(place, message.id);
                }
                self.inbox.insert(message.arrival, message.clone());
            }
            Effect::Take(arrival) => {
                self.inbox.remove(arrival);
            }
            Effect::Dead(letter) => {
                self.inbox.remove(&letter.message.arrival);
                self.dead.insert(letter.message.arrival, letter.clone());
            }
            Effect::Stray(..)
            | Effect::Lapse(..)
            | Effect::Answer(..)
            | Effect::Value(..)
            | Effect::Gone(_) => {}
        }
    }
}

impl View for State {
    type Fault = StoreError;
    type Records = Vec<Record>;

    fn row(&mut self, run: RunKey) -> Result<Option<&RunRow>, StoreError> {
        Ok(self.runs.get(&run).map(|run| &run.row))
    }

    fn find(&mut self, id: &RunId) -> Result<Option<RunKey>, StoreError> {
        Ok(self.ids.get(id).copied())
    }

    fn inbox(&mut self, run: RunKey, after: u64, limit: usize) -> Result<Vec<Message>, StoreError> {
        let Some(run) = self.runs.get(&run) else {
            return Ok(Vec::new());
        };
        let messages = run.inbox.range(beyond(Some(after))).take(limit);
        Ok(messages.map(|(_, message)| message.clone()).collect())
    }

    fn delivered(
        &mut self,
        run: RunKey,
        channel: &str,
        key: &str,
    ) -> Result<Option<u128>, StoreError> {
        let place = (channel.to_owned(), key.to_owned());
        let run = self.runs.get(&run);
        Ok(run.and_then(|run| run.delivered.get(&place).copied()))
    }

    fn strays(&mut self, id: &RunId) -> Result<Vec<Stray>, StoreError> {
        let kept = self.strays.range((id.clone(), 0)..=(id.clone(), u64::MAX));
        Ok(kept.map(|(_, stray)| stray.clone()).collect())
    }

    fn lapsed(&mut self, at: Timestamp) -> Result<Vec<(RunId, u64)>, StoreError> {
        let lapsed = self.lapses.iter().take_while(|(until, ..)| *until <= at);
        Ok(lapsed
            .map(|(_, to, arrival)| (to.clone(), *arrival))
            .collect())
    }

    fn is_answered(&mut self, request: u128) -> Result<bool, StoreError> {
        Ok(self.answers.contains_key(&request))
    }

    fn write(&mut self, transition: Transition, records: Vec<Record>) {
        self.advance(&transition, records);
        for effect in transition.effects {
            self.keep(effect);
        }
    }
}

fn beyond<T>(after: Option<T>) -> (Bound<T>, Bound<T>) {
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
        self.ask(|state| {
            let parts = append.split()?;
            mail::append(
                state,
                parts.transition,
                parts.records,
                parts.inbox,
                parts.posts,
            )
        })
    }

    fn cancel(&self, run: RunKey, at: Timestamp) -> BoxFuture<'_, Result<Appended, StoreError>> {
        self.ask(move |state| mail::cancel(state, run, at))
    }

    fn rewrite(&self, rewrites: Vec<Rewrite>) -> BoxFuture<'_, Result<Appended, StoreError>> {
        self.ask(|state| rewrite::rewrite(state, rewrites))
    }

    fn delete(&self, deletions: Vec<Deletion>) -> BoxFuture<'_, Result<Vec<Deleted>, StoreError>> {
        self.ask(|state| delete::delete(state, deletions))
    }

    fn find<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRow>, StoreError>> {
        self.ask(|state| {
            let run = state.ids.get(id).and_then(|key| state.runs.get(key));
            Ok(run.map(|run| run.row.clone()))
        })
    }

    fn row(&self, run: RunKey) -> BoxFuture<'_, Result<Option<RunRow>, StoreError>> {
        self.ask(move |state| Ok(state.runs.get(&run).map(|run| run.row.clone())))
    }

    fn load(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Loaded>, StoreError>> {
        self.ask(move |state| {
            let run = state.runs.get(&run);
            Ok(run.map(|run| Loaded {
                row: run.row.clone(),
                history: run.history.clone(),
            }))
        })
    }

    fn first(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Record>, StoreError>> {
        self.ask(move |state| {
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
        self.ask(move |state| {
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
        self.ask(move |state| {
            Ok(state
                .active
                .range(beyond(after))
                .take(limit)
                .copied()
                .collect())
        })
    }

    fn deliver<'a>(
        &'a self,
        to: &'a RunId,
        message: NewMessage,
        at: Timestamp,
        keep_until: Timestamp,
    ) -> BoxFuture<'a, Result<Delivery, StoreError>> {
        self.ask(move |state| mail::deliver(state, to, message, at, keep_until))
    }

    fn inbox(
        &self,
        run: RunKey,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Message>, StoreError>> {
        self.ask(move |state| state.inbox(run, after, limit))
    }

    fn dead_letters(
        &self,
        run: RunKey,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<DeadLetter>, StoreError>> {
        self.ask(move |state| {
            let Some(run) = state.runs.get(&run) else {
                return Ok(Vec::new());
            };
            let letters = run.dead.range(beyond(Some(after)));
            Ok(letters
                .take(limit)
                .map(|(_, letter)| letter.clone())
                .collect())
        })
    }

    fn answer(&self, request: u128) -> BoxFuture<'_, Result<Option<Answer>, StoreError>> {
        self.ask(move |state| Ok(state.answers.get(&request).cloned()))
    }

    fn value<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Payload>, StoreError>> {
        self.ask(|state| Ok(state.values.get(key).cloned()))
    }

    fn values<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, Payload)>, StoreError>> {
        self.ask(move |state| {
            let from = match after {
                Some(after) if after >= prefix => Bound::Excluded(after),
                _ => Bound::Included(prefix),
            };
            let values = state.values.range::<str, _>((from, Bound::Unbounded));
            let values = values.take_while(|(key, _)| key.starts_with(prefix));
            let values = values.map(|(key, value)| (key.clone(), value.clone()));
            Ok(values.take(limit).collect())
        })
    }

    fn put(&self, values: Vec<(String, Option<Payload>)>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.ask(|state| {
            mail::put_values(state, values);
            Ok(())
        })
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.ask(|state| Ok(state.list(filter)))
    }

    fn census(&self) -> BoxFuture<'_, Result<Census, StoreError>> {
        self.ask(|state| {
            let mut tally = Tally::default();
            for run in state.runs.values() {
                tally.add(&run.row.workflow, run.row.state);
            }
            Ok(tally.census(Some(state.commits)))
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.ask(|state| {
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
