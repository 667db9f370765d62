//! Reading: what the tail has, before what the tables have.
//!
//! The tail is looked at first, a snapshot of the tables taken after. So what a fold moves in between is in the snapshot;
//! and what the snapshot holds too is known by the number up to which it was folded.

use std::collections::BTreeSet;
use std::ops::Bound;

use bytes::Bytes;
use redb::ReadTransaction;

use super::core::Core;
use super::entry::{Logged, framed, prune};
use super::mail::Layers;
use super::tables::{self, DUE, Failed, IDS, META, RUNS, STATES, due_key, listed, meta};
use super::tail::Tail;
use crate::replay::{Message, Payload, Record, RunId, RunKey, RunState, Timestamp};
use crate::store::encoding::decode_record;
use crate::store::{Answer, DeadLetter, Loaded, Page, RunFilter, RunRow, StoreError};

/// A listing looks at so many rows before it lets commits go on.
const SLICE: usize = 256;

impl Core {
    pub(super) fn row(&self, run: RunKey) -> Result<Option<RunRow>, StoreError> {
        self.check_open()?;
        if let Some(here) = self.tail().row(run) {
            return Ok(here.there().cloned());
        }
        self.read("reading a run", |txn| {
            tables::row(&txn.open_table(RUNS)?, run)
        })
    }

    pub(super) fn find(&self, id: &RunId) -> Result<Option<RunRow>, StoreError> {
        self.check_open()?;
        {
            let tail = self.tail();
            if let Some(here) = tail.ids.get(id).and_then(|run| tail.row(*run)) {
                return Ok(here.there().cloned());
            }
        }
        let hash = tables::id_hash(self.identity.id, id);
        self.read("finding a run", |txn| {
            let runs = txn.open_table(RUNS)?;
            for key in txn.open_table(IDS)?.range((hash, 0)..=(hash, u64::MAX))? {
                let row = tables::row(&runs, RunKey(key?.0.value().1))?;
                if row.as_ref().is_some_and(|row| row.id == *id) {
                    return Ok(row);
                }
            }
            Ok(None)
        })
    }

    pub(super) fn load(&self, run: RunKey) -> Result<Option<Loaded>, StoreError> {
        self.check_open()?;
        loop {
            let (here, next) = {
                let tail = self.tail();
                if tail.runs.get(&run).is_some_and(|run| run.gone) {
                    return Ok(None);
                }
                let here = tail
                    .runs
                    .get(&run)
                    .map(|run| (RunRow::clone(&run.row), run.entries.clone()));
                (here, tail.next)
            };
            let loaded = self.read("loading a run", |txn| {
                let (row, entries) = match &here {
                    Some((row, entries)) => (Some(row.clone()), entries.clone()),
                    None => (tables::row(&txn.open_table(RUNS)?, run)?, [].into()),
                };
                let Some(row) = row else {
                    return Ok(Some(None));
                };
                let folded = folded(txn)?;
                // More was committed and folded since the tail was looked at: row and records would be of two instants.
                if folded > next {
                    return Ok(None);
                }
                let mut records = Vec::new();
                let entries = entries.iter().filter(|(commit, _)| *commit >= folded);
                let mut entries = entries.map(|(_, entry)| Logged::read(entry)).peekable();
                let begins = entries.peek().and_then(|entry| entry.as_ref().ok());
                if begins.is_none_or(|entry| entry.transition.create.is_none()) {
                    for (_, chunk) in tables::chunks(txn, run)? {
                        framed(&chunk, &mut records, "chunk of records")?;
                    }
                }
                for entry in entries {
                    let entry = entry?;
                    prune(&mut records, &entry.transition)?;
                    // A copy: what is given here may be kept long, and is a small part of a commit.
                    let own = Bytes::copy_from_slice(&entry.records);
                    framed(&own, &mut records, "batch")?;
                }
                let history = records
                    .iter()
                    .map(decode_record)
                    .collect::<Result<_, _>>()?;
                Ok(Some(Some(Loaded { row, history })))
            })?;
            if let Some(loaded) = loaded {
                return Ok(loaded);
            }
        }
    }

