//! What the world does to a store's files: full disks, files that somebody else wrote to, files that are gone.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redb::StorageBackend;
use workflow::store::{Appended, RedbStore, RunFilter, Store, StoreError, StoreFile};
use workflow::{Engine, Failure, RunId, step, workflow};

use workflow_tests::disk::{Disk, Left};
use workflow_tests::scene::{block_on, open, start, step as one};

/// A disk with so much room for each file.
#[derive(Debug)]
struct Small {
    disk: Box<dyn StorageBackend>,
    room: Arc<AtomicU64>,
}

impl Small {
    fn fits(&self, end: u64) -> io::Result<()> {
        if end > self.room.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

impl StorageBackend for Small {
    fn len(&self) -> io::Result<u64> {
        self.disk.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.fits(len)?;
        self.disk.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.fits(offset + data.len() as u64)?;
        self.disk.write(offset, data)
    }
}

fn small(disk: &Disk, room: &Arc<AtomicU64>) -> RedbStore {
    let (disk, room) = (disk.clone(), Arc::clone(room));
    let opened = RedbStore::builder().open_backend(move |file| {
        Ok(Small {
            disk: Box::new(disk.backend(file)),
            room: Arc::clone(&room),
        })
    });
    opened.unwrap()
}

#[test]
fn a_full_disk_is_an_error_that_passes_and_nothing_acknowledged_is_lost_by_it() {
    let (disk, room) = (Disk::default(), Arc::new(AtomicU64::new(u64::MAX)));
    let store = small(&disk, &room);
    let mut owner = block_on(start(&store, "a"));
    for round in 0..3 {
        // No file may grow any more.
        let sizes = [StoreFile::Tables, StoreFile::Log].map(|file| disk.bytes(file).len());
        room.store(sizes.into_iter().max().unwrap() as u64, Ordering::SeqCst);
        let mut written = 0;
        let refused = loop {
            let before = owner.clone();
            let append = one(&mut owner, "s");
            match block_on(store.append(append)) {
                Ok(answer) => assert_eq!(answer, Appended::Applied),
                Err(error) => {
                    owner = before;
                    break error;
                }
            }
            written += 1;
            assert!(written < 200_000, "it never fills");
        };
        assert!(refused.is_retryable(), "{refused}");
        let mut why = refused.to_string();
        let mut error: &dyn std::error::Error = &refused;
        while let Some(source) = error.source() {
            why = format!("{why}: {source}");
            error = source;
        }
        assert!(why.contains("space"), "{why}");
        // What is there can be read, and after a crash, too.
        let row = block_on(store.row(owner.run)).unwrap().unwrap();
        assert_eq!(row.last_seq, owner.seq, "round {round}");
        let crashed = open(&disk.after_power_cut(Left::Nothing)).unwrap();
        let row = block_on(crashed.row(owner.run)).unwrap().unwrap();
        assert_eq!(row.last_seq, owner.seq, "round {round}");
        // Somebody makes room.
        room.store(u64::MAX, Ordering::SeqCst);
        let answer = block_on(store.append(one(&mut owner, "s"))).unwrap();
        assert_eq!(answer, Appended::Applied);
        store.fold().unwrap();
    }
    block_on(store.close()).unwrap();
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 20).unwrap() % limit.max(1)
    }
}

/// Somebody else writes to a file.
fn spoil(bytes: &mut Vec<u8>, dice: &mut Dice) {
    match dice.below(5) {
        0 => bytes.truncate(dice.below(bytes.len())),
        1 => {
            let (from, to) = (dice.below(bytes.len()), dice.below(bytes.len()));
            let length = dice.below(5_000).min(bytes.len() - from.max(to));
            bytes.copy_within(from..from + length, to);
        }
        2 => {
            let start = dice.below(bytes.len());
            let end = (start + dice.below(600)).min(bytes.len());
            bytes[start..end].fill(0xff);
        }
        _ => {
            for _ in 0..=dice.below(6) {
                let at = dice.below(bytes.len());
                bytes[at] ^= 1 << dice.below(8);
            }
        }
    }
}

/// Everything that can be asked of a store, whatever the answers.
fn ask_everything(store: &RedbStore) {
    let id = RunId::new("run-3").unwrap();
    drop(block_on(store.find(&id)));
    let active = block_on(store.active(None, 99)).unwrap_or_default();
    let listed = block_on(store.list(&RunFilter::default()));
    let listed = listed.map(|page| page.rows).unwrap_or_default();
    for run in active.into_iter().chain(listed.iter().map(|row| row.key)) {
        drop(block_on(store.load(run)));
        drop(block_on(store.first(run)));
        drop(block_on(store.inbox(run, 0, 9)));
        drop(block_on(store.dead_letters(run, 0, 9)));
    }
    drop(block_on(store.due(None, workflow::Timestamp::MAX, 99)));
    drop(block_on(store.values("", None, 99)));
    drop(block_on(store.answer(1)));
    drop(store.fold());
}

