//! What is to be seen of an operation: one value, and never changed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::failing::StoredFailure;
use crate::context::Progress;
use crate::replay::{Failure, FailureKind, Location, Timestamp};

/// What an operation looked like at one revision. Cheap to clone, and never changed: a change makes another one.
///
/// It is also the operation's record: it serialises (as JSON, say), and
/// [`Operation::restore`](super::Operation::restore) takes it back in a later process.
#[derive(Clone, PartialEq)]
pub struct Snapshot(Arc<Record>);

/// What an operation is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// It has not been run, or was reset.
    Idle,
    /// It was asked to run and has not begun: in a [`Plan`](super::Plan), it waits for what
    /// [`Snapshot::reason`] says.
    Queued,
    /// Its work is running: the first attempt, or any that has just waited.
    Running,
    /// Its work is running again after a failed attempt.
    Retrying,
    /// It waits: for its next attempt ([`Snapshot::retry_at`]), or within its work for what [`Snapshot::reason`] says.
    Waiting,
    /// Its work said that it cannot go on before somebody does something; [`Snapshot::reason`] says what.
    Blocked,
    /// It has its result.
    Succeeded,
    /// Its attempts are used up; [`Snapshot::failure`] says why.
    Failed,
    /// It was cancelled; [`Snapshot::reason`] says why.
    Cancelled,
    /// It was passed over; [`Snapshot::reason`] says why, if there was a cause.
    Skipped,
    /// Its undos are running.
    RollingBack,
    /// All that it did was undone.
    RolledBack,
    /// An undo failed, and [`Snapshot::failure`] says why; rolling back again goes on from there.
    RollbackFailed,
}

impl Status {
    /// Whether something is going on: it cannot be run, skipped or restored now.
    pub const fn is_in_flight(self) -> bool {
        self.is_running() || matches!(self, Self::RollingBack)
    }

    /// Whether it is on its way to a result: queued, running, retrying or waiting.
    pub const fn is_running(self) -> bool {
        matches!(
            self,
            Self::Queued | Self::Running | Self::Retrying | Self::Waiting
        )
    }

    /// The word for it in messages.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Retrying => "retrying",
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
            Self::RollingBack => "rolling back",
            Self::RolledBack => "rolled back",
            Self::RollbackFailed => "rollback failed",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Whether an operation's own undo is still to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Undo {
    /// It has none, or its work never began.
    #[default]
    None,
    /// Its work began, so a rollback runs it.
    Owed,
    /// It has been run.
    Done,
    /// It is owed, and this code has none for it: of a step of a guided flow that the code no longer has.
    Impossible,
}

/// One line of an operation's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogLine {
    /// When it was written, by the operation's clock.
    pub at: Timestamp,
    /// By which attempt, from 1.
    pub attempt: u32,
    /// What was written.
    pub text: String,
}

/// The fields of a snapshot, as they are written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) name: String,
    #[serde(default)]
    pub(super) title: Option<String>,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) revision: u64,
    pub(super) status: Status,
    #[serde(default)]
    pub(super) reason: Option<String>,
    #[serde(default)]
    pub(super) progress: Option<Progress>,
    pub(super) attempt: u32,
    #[serde(default)]
    pub(super) started_at: Option<Timestamp>,
    #[serde(default)]
    pub(super) completed_at: Option<Timestamp>,
    #[serde(default)]
    pub(super) retry_at: Option<Timestamp>,
    #[serde(default)]
    pub(super) result: Option<String>,
    #[serde(default, with = "StoredFailure")]
    pub(super) failure: Option<Failure>,
    #[serde(default)]
    pub(super) released: Option<String>,
    #[serde(default)]
    pub(super) undo: Undo,
    pub(super) seed: u64,
    #[serde(default)]
    pub(super) generation: u32,
    #[serde(default)]
    pub(super) children: Vec<Snapshot>,
    #[serde(default)]
    pub(super) earlier: Vec<Snapshot>,
    #[serde(default, with = "shared_lines")]
    pub(super) logs: Vec<Arc<LogLine>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) stale: bool,
}

impl Snapshot {
    pub(super) fn new(record: Record) -> Self {
        Self(Arc::new(record))
    }

    /// Its fields, to be changed by the one who shows it. Those who look at it go on seeing what they saw.
    pub(super) fn record_mut(&mut self) -> &mut Record {
        Arc::make_mut(&mut self.0)
    }

    pub(super) fn record(&self) -> &Record {
        &self.0
    }

    /// The operation's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What a person is shown as its name: its title, or else its name.
    pub fn title(&self) -> &str {
        self.0.title.as_deref().unwrap_or(&self.0.name)
    }

