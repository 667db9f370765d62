//! Reading: what the tail has, before what the tables have.
//!
//! The tail is looked at first, a snapshot of the tables taken after. So what a fold moves in between is in the snapshot;
//! and what the snapshot holds too is known by the number up to which it was folded.

use std::collections::BTreeSet;
use std::ops::{Bound, RangeInclusive};

use bytes::Bytes;
use redb::ReadTransaction;

use super::core::Core;
use super::entry::{Logged, framed, prune};
use super::mail::Layers;
use super::tables::{self, DUE, Failed, IDS, META, RUNS, STATES, due_key, listed, meta};
use super::tail::Tail;
use crate::replay::{Message, Payload, Record, RunId, RunKey, RunState, Timestamp};
use crate::store::encoding::{RowPeek, decode_record, decode_row};
use crate::store::{Answer, Census, DeadLetter, Loaded, Page, RunFilter, RunRow, StoreError};

/// A listing looks at so many rows before it lets commits go on.
const SLICE: usize = 1024;

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
            let states = [RunState::Pending, RunState::Running, RunState::RollingBack];
            for state in states.into_iter().filter_map(listed) {
                let table = txn.open_table(STATES)?;
                let keys = table.range((state, from)..=(state, u64::MAX))?;
                active.extend(stored(keys, &tail, limit)?);
            }
            Ok(())
        })?;
        active.sort_unstable();
        active.truncate(limit);
        Ok(active)
    }

    pub(super) fn list(&self, filter: &RunFilter) -> Result<Page, StoreError> {
        let walk = Walk(filter.newest_first);
        let (mut rows, mut looked) = (Vec::new(), 0);
        let mut from = match filter.after {
            Some(after) => walk.next(after.0),
            None => Some(walk.begin()),
        };
        while let Some(at) = from
            && rows.len() <= filter.limit
        {
            if looked >= filter.look_at {
                let next = walk.before(at).map(RunKey);
                return Ok(Page { rows, next });
            }
            self.check_open()?;
            let slice = self.mended(|| self.list_slice(filter, walk, at))?;
            rows.extend(slice.rows);
            looked += slice.looked;
            from = slice.end.and_then(|end| walk.next(end));
        }
        let more = rows.len() > filter.limit;
        rows.truncate(filter.limit);
        let next = rows.last().filter(|_| more).map(|row| row.key);
        Ok(Page { rows, next })
    }

    /// Lists some runs from `from` on.
    fn list_slice(&self, filter: &RunFilter, walk: Walk, from: u64) -> Result<Slice, StoreError> {
        let tail = self.tail();
        self.file.read("listing runs", |txn| {
            let runs = txn.open_table(RUNS)?;
            let mut found = Vec::new();
            let (mut looked, mut end) = (0, None);
            let indexed: Option<Vec<_>> = filter.states.iter().copied().map(listed).collect();
            match indexed.filter(|states| !states.is_empty()) {
                Some(states) => {
                    let mut keys = Vec::new();
                    for state in states {
                        keys.extend(walk.stored_in(txn, &tail, state, from)?);
                    }
                    walk.sort_by_key(&mut keys, |run| *run);
                    keys.truncate(SLICE);
                    looked += keys.len();
                    end = keys.get(SLICE - 1).map(|run| run.0);
                    for run in keys {
                        found.extend(tables::row(&runs, run)?);
                    }
                }
                None => {
                    for entry in walk.over(runs.range(walk.range(from, None))?).take(SLICE) {
                        let (run, row) = entry?;
                        let (run, row) = (RunKey(run.value()), row.value());
                        looked += 1;
                        end = (looked == SLICE).then_some(run.0);
                        let takes = RowPeek::of(row).is_none_or(|row| takes(filter, &row));
                        if takes && !tail.runs.contains_key(&run) {
                            found.push(decode_row(run, &Bytes::copy_from_slice(row))?);
                            if found.len() > filter.limit {
                                end = Some(run.0);
                                break;
                            }
                        }
                    }
                }
            }
            found.retain(|row| row.fits(filter));
            let (first, last) = walk.range(from, end).into_inner();
            let here = tail.runs.range(RunKey(first)..=RunKey(last));
            let here = walk.over(here.map(|(_, run)| run));
            let here = here.filter(|run| !run.gone && run.row.fits(filter));
            let most = filter.limit.saturating_add(1);
            found.extend(here.take(most).map(|run| RunRow::clone(&run.row)));
            walk.sort_by_key(&mut found, |row| row.key);
            Ok(Slice {
                rows: found,
                looked,
                end,
            })
        })
    }

    pub(super) fn census(&self) -> Result<Census, StoreError> {
        loop {
            self.check_open()?;
            if let Some(census) = self.mended(|| self.count_slice())? {
                return Ok(census);
            }
        }
    }

    /// Counts some of the runs that were not counted yet; all of them when there are no more.
    fn count_slice(&self) -> Result<Option<Census>, StoreError> {
        let mut tail = self.tail();
        let Some(from) = tail.counted.next else {
            return Ok(Some(tail.census()));
        };
        let walk = Walk(false);
        let (counted, end) = self.file.read("counting runs", |txn| {
            let runs = txn.open_table(RUNS)?;
            let (mut counted, mut looked, mut end) = (Vec::new(), 0, None);
            for entry in runs.range(from..)?.take(SLICE) {
                let (run, row) = entry?;
                let (run, row) = (RunKey(run.value()), row.value());
                looked += 1;
                end = (looked == SLICE).then_some(run.0);
                if tail.runs.contains_key(&run) {
                    continue;
                }
                counted.push(if let Some(row) = RowPeek::of(row) {
                    (row.workflow.to_owned(), row.state)
                } else {
                    let row = decode_row(run, &Bytes::copy_from_slice(row))?;
                    (row.workflow, row.state)
                });
            }
            let (first, last) = walk.range(from, end).into_inner();
            let here = tail.runs.range(RunKey(first)..=RunKey(last));
            let here = here.filter(|(_, run)| !run.gone);
            counted.extend(here.map(|(_, run)| (run.row.workflow.clone(), run.row.state)));
            Ok((counted, end))
        })?;
        for (workflow, state) in &counted {
            tail.counted.tally.add(workflow, *state);
        }
        tail.counted.next = end.and_then(|end| walk.next(end));
        Ok(tail.counted.next.is_none().then(|| tail.census()))
    }
}

