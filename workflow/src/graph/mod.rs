//! The picture of a workflow: which site stands in which, and which follows which.

mod outline;

use crate::replay::Site;

pub use self::outline::{Arm, Body, Node, Part};

/// How control goes through a workflow, as the macros read it off its code: `checkout::GRAPH`.
///
/// It knows what stands in the function. What a call is (a step, a fragment, a child) only its type tells, so it is drawn as a
/// call; the body of a fragment is not drawn in the workflows that call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Graph {
    name: &'static str,
    sites: &'static [Site],
    outline: &'static str,
}

impl Graph {
    /// A graph from what the macros wrote down.
    #[doc(hidden)]
    pub const fn new(name: &'static str, sites: &'static [Site], outline: &'static str) -> Self {
        Self {
            name,
            sites,
            outline,
        }
    }

    /// The workflow's name in the store.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Everything durable that it does, in source order.
    pub const fn sites(&self) -> &'static [Site] {
        self.sites
    }

    /// Its body, in source order. Sites under a condition that this build does not fulfil are not in it.
    pub fn parts(&self) -> Vec<Part> {
        outline::read(self.outline, self.sites)
    }
}
