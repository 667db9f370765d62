//! Operations that the library's own code answers: what a stage of a guided flow asks of the flow.

use std::task::{Poll, Waker};

use super::code::remember;
use super::tree::{Doing, Pending};
use super::{Class, Phase, Replay, Scope, Ticket};
use crate::replay::{Ended, Failure, Kind, Payload, Timestamp};

/// The right to answer an operation, once.
#[derive(Debug, PartialEq, Eq)]
pub struct Claim {
    node: u32,
    stamp: u32,
}

impl Replay {
    /// The right to answer this operation, when it is live: given once.
    pub fn poll_claim(&mut self, ticket: &Ticket, waker: &Waker) -> Poll<Claim> {
        if self.tree.is_stale(ticket.node, ticket.stamp) {
            return Poll::Pending;
        }
        let live = self.is_open() && !self.draining;
        let Some(Pending {
            op: Doing::Asked { claimed, .. },
            waker: parked,
            ..
        }) = &mut self.tree.get_mut(ticket.node).op
        else {
            return Poll::Pending;
        };
        remember(parked, waker);
        if !live || std::mem::replace(claimed, true) {
            return Poll::Pending;
        }
        Poll::Ready(Claim {
            node: ticket.node,
            stamp: ticket.stamp,
        })
    }

    /// The scope below an operation, for what its answer takes; nothing when it has an answer: recorded, or kept from earlier.
    pub fn scope_below(&self, ticket: &Ticket) -> Option<Scope> {
        let stale = self.tree.is_stale(ticket.node, ticket.stamp);
        if stale || self.tree.get(ticket.node).outcome.is_some() || self.is_kept(ticket.node) {
            return None;
        }
        Some(self.tree.scope(ticket.node))
    }

    /// Answers an operation. Nothing happens when it was dropped meanwhile.
    pub fn answer(&mut self, claim: Claim, outcome: Result<Payload, Failure>) {
        if self.phase == Phase::Diverged || self.tree.is_stale(claim.node, claim.stamp) {
            return;
        }
        let asked = self.tree.get(claim.node).op.as_ref();
        let kind = match asked.map(|pending| &pending.op) {
            Some(Doing::Asked { kind, .. }) => *kind,
            _ => Kind::Stage,
        };
        let ended = Ended {
            kind,
            outcome,
            attempts: 0,
            started_at: Timestamp::default(),
            input_hash: None,
        };
        self.push_ended(claim.node, ended, Class::Durable);
    }
}
