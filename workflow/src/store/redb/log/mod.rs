//! The log: commits that the tables do not have yet, in a file of its own beside theirs.
//!
//! ```text
//! file:  title, up to START | frames, and what is left of older ones
//! title: magic 16 | store's id u128 | crc32
//! frame: magic 4 | body's crc32 | body's length u64 | number u64 | durable u64 | before u64 | hash of all this u64 | body
//! ```
//!
//! Numbers are little endian. A frame begins at a multiple of [`ALIGN`].
//!
//! 1. A commit is one frame, one write and one sync. Its number is that of the frame before and one, and `before` is that
//!    frame's hash: what was built on a commit that was lost is never taken for the next of another.
//! 2. A frame stands right after the one before it, or at [`START`]: so the room of what is folded is used again, and a write
//!    there changes nothing but the bytes, which costs less to sync than making a file longer.
//! 3. `durable` says how many of the frames before were known to be durable when this one was written. One that is missing
//!    below it was acknowledged, so the file is damaged; one that is missing above it was being written.
//! 4. A frame that could not be written is written again at the same place, before any other: no two stand there by one
//!    number.
//! 5. The hash of a frame's head is keyed with the store's id: what a payload holds is never taken for one.

use std::fmt;
use std::ops::Range;
use std::time::Instant;

use bytes::Bytes;
use redb::StorageBackend;
use siphasher::sip::SipHasher13;

use super::file::File;
use super::tail::Commit;
use crate::store::{Identity, StoreError};

#[cfg(test)]
mod tests;

/// Where the first frame may stand. What is before it is written once.
pub(super) const START: u64 = 4096;
/// Frames begin at multiples of it.
const ALIGN: usize = 16;
/// The length of a frame's head.
pub(super) const HEAD: usize = 48;

const TITLE: [u8; 16] = *b"workflow log 1\n\0";
const MAGIC: [u8; 4] = *b"wflg";

/// The file is made longer by so much at a time, with zeros: a sync of bytes that were written before costs less.
const GROWTH: Range<u64> = if cfg!(test) {
    4 << 10..16 << 10
} else {
    256 << 10..4 << 20
};
/// A log that is longer when everything is folded gives the rest back.
const KEPT: u64 = if cfg!(test) { 64 << 10 } else { 64 << 20 };

/// The open log, for one writer at a time.
pub(super) struct Log {
    disk: Option<Box<dyn StorageBackend>>,
    store: u128,
    /// The hash of the last frame.
    last: u64,
    /// Where the next frame goes, if not at the start.
    head: u64,
    /// How far the file was written.
    length: u64,
    /// A frame at `head` may be there half, or whole: the next one takes its place.
    stuck: bool,
    /// A write or a sync failed: what was not synced may be lost, however it looks.
    doubtful: bool,
    /// The first commit that may not be durable yet, and since when.
    unsynced: Option<(u64, Instant)>,
}

/// A commit as it was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) number: u64,
    pub(super) place: Place,
    /// All of its frame.
    pub(super) frame: Bytes,
}

/// Where a commit stands in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) at: u64,
    /// Where the next one would, and what it must say of the one before.
    pub(super) next: Next,
}

/// Where a commit would stand that is not in the log yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Next {
    /// Here, or at the start.
    pub(super) at: u64,
    /// The hash of the frame before.
    pub(super) before: u64,
}

impl Next {
    /// In a log that is new.
    pub(super) const FIRST: Self = Self {
        at: START,
        before: 0,
    };
}

impl Place {
    /// Of what is not in the log.
    pub(super) const NOWHERE: Self = Self {
        at: START,
        next: Next::FIRST,
    };
}

/// Where a frame of this length ends that stands here.
fn end(at: u64, frame: usize) -> u64 {
    at + frame.next_multiple_of(ALIGN) as u64
}

/// Why a frame was not written.
#[derive(Debug)]
pub(super) enum Unwritten {
    /// What is not folded is in the way.
    Full,
    Failed(StoreError),
}

impl Log {
    /// Makes the log of a store that was closed, empty and durable. What is there already goes, unless it may be somebody else's,
    /// or tells what the tables do not know: they have every commit before number `folded`. `before` is the hash of the last
    /// frame there was in any log of the store.
    pub(super) fn create(
        file: &File,
        identity: Identity,
        folded: u64,
        before: u64,
    ) -> Result<Self, StoreError> {
        let disk = file.open_log()?;
        let failed = |error| file.failed("creating the log", error);
        let left = whole(&*disk).map_err(failed)?;
        match owner(&left) {
            Some(store) if store == identity.id => {
                let bytes = left;
                // Closing leaves none: the store went on after this copy of its tables was made.
                if (Reading { store, bytes }).has_frames_from(folded) {
                    return Err(file.log_ahead());
                }
            }
            Some(store) => {
                let bytes = left;
                if (Reading { store, bytes }).has_frames_from(0) {
                    return Err(file.foreign_log());
                }
            }
            None if was_cut_off(&left) => {}
            None => return Err(file.not_a_log()),
        }
        let mut start = title(identity.id);
        start.resize(usize::try_from(START).unwrap_or_default(), 0);
        let made = disk
            .set_len(0)
            .and_then(|()| disk.write(0, &start))
            .and_then(|()| disk.sync_data());
        made.map_err(failed)?;
        file.keep_log()?;
        let next = Next { at: START, before };
        Ok(Self::new(disk, identity.id, next, START))
    }

