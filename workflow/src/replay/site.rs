//! Where in the source something durable is done.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a site does: recorded with it, and compared on replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// An effect whose outcome is recorded.
    Step,
    /// A wait for a deadline.
    Sleep,
    /// A recorded instant.
    Now,
    /// Branches that are all awaited.
    Join,
    /// Branches of which the first success is taken.
    Race,
    /// Branches made at run time, all awaited.
    JoinAll,
    /// A labelled loop, each iteration a scope.
    Loop,
    /// Durable code shared between workflows, run in place.
    Fragment,
    /// A value derived from the run's seed: never recorded.
    Derived,
    /// A message taken from a channel.
    Recv,
    /// A message sent to another run.
    Send,
    /// The answer to a request.
    Reply,
    /// Another workflow, run as a child.
    Child,
    /// A block whose failures stop at its edge.
    Attempt,
    /// A recorded version of the code.
    Version,
    /// A site that the code no longer has.
    Removed,
    /// The beginning of a region that failing rolls back.
    Checkpoint,
    /// What makes the undo entries so far final.
    Settle,
    /// A rollback to a checkpoint from within the code.
    Rollback,
    /// A call whose kind only its type tells: a step, a fragment or a child.
    Call,
    /// A stage of a guided flow.
    Stage,
    /// A guided flow in a stage of another.
    Guide,
}

impl Kind {
    /// True when a record of one kind may be of a site of the other: blocks leave no record of their own, and of a call
    /// only its type tells what it is.
    pub(crate) fn is_like(self, other: Self) -> bool {
        let blocks = |kind| matches!(kind, Self::Fragment | Self::Attempt);
        let called = |kind| matches!(kind, Self::Step | Self::Fragment | Self::Child);
        self == other
            || (blocks(self) && blocks(other))
            || (self == Self::Call && called(other))
            || (other == Self::Call && called(self))
    }

    /// The word for it in reports, in the lock and in pictures.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Sleep => "sleep",
            Self::Now => "now",
            Self::Join => "join",
            Self::Race => "race",
            Self::JoinAll => "join_all",
            Self::Loop => "loop",
            Self::Fragment => "fragment",
            Self::Derived => "derived",
            Self::Recv => "recv",
            Self::Send => "send",
            Self::Reply => "reply",
            Self::Child => "child",
            Self::Attempt => "attempt",
            Self::Version => "version",
            Self::Removed => "removed",
            Self::Checkpoint => "checkpoint",
            Self::Settle => "settle",
            Self::Rollback => "rollback",
            Self::Call => "call",
            Self::Stage => "stage",
            Self::Guide => "guide",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A place in the source that does something durable, as the macros write it down at compile time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    /// Its name in its scope.
    pub name: &'static str,
    /// What it does.
    pub kind: Kind,
    /// The names on the way to it, itself included: `settle/paid/payment`.
    pub path: &'static str,
    /// The source file, as the compiler names it.
    pub file: &'static str,
    /// The line in that file, from 1.
    pub line: u32,
}

impl Site {
    /// A site; the macros call this in constants.
    pub const fn new(
        name: &'static str,
        kind: Kind,
        path: &'static str,
        file: &'static str,
        line: u32,
    ) -> Self {
        Self {
            name,
            kind,
            path,
            file,
            line,
        }
    }
}

/// `reserve (step) at src/orders.rs:31`
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}) at {}:{}",
            self.name, self.kind, self.file, self.line
        )
    }
}
