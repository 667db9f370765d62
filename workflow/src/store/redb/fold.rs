//! The fold: moves the oldest commits from the log into the tables.
//!
//! 1. A slice is whole commits. Its transaction writes what they add up to and up to which commit that is, so that the
//!    tables are always exactly what the log before [`FOLDED`](super::tables::meta::FOLDED) says.
//! 2. Only the fold writes the tables, one at a time: what it reads before its transaction is still true in it.
//! 3. It does not hold up commits: they go to the log.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use redb::{ReadTransaction, WriteTransaction};

use super::core::Core;
use super::entry::{Logged, framed, prune, put_framed, run_of, split};
use super::log::Next;
use super::mail::Mail;
use super::queue::Refusal;
use super::tables::{self, DUE, Failed, IDS, META, RECORDS, RUNS, STATES, due_key, listed, meta};
use super::tail::Commit;
use crate::replay::{RunKey, RunState, Timestamp};
use crate::store::encoding::peek_record;
use crate::store::transition::{NOBODY, Transition};
use crate::store::{RunRow, StoreError};

/// So much is folded in one transaction. The more batches of a run at once, the less each costs; the more runs, the more memory
/// it takes meanwhile.
const SLICE: Slice = Slice {
    batches: 32 << 10,
    runs: 8 << 10,
    bytes: 16 << 20,
};
/// A chunk up to this size is rewritten with what is added to it: a run that wakes now and then stays in few.
const SMALL_CHUNK: usize = 2 << 10;
/// A chunk is not filled further than this.
const FULL_CHUNK: usize = 64 << 10;

struct Slice {
    batches: usize,
    runs: usize,
    bytes: usize,
}

impl Core {
    /// Folds until the tail is empty, or was not when it was begun.
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
            self.sync_if_due();
            // Whoever waits to commit goes first.
            std::thread::yield_now();
        }
    }

    /// Folds one slice; the commit up to which everything is folded then, or `None` when there was nothing to fold.
    pub(super) fn fold_slice(&self) -> Result<Option<u64>, StoreError> {
        let folding = self.folding();
        self.recover(&folding)?;
        let commits = self.tail().oldest(SLICE.batches, SLICE.bytes);
        let Some((runs, end)) = by_run(&commits)? else {
            return Ok(None);
        };
        let store = self.identity.id;
        let changes = self.file.read("folding", |txn| prepare(txn, store, runs))?;
        let mut strays = None;
        let written = self.file.with("folding", |database| {
            let mut txn = database.begin_write()?;
            txn.set_quick_repair(true);
            write(&txn, &changes.runs)?;
            strays = changes.mail.fold(&txn)?;
            {
                let mut table = txn.open_table(META)?;
                table.insert(meta::FOLDED, u128::from(end.commit))?;
                table.insert(meta::LOG_AT, u128::from(end.next.at))?;
                table.insert(meta::LOG_AFTER, u128::from(end.next.before))?;
            }
            Ok(txn.commit()?)
        });
        if let Err(error) = written {
            self.break_off();
            return Err(error);
        }
        // Not between judging a commit and showing it: its runs must stay in the tail.
        let log = self.log();
        let runs = changes.runs.iter().map(|change| change.run);
        let mut tail = self.tail();
        tail.strays = strays.unwrap_or(tail.strays);
        tail.forget(end.commit, runs);
        drop(tail);
        drop(log);
        Ok(Some(end.commit))
    }
}

/// Where a slice ends.
struct End {
    /// The first commit that is not in it.
    commit: u64,
    /// Where that would be in the log.
    next: Next,
}

/// What a slice does.
struct Changes {
    runs: Vec<Change>,
    mail: Mail,
}

/// What a slice does to one run.
struct Change {
    run: RunKey,
    /// The hash of the id of a run that is not in the tables yet.
    new: Option<u64>,
    /// The hash of the id of a run that was deleted.
    gone: Option<u64>,
    past: (Option<RunState>, Option<Timestamp>),
    present: (Option<RunState>, Option<Timestamp>),
    /// As it is written: a row in memory is several times as large.
    row: Vec<u8>,
    removed: Vec<u64>,
    chunks: Vec<(u64, Vec<u8>)>,
}

type Runs = BTreeMap<RunKey, Vec<Bytes>>;

