//! The operations of a guide: the steps of the stages that it is at, as a person who waits for them is shown them.
//!
//! 1. That a step has ended is shown when that is durable. How far it is, and what it says, is shown at once.
//! 2. None of it is a record. It is a field of the run's row, which is written with what the guide records next; what a step says of
//!    itself, within a second. So a restart shows what the steps of a body that is over came to, and how far one was that was cut off.
//! 3. What the records say holds: a step that is replayed is what they say that it is.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use serde::{Deserialize, Serialize};

use crate::context::News;
use crate::operation::{Snapshot, Status};
use crate::replay::{Location, Timestamp};

/// So many are shown. Of more, those that succeeded first are not.
const SHOWN: usize = 500;

/// What says what time it is.
pub(super) type Clock = std::sync::Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The operations of all flows of a guide.
#[derive(Default)]
pub(super) struct Operations(Mutex<State>);

#[derive(Default)]
struct State {
    /// In the order in which the code came to them.
    shown: BTreeMap<u64, Shown>,
    places: BTreeMap<Location, u64>,
    next: u64,
    /// The visits that are entered.
    visits: Vec<Location>,
    /// What succeeded in earlier visits of a stage and is not asked for any more, by where the stage's visits lie.
    orphans: BTreeMap<Location, Vec<Snapshot>>,
    /// What somebody let go on, with what.
    released: Vec<Released>,
    /// Why steps that are dropped now are given up.
    because: Option<String>,
    clock: Option<Clock>,
    waker: Option<Waker>,
    /// Counts the changes.
    version: u64,
    /// It differs from what the row has.
    unsaved: bool,
    /// A step said something of itself that the row does not have.
    told: bool,
}

struct Shown {
    at: Location,
    /// The innermost visit that it lies in.
    visit: Location,
    snapshot: Snapshot,
    /// So many things it waits for.
    waits: u32,
}

/// A step that was blocked is let go on.
struct Released {
    visit: Location,
    places: Vec<String>,
    with: String,
}

/// What the row has.
#[derive(Default, Serialize, Deserialize)]
struct Stored {
    operations: Vec<(Location, Snapshot)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    orphans: Vec<(Location, Vec<Snapshot>)>,
}

impl Operations {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The guide is driven again: what the row has of them.
    pub(super) fn begin(&self, stored: Option<&str>, clock: Clock) {
        let now = clock();
        let mut state = self.state();
        *state = State::of(stored, Vec::new());
        for shown in state.shown.values_mut() {
            shown.snapshot.cut_off(now);
        }
        state.clock = Some(clock);
    }

    /// What the row of a guide that nobody drives has, of the visit there; and the orphans of the whole guide.
    pub(super) fn stored(stored: Option<&str>, visit: &Location) -> (Vec<Snapshot>, Vec<Snapshot>) {
        let state = State::of(stored, vec![visit.clone()]);
        (state.of_visit(visit), state.orphans())
    }

