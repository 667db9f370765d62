//! Carried loops: what an iteration leaves to the next is recorded, and a replay starts there.
//!
//! 1. The boundary between two iterations is an outcome, in the run's one order: a loop beside others starts again when
//!    it is its boundary's turn, not before (Z1).
//! 2. A boundary is recorded at the iteration that it ends. So deleting an iteration deletes its boundary.
//! 3. Iterations before the newest recorded boundary are covered: the code does not come to them again.
//! 4. The last iteration and the boundary before it are never deleted: what a `break` gives is derived from them again.

use super::tree::{Doing, Name, Pending};
use super::{Class, Issue, Outcome, Ready, Replay, Scope};
use crate::replay::{Body, Location, Message, Payload, Segment};

/// How a carried loop is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeping {
    /// After so many boundaries that nothing else made durable, they are made durable.
    pub every: u64,
    /// So many iterations before the next one are kept.
    pub keep: u64,
}

/// A boundary that waits for its turn.
#[derive(Debug)]
pub(super) struct Boundary {
    next: u64,
    state: Payload,
    keeping: Keeping,
}

/// What a carried loop's node knows.
#[derive(Debug, Default)]
pub(super) struct Carrying {
    /// The iteration whose recorded boundary the loop starts from.
    pub(super) newest: Option<u32>,
    /// The first iteration of which records may be kept.
    lowest: u64,
    /// How many boundaries were queued since the batch of that number.
    unsaved: (u64, u64),
    /// What was taken in the iterations that are covered and still recorded: it goes back if the branch loses in which the
    /// loop stands.
    pub(super) taken: Vec<(Location, Message)>,
}

impl Replay {
    /// The boundary that a carried loop starts from: its outcome is [`Outcome::Carried`], in its turn. Nothing when none is
    /// recorded: then the loop begins with its first iteration. Asked once, after the loop was entered.
    pub fn resume(&mut self, carried: Scope) -> Option<Issue> {
        let carrying = self.tree.rare(carried.node).carrying.as_mut()?;
        let node = carrying.newest.take()?;
        let taken = std::mem::take(&mut carrying.taken);
        if let Some(branch) = self.race_branch(carried.node) {
            self.tree.rare(branch).taken.extend(taken);
        }
        self.tree.get_mut(node).issued = true;
        if self.branching == 0 && self.is_next(node) {
            self.turns.pop_front();
            return Some(Issue::Ready(self.deliver(node)));
        }
        self.pending += 1;
        let site = self.tree.rare(carried.node).site;
        self.tree.get_mut(node).op = Some(Pending::new(Doing::Boundary(None), site));
        Some(Issue::Pending(self.tree.ticket(node)))
    }

    /// An iteration has ended, and `next` follows with these locals. The iteration's scope must have been left.
    pub fn boundary(
        &mut self,
        carried: Scope,
        next: u64,
        state: Payload,
        keeping: Keeping,
    ) -> Issue {
        if self.is_stopped() {
            return Issue::Never;
        }
        let ended = next.saturating_sub(1);
        let found = self.tree.find(carried.node, Segment::Iter(ended));
        let node = found.unwrap_or_else(|| self.tree.add(carried.node, Name::Iter(ended)));
        self.pending += 1;
        let boundary = Boundary {
            next,
            state,
            keeping,
        };
        let site = self.tree.rare(carried.node).site;
        self.tree.get_mut(node).op = Some(Pending::new(Doing::Boundary(Some(boundary)), site));
        self.at_the_frontier(node);
        self.in_its_turn(node)
    }

    /// The loop has come to its end after `iterations`: those beyond what is kept are deleted with the next batch. The one
    /// before the last stays with the last, whatever is kept: its boundary is what the last one begins with.
    pub fn finish_loop(&mut self, carried: Scope, iterations: u64, keeping: Keeping) {
        if !self.is_stopped() && !self.tree.is_stale(carried.node, carried.stamp) {
            self.prune(carried.node, iterations, keeping.keep.max(2));
        }
    }

    /// The boundary is at the frontier, and the gate is open.
    pub(super) fn cross(&mut self, node: u32, boundary: Boundary) {
        let Boundary {
            next,
            state,
            keeping,
        } = boundary;
        let carried = self.tree.get(node).parent;
        let outcome = Outcome::Carried {
            next,
            state: state.clone(),
        };
        self.push_outcome(node, outcome, Body::Carried { next, state }, Class::Rider);
        self.prune(carried, next, keeping.keep);
        let closed = self.closed;
        let carrying = self.carrying(carried);
        if carrying.unsaved.0 != closed {
            carrying.unsaved = (closed, 0);
        }
        carrying.unsaved.1 += 1;
        if carrying.unsaved.1 >= keeping.every {
            carrying.unsaved.1 = 0;
            self.forced = true;
        }
    }

    fn prune(&mut self, carried: u32, next: u64, keep: u64) {
        let kept = next.saturating_sub(keep.max(1));
        let lowest = std::mem::replace(&mut self.carrying(carried).lowest, kept);
        if lowest >= kept {
            self.carrying(carried).lowest = lowest;
            return;
        }
        let location = self.tree.location(carried);
        for iteration in lowest..kept {
            let gone = location.iteration(iteration);
            self.forget_queued(&gone);
            self.settle_taken(carried, &gone);
            self.deletes.push(gone);
        }
    }

    fn carrying(&mut self, carried: u32) -> &mut Carrying {
        self.tree
            .rare(carried)
            .carrying
            .get_or_insert_with(Box::default)
    }

    /// Takes in the recorded end of an iteration: that iteration and those before it are covered.
    pub(super) fn load_boundary(&mut self, node: u32, outcome: Outcome) {
        let carried = self.tree.get(node).parent;
        let location = self.tree.location(carried);
        if self.carrying(carried).newest.is_none() {
            let first = self.tree.children(carried).next();
            let lowest = first.and_then(|first| self.tree.get(first).iteration());
            self.carrying(carried).lowest = lowest.unwrap_or(0);
        }
        let earlier: Vec<_> = self
            .tree
            .children(carried)
            .take_while(|&child| child != node)
            .chain(self.tree.children(node))
            .collect();
        for covered in earlier {
            let location = self.tree.location_of(covered);
            let taken = self.drop_branch(covered).taken.into_iter();
            let taken: Vec<_> = taken.map(|message| (location.clone(), message)).collect();
            self.carrying(carried).taken.extend(taken);
        }
        // Facts come in with the rest, so all there are in the loop so far lie in what is covered.
        self.forget_facts(&location);
        let unconsumed = self.tree.get(node).unconsumed;
        self.consume(node, unconsumed);
        self.carrying(carried).newest = Some(node);
        let found = self.tree.get_mut(node);
        found.outcome = Some(outcome);
        let stamp = found.stamp;
        self.turns.push_back(super::Turn {
            node,
            stamp,
            ready: Ready::Now,
        });
    }
}
