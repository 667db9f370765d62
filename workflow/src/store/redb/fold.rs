//! The fold: moves the oldest commits from the journal into the tables.
//!
//! 1. A slice is whole commits. Its transaction writes what they add up to and removes them, so that the tables are
//!    always exactly what the journal before [`FOLDED`](super::tables::meta::FOLDED) says.
//! 2. Only the fold writes the tables, one at a time: what it reads before its transaction is still true in it.
//! 3. It holds up commits only while it writes a slice, not while it prepares one.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use redb::{ReadTransaction, WriteTransaction};

use super::core::Core;
use super::entry::{Entry, framed, prune, put_framed};
use super::queue::Refusal;
use super::tables::{
    self, DUE, Failed, IDS, JOURNAL, META, RECORDS, RUNS, STATES, due_key, listed, meta,
};
use super::tail::Slice;
use crate::replay::{RunKey, RunState, Timestamp};
use crate::store::{RunRow, StoreError};

/// So much is folded in one transaction. The more batches of a run at once, the less each costs; the more runs, the
/// longer commits wait.
const SLICE: Slice = Slice {
    entries: 32 << 10,
    runs: 1024,
    bytes: 16 << 20,
};
/// A chunk up to this size is rewritten with what is added to it: a run that wakes now and then stays in few.
const SMALL_CHUNK: usize = 2 << 10;
/// A chunk is not filled further than this.
const FULL_CHUNK: usize = 64 << 10;

impl Core {
    /// Folds until the journal is empty, or was not when it was begun.
    pub(super) fn fold_all(&self) -> Result<(), StoreError> {
        let end = self.tail().next;
        loop {
            let folded =
                catch_unwind(AssertUnwindSafe(|| self.fold_slice())).unwrap_or_else(|_| {
                    self.queue.refuse(Refusal::Panicked);
                    Err(Refusal::Panicked.error())
                })?;
            if folded.is_none_or(|folded| folded >= end) {
                return Ok(());
            }
            // Whoever waits to commit goes first.
            std::thread::yield_now();
        }
    }

    /// Folds one slice; the commit up to which everything is folded then, or `None` when there was nothing to fold.
    pub(super) fn fold_slice(&self) -> Result<Option<u64>, StoreError> {
        let _one_at_a_time = self.folding();
        let (batches, end) = self.tail().oldest(SLICE);
        if batches.is_empty() {
            return Ok(None);
        }
        let store = self.identity.id;
        let changes = self
            .file
            .read("folding", |txn| prepare(txn, store, batches))?;

        let writer = &mut *self.writer();
        if writer.broken {
            self.recover(writer)?;
        }
        let written = self.file.with("folding", |database| {
            let mut txn = database.begin_write()?;
            txn.set_quick_repair(true);
            write(&txn, &changes, end)?;
            Ok(txn.commit()?)
        });
        if let Err(error) = written {
            writer.broken = true;
            return Err(error);
        }
        self.tail().forget(end);
        Ok(Some(end))
    }
}

/// What a slice does to one run.
struct Change {
    run: RunKey,
    /// The hash of the id of a run that is not in the tables yet.
    new: Option<u64>,
    past: (Option<RunState>, Option<Timestamp>),
    present: (RunState, Option<Timestamp>),
    row: Vec<u8>,
    removed: Vec<u64>,
    chunks: Vec<(u64, Vec<u8>)>,
}

fn prepare(
    txn: &ReadTransaction,
    store: u128,
    mut batches: Vec<(RunKey, Bytes)>,
) -> Result<Vec<Change>, Failed> {
    // Stable: those of one run stay in order.
    batches.sort_by_key(|(run, _)| *run);
    let table = txn.open_table(RUNS)?;
    let mut changes = Vec::new();
    let mut entries = Vec::new();
    for batches in batches.chunk_by(|(run, _), (next, _)| run == next) {
        let Some(run) = batches.first().map(|(run, _)| *run) else {
            continue;
        };
        // Decoded one run at a time: in memory they are many times as large.
        entries.clear();
        for (_, bytes) in batches {
            entries.push(Entry::read(bytes.clone())?);
        }
        let stored = tables::row(&table, run)?;
        if let Some(change) = change(txn, store, run, stored, &entries)? {
            changes.push(change);
        }
    }
    Ok(changes)
}

fn change(
    txn: &ReadTransaction,
    store: u128,
    run: RunKey,
    stored: Option<RunRow>,
    entries: &[Entry],
) -> Result<Option<Change>, Failed> {
    let past = stored.as_ref().map(|row| (row.state, row.wake_at));
    let mut row = stored;
    let mut first = None;
    let mut records = Vec::new();
    let mut chunks = Vec::new();
    let mut removed = Vec::new();

    if past.is_some() {
        let prunes = entries
            .iter()
            .any(|entry| !entry.transition.deletes.is_empty());
        if prunes {
            (chunks, removed) = pruned(tables::chunks(txn, run)?, entries)?;
        } else if let Some((at, chunk)) = last_chunk(txn, run)? {
            framed(&chunk, &mut records)?;
            first = Some(at);
        }
    }
    for entry in entries {
        let transition = &entry.transition;
        match (&transition.create, &mut row) {
            (Some(new), _) => row = Some(transition.created(new)),
            (None, Some(row)) => transition.apply(row),
            // Its creation is neither here nor there. Nothing is lost: the journal keeps it.
            (None, None) => {
                let detail = format!("run {} has batches, but was not created", run.0);
                return Err(StoreError::Corrupt {
                    what: "batch",
                    detail,
                }
                .into());
            }
        }
        prune(&mut records, transition)?;
        if first.is_none() && !entry.records.is_empty() {
            first = Some(transition.expected_seq + 1);
        }
        records.extend(entry.records.iter().cloned());
    }
    if let Some(first) = first {
        pack(first, &records, &mut chunks);
    }
    Ok(row.map(|row| Change {
        run,
        new: past.is_none().then(|| tables::id_hash(store, &row.id)),
        past: past.map_or((None, None), |(state, at)| (Some(state), at)),
        present: (row.state, row.wake_at),
        row: tables::encoded(&row),
        removed,
        chunks,
    }))
}

