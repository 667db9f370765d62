//! What a visit keeps of earlier visits of its stage.
//!
//! 1. An effect that succeeded in an earlier visit is not had again: what it gave is recorded in this visit, too, when its site is
//!    reached, and nothing runs.
//! 2. It is found by its place below the visit. Between two visits the person may have changed what the code asks for, so the code
//!    may go another way: what it does not come to is not asked for.
//! 3. What is derived in a visit, keys of effects among it, is derived as in the first visit that it goes on from: the fate of an
//!    effect that was cut off may be unknown, and whoever it is had on recognises it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Alive, Class, Outcome, Replay, Scope};
use crate::replay::{Body, Ended, Kind, Location, Message, Opened, Payload, Record, Segment};

/// Outcomes of earlier visits, by their places below a visit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kept(BTreeMap<Vec<u8>, Keeps>);

/// An outcome that lasts, and where and when it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Keeps {
    lasting: Lasting,
    at: Location,
    seq: u64,
}

/// An outcome that lasts from one visit to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Lasting {
    Ended(Kind, Payload),
    /// Messages that were taken. They are not taken again.
    Taken(Vec<Message>),
}

impl Lasting {
    fn of(body: &Body) -> Option<Self> {
        match body {
            Body::Ended(Ended {
                kind: kind @ (Kind::Step | Kind::Child | Kind::Guide | Kind::Sleep | Kind::Send),
                outcome: Ok(payload),
                ..
            }) => Some(Self::Ended(*kind, payload.clone())),
            // A receive that nothing came for waits anew.
            Body::Taken(messages) if !messages.is_empty() => Some(Self::Taken(messages.clone())),
            _ => None,
        }
    }
}

/// A visit that keeps something.
#[derive(Debug)]
pub(super) struct Keeper {
    at: Location,
    first: Location,
    kept: Kept,
    /// The places that the code came to.
    asked: BTreeSet<Vec<u8>>,
}

impl Keeper {
    /// What a visit that is replayed keeps, if it keeps anything.
    pub(super) fn of(history: &[Record], alive: &Alive) -> Option<Self> {
        let (at, first) = (alive.visit.clone()?, alive.earlier.first()?.clone());
        let chains = Chains::of(history, std::slice::from_ref(&at));
        let asked = history
            .iter()
            .filter_map(|record| place(&chains.first_of(&record.location), &at));
        Some(Self {
            asked: asked.collect(),
            kept: Kept::of(history, &alive.earlier),
            at,
            first,
        })
    }
}

impl Kept {
    /// The effects that succeeded in these visits; a later one's outcome takes the place of an earlier one's.
    pub fn of(history: &[Record], visits: &[Location]) -> Self {
        let mut kept = BTreeMap::new();
        let chains = Chains::of(history, visits);
        for record in history {
            let Some(lasting) = Lasting::of(&record.body) else {
                continue;
            };
            let mut visits = visits.iter();
            let visit = visits.find(|visit| record.location.is_under(visit));
            let first = chains.first_of(&record.location);
            if let Some(place) = visit.and_then(|visit| place(&first, visit)) {
                let keeps = Keeps {
                    lasting,
                    at: record.location.clone(),
                    seq: record.seq,
                };
                kept.insert(place, keeps);
            }
        }
        Self(kept)
    }
}

/// Which visits of flows in stages go on from which, below these visits. What one of them did is kept as if the first had: a flow that
/// begins anew counts its visits from 1.
struct Chains(Vec<(Location, Location)>);

impl Chains {
    fn of(history: &[Record], visits: &[Location]) -> Self {
        let mut chains: Vec<(Location, Location)> = Vec::new();
        for record in history {
            let Body::Opened(Opened::Stage {
                keeps: Some(before),
                ..
            }) = record.body
            else {
                continue;
            };
            let at = &record.location;
            let within = |visit: &Location| at != visit && at.is_under(visit);
            if !visits.iter().any(within) {
                continue;
            }
            let segments: Vec<_> = at.segments().collect();
            let stage = segments.iter().take(segments.len().saturating_sub(1));
            let stage = stage.fold(Location::root(), |at, segment| at.child(*segment));
            let before = stage.iteration(before.into());
            let known = chains.iter().find(|(at, _)| *at == before);
            let first = known.map_or(before, |(_, first)| first.clone());
            chains.push((at.clone(), first));
        }
        // From within outwards.
        chains.sort_by_key(|(at, _)| std::cmp::Reverse(at.as_bytes().len()));
        Self(chains)
    }

    fn first_of(&self, location: &Location) -> Location {
        let mut first = location.clone();
        for (at, of) in &self.0 {
            if let Some(place) = place(&first, at) {
                first = of.join(&place);
            }
        }
        first
    }
}

