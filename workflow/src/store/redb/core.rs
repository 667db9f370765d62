//! What the store, its futures and its keeper share.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use redb::{ReadTransaction, ReadableTable};

use super::entry::Entry;
use super::file::{File, Source};
use super::keeper::Signal;
use super::queue::{Queue, Refusal};
use super::tables::{self, Failed, JOURNAL, META, RUNS, meta};
use super::tail::Tail;
use crate::store::{Identity, StoreError};

/// What the store, its futures and its keeper share.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) file: File,
    pub(super) identity: Identity,
    pub(super) options: Options,
    pub(super) queue: Queue,
    pub(super) signal: Signal,
    pub(super) allocated: AtomicU64,
    tail: Mutex<Tail>,
    writer: Mutex<Writer>,
    folding: Mutex<()>,
}

/// What can be chosen when a store is opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    pub(super) cache: usize,
    pub(super) fold_entries: usize,
    pub(super) fold_bytes: usize,
}

/// What belongs to whoever writes to the file, one at a time.
#[derive(Debug, Default)]
pub(super) struct Writer {
    /// A write failed: nothing can be written until the file was opened again.
    pub(super) broken: bool,
    pub(super) scratch: Vec<u8>,
}

impl Core {
    pub(super) fn open(source: Source, options: Options) -> Result<Self, StoreError> {
        let (file, identity) = File::open(source, options.cache)?;
        let tail = read_tail(&file)?;
        Ok(Self {
            file,
            identity,
            options,
            queue: Queue::default(),
            signal: Signal::default(),
            allocated: AtomicU64::new(0),
            tail: Mutex::new(tail),
            writer: Mutex::default(),
            folding: Mutex::default(),
        })
    }

    /// The right to fold. Taken before the writer.
    pub(super) fn folding(&self) -> MutexGuard<'_, ()> {
        self.folding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tail; never held while the disk is waited for, but for reads of few rows.
    pub(super) fn tail(&self) -> MutexGuard<'_, Tail> {
        // What changes it under the lock does not panic; and after a panic nothing is committed any more.
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right to write to the file. Taken before the tail, never after.
    pub(super) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the file again after a failed write, and learns from it what became of that.
    pub(super) fn recover(&self, writer: &mut Writer) -> Result<(), StoreError> {
        writer.broken = true;
        self.file.reopen(self.identity)?;
        let tail = read_tail(&self.file)?;
        *self.tail() = tail;
        writer.broken = false;
        Ok(())
    }

    /// Reads from a snapshot. After a failed write the database refuses even that; then it is opened again first.
    pub(super) fn read<T>(
        &self,
        operation: &'static str,
        mut work: impl FnMut(&ReadTransaction) -> Result<T, Failed>,
    ) -> Result<T, StoreError> {
        match self.file.read(operation, &mut work) {
            Err(error) if error.is_retryable() => {
                let writer = &mut *self.writer();
                if writer.broken {
                    self.recover(writer)?;
                }
                self.file.read(operation, work)
            }
            read => read,
        }
    }

    pub(super) fn check_open(&self) -> Result<(), StoreError> {
        match self.queue.refusal() {
            Some(Refusal::Closed) => Err(StoreError::Closed),
            Some(Refusal::Panicked) | None => Ok(()),
        }
    }
}

/// Rebuilds the tail from the journal.
fn read_tail(file: &File) -> Result<Tail, StoreError> {
    file.read("opening", |txn| {
        let journal = txn.open_table(JOURNAL)?;
        let runs = txn.open_table(RUNS)?;
        let folded = txn
            .open_table(META)?
            .get(meta::FOLDED)?
            .map_or(0, |value| value.value());
        let mut tail = Tail {
            next: u64::try_from(folded).unwrap_or(u64::MAX),
            ..Tail::default()
        };
        for value in journal.iter()? {
            let (commit, value) = value?;
            for entry in Entry::read_all(&Bytes::copy_from_slice(value.value()))? {
                let known =
                    entry.transition.create.is_some() || tail.runs.contains_key(&entry.run());
                let stored = if known {
                    None
                } else {
                    tables::row(&runs, entry.run())?
                };
                tail.push(commit.value(), &entry, stored.map(Box::new));
            }
        }
        Ok::<_, Failed>(tail)
    })
}
