//! Steps of a guided flow, as operations: the same to be seen, and the step is what it is.

use std::sync::Arc;

use super::snapshot::{LogLine, Record, Snapshot, Status, Undo};
use crate::context::News;
use crate::replay::{Failure, FailureKind, Timestamp};

/// So many lines of a step's log are kept.
const LINES: usize = 100;

impl Snapshot {
    /// A step that nothing is known of but where it is.
    pub(crate) fn of_step(name: String) -> Self {
        Self::new(Record {
            name,
            title: None,
            description: None,
            metadata: std::collections::BTreeMap::new(),
            revision: 0,
            status: Status::Idle,
            reason: None,
            progress: None,
            attempt: 0,
            started_at: None,
            completed_at: None,
            retry_at: None,
            result: None,
            failure: None,
            released: None,
            undo: Undo::None,
            seed: 0,
            generation: 0,
            children: Vec::new(),
            earlier: Vec::new(),
            logs: Vec::new(),
            stale: false,
        })
    }

    /// One that succeeded, and that nobody asked for any more.
    pub(crate) fn orphaned(name: String, undo: Undo) -> Self {
        let mut orphan = Self::of_step(name);
        orphan.change(|record| {
            record.status = Status::Succeeded;
            record.undo = undo;
        });
        orphan
    }

    /// The same, with its undo.
    pub(crate) fn undone_by(&mut self, undo: Undo) {
        if self.undo() != undo {
            self.change(|record| record.undo = undo);
        }
    }

    /// What it says is forgotten.
    pub(crate) fn be_silent(&mut self) {
        self.change(|record| record.logs.clear());
    }

    /// It was given up by something that does not tell when.
    pub(crate) fn given_up(&mut self, because: &str) {
        if self.status().is_in_flight() {
            self.change(|record| {
                record.begin(Status::Cancelled);
                record.reason = Some(because.to_owned());
            });
        }
    }

    /// The same, after its process ended while it was in flight.
    pub(crate) fn cut_off(&mut self, now: Timestamp) {
        if self.status().is_in_flight() {
            *self = self.interrupted(now);
            self.change(|record| record.stale = record.progress.is_some());
        }
    }

    /// Takes in what is told of the step. `because`: why it was given up, if it was.
    pub(crate) fn takes_in(&mut self, news: &News<'_>, now: Timestamp, because: Option<&str>) {
        if let News::Dropped | News::Progress(_) | News::Logged(_) | News::Waits(_) = news
            && !self.status().is_in_flight()
        {
            return;
        }
        if let (News::Ended(Ok(())), Status::Succeeded) = (news, self.status()) {
            // It is replayed.
            return;
        }
        self.change(|record| record.takes_in(news, now, because));
    }

    fn change(&mut self, change: impl FnOnce(&mut Record)) {
        let record = self.record_mut();
        record.revision += 1;
        change(record);
    }
}

impl Record {
    fn takes_in(&mut self, news: &News<'_>, now: Timestamp, because: Option<&str>) {
        match news {
            News::Issued => {
                self.begin(Status::Queued);
                self.stale = self.progress.is_some();
            }
            News::Began(attempt) => {
                self.begin(running(*attempt));
                self.attempt = *attempt;
                self.started_at.get_or_insert(now);
                if std::mem::take(&mut self.stale) {
                    self.progress = None;
                }
            }
            News::Again { failure, at } => {
                self.status = Status::Waiting;
                self.failure = Some(plain(failure));
                self.retry_at = Some(*at);
            }
            News::Ended(Ok(())) => self.end(Status::Succeeded, now),
            News::Ended(Err(failure)) if failure.kind() == FailureKind::Blocked => {
                self.begin(Status::Blocked);
                self.reason = Some(failure.message().to_owned());
            }
            News::Ended(Err(failure)) => {
                self.end(Status::Failed, now);
                self.failure = Some(plain(failure));
            }
            News::Dropped => {
                self.end(Status::Cancelled, now);
                self.reason = because.map(str::to_owned);
            }
            News::Progress(progress) => self.progress = Some(progress.clone()),
            News::Logged(text) => {
                let old = (self.logs.len() + 1).saturating_sub(LINES);
                self.logs.drain(..old);
                self.logs.push(Arc::new(LogLine {
                    at: now,
                    attempt: self.attempt,
                    text: text.clone(),
                }));
            }
            News::Waits(Some(reason)) => {
                self.status = Status::Waiting;
                self.reason = Some(reason.clone());
            }
            News::Waits(None) => {
                self.status = running(self.attempt);
                self.reason = None;
            }
        }
    }

    fn begin(&mut self, status: Status) {
        self.status = status;
        (self.reason, self.failure, self.retry_at) = (None, None, None);
        self.completed_at = None;
    }

    fn end(&mut self, status: Status, now: Timestamp) {
        self.begin(status);
        self.stale = false;
        self.completed_at = Some(now);
    }
}

fn running(attempt: u32) -> Status {
    if attempt > 1 {
        Status::Retrying
    } else {
        Status::Running
    }
}

/// What there is to say of a failure, without what programs ask of it: that is sealed where it is recorded.
fn plain(failure: &Failure) -> Failure {
    Failure::new(
        failure.kind(),
        failure.location().clone(),
        failure.message(),
    )
    .with_attempts(failure.attempts())
}
