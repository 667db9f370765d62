//! Where a guide stands: everything that one revision of it records.
//!
//! 1. A position is whole. Whoever reads the newest needs none before it.
//! 2. A stage is never both completed and skipped: the later one holds.
//! 3. Numbers of visits are never given twice, also not after a rollback, so that what is done again is told from what was done
//!    before.
//! 4. `live` is there exactly while a stage's body has begun and has not ended.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::replay::Timestamp;

/// The name of a stage.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StageName(String);

impl StageName {
    pub(super) fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq<str> for StageName {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for StageName {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// What a guide is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// It was not begun, or was rolled back.
    Idle,
    /// It waits for a person.
    Waiting,
    /// The body of a stage runs.
    Working,
    /// What the person gave was found wrong, or an operation of the stage cannot go on before somebody does something.
    Blocked,
    /// The body of a stage failed.
    Failed,
    /// It came to its end.
    Completed,
    /// It was given up.
    Cancelled,
    /// What it did is being undone.
    RollingBack,
}

impl Status {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Waiting => "waiting",
            Self::Working => "working",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::RollingBack => "rolling back",
        }
    }

    /// Whether nothing moves it any more.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Something that a check found wrong.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Problem {
    /// The field it concerns, as the flow's author names it.
    pub field: Option<String>,
    /// A code for programs.
    pub code: Option<String>,
    /// A text for people.
    pub text: String,
}

impl From<&str> for Problem {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

/// What the checks of a stage found so far.
#[derive(Debug, Default)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Adds a problem of a field when something holds.
    pub fn when(&mut self, wrong: bool, field: impl Into<String>, text: impl Into<String>) {
        if wrong {
            self.add(Problem {
                field: Some(field.into()),
                code: None,
                text: text.into(),
            });
        }
    }

    /// Adds a problem that has a text only. An empty text is none.
    pub fn say(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.add(text);
        }
    }

    /// Adds a problem.
    pub fn add(&mut self, problem: impl Into<Problem>) {
        self.0.push(problem.into());
    }

    pub(super) fn into_found(self) -> Vec<Problem> {
        self.0
    }
}

impl<P: Into<Problem>> Extend<P> for Problems {
    fn extend<I: IntoIterator<Item = P>>(&mut self, problems: I) {
        self.0.extend(problems.into_iter().map(Into::into));
    }
}

/// Why a stage's body, or a hook, did not come to a good end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    /// What kind of failure it is.
    pub kind: FailingKind,
    /// What it says.
    pub text: String,
    /// Where it lies, if it is at a place: `create[1]/publish`.
    pub at: Vec<String>,
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailingKind {
    /// An error of the body, or of a step in it.
    Error,
    /// It panicked.
    Panicked,
    /// The process ended while it ran.
    Interrupted,
    /// A step cannot go on before somebody does something ([`blocked`](crate::blocked)). The text says what.
    Blocked,
    /// It took longer than the stage's time limit.
    TimedOut,
    /// A flow in it was given up by the person.
    NestedCancelled,
    /// The code does not fit what is recorded of it. That is not recorded: code that fits goes on by itself.
    Diverged,
}

/// Something that happened to a guide, told with the revision that it led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// It began.
    Started,
    /// A stage was entered.
    Entered(StageName),
    /// A stage was checked.
    Checked(StageName),
    /// A stage was left.
    Left(StageName),
    /// A person skipped a stage.
    Skipped(StageName),
    /// A stage was passed over, because its condition does not hold.
    PassedOver(StageName),
    /// The person went back to a stage.
    WentBack(StageName),
    /// The stage's body is tried again.
    Retried(StageName),
    /// The stage's body ended well.
    Done(StageName),
    /// The stage's body failed.
    Failed(StageName),
    /// A step of the stage's body cannot go on before somebody does something.
    Blocked(StageName),
    /// It was let go on.
    Released(StageName),
    /// The person's data changed.
    Edited,
    /// It came to its end.
    Completed,
    /// It was given up.
    Cancelled,
    /// It had come to its end, and goes on.
    Reopened,
    /// What it did begins to be undone.
    RollingBack,
    /// What it did is undone.
    RolledBack,
    /// It goes on with another version of its flow.
    Migrated {
        /// The version that had recorded it.
        from: u32,
        /// The one that it is of now.
        to: u32,
    },
}

/// A place on the way that was walked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stop {
    pub(super) stage: StageName,
    /// Its condition did not hold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) over: bool,
}

