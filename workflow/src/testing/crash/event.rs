//! What happens in a process, and how it ends there, in words.

use std::fmt;

use super::life::RUN;
use crate::replay::{AttemptState, Body, Location, Record, RunId};

/// Something that happens in a process, at which it may end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// The workflow and the run that it happens in; of a message, those that it is sent to.
    pub(super) workflow: String,
    pub(super) run: RunId,
    /// Where, first what happened last.
    pub(super) places: Vec<Location>,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// Something is written, and these are its words.
    Write(String),
    /// A body is about to begin.
    Begin(Attempted),
    /// A body waits, for the so-manieth time.
    Wait(Attempted, u32),
    /// A body has ended, and nothing of that is written.
    End(Attempted),
}

/// Which attempt of a body, and whether it is that of the undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attempted {
    pub(super) attempt: u32,
    pub(super) undo: bool,
}

/// How the process ends at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Before it was written, or where the body is.
    Before,
    /// After it was written, and before anybody was told.
    After,
}

impl Event {
    /// The ways in which a process may end here.
    pub(super) fn cuts(&self) -> &'static [Cut] {
        match self.what {
            What::Write(_) => &[Cut::Before, Cut::After],
            _ => &[Cut::Before],
        }
    }

    /// What a crash there is, for people.
    pub(super) fn told(&self, cut: Cut) -> String {
        let at = self.places.first().map(ToString::to_string);
        let at = at.unwrap_or_default();
        let of_run = if self.run.as_str() == RUN || self.run.as_str().is_empty() {
            String::new()
        } else {
            format!(" of `{}`", self.run)
        };
        let body = |body: &Attempted| {
            let of = if body.undo { "the undo of " } else { "" };
            format!("attempt {} of {of}`{at}`{of_run}", body.attempt)
        };
        match (&self.what, cut) {
            (What::Write(what), Cut::Before) => {
                format!("just before it was written{of_run} that {what}")
            }
            (What::Write(what), Cut::After) => {
                format!(
                    "just after it was written{of_run} that {what}, and before anybody was told"
                )
            }
            (What::Begin(of), _) => format!("where the body of {} was about to begin", body(of)),
            (What::Wait(of, 1), _) => format!("within the body of {}, where it waited", body(of)),
            (What::Wait(of, number), _) => format!(
                "within the body of {}, where it waited for time {number}",
                body(of)
            ),
            (What::End(of), _) => format!(
                "where the body of {} had ended, and nothing of that was written",
                body(of)
            ),
        }
    }
}

/// A step in a run, or its undo.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) run: RunId,
    pub(super) location: Location,
    pub(super) undo: bool,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = if self.undo { "the undo of " } else { "" };
        write!(f, "{of}`{}`", self.location)
    }
}

/// What is about to be written.
pub(super) struct Told {
    pub(super) of: Option<(RunId, String)>,
    pub(super) places: Vec<Location>,
    pub(super) what: String,
}

/// Where a record is, and what it says; nothing of those that ride along with others.
pub(super) fn said(
    record: &Record,
    armed: &impl Fn(u64) -> Option<Location>,
) -> (Option<Location>, Option<String>) {
    let at = &record.location;
    let here = || (!at.is_root()).then(|| at.clone());
    let words = match &record.body {
        Body::Begun(_) => "the run begins".to_owned(),
        Body::Waiting(_) => format!("`{at}` waits"),
        Body::Attempt {
            number,
            state: AttemptState::Started,
        } => format!("attempt {number} of `{at}` begins"),
        Body::Attempt { number, .. } => format!("attempt {number} of `{at}` failed"),
        Body::Ended(_) => format!("`{at}` ended"),
        Body::Taken(_) => format!("`{at}` took a message"),
        Body::Decided { branch } => format!("`{branch}` won `{at}`"),
        Body::Carried { next, .. } => format!("`{at}` goes on with iteration {next}"),
        Body::Pin { .. } => format!("`{at}` has its version"),
        Body::State { revision, .. } => format!("its state has revision {revision}"),
        Body::Unwinding { .. } => "the run is to be undone".to_owned(),
        Body::Undone {
            undoes, outcome, ..
        } => {
            let of = armed(*undoes);
            let at = of.as_ref().map(ToString::to_string).unwrap_or_default();
            let said = match outcome {
                Ok(()) => format!("`{at}` was undone"),
                Err(_) => format!("the undo of `{at}` failed"),
            };
            return (of, Some(said));
        }
        Body::Finished(_) => "the run ended".to_owned(),
        Body::Armed { location, .. } => return (Some(location.clone()), None),
        _ => return (here(), None),
    };
    (here(), Some(words))
}
