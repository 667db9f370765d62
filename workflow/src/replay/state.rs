//! What a run is doing, as its row tells it.

use std::fmt;

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RunState {
    /// Stored, not yet driven.
    Pending,
    /// Being driven, or cut off while it was and to be driven again.
    Running,
    /// Not driven: it wakes at a deadline, on a message, or on both.
    Waiting,
    /// Its undo entries are being walked.
    RollingBack,
    /// It cannot go on as things are; its history is untouched. The [`ParkReason`] says what wakes it.
    Parked,
    /// Ended with a value. Final.
    Completed,
    /// Ended with a failure. Final.
    Failed,
    /// Ended by being cancelled. Final.
    Cancelled,
}

impl RunState {
    /// All states, in the order of a run's life.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Running,
        Self::Waiting,
        Self::RollingBack,
        Self::Parked,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// True for the three states that never change again.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// True for a run that was in the middle of something: recovered at open.
    pub const fn is_active(self) -> bool {
        matches!(self, Self::Pending | Self::Running | Self::RollingBack)
    }

    /// The word for it in reports and over HTTP.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::RollingBack => "rolling_back",
            Self::Parked => "parked",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Why a run is parked, and so what wakes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParkReason {
    /// The code does not fit the history. Wakes with other code.
    Diverged,
    /// A recorded value or the input does not decode into the type the code has now. Wakes with other code.
    Decode,
    /// The run was pinned to a version that the code does not support. Wakes with other code.
    Version,
    /// No workflow of that name is registered. Wakes when one is.
    Unregistered,
    /// The workflow's own code panicked. Wakes with other code or by an operator.
    Panicked,
    /// The workflow awaits something that is not durable. Wakes with other code or by an operator.
    NotDurable,
    /// An undo keeps failing. Wakes by an operator.
    UndoFailed,
    /// An undo entry has no function in this code. Wakes with other code or by an operator.
    UndoMissing,
    /// The workflow's result cannot be encoded. Wakes with other code or by an operator.
    Encode,
    /// A record is of a kind this program does not know. Wakes with a newer program.
    NewerFormat,
    /// The store failed. Wakes by itself.
    Storage,
}

impl ParkReason {
    /// True when it is an undo that cannot go on.
    pub(crate) const fn is_of_undo(self) -> bool {
        matches!(self, Self::UndoFailed | Self::UndoMissing)
    }

    /// True when another build of the program is worth a try.
    pub const fn wakes_with_other_code(self) -> bool {
        !matches!(self, Self::UndoFailed | Self::Storage)
    }

    /// The word for it in reports and over HTTP.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Diverged => "diverged",
            Self::Decode => "decode",
            Self::Version => "version",
            Self::Unregistered => "unregistered",
            Self::Panicked => "panicked",
            Self::NotDurable => "not_durable",
            Self::UndoFailed => "undo_failed",
            Self::UndoMissing => "undo_missing",
            Self::Encode => "encode",
            Self::NewerFormat => "newer_format",
            Self::Storage => "storage",
        }
    }
}

impl fmt::Display for ParkReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