    pub(super) fn first(&self, run: RunKey) -> Result<Option<Record>, StoreError> {
        self.check_open()?;
        let entries = {
            let tail = self.tail();
            if tail.runs.get(&run).is_some_and(|run| run.gone) {
                return Ok(None);
            }
            tail.runs
                .get(&run)
                .map(|run| run.entries.clone())
                .unwrap_or_default()
        };
        let entries = entries.iter().map(|(_, entry)| Logged::read(entry));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        let begins = entries
            .first()
            .filter(|entry| entry.transition.create.is_some());
        let first = match begins {
            Some(entry) => {
                let mut records = Vec::new();
                framed(&entry.records, &mut records, "batch")?;
                records.into_iter().next()
            }
            None => self.read("reading a run's beginning", |txn| {
                tables::first_record(txn, run)
            })?,
        };
        let mut kept = Vec::from_iter(first);
        let stored = !kept.is_empty();
        for entry in &entries {
            prune(&mut kept, &entry.transition)?;
        }
        match kept.first() {
            Some(first) => decode_record(first).map(Some),
            // Nobody deletes a run's beginning. If somebody does, what is first then is not known before all is read.
            None if stored => {
                let loaded = self.load(run)?;
                Ok(loaded.and_then(|loaded| loaded.history.into_iter().next()))
            }
            None => Ok(None),
        }
    }

