//! How it stands with a site in a run.

use std::fmt;

use crate::replay::{Kind, Location, Site};

/// How it stands with a site in a run, as far as the run's history tells.
///
/// ```
/// use workflow::graph::State;
///
/// assert_eq!(State::Retrying { attempt: 2 }.to_string(), "retrying, attempt 2");
/// assert!(State::Waiting.is_active() && !State::Done.is_active());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// The run has not come here.
    NotReached,
    /// It leaves no record, so the history does not tell: `uuid!` and `random!`.
    Untold,
    /// The run went past it without doing it: an arm that was not taken, a loop without an iteration.
    Skipped,
    /// It stands in a branch of a race that another one has won.
    Lost,
    /// It waits for a time, a message or a child.
    Waiting,
    /// An attempt failed, and this one follows.
    Retrying {
        /// Which attempt, from 1.
        attempt: u32,
    },
    /// It was begun. Whether its body runs at this moment the history does not tell.
    Running,
    /// It ended with a value.
    Done,
    /// It ended with a failure, which the code may have caught.
    Failed,
    /// It was under way when the run's code ended.
    CutOff,
    /// An undo of its effect failed, and this attempt follows.
    Undoing {
        /// Which attempt, from 1.
        attempt: u32,
    },
    /// Its effect was undone.
    Undone,
    /// An operator skipped the undo: its effect stands.
    UndoSkipped,
}

impl State {
    /// The word for it in pictures.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotReached => "not reached",
            Self::Untold => "not recorded",
            Self::Skipped => "skipped",
            Self::Lost => "lost",
            Self::Waiting => "waiting",
            Self::Retrying { .. } => "retrying",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::CutOff => "cut off",
            Self::Undoing { .. } => "undoing",
            Self::Undone => "undone",
            Self::UndoSkipped => "undo skipped",
        }
    }

    /// Whether something is still to come of it.
    pub const fn is_active(self) -> bool {
        matches!(
            self,
            Self::Waiting | Self::Retrying { .. } | Self::Running | Self::Undoing { .. }
        )
    }

    /// Which one is told of a site that is at several places of a run at once: what is to be looked at first.
    pub(super) const fn weight(self) -> u8 {
        match self {
            Self::NotReached => 0,
            Self::Untold => 1,
            Self::Skipped => 2,
            Self::Lost => 3,
            Self::Done => 4,
            Self::Undone => 5,
            Self::UndoSkipped => 6,
            Self::CutOff => 7,
            Self::Failed => 8,
            Self::Running => 9,
            Self::Waiting => 10,
            Self::Retrying { .. } => 11,
            Self::Undoing { .. } => 12,
        }
    }
}

/// `retrying, attempt 2`
impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            Self::Retrying { attempt } | Self::Undoing { attempt } => {
                write!(f, ", attempt {attempt}")
            }
            _ => Ok(()),
        }
    }
}

/// A site in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SiteState {
    /// The site.
    pub site: &'static Site,
    /// What it does. Of a call the run has told what it is.
    pub kind: Kind,
    /// How it stands with it. Of several places in the run, that at which there is most to be looked at.
    pub state: State,
    /// How many times it ended with a value; of a block or a fragment how many times it was entered, of a loop how many iterations
    /// were begun, of a `join_all!` how many items.
    pub times: u64,
    /// How many times it ended with a failure.
    pub failures: u64,
    /// Where in the run it is, in the order of locations, and how it stands with it there. Empty for what records nothing of
    /// its own.
    pub places: Vec<(Location, State)>,
}

/// `done 3 times`
impl fmt::Display for SiteState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.state {
            State::NotReached | State::Untold => return Ok(()),
            state => write!(f, "{state}")?,
        }
        let counted = match self.kind {
            Kind::Loop => Some("iteration"),
            Kind::JoinAll => Some("item"),
            _ => None,
        };
        if let Some(word) = counted {
            let s = if self.times == 1 { "" } else { "s" };
            return write!(f, ", {} {word}{s}", self.times);
        }
        if matches!(
            self.kind,
            Kind::Join | Kind::Race | Kind::Attempt | Kind::Fragment
        ) {
            return match self.times {
                0 | 1 => Ok(()),
                times => write!(f, ", entered {times} times"),
            };
        }
        let mut says = |state: State, times: u64, word: &str| match times {
            0 => Ok(()),
            _ if self.state != state => write!(f, ", {times} {word}"),
            1 => Ok(()),
            _ => write!(f, " {times} times"),
        };
        says(State::Done, self.times, "done")?;
        says(State::Failed, self.failures, "failed")
    }
}
