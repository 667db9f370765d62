//! A store that is closed while others are in the middle of something, and one whose files have to be opened again.

#![expect(
    clippy::unwrap_used,
    reason = "what is not as it should be fails the test"
)]

use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use redb::StorageBackend;
use workflow::replay::Timestamp;
use workflow::store::{Appended, RedbStore, Store, StoreError, StoreFile};

use workflow_tests::disk::{Disk, Fault, Left};
use workflow_tests::scene::{block_on, open, start, step};

/// An operation on a file at which whoever comes has to wait, but for the store's own thread.
#[derive(Debug, Default)]
struct Gate {
    shut: Mutex<(Option<At>, usize)>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Read(StoreFile),
    Sync(StoreFile),
}

impl Gate {
    fn set(&self, at: Option<At>) {
        self.shut.lock().unwrap().0 = at;
        self.changed.notify_all();
    }

    fn pass(&self, at: At) {
        if thread::current().name() == Some("workflow-store") {
            return;
        }
        let mut shut = self.shut.lock().unwrap();
        while shut.0 == Some(at) {
            shut.1 += 1;
            self.changed.notify_all();
            shut = self.changed.wait(shut).unwrap();
            shut.1 -= 1;
        }
    }

    /// Until somebody waits.
    fn waited_at(&self) {
        let shut = self.shut.lock().unwrap();
        drop(self.changed.wait_while(shut, |shut| shut.1 == 0).unwrap());
    }
}

#[derive(Debug)]
struct Gated<B>(B, StoreFile, Arc<Gate>);

impl<B: StorageBackend> StorageBackend for Gated<B> {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.2.pass(At::Read(self.1));
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.2.pass(At::Sync(self.1));
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}

fn gated(disk: &Disk, gate: &Arc<Gate>) -> RedbStore {
    let (disk, gate) = (disk.clone(), Arc::clone(gate));
    let builder = RedbStore::builder().cache_size(0);
    let open = move |file| Ok(Gated(disk.backend(file), file, Arc::clone(&gate)));
    builder.open_backend(open).unwrap()
}

/// A commit under way puts back what is for the next one: that is committed before the store is closed, or never.
#[test]
fn what_a_commit_left_for_the_next_is_not_lost_when_the_store_is_closed_meanwhile() {
    let (disk, gate) = (Disk::default(), Arc::default());
    let store = gated(&disk, &gate);
    let mut folded = block_on(start(&store, "folded"));
    store.fold().unwrap();
    let mut other = block_on(start(&store, "other"));
    let mut cx = Context::from_waker(Waker::noop());
    let first = store.append(step(&mut folded, "s"));
    let mut second = pin!(store.cancel(folded.run, Timestamp::from_millis(9)));
    let mut first = pin!(first);
    let append = step(&mut other, "s");
    thread::scope(|scope| {
        // While one commits, two changes of one run are queued.
        gate.set(Some(At::Sync(StoreFile::Log)));
        let committing = scope.spawn(|| block_on(store.append(append)));
        gate.waited_at();
        assert!(first.as_mut().poll(&mut cx).is_pending());
        assert!(second.as_mut().poll(&mut cx).is_pending());
        gate.set(Some(At::Read(StoreFile::Tables)));
        assert_eq!(committing.join().unwrap().unwrap(), Appended::Applied);
        // The next commit has taken both when the store is closed, and does not know yet that one has to wait.
        let committing = scope.spawn(|| {
            let mut cx = Context::from_waker(Waker::noop());
            assert!(matches!(first.as_mut().poll(&mut cx), Poll::Ready(Ok(_))));
        });
        gate.waited_at();
        let closing = scope.spawn(|| block_on(store.close()));
        // Nothing is due then, and no table is asked.
        let never = (
            Timestamp::from_millis(0),
            workflow::replay::RunKey(u64::MAX),
        );
        while !matches!(
            block_on(store.due(Some(never), never.0, 1)),
            Err(StoreError::Closed)
        ) {
            thread::yield_now();
        }
        for _ in 0..1000 {
            thread::yield_now();
        }
        gate.set(Some(At::Sync(StoreFile::Tables)));
        committing.join().unwrap();
        gate.waited_at();
        let answer = second.as_mut().poll(&mut cx);
        gate.set(None);
        closing.join().unwrap().unwrap();
        let again = open(&disk).unwrap();
        let row = block_on(again.row(folded.run)).unwrap().unwrap();
        let cancelled = row.state == workflow::replay::RunState::Cancelled;
        let acknowledged = matches!(answer, Poll::Ready(Ok(Appended::Applied)));
        assert_eq!(cancelled, acknowledged, "{answer:?}");
    });
}