impl Replay {
    /// The visit of this scope goes on from earlier ones, of which `first` is the first.
    pub fn keep(&mut self, scope: Scope, first: Location, kept: Kept) {
        let at = self.scope_location(scope);
        self.keepers.push(Keeper {
            at,
            first,
            kept,
            asked: BTreeSet::new(),
        });
    }

    /// Where what is derived at a location is derived from.
    pub fn origin(&self, location: &Location) -> Location {
        let mut origin = location.clone();
        for keeper in self.inside_out() {
            if let Some(place) = place(&origin, &keeper.at) {
                origin = keeper.first.join(&place);
            }
        }
        origin
    }

    /// Ends an operation that succeeded in an earlier visit; false when none did.
    pub(super) fn end_kept(&mut self, node: u32) -> bool {
        let kept = self.kept_at(node);
        if kept.is_some() {
            self.asks_for(node);
        }
        let (kind, payload) = match kept {
            None => return false,
            Some(Lasting::Ended(kind, payload)) => (kind, payload),
            Some(Lasting::Taken(messages)) => {
                let outcome = Outcome::Taken(messages.clone());
                self.push_outcome(node, outcome, Body::Taken(messages), Class::Rider);
                let queued = self.queue.back_mut();
                queued.expect("an outcome was just queued").kept = true;
                return true;
            }
        };
        if let Some(step) = self.tree.get_mut(node).stepping() {
            step.ended = true;
        }
        let ended = Ended {
            kind,
            outcome: Ok(payload),
            attempts: 0,
            started_at: crate::replay::Timestamp::default(),
            input_hash: None,
        };
        self.push_ended(node, ended, Class::Rider);
        true
    }

    /// What an earlier visit has for an operation of which this one has nothing.
    fn kept_at(&self, node: u32) -> Option<Lasting> {
        if self.keepers.is_empty() || self.tree.get(node).recorded {
            return None;
        }
        let mut location = self.tree.location_of(node);
        for keeper in self.inside_out() {
            let Some(place) = place(&location, &keeper.at) else {
                continue;
            };
            if let Some(keeps) = keeper.kept.0.get(&place) {
                return Some(keeps.lasting.clone());
            }
            // What is around keeps it as the first's.
            location = keeper.first.join(&place);
        }
        None
    }

    /// A flow in a stage has visits of its own, and the stage's visit goes on from an earlier one, too: from within outwards.
    fn inside_out(&self) -> Vec<&Keeper> {
        let mut keepers: Vec<_> = self.keepers.iter().collect();
        keepers.sort_by_key(|keeper| std::cmp::Reverse(keeper.at.as_bytes().len()));
        keepers
    }

    /// The code came to what is kept there.
    fn asks_for(&mut self, node: u32) {
        let mut location = self.tree.location_of(node);
        let mut keepers: Vec<_> = self.keepers.iter_mut().collect();
        keepers.sort_by_key(|keeper| std::cmp::Reverse(keeper.at.as_bytes().len()));
        for keeper in keepers {
            if let Some(place) = place(&location, &keeper.at) {
                location = keeper.first.join(&place);
                keeper.asked.insert(place);
            }
        }
    }

    /// Whether an earlier visit has an outcome for this operation.
    pub(super) fn is_kept(&self, node: u32) -> bool {
        self.kept_at(node).is_some()
    }

    /// Where those steps and children lie that a visit keeps of earlier ones, and that nothing in it asked for.
    pub fn unasked(&self, visit: Scope) -> Vec<Location> {
        let location = self.scope_location(visit);
        let Some(keeper) = self.keepers.iter().find(|keeper| keeper.at == location) else {
            return Vec::new();
        };
        let depth = location.segments().count();
        // What was tried beside the body was never asked for by it.
        let beside = |at: &Location| match at.segments().nth(depth) {
            Some(Segment::Branch(name)) => name.starts_with('\0'),
            _ => false,
        };
        let mut unasked: Vec<_> = keeper
            .kept
            .0
            .iter()
            .filter(|(place, keeps)| {
                let effect = matches!(keeps.lasting, Lasting::Ended(Kind::Step | Kind::Child, _));
                effect && !keeper.asked.contains(*place) && !beside(&keeps.at)
            })
            .map(|(_, keeps)| keeps)
            .collect();
        unasked.sort_by_key(|keeps| keeps.seq);
        unasked.iter().map(|keeps| keeps.at.clone()).collect()
    }

    pub(super) fn forget_kept(&mut self, scope: &Location) {
        self.keepers.retain(|keeper| !keeper.at.is_under(scope));
    }
}

/// The way from a scope down to a location in it.
fn place(location: &Location, scope: &Location) -> Option<Vec<u8>> {
    let below = location.as_bytes().strip_prefix(scope.as_bytes())?;
    Some(below.to_vec())
}