    /// Asks for mail: what is not folded, and one snapshot of what is. The tail is held meanwhile, so that both are of one
    /// instant.
    fn mail<T>(
        &self,
        operation: &'static str,
        ask: impl Fn(Layers<'_>) -> Result<T, Failed>,
    ) -> Result<T, StoreError> {
        self.check_open()?;
        self.mended(|| {
            let tail = self.tail();
            self.file.read(operation, |txn| {
                ask(Layers {
                    here: &[&tail.mail],
                    txn,
                })
            })
        })
    }

    pub(super) fn inbox(
        &self,
        run: RunKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        self.mail("reading an inbox", |mail| mail.inbox(run, after, limit))
    }

    pub(super) fn dead_letters(
        &self,
        run: RunKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        self.mail("reading dead letters", |mail| {
            mail.dead_letters(run, after, limit)
        })
    }

    pub(super) fn answer(&self, request: u128) -> Result<Option<Answer>, StoreError> {
        self.mail("reading an answer", |mail| mail.answer(request))
    }

    pub(super) fn value(&self, key: &str) -> Result<Option<Payload>, StoreError> {
        self.mail("reading a value", |mail| mail.value(key))
    }

    pub(super) fn values(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Payload)>, StoreError> {
        self.mail("reading values", |mail| mail.values(prefix, after, limit))
    }

    pub(super) fn due(
        &self,
        after: Option<(Timestamp, RunKey)>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Timestamp, RunKey)>, StoreError> {
        self.check_open()?;
        self.mended(|| self.due_now(after, until, limit))
    }

    fn due_now(
        &self,
        after: Option<(Timestamp, RunKey)>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Timestamp, RunKey)>, StoreError> {
        let last = (until, RunKey(u64::MAX));
        // A range that ends before it begins is empty, and the maps do not take it.
        if after.is_some_and(|after| after >= last) {
            return Ok(Vec::new());
        }
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let tail = self.tail();
        let here = tail.due.range((from, Bound::Included(last))).take(limit);
        let mut due: BTreeSet<_> = here.copied().collect();
        self.file.read("looking for due runs", |txn| {
            let mut found = 0;
            let from = from.map(|(at, run)| due_key(at, run));
            let until = Bound::Included(due_key(last.0, last.1));
            for key in txn.open_table(DUE)?.range((from, until))? {
                if found >= limit {
                    break;
                }
                let (at, run) = key?.0.value();
                if !tail.runs.contains_key(&RunKey(run)) {
                    found += 1;
                    due.insert((Timestamp::from_millis(at), RunKey(run)));
                }
            }
            Ok(())
        })?;
        Ok(due.into_iter().take(limit).collect())
    }

    pub(super) fn active(
        &self,
        after: Option<RunKey>,
        limit: usize,
    ) -> Result<Vec<RunKey>, StoreError> {
        self.check_open()?;
        self.mended(|| self.active_now(after, limit))
    }

    fn active_now(&self, after: Option<RunKey>, limit: usize) -> Result<Vec<RunKey>, StoreError> {
        let Some(from) = after.map_or(Some(0), |after| after.0.checked_add(1)) else {
            return Ok(Vec::new());
        };
        let tail = self.tail();
        let mut active: Vec<_> = tail
            .active
            .range(RunKey(from)..)
            .take(limit)
            .copied()
            .collect();
        self.file.read("looking for active runs", |txn| {
            for state in [RunState::Pending, RunState::Running, RunState::RollingBack] {
                let stored = stored_in(txn, &tail, state, from, limit)?;
                active.extend(stored);
            }
            Ok(())
        })?;
        active.sort_unstable();
        active.truncate(limit);
        Ok(active)
    }

    pub(super) fn list(&self, filter: &RunFilter) -> Result<Page, StoreError> {
        let mut rows = Vec::new();
        let mut from = filter.after.map_or(Some(0), |after| after.0.checked_add(1));
        while let Some(at) = from
            && rows.len() <= filter.limit
        {
            self.check_open()?;
            let (slice, next) = self.mended(|| self.list_slice(filter, at))?;
            rows.extend(slice);
            from = next;
        }
        let more = rows.len() > filter.limit;
        rows.truncate(filter.limit);
        let next = rows.last().filter(|_| more).map(|row| row.key);
        Ok(Page { rows, next })
    }

    /// Lists some runs from `from` on; where to go on, if that is not the end.
    fn list_slice(
        &self,
        filter: &RunFilter,
        from: u64,
    ) -> Result<(Vec<RunRow>, Option<u64>), StoreError> {
        let tail = self.tail();
        self.file.read("listing runs", |txn| {
            let runs = txn.open_table(RUNS)?;
            let mut stored = Vec::with_capacity(SLICE);
            match filter.state.and_then(|state| listed(state).map(|_| state)) {
                Some(state) => {
                    for run in stored_in(txn, &tail, state, from, SLICE)? {
                        stored.extend(tables::row(&runs, run)?);
                    }
                }
                None => {
                    for entry in runs.range(from..)?.take(SLICE) {
                        let (run, row) = entry?;
                        let (run, row) = (RunKey(run.value()), Bytes::copy_from_slice(row.value()));
                        stored.push(crate::store::encoding::decode_row(run, &row)?);
                    }
                }
            }
            let end = if stored.len() < SLICE {
                None
            } else {
                stored.last().map(|row| row.key.0)
            };
            let here = tail
                .runs
                .range(RunKey(from)..=RunKey(end.unwrap_or(u64::MAX)))
                .filter(|(_, run)| !run.gone)
                .map(|(_, run)| &*run.row);
            let mut slice: Vec<_> = here
                .filter(|row| row.fits(filter))
                .take(filter.limit.saturating_add(1))
                .cloned()
                .collect();
            let stored = stored
                .into_iter()
                .filter(|row| !tail.runs.contains_key(&row.key) && row.fits(filter));
            slice.extend(stored);
            slice.sort_unstable_by_key(|row| row.key);
            Ok((slice, end.and_then(|end| end.checked_add(1))))
        })
    }
}

/// The runs that the tables have in this state, from `from` on, of which the tail says nothing newer.
fn stored_in(
    txn: &ReadTransaction,
    tail: &Tail,
    state: RunState,
    from: u64,
    limit: usize,
) -> Result<Vec<RunKey>, Failed> {
    let Some(state) = listed(state) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for key in txn
        .open_table(STATES)?
        .range((state, from)..=(state, u64::MAX))?
    {
        if found.len() >= limit {
            break;
        }
        let run = RunKey(key?.0.value().1);
        if !tail.runs.contains_key(&run) {
            found.push(run);
        }
    }
    Ok(found)
}

/// The first commit that is not in the tables of this snapshot.
fn folded(txn: &ReadTransaction) -> Result<u64, Failed> {
    let folded = txn
        .open_table(META)?
        .get(meta::FOLDED)?
        .map_or(0, |value| value.value());
    Ok(u64::try_from(folded).unwrap_or(u64::MAX))
}