/// The batches of the oldest commits by their runs, and where they end: whole commits, until a slice is full.
fn by_run(commits: &[Commit]) -> Result<Option<(Runs, End)>, StoreError> {
    let mut runs = Runs::new();
    let mut end = None;
    for commit in commits {
        if runs.len() >= SLICE.runs {
            break;
        }
        for entry in split(&commit.value())? {
            runs.entry(run_of(&entry)?).or_default().push(entry);
        }
        end = Some(End {
            commit: commit.number + 1,
            next: commit.place.next,
        });
    }
    Ok(end.map(|end| (runs, end)))
}

fn prepare(txn: &ReadTransaction, store: u128, runs: Runs) -> Result<Changes, Failed> {
    let mut mail = Mail::default();
    let table = txn.open_table(RUNS)?;
    let mut changes = Vec::with_capacity(runs.len());
    for (run, entries) in runs {
        // What concerns no run comes first: a message is kept for one before that takes it.
        if run == NOBODY {
            for entry in &entries {
                mail.apply_all(0, &Logged::read(entry)?.transition);
            }
            continue;
        }
        let stored = tables::row(&table, run)?;
        let past = stored
            .as_ref()
            .map_or((None, None), |row| (Some(row.state), row.wake_at));
        let Some(folded) = fold(txn, run, stored, &entries, &mut mail)? else {
            continue;
        };
        let id = || tables::id_hash(store, &folded.row.id);
        changes.push(if folded.gone {
            Change {
                run,
                new: None,
                gone: Some(id()),
                past,
                present: (None, None),
                row: Vec::new(),
                removed: folded.removed,
                chunks: Vec::new(),
            }
        } else {
            Change {
                run,
                new: past.0.is_none().then(id),
                gone: None,
                past,
                present: (Some(folded.row.state), folded.row.wake_at),
                row: tables::encoded(&folded.row),
                removed: folded.removed,
                chunks: folded.chunks,
            }
        });
    }
    Ok(Changes {
        runs: changes,
        mail,
    })
}

/// What becomes of one run.
struct Folded {
    row: RunRow,
    /// It was deleted.
    gone: bool,
    removed: Vec<u64>,
    chunks: Vec<(u64, Vec<u8>)>,
}

fn fold(
    txn: &ReadTransaction,
    run: RunKey,
    stored: Option<RunRow>,
    entries: &[Bytes],
    mail: &mut Mail,
) -> Result<Option<Folded>, Failed> {
    let mut row = stored.clone();
    let mut packing = Packing::default();
    if stored.is_some()
        && let Some((at, chunk)) = last_chunk(txn, run)?
    {
        packing.put(at, &chunk)?;
    }
    for entry in entries {
        let entry = Logged::read(entry)?;
        if entry.transition.deletes_run() {
            return fold_gone(txn, run, stored, entries, mail);
        }
        if entry.transition.prunes() {
            // Then records must be looked at one by one, unless nothing stays of them.
            let last = entries.last().map(Logged::read).transpose()?;
            return if last.is_some_and(|last| last.transition.deletes_run()) {
                fold_gone(txn, run, stored, entries, mail)
            } else {
                fold_pruning(txn, run, stored, entries, mail)
            };
        }
        mail.apply_all(0, &entry.transition);
        advance(&mut row, &entry.transition)?;
        packing.put(entry.transition.expected_seq + 1, &entry.records)?;
    }
    Ok(row.map(|row| Folded {
        row,
        gone: false,
        removed: Vec::new(),
        chunks: packing.end(),
    }))
}

/// A run that was deleted: nothing of it stays.
fn fold_gone(
    txn: &ReadTransaction,
    run: RunKey,
    stored: Option<RunRow>,
    entries: &[Bytes],
    mail: &mut Mail,
) -> Result<Option<Folded>, Failed> {
    let removed = match &stored {
        Some(_) => tables::chunk_keys(txn, run)?,
        None => Vec::new(),
    };
    let mut row = stored;
    for entry in entries {
        let entry = Logged::read(entry)?;
        mail.apply_all(0, &entry.transition);
        advance(&mut row, &entry.transition)?;
    }
    Ok(row.map(|row| Folded {
        row,
        gone: true,
        removed,
        chunks: Vec::new(),
    }))
}