/// A run's last chunk, if it is to be rewritten with what is added.
fn last_chunk(txn: &ReadTransaction, run: RunKey) -> Result<Option<(u64, Bytes)>, Failed> {
    let table = txn.open_table(RECORDS)?;
    let Some(last) = table.range((run.0, 0)..=(run.0, u64::MAX))?.next_back() else {
        return Ok(None);
    };
    let (key, value) = last?;
    let small = value.value().len() <= SMALL_CHUNK;
    Ok(small.then(|| (key.value().1, Bytes::copy_from_slice(value.value()))))
}

/// The stored chunks that deletions change, as they are then, and those that go.
#[expect(
    clippy::type_complexity,
    reason = "two lists, named where they are taken apart"
)]
fn pruned(
    stored: Vec<(u64, Bytes)>,
    entries: &[Entry],
) -> Result<(Vec<(u64, Vec<u8>)>, Vec<u64>), StoreError> {
    let mut changed = Vec::new();
    let mut removed = Vec::new();
    for (first, chunk) in stored {
        let mut records = Vec::new();
        framed(&chunk, &mut records)?;
        let before = records.len();
        for entry in entries {
            prune(&mut records, &entry.transition)?;
        }
        if records.is_empty() {
            removed.push(first);
        } else if records.len() < before {
            let mut out = Vec::with_capacity(chunk.len());
            for record in &records {
                put_framed(&mut out, record);
            }
            changed.push((first, out));
        }
    }
    Ok((changed, removed))
}

/// Packs records into chunks. A chunk's key is at most the `seq` of its first record and more than that of any before.
fn pack(first: u64, records: &[Bytes], chunks: &mut Vec<(u64, Vec<u8>)>) {
    let mut key = first;
    let mut out = Vec::new();
    for record in records {
        if out.len() >= FULL_CHUNK {
            chunks.push((key, std::mem::take(&mut out)));
            key = crate::store::encoding::peek_record(record).map_or(key + 1, |peek| peek.seq);
        }
        put_framed(&mut out, record);
    }
    chunks.push((key, out));
}

fn write(txn: &WriteTransaction, changes: &[Change], end: u64) -> Result<(), Failed> {
    let mut runs = txn.open_table(RUNS)?;
    for change in spread(changes) {
        runs.insert(change.run.0, &change.row[..])?;
    }
    let mut records = txn.open_table(RECORDS)?;
    for change in spread(changes) {
        let run = change.run.0;
        for first in &change.removed {
            records.remove((run, *first))?;
        }
        for (first, chunk) in &change.chunks {
            if chunk.is_empty() {
                records.remove((run, *first))?;
            } else {
                records.insert((run, *first), &chunk[..])?;
            }
        }
    }
    let mut ids = txn.open_table(IDS)?;
    for change in changes {
        if let Some(hash) = change.new {
            ids.insert((hash, change.run.0), ())?;
        }
    }
    let mut due = txn.open_table(DUE)?;
    let moved = || {
        changes
            .iter()
            .filter(|change| change.past.1 != change.present.1)
    };
    for change in moved() {
        if let Some(at) = change.past.1 {
            due.remove(due_key(at, change.run))?;
        }
    }
    let mut keys: Vec<_> = moved()
        .filter_map(|change| Some(due_key(change.present.1?, change.run)))
        .collect();
    keys.sort_unstable();
    for key in spread(&keys) {
        due.insert(*key, ())?;
    }
    let mut states = txn.open_table(STATES)?;
    for change in changes {
        let run = change.run;
        let past = change.past.0;
        let state = change.present.0;
        if past != Some(state) {
            if let Some(past) = past.and_then(listed) {
                states.remove((past, run.0))?;
            }
            if let Some(state) = listed(state) {
                states.insert((state, run.0), ())?;
            }
        }
    }
    txn.open_table(JOURNAL)?.retain_in(..end, |_, _| false)?;
    txn.open_table(META)?
        .insert(meta::FOLDED, u128::from(end))?;
    Ok(())
}

/// Four of seven, then the others. The database splits a full page in halves; rows written in order would leave each
/// half behind for ever. This way the second pass fills the halves to nearly nine tenths, and splits few of them again.
fn spread<T>(sorted: &[T]) -> impl Iterator<Item = &T> {
    let of = |first: bool| {
        let indexed = sorted.iter().enumerate();
        indexed.filter_map(move |(index, item)| ((index * 4 % 7 < 4) == first).then_some(item))
    };
    of(true).chain(of(false))
}
