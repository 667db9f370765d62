//! What becomes of what is queued: whether each change may be written, by the newest row of its run.

use std::collections::HashSet;

use redb::{Database, ReadTransaction, ReadableDatabase};

use super::core::Core;
use super::draft::{Draft, Drafting, Encoded, Written};
use super::entry::Entry;
use super::queue::{Change, Deliver, Mail, Outcome, Request};
use super::tables::{self, Failed, IDS, RUNS};
use super::tail::{Known, Tail};
use crate::replay::{RunId, RunKey};
use crate::store::transition::Transition;
use crate::store::{Appended, InboxChange, RunRow, delete, mail, rewrite};

/// A batch that may be written.
pub(super) struct Staged {
    pub(super) request: Request,
    /// The batch, when it is not the request's own.
    pub(super) made: Option<Box<Entry>>,
    pub(super) stored: Option<Box<RunRow>>,
    /// What it writes to other runs.
    pub(super) more: Vec<Written>,
    /// Whether it was prepared with the draft, which has it then.
    pub(super) drafted: bool,
    pub(super) outcome: Outcome,
}

impl Staged {
    pub(super) fn entry(&self) -> &Entry {
        match (&self.made, &self.request.slot.change) {
            (Some(made), _) => made,
            (None, Change::Batch(entry, _)) => entry,
            (None, _) => unreachable!("what is no batch was made one"),
        }
    }

    /// What it writes to other runs.
    pub(super) fn others(&self) -> impl Iterator<Item = &Entry> {
        self.more.iter().map(|(entry, _)| &**entry)
    }
}

/// Whether a change is written.
pub(super) enum Verdict {
    /// It is, or this batch is for it; with the run's row from the tables, when the tail does not have it.
    Write(Option<Box<Entry>>, Option<Box<RunRow>>),
    /// These batches are, for it.
    WriteAll(Vec<Written>, Outcome),
    Answer(Outcome),
    /// It is judged in the next commit.
    Later,
}

/// What a plain batch or cancellation comes to.
enum Plain {
    Write(Option<Box<Entry>>, Option<Box<RunRow>>),
    Answer(Appended),
    /// It concerns messages after all: the newest state says so.
    Drafts,
}

/// Which runs and ids a commit concerns already.
pub(super) struct Seen {
    alone: bool,
    runs: HashSet<RunKey>,
    ids: HashSet<RunId>,
}

impl Seen {
    pub(super) fn new(requests: usize) -> Self {
        Self {
            alone: requests == 1,
            runs: HashSet::with_capacity(if requests == 1 { 0 } else { requests }),
            ids: HashSet::new(),
        }
    }

    pub(super) fn first(&mut self, change: &Change) -> bool {
        if self.alone {
            return true;
        }
        match change {
            Change::Cancel(run, _) => self.runs.insert(*run),
            Change::Batch(entry, _) => self.first_of(&entry.transition),
            Change::Mail(mail) => self.first_of(&mail.transition),
            Change::Rewrite(rewrites) => {
                let mut first = true;
                for rewrite in rewrites {
                    // All are noted, also after one that was there.
                    first &= self.runs.insert(rewrite.run);
                }
                first
            }
            Change::Delete(deletions) => {
                let mut first = true;
                for deletion in deletions {
                    first &= self.runs.insert(deletion.run);
                }
                first
            }
            // These see those before them.
            Change::Deliver(_) | Change::Put(_) => true,
        }
    }

    fn first_of(&mut self, transition: &Transition) -> bool {
        let new = transition.create.as_ref();
        // Both are noted in any case: what comes after a deferred one must be deferred too.
        let run = self.runs.insert(transition.run);
        let id = new.is_none_or(|new| self.ids.insert(new.id.clone()));
        run && id
    }

    /// Notes what the mail of a request concerns beside its own run.
    fn note(&mut self, written: &[Written]) {
        if self.alone {
            return;
        }
        for (entry, _) in written {
            self.first_of(&entry.transition);
        }
    }
}

/// The tables as they are while a commit is prepared.
pub(super) struct Stored<'a> {
    core: &'a Core,
    database: &'a Database,
    txn: Option<ReadTransaction>,
}

impl<'a> Stored<'a> {
    pub(super) fn new(core: &'a Core, database: &'a Database) -> Self {
        Self {
            core,
            database,
            txn: None,
        }
    }

    pub(super) fn judge(
        &mut self,
        tail: &Tail,
        draft: &mut Draft,
        seen: &mut Seen,
        staged: &[Staged],
        change: &Change,
    ) -> Result<Verdict, Failed> {
        match self.plain(tail, draft, change)? {
            Plain::Write(made, stored) => return Ok(Verdict::Write(made, stored)),
            Plain::Answer(answer) => return Ok(Verdict::Answer(Outcome::Appended(answer))),
            Plain::Drafts if draft.spoiled => return Ok(Verdict::Later),
            Plain::Drafts => {}
        }
        draft.index(staged);
        let mut drafting = Drafting {
            draft,
            stored: self,
            tail,
            staged,
            written: Vec::new(),
        };
        let drafted = drafted(&mut drafting, change);
        let written = drafting.written;
        seen.note(&written);
        match drafted {
            Ok(outcome) if written.is_empty() => Ok(Verdict::Answer(outcome)),
            Ok(outcome) => Ok(Verdict::WriteAll(written, outcome)),
            Err(failed) => {
                draft.spoiled = !written.is_empty();
                Err(failed)
            }
        }
    }

