//! A log under random commits, folds, failures, kills and power cuts, against a list of what was committed.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use redb::StorageBackend;
use redb::backends::InMemoryBackend;

use super::super::file::{File, Source, StoreFile};
use super::super::tail::Commit;
use super::{GROWTH, HEAD, KEPT, Log, Next, START, Unwritten};
use crate::store::{Identity, StoreError};

#[derive(Debug, Default)]
struct Image {
    live: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
    /// So many operations work, then one fails; after doing its work, or half of it, or nothing.
    fault: Option<(u64, Failure)>,
}

#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

#[derive(Debug, Clone, Copy)]
enum Failure {
    Before,
    Half,
    After,
}

#[derive(Debug, Clone, Default)]
struct Disk(Arc<Mutex<Image>>);

impl Disk {
    fn lock(&self) -> MutexGuard<'_, Image> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self) -> Option<Failure> {
        let mut image = self.lock();
        match &mut image.fault {
            Some((0, failure)) => {
                let failure = *failure;
                image.fault = None;
                Some(failure)
            }
            Some((left, _)) => {
                *left -= 1;
                None
            }
            None => None,
        }
    }

    fn change(&self, change: Change) -> io::Result<()> {
        let failure = self.fail();
        let change = match (failure, change) {
            (Some(Failure::Before), _) => return Err(io::Error::other("before")),
            (Some(Failure::Half), Change::Write(at, mut data)) => {
                data.truncate(data.len() / 2);
                Change::Write(at, data)
            }
            (_, change) => change,
        };
        let mut image = self.lock();
        change.apply(&mut image.live);
        image.unsynced.push(change);
        failure.map_or(Ok(()), |_| Err(io::Error::other("after")))
    }

    /// The power goes: of what was not synced stays what the dice say.
    fn cut(&self, dice: &mut Dice) {
        let mut image = self.lock();
        let Image {
            live,
            durable,
            unsynced,
            ..
        } = &mut *image;
        for change in unsynced.drain(..) {
            match (dice.below(4), change) {
                (0, _) => {}
                (1, Change::Write(at, data)) => {
                    for (number, part) in data.chunks(512).enumerate() {
                        if dice.below(2) == 0 {
                            Change::Write(at + number * 512, part.to_vec()).apply(durable);
                        }
                    }
                }
                (_, change) => change.apply(durable),
            }
        }
        live.clone_from(durable);
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Length(length) => bytes.resize(*length, 0),
            Self::Write(at, data) => {
                let end = at + data.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes
                    .get_mut(*at..end)
                    .expect("it is long enough")
                    .copy_from_slice(data);
            }
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.lock().live.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let start = place(offset);
        let image = self.lock();
        let bytes = image.live.get(start..start + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(Change::Length(place(len)))
    }

    /// A sync that fails has lost what it was to sync, and what is read says otherwise until the power goes.
    fn sync_data(&self) -> io::Result<()> {
        let failure = self.fail();
        let mut image = self.lock();
        let Image {
            durable, unsynced, ..
        } = &mut *image;
        let kept = match failure {
            Some(Failure::Before) => 0,
            Some(Failure::Half) => unsynced.len() / 2,
            Some(Failure::After) | None => unsynced.len(),
        };
        for change in unsynced.drain(..).take(kept) {
            change.apply(durable);
        }
        failure.map_or(Ok(()), |_| Err(io::Error::other("a sync")))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(Change::Write(place(offset), data.to_vec()))
    }
}

