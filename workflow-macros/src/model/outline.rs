//! The shape of a body: which site stands in which, and which can follow which.
//!
//! The list of sites says what there is; this says how control goes through it. The lock compares it, the graph draws it.

use super::condition::{Condition, Decided};

/// A part of a body, in source order.
#[derive(Debug)]
pub(crate) enum Part {
    /// A site, by its index, with the bodies in it.
    Site { index: usize, bodies: Vec<Body> },
    /// Arms of which one is taken: of an `if`, a `match` or a `let .. else`. One that does nothing durable is empty.
    Choice {
        /// The paths of the `version!`s that the condition looks at.
        gates: Vec<String>,
        arms: Vec<Vec<Part>>,
        /// When each arm is taken, where versions decide it; else empty.
        conditions: Vec<Condition>,
    },
    /// What stands after it does not follow what stands before.
    Leaves(Jump),
}

/// How control leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Jump {
    Return,
    /// To the next iteration of the loop with this label, or of the innermost.
    Continue(Option<String>),
    /// Out of the loop or the block with this label, or out of the innermost loop.
    Break(Option<String>),
}

/// A scope in a site: a branch, a loop's iteration, an `attempt!`'s block.
#[derive(Debug)]
pub(crate) struct Body {
    /// The branch's name.
    pub(crate) branch: Option<String>,
    pub(crate) parts: Vec<Part>,
}

/// An outline in the making.
#[derive(Debug)]
pub(super) struct Outline {
    /// The sequences around the place that is being looked at, the innermost last.
    open: Vec<Vec<Part>>,
    /// What is bound to something that a `version!` decided, the innermost last.
    gates: Vec<Gated>,
}

/// A name that is bound to something that `version!`s decided.
#[derive(Debug)]
struct Gated {
    name: String,
    /// Their paths.
    gates: Vec<String>,
    /// What it is, where that can be read.
    decided: Option<Decided>,
}

impl Outline {
    pub(super) fn new() -> Self {
        Self {
            open: vec![Vec::new()],
            gates: Vec::new(),
        }
    }

    /// A site stands here.
    pub(super) fn site(&mut self, index: usize) {
        self.push(Part::Site {
            index,
            bodies: Vec::new(),
        });
    }

    /// Control does not go past here.
    pub(super) fn leaves(&mut self, jump: Jump) {
        self.push(Part::Leaves(jump));
    }

    fn push(&mut self, part: Part) {
        if let Some(sequence) = self.open.last_mut() {
            sequence.push(part);
        }
    }

    /// What follows stands in a sequence of its own, until [`Outline::close`].
    pub(super) fn open(&mut self) {
        self.open.push(Vec::new());
    }

    pub(super) fn close(&mut self) -> Vec<Part> {
        self.open.pop().unwrap_or_default()
    }

    /// `parts` is a body of the site at `index`, which stands in this sequence.
    pub(super) fn body(&mut self, index: usize, branch: Option<String>, parts: Vec<Part>) {
        let sequence = self.open.last_mut().into_iter().flatten().rev();
        for part in sequence {
            if let Part::Site { index: at, bodies } = part
                && *at == index
            {
                bodies.push(Body { branch, parts });
                return;
            }
        }
    }

    /// One of `arms` is taken here. Where none does anything durable and none leaves there is nothing to tell.
    pub(super) fn choice(&mut self, arms: Vec<Vec<Part>>) {
        self.gated_choice(Vec::new(), Vec::new(), arms);
    }

    /// The same, by `version!`s: their paths, and when each arm is taken.
    pub(super) fn gated_choice(
        &mut self,
        gates: Vec<String>,
        conditions: Vec<Condition>,
        arms: Vec<Vec<Part>>,
    ) {
        if arms.iter().any(|arm| !arm.is_empty()) {
            self.push(Part::Choice {
                gates,
                arms,
                conditions,
            });
        }
    }

    /// `name` is bound from here on to what these `version!`s decided; to nothing of that kind if there are none.
    pub(super) fn bind(&mut self, name: String, gates: Vec<String>, decided: Option<Decided>) {
        if !gates.is_empty() || self.gates.iter().any(|gated| gated.name == name) {
            self.gates.push(Gated {
                name,
                gates,
                decided,
            });
        }
    }

    /// How many names are bound; [`Outline::unbind`] goes back to that.
    pub(super) fn bound(&self) -> usize {
        self.gates.len()
    }

    pub(super) fn unbind(&mut self, to: usize) {
        self.gates.truncate(to);
    }

    /// The `version!`s that decided what `name` is bound to.
    pub(super) fn gates_of(&self, name: &str) -> &[String] {
        self.gated(name).map_or(&[], |gated| &gated.gates)
    }

    /// What `name` is, if a `version!` decided that in a way that can be read.
    pub(super) fn decided(&self, name: &str) -> Option<&Decided> {
        self.gated(name)?.decided.as_ref()
    }

    fn gated(&self, name: &str) -> Option<&Gated> {
        self.gates.iter().rev().find(|gated| gated.name == name)
    }

    pub(super) fn finish(mut self) -> Vec<Part> {
        self.close()
    }
}

/// Whether anything durable is done in it.
pub(crate) fn has_site(parts: &[Part]) -> bool {
    parts.iter().any(|part| match part {
        Part::Site { .. } => true,
        Part::Choice { arms, .. } => arms.iter().any(|arm| has_site(arm)),
        Part::Leaves(_) => false,
    })
}
