//! Room for runs in memory, and the line of those that wait for it.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::replay::RunKey;

/// Where a run stands among those that wait for the same: the one of the higher priority goes first, and of equals the one that was
/// started first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    priority: Reverse<i32>,
    pub(crate) run: RunKey,
}

impl Place {
    pub(crate) fn new(priority: i32, run: RunKey) -> Self {
        Self {
            priority: Reverse(priority),
            run,
        }
    }
}

/// Takes in a run whose turn it is.
type TakeIn = dyn Fn(RunKey, Seat) + Send + Sync;

/// Room for so many runs. One that waits is its place in the line, and nothing else: there may be very many.
pub(crate) struct Room {
    state: Mutex<State>,
    /// How many wait: asked at every turn of every run.
    waiting: AtomicUsize,
    take_in: OnceLock<Box<TakeIn>>,
}

struct State {
    free: usize,
    line: BTreeSet<Place>,
    /// Somebody is taking in those whose turn it is, and looks again before being done.
    taking_in: bool,
    closed: bool,
}

/// Room for one run, until it is dropped.
pub(crate) struct Seat(Arc<Room>);

impl Room {
    pub(crate) fn new(seats: usize) -> Self {
        let state = State {
            free: seats,
            line: BTreeSet::new(),
            taking_in: false,
            closed: false,
        };
        Self {
            state: Mutex::new(state),
            waiting: AtomicUsize::new(0),
            take_in: OnceLock::new(),
        }
    }

    /// Says how those are taken in who waited. Once; before that nobody is.
    pub(crate) fn takes_in(&self, take_in: impl Fn(RunKey, Seat) + Send + Sync + 'static) {
        // There is one scheduler.
        let _ = self.take_in.set(Box::new(take_in));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat, if there is one that nobody waits for.
    pub(crate) fn try_enter(self: &Arc<Self>) -> Option<Seat> {
        let mut state = self.state();
        if state.closed || state.free == 0 || !state.line.is_empty() {
            return None;
        }
        state.free -= 1;
        Some(Seat(Arc::clone(self)))
    }

    /// Lets a run wait for a seat, unless it does already. It is taken in when it is its turn.
    pub(crate) fn queue(self: &Arc<Self>, place: Place) {
        let mut state = self.state();
        if !state.closed {
            state.line.insert(place);
            self.pass_on(state);
        }
    }

    /// Whether anybody waits.
    pub(crate) fn is_crowded(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Nobody enters any more.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.line.clear();
        self.waiting.store(0, Ordering::Relaxed);
    }

    /// Takes in those whose turn it is. A seat that comes back meanwhile is given out by the same hand: a line that nobody of enters
    /// is gone through, and not down into.
    fn pass_on<'a>(self: &'a Arc<Self>, mut state: MutexGuard<'a, State>) {
        if !state.taking_in
            && let Some(take_in) = self.take_in.get()
        {
            state.taking_in = true;
            while state.free > 0
                && let Some(place) = state.line.pop_first()
            {
                state.free -= 1;
                drop(state);
                take_in(place.run, Seat(Arc::clone(self)));
                state = self.state();
            }
            state.taking_in = false;
        }
        self.waiting.store(state.line.len(), Ordering::Relaxed);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.free += 1;
        self.0.pass_on(state);
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Room")
            .field("free", &state.free)
            .field("waiting", &state.line.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of those who are taken in: the seats of some are kept.
    type Inside = Arc<Mutex<(Vec<u64>, Vec<Seat>)>>;

    fn room(keeps: impl Fn(u64) -> bool + Send + Sync + 'static) -> (Arc<Room>, Inside) {
        let (room, inside) = (Arc::new(Room::new(1)), Inside::default());
        let taken = Arc::clone(&inside);
        room.takes_in(move |run, seat| {
            let mut taken = taken.lock().unwrap();
            taken.0.push(run.0);
            if keeps(run.0) {
                taken.1.push(seat);
            }
        });
        (room, inside)
    }

    #[test]
    fn a_seat_goes_to_the_first_in_line() {
        let (room, inside) = room(|_| true);
        let seat = room.try_enter().unwrap();
        assert!(room.try_enter().is_none());
        for (priority, run) in [(0, 1), (0, 2), (7, 3), (-1, 4), (7, 5), (0, 2)] {
            room.queue(Place::new(priority, RunKey(run)));
        }
        assert!(room.is_crowded());
        drop(seat);
        for taken in 1..=5 {
            let mut inside = inside.lock().unwrap();
            assert_eq!((inside.0.len(), inside.1.len()), (taken, 1));
            assert!(room.try_enter().is_none());
            let seat = inside.1.pop();
            drop(inside);
            drop(seat);
        }
        assert_eq!(inside.lock().unwrap().0, [3, 5, 1, 2, 4]);
        assert!(!room.is_crowded());
        assert!(room.try_enter().is_some());
    }

    #[test]
    fn a_long_line_of_those_who_do_not_enter_is_gone_through() {
        let (room, inside) = room(|_| false);
        let seat = room.try_enter().unwrap();
        for run in 0..200_000 {
            room.queue(Place::new(0, RunKey(run)));
        }
        drop(seat);
        assert_eq!(inside.lock().unwrap().0.len(), 200_000);
        assert!(room.try_enter().is_some());
        room.queue(Place::new(0, RunKey(7)));
        assert_eq!(inside.lock().unwrap().0.len(), 200_001);
    }

    #[test]
    fn nobody_enters_a_room_that_is_closed() {
        let (room, inside) = room(|_| true);
        let seat = room.try_enter();
        room.queue(Place::new(0, RunKey(1)));
        room.close();
        drop(seat);
        room.queue(Place::new(0, RunKey(2)));
        assert!(room.try_enter().is_none());
        assert_eq!(inside.lock().unwrap().0, [0; 0]);
        assert!(!room.is_crowded());
    }
}
