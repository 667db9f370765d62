//! What the store, its futures and its keeper share.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use redb::{ReadTransaction, ReadableTableMetadata, TableError};

use super::entry::{Logged, split};
use super::file::{File, Source};
use super::keeper::Signal;
use super::log::{HEAD, Log, Place};
use super::queue::{Queue, Refusal};
use super::tables::{self, Failed, JOURNAL, META, RUNS, STRAYS, meta};
use super::tail::Tail;
use crate::store::{Committed, Identity, StoreError};

/// What the store, its futures and its keeper share.
///
/// Locks are taken in this order: `copying`, `folding`, `log`, `tail`.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) file: File,
    pub(super) identity: Identity,
    pub(super) options: Options,
    pub(super) queue: Queue,
    pub(super) signal: Signal,
    pub(super) allocated: AtomicU64,
    tail: Mutex<Tail>,
    log: Mutex<Log>,
    folding: Mutex<()>,
    copying: Mutex<()>,
    pub(super) listener: Listener,
    /// A write to the tables failed: nothing can be read or written until they were opened again.
    broken: AtomicBool,
}

/// Who hears of commits, if anybody does.
#[derive(Default)]
pub(super) struct Listener(OnceLock<Arc<dyn Fn(Committed) + Send + Sync>>);

impl Listener {
    pub(super) fn set(&self, told: Arc<dyn Fn(Committed) + Send + Sync>) {
        // The first one stays.
        drop(self.0.set(told));
    }

    /// Now, if anybody wants to hear how long something takes.
    pub(super) fn begin(&self) -> Option<Instant> {
        self.0.get().map(|_| Instant::now())
    }

    /// Its code is not ours: no lock is held, and its panic is not the commit's.
    pub(super) fn tell(&self, committed: Committed) {
        if let Some(told) = self.0.get() {
            drop(catch_unwind(AssertUnwindSafe(|| told(committed))));
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener")
            .field(&self.0.get().is_some())
            .finish()
    }
}

/// What can be chosen when a store is opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    pub(super) cache: usize,
    pub(super) fold_entries: usize,
    pub(super) fold_bytes: usize,
    /// How long a commit may wait until it is synced; `None` when it is not to wait.
    pub(super) relaxed: Option<Duration>,
}

impl Core {
    pub(super) fn open(source: Source, options: Options) -> Result<Self, StoreError> {
        let (file, opening) = File::open(source, options.cache)?;
        let identity = opening.identity;
        let mut tail = Tail {
            next: opening.folded,
            ..Tail::default()
        };
        let had_journal = read_journal(&file, &mut tail)?;
        let log = if opening.logged {
            if !file.has_log()? {
                return Err(file.log_missing());
            }
            let (log, found) = Log::open(&file, identity, tail.next, opening.next)?;
            let found = found.into_iter().map(|found| (found.place, found.frame));
            take_in(&file, &mut tail, found)?;
            log
        } else {
            Log::create(&file, identity, opening.folded, opening.next.before)?
        };
        file.enter(identity)?;
        tail.strays = file.read("opening", has_strays)?;
        let core = Self {
            file,
            identity,
            options,
            queue: Queue::default(),
            signal: Signal::default(),
            allocated: AtomicU64::new(0),
            tail: Mutex::new(tail),
            log: Mutex::new(log),
            folding: Mutex::default(),
            copying: Mutex::default(),
            listener: Listener::default(),
            broken: AtomicBool::new(false),
        };
        if had_journal {
            core.fold_all()?;
            core.file.drop_journal()?;
        }
        Ok(core)
    }

    /// The right to read all of the tables, or to move all of them. A snapshot that is read keeps the file as long as it is.
    pub(super) fn copying(&self) -> MutexGuard<'_, ()> {
        self.copying.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// The right to commit.
    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes durable what a relaxed store has not synced yet.
    pub(super) fn sync(&self, log: &mut Log) -> Result<(), StoreError> {
        log.sync(&self.file, || self.tail().log.iter().cloned().collect())
    }

    /// Makes durable what a relaxed store has let wait for half of its time: the next look may be that much later. What fails
    /// fails the next commit, too.
    pub(super) fn sync_if_due(&self) {
        let Some(wait) = self.options.relaxed else {
            return;
        };
        let log = &mut *self.log();
        if log
            .unsynced_since()
            .is_some_and(|since| since.elapsed() >= wait / 2)
        {
            drop(self.sync(log));
        }
    }

    /// A write to the tables failed.
    pub(super) fn break_off(&self) {
        self.broken.store(true, Ordering::Release);
    }

