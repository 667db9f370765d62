//! What a person who waits is to be shown: a pure function of the snapshot and the clock.

use std::time::Duration;

use super::Snapshot;
use crate::replay::Timestamp;

/// What a person who waits for an operation is to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Feedback {
    /// What to show.
    pub indicator: Indicator,
    /// How long it has taken so far, or took; zero when it never began.
    pub elapsed: Duration,
}

/// An indicator that fits the time that a person has waited.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Indicator {
    /// Nothing: it is not running, or has been for less than 200 ms.
    None,
    /// That something goes on: for less than a second.
    Activity,
    /// How far it is in per cent, from 0 to 100: from a second on, when its progress has a total.
    Determinate {
        /// Per cent.
        percent: u8,
    },
    /// That it takes a while: from a second on.
    Indeterminate,
    /// What it does, and how long it has: from 10 seconds on.
    Status {
        /// What it does: its progress's message, or else what it waits for.
        message: Option<String>,
    },
}

/// What a person who waits for this operation is to be shown at `now`, by the operation's clock.
///
/// Nothing but the arguments goes in, so a user interface may call it as often as it draws.
pub fn feedback(snapshot: &Snapshot, now: Timestamp) -> Feedback {
    let until = snapshot.completed_at().unwrap_or(now);
    let elapsed = snapshot
        .started_at()
        .map_or(Duration::ZERO, |start| until.since(start));
    let indicator = match elapsed {
        _ if !snapshot.status().is_running() => Indicator::None,
        elapsed if elapsed < Duration::from_millis(200) => Indicator::None,
        elapsed if elapsed < Duration::from_secs(1) => Indicator::Activity,
        elapsed => lasting(snapshot, elapsed),
    };
    Feedback { indicator, elapsed }
}

fn lasting(snapshot: &Snapshot, elapsed: Duration) -> Indicator {
    let progress = snapshot.progress();
    if let Some(percent) = progress.and_then(super::Progress::percent) {
        return Indicator::Determinate { percent };
    }
    if elapsed < Duration::from_secs(10) {
        return Indicator::Indeterminate;
    }
    let message = progress.and_then(|progress| progress.message.as_deref());
    Indicator::Status {
        message: message.or(snapshot.reason()).map(str::to_owned),
    }
}
