//! The embedded store: tables in one file, by redb, and while it is open a log beside it.
//!
//! # How it works
//!
//! 1. **A commit is one write.** Everything that waits is written as one frame of the log, and synced. Whoever waits does it
//!    itself when nobody else does: no thread is woken for a step.
//! 2. **The tail is in memory.** What the log holds and the tables do not is indexed in memory, and rebuilt when the store
//!    is opened.
//! 3. **The fold is bulk work.** When the tail is long, or nothing happens, it is moved into the tables, many runs at a
//!    time, in order, while commits go on. A run that waits takes no memory then. Every transaction of the tables leaves
//!    them so that they open at once, also after a kill.
//! 4. **A closed store is one file.** Closing folds everything and removes the log.
//!
//! The store is for one process at a time: whoever else wants to know something asks the process that has it open.

mod backup;
mod blocking;
mod commit;
mod core;
mod creation;
mod draft;
mod entry;
mod file;
mod fold;
mod judge;
mod keeper;
mod log;
mod mail;
mod pack;
mod queue;
mod read;
mod repair;
mod tables;
mod tail;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use self::blocking::offload;
use self::commit::Appending;
use self::core::{Core, Options};
use self::entry::Entry;
use self::file::Source;
pub use self::file::StoreFile;
use self::keeper::Keeper;
use self::queue::{Change, Deliver, Mail, Outcome, Refusal};
use super::transition::Parts;
use super::{
    Answer, Append, Appended, BoxFuture, Census, Committed, DeadLetter, Deleted, Deletion,
    Delivery, Identity, Loaded, Page, Rewrite, RunFilter, RunRow, Store, StoreError,
};
use crate::replay::{Message, NewMessage, Payload, Record, RunId, RunKey, Timestamp};

/// Keeps runs in one file.
///
/// While it is open, the newest commits are in a second one beside it, whose name ends in `-log`. Closing it leaves one. To
/// copy a store that is open, use [`backup`](RedbStore::backup); else close it first, or copy both in one snapshot of the file
/// system.
///
/// Dropping it waits for commits under way, folds and lets go of the file, as [`Store::close`] does.
#[derive(Debug)]
pub struct RedbStore {
    core: Arc<Core>,
    keeper: Arc<Mutex<Option<Keeper>>>,
}

/// How to open a [`RedbStore`].
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct RedbStoreBuilder {
    options: Options,
}

impl RedbStore {
    /// Opens the store in this file, or makes a new one when there is no file or an empty one.
    ///
    /// This takes milliseconds whatever the store holds. After a kill or a power cut it reads the log, which is some ten
    /// megabytes as a rule; a log that was longer once is cut to 64 MiB when all of it is folded.
    ///
    /// # Errors
    /// [`StoreError::Locked`], [`StoreError::NewerFormat`], [`StoreError::Damaged`] and [`StoreError::NotAStore`] when the
    /// file is not one to be opened, or what is in its log's place is not its log, [`StoreError::LogMissing`] when its log
    /// is not there, and [`StoreError::LogAhead`] when the file is an older copy beside the log of what became of the store later,
    /// which all leave both as they are;
    /// [`StoreError::Io`] when it cannot be read or written.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::builder().open(path)
    }

    /// Opens one with other than the default options.
    pub fn builder() -> RedbStoreBuilder {
        RedbStoreBuilder {
            options: Options {
                cache: 4 << 20,
                fold_entries: 32 << 10,
                fold_bytes: 16 << 20,
                relaxed: None,
            },
        }
    }

    /// Folds what is unfolded, without waiting for an idle moment. Nothing needs this but backups and tests; it waits for
    /// the disk.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the file cannot be written.
    pub fn fold(&self) -> Result<(), StoreError> {
        self.core.check_open()?;
        self.core.fold_all()
    }

    /// Makes the file as small as what it holds, and waits for that. What is deleted leaves room in the file that is used again, so
    /// nothing needs this but a disk that is short of room, after much was deleted at once.
    ///
    /// Commits go on while rows are joined. While the file is moved together whoever reads or commits waits, threads of the runtime
    /// among them: seconds for a file of some hundred megabytes.
    /// Call it where little happens, from a thread that may wait. A kill in the middle loses nothing; the store is then
    /// repaired when it is next opened, which reads all of the file.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the file cannot be written, [`StoreError::Closed`].
    pub fn compact(&self) -> Result<(), StoreError> {
        self.core.compact()
    }

    /// Copies the store into a new file, while it is in use: everything that was acknowledged before this was called, and of what
    /// comes meanwhile nothing or some, in whole commits. The copy is that of a closed store, as small as what it holds: it is
    /// opened like any other, and needs no log.
    ///
    /// Commits go on meanwhile; memory is bounded. The store's own file grows by what is changed in the meantime, as room is not used
    /// again before the copy is done, and [`compact`](Self::compact) waits for that. Until the copy is whole and synced
    /// it is beside `path`, under a name that ends in `-part`, which a kill leaves there: it is no store then, and may be removed.
    ///
    /// To restore a copy, put it in the store's place while nobody has the store open. The guide's page
    /// [`operating`](crate::guide::operating) tells how.
    ///
    /// ```
    /// use workflow::RedbStore;
    /// use workflow::store::Store;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let (file, copy) = (directory.path().join("orders.redb"), directory.path().join("orders.backup"));
    /// let store = RedbStore::open(file)?;
    /// store.backup(&copy).await?;
    /// assert_eq!(RedbStore::open(copy)?.identity().id, store.identity().id);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`StoreError::Exists`] when there is something at `path`, which stays as it is; [`StoreError::Io`] when a file cannot be read
    /// or written, [`StoreError::Closed`] when the store is closed before it is done. Nothing is left at `path` then.
    ///
    /// # Cancel safety
    /// When this future is dropped before it was polled, nothing happens. Later the copy is made all the same.
    pub async fn backup(&self, path: impl AsRef<Path>) -> Result<(), StoreError> {
        let (core, path) = (Arc::clone(&self.core), path.as_ref().to_owned());
        offload(move || core.backup(&path)).await
    }

    fn start(source: Source, options: Options) -> Result<Self, StoreError> {
        let core = Arc::new(Core::open(source, options)?);
        let keeper = Keeper::start(Arc::clone(&core))?;
        // What a crash left in the log is folded when nothing else is to be done.
        core.signal.nudge();
        Ok(Self {
            core,
            keeper: Arc::new(Mutex::new(Some(keeper))),
        })
    }
}