    /// Opens the tables again after a failed write, and learns from them what became of that. The caller has the right to
    /// fold.
    pub(super) fn recover(&self, _folding: &MutexGuard<'_, ()>) -> Result<(), StoreError> {
        if !self.broken.load(Ordering::Acquire) {
            return Ok(());
        }
        // Held meanwhile: another process that gets the tables finds the log locked, and leaves both as they are.
        let mut log = self.log();
        log.hold(&self.file)?;
        self.file.reopen(self.identity)?;
        let (folded, strays) = self.file.read("reopening", |txn| {
            let folded = txn.open_table(META)?.get(meta::FOLDED)?;
            let folded = folded.map_or(0, |value| value.value());
            Ok((folded, has_strays(txn)?))
        })?;
        let mut tail = self.tail();
        tail.strays = strays;
        let runs: Vec<_> = tail.runs.keys().copied().collect();
        tail.forget(u64::try_from(folded).unwrap_or(u64::MAX), runs.into_iter());
        self.broken.store(false, Ordering::Release);
        drop(tail);
        drop(log);
        Ok(())
    }

    /// Reads from a snapshot. After a failed write the database refuses even that; then it is opened again first.
    pub(super) fn read<T>(
        &self,
        operation: &'static str,
        mut work: impl FnMut(&ReadTransaction) -> Result<T, Failed>,
    ) -> Result<T, StoreError> {
        self.mended(|| self.file.read(operation, &mut work))
    }

    /// Reads, and once more when the tables had to be opened again first.
    pub(super) fn mended<T>(
        &self,
        mut read: impl FnMut() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match read() {
            Err(error) if error.is_retryable() => {
                self.mend()?;
                read()
            }
            read => read,
        }
    }

    /// Opens the tables again if a write failed.
    pub(super) fn mend(&self) -> Result<(), StoreError> {
        if self.broken.load(Ordering::Acquire) {
            self.recover(&self.folding())?;
        }
        Ok(())
    }

    /// Folds, and gives back the room of what is not there any more.
    pub(super) fn compact(&self) -> Result<(), StoreError> {
        self.check_open()?;
        let _alone = self.copying();
        self.fold_all()?;
        self.pack()?;
        let folding = self.folding();
        self.recover(&folding)?;
        let compacted = self.file.compact(self.identity);
        if compacted.is_err() {
            self.break_off();
        }
        compacted
    }

    pub(super) fn check_open(&self) -> Result<(), StoreError> {
        match self.queue.refusal() {
            Some(Refusal::Closed) => Err(StoreError::Closed),
            Some(Refusal::Panicked) | None => Ok(()),
        }
    }
}

/// Whether messages are kept for runs to come.
fn has_strays(txn: &ReadTransaction) -> Result<bool, Failed> {
    Ok(!txn.open_table(STRAYS)?.is_empty()?)
}

/// Takes in what a program of format 1 left in its journal; whether there was one.
fn read_journal(file: &File, tail: &mut Tail) -> Result<bool, StoreError> {
    let next = tail.next;
    let journal = file.read("opening", |txn| {
        let journal = match txn.open_table(JOURNAL) {
            Ok(journal) => journal,
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let values = journal.range(next..)?.map(|value| {
            let mut frame = vec![0; HEAD];
            frame.extend_from_slice(value?.1.value());
            Ok((Place::NOWHERE, frame.into()))
        });
        values.collect::<Result<Vec<_>, Failed>>().map(Some)
    })?;
    let had_journal = journal.is_some();
    take_in(file, tail, journal.into_iter().flatten())?;
    Ok(had_journal)
}

/// Takes commits in that were found, in their order.
fn take_in(
    file: &File,
    tail: &mut Tail,
    commits: impl Iterator<Item = (Place, Bytes)>,
) -> Result<(), StoreError> {
    let mut commits = commits.peekable();
    if commits.peek().is_none() {
        return Ok(());
    }
    file.read("opening", |txn| {
        let runs = txn.open_table(RUNS)?;
        for (place, frame) in commits {
            let entries = split(&frame.slice(HEAD..))?;
            let batches = entries.len();
            for entry in entries {
                let transition = Logged::read(&entry)?.transition;
                let known = transition.create.is_some()
                    || transition.is_nobody()
                    || tail.runs.contains_key(&transition.run);
                let stored = if known {
                    None
                } else {
                    tables::row(&runs, transition.run)?
                };
                tail.push(&transition, entry, stored.map(Box::new));
            }
            tail.close(frame, place, batches);
        }
        Ok(())
    })
}
