//! What nodes look like, in every language alike.

use super::drawing::Class;
use super::state::State;
use crate::replay::Kind;

/// What a node is painted as: by what it is, or by how it stands with it in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Ends,
    Plain,
    Block,
    Effect,
    Wait,
    Fact,
    Gone,
    Still,
    Active,
    Done,
    Failed,
    Undone,
}

impl Look {
    pub(super) const ALL: [Self; 12] = [
        Self::Ends,
        Self::Plain,
        Self::Block,
        Self::Effect,
        Self::Wait,
        Self::Fact,
        Self::Gone,
        Self::Still,
        Self::Active,
        Self::Done,
        Self::Failed,
        Self::Undone,
    ];

    pub(super) fn of_class(class: Class) -> Self {
        match class {
            Class::Start | Class::End => Self::Ends,
            Class::Choice | Class::After(_) => Self::Plain,
            Class::Channel => Self::Wait,
            Class::Site(kind) => match kind {
                Kind::Join | Kind::Race | Kind::JoinAll | Kind::Loop | Kind::Attempt => Self::Block,
                Kind::Sleep | Kind::Recv => Self::Wait,
                Kind::Removed => Self::Gone,
                Kind::Now
                | Kind::Derived
                | Kind::Version
                | Kind::Checkpoint
                | Kind::Settle
                | Kind::Rollback => Self::Fact,
                _ => Self::Effect,
            },
        }
    }

    pub(super) fn of_state(state: State) -> Self {
        match state {
            State::NotReached | State::Lost | State::Skipped | State::Untold => Self::Still,
            State::Waiting | State::Retrying { .. } | State::Running | State::Undoing { .. } => {
                Self::Active
            }
            State::Done => Self::Done,
            State::Failed | State::CutOff => Self::Failed,
            State::Undone | State::UndoSkipped => Self::Undone,
        }
    }

    /// The word for it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Ends => "ends",
            Self::Plain => "plain",
            Self::Block => "block",
            Self::Effect => "effect",
            Self::Wait => "wait",
            Self::Fact => "fact",
            Self::Gone => "gone",
            Self::Still => "still",
            Self::Active => "active",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Undone => "undone",
        }
    }

    /// The colours of what is within, of the line around it, and of the text: readable on a light page and on a dark one.
    pub(super) fn colours(self) -> [&'static str; 3] {
        match self {
            Self::Ends => ["#1f2937", "#6b7280", "#ffffff"],
            Self::Plain => ["#ffffff", "#6b7280", "#111827"],
            Self::Block => ["#eef2ff", "#6366f1", "#111827"],
            Self::Effect => ["#ecfdf5", "#059669", "#111827"],
            Self::Wait => ["#fffbeb", "#d97706", "#111827"],
            Self::Fact => ["#f3f4f6", "#6b7280", "#111827"],
            Self::Gone | Self::Still => ["#ffffff", "#d1d5db", "#6b7280"],
            Self::Active => ["#fde68a", "#b45309", "#111827"],
            Self::Done => ["#a7f3d0", "#047857", "#111827"],
            Self::Failed => ["#fecaca", "#b91c1c", "#111827"],
            Self::Undone => ["#ddd6fe", "#6d28d9", "#111827"],
        }
    }

    pub(super) fn is_dashed(self) -> bool {
        self == Self::Gone
    }

    pub(super) fn is_bold(self) -> bool {
        self == Self::Active
    }
}
