//! Records that belong to no site: what the library's own code says of a guided flow.

use std::task::{Poll, Waker};

use super::{Class, Phase, Queued, Replay};
use crate::replay::{Body, Location, Payload, Record};

/// How a note is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noting {
    /// Durable, and before any step, send or child that was issued after it begins.
    Intent,
    /// Durable.
    Durable,
    /// With whatever is written next.
    Rider,
}

/// A note that was queued: what [`Replay::poll_noted`] asks for. Notes become durable in the order in which they were queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Noted(u64);

/// Who waits for notes to be durable, and the newest position that was loaded.
#[derive(Debug, Default)]
pub(super) struct Notes {
    waiting: Vec<(Noted, Waker)>,
    pub(super) position: Option<Payload>,
}

/// Where the positions of a guided flow lie. No site has this name.
const POSITIONS: &str = "\0state";

/// Where the position of this revision lies.
pub fn position_location(revision: u64) -> Location {
    Location::root().site(POSITIONS).iteration(revision)
}

/// The newest position that a history has.
pub fn newest_position(history: &[Record]) -> Option<&Payload> {
    history.iter().rev().find_map(|record| match &record.body {
        Body::State { payload, .. } => Some(payload),
        _ => None,
    })
}

impl Replay {
    /// Queues a record that belongs to no site.
    pub fn note(&mut self, location: Location, body: Body, noting: Noting) -> Noted {
        if !self.is_stopped() {
            let class = match noting {
                Noting::Intent | Noting::Durable => Class::Durable,
                Noting::Rider => Class::Rider,
            };
            self.push(Queued {
                choice: noting == Noting::Intent,
                ..Queued::new(location, body, class)
            });
        }
        // Whatever is queued goes with the batch that is closed next.
        Noted(self.closed + 1)
    }

    /// Everything that was queued or is being written: durable when this is. Positions that follow from the rest are not waited for.
    pub fn said(&mut self) -> Noted {
        let waits = |queued: &Queued| {
            queued.class == Class::Durable || !matches!(queued.body, Body::State { .. })
        };
        let waits = self.queue.iter().any(waits);
        self.forced |= waits;
        let written = self
            .in_flight
            .as_ref()
            .map_or(self.appended, |batch| batch.number);
        Noted(if waits { self.closed + 1 } else { written })
    }

    /// Whether a note is durable. Nothing is, as long as records are replayed: what waits for one goes on to what has effects.
    pub fn poll_noted(&mut self, noted: Noted, waker: &Waker) -> Poll<()> {
        if noted.0 <= self.appended && self.phase != Phase::Replaying {
            return Poll::Ready(());
        }
        let known = |(of, by): &(Noted, Waker)| *of == noted && by.will_wake(waker);
        if !self.notes.waiting.iter().any(known) {
            self.notes.waiting.push((noted, waker.clone()));
        }
        Poll::Pending
    }

    /// The newest position that the history had when it was loaded.
    pub fn position(&self) -> Option<&Payload> {
        self.notes.position.as_ref()
    }

    /// Deletes, with the next batch, what was recorded at and under a location.
    pub fn forget(&mut self, scope: Location) {
        if !self.is_stopped() {
            self.deletes.push(scope);
        }
    }

    pub(super) fn wake_noted(&mut self) {
        let appended = self.appended;
        self.notes.waiting.retain(|(noted, waker)| {
            let durable = noted.0 <= appended;
            if durable {
                waker.wake_by_ref();
            }
            !durable
        });
    }
}