    /// Opens the log of a store, and gives the commits in it from number `number` on, of which `next` tells.
    pub(super) fn open(
        file: &File,
        identity: Identity,
        number: u64,
        next: Next,
    ) -> Result<(Self, Vec<Found>), StoreError> {
        let disk = file.open_log()?;
        let failed = |error| file.failed("reading the log", error);
        let bytes = whole(&*disk).map_err(failed)?;
        match owner(&bytes) {
            Some(store) if store == identity.id => {}
            Some(_) => return Err(file.damaged_log("it is that of another store")),
            None => return Err(file.damaged_log("it does not begin as one")),
        }
        let store = identity.id;
        let reading = Reading { store, bytes };
        let found = reading.chain(number, next);
        let end = found.last().map_or(number, |last| last.number + 1);
        if let Some(later) = reading.missing(end) {
            let detail = format!("commit {end} is missing, and commit {later} builds on it");
            return Err(file.damaged_log(&detail));
        }
        // Whoever wrote it may not have synced it, or failed to, and then only what is written again is synced for sure. From
        // here on it counts as durable.
        for (at, bytes) in reading.stretches(&found) {
            disk.write(at, bytes).map_err(failed)?;
        }
        disk.sync_data().map_err(failed)?;
        let next = found.last().map_or(next, |last| last.place.next);
        let length = reading.bytes.len() as u64;
        let mut log = Self::new(disk, identity.id, next, length);
        // A frame may be there that was half written over, and whole again after a power cut.
        log.stuck = next.at < length;
        Ok((log, found))
    }

    fn new(disk: Box<dyn StorageBackend>, store: u128, next: Next, length: u64) -> Self {
        Self {
            disk: Some(disk),
            store,
            last: next.before,
            head: next.at,
            length: length.max(next.at),
            stuck: false,
            doubtful: false,
            unsynced: None,
        }
    }

    /// Writes a commit's frame, and syncs it if it must be durable now. `frame` begins with room for its head, `oldest` is
    /// where the oldest commit stands that is not folded.
    pub(super) fn append(
        &mut self,
        file: &File,
        number: u64,
        frame: &mut [u8],
        oldest: Option<u64>,
        durably: bool,
    ) -> Result<Place, Unwritten> {
        let at = self.place(frame.len(), oldest).ok_or(Unwritten::Full)?;
        let end = end(at, frame.len());
        let durable = self.unsynced.map_or(number, |(first, _)| first);
        let hash = seal(self.store, number, durable, self.last, frame);
        if oldest.is_none() && self.length > KEPT && end < KEPT {
            self.on(file, |disk| disk.set_len(KEPT))?;
            self.length = KEPT;
        }
        self.grow(file, end);
        self.stuck = true;
        self.on(file, |disk| disk.write(at, frame))?;
        self.length = self.length.max(end);
        self.unsynced.get_or_insert((number, Instant::now()));
        if durably {
            self.on(file, StorageBackend::sync_data)?;
            self.doubtful = false;
            self.unsynced = None;
        }
        self.stuck = false;
        (self.head, self.last) = (end, hash);
        let next = Next {
            at: end,
            before: hash,
        };
        Ok(Place { at, next })
    }

    /// Makes durable what may not be. `commits` gives those that are not folded: after a sync that failed nobody knows what
    /// is on the disk, so they are written again.
    pub(super) fn sync(
        &mut self,
        file: &File,
        commits: impl FnOnce() -> Vec<Commit>,
    ) -> Result<(), StoreError> {
        let Some((first, _)) = self.unsynced else {
            return Ok(());
        };
        if self.doubtful {
            for commit in commits().iter().filter(|commit| commit.number >= first) {
                let frame = commit.frame.clone();
                self.on(file, |disk| disk.write(commit.place.at, &frame))?;
            }
        }
        self.on(file, StorageBackend::sync_data)?;
        self.doubtful = false;
        self.unsynced = None;
        Ok(())
    }

    /// Has its file open, and so locked.
    pub(super) fn hold(&mut self, file: &File) -> Result<(), StoreError> {
        self.on(file, |_| Ok(()))
    }

