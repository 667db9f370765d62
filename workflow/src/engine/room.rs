//! Room for runs in memory, and the line of those that wait for it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::replay::RunKey;

/// Where a run stands among those that wait for the same: the one of the higher priority goes first, and of equals the one that was
/// started first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    priority: Reverse<i32>,
    pub(crate) run: RunKey,
}

impl Place {
    /// Behind all others.
    pub(crate) const LAST: Self = Self {
        priority: Reverse(i32::MIN),
        run: RunKey(u64::MAX),
    };

    pub(crate) fn new(priority: i32, run: RunKey) -> Self {
        Self {
            priority: Reverse(priority),
            run,
        }
    }
}

/// Room for so many runs. Nobody waits while there is a free seat.
#[derive(Debug)]
pub(crate) struct Room {
    state: Mutex<State>,
    /// How many wait: asked at every turn of every run.
    waiting: AtomicUsize,
}

#[derive(Debug)]
struct State {
    free: usize,
    line: BTreeMap<Place, oneshot::Sender<Seat>>,
    closed: bool,
}

/// Room for one run, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat(Option<Arc<Room>>);

impl Room {
    pub(crate) fn new(seats: usize) -> Self {
        let state = State {
            free: seats,
            line: BTreeMap::new(),
            closed: false,
        };
        Self {
            state: Mutex::new(state),
            waiting: AtomicUsize::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat, if one is free.
    pub(crate) fn try_enter(self: &Arc<Self>) -> Option<Seat> {
        let mut state = self.state();
        if state.closed || state.free == 0 {
            return None;
        }
        state.free -= 1;
        Some(Seat(Some(Arc::clone(self))))
    }

    /// A seat, when it is this one's turn: it is in line when this returns. Nothing when the room is closed. Nobody waits twice at one
    /// place.
    pub(crate) fn enter(
        self: &Arc<Self>,
        place: Place,
    ) -> impl Future<Output = Option<Seat>> + Send + use<> {
        let (seat, turn) = oneshot::channel();
        let mut state = self.state();
        let free = if state.closed {
            None
        } else if state.free > 0 {
            state.free -= 1;
            Some(Seat(Some(Arc::clone(self))))
        } else {
            state.line.insert(place, seat);
            self.waiting.store(state.line.len(), Ordering::Relaxed);
            None
        };
        drop(state);
        async move {
            match free {
                Some(seat) => Some(seat),
                None => turn.await.ok(),
            }
        }
    }

    /// Whether anybody waits.
    pub(crate) fn is_crowded(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Nobody enters any more.
    pub(crate) fn close(&self) {
        let line = {
            let mut state = self.state();
            state.closed = true;
            self.waiting.store(0, Ordering::Relaxed);
            std::mem::take(&mut state.line)
        };
        drop(line);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Some(room) = self.0.take() else { return };
        loop {
            let next = {
                let mut state = room.state();
                let next = state.line.pop_first();
                room.waiting.store(state.line.len(), Ordering::Relaxed);
                match next {
                    Some((_, next)) => next,
                    None => {
                        state.free += 1;
                        return;
                    }
                }
            };
            match next.send(Seat(Some(Arc::clone(&room)))) {
                Ok(()) => return,
                // Whoever waited there does no longer; the seat is still ours.
                Err(mut seat) => seat.0 = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_seat_goes_to_the_first_in_line_who_still_waits() {
        let room = Arc::new(Room::new(1));
        let seat = room.try_enter().unwrap();
        assert!(room.try_enter().is_none());
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for (priority, run) in [(0, 1), (0, 2), (7, 3), (-1, 4), (7, 5)] {
            let (room, order) = (Arc::clone(&room), Arc::clone(&order));
            tasks.push(tokio::spawn(async move {
                let seat = room.enter(Place::new(priority, RunKey(run))).await;
                order.lock().unwrap().push(run);
                drop(seat);
            }));
        }
        tokio::task::yield_now().await;
        assert!(room.is_crowded());
        tasks.remove(4).abort();
        tokio::task::yield_now().await;
        drop(seat);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [3, 1, 2, 4]);
        assert!(!room.is_crowded());
        assert!(room.try_enter().is_some());
    }

    #[tokio::test]
    async fn nobody_enters_a_room_that_is_closed() {
        let room = Arc::new(Room::new(1));
        let seat = room.try_enter();
        let inside = Arc::clone(&room);
        let waits = tokio::spawn(async move { inside.enter(Place::LAST).await.is_some() });
        tokio::task::yield_now().await;
        room.close();
        assert!(!waits.await.unwrap());
        drop(seat);
        assert!(room.try_enter().is_none());
        assert!(room.enter(Place::LAST).await.is_none());
    }
}
