//! What was written, and what it means: sites with their names and scopes. One function per rule.
//!
//! A body is walked once. What is wrong is collected; what stands is rewritten in place either way, so that a body with
//! one mistake in it gives one error and no followers.
//!
//! A new kind of site is a variant of [`Kind`] here and in the library, a row in the table of `syntax::Durable` if it is a
//! macro, an arm and a page in `walk`, and what prints it in `expand::site`.

mod duration;
mod name;
mod options;
mod rules;
mod scope;
mod signature;
#[cfg(test)]
mod tests;
mod walk;

use syn::Attribute;

use crate::diagnostics::Place;

pub(crate) use self::options::{At, ItemOptions, Options};
pub(crate) use self::scope::Names;
pub(crate) use self::signature::{
    Parameter, Step, Workflow, check_fragment, check_step, check_workflow, lent, names,
    returns_result, workflow_name,
};
pub(crate) use self::walk::{Given, Undo, Walked, walk};

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
}