#[test]
fn files_that_somebody_wrote_to_are_opened_or_refused_and_never_a_panic_or_a_hang() {
    let disk = Disk::default();
    let store = open(&disk).unwrap();
    let mut owners: Vec<_> = (0..20)
        .map(|number| block_on(start(&store, &format!("run-{number}"))))
        .collect();
    store.fold().unwrap();
    for owner in &mut owners {
        block_on(store.append(one(owner, "s"))).unwrap();
    }
    let files = (disk.bytes(StoreFile::Tables), disk.bytes(StoreFile::Log));
    let (mut opened, mut refused) = (0, 0);
    // The database panics where it finds what it never wrote; that is caught, and need not be printed.
    std::panic::set_hook(Box::new(|_| ()));
    for seed in 1..=400 {
        let mut dice = Dice(seed * 0x9e37_79b9);
        let (mut tables, mut log) = files.clone();
        if seed % 2 == 0 {
            spoil(&mut tables, &mut dice);
        }
        if seed % 3 != 0 {
            spoil(&mut log, &mut dice);
        }
        match open(&Disk::of(tables, log)) {
            Ok(store) => {
                opened += 1;
                ask_everything(&store);
            }
            Err(error) => {
                refused += 1;
                assert!(!matches!(error, StoreError::Closed), "{error}");
            }
        }
    }
    assert!(
        opened > 20 && refused > 30,
        "{opened} opened, {refused} refused"
    );
}

#[step]
async fn scan(bytes: usize) -> String {
    "x".repeat(bytes)
}

#[workflow]
async fn archive(bytes: usize) -> Result<usize, Failure> {
    let mut kept = 0;
    'scans: for _ in 0..2 {
        kept += scan(bytes).await?.len();
    }
    Ok(kept)
}

#[tokio::test]
async fn payloads_of_fifty_megabytes_are_recorded_and_read_when_the_limit_allows_them() {
    const SIZE: usize = 50 << 20;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("runs.redb");
    let builder = || Engine::builder().workflow(archive).payload_limit(SIZE + 10);
    let engine = builder().open(&path).await.unwrap();
    assert_eq!(engine.run("a", archive(SIZE)).await.unwrap(), 2 * SIZE);
    engine.shutdown(Duration::ZERO).await.unwrap();
    let engine = builder().open(&path).await.unwrap();
    let run = engine.attach::<archive>("a").await.unwrap();
    let history = run.history().await.unwrap();
    let large = history.iter().filter_map(|record| match &record.body {
        workflow::replay::Body::Ended(ended) => ended.outcome.as_ref().ok(),
        _ => None,
    });
    let large: Vec<_> = large.map(|payload| payload.bytes.len()).collect();
    assert_eq!(large, [SIZE + 2, SIZE + 2]);
    engine.shutdown(Duration::ZERO).await.unwrap();
}

/// As on any system that keeps a file as long as it is open: who has it goes on, and who comes later finds none of it.
#[cfg(unix)]
#[tokio::test]
async fn files_that_are_deleted_under_an_engine_stop_nothing_and_are_gone_when_it_closes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("runs.redb");
    let engine = Engine::builder()
        .workflow(archive)
        .open(&path)
        .await
        .unwrap();
    engine.run("before", archive(10)).await.unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(dir.path().join("runs.redb-log")).unwrap();
    engine.run("after", archive(10)).await.unwrap();
    assert_eq!(engine.run("before", archive(10)).await.unwrap(), 20);
    // The path is free: another store may be made there meanwhile, and is not disturbed.
    let other = Engine::builder()
        .workflow(archive)
        .open(&path)
        .await
        .unwrap();
    other.run("other", archive(10)).await.unwrap();
    engine.shutdown(Duration::ZERO).await.unwrap();
    assert!(other.attach::<archive>("before").await.is_err());
    assert_eq!(other.run("other", archive(10)).await.unwrap(), 20);
    other.shutdown(Duration::ZERO).await.unwrap();
    let other = Engine::builder()
        .workflow(archive)
        .open(&path)
        .await
        .unwrap();
    assert_eq!(other.run("other", archive(10)).await.unwrap(), 20);
    other.shutdown(Duration::ZERO).await.unwrap();
}
