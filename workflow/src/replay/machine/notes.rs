//! Records that belong to no site: what the library's own code says of a guided flow.

use std::collections::BTreeMap;
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
    pub(super) positions: BTreeMap<Location, Payload>,
}

/// Where the positions of a guided flow lie. No site has this name.
const POSITIONS: &str = "\0state";

/// Where the position of this revision lies; `base` is where the flow does: in the run's own, or in a stage of another.
pub fn position_location(base: &Location, revision: u64) -> Location {
    base.site(POSITIONS).iteration(revision)
}

/// Where the flow lies that has a position here.
pub fn base_of(position: &Location) -> Location {
    let segments: Vec<_> = position.segments().collect();
    let base = segments.len().saturating_sub(2);
    let base = segments.into_iter().take(base);
    base.fold(Location::root(), |at, segment| at.child(segment))
}

/// The newest positions that a history has: of the run's own flow, at the root, and of those in stages of it.
pub fn newest_positions(history: &[Record]) -> BTreeMap<Location, &Payload> {
    let positions = history.iter().filter_map(|record| match &record.body {
        Body::State { payload, .. } => Some((base_of(&record.location), payload)),
        _ => None,
    });
    positions.collect()
}

impl Replay {
    /// Queues a record that belongs to no site.
    pub fn note(&mut self, location: Location, body: Body, noting: Noting) -> Noted {
        if let Body::State { payload, .. } = &body {
            self.put_position(base_of(&location), payload.clone());
        }
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

    /// Whether a note is being written, or is durable.
    pub fn is_closed(&self, noted: Noted) -> bool {
        noted.0 <= self.closed
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

    /// The newest position of the flow that lies there: one that was noted, or the one that the history had when it was loaded.
    pub fn position(&self, base: &Location) -> Option<&Payload> {
        self.notes.positions.get(base)
    }

    /// All of them, by where their flows lie, the outer before what is in them.
    pub fn positions(&self) -> impl Iterator<Item = (&Location, &Payload)> {
        self.notes.positions.iter()
    }

    /// A position takes the place of the one that was loaded.
    pub fn put_position(&mut self, base: Location, position: Payload) {
        self.notes.positions.insert(base, position);
    }

    /// Deletes, with the next batch, what was recorded at and under a location.
    pub fn forget(&mut self, scope: Location) {
        if !self.is_stopped() {
            let positions = &mut self.notes.positions;
            positions.retain(|base, _| !base.is_under(&scope));
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
