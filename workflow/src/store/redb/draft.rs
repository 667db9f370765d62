//! What the mail of a commit comes to while it is prepared: the newest state, with what is to be written.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;

use super::entry::{Entry, framed, put_records};
use super::judge::{Staged, Stored};
use super::mail::{Layers, Mail};
use super::tables::Failed;
use super::tail::{Known, Tail};
use crate::replay::{Finished, Message, Record, RunId, RunKey, Timestamp};
use crate::store::encoding::decode_record;
use crate::store::mail::{Records, Stray, View};
use crate::store::transition::Transition;
use crate::store::{RunRow, StoreError};

/// An entry to be written, and the run's row from the tables when the tail does not have it yet.
pub(super) type Written = (Box<Entry>, Option<Box<RunRow>>);

/// Records as they are written, each with its length before it.
#[derive(Debug, Clone, Default)]
pub(super) struct Encoded(pub(super) Bytes);

impl From<Vec<Record>> for Encoded {
    fn from(records: Vec<Record>) -> Self {
        Self(put_records(&records).into())
    }
}

impl Records for Encoded {
    fn finished(&self) -> Result<Option<Finished>, StoreError> {
        let mut records = Vec::new();
        framed(&self.0, &mut records, "batch")?;
        match records.last() {
            Some(record) => vec![decode_record(record)?].finished(),
            None => Ok(None),
        }
    }
}

/// What this commit writes so far, where messages are concerned.
#[derive(Default)]
pub(super) struct Draft {
    rows: HashMap<RunKey, Row>,
    ids: HashMap<RunId, RunKey>,
    gone: HashSet<RunKey>,
    pub(super) mail: Mail,
    /// The places of plain batches among the staged ones, by run, and how many were looked at.
    plain: HashMap<RunKey, usize>,
    indexed: usize,
    /// Something failed half-way: what is here is not what is written. Nothing more is prepared with it.
    pub(super) spoiled: bool,
}

struct Row {
    row: RunRow,
    stored: Option<Box<RunRow>>,
}

impl Draft {
    /// Learns of the batches that were staged without it.
    pub(super) fn index(&mut self, staged: &[Staged]) {
        for (place, staged) in staged.iter().enumerate().skip(self.indexed) {
            if staged.drafted {
                continue;
            }
            let transition = &staged.entry().transition;
            if let Some(new) = &transition.create {
                self.ids.insert(new.id.clone(), transition.run);
            }
            self.plain.insert(transition.run, place);
        }
        self.indexed = staged.len();
    }
}

/// The newest state while the mail of one request is prepared.
pub(super) struct Drafting<'a, 'b> {
    pub(super) draft: &'a mut Draft,
    pub(super) stored: &'a mut Stored<'b>,
    pub(super) tail: &'a Tail,
    pub(super) staged: &'a [Staged],
    pub(super) written: Vec<Written>,
}

impl Drafting<'_, '_> {
    fn look<T>(&mut self, ask: impl FnOnce(Layers<'_>) -> Result<T, Failed>) -> Result<T, Failed> {
        ask(Layers {
            here: &[&self.draft.mail, &self.tail.mail],
            txn: self.stored.txn()?,
        })
    }

    /// Brings the row of a run here.
    fn fetch(&mut self, run: RunKey) -> Result<Option<Row>, Failed> {
        let known = self.tail.row(run);
        let here = known.and_then(Known::there);
        let plain = self.draft.plain.get(&run);
        if let Some(staged) = plain.and_then(|place| self.staged.get(*place)) {
            let transition = &staged.entry().transition;
            let row = match &transition.create {
                Some(new) => Some(transition.created(new)),
                None => here.or(staged.stored.as_deref()).cloned().map(|mut row| {
                    transition.apply(&mut row);
                    row
                }),
            };
            return Ok(row.map(|row| Row { row, stored: None }));
        }
        if let Some(row) = here {
            let row = row.clone();
            return Ok(Some(Row { row, stored: None }));
        }
        if known.is_some() {
            return Ok(None);
        }
        Ok(self.stored.row(run)?.map(|row| Row {
            stored: Some(Box::new(row.clone())),
            row,
        }))
    }
}

impl View for Drafting<'_, '_> {
    type Fault = Failed;
    type Records = Encoded;

    fn row(&mut self, run: RunKey) -> Result<Option<&RunRow>, Failed> {
        if self.draft.gone.contains(&run) {
            return Ok(None);
        }
        if !self.draft.rows.contains_key(&run)
            && let Some(row) = self.fetch(run)?
        {
            self.draft.rows.insert(run, row);
        }
        Ok(self.draft.rows.get(&run).map(|row| &row.row))
    }

    fn find(&mut self, id: &RunId) -> Result<Option<RunKey>, Failed> {
        let found = match (self.draft.ids.get(id), self.tail.run(id)) {
            (Some(run), _) => Some(*run),
            (None, Some(known)) => known.there(),
            (None, None) => self.stored.run(id)?,
        };
        Ok(found.filter(|run| !self.draft.gone.contains(run)))
    }

    fn inbox(&mut self, run: RunKey, after: u64, limit: usize) -> Result<Vec<Message>, Failed> {
        self.look(|mail| mail.inbox(run, after, limit))
    }

    fn delivered(&mut self, run: RunKey, channel: &str, key: &str) -> Result<Option<u128>, Failed> {
        self.look(|mail| mail.delivered(run, channel, key))
    }

    fn strays(&mut self, id: &RunId) -> Result<Vec<Stray>, Failed> {
        self.look(|mail| mail.strays(id))
    }

    fn lapsed(&mut self, at: Timestamp) -> Result<Vec<(RunId, u64)>, Failed> {
        self.look(|mail| mail.lapsed(at))
    }

    fn is_answered(&mut self, request: u128) -> Result<bool, Failed> {
        self.look(|mail| Ok(mail.answer(request)?.is_some()))
    }

    fn write(&mut self, transition: Transition, records: Encoded) {
        let stored = self.keep_row(&transition);
        self.draft.mail.apply_all(0, &transition);
        let entry = Box::new(Entry::compose(transition, &records.0));
        self.written.push((entry, stored));
    }
}

impl Drafting<'_, '_> {
    /// Makes the row what it is afterwards. The row from the tables, for the first who writes of the run.
    fn keep_row(&mut self, transition: &Transition) -> Option<Box<RunRow>> {
        let run = transition.run;
        if let Some(new) = &transition.create {
            let row = transition.created(new);
            self.draft.ids.insert(new.id.clone(), run);
            self.draft.rows.insert(run, Row { row, stored: None });
            return None;
        }
        if transition.deletes_run() {
            self.draft.gone.insert(run);
        }
        let row = self.draft.rows.get_mut(&run)?;
        transition.apply(&mut row.row);
        row.stored.take()
    }
}