    /// Something is to be seen of the step there.
    pub(super) fn tell(&self, at: &Location, news: &News<'_>) {
        let mut state = self.state();
        let Some(now) = state.clock.as_ref().map(|clock| clock()) else {
            return;
        };
        let because = state.because.clone();
        let known = state.places.get(at).copied();
        let number = known.unwrap_or_else(|| state.add(at));
        let Some(shown) = state.shown.get_mut(&number) else {
            return;
        };
        match news {
            News::Waits(Some(_)) => shown.waits += 1,
            News::Waits(None) => {
                shown.waits = shown.waits.saturating_sub(1);
                if shown.waits > 0 {
                    return;
                }
            }
            News::Began(_) => shown.waits = 0,
            _ => {}
        }
        let before = shown.snapshot.revision();
        shown.snapshot.takes_in(news, now, because.as_deref());
        if shown.snapshot.revision() == before {
            return;
        }
        let says = matches!(news, News::Progress(_) | News::Logged(_) | News::Waits(_));
        state.changes();
        state.told |= says;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// How often any of them has changed. `task` is told when one does.
    pub(super) fn version(&self, task: Option<&Context<'_>>) -> u64 {
        let mut state = self.state();
        if let Some(task) = task {
            state.waker = Some(task.waker().clone());
        }
        state.version
    }

    /// Those of a visit. Those of visits in it are not among them.
    pub(super) fn of(&self, visit: &Location) -> Vec<Snapshot> {
        self.state().of_visit(visit)
    }

    pub(super) fn orphans(&self) -> Vec<Snapshot> {
        self.state().orphans()
    }

    /// The places, below it, of those of a visit that are blocked.
    pub(super) fn blocked(&self, visit: &Location) -> Vec<(Location, String)> {
        let state = self.state();
        let shown = state.shown.values();
        shown
            .filter(|it| it.visit == *visit && it.snapshot.status() == Status::Blocked)
            .map(|it| {
                let reason = it.snapshot.reason().unwrap_or_default();
                (it.at.clone(), reason.to_owned())
            })
            .collect()
    }

    /// Changes what is to be seen of those of a visit.
    pub(super) fn each(&self, visit: &Location, mut change: impl FnMut(&Location, &mut Snapshot)) {
        let mut state = self.state();
        let mut changed = false;
        for shown in state.shown.values_mut() {
            if shown.at.is_under(visit) {
                let before = shown.snapshot.revision();
                change(&shown.at, &mut shown.snapshot);
                changed |= shown.snapshot.revision() != before;
            }
        }
        if changed {
            state.changes();
        }
    }

    /// The process ended while steps of this visit were in flight.
    pub(super) fn cut_off(&self, visit: &Location) {
        let now = self.state().clock.as_ref().map(|clock| clock());
        if let Some(now) = now {
            self.each(visit, |_, snapshot| snapshot.cut_off(now));
        }
    }

    /// Why steps that are dropped from now on are given up; nothing when that is not known.
    pub(super) fn gives_up(&self, because: Option<String>) {
        self.state().because = because;
    }

    /// What was kept for a stage whose visits lie there, and was not asked for.
    pub(super) fn has_orphans(&self, stage: Location, orphans: Vec<Snapshot>) {
        let mut state = self.state();
        let before = if orphans.is_empty() {
            state.orphans.remove(&stage).is_some()
        } else {
            state.orphans.insert(stage, orphans);
            true
        };
        if before {
            state.changes();
        }
    }

    /// Nothing was done any more.
    pub(super) fn clear(&self) {
        let mut state = self.state();
        let (clock, waker) = (state.clock.take(), state.waker.take());
        *state = State {
            clock,
            waker,
            version: state.version,
            ..State::default()
        };
        state.changes();
    }

    /// This visit is entered: what is told of in it is of it.
    pub(super) fn enters(&self, visit: Location) {
        let mut state = self.state();
        if !state.visits.contains(&visit) {
            for shown in state.shown.values_mut() {
                if shown.at.is_under(&visit) && visit.is_under(&shown.visit) {
                    shown.visit = visit.clone();
                }
            }
            state.visits.push(visit);
        }
    }

    /// Below `place` only those of this visit are shown from now on: whatever else was there is over.
    pub(super) fn only(&self, place: &Location, visit: Option<&Location>) {
        let mut state = self.state();
        let gone: Vec<_> = state
            .shown
            .iter()
            .filter(|(_, it)| {
                it.at.is_under(place) && !visit.is_some_and(|visit| it.at.is_under(visit))
            })
            .map(|(number, _)| *number)
            .collect();
        for number in gone {
            state.remove(number);
            state.unsaved = true;
        }
        let over = |at: &Location| at.is_under(place) && !visit.is_some_and(|it| at.is_under(it));
        state.visits.retain(|visit| !over(visit));
        state.released.retain(|released| !over(&released.visit));
    }

    /// Steps at these places of a visit are let go on with this.
    pub(super) fn release(&self, visit: Location, places: Vec<String>, with: String) {
        self.state().released.push(Released {
            visit,
            places,
            with,
        });
    }

    pub(super) fn released(&self, at: &Location) -> Option<String> {
        let state = self.state();
        let mut released = state.released.iter();
        let found = released.find(|released| {
            let place = place_in(at, &released.visit);
            place.is_some_and(|place| released.places.contains(&place))
        });
        found.map(|found| found.with.clone())
    }

    /// What the row is to have, if it has something else. `told`: only if a step said something of itself.
    pub(super) fn unsaved(&self, told: bool, limit: usize) -> Option<String> {
        let mut state = self.state();
        if !state.unsaved || (told && !state.told) {
            return None;
        }
        (state.unsaved, state.told) = (false, false);
        state.json(limit)
    }

    /// Whether a step said something of itself that the row does not have.
    pub(super) fn has_told(&self) -> bool {
        self.state().told
    }
}

impl State {
    fn of(stored: Option<&str>, visits: Vec<Location>) -> Self {
        // Whatever else a row may have there is none of them.
        let stored = stored.and_then(|json| serde_json::from_str::<Stored>(json).ok());
        let stored = stored.unwrap_or_default();
        let mut state = Self {
            orphans: stored.orphans.into_iter().collect(),
            visits,
            ..Self::default()
        };
        for (at, snapshot) in stored.operations {
            let number = state.add(&at);
            if let Some(shown) = state.shown.get_mut(&number) {
                shown.snapshot = snapshot;
            }
        }
        state
    }

