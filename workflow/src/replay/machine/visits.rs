//! Visits of the stages of a guided flow: scopes beside each other, each with the records of one run of a stage's body.
//!
//! 1. Only the visits that are alive are replayed. What other visits have recorded is history, and no code comes to it again.
//! 2. Visits are members of the root: they have no order among each other, and none with what the library's own code waits for.
//! 3. A visit that is given up keeps what was done in it: that is recorded, or queued and still written.
//! 4. While the gate is held, it does not open by itself: whoever holds it looks at what is at the frontier first.

use std::task::{Poll, Waker};

use super::code::remember;
use super::inbox::{Receiving, Wanted};
use super::kept::Keeper;
use super::tree::{Doing, Name, Pending, Text};
use super::{HistoryError, Phase, Replay, Scope, Standing, Ticket};
use crate::replay::{CodeId, Kind, Location, Opened, Record, Segment, Timestamp};

/// What is alive of a flow: the visit that had begun and had not ended, and those before it whose results it keeps, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alive {
    /// Where the flow lies.
    pub base: Location,
    /// Where the visit's records lie, if there is one.
    pub visit: Option<Location>,
    /// Where theirs do.
    pub earlier: Vec<Location>,
}

impl Alive {
    /// Whether what is recorded here is alive, as far as this flow goes.
    fn has(&self, location: &Location) -> bool {
        let strictly = self.base.is_root() || *location != self.base;
        let below = strictly && location.is_under(&self.base);
        let visit = self.visit.as_ref();
        !below || visit.is_some_and(|visit| location.is_under(visit))
    }
}

/// What a replay came to at a held gate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Held {
    /// Steps that had begun, or were about to, when the run was last driven.
    pub effects: Vec<Location>,
    /// How many operations only wait: for a time, a message, a child.
    pub waits: usize,
}

/// A gate that somebody holds.
#[derive(Debug, Default)]
pub(super) struct Gate {
    pub(super) held: bool,
    /// The code does not begin yet: that it is quiet says nothing.
    pub(super) before: bool,
    /// The replay has come to it.
    reached: bool,
    waker: Option<Waker>,
}

/// What the library's own code of a guided flow waits at. No stage has this name.
const DESK: &str = "\0desk";

/// The time limit of a visit. No site has this name.
const LIMIT: &str = "\0limit";

impl Replay {
    /// The machine of a guided flow that goes on: only what is recorded in the visits that are alive is replayed. Every flow of the
    /// history is there, that of the run itself too.
    ///
    /// # Errors
    /// [`HistoryError`] when no run could have written this history.
    pub fn load_alive(
        history: Vec<Record>,
        code: CodeId,
        row: Standing,
        alive: &[Alive],
    ) -> Result<Self, HistoryError> {
        let keepers = alive
            .iter()
            .filter_map(|alive| Keeper::of(&history, alive))
            .collect();
        let mut replay = Self::load_where(history, code, row, |location| {
            alive.iter().all(|alive| alive.has(location))
        })?;
        replay.keepers = keepers;
        replay.alive_visits = alive.iter().filter_map(|it| it.visit.clone()).collect();
        Ok(replay)
    }

    /// The visit in which the code does not fit the history, if it is one: the innermost.
    pub fn diverged_visit(&self) -> Option<&Location> {
        let at = &self.divergence()?.location;
        let visits = self.alive_visits.iter();
        let visits = visits.filter(|visit| at.is_under(visit));
        visits.max_by_key(|visit| visit.as_bytes().len())
    }

    /// The scope of a visit of a stage of the flow in this scope; `keeps` is the visit whose results it goes on with.
    pub fn visit(&mut self, flow: Scope, stage: &str, number: u32, keeps: Option<u32>) -> Scope {
        if self.tree.is_stale(flow.node, flow.stamp) {
            return flow;
        }
        let branch = self.branch_of(flow.node, stage);
        let found = self.tree.find(branch, Segment::Iter(u64::from(number)));
        let node = found.unwrap_or_else(|| self.tree.add(branch, Name::Iter(number.into())));
        self.tree.get_mut(node).issued = true;
        self.tree.advance(branch, node);
        let opened = Opened::Stage {
            visit: number,
            keeps,
        };
        let rare = self.tree.rare(node);
        if rare.opened.take().is_none() {
            rare.unopened = Some(opened);
        }
        let own = self.tree.get(node).unconsumed;
        self.consume(node, own);
        self.tree.scope(node)
    }