/// A body that has begun and has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Visit {
    pub(super) stage: StageName,
    pub(super) number: u32,
    /// The first of the visits that it goes on from: itself, if it begins anew.
    pub(super) first: u32,
    pub(super) entry: Entry,
    /// When its time is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deadline: Option<Timestamp>,
    /// It is tried again by itself, and not before then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) not_before: Option<Timestamp>,
}

/// Steps that are let go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Released {
    /// Their places below the visit.
    pub(super) places: Vec<String>,
    /// What they are given, as JSON.
    pub(super) with: String,
}

/// The visits that a stage has had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Visits {
    /// The number of the last.
    pub(super) last: u32,
    /// The first of those that it went on from.
    pub(super) first: u32,
}

/// Why a stage's body runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The person came to it going forward.
    Forward,
    /// The person came back to it.
    Back,
    /// It is tried again.
    Retry,
}

/// Everything that a revision records, but for the person's data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    pub(super) format: u32,
    /// The flow, of one that is in a stage of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) flow: Option<String>,
    pub(super) version: u32,
    pub(super) fingerprint: u64,
    pub(super) revision: u64,
    pub(super) status: Status,
    pub(super) at: Option<StageName>,
    pub(super) stops: Vec<Stop>,
    pub(super) completed: Vec<StageName>,
    pub(super) skipped: Vec<StageName>,
    pub(super) visits: BTreeMap<StageName, Visits>,
    pub(super) live: Option<Visit>,
    /// Which try of the body it is, of those that it makes by itself.
    #[serde(default)]
    pub(super) attempts: u32,
    pub(super) problems: Vec<Problem>,
    pub(super) failure: Option<Failing>,
    /// Steps of the stage that were blocked and were let go on, as long as its body has not ended well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) released: Option<Released>,
    /// The keys of commands that were obeyed, the newest last, each with the revision that it led to.
    pub(super) answered: Vec<(String, u64)>,
    pub(super) started_at: Option<Timestamp>,
    pub(super) completed_at: Option<Timestamp>,
    pub(super) events: Vec<Event>,
}

/// A position and the person's data: what is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Snapshot<S> {
    pub(super) position: Position,
    pub(super) state: S,
    /// What the body that is under way began with, if it was edited since.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub(super) began: Option<S>,
    /// What the guide began with, if that was recorded by another version of the flow.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub(super) initial: Option<S>,
}

fn none<S>() -> Option<S> {
    None
}

/// The shape in which positions are written.
const FORMAT: u32 = 1;
/// So many keys are remembered.
const KEYS: usize = 64;

impl Position {
    /// Before anything was done.
    pub(super) fn idle(version: u32, fingerprint: u64) -> Self {
        Self {
            format: FORMAT,
            flow: None,
            version,
            fingerprint,
            revision: 0,
            status: Status::Idle,
            at: None,
            stops: Vec::new(),
            completed: Vec::new(),
            skipped: Vec::new(),
            visits: BTreeMap::new(),
            live: None,
            attempts: 0,
            problems: Vec::new(),
            failure: None,
            released: None,
            answered: Vec::new(),
            started_at: None,
            completed_at: None,
            events: Vec::new(),
        }
    }

    /// The next revision: as this one, until it is changed.
    pub(super) fn then(&self) -> Self {
        let mut next = self.clone();
        next.revision += 1;
        next.events.clear();
        next
    }

    /// The stages that were visited, in order. Those that were passed over are not among them.
    pub(super) fn history(&self) -> impl Iterator<Item = &StageName> {
        let visited = self.stops.iter().filter(|stop| !stop.over);
        visited.map(|stop| &stop.stage)
    }

    /// The revision that the command with this key led to.
    pub(super) fn answer_to(&self, key: &str) -> Option<u64> {
        let found = self.answered.iter().find(|(known, _)| known == key);
        found.map(|(_, revision)| *revision)
    }

    // ===== changes =====

    pub(super) fn say(&mut self, event: Event) {
        self.events.push(event);
    }

    /// A command with this key led here.
    pub(super) fn answers(&mut self, key: Option<String>) {
        if let Some(key) = key {
            self.answered.push((key, self.revision));
            let old = self.answered.len().saturating_sub(KEYS);
            self.answered.drain(..old);
        }
    }

