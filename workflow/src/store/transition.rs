//! What every store does with a batch: whether it may be written, and what the run's row is afterwards.

use super::mail::Effect;
use super::{Append, Appended, InboxChange, NewRun, Post, RunPatch, RunRow, StoreError};
use crate::replay::{Body, Finished, Location, Record, RunKey, RunState, Timestamp};

/// An [`Append`] without its records: what it asks of the row and does to it.
#[derive(Debug, Clone)]
pub(crate) struct Transition {
    pub(crate) run: RunKey,
    pub(crate) epoch: u64,
    /// 0 for what no owner wrote: it leaves the owner's last batch as it is.
    pub(crate) number: u64,
    pub(crate) expected_seq: u64,
    /// The run's last record afterwards.
    pub(crate) last_seq: u64,
    pub(crate) create: Option<NewRun>,
    pub(crate) deletes: Vec<Location>,
    /// Single records that are deleted, by number, in order: what a rewrite takes out.
    pub(crate) removed: Vec<u64>,
    pub(crate) patch: RunPatch,
    /// What becomes of messages; of most batches, nothing.
    pub(crate) effects: Vec<Effect>,
}

/// The number that no run has.
pub(crate) const NOBODY: RunKey = RunKey(0);

/// An [`Append`] taken apart: what it asks of its row, its records, and what it does to inboxes and to others.
pub(crate) struct Parts {
    pub(crate) transition: Transition,
    pub(crate) records: Vec<Record>,
    pub(crate) inbox: InboxChange,
    pub(crate) posts: Vec<Post>,
}

impl Append {
    pub(crate) fn split(self) -> Result<Parts, StoreError> {
        let last_seq = follow(self.expected_seq, &self.records)?;
        for post in &self.posts {
            if let Post::Run { records, .. } = post {
                follow(0, records)?;
            }
        }
        Ok(Parts {
            transition: Transition {
                run: self.run,
                epoch: self.epoch,
                number: self.number,
                expected_seq: self.expected_seq,
                last_seq,
                create: self.create,
                deletes: self.deletes,
                removed: Vec::new(),
                patch: self.patch,
                effects: Vec::new(),
            },
            records: self.records,
            inbox: self.inbox,
            posts: self.posts,
        })
    }
}

/// The number of the last of these records, which have to follow record `last_seq` without a gap.
pub(super) fn follow(mut last_seq: u64, records: &[Record]) -> Result<u64, StoreError> {
    for record in records {
        if record.seq != last_seq + 1 {
            return Err(StoreError::Conflict {
                expected: record.seq.saturating_sub(1),
                found: last_seq,
            });
        }
        last_seq = record.seq;
    }
    Ok(last_seq)
}

impl Transition {
    /// The cancellation of a run that is not final, and its record.
    pub(crate) fn cancel(row: &RunRow, at: Timestamp) -> (Self, Record) {
        let seq = row.last_seq + 1;
        let transition = Self {
            run: row.key,
            epoch: row.epoch + 1,
            number: 0,
            expected_seq: row.last_seq,
            last_seq: seq,
            create: None,
            deletes: Vec::new(),
            removed: Vec::new(),
            patch: RunPatch {
                state: Some(RunState::Cancelled),
                at,
                code: row.advanced_by,
                ..RunPatch::default()
            },
            effects: Vec::new(),
        };
        let body = Body::Finished(Finished::Cancelled);
        (
            transition,
            Record {
                seq,
                at,
                code: row.advanced_by,
                location: Location::root(),
                body,
            },
        )
    }

    /// That of no run, for what concerns none.
    pub(crate) fn nobody() -> Self {
        Self {
            run: NOBODY,
            epoch: 0,
            number: 0,
            expected_seq: 0,
            last_seq: 0,
            create: None,
            deletes: Vec::new(),
            removed: Vec::new(),
            patch: RunPatch::default(),
            effects: Vec::new(),
        }
    }

    #[cfg(feature = "redb")]
    pub(crate) fn is_nobody(&self) -> bool {
        self.run == NOBODY
    }

    /// What happens to a run without its owner doing anything: nothing yet.
    pub(crate) fn touch(row: &RunRow, at: Timestamp) -> Self {
        Self {
            run: row.key,
            epoch: row.epoch,
            number: 0,
            expected_seq: row.last_seq,
            last_seq: row.last_seq,
            create: None,
            deletes: Vec::new(),
            removed: Vec::new(),
            patch: RunPatch {
                at,
                code: row.advanced_by,
                ..RunPatch::default()
            },
            effects: Vec::new(),
        }
    }

