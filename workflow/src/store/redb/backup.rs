//! The backup: a copy of the tables as of one moment, while commits and folds go on.
//!
//! 1. What was acknowledged is folded first. A snapshot of the tables then has all of it, and whole commits of what came later.
//! 2. The copy is filled under another name. What says that it is a store is written last and everything is synced, before it gets
//!    its own: a file of that name is never a part of a copy.
//! 3. It is the copy of a closed store: it says that it has no log.
//! 4. The snapshot is read a slice at a time, and holds up nobody. Only compacting the file waits for it.

use std::fs::{self, OpenOptions};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use redb::{Key, ReadTransaction, TableDefinition, TableHandle, Value};

use super::core::Core;
use super::file::File;
use super::pack;
use super::tables::{self, Failed, META, RECORDS, Visit, meta};
use crate::store::{Identity, StoreError};

/// So much is read, and written in one transaction.
const SLICE: usize = 4 << 20;
/// How much of the copy is kept in memory.
const CACHE: usize = 8 << 20;

impl Core {
    /// Copies everything that was acknowledged into a new file.
    pub(super) fn backup(&self, path: &Path) -> Result<(), StoreError> {
        self.check_open()?;
        refuse_to_overwrite(path)?;
        let copying = self.copying();
        self.fold_all()?;
        let snapshot = self.mended(|| {
            let begin =
                |database: &redb::Database| Ok(redb::ReadableDatabase::begin_read(database)?);
            self.file.with("backing up", begin)
        })?;
        let part = Part::begin(path)?;
        Copying {
            core: self,
            snapshot,
            to: &part.file,
        }
        .fill()?;
        drop(copying);
        part.finish(path)
    }
}

/// A copy under way.
struct Copying<'a> {
    core: &'a Core,
    snapshot: ReadTransaction,
    to: &'a File,
}

impl Copying<'_> {
    fn fill(mut self) -> Result<(), StoreError> {
        self.to
            .write("backing up", |txn| Ok(tables::create(txn)?))?;
        tables::every(&mut self)?;
        self.to.shrink()?;
        self.seal()
    }

    /// Makes it a store.
    fn seal(&self) -> Result<(), StoreError> {
        let numbers = self.read(|snapshot| {
            let table = snapshot.open_table(META)?;
            let numbers = table.range::<&str>(..)?.map(|number| {
                let (name, number) = number?;
                Ok((name.value().to_owned(), number.value()))
            });
            numbers.collect::<Result<Vec<_>, Failed>>()
        })?;
        self.to.write("backing up", |txn| {
            let mut table = txn.open_table(META)?;
            for (name, number) in &numbers {
                table.insert(&**name, number)?;
            }
            table.insert(meta::LOGGED, 0)?;
            Ok(())
        })
    }

    fn read<T>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, Failed>,
    ) -> Result<T, StoreError> {
        // A store that is closed waits for nobody.
        self.core.check_open()?;
        let file = &self.core.file;
        let read = file.caught("backing up", || {
            read(&self.snapshot).map_err(|failed| file.told("backing up", failed))
        });
        // It may have been closed since: then that is why.
        read.or_else(|error| self.core.check_open().and(Err(error)))
    }

    /// The records, joined: a copy has no reason to be as scattered as what it is of.
    fn records(&self) -> Result<(), StoreError> {
        let mut from = Some((0, 0));
        while let Some(at) = from {
            let (joined, next) = self.read(|snapshot| pack::look(snapshot, at))?;
            self.to.write("backing up", |txn| {
                let mut table = txn.open_table(RECORDS)?;
                for joined in &joined {
                    table.insert((joined.run, joined.first), &joined.bytes[..])?;
                }
                Ok(())
            })?;
            from = next;
        }
        Ok(())
    }
}

impl Visit for Copying<'_> {
    type Error = StoreError;

    fn table<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
    ) -> Result<(), StoreError> {
        if table.name() == RECORDS.name() {
            return self.records();
        }
        let mut rows =
            self.read(|snapshot| Ok(snapshot.open_table(table)?.range::<K::SelfType<'_>>(..)?))?;
        loop {
            let slice = self.read(|_| {
                let (mut slice, mut size) = (Vec::new(), 0);
                while size < SLICE
                    && let Some(row) = rows.next()
                {
                    let (key, value) = row?;
                    size += K::as_bytes(&key.value()).as_ref().len();
                    size += V::as_bytes(&value.value()).as_ref().len();
                    slice.push((key, value));
                }
                Ok(slice)
            })?;
            if slice.is_empty() {
                return Ok(());
            }
            self.to.write("backing up", |txn| {
                let mut table = txn.open_table(table)?;
                for (key, value) in &slice {
                    table.insert(key.value(), value.value())?;
                }
                Ok(())
            })?;
        }
    }
}

/// The file of a copy that is not whole yet. It goes when this does.
struct Part {
    path: PathBuf,
    file: File,
}

impl Part {
    /// A new one beside where the copy is to be. Nobody else has its name.
    fn begin(copy: &Path) -> Result<Self, StoreError> {
        let mut path = copy.as_os_str().to_owned();
        path.push(format!("-{:032x}-part", Identity::random()));
        let path = PathBuf::from(path);
        let file = File::create(&path, CACHE)?;
        Ok(Self { path, file })
    }

    /// Gives it its name, which nothing may have.
    fn finish(self, copy: &Path) -> Result<(), StoreError> {
        self.file.close()?;
        let synced = OpenOptions::new().write(true).open(&self.path);
        synced.and_then(|file| file.sync_all()).map_err(failed)?;
        match fs::hard_link(&self.path, copy) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(exists(copy)),
            // A file system without links.
            Err(_) => {
                refuse_to_overwrite(copy)?;
                fs::rename(&self.path, copy).map_err(failed)?;
            }
        }
        self.file.keep_name(copy)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // It failed before, or has another name now.
        drop(self.file.close());
        drop(fs::remove_file(&self.path));
    }
}

fn refuse_to_overwrite(path: &Path) -> Result<(), StoreError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(exists(path)),
        // What else is wrong with it, creating it tells.
        Err(_) => Ok(()),
    }
}

fn exists(path: &Path) -> StoreError {
    StoreError::Exists { path: path.into() }
}

fn failed(error: Error) -> StoreError {
    StoreError::Io {
        operation: "backing up",
        retryable: true,
        source: Box::new(error),
    }
}
