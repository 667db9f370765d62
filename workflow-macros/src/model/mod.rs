//! What was written, and what it means: sites with their names and scopes. One function per rule.
//!
//! A body is walked once. What is wrong is collected; what stands is rewritten in place either way, so that a body with
//! one mistake in it gives one error and no followers.
//!
//! A new kind of site is a variant of [`Kind`] here and in the library, a row in the table of `syntax::Durable` if it is a
//! macro, an arm and a page in `walk`, and what prints it in `expand::site`.

mod condition;
pub(crate) mod cron;
mod duration;
mod guided;
mod hints;
pub(crate) mod name;
mod options;
mod outline;
mod rules;
mod scope;
mod signature;
#[cfg(test)]
mod tests;
mod walk;

use syn::Attribute;

use crate::diagnostics::Place;

pub(crate) use self::condition::Condition;
pub(crate) use self::guided::{
    Code, FlowOptions, Guided, Kept, Stage, check_guided, look_into_code, type_name,
};
pub(crate) use self::hints::{Generics, Hint, is_number};
pub(crate) use self::options::{At, ItemOptions, Options};
pub(crate) use self::outline::{Body, Jump, Part, has_site};
pub(crate) use self::scope::Names;
pub(crate) use self::signature::{
    Parameter, Step, Workflow, check_fragment, check_step, check_workflow, lent, returns_result,
    workflow_name,
};
pub(crate) use self::walk::{Given, Undo, Undos, Walked, walk};

/// What a site does, under the same names as `Kind` of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Call,
    Step,
    Sleep,
    Now,
    Derived,
    Join,
    Race,
    JoinAll,
    Loop,
    Recv,
    Send,
    Attempt,
    Version,
    Removed,
    Checkpoint,
    Settle,
    Rollback,
}

impl Kind {
    /// The word for it in the lock and in the graph: as the library says it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Step => "step",
            Self::Sleep => "sleep",
            Self::Now => "now",
            Self::Derived => "derived",
            Self::Join => "join",
            Self::Race => "race",
            Self::JoinAll => "join_all",
            Self::Loop => "loop",
            Self::Recv => "recv",
            Self::Send => "send",
            Self::Attempt => "attempt",
            Self::Version => "version",
            Self::Removed => "removed",
            Self::Checkpoint => "checkpoint",
            Self::Settle => "settle",
            Self::Rollback => "rollback",
        }
    }

    /// Its name in the library.
    pub(crate) fn variant(self) -> String {
        format!("{self:?}")
    }
}

/// A place in the source that does something durable.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// The names on the way to it: `settle/paid/payment`, `items[]/ship`.
    pub(crate) path: String,
    pub(crate) place: Place,
    /// The conditions it stands under.
    pub(crate) cfg: Vec<Attribute>,
    pub(crate) details: Details,
}

/// A local that a loop carries.
#[derive(Clone)]
pub(crate) struct Carried {
    pub(crate) name: String,
    /// Where it stands in the list.
    pub(crate) place: Place,
    pub(crate) ty: Option<Hint>,
}

/// What the lock and the graph know of a site beside its name and kind, as far as it is written there.
#[derive(Clone, Default)]
pub(crate) struct Details {
    /// The path of what is called, without its arguments: `stock::reserve`, `.charge`.
    pub(crate) calls: Option<String>,
    /// It is a child run that is not waited for.
    pub(crate) is_detached: bool,
    /// The type of its value, where a `let` says it.
    pub(crate) gives: Option<String>,
    /// The channels it takes from or sends to.
    pub(crate) channels: Vec<String>,
    /// The locals that a loop carries.
    pub(crate) carried: Option<Vec<Carried>>,
    /// Its iterations or items are known by keys.
    pub(crate) is_keyed: bool,
    /// A loop that only a jump leaves.
    pub(crate) is_endless: bool,
    /// The version that new runs get, where it is a number.
    pub(crate) latest: Option<u32>,
    /// What a removed site was.
    pub(crate) was: Option<&'static str>,
    /// The checkpoint that a rollback goes to.
    pub(crate) to: Option<String>,
    /// The places of its branches, by their names.
    pub(crate) branches: Vec<(String, Place)>,
}
