//! A disk in memory that can lose its power between any two operations.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use redb::StorageBackend;
use workflow::store::StoreFile;

/// The disk, with the files of one store. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct Disk(Arc<Mutex<Image>>);

#[derive(Debug, Default)]
struct Image {
    tables: Bytes,
    log: Bytes,
    /// Changes and syncs so far.
    done: u64,
    syncs: u64,
    fault: Option<(u64, Fault)>,
    failed: u64,
    synced_by: Option<ThreadId>,
}

/// A file.
#[derive(Debug, Default, Clone)]
struct Bytes {
    live: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Length(u64),
}

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

/// What happens at an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It and all that follow fail.
    PowerCut,
    /// It fails; the next one works.
    Hiccup,
    /// It does its work, and says that it failed; the next one works.
    Lie,
    /// It panics.
    Panic,
}

/// What of the unsynced writes a power cut leaves.
#[derive(Debug, Clone, Copy)]
pub enum Left {
    /// Nothing.
    Nothing,
    /// All.
    All,
    /// Those that the dice say; of some, some sectors.
    Some(u64),
}

impl Disk {
    /// What one would find after the power came back.
    #[must_use]
    pub fn after_power_cut(&self, left: Left) -> Self {
        let image = self.lock();
        let mut dice = Dice(match left {
            Left::Some(seed) => seed | 1,
            _ => 1,
        });
        Self(Arc::new(Mutex::new(Image {
            tables: image.tables.after_power_cut(left, &mut dice),
            log: image.log.after_power_cut(left, &mut dice),
            ..Image::default()
        })))
    }

    /// Makes the operation that is `after` from now fail.
    pub fn fault(&self, after: u64, fault: Fault) {
        let mut image = self.lock();
        image.fault = Some((image.done + after, fault));
    }

    /// How many operations there were.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.lock().done
    }

    /// How many syncs there were.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.lock().syncs
    }

    /// Who synced last.
    #[must_use]
    pub fn synced_by(&self) -> Option<ThreadId> {
        self.lock().synced_by
    }

    /// How many operations failed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.lock().failed
    }

    /// What a file has in it now.
    #[must_use]
    pub fn bytes(&self, file: StoreFile) -> Vec<u8> {
        self.lock().file(file).live.clone()
    }

    /// Somebody removes a file.
    pub fn remove(&self, file: StoreFile) {
        *self.lock().file(file) = Bytes::default();
    }

    /// A disk on which these are the files.
    #[must_use]
    pub fn of(tables: Vec<u8>, log: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(Image {
            tables: Bytes::of(tables),
            log: Bytes::of(log),
            ..Image::default()
        })))
    }

    /// One of its files, for a store to be opened on.
    #[must_use]
    pub fn backend(&self, file: StoreFile) -> impl StorageBackend + use<> {
        Backend(self.clone(), file)
    }

    /// The disk that panics does so under the lock, too.
    fn lock(&self) -> MutexGuard<'_, Image> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, file: StoreFile, change: Change) -> io::Result<()> {
        let mut image = self.lock();
        let outcome = image.next();
        if outcome.is_ok() || image.lied() {
            let bytes = image.file(file);
            change.apply(&mut bytes.live);
            bytes.unsynced.push(change);
        }
        outcome
    }
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

impl Bytes {
    fn of(bytes: Vec<u8>) -> Self {
        Self {
            live: bytes.clone(),
            durable: bytes,
            unsynced: Vec::new(),
        }
    }

    fn after_power_cut(&self, left: Left, dice: &mut Dice) -> Self {
        let mut bytes = self.durable.clone();
        for change in &self.unsynced {
            match left {
                Left::Nothing => {}
                Left::All => change.apply(&mut bytes),
                Left::Some(_) => match (dice.roll() % 4, change) {
                    (0, _) => {}
                    (1, Change::Write(offset, data)) => tear(*offset, data, dice, &mut bytes),
                    _ => change.apply(&mut bytes),
                },
            }
        }
        Self::of(bytes)
    }
}

fn place(offset: u64) -> usize {
    usize::try_from(offset).expect("the file is in memory")
}

/// Writes those sectors that the dice say.
fn tear(offset: u64, data: &[u8], dice: &mut Dice, bytes: &mut Vec<u8>) {
    let start = place(offset);
    let first = SECTOR - start % SECTOR;
    let (head, rest) = data.split_at(first.min(data.len()));
    let mut at = offset;
    for part in std::iter::once(head).chain(rest.chunks(SECTOR)) {
        if dice.roll().is_multiple_of(2) {
            Change::Write(at, part.to_vec()).apply(bytes);
        }
        at += part.len() as u64;
    }
}

impl Image {
    fn file(&mut self, file: StoreFile) -> &mut Bytes {
        match file {
            StoreFile::Tables => &mut self.tables,
            StoreFile::Log => &mut self.log,
        }
    }

    fn next(&mut self) -> io::Result<()> {
        self.done += 1;
        match self.fault {
            Some((at, Fault::PowerCut)) if self.done > at => {}
            Some((at, fault)) if self.done == at + 1 && fault != Fault::PowerCut => {
                assert!(fault != Fault::Panic, "the disk panics");
            }
            _ => return Ok(()),
        }
        self.failed += 1;
        Err(io::Error::other("no power"))
    }

    fn lied(&self) -> bool {
        matches!(self.fault, Some((at, Fault::Lie)) if self.done == at + 1)
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Length(len) => bytes.resize(place(*len), 0),
            Self::Write(offset, data) => {
                let start = place(*offset);
                let end = start + data.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[start..end].copy_from_slice(data);
            }
        }
    }
}

#[derive(Debug)]
struct Backend(Disk, StoreFile);

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().file(self.1).live.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut image = self.0.lock();
        let start = place(offset);
        let bytes = image
            .file(self.1)
            .live
            .get(start..start + out.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.change(self.1, Change::Length(len))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.change(self.1, Change::Write(offset, data.to_vec()))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut image = self.0.lock();
        let outcome = image.next();
        if outcome.is_ok() || image.lied() {
            let Bytes {
                live,
                durable,
                unsynced,
            } = image.file(self.1);
            durable.clone_from(live);
            unsynced.clear();
        }
        image.syncs += u64::from(outcome.is_ok());
        image.synced_by = Some(thread::current().id());
        outcome
    }
}
