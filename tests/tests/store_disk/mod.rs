//! A disk in memory that can lose its power between any two operations.

#![allow(dead_code, reason = "each test file uses its part")]

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use redb::StorageBackend;

pub(crate) mod scene;

/// The disk. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk(Arc<Mutex<Image>>);

#[derive(Debug, Default)]
struct Image {
    live: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
    /// Changes and syncs so far.
    done: u64,
    syncs: u64,
    fault: Option<(u64, Fault)>,
    failed: u64,
    synced_by: Option<ThreadId>,
}

#[derive(Debug, Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Length(u64),
}

/// What happens at an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
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
pub(crate) enum Left {
    /// Nothing.
    Nothing,
    /// All.
    All,
    /// Those that the dice say.
    Some(u64),
}

impl Disk {
    /// What one would find after the power came back.
    pub(crate) fn after_power_cut(&self, left: Left) -> Self {
        let image = self.lock();
        let mut bytes = image.durable.clone();
        let mut dice = match left {
            Left::Some(seed) => seed | 1,
            _ => 1,
        };
        for change in &image.unsynced {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            let stays = match left {
                Left::Nothing => false,
                Left::All => true,
                Left::Some(_) => dice % 2 == 0,
            };
            if stays {
                change.apply(&mut bytes);
            }
        }
        Self(Arc::new(Mutex::new(Image {
            live: bytes.clone(),
            durable: bytes,
            ..Image::default()
        })))
    }

    /// Makes the operation that is `after` from now fail.
    pub(crate) fn fault(&self, after: u64, fault: Fault) {
        let mut image = self.lock();
        image.fault = Some((image.done + after, fault));
    }

    pub(crate) fn done(&self) -> u64 {
        self.lock().done
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.lock().syncs
    }

    /// Who synced last.
    pub(crate) fn synced_by(&self) -> Option<ThreadId> {
        self.lock().synced_by
    }

    /// How many operations failed.
    pub(crate) fn failed(&self) -> u64 {
        self.lock().failed
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.lock().live.clone()
    }

    pub(crate) fn backend(&self) -> impl StorageBackend + use<> {
        Backend(self.clone())
    }

    /// The disk that panics does so under the lock, too.
    fn lock(&self) -> MutexGuard<'_, Image> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: Change) -> io::Result<()> {
        let mut image = self.lock();
        let outcome = image.next();
        if outcome.is_ok() || image.lied() {
            change.apply(&mut image.live);
            image.unsynced.push(change);
        }
        outcome
    }
}

impl Image {
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
            Self::Length(len) => bytes.resize(usize::try_from(*len).unwrap(), 0),
            Self::Write(offset, data) => {
                let start = usize::try_from(*offset).unwrap();
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
struct Backend(Disk);

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().live.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let image = self.0.lock();
        let start = usize::try_from(offset).unwrap();
        let bytes = image
            .live
            .get(start..start + out.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.change(Change::Length(len))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.change(Change::Write(offset, data.to_vec()))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut image = self.0.lock();
        let outcome = image.next();
        if outcome.is_ok() || image.lied() {
            let Image { live, durable, .. } = &mut *image;
            durable.clone_from(live);
            image.unsynced.clear();
        }
        image.syncs += u64::from(outcome.is_ok());
        image.synced_by = Some(thread::current().id());
        outcome
    }
}
