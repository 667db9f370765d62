//! What an operation answers when it does not do what it was asked, or not with success.

use super::Status;
use crate::context::Blocked;
use crate::replay::Failure;

/// Why an operation was not run, skipped, released or reset: nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// It is in flight already; that goes on undisturbed.
    #[error("operation `{name}` is {status} already: wait for it, or cancel it first")]
    AlreadyRunning {
        /// Its name.
        name: String,
        /// What it is doing.
        status: Status,
    },
    /// It has ended, but what it ran has not yet let go.
    #[error(
        "the work of operation `{name}` was given up but has not stopped yet: await `stopped()`, then try again"
    )]
    StillStopping {
        /// Its name.
        name: String,
    },
    /// It was closed.
    #[error("operation `{name}` was closed: build another one from its definition")]
    Closed {
        /// Its name.
        name: String,
    },
    /// It was skipped.
    #[error("operation `{name}` was skipped: `reset()` it to run it after all")]
    Skipped {
        /// Its name.
        name: String,
    },
    /// Only what has not begun can be skipped.
    #[error("operation `{name}` is {status}, and only an idle or queued one can be skipped")]
    NotSkippable {
        /// Its name.
        name: String,
        /// What it is doing, or did.
        status: Status,
    },
    /// Only what is blocked can be released.
    #[error("operation `{name}` is {status}, and only a blocked one can be released")]
    NotBlocked {
        /// Its name.
        name: String,
        /// What it is doing, or did.
        status: Status,
    },
    /// What it is released with does not serialise.
    #[error("what operation `{name}` is released with cannot be recorded: {reason}")]
    Payload {
        /// Its name.
        name: String,
        /// What the serialiser says.
        reason: String,
    },
    /// A rollback of it failed on its way.
    #[error(
        "operation `{name}` is rolled back in part: `rollback()` goes on from there, `reset()` gives up what is left"
    )]
    RollbackUnfinished {
        /// Its name.
        name: String,
    },
    /// The attempt that asked for it has ended.
    #[error(
        "attempt {attempt} of operation `{name}` has ended, so it runs no child: ask the present attempt"
    )]
    Stale {
        /// The parent's name.
        name: String,
        /// The number of the attempt that has ended.
        attempt: u32,
    },
    /// It was awaited outside of a tokio runtime.
    #[error("operation `{name}` needs tokio's timers: await it within a tokio runtime")]
    NoRuntime {
        /// Its name.
        name: String,
    },
}

/// Why an operation gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It was not run.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Its last attempt failed.
    #[error("{0}")]
    Failed(#[source] Failure),
    /// It cannot go on before somebody does something. [`Operation::release`](super::Operation::release) goes on.
    #[error("{0}")]
    Blocked(#[source] Blocked),
    /// It was cancelled.
    #[error("operation `{name}` was cancelled: {reason}")]
    Cancelled {
        /// Its name.
        name: String,
        /// What was said when it was cancelled.
        reason: String,
    },
    /// It was skipped while it was queued.
    #[error("operation `{name}` was skipped: {reason}")]
    Skipped {
        /// Its name.
        name: String,
        /// The cause.
        reason: String,
    },
}

/// Why an operation was not rolled back, or not wholly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RollbackError {
    /// It is in flight.
    #[error("operation `{name}` is {status}: cancel it, or wait for it, before it is rolled back")]
    InFlight {
        /// Its name.
        name: String,
        /// What it is doing.
        status: Status,
    },
    /// It has ended, but what it ran has not yet let go.
    #[error(
        "the work of operation `{name}` has not stopped yet, and might have an effect after its undo: await `stopped()` first"
    )]
    StillStopping {
        /// Its name.
        name: String,
    },
    /// Nothing that it did is left to be undone.
    #[error("operation `{name}` is {status}: there is nothing to undo")]
    NothingToUndo {
        /// Its name.
        name: String,
        /// What it did.
        status: Status,
    },
    /// It was closed.
    #[error(
        "operation `{name}` was closed: restore its record into another one, and roll that back"
    )]
    Closed {
        /// Its name.
        name: String,
    },
    /// It was restored from a record, and a child in that has an undo that this code does not know. Nothing was undone.
    #[error(
        "operation `{name}` was restored, and its child `{child}` is to be undone, by code that it does not know: \
         name it in the definition with `.knows(&definition)`"
    )]
    Unknown {
        /// Its name.
        name: String,
        /// The path of the child.
        child: String,
    },
    /// An undo failed. What was undone before it stays so; rolling back again goes on with this one.
    #[error(transparent)]
    Failed(Failure),
    /// It was awaited outside of a tokio runtime.
    #[error("operation `{name}` needs tokio's timers: await its rollback within a tokio runtime")]
    NoRuntime {
        /// Its name.
        name: String,
    },
}

/// Why a record was not restored: nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The operation is in flight, or its work has not stopped.
    #[error(
        "operation `{name}` is {status} and cannot be restored now: cancel it and await `stopped()`"
    )]
    InFlight {
        /// Its name.
        name: String,
        /// What it is doing.
        status: Status,
    },
    /// The record was taken while the operation was in flight.
    #[error(
        "the record of operation `{name}` says that {at} is {status}: if its process is gone, restore `record.interrupted(now)`"
    )]
    RecordInFlight {
        /// The operation's name.
        name: String,
        /// The path of the operation in it that is in flight.
        at: String,
        /// What that was doing.
        status: Status,
    },
    /// The record is one of another operation.
    #[error("the record is one of operation `{found}`, not of `{name}`")]
    OtherOperation {
        /// The operation's name.
        name: String,
        /// The name in the record.
        found: String,
    },
    /// The result in the record is not one of this operation's type.
    #[error("the result that operation `{name}` has on record does not fit its type: {reason}")]
    Result {
        /// The operation's name.
        name: String,
        /// What the deserialiser says.
        reason: String,
    },
    /// It was closed.
    #[error("operation `{name}` was closed: build another one from its definition")]
    Closed {
        /// Its name.
        name: String,
    },
}
