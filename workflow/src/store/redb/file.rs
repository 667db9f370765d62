//! The file: opening it, telling apart what it may be instead, opening it again after a failure.

use std::fmt;
use std::fs::{self, File as StdFile, OpenOptions};
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use redb::backends::FileBackend;
use redb::{
    Builder, Database, DatabaseError, ReadTransaction, ReadableDatabase, StorageBackend,
    TableError, TableHandle, WriteTransaction,
};

use super::creation;
use super::log::{Next, START};
use super::repair::Repair;
use super::tables::{self, FORMAT, Failed, JOURNAL, META, meta};
use crate::store::{Identity, StoreError};

/// So many passes a compaction takes at most.
const PASSES: usize = 8;

/// One of the two files of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFile {
    /// The tables: the database.
    Tables,
    /// The log: what was committed and is not in the tables yet. It is empty when the store was closed.
    Log,
}

/// Where the bytes are.
pub(super) enum Source {
    Path(PathBuf),
    Backends {
        tables: Opener<Database>,
        log: Opener<Box<dyn StorageBackend>>,
    },
}

type Opener<T> = Box<dyn Fn(&Builder) -> Result<T, DatabaseError> + Send + Sync>;

/// The open file.
pub(super) struct File {
    source: Source,
    cache: usize,
    /// `None` once the store was closed, and while the database could not be opened again after a failed write.
    database: RwLock<Option<Database>>,
    closed: AtomicBool,
}

impl File {
    /// Opens the file, or makes a new one, and tells whose it is for this opening, which [`enter`](Self::enter) counts.
    pub(super) fn open(source: Source, cache: usize) -> Result<(Self, Opening), StoreError> {
        let file = Self {
            source,
            cache,
            database: RwLock::new(None),
            closed: AtomicBool::new(false),
        };
        if let Source::Path(path) = &file.source {
            file.look_before(path)?;
        }
        let database = file.connect()?;
        let opening = file.caught("opening", || file.look(&database))?;
        *file
            .database
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Some(database);
        Ok((file, opening))
    }