    /// Whether anything that is recorded lies below a scope.
    pub fn is_recorded(&self, scope: Scope) -> bool {
        let mut below = self.tree.under(scope.node).into_iter();
        below.any(|node| node != scope.node && self.tree.get(node).recorded)
    }

    /// Whether the code of a visit that is replayed has ended too early: something is recorded that it did not come to.
    pub fn is_left_over(&self, visit: Scope) -> bool {
        if self.phase != Phase::Replaying || self.tree.is_stale(visit.node, visit.stamp) {
            return false;
        }
        let mut below = self.tree.under(visit.node).into_iter();
        below.any(|node| self.tree.get(node).unconsumed > 0)
    }

    /// A scope inside a visit for code that is tried beside its body, for the so-manieth time.
    pub fn aside(&mut self, scope: Scope, name: &str, number: u32) -> Scope {
        let mut at = scope.node;
        for segment in [Segment::Branch(name), Segment::Iter(u64::from(number))] {
            let found = self.tree.find(at, segment);
            let node = found.unwrap_or_else(|| {
                let name = match segment {
                    Segment::Iter(index) => Name::Iter(index),
                    _ => branch(name),
                };
                self.tree.add(at, name)
            });
            self.tree.get_mut(node).issued = true;
            self.tree.advance(at, node);
            at = node;
        }
        self.tree.scope(at)
    }

    /// The code of a visit is over: its future was dropped. Operations that had not ended are given up, with the children that were
    /// waited for; what was recorded stays.
    pub fn abandon(&mut self, scope: Scope) {
        if self.is_stopped() || self.tree.is_stale(scope.node, scope.stamp) {
            return;
        }
        let location = self.tree.location(scope.node);
        self.forget_kept(&location);
        let mut dropped = self.drop_branch(scope.node);
        // What a record has taken stays taken. What was only held for the code goes back.
        let held = std::mem::take(&mut dropped.unsaved);
        dropped
            .taken
            .retain(|message| held.contains(&message.arrival));
        dropped.unsaved = held;
        self.give_back(dropped);
        if self.choices == 0 {
            self.wake_held();
        }
    }

    /// Waits, as long as the run is driven, for something on this channel, so that the run rests when nothing else is to be done. It
    /// rests often, and is soon at something again: that it does is said when it leaves memory.
    pub fn await_desk(&mut self, channel: &str) {
        if self.is_stopped() {
            return;
        }
        self.patient = true;
        let node = self.branch_of(Scope::ROOT.node, DESK);
        // It leaves no trace: it is waited at by every drive, wherever the flow is.
        self.tree.get_mut(node).touched = true;
        self.pending += 1;
        let wanted = Wanted {
            channels: vec![channel.to_owned()],
            until: None,
            poll: false,
            count: 1,
            exactly: false,
        };
        let waits = Doing::Recv(Box::new(Receiving::new(wanted)));
        self.tree.get_mut(node).op = Some(Pending::new(waits, None));
        self.at_the_frontier(node);
    }

    /// A time limit of a visit. It is not recorded: the flow knows it. The run is due when it passes.
    pub fn limit(&mut self, visit: Scope, until: Timestamp) -> Ticket {
        let found = self.tree.find(visit.node, Segment::Branch(LIMIT));
        let node = found.unwrap_or_else(|| self.tree.add(visit.node, branch(LIMIT)));
        let limit = self.tree.get_mut(node);
        limit.issued = true;
        limit.touched = true;
        limit.op = Some(Pending::new(Doing::Limit { until, over: false }, None));
        self.pending += 1;
        self.at_the_frontier(node);
        self.tree.ticket(node)
    }