    /// Since when something may not be durable.
    pub(super) fn unsynced_since(&self) -> Option<Instant> {
        self.unsynced.map(|(_, since)| since)
    }

    /// Removes the frames, durably: everything is in the tables. They may say that there is no log only then, so that a frame
    /// beside tables that say so is of a later time than they are.
    pub(super) fn clear(&mut self, file: &File) -> Result<(), StoreError> {
        self.on(file, |disk| {
            disk.set_len(START)?;
            disk.sync_data()
        })?;
        self.unsynced = None;
        Ok(())
    }

    /// Empties the log and lets go of it: everything is in the tables, and they say so.
    pub(super) fn close(&mut self, file: &File) -> Result<(), StoreError> {
        self.on(file, |disk| disk.set_len(0))?;
        self.disk = None;
        file.remove_log();
        Ok(())
    }

    /// Where a frame of this length goes. `None` when there is no room before what is not folded.
    fn place(&self, frame: usize, oldest: Option<u64>) -> Option<u64> {
        let (here, first) = (end(self.head, frame), end(START, frame));
        match oldest {
            None if self.stuck => Some(self.head),
            None => Some(START),
            // It went back to the start before. What is not folded begins further on, and must not be reached.
            Some(oldest) if self.head < oldest => (here < oldest).then_some(self.head),
            Some(oldest) => {
                let half = oldest - START >= (self.length - START) / 2;
                let back = !self.stuck && here > self.length && half && first < oldest;
                Some(if back { START } else { self.head })
            }
        }
    }

    /// Makes the file longer than it has to be. Where that fails the frame itself may still find room.
    fn grow(&mut self, file: &File, end: u64) {
        const ZEROS: &[u8] = &[0; 64 << 10];
        if end <= self.length {
            return;
        }
        let more = (self.length / 4).clamp(GROWTH.start, GROWTH.end);
        let target = (end + more).next_multiple_of(START);
        while self.length < target {
            let part = (target - self.length).min(ZEROS.len() as u64);
            let zeros = ZEROS.get(..usize::try_from(part).unwrap_or_default());
            let length = self.length;
            let written = self.on(file, |disk| disk.write(length, zeros.unwrap_or_default()));
            if written.is_err() {
                return;
            }
            self.length += part;
        }
    }

    /// Opens the file again, if it is still there: what is written to another is lost.
    fn again(&self, file: &File) -> Result<Box<dyn StorageBackend>, StoreError> {
        if !file.has_log()? {
            return Err(file.log_missing());
        }
        let disk = file.open_log()?;
        let mut start = title(self.store);
        let read = disk.len().and_then(|length| {
            start.truncate(usize::try_from(length).unwrap_or(usize::MAX));
            disk.read(0, &mut start)
        });
        read.map_err(|error| file.failed("opening the log", error))?;
        if owner(&start) == Some(self.store) {
            Ok(disk)
        } else {
            Err(file.damaged_log("it is not the one any more that this store began"))
        }
    }

    /// Works with the disk. After a failure it is opened again, since some never work again.
    fn on<T>(
        &mut self,
        file: &File,
        work: impl FnOnce(&dyn StorageBackend) -> std::io::Result<T>,
    ) -> Result<T, StoreError> {
        let disk = match self.disk.take() {
            Some(disk) => disk,
            None => self.again(file)?,
        };
        match work(&*disk) {
            Ok(done) => {
                self.disk = Some(disk);
                Ok(done)
            }
            Err(error) => {
                self.doubtful = true;
                Err(file.failed("writing the log", error))
            }
        }
    }
}

/// What was in a log when it was opened.
struct Reading {
    store: u128,
    bytes: Bytes,
}

/// The head of a frame.
#[derive(Debug, Clone, Copy)]
struct Head {
    crc: u32,
    length: u64,
    number: u64,
    durable: u64,
    before: u64,
    hash: u64,
}

impl Reading {
    /// The commits from number `number` on, as far as they follow one another.
    fn chain(&self, number: u64, next: Next) -> Vec<Found> {
        let mut found = Vec::new();
        let (mut number, mut next) = (number, next);
        loop {
            let mut places = [next.at, START].into_iter();
            let Some(frame) = places.find_map(|at| self.frame(at, number, next.before)) else {
                return found;
            };
            number += 1;
            next = frame.place.next;
            found.push(frame);
        }
    }