impl RedbStoreBuilder {
    /// How much of the file is kept in memory, in bytes; 4 MiB by default. More helps when many runs are read again and
    /// again and the operating system has no memory to spare for the file.
    pub fn cache_size(mut self, bytes: usize) -> Self {
        self.options.cache = bytes;
        self
    }

    /// After how many unfolded batches a fold begins; 32,768 by default. Fewer take less memory, and less time to open
    /// after a crash; more make folds rarer.
    pub fn fold_threshold(mut self, batches: usize) -> Self {
        self.options.fold_entries = batches.max(1);
        self
    }

    /// Lets commits wait up to `wait` until they are synced, for speed. What was recorded survives a kill of the process all
    /// the same, and the store is never damaged; but a power cut, or a crash of the operating system, may take what was
    /// recorded in the last `wait`, and then those steps are done again. By default nothing waits.
    pub fn relaxed(mut self, wait: Duration) -> Self {
        self.options.relaxed = Some(wait);
        self
    }

    /// Opens the store in this file. See [`RedbStore::open`].
    ///
    /// # Errors
    /// As [`RedbStore::open`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<RedbStore, StoreError> {
        RedbStore::start(Source::Path(PathBuf::from(path.as_ref())), self.options)
    }

    /// Opens the store on storages of your own, one for each of its files. `open` is called again after a failed write.
    ///
    /// # Errors
    /// As [`RedbStore::open`].
    pub fn open_backend<B: ::redb::StorageBackend>(
        self,
        open: impl Fn(StoreFile) -> std::io::Result<B> + Send + Sync + 'static,
    ) -> Result<RedbStore, StoreError> {
        RedbStore::start(Source::backends(open), self.options)
    }
}

/// A batch as it is queued.
fn change(parts: Parts) -> Change {
    let Parts {
        transition,
        records,
        inbox,
        posts,
    } = parts;
    if inbox.is_empty() && posts.is_empty() {
        let entry = Entry::new(transition, &records);
        return Change::Batch(entry, inbox.seen);
    }
    Change::Mail(Box::new(Mail {
        transition,
        records: records.into(),
        inbox,
        posts,
    }))
}

// What is asked for is what is answered: a change has one kind of outcome.
fn appended(outcome: Outcome) -> Option<Appended> {
    match outcome {
        Outcome::Appended(appended) => Some(appended),
        Outcome::Delivered(_) | Outcome::Deleted(_) | Outcome::Put => None,
    }
}

fn delivered(outcome: Outcome) -> Option<Delivery> {
    match outcome {
        Outcome::Delivered(delivery) => Some(delivery),
        Outcome::Appended(_) | Outcome::Deleted(_) | Outcome::Put => None,
    }
}

fn deleted(outcome: Outcome) -> Option<Vec<Deleted>> {
    match outcome {
        Outcome::Deleted(deleted) => Some(deleted),
        Outcome::Appended(_) | Outcome::Delivered(_) | Outcome::Put => None,
    }
}

fn put(outcome: Outcome) -> Option<()> {
    matches!(outcome, Outcome::Put).then_some(())
}

/// A run's number is the number of the opening, then one of its own: so none is given twice, and none costs a commit.
const OPENING_SHIFT: u32 = 40;

impl Store for RedbStore {
    fn identity(&self) -> Identity {
        self.core.identity
    }

    fn allocate(&self) -> RunKey {
        let count = self.core.allocated.fetch_add(1, Ordering::Relaxed);
        RunKey((self.core.identity.boot << OPENING_SHIFT) + count)
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
        let change = append.split().map(change);
        Box::pin(Appending::new(&self.core, change, appended))
    }