    /// Ready when the limit has passed.
    pub fn poll_limit(&mut self, limit: &Ticket, waker: &Waker) -> Poll<()> {
        if self.tree.is_stale(limit.node, limit.stamp) {
            return Poll::Pending;
        }
        let Some(Pending {
            op: Doing::Limit { over, .. },
            waker: parked,
            ..
        }) = &mut self.tree.get_mut(limit.node).op
        else {
            return Poll::Pending;
        };
        if *over {
            return Poll::Ready(());
        }
        remember(parked, waker);
        Poll::Pending
    }

    /// The run is at something that the machine does not see: it does not rest before [`settle_in`](Self::settle_in).
    pub fn stay_up(&mut self) {
        self.pending += 1;
    }

    /// What [`stay_up`](Self::stay_up) was said for is over.
    pub fn settle_in(&mut self) {
        self.pending -= 1;
    }

    // ===== the gate =====

    /// The code is about to begin, or has begun: before, that it is quiet does not open the gate.
    pub fn before_code(&mut self, before: bool) {
        self.gate.before = before;
    }

    /// The gate does not open before [`open_gate`](Self::open_gate). Said before the code is polled.
    pub fn hold_gate(&mut self) {
        self.gate.held = self.phase == Phase::Replaying;
    }

    /// What is at the frontier, once every record is consumed.
    pub fn poll_gate(&mut self, waker: &Waker) -> Poll<Held> {
        if !self.gate.held || !self.gate.reached {
            remember(&mut self.gate.waker, waker);
            return Poll::Pending;
        }
        let mut frontier = Held::default();
        for &(node, stamp) in &self.before_gate {
            if self.tree.is_stale(node, stamp) {
                continue;
            }
            match self.tree.get(node).op.as_ref().map(|pending| &pending.op) {
                Some(_) if self.is_kept(node) => {}
                // It waits for its next attempt, which had not begun.
                Some(Doing::Step(step))
                    if step.wake_at.is_some() && !self.unclean.counts_for(step.wake_at) =>
                {
                    frontier.waits += 1;
                }
                Some(Doing::Step(_) | Doing::Rolling(_)) => {
                    frontier.effects.push(self.tree.location_of(node));
                }
                Some(_) => frontier.waits += 1,
                None => {}
            }
        }
        Poll::Ready(frontier)
    }

    /// Lets the gate open.
    pub fn open_gate(&mut self) {
        self.gate.held = false;
    }

    /// What a visit keeps of earlier ones is no effect: at a held gate the code is given it, for what it comes to then; true when there
    /// was any.
    pub(super) fn end_kept_at_gate(&mut self) -> bool {
        if !self.gate.held {
            return false;
        }
        let before = std::mem::take(&mut self.before_gate);
        let (kept, rest) = before
            .into_iter()
            .partition(|&(node, stamp)| !self.tree.is_stale(node, stamp) && self.is_kept(node));
        self.before_gate = rest;
        let kept: Vec<_> = kept;
        for &(node, _) in &kept {
            self.end_kept(node);
        }
        !kept.is_empty()
    }

    /// The replay has come to the gate; true when somebody holds it.
    pub(super) fn is_gate_held(&mut self) -> bool {
        if self.gate.held
            && !std::mem::replace(&mut self.gate.reached, true)
            && let Some(waker) = self.gate.waker.take()
        {
            waker.wake();
        }
        self.gate.held
    }

    fn branch_of(&mut self, scope: u32, name: &str) -> u32 {
        let found = self.tree.find(scope, Segment::Branch(name));
        let node = found.unwrap_or_else(|| self.tree.add(scope, branch(name)));
        self.tree.get_mut(node).issued = true;
        self.tree.advance(scope, node);
        node
    }
}

/// What a record says that a visit is.
pub(super) const KIND: Kind = Kind::Stage;

fn branch(name: &str) -> Name {
    Name::Branch(Text::Recorded(name.as_bytes().to_vec().into()))
}