    /// Judges what concerns no messages, by the row of its run alone.
    fn plain(&mut self, tail: &Tail, draft: &Draft, change: &Change) -> Result<Plain, Failed> {
        let (run, new) = match change {
            Change::Batch(entry, _) => (entry.run(), entry.transition.create.as_ref()),
            Change::Cancel(run, _) => (*run, None),
            Change::Mail(_)
            | Change::Deliver(_)
            | Change::Rewrite(_)
            | Change::Delete(_)
            | Change::Put(_) => return Ok(Plain::Drafts),
        };
        let here = tail.row(run);
        // A number that was just given to a new run is in no table.
        let stored = match here {
            Some(_) => None,
            None => self.row(run)?,
        };
        let row = here.map_or(stored.as_ref(), Known::there);
        let taken = match new {
            Some(new) => match tail.run(&new.id) {
                Some(known) => known.there(),
                None => self.run(&new.id)?,
            },
            None => None,
        };
        let made = match change {
            Change::Batch(entry, seen) => {
                if let Some(answer) = entry.transition.judge(row, taken)? {
                    return Ok(Plain::Answer(answer));
                }
                let strays = tail.has_strays() || draft.mail.has_strays();
                if entry.transition.concerns_mail(row, *seen, strays) {
                    return Ok(Plain::Drafts);
                }
                None
            }
            Change::Cancel(_, at) => {
                let Some(row) = row.filter(|row| !row.state.is_final()) else {
                    return Ok(Plain::Answer(Appended::Final));
                };
                let (transition, record) = Transition::cancel(row, *at);
                if transition.concerns_mail(Some(row), 0, false) {
                    return Ok(Plain::Drafts);
                }
                Some(Box::new(Entry::new(transition, &[record])))
            }
            Change::Mail(_)
            | Change::Deliver(_)
            | Change::Rewrite(_)
            | Change::Delete(_)
            | Change::Put(_) => return Ok(Plain::Drafts),
        };
        Ok(Plain::Write(made, stored.map(Box::new)))
    }

    pub(super) fn row(&mut self, run: RunKey) -> Result<Option<RunRow>, Failed> {
        tables::row(&self.txn()?.open_table(RUNS)?, run)
    }

    pub(super) fn run(&mut self, id: &RunId) -> Result<Option<RunKey>, Failed> {
        let hash = tables::id_hash(self.core.identity.id, id);
        let txn = self.txn()?;
        let runs = txn.open_table(RUNS)?;
        for key in txn.open_table(IDS)?.range((hash, 0)..=(hash, u64::MAX))? {
            let run = RunKey(key?.0.value().1);
            if tables::row(&runs, run)?.is_some_and(|row| row.id == *id) {
                return Ok(Some(run));
            }
        }
        Ok(None)
    }

    pub(super) fn txn(&mut self) -> Result<&ReadTransaction, Failed> {
        let txn = match self.txn.take() {
            Some(txn) => txn,
            None => self.database.begin_read()?,
        };
        Ok(self.txn.insert(txn))
    }
}

/// Prepares what a change comes to where messages are concerned.
fn drafted(view: &mut Drafting<'_, '_>, change: &Change) -> Result<Outcome, Failed> {
    Ok(match change {
        Change::Batch(entry, seen) => {
            let inbox = InboxChange {
                seen: *seen,
                ..InboxChange::default()
            };
            let records = Encoded(entry.records()?);
            let transition = entry.transition.clone();
            Outcome::Appended(mail::append(view, transition, records, inbox, Vec::new())?)
        }
        Change::Mail(parts) => {
            let Mail {
                transition,
                records,
                inbox,
                posts,
            } = Mail::clone(parts);
            Outcome::Appended(mail::append(view, transition, records, inbox, posts)?)
        }
        Change::Cancel(run, at) => Outcome::Appended(mail::cancel(view, *run, *at)?),
        Change::Rewrite(rewrites) => Outcome::Appended(rewrite::rewrite(view, rewrites.clone())?),
        Change::Delete(deletions) => Outcome::Deleted(delete::delete(view, deletions.clone())?),
        Change::Deliver(deliver) => {
            let Deliver {
                to,
                message,
                at,
                keep_until,
            } = &**deliver;
            Outcome::Delivered(mail::deliver(view, to, message.clone(), *at, *keep_until)?)
        }
        Change::Put(values) => {
            mail::put_values(view, values.clone());
            Outcome::Put
        }
    })
}