    fn cancel(&self, run: RunKey, at: Timestamp) -> BoxFuture<'_, Result<Appended, StoreError>> {
        let change = Ok(Change::Cancel(run, at));
        Box::pin(Appending::new(&self.core, change, appended))
    }

    fn rewrite(&self, rewrites: Vec<Rewrite>) -> BoxFuture<'_, Result<Appended, StoreError>> {
        let change = Ok(Change::Rewrite(rewrites));
        Box::pin(Appending::new(&self.core, change, appended))
    }

    fn delete(&self, deletions: Vec<Deletion>) -> BoxFuture<'_, Result<Vec<Deleted>, StoreError>> {
        let change = Ok(Change::Delete(deletions));
        Box::pin(Appending::new(&self.core, change, deleted))
    }

    fn find<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRow>, StoreError>> {
        Box::pin(async move { self.core.find(id) })
    }

    fn row(&self, run: RunKey) -> BoxFuture<'_, Result<Option<RunRow>, StoreError>> {
        Box::pin(async move { self.core.row(run) })
    }

    fn load(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Loaded>, StoreError>> {
        let core = Arc::clone(&self.core);
        Box::pin(offload(move || core.load(run)))
    }

    fn first(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Record>, StoreError>> {
        Box::pin(async move { self.core.first(run) })
    }

    fn due(
        &self,
        after: Option<(Timestamp, RunKey)>,
        until: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(Timestamp, RunKey)>, StoreError>> {
        Box::pin(async move { self.core.due(after, until, limit) })
    }

    fn active(
        &self,
        after: Option<RunKey>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>> {
        Box::pin(async move { self.core.active(after, limit) })
    }

    fn deliver<'a>(
        &'a self,
        to: &'a RunId,
        message: NewMessage,
        at: Timestamp,
        keep_until: Timestamp,
    ) -> BoxFuture<'a, Result<Delivery, StoreError>> {
        let change = Ok(Change::Deliver(Box::new(Deliver {
            to: to.clone(),
            message,
            at,
            keep_until,
        })));
        Box::pin(Appending::new(&self.core, change, delivered))
    }

    fn inbox(
        &self,
        run: RunKey,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Message>, StoreError>> {
        let core = Arc::clone(&self.core);
        Box::pin(offload(move || core.inbox(run, after, limit)))
    }

    fn dead_letters(
        &self,
        run: RunKey,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<DeadLetter>, StoreError>> {
        let core = Arc::clone(&self.core);
        Box::pin(offload(move || core.dead_letters(run, after, limit)))
    }

    fn answer(&self, request: u128) -> BoxFuture<'_, Result<Option<Answer>, StoreError>> {
        Box::pin(async move { self.core.answer(request) })
    }

    fn value<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Payload>, StoreError>> {
        Box::pin(async move { self.core.value(key) })
    }

    fn values<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, Payload)>, StoreError>> {
        Box::pin(async move { self.core.values(prefix, after, limit) })
    }

    fn put(&self, values: Vec<(String, Option<Payload>)>) -> BoxFuture<'_, Result<(), StoreError>> {
        let change = Ok(Change::Put(values));
        Box::pin(Appending::new(&self.core, change, put))
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Page, StoreError>> {
        let (core, filter) = (Arc::clone(&self.core), filter.clone());
        Box::pin(offload(move || core.list(&filter)))
    }

    fn census(&self) -> BoxFuture<'_, Result<Census, StoreError>> {
        let core = Arc::clone(&self.core);
        Box::pin(offload(move || core.census()))
    }

    fn tell_commits(&self, told: Arc<dyn Fn(Committed) + Send + Sync>) {
        self.core.listener.set(told);
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        let (core, keeper) = (Arc::clone(&self.core), Arc::clone(&self.keeper));
        Box::pin(offload(move || close(&core, &keeper)))
    }
}

impl Drop for RedbStore {
    fn drop(&mut self) {
        // Who wants to know whether it went well closes it. What is durable stays so.
        drop(close(&self.core, &self.keeper));
    }
}

fn close(core: &Core, keeper: &Mutex<Option<Keeper>>) -> Result<(), StoreError> {
    let refused = core.queue.refusal();
    core.queue.refuse(Refusal::Closed);
    let keeper = keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(keeper) = keeper else {
        return Err(StoreError::Closed);
    };
    finish(core);
    keeper.stop(core);
    let folded = match refused {
        None => core.fold_all(),
        Some(refusal) => Err(refusal.error()),
    };
    let emptied = folded.and_then(|()| {
        let mut log = core.log();
        log.clear(&core.file)?;
        core.file.leave()?;
        log.close(&core.file)
    });
    if emptied.is_err() {
        // Nobody syncs later what a relaxed store let wait. What fails here failed above.
        drop(core.sync(&mut core.log()));
    }
    emptied.and(core.file.close())
}

/// Commits what was queued before the queue took nothing more. Then nothing is committed any more.
fn finish(core: &Core) {
    loop {
        while !core.queue.is_empty() {
            core.round();
        }
        // A commit under way took its batches from the queue, and puts back what is for the next one, before the log is free.
        let log = core.log();
        if core.queue.is_empty() {
            return drop(log);
        }
    }
}