    /// The bytes of these commits, in as few pieces as they stand in.
    fn stretches<'a>(&'a self, found: &'a [Found]) -> impl Iterator<Item = (u64, &'a [u8])> {
        let pieces = found.chunk_by(|one, other| one.place.next.at == other.place.at);
        pieces.filter_map(|piece| {
            let (first, last) = (piece.first()?.place.at, piece.last()?);
            let start = usize::try_from(first).ok()?;
            let end = usize::try_from(last.place.at).ok()? + last.frame.len();
            Some((first, self.bytes.get(start..end)?))
        })
    }

    /// The whole frame of this number at this place, if it is there and follows that one.
    fn frame(&self, at: u64, number: u64, before: u64) -> Option<Found> {
        let head = self.head(at)?;
        let start = usize::try_from(at).ok()?;
        let body = start.checked_add(HEAD)?;
        let ends = body.checked_add(usize::try_from(head.length).ok()?)?;
        let crc = crc32fast::hash(self.bytes.get(body..ends)?);
        let fits = head.number == number && head.before == before && head.crc == crc;
        fits.then(|| Found {
            number,
            place: Place {
                at,
                next: Next {
                    at: end(at, ends - start),
                    before: head.hash,
                },
            },
            // A copy: no batch of it must hold all that was read.
            frame: Bytes::copy_from_slice(self.bytes.get(start..ends).unwrap_or_default()),
        })
    }

    fn has_frames_from(&self, number: u64) -> bool {
        let mut places = (START..self.bytes.len() as u64).step_by(ALIGN);
        places.any(|at| self.head(at).is_some_and(|head| head.number >= number))
    }

    /// A commit that was written when commit `end` was known to be durable.
    fn missing(&self, end: u64) -> Option<u64> {
        let mut places = (START..self.bytes.len() as u64).step_by(ALIGN);
        places.find_map(|at| {
            let head = self.head(at)?;
            (head.durable > end).then_some(head.number)
        })
    }

    fn head(&self, at: u64) -> Option<Head> {
        let start = usize::try_from(at).ok()?;
        let head = self.bytes.get(start..start.checked_add(HEAD)?)?;
        let (magic, rest) = head.split_first_chunk()?;
        if *magic != MAGIC {
            return None;
        }
        let (crc, rest) = rest.split_first_chunk()?;
        let (numbers, _) = rest.as_chunks::<8>();
        let [length, number, durable, before, hash] = numbers else {
            return None;
        };
        let hash = u64::from_le_bytes(*hash);
        let sealed = head.get(..HEAD - 8)?;
        (keyed(self.store, sealed) == hash).then(|| Head {
            crc: u32::from_le_bytes(*crc),
            length: u64::from_le_bytes(*length),
            number: u64::from_le_bytes(*number),
            durable: u64::from_le_bytes(*durable),
            before: u64::from_le_bytes(*before),
            hash,
        })
    }
}

/// Writes the head of a frame into the room that is left for it, and gives its hash.
fn seal(store: u128, number: u64, durable: u64, before: u64, frame: &mut [u8]) -> u64 {
    let Some((head, body)) = frame.split_first_chunk_mut::<HEAD>() else {
        return 0;
    };
    let mut out = Vec::with_capacity(HEAD);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&crc32fast::hash(body).to_le_bytes());
    for number in [body.len() as u64, number, durable, before] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    let hash = keyed(store, &out);
    out.extend_from_slice(&hash.to_le_bytes());
    head.copy_from_slice(&out);
    hash
}

fn keyed(store: u128, bytes: &[u8]) -> u64 {
    SipHasher13::new_with_key(&store.to_le_bytes()).hash(bytes)
}

fn title(store: u128) -> Vec<u8> {
    let mut title = TITLE.to_vec();
    title.extend_from_slice(&store.to_le_bytes());
    title.extend_from_slice(&crc32fast::hash(&title).to_le_bytes());
    title
}

/// The store that a log is of.
fn owner(bytes: &[u8]) -> Option<u128> {
    let store = bytes.get(TITLE.len()..)?.first_chunk()?;
    let store = u128::from_le_bytes(*store);
    bytes.starts_with(&title(store)).then_some(store)
}

/// Whether the creation of a log was cut off before this was its title: until then there are zeros, and of the title what
/// got there.
fn was_cut_off(bytes: &[u8]) -> bool {
    let (start, rest) = bytes.split_at(bytes.len().min(title(0).len()));
    let mut begun = start.iter().zip(TITLE);
    begun.all(|(byte, written)| *byte == 0 || *byte == written)
        && rest.iter().all(|byte| *byte == 0)
}

fn whole(disk: &dyn StorageBackend) -> std::io::Result<Bytes> {
    let length = usize::try_from(disk.len()?).map_err(std::io::Error::other)?;
    let mut bytes = vec![0; length];
    disk.read(0, &mut bytes)?;
    Ok(bytes.into())
}

impl From<StoreError> for Unwritten {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("head", &self.head)
            .field("length", &self.length)
            .field("stuck", &self.stuck)
            .field("unsynced", &self.unsynced)
            .finish_non_exhaustive()
    }
}