    fn changes(&mut self) {
        self.version += 1;
        self.unsaved = true;
    }

    fn add(&mut self, at: &Location) -> u64 {
        if self.shown.len() >= SHOWN {
            let ended = |(_, shown): &(&u64, &Shown)| shown.snapshot.status() == Status::Succeeded;
            let oldest = self.shown.iter().find(ended);
            if let Some(number) = oldest.map(|(number, _)| *number) {
                self.remove(number);
            }
        }
        self.next += 1;
        self.places.insert(at.clone(), self.next);
        let around = self.visits.iter().filter(|visit| at.is_under(visit));
        let visit = around.max_by_key(|visit| visit.as_bytes().len());
        let visit = visit.cloned().unwrap_or_default();
        let name = place_in(at, &visit).unwrap_or_else(|| at.to_string());
        let shown = Shown {
            snapshot: Snapshot::of_step(readable(&name)),
            at: at.clone(),
            visit,
            waits: 0,
        };
        self.shown.insert(self.next, shown);
        self.next
    }

    fn remove(&mut self, number: u64) {
        if let Some(shown) = self.shown.remove(&number) {
            self.places.remove(&shown.at);
        }
    }

    fn of_visit(&self, visit: &Location) -> Vec<Snapshot> {
        let shown = self.shown.values().filter(|it| it.visit == *visit);
        shown.map(|it| it.snapshot.clone()).collect()
    }

    fn orphans(&self) -> Vec<Snapshot> {
        self.orphans.values().flatten().cloned().collect()
    }

    fn json(&self, limit: usize) -> Option<String> {
        let shown = self.shown.values();
        let stored = Stored {
            operations: shown
                .map(|it| (it.at.clone(), it.snapshot.clone()))
                .collect(),
            orphans: self.orphans.clone().into_iter().collect(),
        };
        let json = serde_json::to_string(&stored).ok()?;
        if json.len() <= limit {
            return Some(json);
        }
        // What they say is too much: what they are is left.
        let mut short = stored;
        for (_, snapshot) in &mut short.operations {
            snapshot.be_silent();
        }
        let json = serde_json::to_string(&short).ok()?;
        (json.len() <= limit).then_some(json)
    }
}

/// The way from a visit down to a place in it, as text.
pub(super) fn place_in(at: &Location, visit: &Location) -> Option<String> {
    let at = at.to_string();
    let below = at.strip_prefix(&visit.to_string())?.strip_prefix('/')?;
    Some(below.to_owned())
}

/// A place as people are shown it: what the library has names for that nobody may write is told by them.
pub(super) fn readable(at: &str) -> String {
    at.replace('\0', "")
}