fn place(offset: u64) -> usize {
    usize::try_from(offset).expect("the disk is small")
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

/// Either of a store's files.
#[derive(Debug)]
struct Either(Box<dyn StorageBackend>);

impl StorageBackend for Either {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}

fn file(disk: &Disk) -> File {
    let disk = disk.clone();
    let source = Source::backends(move |file| {
        Ok(Either(match file {
            StoreFile::Tables => Box::new(InMemoryBackend::new()),
            StoreFile::Log => Box::new(disk.clone()),
        }))
    });
    let opened = File::open(source, 0);
    opened.expect("a database in memory").0
}

/// What should be in the log.
#[derive(Default)]
struct Model {
    /// The unfolded commits.
    tail: Vec<Commit>,
    next: u64,
    /// What the tables say: the first commit that they do not have, and where it would be.
    folded: (u64, Option<Next>),
    /// Before this one, all are durable.
    synced: u64,
    /// Bodies that may stand there instead of what is not durable, since the writes of them failed.
    doubtful: Vec<Bytes>,
}

impl Model {
    fn begins(&self) -> Option<u64> {
        self.tail.first().map(|commit| commit.place.at)
    }

    fn fold(&mut self, count: usize) {
        let mut folded = self.tail.drain(..count);
        if let Some(last) = folded.next_back() {
            self.folded = (last.number + 1, Some(last.place.next));
            self.synced = self.synced.max(last.number + 1);
        }
    }
}

struct Scene {
    disk: Disk,
    file: File,
    log: Log,
    model: Model,
    identity: Identity,
    relaxed: bool,
    /// How often the log began again at its start, while it was not empty.
    turns: u64,
    full: u64,
}

impl Scene {
    fn new(relaxed: bool) -> Self {
        let disk = Disk::default();
        let file = file(&disk);
        let identity = Identity { id: 77, boot: 1 };
        let log = Log::create(&file, identity, 0, 0).expect("nothing fails yet");
        Self {
            disk,
            file,
            log,
            model: Model::default(),
            identity,
            relaxed,
            turns: 0,
            full: 0,
        }
    }

    fn append(&mut self, dice: &mut Dice) {
        // Many of the same length: then one fits where another was.
        let size = match dice.below(8) {
            0 => dice.below(40_000),
            1..4 => 2048 * (1 + dice.below(6)) - HEAD as u64,
            _ => 10,
        };
        let body: Vec<u8> = (0..size)
            .map(|_| dice.below(256).to_le_bytes()[0])
            .collect();
        let mut frame = vec![0; HEAD];
        frame.extend_from_slice(&body);
        let body = Bytes::from(body);
        let model = &mut self.model;
        let (next, begins) = (model.next, model.begins());
        if self.relaxed && dice.below(6) == 0 {
            let tail = model.tail.clone();
            match self.log.sync(&self.file, || tail) {
                Ok(()) => model.synced = next,
                Err(_) => return,
            }
        }
        match self
            .log
            .append(&self.file, next, &mut frame, begins, !self.relaxed)
        {
            Ok(place) => {
                if begins.is_some_and(|begins| place.at < begins) && place.at == Next::FIRST.at {
                    self.turns += 1;
                }
                for commit in &model.tail {
                    let apart =
                        place.next.at <= commit.place.at || commit.place.next.at <= place.at;
                    assert!(apart, "{place:?} is on {:?}", commit.place);
                }
                model.tail.push(Commit {
                    number: next,
                    place,
                    frame: frame.into(),
                    batches: 1,
                });
                model.next += 1;
                if !self.relaxed {
                    model.synced = model.next;
                    model.doubtful.clear();
                }
            }
            Err(Unwritten::Full) => {
                self.full += 1;
                assert!(!model.tail.is_empty(), "full, and nothing is in it");
                model.fold(1 + place_of(dice, model.tail.len()));
            }
            Err(Unwritten::Failed(error)) => {
                assert!(error.is_retryable());
                model.doubtful.push(body);
            }
        }
    }

    fn reopen(&mut self, when: &str) {
        self.identity.boot += 1;
        self.disk.lock().fault = None;
        let model = &mut self.model;
        let (next, at) = model.folded;
        let opened = Log::open(&self.file, self.identity, next, at.unwrap_or(Next::FIRST));
        let (log, found) = opened.unwrap_or_else(|error| panic!("{when}: {error}"));
        self.log = log;
        let sure = usize::try_from(model.synced.saturating_sub(next)).expect("few");
        assert!(found.len() >= sure, "{when}: {} of {sure}", found.len());
        let mut ended = false;
        for (number, found) in found.iter().enumerate() {
            assert!(!ended, "{when}: {number} was never written");
            let as_written = |commit: &Commit| {
                let body = |frame: &Bytes| frame.slice(HEAD..);
                (commit.number, commit.place, body(&commit.frame))
                    == (found.number, found.place, body(&found.frame))
            };
            if !model.tail.get(number).is_some_and(as_written) {
                // One whose write failed may be there all the same, unless another was made durable in its place.
                assert!(number >= sure, "{when}: {number} is another");
                let doubtful = model.doubtful.contains(&found.frame.slice(HEAD..));
                assert!(doubtful, "{when}: {number} is made up");
                ended = true;
            }
        }
        model.tail = found
            .into_iter()
            .map(|found| Commit {
                number: found.number,
                place: found.place,
                frame: found.frame,
                batches: 1,
            })
            .collect();
        model.next = next + model.tail.len() as u64;
        model.synced = model.next;
        model.doubtful.clear();
    }
}

fn place_of(dice: &mut Dice, len: usize) -> usize {
    usize::try_from(dice.below(len as u64)).expect("few")
}

#[test]
fn whatever_happens_what_was_acknowledged_is_found_and_nothing_else() {
    let (mut turns, mut full, mut failed, mut torn) = (0, 0, 0, 0);
    for seed in 1..=500_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut scene = Scene::new(seed % 2 == 0);
        for turn in 0..120 {
            let when = format!("seed {seed}, turn {turn}");
            match dice.below(20) {
                0 => {
                    // Killed: what was written is there.
                    scene.reopen(&when);
                }
                1 => {
                    scene.disk.cut(&mut dice);
                    let before = scene.model.tail.len();
                    scene.reopen(&when);
                    torn += u64::from(scene.model.tail.len() < before);
                }
                2..6 if !scene.model.tail.is_empty() => {
                    let count = 1 + place_of(&mut dice, scene.model.tail.len());
                    scene.model.fold(count);
                }
                6 => {
                    let failure = match dice.below(3) {
                        0 => Failure::Before,
                        1 => Failure::Half,
                        _ => Failure::After,
                    };
                    let after = dice.below(4);
                    scene.disk.lock().fault = Some((after, failure));
                    failed += 1;
                }
                _ => scene.append(&mut dice),
            }
        }
        scene.disk.cut(&mut dice);
        scene.reopen(&format!("seed {seed}, at the end"));
        turns += scene.turns;
        full += scene.full;
    }
    let seen = [turns, full, failed, torn];
    assert!(
        seen.iter().all(|count| *count > 20),
        "not all was tried: {seen:?}"
    );
}