    /// What it does, in a sentence.
    pub fn description(&self) -> Option<&str> {
        self.0.description.as_deref()
    }

    /// What its definition says beside that.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.0.metadata
    }

    /// Counts the changes that were shown: of two snapshots of an operation, the one with the higher revision is the later.
    pub fn revision(&self) -> u64 {
        self.0.revision
    }

    /// What it is doing.
    pub fn status(&self) -> Status {
        self.0.status
    }

    /// Why it has its status, where there is something to say: what it waits for or is blocked by, why it was cancelled or
    /// skipped.
    pub fn reason(&self) -> Option<&str> {
        self.0.reason.as_deref()
    }

    /// How far it is. What a failed attempt reported stays until another one reports.
    pub fn progress(&self) -> Option<&Progress> {
        self.0.progress.as_ref()
    }

    /// Whether its progress is what was written last before its process ended: it may have come further. So it can be of a step of a
    /// guided flow, until another attempt begins.
    pub fn is_stale(&self) -> bool {
        self.0.stale
    }

    /// Which attempt it is in, or ended with, from 1; 0 before the first.
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// When its first attempt began, by the operation's clock.
    pub fn started_at(&self) -> Option<Timestamp> {
        self.0.started_at
    }

    /// When it succeeded, failed, was cancelled or skipped.
    pub fn completed_at(&self) -> Option<Timestamp> {
        self.0.completed_at
    }

    /// When the next attempt begins, while it waits for that.
    pub fn retry_at(&self) -> Option<Timestamp> {
        self.0.retry_at
    }

    /// Its result as JSON, once it has succeeded.
    pub fn result_json(&self) -> Option<&str> {
        self.0.result.as_deref()
    }

    /// Its result; nothing when there is none, or none of this type.
    pub fn result<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.0.result.as_deref()?).ok()
    }

    /// Why it failed, why its last attempt failed while it waits for the next, or why its undo failed.
    pub fn failure(&self) -> Option<&Failure> {
        self.0.failure.as_ref()
    }

    /// Whether its own undo is still to be run.
    pub fn undo(&self) -> Undo {
        self.0.undo
    }

    /// Whether a rollback would run anything: its own undo, or one below it.
    pub fn owes_undo(&self) -> bool {
        self.0.undo == Undo::Owed
            || self
                .children()
                .iter()
                .chain(self.earlier())
                .any(Self::owes_undo)
    }

    /// The operations that its last attempt ran, in the order in which they began.
    pub fn children(&self) -> &[Snapshot] {
        &self.0.children
    }

    /// Operations that earlier attempts ran and whose undo is still owed, the oldest first.
    pub fn earlier(&self) -> &[Snapshot] {
        &self.0.earlier
    }

    /// The last lines of its log, of all attempts, the oldest first.
    pub fn logs(&self) -> impl ExactSizeIterator<Item = &LogLine> {
        self.0.logs.iter().map(|line| &**line)
    }

    /// The record of an operation whose process ended while it was in flight, as [`Operation::restore`](super::Operation::restore)
    /// takes it: failed at `now`, kind [`FailureKind::Interrupted`]; one that was rolling back has a rollback that failed.
    /// So have its children. A record that is not in flight is given back as it is.
    #[must_use]
    pub fn interrupted(&self, now: Timestamp) -> Self {
        self.interrupted_at(&Location::root(), now)
    }

    fn interrupted_at(&self, parent: &Location, now: Timestamp) -> Self {
        let location = parent.site(&self.0.name);
        let mut record = Record::clone(&self.0);
        let below = record.children.iter_mut().chain(&mut record.earlier);
        below.for_each(|child| *child = child.interrupted_at(&location, now));
        if record.status.is_in_flight() {
            let failure = Failure::new(
                FailureKind::Interrupted,
                location,
                format!(
                    "its process ended while it was {}, so what it did last is not known",
                    record.status
                ),
            );
            record.failure = Some(failure.with_attempts(record.attempt));
            if record.status == Status::RollingBack {
                record.status = Status::RollbackFailed;
            } else {
                record.status = Status::Failed;
                record.completed_at = Some(now);
            }
            record.reason = None;
            record.retry_at = None;
        }
        Self::new(record)
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Snapshot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Record::deserialize(deserializer).map(Self::new)
    }
}

/// Lines are shared between the snapshots that show them, and written one by one.
mod shared_lines {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::LogLine;

    pub(super) fn serialize<S: Serializer>(
        lines: &[Arc<LogLine>],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(lines.iter().map(|line| &**line))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Arc<LogLine>>, D::Error> {
        let lines = Vec::<LogLine>::deserialize(deserializer)?;
        Ok(lines.into_iter().map(Arc::new).collect())
    }
}