    pub(super) fn complete(&mut self, stage: &StageName) {
        self.skipped.retain(|known| known != stage);
        if !self.completed.contains(stage) {
            self.completed.push(stage.clone());
        }
    }

    pub(super) fn skip(&mut self, stage: &StageName) {
        self.completed.retain(|known| known != stage);
        if !self.skipped.contains(stage) {
            self.skipped.push(stage.clone());
        }
    }

    /// Nothing is known any more of how the stage was left.
    pub(super) fn undecide(&mut self, stage: &StageName) {
        self.completed.retain(|known| known != stage);
        self.skipped.retain(|known| known != stage);
    }

    /// Waits for the person, with nothing found wrong.
    pub(super) fn settle(&mut self) {
        self.status = Status::Waiting;
        self.problems.clear();
        self.failure = None;
    }

    /// Stands at this stage from now on, `cap` stops being kept.
    pub(super) fn stop_at(&mut self, stage: &StageName, over: bool, cap: usize) {
        self.stops.push(Stop {
            stage: stage.clone(),
            over,
        });
        let old = self.stops.len().saturating_sub(cap);
        self.stops.drain(..old);
    }

    /// The stage is entered, or tried again: going on from the visits before, or anew. If it `works`, its body begins.
    pub(super) fn visit(&mut self, stage: &StageName, entry: Entry, keeps: bool, works: bool) {
        let visits = self.visits.entry(stage.clone()).or_default();
        visits.last += 1;
        if !keeps || visits.last == 1 {
            visits.first = visits.last;
        }
        if works {
            self.live = Some(Visit {
                stage: stage.clone(),
                number: visits.last,
                first: visits.first,
                entry,
                deadline: None,
                not_before: None,
            });
            self.status = Status::Working;
        }
    }

    /// As before it began, but for the numbers of its visits: the next of each stage begins anew.
    pub(super) fn reset(&mut self) {
        let visits = self.visits.values_mut();
        visits.for_each(|visits| visits.first = visits.last + 1);
        *self = Self {
            revision: self.revision,
            visits: std::mem::take(&mut self.visits),
            answered: std::mem::take(&mut self.answered),
            ..Self::idle(self.version, self.fingerprint)
        };
    }

    pub(super) fn fail(&mut self, failing: Failing) {
        self.live = None;
        self.status = Status::Failed;
        if failing.kind == FailingKind::Blocked {
            self.status = Status::Blocked;
            self.released = None;
        }
        self.failure = Some(failing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_completed_or_skipped_and_never_both() {
        let mut position = Position::idle(1, 0);
        let stage = StageName::new("a");
        position.complete(&stage);
        position.skip(&stage);
        assert_eq!((position.completed.len(), position.skipped.len()), (0, 1));
        position.complete(&stage);
        position.complete(&stage);
        assert_eq!((position.completed.len(), position.skipped.len()), (1, 0));
    }

    // GDE-VAL-01 GDE-VAL-12
    #[test]
    fn an_empty_text_is_no_problem_and_one_in_a_list_is() {
        let mut problems = Problems::default();
        problems.say("");
        problems.extend(Vec::<String>::new());
        problems.when(false, "name", "missing");
        assert_eq!(problems.into_found(), []);
        let mut problems = Problems::default();
        problems.extend([""]);
        problems.say("second");
        let texts: Vec<_> = problems
            .into_found()
            .into_iter()
            .map(|found| found.text)
            .collect();
        assert_eq!(texts, ["", "second"]);
    }

    #[test]
    fn a_visits_number_is_never_given_twice_and_what_it_goes_on_from_is_known() {
        let mut position = Position::idle(1, 0);
        let stage = StageName::new("a");
        let mut visit = |keeps| {
            position.visit(&stage, Entry::Forward, keeps, true);
            position = position.then();
            let live = position.live.clone().unwrap();
            (live.number, live.first)
        };
        assert_eq!(visit(true), (1, 1));
        assert_eq!(visit(true), (2, 1));
        assert_eq!(visit(false), (3, 3));
        assert_eq!(visit(true), (4, 3));
    }

    #[test]
    fn only_the_newest_keys_are_remembered() {
        let mut position = Position::idle(1, 0);
        for revision in 1..=70u64 {
            position = position.then();
            position.answers(Some(revision.to_string()));
        }
        assert_eq!(position.answer_to("6"), None);
        assert_eq!(position.answer_to("7"), Some(7));
        assert_eq!(position.answer_to("70"), Some(70));
    }
}