#[test]
fn a_log_that_was_long_once_gives_its_room_back() {
    let mut scene = Scene::new(false);
    let mut dice = Dice(5);
    let length = |scene: &Scene| scene.disk.lock().live.len() as u64;
    while length(&scene) <= 2 * KEPT {
        scene.append(&mut dice);
    }
    scene.model.fold(scene.model.tail.len());
    scene.append(&mut dice);
    assert!(length(&scene) <= KEPT + GROWTH.end, "{}", length(&scene));
    scene.reopen("short again");
    assert_eq!(scene.model.tail.len(), 1);
}

#[test]
fn what_was_acknowledged_and_is_gone_is_damage() {
    let mut scene = Scene::new(false);
    let mut dice = Dice(9);
    while scene.model.tail.len() < 5 {
        scene.append(&mut dice);
    }
    let at = place(scene.model.tail.get(2).expect("there are five").place.at);
    if let Some(byte) = scene.disk.lock().live.get_mut(at + HEAD) {
        *byte ^= 1;
    }
    scene.identity.boot += 1;
    let opened = Log::open(&scene.file, scene.identity, 0, Next::FIRST);
    let error = opened.expect_err("it is damaged");
    assert!(
        matches!(&error, StoreError::Damaged { detail, .. } if detail.contains("commit 2 ")),
        "{error}"
    );
}

/// A frame was written and not acknowledged, then half of another over it; after a kill neither was found. The disk has the
/// first all the same, since the sync of the second failed: what is acknowledged next takes its place.
#[test]
fn what_no_opening_found_does_not_come_back_after_a_power_cut() {
    let mut scene = Scene::new(false);
    let mut dice = Dice(3);
    // Far enough from the start that what is written there does not reach the end.
    while scene.log.head < START + 8_000 {
        scene.append(&mut dice);
    }
    scene.model.fold(scene.model.tail.len());
    let number = scene.model.next;
    let write = |scene: &mut Scene, number: u64, byte: u8, fault| {
        scene.disk.lock().fault = fault;
        let mut frame = vec![byte; HEAD + 3_000];
        let begins = scene.model.begins();
        scene
            .log
            .append(&scene.file, number, &mut frame, begins, true)
            .map(|_| ())
    };
    // The first is written, and synced to its end; but the sync says that it failed.
    let head = scene.log.head;
    scene.log.stuck = true;
    scene.log.grow(&scene.file, head + 8_000);
    write(&mut scene, number, 1, Some((1, Failure::After))).expect_err("the sync failed");
    write(&mut scene, number, 2, Some((0, Failure::Half))).expect_err("the write failed");
    // The next opening finds neither; the one after it neither, and its sync is fine.
    scene.disk.lock().fault = Some((0, Failure::Before));
    let (next, at) = scene.model.folded;
    let at = at.expect("one was folded");
    Log::open(&scene.file, scene.identity, next, at).expect_err("the sync failed");
    scene.reopen("killed");
    assert!(scene.model.tail.is_empty());
    write(&mut scene, number, 3, None).expect("nothing fails");
    scene.disk.cut(&mut dice);
    let opened = Log::open(&scene.file, scene.identity, next, at);
    let (_, found) = opened.expect("nothing is damaged");
    let bytes: Vec<_> = found
        .iter()
        .map(|found| found.frame.last().copied())
        .collect();
    assert_eq!(bytes, [Some(3)]);
}
