//! What is derived has the seed and the generation of its place in the run.
//!
//! A rewind gives the run a new generation, a fork a new seed as well, so that what is done again is told from what was done before.
//! What stands before is replayed, and must come out as it did: there the old ones hold. A place stands before when something recorded
//! earlier than the rewind lies sequentially after it.

use super::{Replay, Scope, Ticket};
use crate::replay::Control;

/// From the record of this number on, what is derived has this seed and generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Age {
    from: u64,
    seed: u128,
    generation: u32,
}

impl Age {
    pub(super) fn first(seed: u128, generation: u32) -> Self {
        Self {
            from: 0,
            seed,
            generation,
        }
    }
}

impl Replay {
    /// The seed and generation of what a site of this scope derives that the code is at.
    pub fn identity(&self, scope: Scope) -> (u128, u32) {
        if self.ages.len() == 1 {
            return (self.seed, self.generation);
        }
        self.identity_before(self.next_after(scope.node))
    }

    /// The seed and generation of the effect of a step that may begin.
    pub fn identity_of(&self, ticket: &Ticket) -> (u128, u32) {
        match self.tree.get(ticket.node).first_seq {
            0 => (self.seed, self.generation),
            first => self.identity_before(first),
        }
    }

    fn identity_before(&self, seq: u64) -> (u128, u32) {
        let age = self.ages.iter().rfind(|age| age.from < seq);
        age.map_or((self.seed, self.generation), |age| {
            (age.seed, age.generation)
        })
    }

    /// Takes in what was done to the run from outside.
    pub(super) fn load_control(&mut self, seq: u64, control: &Control) {
        match control {
            Control::Rewound { generation, .. } => self.generation = *generation,
            Control::Forked { seed } => self.seed = *seed,
            _ => return,
        }
        self.ages.push(Age {
            from: seq,
            seed: self.seed,
            generation: self.generation,
        });
    }

    /// The number of the first record that lies sequentially after this point of a scope, and was not reached yet.
    fn next_after(&self, scope: u32) -> u64 {
        let mut next = u64::MAX;
        let mut at = scope;
        loop {
            let node = self.tree.get(at);
            let rare = node.rare.as_deref();
            if node.unconsumed > 0 {
                next = next.min(rare.map_or(0, |rare| rare.decided_seq));
            }
            if !rare.is_some_and(|rare| rare.branching)
                && let Some(head) = self.tree.head(at)
            {
                next = next.min(self.tree.get(head).first_seq);
            }
            if at == Scope::ROOT.node {
                return next;
            }
            at = node.parent;
        }
    }
}