/// Whether a listing shows a row, as far as it can be told without reading all of it.
fn takes(filter: &RunFilter, row: &RowPeek<'_>) -> bool {
    filter.takes(row.id, row.workflow, row.state)
        && (!filter.has_times()
            || row
                .times()
                .is_none_or(|(created, changed)| filter.takes_times(created, changed)))
}

/// What of a listing one look at the store gave.
struct Slice {
    rows: Vec<RunRow>,
    looked: usize,
    /// The run up to which was looked, when that is not the last.
    end: Option<u64>,
}

/// The order of a listing: whether the newest come first.
#[derive(Clone, Copy)]
struct Walk(bool);

impl Walk {
    fn begin(self) -> u64 {
        if self.0 { u64::MAX } else { 0 }
    }

    fn next(self, after: u64) -> Option<u64> {
        if self.0 {
            after.checked_sub(1)
        } else {
            after.checked_add(1)
        }
    }

    fn before(self, at: u64) -> Option<u64> {
        Self(!self.0).next(at)
    }

    /// From there on, up to the end or as far as was looked.
    fn range(self, from: u64, end: Option<u64>) -> RangeInclusive<u64> {
        if self.0 {
            end.unwrap_or(0)..=from
        } else {
            from..=end.unwrap_or(u64::MAX)
        }
    }

    fn over<T>(self, ascending: impl DoubleEndedIterator<Item = T>) -> impl Iterator<Item = T> {
        let (mut ascending, backwards) = (ascending, self.0);
        std::iter::from_fn(move || {
            if backwards {
                ascending.next_back()
            } else {
                ascending.next()
            }
        })
    }

    fn sort_by_key<T>(self, all: &mut [T], key: impl Fn(&T) -> RunKey) {
        all.sort_unstable_by(|one, other| {
            let order = key(one).cmp(&key(other));
            if self.0 { order.reverse() } else { order }
        });
    }

    /// The first runs that the tables have in this state, from `from` on, of which the tail says nothing newer.
    fn stored_in(
        self,
        txn: &ReadTransaction,
        tail: &Tail,
        state: u8,
        from: u64,
    ) -> Result<Vec<RunKey>, Failed> {
        let (first, last) = self.range(from, None).into_inner();
        stored(
            self.over(
                txn.open_table(STATES)?
                    .range((state, first)..=(state, last))?,
            ),
            tail,
            SLICE,
        )
    }
}

/// The runs of these keys of which the tail says nothing newer.
fn stored(
    keys: impl Iterator<Item = Result<StateKey, redb::StorageError>>,
    tail: &Tail,
    limit: usize,
) -> Result<Vec<RunKey>, Failed> {
    let mut found = Vec::new();
    for key in keys {
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

type StateKey = (
    redb::AccessGuard<'static, (u8, u64)>,
    redb::AccessGuard<'static, ()>,
);

/// The first commit that is not in the tables of this snapshot.
fn folded(txn: &ReadTransaction) -> Result<u64, Failed> {
    let folded = txn
        .open_table(META)?
        .get(meta::FOLDED)?
        .map_or(0, |value| value.value());
    Ok(u64::try_from(folded).unwrap_or(u64::MAX))
}