    /// Makes a file with a new database in it, which is no store yet. Nothing may be there.
    pub(super) fn create(path: &Path, cache: usize) -> Result<Self, StoreError> {
        let file = Self {
            source: Source::Path(path.to_owned()),
            cache,
            database: RwLock::new(None),
            closed: AtomicBool::new(false),
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let created = options
            .open(path)
            .map_err(|error| DatabaseError::Storage(error.into()))
            .and_then(FileBackend::new)
            .and_then(|backend| file.builder().create_with_backend(backend));
        let created = created.map_err(|error| file.told("creating", error.into()))?;
        *file
            .database
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Some(created);
        Ok(file)
    }

    /// Works with the database; what goes wrong is told in our words.
    pub(super) fn with<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Database) -> Result<T, Failed>,
    ) -> Result<T, StoreError> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        let database = database.as_ref().ok_or_else(|| self.gone(operation))?;
        work(database).map_err(|failed| self.told(operation, failed))
    }

    /// Why there is no database.
    fn gone(&self, operation: &'static str) -> StoreError {
        if self.closed.load(Ordering::Acquire) {
            return StoreError::Closed;
        }
        StoreError::Io {
            operation,
            retryable: true,
            source: "after a failed write the file could not be opened again yet".into(),
        }
    }

    /// Writes in one transaction that leaves the file so that it opens at once. Damage that makes the database panic is an error
    /// here.
    pub(super) fn write(
        &self,
        operation: &'static str,
        work: impl FnOnce(&WriteTransaction) -> Result<(), Failed>,
    ) -> Result<(), StoreError> {
        self.caught(operation, || {
            self.with(operation, |database| {
                let mut txn = database.begin_write()?;
                txn.set_quick_repair(true);
                work(&txn)?;
                Ok(txn.commit()?)
            })
        })
    }

    /// Moves what the file holds to its beginning and gives the rest back. Everybody else waits meanwhile.
    pub(super) fn compact(&self, identity: Identity) -> Result<(), StoreError> {
        self.shrink()?;
        // The passes leave the file so that it would be repaired after a kill; closing it does not, and makes it no longer.
        self.reopen(identity)
    }

    /// As [`compact`](Self::compact), of a file that is closed next.
    pub(super) fn shrink(&self) -> Result<(), StoreError> {
        self.caught("compacting", || {
            let mut database = self
                .database
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            let database = database.as_mut().ok_or(StoreError::Closed)?;
            // Each pass gives back what the one before made free; a few come to an end.
            for _ in 0..PASSES {
                let more = database.compact().map_err(redb::Error::from);
                if !more.map_err(|error| self.told("compacting", error.into()))? {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Reads from a snapshot. Damage that makes the database panic is an error here.
    pub(super) fn read<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&ReadTransaction) -> Result<T, Failed>,
    ) -> Result<T, StoreError> {
        self.caught(operation, || {
            self.with(operation, |database| work(&database.begin_read()?))
        })
    }

    /// Closes the database and opens it again: the only way on after a failed write.
    pub(super) fn reopen(&self, identity: Identity) -> Result<(), StoreError> {
        let mut open = self
            .database
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        let failed = open.take();
        // What it could not write it may fail to write again while it goes; that is known.
        let let_go = self.caught("reopening", || {
            drop(failed);
            Ok(())
        });
        drop(let_go);
        let database = self.connect()?;
        let found = self.caught("reopening", || {
            let txn = database
                .begin_read()
                .map_err(|error| self.told("reopening", error.into()))?;
            read_meta(&txn).map_err(|failed| self.told("reopening", failed))
        })?;
        // Whoever had it open in between owns it now.
        if found
            != Some(Found {
                format: FORMAT,
                identity,
            })
        {
            return Err(StoreError::Closed);
        }
        *open = Some(database);
        Ok(())
    }

    /// Lets go of the file.
    pub(super) fn close(&self) -> Result<(), StoreError> {
        let database = {
            let mut open = self
                .database
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            self.closed.store(true, Ordering::Release);
            open.take()
        };
        match database {
            Some(database) => self.caught("closing", || {
                database
                    .close()
                    .map_err(|error| self.told("closing", error.into()))
            }),
            None => Ok(()),
        }
    }

    pub(super) fn path(&self) -> &Path {
        match &self.source {
            Source::Path(path) => path,
            Source::Backends { .. } => Path::new("<backend>"),
        }
    }

    /// Looks at what is there without changing a byte of it.
    fn look_before(&self, path: &Path) -> Result<(), StoreError> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(self.not_a_store("it is a directory")),
            Ok(found) if found.len() > 0 => {}
            // Missing or empty: a new store. What else is wrong with the path, opening it tells.
            _ => return Ok(()),
        }
        match self.caught("opening", || Ok(self.builder().open_read_only(path)))? {
            Ok(database) => self.caught("opening", || {
                let found = database
                    .begin_read()
                    .map_err(Failed::from)
                    .and_then(|txn| read_meta(&txn));
                self.accept(found.map_err(|failed| self.told("opening", failed))?)
                    .map(drop)
            }),
            // It was not closed properly; opening it for writing repairs that.
            Err(DatabaseError::RepairAborted) => Ok(()),
            Err(DatabaseError::Storage(redb::StorageError::Io(error)))
                if error.kind() == std::io::ErrorKind::InvalidData
                    && creation::was_cut_off(path) =>
            {
                // Begin it again.
                let emptied = OpenOptions::new()
                    .write(true)
                    .open(path)
                    .and_then(|file| file.set_len(0));
                emptied.map_err(|error| self.told("creating", redb::Error::Io(error).into()))
            }
            Err(error) => Err(self.told("opening", error.into())),
        }
    }

    fn connect(&self) -> Result<Database, StoreError> {
        self.caught("opening", || {
            let repair = Repair::of(self.path());
            let mut builder = self.builder();
            repair.watch(&mut builder);
            let opened = match &self.source {
                Source::Path(path) => builder.create(path),
                Source::Backends { tables, .. } => tables(&builder),
            };
            opened.map_err(|error| self.told("opening", error.into()))
        })
    }

    fn builder(&self) -> Builder {
        let mut builder = Database::builder();
        builder.set_cache_size(self.cache);
        builder
    }

    /// What is in the database.
    fn look(&self, database: &Database) -> Result<Opening, StoreError> {
        let told = |failed| self.told("opening", failed);
        let txn = database.begin_read().map_err(Failed::from).map_err(told)?;
        let found = read_meta(&txn).map_err(told)?;
        let identity = match self.accept(found)? {
            Some(identity) => Identity {
                boot: identity.boot + 1,
                ..identity
            },
            None => Identity {
                id: Identity::random(),
                boot: 1,
            },
        };
        let number = |name| match found {
            Some(_) => read_number(&txn, name).map_err(told),
            None => Ok(0),
        };
        let next = Next {
            at: number(meta::LOG_AT)?.max(START),
            before: number(meta::LOG_AFTER)?,
        };
        Ok(Opening {
            identity,
            folded: number(meta::FOLDED)?,
            logged: number(meta::LOGGED)? == 1,
            next,
        })
    }

    /// Counts the opening in one commit, which is also the one that makes a new store. From here on the log counts.
    pub(super) fn enter(&self, identity: Identity) -> Result<(), StoreError> {
        self.write("opening", |txn| {
            let mut table = txn.open_table(META)?;
            table.insert(meta::FORMAT, u128::from(FORMAT))?;
            table.insert(meta::ID, identity.id)?;
            table.insert(meta::BOOT, u128::from(identity.boot))?;
            table.insert(meta::LOGGED, 1)?;
            // Also those that an older program did not know.
            Ok(tables::create(txn)?)
        })?;
        match &self.source {
            Source::Path(path) if identity.boot == 1 => self.keep_name(path),
            _ => Ok(()),
        }
    }

    /// Says that there is nothing in the log, and will not be.
    pub(super) fn leave(&self) -> Result<(), StoreError> {
        self.write("closing", |txn| {
            txn.open_table(META)?.insert(meta::LOGGED, 0)?;
            Ok(())
        })
    }

    /// Removes what is left of the journal of format 1.
    pub(super) fn drop_journal(&self) -> Result<(), StoreError> {
        self.write("opening", |txn| {
            txn.delete_table(JOURNAL)?;
            Ok(())
        })
    }

    /// Opens the file of the log, or makes it.
    pub(super) fn open_log(&self) -> Result<Box<dyn StorageBackend>, StoreError> {
        let opened = match &self.source {
            Source::Path(path) => OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(log_of(path))
                .map_err(|error| DatabaseError::Storage(error.into()))
                .and_then(FileBackend::new)
                .map(|backend| Box::new(backend) as Box<dyn StorageBackend>),
            Source::Backends { log, .. } => log(&self.builder()),
        };
        opened.map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StoreError::Locked {
                path: self.log_path(),
            },
            error => self.told("opening the log", error.into()),
        })
    }

    /// Whether there is a log, of whatever it may be.
    pub(super) fn has_log(&self) -> Result<bool, StoreError> {
        if let Source::Path(path) = &self.source {
            return Ok(fs::metadata(log_of(path)).is_ok_and(|found| found.len() > 0));
        }
        let disk = self.open_log()?;
        let length = disk.len();
        Ok(length.map_err(|error| self.failed("opening the log", error))? > 0)
    }

    /// The log's name must still be in the directory after a power cut.
    pub(super) fn keep_log(&self) -> Result<(), StoreError> {
        match &self.source {
            Source::Path(path) => self.keep_name(path),
            Source::Backends { .. } => Ok(()),
        }
    }

    /// Removes the log, which is empty. Nothing is lost when it stays.
    pub(super) fn remove_log(&self) {
        if let Source::Path(path) = &self.source {
            drop(fs::remove_file(log_of(path)));
        }
    }

    fn log_path(&self) -> PathBuf {
        match &self.source {
            Source::Path(path) => log_of(path),
            Source::Backends { .. } => PathBuf::from("<backend of the log>"),
        }
    }

    pub(super) fn log_missing(&self) -> StoreError {
        StoreError::LogMissing {
            path: self.path().into(),
            log: self.log_path(),
        }
    }

    pub(super) fn log_ahead(&self) -> StoreError {
        StoreError::LogAhead {
            path: self.path().into(),
            log: self.log_path(),
        }
    }

    pub(super) fn foreign_log(&self) -> StoreError {
        StoreError::NotAStore {
            path: self.path().into(),
            detail: format!(
                "beside it is `{}`, the log of another store that was not closed: move that away, or remove it when the store is gone for good",
                self.log_path().display()
            ),
        }
    }

    pub(super) fn not_a_log(&self) -> StoreError {
        StoreError::NotAStore {
            path: self.path().into(),
            detail: format!(
                "its log would be `{}`, and that is something else: move it away",
                self.log_path().display()
            ),
        }
    }

    pub(super) fn damaged_log(&self, detail: &str) -> StoreError {
        StoreError::Damaged {
            path: self.log_path(),
            detail: detail.to_owned(),
        }
    }

    /// What the operating system says of the log.
    pub(super) fn failed(&self, operation: &'static str, error: std::io::Error) -> StoreError {
        self.told(operation, redb::Error::Io(error).into())
    }

    /// A new file must still be in its directory after a power cut.
    pub(super) fn keep_name(&self, path: &Path) -> Result<(), StoreError> {
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        if cfg!(unix) {
            let synced = StdFile::open(parent).and_then(|directory| directory.sync_all());
            synced.map_err(|error| self.told("creating", redb::Error::Io(error).into()))?;
        }
        Ok(())
    }

    fn accept(&self, found: Option<Found>) -> Result<Option<Identity>, StoreError> {
        match found {
            Some(Found { format, .. }) if format > FORMAT => Err(StoreError::NewerFormat {
                path: self.path().into(),
                found: format,
                supported: FORMAT,
            }),
            Some(Found { identity, .. }) => Ok(Some(identity)),
            None => Ok(None),
        }
    }

    fn not_a_store(&self, detail: impl Into<String>) -> StoreError {
        StoreError::NotAStore {
            path: self.path().into(),
            detail: detail.into(),
        }
    }

    fn damaged(&self, detail: impl Into<String>) -> StoreError {
        StoreError::Damaged {
            path: self.path().into(),
            detail: detail.into(),
        }
    }

    /// A damaged file can make the database panic where it trusts what it wrote.
    pub(super) fn caught<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            Err(self.damaged(format!("{operation} it made the database panic: {said}")))
        })
    }

    /// Says what happened.
    pub(super) fn told(&self, operation: &'static str, failed: Failed) -> StoreError {
        let error = match failed {
            Failed::Store(StoreError::NotAStore { detail, .. }) => return self.not_a_store(detail),
            Failed::Store(error) => return error,
            Failed::Database(error) => error,
        };
        match error {
            redb::Error::DatabaseAlreadyOpen => StoreError::Locked {
                path: self.path().into(),
            },
            redb::Error::UpgradeRequired(version) => {
                self.not_a_store(format!("it is a redb database of file format {version}"))
            }
            redb::Error::Corrupted(detail) => self.damaged(detail),
            redb::Error::TableDoesNotExist(table) => {
                self.damaged(format!("table `{table}` is missing"))
            }
            redb::Error::TableTypeMismatch { table, .. } => {
                self.damaged(format!("table `{table}` has other types"))
            }
            redb::Error::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                if begins_like_a_database(self.path()) {
                    self.damaged(error.to_string())
                } else {
                    self.not_a_store(error.to_string())
                }
            }
            redb::Error::Io(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                self.damaged("it is cut off")
            }
            error => {
                let retryable = matches!(
                    error,
                    redb::Error::Io(_)
                        | redb::Error::PreviousIo
                        | redb::Error::DatabaseClosed
                        | redb::Error::Backend(_)
                );
                StoreError::Io {
                    operation,
                    retryable,
                    source: Box::new(error),
                }
            }
        }
    }
}