    /// Whether it may be written; if not, the answer. `row` is the run's, `taken` the run that has the id of the new one.
    pub(crate) fn judge(
        &self,
        row: Option<&RunRow>,
        taken: Option<RunKey>,
    ) -> Result<Option<Appended>, StoreError> {
        if let Some(row) = row
            && self.number > 0
            && row.last_append == (self.epoch, self.number)
        {
            return Ok(Some(Appended::AlreadyApplied));
        }
        let last_seq = match (&self.create, row) {
            (Some(_), _) if taken.is_some() => return Ok(taken.map(Appended::Exists)),
            (Some(_), Some(row)) => return Ok(Some(Appended::Exists(row.key))),
            (Some(_), None) => 0,
            (None, None) => return Ok(Some(Appended::Final)),
            (None, Some(row)) if row.state.is_final() => return Ok(Some(Appended::Final)),
            (None, Some(row)) if row.epoch > self.epoch => return Ok(Some(Appended::Lost)),
            (None, Some(row)) => row.last_seq,
        };
        if last_seq == self.expected_seq {
            Ok(None)
        } else {
            Err(StoreError::Conflict {
                expected: self.expected_seq,
                found: last_seq,
            })
        }
    }

    /// The row of the run that it creates.
    pub(crate) fn created(&self, new: &NewRun) -> RunRow {
        let mut row = RunRow {
            key: self.run,
            id: new.id.clone(),
            workflow: new.workflow.clone(),
            state: match new.not_before {
                None => RunState::Pending,
                Some(_) => RunState::Waiting,
            },
            parked: None,
            advanced_by: self.patch.code,
            epoch: self.epoch,
            last_seq: 0,
            last_append: (0, 0),
            generation: 0,
            wake_at: new.not_before,
            waits: None,
            inbox_seq: 0,
            parent: new.parent.clone(),
            detached: new.detached,
            progress: None,
            unclean: 0,
            released: false,
            not_before: new.not_before,
            priority: new.priority,
            created_at: self.patch.at,
            updated_at: self.patch.at,
            finished_at: None,
        };
        self.apply(&mut row);
        row
    }

    /// Makes a row what it is afterwards.
    pub(crate) fn apply(&self, row: &mut RunRow) {
        let patch = &self.patch;
        row.epoch = self.epoch;
        row.last_seq = self.last_seq;
        for effect in &self.effects {
            effect.apply(row);
        }
        if self.number > 0 {
            row.last_append = (self.epoch, self.number);
            row.released = patch.released;
        }
        if let Some(unclean) = patch.unclean {
            row.unclean = unclean;
        }
        if let Some(generation) = patch.generation {
            row.generation = generation;
        }
        row.advanced_by = patch.code;
        // Messages are stamped by it, and their stamps never decrease.
        row.updated_at = row.updated_at.max(patch.at);
        if let Some(parked) = &patch.parked {
            row.parked.clone_from(parked);
        }
        if let Some(wake_at) = patch.wake_at {
            row.wake_at = wake_at;
        }
        if let Some(waits) = &patch.waits {
            row.waits.clone_from(waits);
        }
        if patch.progress.is_some() {
            row.progress.clone_from(&patch.progress);
        }
        if let Some(state) = patch.state {
            row.state = state;
            row.finished_at = None;
            if state.is_final() {
                row.wake_at = None;
                row.waits = None;
                row.finished_at = Some(patch.at);
            }
        }
    }

    /// Whether one that changes no inbox concerns messages all the same, when it is written to this row: it ends a child,
    /// waits for what is there already, or begins a run to which something was sent before.
    #[cfg(feature = "redb")]
    pub(crate) fn concerns_mail(&self, row: Option<&RunRow>, seen: u64, strays: bool) -> bool {
        let ends = self.patch.state.is_some_and(RunState::is_final);
        match (&self.create, row) {
            (Some(new), _) => strays || (ends && new.parent.is_some() && !new.detached),
            (None, Some(row)) if ends => row.parent.is_some() && !row.detached,
            (None, Some(row)) if row.inbox_seq > seen => match &self.patch.waits {
                Some(waits) => waits.is_some(),
                None => row.waits.is_some(),
            },
            (None, _) => false,
        }
    }

    /// Whether it is the last that happens to a run: nothing of it is left.
    pub(crate) fn deletes_run(&self) -> bool {
        let gone = |effect: &Effect| matches!(effect, Effect::Gone(_));
        self.effects.iter().any(gone)
    }

    /// Whether it deletes records at all.
    pub(crate) fn prunes(&self) -> bool {
        !self.deletes.is_empty() || !self.removed.is_empty()
    }

    /// Whether it deletes the record of this number that stood there before it.
    pub(crate) fn deletes(&self, seq: u64, location: &Location) -> bool {
        self.removed.binary_search(&seq).is_ok()
            || self.deletes.iter().any(|scope| location.is_under(scope))
    }
}
