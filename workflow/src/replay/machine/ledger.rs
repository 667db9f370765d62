//! The undo ledger: what has to be undone if the run fails.
//!
//! 1. An entry is made in the transaction that records the effect; with an undo that also takes unknown outcomes, in one
//!    before the body begins.
//! 2. Entries lie beside the tree, not under the site that made them. So they outlive everything that deletes records: a lost
//!    race, a pruned iteration, a removal, a rewind.
//! 3. They are undone newest first, by their numbers.
//! 4. When the code fails while entries are open, the run unwinds: its code is over, and what is left is the ledger.
//! 5. Settling deletes the entries there are. One whose effect is still being had, and may yet land, is made anew after it.

use std::collections::BTreeMap;
use std::task::{Poll, Waker};

use super::code::remember;
use super::inbox::Sent;
use super::tree::{Doing, Pending};
use super::{Class, Noted, Noting, Op, Phase, Queued, Replay, Scope, Ticket};
use crate::replay::{
    Body, Ended, Failure, Issued, Kind, Location, Payload, Record, Recorded, RunState, Site,
    Timestamp,
};

/// An effect that may have to be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Its number in the run's ledger, from 1.
    pub number: u64,
    /// Where the effect was had.
    pub location: Location,
    /// The undo: the path of its site.
    pub undo: String,
    /// What the step gave; absent while that is unknown.
    pub output: Option<Payload>,
    /// Where what names the effect is derived, if not there.
    pub origin: Option<Location>,
    /// How many undos of it were attempted.
    pub attempts: u32,
}

/// Open entries, and where the run stands with them.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    entries: BTreeMap<u64, LedgerEntry>,
    /// The number of the newest entry there ever was.
    newest: u64,
    /// The checkpoints that were passed, each with the newest entry then.
    marks: BTreeMap<Location, u64>,
    /// The run unwinds, because of this.
    unwinds: Option<Unwinding>,
}

/// Why a run's code is over and its ledger is undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unwinding {
    /// It failed.
    Failed(Failure),
    /// It was cancelled.
    Cancelled,
}

impl From<Option<Failure>> for Unwinding {
    fn from(cause: Option<Failure>) -> Self {
        cause.map_or(Self::Cancelled, Self::Failed)
    }
}

/// How a step is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undoing {
    /// What the undo is found by: the path of its site, or what a guided flow calls it.
    pub path: &'static str,
    /// Also when it is unknown whether the effect was had.
    pub unknown: bool,
}

impl Ledger {
    /// What a history says.
    pub fn of(history: &[Record]) -> Self {
        let mut ledger = Self::default();
        for record in history {
            ledger.take(&record.location, &record.body);
        }
        ledger
    }

    /// The newest entry that is open.
    pub fn newest(&self) -> Option<&LedgerEntry> {
        self.entries.values().next_back()
    }

    /// The newest open entry, if it was made since this checkpoint.
    fn newest_since(&self, checkpoint: &Location) -> Option<&LedgerEntry> {
        // A checkpoint that was not passed has nothing after it.
        let after = self.marks.get(checkpoint).copied().unwrap_or(u64::MAX);
        self.newest().filter(|entry| entry.number > after)
    }

    /// The open entries, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &LedgerEntry> {
        self.entries.values()
    }

    /// Why the run unwinds, if it does.
    pub fn unwinds(&self) -> Option<&Unwinding> {
        self.unwinds.as_ref()
    }

    /// Takes in what a record says of it.
    pub fn take(&mut self, at: &Location, body: &Body) {
        match body {
            Body::Checkpoint => {
                self.marks.insert(at.clone(), self.newest);
            }
            Body::Armed {
                number,
                location,
                undo,
                output,
                origin,
            } => {
                self.newest = self.newest.max(*number);
                self.entries.insert(
                    *number,
                    LedgerEntry {
                        number: *number,
                        location: location.clone(),
                        undo: undo.clone(),
                        output: output.clone(),
                        origin: origin.clone(),
                        attempts: 0,
                    },
                );
            }
            Body::Settled { up_to } => {
                self.entries = self.entries.split_off(&up_to.saturating_add(1));
            }
            Body::Undone {
                undoes,
                attempt,
                outcome: Err(_),
                skipped: None,
            } => {
                if let Some(entry) = self.entries.get_mut(undoes) {
                    entry.attempts = *attempt;
                }
            }
            Body::Undone { undoes, .. } => {
                self.entries.remove(undoes);
            }
            // The first cause is the run's: it is not taken back by whoever cancels it while it is undone.
            Body::Unwinding { cause } => {
                self.unwinds.get_or_insert_with(|| cause.clone().into());
            }
            _ => {}
        }
    }

    fn at(&self, location: &Location) -> Option<u64> {
        let mut entries = self.entries.values().rev();
        Some(entries.find(|entry| entry.location == *location)?.number)
    }
}

