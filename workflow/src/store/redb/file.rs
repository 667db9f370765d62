//! The file: opening it, telling apart what it may be instead, opening it again after a failure.

use std::fmt;
use std::fs::{self, File as StdFile, OpenOptions};
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use redb::{
    Builder, Database, DatabaseError, ReadTransaction, ReadableDatabase, StorageBackend,
    TableError, TableHandle,
};

use super::creation;
use super::repair::Repair;
use super::tables::{self, FORMAT, Failed, META, meta};
use crate::store::{Identity, StoreError};

/// Where the bytes are.
pub(super) enum Source {
    Path(PathBuf),
    Backend(Opener),
}

type Opener = Box<dyn Fn(&Builder) -> Result<Database, DatabaseError> + Send + Sync>;

/// The open file.
pub(super) struct File {
    source: Source,
    cache: usize,
    database: RwLock<Option<Database>>,
}

impl File {
    /// Opens the file, or makes a new one, and counts the opening.
    pub(super) fn open(source: Source, cache: usize) -> Result<(Self, Identity), StoreError> {
        let file = Self {
            source,
            cache,
            database: RwLock::new(None),
        };
        if let Source::Path(path) = &file.source {
            file.look_before(path)?;
        }
        let database = file.connect()?;
        let identity = file.caught("opening", || file.enter(&database))?;
        *file
            .database
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Some(database);
        Ok((file, identity))
    }

    /// Works with the database; what goes wrong is told in our words.
    pub(super) fn with<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Database) -> Result<T, Failed>,
    ) -> Result<T, StoreError> {
        let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        let database = database.as_ref().ok_or(StoreError::Closed)?;
        work(database).map_err(|failed| self.told(operation, failed))
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
        let database = self
            .database
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
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
            Source::Backend(_) => Path::new("<backend>"),
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
                Source::Backend(open) => open(&builder),
            };
            opened.map_err(|error| self.told("opening", error.into()))
        })
    }

    fn builder(&self) -> Builder {
        let mut builder = Database::builder();
        builder.set_cache_size(self.cache);
        builder
    }

    /// Counts the opening in one commit, which is also the one that makes a new store.
    fn enter(&self, database: &Database) -> Result<Identity, StoreError> {
        let told = |failed| self.told("opening", failed);
        let found = database
            .begin_read()
            .map_err(Failed::from)
            .and_then(|txn| read_meta(&txn))
            .map_err(told)?;
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
        let write = || -> Result<(), Failed> {
            let mut txn = database.begin_write()?;
            txn.set_quick_repair(true);
            {
                let mut table = txn.open_table(META)?;
                table.insert(meta::FORMAT, u128::from(FORMAT))?;
                table.insert(meta::ID, identity.id)?;
                table.insert(meta::BOOT, u128::from(identity.boot))?;
            }
            // Also those that an older program did not know.
            tables::create(&txn)?;
            Ok(txn.commit()?)
        };
        write().map_err(told)?;
        if identity.boot == 1
            && let Source::Path(path) = &self.source
        {
            self.keep_name(path)?;
        }
        Ok(identity)
    }

    /// A new file must still be in its directory after a power cut.
    fn keep_name(&self, path: &Path) -> Result<(), StoreError> {
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
    fn caught<T>(
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
    pub(super) fn backend<B: StorageBackend>(
        open: impl Fn() -> std::io::Result<B> + Send + Sync + 'static,
    ) -> Self {
        Self::Backend(Box::new(move |builder| {
            builder.create_with_backend(open()?)
        }))
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("File").field(&self.path()).finish()
    }
}