/// A store as it was found, for this opening.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) identity: Identity,
    /// The first commit that is not in the tables.
    pub(super) folded: u64,
    /// Whether there is a log.
    pub(super) logged: bool,
    /// Where in it that commit would be.
    pub(super) next: Next,
}

/// What the meta table says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    format: u32,
    identity: Identity,
}

/// `None` in a database without any table: a store that was not created to its end.
fn read_meta(txn: &ReadTransaction) -> Result<Option<Found>, Failed> {
    let table = match txn.open_table(META) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => {
            let mut others = txn.list_tables()?;
            return match others.next() {
                None => Ok(None),
                Some(other) => Err(other_database(other.name())),
            };
        }
        Err(TableError::TableTypeMismatch { .. }) => return Err(other_database(META.name())),
        Err(error) => return Err(error.into()),
    };
    let value =
        |name| -> Result<u128, Failed> { Ok(table.get(name)?.map_or(0, |value| value.value())) };
    Ok(Some(Found {
        format: u32::try_from(value(meta::FORMAT)?).unwrap_or(u32::MAX),
        identity: Identity {
            id: value(meta::ID)?,
            boot: u64::try_from(value(meta::BOOT)?).unwrap_or(u64::MAX),
        },
    }))
}

fn read_number(txn: &ReadTransaction, name: &str) -> Result<u64, Failed> {
    let table = txn.open_table(META)?;
    let number = table.get(name)?.map_or(0, |value| value.value());
    Ok(u64::try_from(number).unwrap_or(u64::MAX))
}

/// The log beside the tables.
fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-log");
    name.into()
}

fn other_database(table: &str) -> Failed {
    let detail = format!("it is a redb database of another program, with a table `{table}`");
    StoreError::NotAStore {
        path: PathBuf::new(),
        detail,
    }
    .into()
}

fn begins_like_a_database(path: &Path) -> bool {
    let mut start = [0; 4];
    StdFile::open(path)
        .and_then(|mut file| file.read_exact(&mut start))
        .is_ok()
        && start == *b"redb"
}

impl Source {
    pub(super) fn backends<B: StorageBackend>(
        open: impl Fn(StoreFile) -> std::io::Result<B> + Send + Sync + 'static,
    ) -> Self {
        let open = Arc::new(open);
        let log = Arc::clone(&open);
        Self::Backends {
            tables: Box::new(move |builder| builder.create_with_backend(open(StoreFile::Tables)?)),
            log: Box::new(move |_| Ok(Box::new(log(StoreFile::Log)?))),
        }
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("File").field(&self.path()).finish()
    }
}
