//! Why a command was not obeyed.

use std::fmt;

use super::position::{Failing, Problem, Status};

/// Why a command was not obeyed, or did not come to a good end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The checks of the stage found these problems. They are in the view, too.
    Invalid(Vec<Problem>),
    /// Something else is being done. When it has ended, the command may be given again.
    Busy,
    /// The guide has moved since the revision that the command was decided on.
    Stale {
        /// Its revision now.
        revision: u64,
    },
    /// Its status does not allow the command.
    NotRunning(Status),
    /// A body that was given up still runs on a thread. When it has ended, the command may be given again.
    StillStopping,
    /// There is no stage before this one.
    AtStart,
    /// No exit of the stage is open.
    NoRoute,
    /// The stage was not declared skippable.
    NotSkippable,
    /// Nothing failed, and nothing is blocked.
    NothingToRetry,
    /// Nothing was cut off.
    NothingToResume,
    /// No operation of the stage is blocked.
    NotBlocked,
    /// No undo keeps failing.
    NoUndoFails,
    /// The flow's exit guard does not let it be cancelled.
    GuardSaidNo,
    /// It was started before, and not rolled back since.
    AlreadyStarted,
    /// It was cancelled.
    Cancelled,
    /// It came to its end before.
    Finished,
    /// The stage was entered, and its body failed. The view has the failure, too.
    Failed(Failing),
    /// No flow of that data is in a stage there.
    NotThere,
    /// What the stage does when it is left failed: the person stays.
    Leave(Failing),
    /// Durable code that is asked before the stage is left, a check or the guard of an exit, failed: the person stays.
    Check(Failing),
    /// An exit guard took longer than hooks may. Nothing changed.
    Late(String),
    /// The flow's own code, a check, a guard or an edit, panicked. Nothing changed.
    Panicked(String),
    /// The position does not survive the codec, or is over the payload limit.
    Encode(String),
    /// The store failed. What was asked is kept, and written again until it is durable; the view says so
    /// ([`View::durable`](field@crate::guided::View::durable)). Given again with the same key, it is obeyed once.
    Store(String),
    /// The guide was closed in this process. Open it again.
    Closed,
    /// The guide is not driven any more: the engine was shut down, the run was parked, or the store keeps failing. Whether the command was
    /// obeyed is unknown; given again with the same key, it is obeyed once.
    Stopped(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(problems) => {
                f.write_str("what was given is not right")?;
                for problem in problems {
                    match &problem.field {
                        Some(field) => write!(f, "\n- {field}: {}", problem.text)?,
                        None => write!(f, "\n- {}", problem.text)?,
                    }
                }
                Ok(())
            }
            Self::Busy => f.write_str("something else is being done"),
            Self::Stale { revision } => {
                write!(f, "it has moved meanwhile: it is at revision {revision}")
            }
            Self::NotRunning(status) => write!(f, "it is {status}"),
            Self::StillStopping => f.write_str("what was given up has not ended yet"),
            Self::AtStart => f.write_str("there is nothing before this stage"),
            Self::NoRoute => f.write_str("no way leads on from this stage as things are"),
            Self::NotSkippable => f.write_str("this stage cannot be skipped"),
            Self::NothingToRetry => f.write_str("there is nothing to try again"),
            Self::NothingToResume => f.write_str("nothing was cut off that could go on"),
            Self::NotBlocked => f.write_str("nothing is blocked that could be let go on"),
            Self::NoUndoFails => f.write_str("no undo fails that could be skipped"),
            Self::GuardSaidNo => f.write_str("it may not be cancelled as things are"),
            Self::AlreadyStarted => f.write_str("it was started before"),
            Self::Cancelled => f.write_str("it was cancelled"),
            Self::NotThere => f.write_str("no such flow is in a stage there"),
            Self::Finished => f.write_str("it has come to its end"),
            Self::Failed(failing) => write!(f, "the stage failed: {failing}"),
            Self::Leave(failing) => write!(f, "the stage could not be left: {failing}"),
            Self::Check(failing) => write!(f, "the stage could not be asked: {failing}"),
            Self::Late(text) => f.write_str(text),
            Self::Panicked(text) => write!(f, "the flow's own code panicked: {text}"),
            Self::Encode(text) => write!(f, "it cannot be recorded: {text}"),
            Self::Store(text) => write!(f, "it is not durable yet: {text}"),
            Self::Closed => f.write_str("it was closed here"),
            Self::Stopped(text) => write!(f, "it is not driven any more: {text}"),
        }
    }
}

impl std::error::Error for Refused {}