/// What a rollback is at.
#[derive(Debug)]
pub(super) struct Rolling {
    to: Location,
    /// An undo runs.
    pub(super) running: bool,
    /// The record of the last one is not durable yet.
    pub(super) unsaved: bool,
    over: bool,
}

impl Rolling {
    pub(super) fn new(to: Location) -> Self {
        Self {
            to,
            running: false,
            unsaved: false,
            over: false,
        }
    }
}

/// Where an entry's records lie: under no site, so that nothing takes them along.
pub fn ledger_location(number: u64) -> Location {
    Location::root().site(LEDGER).iteration(number)
}

/// No site has this name.
const LEDGER: &str = "\0ledger";

impl Replay {
    /// The run's ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// A checkpoint was reached. From here on failing means rolling back.
    pub fn checkpoint(&mut self, scope: Scope, site: &'static Site) {
        if self.say_once(scope, site, Body::Checkpoint) {
            let location = self.tree.location(scope.node).site(site.name);
            self.ledger.take(&location, &Body::Checkpoint);
        }
    }

    // ===== undoing a part, and going on =====

    /// The next entry that a rollback has to undo; asked again when that is done. Its undo counts as a body until
    /// [`undone`](Self::undone). Pending while the last one is not durable, and when nothing is left: then the outcome comes.
    pub fn poll_undo(&mut self, ticket: &Ticket, waker: &Waker) -> Poll<LedgerEntry> {
        if self.tree.is_stale(ticket.node, ticket.stamp) {
            return Poll::Pending;
        }
        let held = !self.is_open() || self.draining || self.choices > 0;
        let Some(Pending {
            op: Doing::Rolling(rolling),
            waker: parked,
            ..
        }) = &mut self.tree.get_mut(ticket.node).op
        else {
            return Poll::Pending;
        };
        remember(parked, waker);
        if rolling.running || rolling.unsaved || rolling.over {
            return Poll::Pending;
        }
        if held {
            self.held.push((ticket.node, ticket.stamp));
            self.forced |= self.has_queued_choice();
            return Poll::Pending;
        }
        if let Some(entry) = self.ledger.newest_since(&rolling.to).cloned() {
            rolling.running = true;
            self.alive += 1;
            return Poll::Ready(entry);
        }
        rolling.over = true;
        let nothing = Payload::json(&b"null"[..]);
        let ended = Ended {
            kind: Kind::Rollback,
            outcome: Ok(nothing),
            attempts: 0,
            started_at: Timestamp::default(),
            input_hash: None,
        };
        self.push_ended(ticket.node, ended, Class::Durable);
        Poll::Pending
    }

    /// The entry that a rollback at the frontier undoes first. Asked before the gate, once the code is quiet.
    pub fn undoes_first(&self) -> Option<&LedgerEntry> {
        self.before_gate.iter().find_map(|(node, stamp)| {
            if self.tree.is_stale(*node, *stamp) {
                return None;
            }
            match &self.tree.get(*node).op.as_ref()?.op {
                Doing::Rolling(rolling) => self.ledger.newest_since(&rolling.to),
                _ => None,
            }
        })
    }

