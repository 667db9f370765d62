//! What becomes of what is queued: whether each change may be written, by the newest row of its run.

use std::collections::HashSet;
use std::sync::Arc;

use redb::{Database, ReadTransaction, ReadableDatabase};

use super::core::Core;
use super::entry::Entry;
use super::queue::{Change, Request};
use super::tables::{self, Failed, IDS, RUNS};
use super::tail::Tail;
use crate::replay::{RunId, RunKey};
use crate::store::transition::Transition;
use crate::store::{Appended, RunRow};

/// A batch that may be written.
pub(super) struct Staged {
    pub(super) request: Request,
    pub(super) entry: Arc<Entry>,
    pub(super) stored: Option<Box<RunRow>>,
}

/// Whether a change is written.
pub(super) enum Verdict {
    Write(Arc<Entry>, Option<Box<RunRow>>),
    Answer(Appended),
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
            Change::Batch(entry) => {
                let new = entry.transition.create.as_ref();
                // Both are noted in any case: what comes after a deferred one must be deferred too.
                let run = self.runs.insert(entry.run());
                let id = new.is_none_or(|new| self.ids.insert(new.id.clone()));
                run && id
            }
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

    pub(super) fn judge(&mut self, tail: &Tail, change: &Change) -> Result<Verdict, Failed> {
        let run = match change {
            Change::Batch(entry) => entry.run(),
            Change::Cancel(run, _) => *run,
        };
        let new = match change {
            Change::Batch(entry) => entry.transition.create.as_ref(),
            Change::Cancel(..) => None,
        };
        let here = tail.runs.get(&run).map(|run| &*run.row);
        // A number that was just given to a new run is in no table.
        let stored = if here.is_none() { self.row(run)? } else { None };
        let row = here.or(stored.as_ref());
        let taken = match new {
            Some(new) => match tail.ids.get(&new.id) {
                Some(run) => Some(*run),
                None => self.run(&new.id)?,
            },
            None => None,
        };
        let entry = match change {
            Change::Batch(entry) => {
                if let Some(answer) = entry.transition.judge(row, taken)? {
                    return Ok(Verdict::Answer(answer));
                }
                Arc::clone(entry)
            }
            Change::Cancel(_, at) => {
                let Some(row) = row.filter(|row| !row.state.is_final()) else {
                    return Ok(Verdict::Answer(Appended::Final));
                };
                let (transition, record) = Transition::cancel(row, *at);
                Arc::new(Entry::new(transition, &[record]))
            }
        };
        Ok(Verdict::Write(entry, stored.map(Box::new)))
    }

    fn row(&mut self, run: RunKey) -> Result<Option<RunRow>, Failed> {
        tables::row(&self.txn()?.open_table(RUNS)?, run)
    }

    fn run(&mut self, id: &RunId) -> Result<Option<RunKey>, Failed> {
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

    fn txn(&mut self) -> Result<&ReadTransaction, Failed> {
        let txn = match self.txn.take() {
            Some(txn) => txn,
            None => self.database.begin_read()?,
        };
        Ok(self.txn.insert(txn))
    }
}
