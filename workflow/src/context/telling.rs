//! What a step's body says of itself while it runs: for whoever is shown the run, and not recorded.

use serde::{Deserialize, Serialize};

use crate::replay::{Failure, Location, Timestamp};

/// How far the work is, in units of its own: files, bytes, steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// How much is done.
    pub current: i64,
    /// How much there is, where that is known.
    pub total: Option<i64>,
    /// What is being done.
    pub message: Option<String>,
}

impl Progress {
    /// So much is done, of an amount that is not known.
    pub const fn new(current: i64) -> Self {
        Self {
            current,
            total: None,
            message: None,
        }
    }

    /// The same, of so much.
    #[must_use]
    pub const fn of(mut self, total: i64) -> Self {
        self.total = Some(total);
        self
    }

    /// The same, with what is being done.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// How much is done in per cent, rounded, from 0 to 100; nothing without a total above 0.
    ///
    /// ```
    /// use workflow::operation::Progress;
    ///
    /// assert_eq!(Progress::new(1).of(3).percent(), Some(33));
    /// assert_eq!(Progress::new(12).of(10).percent(), Some(100));
    /// assert_eq!(Progress::new(12).percent(), None);
    /// ```
    pub fn percent(&self) -> Option<u8> {
        let total = i128::from(self.total.filter(|total| *total > 0)?);
        let done = i128::from(self.current).clamp(0, total);
        u8::try_from((done * 200 + total) / (total * 2)).ok()
    }
}

/// What is to be seen of a step that is under way.
#[derive(Debug)]
pub enum News<'n> {
    /// The code came to it. What it does begins when it may.
    Issued,
    /// An attempt begins: which, from 1.
    Began(u32),
    /// An attempt failed, and another one follows.
    Again {
        /// How it failed.
        failure: &'n Failure,
        /// When the next one begins.
        at: Timestamp,
    },
    /// It has its outcome, and that is durable.
    Ended(Result<(), &'n Failure>),
    /// It was given up before that.
    Dropped,
    /// It says how far it is.
    Progress(Progress),
    /// It says something.
    Logged(String),
    /// It waits for this within its body, or no longer waits for anything.
    Waits(Option<String>),
}

/// Who watches the steps of a run.
pub trait Watching: Send + Sync {
    /// There is something to be seen of the step there. It is told from wherever the step runs, and must not call user code.
    fn tell(&self, at: &Location, news: News<'_>);

    /// What the step there was released with, as JSON, if somebody let it go on after it was blocked.
    fn released(&self, at: &Location) -> Option<String>;
}
