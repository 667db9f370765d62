//! What a history says of each location: what is there, from when to when, and how it went.

use std::collections::HashMap;
use std::time::Duration;

use workflow::replay::{AttemptState, Body, Opened, Segment, Waiting};
use workflow::{History, Location, Timestamp};

/// A location of a run.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) location: Location,
    /// The last segment, as it is written.
    pub(crate) name: String,
    /// What it is, as far as records say.
    pub(crate) kind: &'static str,
    pub(crate) state: State,
    pub(crate) began: Timestamp,
    /// The last that was heard of it.
    pub(crate) last: Timestamp,
    /// Whether it goes on, or something under it does.
    pub(crate) goes_on: bool,
    pub(crate) attempts: u32,
    /// What else is to be said: who won, how it failed, until when it waits.
    pub(crate) note: String,
    /// How deep it lies, from 0.
    pub(crate) depth: usize,
    /// Those that lie right under it: branches in their declared order, others in the order in which they came.
    pub(crate) under: Vec<usize>,
    /// The branches, in their declared order.
    branches: Vec<String>,
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It has no outcome of its own: others lie under it.
    Open,
    Done,
    Failed,
    Waiting,
    /// An attempt failed, and another one follows.
    Retrying,
    Undone,
}

impl State {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Open => "",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Waiting => "waiting",
            Self::Retrying => "retrying",
            Self::Undone => "undone",
        }
    }
}

impl Span {
    pub(crate) fn took(&self) -> Duration {
        self.last.since(self.began)
    }

    /// Whether others lie under it, whatever it is itself.
    pub(crate) fn is_scope(&self) -> bool {
        !self.under.is_empty()
    }
}

/// The locations of a run as a forest.
#[derive(Debug)]
pub(crate) struct Spans {
    pub(crate) all: Vec<Span>,
    /// Those that lie in the body of the workflow itself.
    pub(crate) roots: Vec<usize>,
    pub(crate) began: Timestamp,
    pub(crate) last: Timestamp,
}

impl Spans {
    pub(crate) fn of(history: &History) -> Self {
        let records = history.records();
        let began = records.first().map(|record| record.at).unwrap_or_default();
        let mut spans = Self {
            all: Vec::new(),
            roots: Vec::new(),
            began,
            last: records.last().map_or(began, |record| record.at),
        };
        let mut known = HashMap::new();
        let mut armed = HashMap::new();
        for record in records {
            match &record.body {
                Body::Armed {
                    number, location, ..
                } => {
                    armed.insert(*number, location);
                    continue;
                }
                Body::Undone {
                    undoes,
                    outcome,
                    skipped,
                    ..
                } => {
                    let at = armed.get(undoes).and_then(|location| known.get(*location));
                    let span = at.and_then(|at: &usize| spans.all.get_mut(*at));
                    if let Some(span) = span {
                        match (skipped, outcome) {
                            (Some(why), _) => span.note = format!("undo skipped: {why}"),
                            (None, Ok(())) => span.state = State::Undone,
                            (None, Err(why)) => {
                                span.note = format!("undo failed: {}", crate::shown::failure(why));
                            }
                        }
                    }
                    continue;
                }
                Body::State { .. } => continue,
                _ => {}
            }
            let own = |segment| matches!(segment, Segment::Site(name) | Segment::Branch(name) if name.starts_with('\0'));
            if record.location.is_root() || record.location.segments().any(own) {
                continue;
            }
            let at = spans.place(&record.location, record.at, &mut known);
            if let Some(span) = spans.all.get_mut(at) {
                span.take(&record.body, record.at);
            }
        }
        spans.widen();
        spans.order();
        spans
    }

    /// The span of a location, made with those above it where it is new.
    fn place(
        &mut self,
        location: &Location,
        at: Timestamp,
        known: &mut HashMap<Location, usize>,
    ) -> usize {
        let mut here = Location::root();
        let mut above = None;
        for (depth, segment) in location.segments().enumerate() {
            here = here.child(segment);
            let index = *known.entry(here.clone()).or_insert_with(|| {
                let index = self.all.len();
                let (name, kind) = match segment {
                    Segment::Site(name) => (name.to_owned(), ""),
                    Segment::Branch(name) => (name.to_owned(), "branch"),
                    Segment::Iter(number) => (format!("[{number}]"), "item"),
                    Segment::Key { key, occurrence: 0 } => (format!("[{key}]"), "item"),
                    Segment::Key { key, occurrence } => (format!("[{key}#{occurrence}]"), "item"),
                };
                self.all.push(Span {
                    location: here.clone(),
                    name,
                    kind,
                    state: State::Open,
                    began: at,
                    last: at,
                    goes_on: false,
                    attempts: 0,
                    note: String::new(),
                    depth,
                    under: Vec::new(),
                    branches: Vec::new(),
                });
                match above.and_then(|above: usize| self.all.get_mut(above)) {
                    Some(span) => span.under.push(index),
                    None => self.roots.push(index),
                }
                index
            });
            above = Some(index);
        }
        // A location that is not the root has a segment.
        above.unwrap_or_default()
    }