fn fold_pruning(
    txn: &ReadTransaction,
    run: RunKey,
    stored: Option<RunRow>,
    entries: &[Bytes],
    mail: &mut Mail,
) -> Result<Option<Folded>, Failed> {
    let entries = entries.iter().map(Logged::read);
    let entries = entries.collect::<Result<Vec<_>, _>>()?;
    let (mut chunks, removed) = match stored {
        Some(_) => pruned(tables::chunks(txn, run)?, &entries)?,
        None => Default::default(),
    };
    let mut row = stored;
    let mut records = Vec::new();
    let mut first = None;
    for entry in &entries {
        // Some of it a second time, from the first on: that comes to the same.
        mail.apply_all(0, &entry.transition);
        advance(&mut row, &entry.transition)?;
        prune(&mut records, &entry.transition)?;
        if !entry.records.is_empty() {
            first.get_or_insert(entry.transition.expected_seq + 1);
        }
        framed(&entry.records, &mut records, "batch")?;
    }
    if let Some(first) = first {
        let mut packing = Packing::default();
        packing.start(first);
        for record in &records {
            packing.record(record);
        }
        chunks.extend(packing.end());
    }
    Ok(row.map(|row| Folded {
        row,
        gone: false,
        removed,
        chunks,
    }))
}

/// Makes a run's row what it is after a batch.
fn advance(row: &mut Option<RunRow>, transition: &Transition) -> Result<(), StoreError> {
    match (&transition.create, &mut *row) {
        (Some(new), _) => *row = Some(transition.created(new)),
        (None, Some(row)) => transition.apply(row),
        // Its creation is neither here nor there. Nothing is lost: the log keeps it.
        (None, None) => {
            return Err(StoreError::Corrupt {
                what: "batch",
                detail: format!("run {} has batches, but was not created", transition.run.0),
            });
        }
    }
    Ok(())
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
    entries: &[Logged],
) -> Result<(Vec<(u64, Vec<u8>)>, Vec<u64>), StoreError> {
    let mut changed = Vec::new();
    let mut removed = Vec::new();
    for (first, chunk) in stored {
        let mut records = Vec::new();
        framed(&chunk, &mut records, "chunk of records")?;
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
#[derive(Default)]
struct Packing {
    done: Vec<(u64, Vec<u8>)>,
    /// The chunk that is being filled, if there is one.
    open: Option<(u64, Vec<u8>)>,
}

impl Packing {
    /// What follows goes into a chunk of this key, if none is open.
    fn start(&mut self, key: u64) -> &mut Vec<u8> {
        &mut self.open.get_or_insert_with(|| (key, Vec::new())).1
    }

    /// Adds what stands one after another; the first of it is `seq`.
    fn put(&mut self, seq: u64, records: &Bytes) -> Result<(), StoreError> {
        if records.is_empty() {
            return Ok(());
        }
        self.start(seq);
        if records.len() > FULL_CHUNK {
            let mut parts = Vec::new();
            framed(records, &mut parts, "batch")?;
            for record in &parts {
                self.record(record);
            }
        } else {
            self.room(|_| seq).extend_from_slice(records);
        }
        Ok(())
    }

    fn record(&mut self, record: &Bytes) {
        let seq = |before| peek_record(record).map_or(before + 1, |peek| peek.seq);
        put_framed(self.room(seq), record);
    }

    /// The open chunk, unless it is full: then a new one, of the key that is said with the last one's.
    fn room(&mut self, key: impl FnOnce(u64) -> u64) -> &mut Vec<u8> {
        if let Some(full) = self.open.take_if(|(_, chunk)| chunk.len() >= FULL_CHUNK) {
            self.open = Some((key(full.0), Vec::new()));
            self.done.push(full);
        }
        self.start(0)
    }

    fn end(mut self) -> Vec<(u64, Vec<u8>)> {
        self.done.extend(self.open);
        self.done
    }
}

fn write(txn: &WriteTransaction, changes: &[Change]) -> Result<(), Failed> {
    let mut runs = txn.open_table(RUNS)?;
    for change in spread(changes) {
        match change.gone {
            None => drop(runs.insert(change.run.0, &change.row[..])?),
            Some(_) => drop(runs.remove(change.run.0)?),
        }
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
        if let Some(hash) = change.gone {
            ids.remove((hash, change.run.0))?;
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
        let (run, past, present) = (change.run, change.past.0, change.present.0);
        if past != present {
            if let Some(past) = past.and_then(listed) {
                states.remove((past, run.0))?;
            }
            if let Some(present) = present.and_then(listed) {
                states.insert((present, run.0), ())?;
            }
        }
    }
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