    /// An attempt to undo an entry ended, and these values of the application are written with its record.
    pub fn undone(
        &mut self,
        ticket: &Ticket,
        number: u64,
        attempt: u32,
        outcome: Result<(), Failure>,
        values: Vec<(String, Option<Payload>)>,
    ) {
        if self.phase == Phase::Diverged || self.tree.is_stale(ticket.node, ticket.stamp) {
            return;
        }
        let Some(Pending {
            op: Doing::Rolling(rolling),
            ..
        }) = &mut self.tree.get_mut(ticket.node).op
        else {
            return;
        };
        rolling.unsaved = true;
        self.alive -= usize::from(std::mem::take(&mut rolling.running));
        let body = Body::Undone {
            undoes: number,
            attempt,
            outcome,
            skipped: None,
        };
        let location = ledger_location(number);
        self.ledger.take(&location, &body);
        let queued = Queued {
            notify: Some((ticket.node, ticket.stamp)),
            sent: (!values.is_empty()).then(|| Box::new(Sent::Values(values))),
            ..Queued::new(location, body, Class::Durable)
        };
        self.push(queued);
    }

    /// The steps at these sites have undos which their code does not know of: each with its site's path below `base`.
    pub fn undo_sites(
        &mut self,
        base: &str,
        undos: impl IntoIterator<Item = (&'static str, Undoing)>,
    ) {
        for (path, undoing) in undos {
            let path = if base.is_empty() {
                path.to_owned()
            } else {
                format!("{base}/{path}")
            };
            self.undos.insert(path, undoing);
        }
    }

    /// A step, with the undo that its site has.
    pub(super) fn with_undo(&self, node: u32, mut op: Op) -> Op {
        if !self.undos.is_empty()
            && let Op::Step {
                ephemeral,
                undoing: undoing @ None,
                ..
            } = &mut op
        {
            let path = self.tree.location_of(node).path();
            *undoing = self.undos.get(&path).copied();
            // The ledger's entry is not to be there without it.
            *ephemeral &= undoing.is_none();
        }
        op
    }

    /// The effects of a visit of a stage have an undo of their own; `output` is absent while the visit has not come to a good end. Its
    /// entry keeps the number that it was first given.
    pub fn arm_visit(&mut self, visit: Location, undo: String, output: Option<Payload>) {
        if self.is_stopped() {
            return;
        }
        let number = self.ledger.at(&visit);
        if let Some(known) = number {
            self.deletes.push(ledger_location(known));
        }
        let number = number.unwrap_or(self.ledger.newest + 1);
        self.push_armed(number, visit, undo, output);
    }

    /// An entry was undone, or an attempt of it failed, or it is passed over for a reason.
    pub fn note_undone(
        &mut self,
        number: u64,
        attempt: u32,
        outcome: Result<(), Failure>,
        skipped: Option<String>,
    ) -> Noted {
        let body = Body::Undone {
            undoes: number,
            attempt,
            outcome,
            skipped,
        };
        let location = ledger_location(number);
        self.ledger.take(&location, &body);
        self.note(location, body, Noting::Durable)
    }

    /// The entries so far are final, but for those of bodies that run beside this: what they do is not known yet.
    pub fn settle(&mut self, scope: Scope, site: &'static Site) {
        let up_to = self.ledger.newest;
        let before = (self.phase == Phase::Replaying).then(|| self.ledger.clone());
        if !self.say_once(scope, site, Body::Settled { up_to }) {
            return;
        }
        if let Some(before) = before {
            self.as_recorded.get_or_insert_with(|| Box::new(before));
        }
        for (number, entry) in std::mem::take(&mut self.ledger.entries) {
            let queued = self.forget_armed(number);
            if queued.is_none() {
                self.deletes.push(ledger_location(number));
            }
            if entry.output.is_none() && self.is_under_way(&entry.location) {
                let number = self.ledger.newest + 1;
                self.push_armed(number, entry.location, entry.undo, None)
                    .notify = queued.and_then(|queued| queued.notify);
            }
        }
    }

    /// Takes an entry out of the queue. Left there, it would outlive the record that settled it.
    fn forget_armed(&mut self, wanted: u64) -> Option<Queued> {
        let found = self.queue.iter().position(
            |queued| matches!(queued.body, Body::Armed { number, .. } if number == wanted),
        )?;
        self.durables -= 1;
        self.queue.remove(found)
    }

    /// Whether the step at this location has not ended.
    fn is_under_way(&mut self, location: &Location) -> bool {
        let node = location
            .segments()
            .try_fold(Scope::ROOT.node, |at, segment| self.tree.find(at, segment));
        let step = node.and_then(|node| self.tree.get_mut(node).stepping());
        step.is_some_and(|step| !step.ended)
    }

    /// The run is to be undone, because it was cancelled: its code is over. False when it has ended, or has diverged.
    pub fn unwind(&mut self) -> bool {
        if self.is_stopped() || self.over {
            return false;
        }
        if self.phase == Phase::Replaying {
            // Nothing of this drive is to be kept: the code does not come to the gate any more.
            self.queue.clear();
            self.deletes.clear();
            self.inbox.clear_changes();
            if let Some(recorded) = self.as_recorded.take() {
                self.ledger = *recorded;
            }
            self.phase = Phase::Live;
        }
        self.draining = true;
        self.push_unwinding(None);
        true
    }

    /// Queues a fact that is said the first time its site is reached; whether this was it.
    fn say_once(&mut self, scope: Scope, site: &'static Site, body: Body) -> bool {
        if self.is_stopped() {
            return false;
        }
        let location = self.tree.location(scope.node).site(site.name);
        if let Some(removed) = self.is_removed(&location) {
            self.diverge(location, Recorded::Removed(removed), Issued::Site(*site));
            return false;
        }
        self.reached = Some(site);
        if self.facts.contains_key(&location) {
            return false;
        }
        let kind = site.kind;
        self.facts
            .insert(location.clone(), super::facts::Fact::Said { kind, seq: 0 });
        self.open_above(scope.node);
        self.push(Queued::new(location, body, Class::Rider));
        true
    }

    /// The run's code is over and its effects are to be undone.
    pub(super) fn push_unwinding(&mut self, cause: Option<Failure>) {
        self.over = true;
        self.ledger.unwinds = Some(cause.clone().into());
        self.push(Queued::new(
            Location::root(),
            Body::Unwinding { cause },
            Class::Durable,
        ));
    }

    /// Whether an entry lies here already.
    pub(super) fn is_armed(&self, location: &Location) -> bool {
        self.ledger.at(location).is_some()
    }

    /// Makes an entry, or says what the effect of one gave.
    pub(super) fn arm(
        &mut self,
        location: Location,
        undoing: Undoing,
        output: Option<Payload>,
    ) -> &mut Queued {
        let number = match self.ledger.at(&location).filter(|_| undoing.unknown) {
            Some(known) => {
                // What is known now goes in the place of what was not.
                self.deletes.push(ledger_location(known));
                known
            }
            None => self.ledger.newest + 1,
        };
        self.push_armed(number, location, undoing.path.to_owned(), output)
    }

    fn push_armed(
        &mut self,
        number: u64,
        location: Location,
        undo: String,
        output: Option<Payload>,
    ) -> &mut Queued {
        let origin = Some(self.origin(&location)).filter(|origin| *origin != location);
        let body = Body::Armed {
            number,
            location,
            undo,
            output,
            origin,
        };
        self.ledger.take(&Location::root(), &body);
        self.push(Queued::new(ledger_location(number), body, Class::Durable));
        self.queue.back_mut().expect("an entry was just queued")
    }
}

/// What a run is doing when its end is this record.
pub(super) fn state_after(body: &Body) -> Option<RunState> {
    use crate::replay::Finished;
    match body {
        Body::Finished(Finished::Completed(_)) => Some(RunState::Completed),
        Body::Finished(Finished::Failed(_)) => Some(RunState::Failed),
        Body::Finished(Finished::Cancelled) => Some(RunState::Cancelled),
        Body::Unwinding { .. } => Some(RunState::RollingBack),
        _ => None,
    }
}