/// When closing fails the log keeps everything: then it has to be durable, also what was to wait.
#[test]
fn a_relaxed_store_that_cannot_be_closed_is_synced_all_the_same() {
    let disk = Disk::default();
    let backend = disk.clone();
    let builder = RedbStore::builder().relaxed(Duration::from_hours(1));
    let store = builder
        .open_backend(move |file| Ok(backend.backend(file)))
        .unwrap();
    let owner = block_on(start(&store, "a"));
    disk.fault(0, Fault::Hiccup);
    block_on(store.close()).unwrap_err();
    let again = open(&disk.after_power_cut(Left::Nothing)).unwrap();
    assert!(block_on(again.row(owner.run)).unwrap().is_some());
}

/// One of a store's files, counted while it is open.
#[derive(Debug)]
struct Held<B>(B, Arc<AtomicUsize>);

impl<B> Drop for Held<B> {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<B: StorageBackend> StorageBackend for Held<B> {
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

/// While the tables are opened again another process may get them first. It must find the log locked, also when that failed
/// just before.
#[test]
fn at_every_moment_one_of_the_two_files_is_held() {
    let disk = Disk::default();
    let (backend, held, again) = (disk.clone(), Arc::default(), Arc::default());
    let (counted, opened): (Arc<AtomicUsize>, Arc<AtomicUsize>) = (held, again);
    let seen = Arc::clone(&opened);
    let open = move |file| {
        let others = counted.fetch_add(1, Ordering::SeqCst);
        if file == StoreFile::Tables && seen.fetch_add(1, Ordering::SeqCst) > 0 {
            assert_eq!(others, 1, "the log is open");
        }
        Ok(Held(backend.backend(file), Arc::clone(&counted)))
    };
    let store = RedbStore::builder().open_backend(open).unwrap();
    let mut owner = block_on(start(&store, "a"));
    disk.fault(0, Fault::PowerCut);
    block_on(store.append(step(&mut owner, "s"))).unwrap_err();
    store.fold().unwrap_err();
    disk.fault(u64::from(u32::MAX), Fault::PowerCut);
    store.fold().unwrap();
    assert!(
        opened.load(Ordering::SeqCst) > 1,
        "the tables were opened again"
    );
}

/// A store whose file cannot be opened again for a while was not closed: who reads then is told to try again, and the next
/// who does so after that time is answered.
#[test]
fn a_store_that_cannot_be_opened_again_at_once_is_not_a_closed_one() {
    let disk = Disk::default();
    let (backend, down) = (disk.clone(), Arc::new(AtomicBool::new(false)));
    let is_down = Arc::clone(&down);
    let open = move |file| {
        if is_down.load(Ordering::SeqCst) && file == StoreFile::Tables {
            Err(io::Error::other("too many open files"))
        } else {
            Ok(backend.backend(file))
        }
    };
    let store = RedbStore::builder().open_backend(open).unwrap();
    let owner = block_on(start(&store, "a"));
    store.fold().unwrap();
    block_on(start(&store, "b"));
    let due = || block_on(store.due(None, Timestamp::from_millis(1), 1));
    let active = || block_on(store.active(None, 9));
    let list = || block_on(store.list(&workflow::store::RunFilter::default()));
    let asks: [&dyn Fn() -> Result<(), StoreError>; 4] = [
        &|| block_on(store.row(owner.run)).map(drop),
        &|| due().map(drop),
        &|| active().map(drop),
        &|| list().map(drop),
    ];
    for ask in asks {
        disk.fault(0, Fault::PowerCut);
        store.fold().unwrap_err();
        down.store(true, Ordering::SeqCst);
        disk.fault(u64::from(u32::MAX), Fault::PowerCut);
        store.fold().unwrap_err();
        for _ in 0..2 {
            let error = ask().unwrap_err();
            assert!(error.is_retryable(), "{error}");
        }
        down.store(false, Ordering::SeqCst);
        ask().unwrap();
        block_on(start(&store, &format!("run-{}", disk.done())));
    }
}