    /// What lies under something is a part of it. Those above come before those under them.
    fn widen(&mut self) {
        for at in (0..self.all.len()).rev() {
            if let Some(span) = self.all.get_mut(at) {
                span.goes_on = matches!(span.state, State::Waiting | State::Retrying);
            }
            let under = self.all.get(at).map(|span| span.under.clone());
            for below in under.unwrap_or_default() {
                let ends = self.all.get(below);
                let ends = ends.map(|below| (below.began, below.last, below.goes_on));
                if let (Some(span), Some((began, last, goes_on))) = (self.all.get_mut(at), ends) {
                    span.began = span.began.min(began);
                    span.last = span.last.max(last);
                    span.goes_on |= goes_on;
                }
            }
        }
    }

    /// The first branch that has a record need not be the first one.
    fn order(&mut self) {
        for at in 0..self.all.len() {
            let Some(span) = self.all.get_mut(at) else {
                continue;
            };
            let (branches, mut under) = (
                std::mem::take(&mut span.branches),
                std::mem::take(&mut span.under),
            );
            under.sort_by_key(|below| {
                let name = self.all.get(*below).map(|below| &below.name);
                branches.iter().position(|branch| Some(branch) == name)
            });
            if let Some(span) = self.all.get_mut(at) {
                span.under = under;
            }
        }
    }

    /// Every span down to a depth, those above first.
    pub(crate) fn walk(&self, depth: Option<u32>) -> Vec<&Span> {
        let mut found = Vec::new();
        let mut left: Vec<_> = self.roots.iter().rev().copied().collect();
        while let Some(span) = left.pop().and_then(|at| self.all.get(at)) {
            found.push(span);
            if depth.is_none_or(|depth| span.depth + 1 < depth as usize) {
                left.extend(span.under.iter().rev());
            }
        }
        found
    }
}

impl Span {
    fn take(&mut self, body: &Body, at: Timestamp) {
        self.last = self.last.max(at);
        match body {
            Body::Opened(opened) => {
                if let Opened::Join(branches) | Opened::Race(branches) = opened {
                    self.branches.clone_from(branches);
                }
                self.kind = match opened {
                    Opened::Join(_) => "join",
                    Opened::Race(_) => "race",
                    Opened::JoinAll(_) => "join_all",
                    Opened::Carry(_) => "loop",
                    Opened::Stage { .. } => "stage",
                };
            }
            Body::Waiting(waiting) => {
                self.state = State::Waiting;
                match waiting {
                    Waiting::Sleep { until } => {
                        self.kind = "sleep";
                        self.note = format!("until {}", crate::when::instant(*until));
                    }
                    Waiting::Recv { channels, .. } => {
                        self.kind = "recv";
                        self.note =
                            format!("for {}", channels.as_deref().unwrap_or_default().join(", "));
                    }
                    Waiting::Child { id, detached } => {
                        self.kind = "child";
                        self.note = id.to_string();
                        if *detached {
                            self.state = State::Done;
                        }
                    }
                    Waiting::Body => {}
                }
            }
            Body::Attempt { number, state } => {
                self.kind = "step";
                self.attempts = *number;
                match state {
                    AttemptState::Started => self.state = State::Waiting,
                    AttemptState::Failed { failure, wake_at } => {
                        self.state = State::Retrying;
                        let again = crate::when::instant(*wake_at);
                        self.note = format!("{}; again at {again}", crate::shown::failure(failure));
                    }
                }
            }
            Body::Ended(ended) => {
                self.kind = ended.kind.word();
                self.attempts = ended.attempts;
                if ended.attempts > 0 {
                    self.began = self.began.min(ended.started_at);
                }
                (self.state, self.note) = match &ended.outcome {
                    Ok(_) if ended.kind.word() == "child" => {
                        (State::Done, std::mem::take(&mut self.note))
                    }
                    Ok(_) => (State::Done, String::new()),
                    Err(failure) => (State::Failed, crate::shown::failure(failure)),
                };
            }
            Body::Taken(messages) => {
                self.kind = "recv";
                self.state = State::Done;
                let channels: Vec<_> = messages.iter().map(|message| &*message.channel).collect();
                self.note = channels.join(", ");
            }
            Body::Decided { branch } => {
                self.state = State::Done;
                self.note = format!("won by {branch}");
            }
            Body::Carried { next, .. } => self.note = format!("{next} done"),
            Body::Pin { value, .. } => {
                self.kind = "version";
                self.state = State::Done;
                self.note = value.to_string();
            }
            Body::Removed { kind } => {
                self.kind = "removed";
                kind.word().clone_into(&mut self.note);
            }
            Body::Checkpoint => {
                self.kind = "checkpoint";
                self.state = State::Done;
            }
            Body::Settled { .. } => {
                self.kind = "settle";
                self.state = State::Done;
            }
            _ => {}
        }
    }
}
