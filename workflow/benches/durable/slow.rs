//! What commits cost everybody else: a handler that only wakes and goes back to sleep, beside an engine on a disk that takes
//! its time to sync.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use redb::StorageBackend;
use redb::backends::FileBackend;
use workflow::store::StoreFile;
use workflow::{Engine, RedbStore};

use crate::ours::{id, steps};

/// How long a sync takes.
const SYNC: Duration = Duration::from_millis(50);

/// How often the handler is called.
const TICK: Duration = Duration::from_millis(1);

/// The 99th percentile, in milliseconds, of how late an idle handler is on two workers: alone, and beside `runs` runs that
/// commit step after step.
pub(crate) fn lateness(dir: &Path, runs: usize, ticks: usize) -> (f64, f64) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts");
    let (tables, log) = (dir.join("slow.redb"), dir.join("slow.redb-log"));
    let store = RedbStore::builder().open_backend(move |file| {
        SlowDisk::open(match file {
            StoreFile::Tables => &tables,
            StoreFile::Log => &log,
        })
    });
    let store = store.expect("the store opens");
    runtime.block_on(async {
        let builder = Engine::builder().workflow(steps).store(store);
        let engine = builder.build().await.expect("the engine opens");
        let alone = handler(ticks).await;
        let busy = Arc::new(AtomicBool::new(true));
        let clients: Vec<_> = (0..runs)
            .map(|_| {
                let (engine, busy) = (engine.clone(), Arc::clone(&busy));
                tokio::spawn(async move {
                    while busy.load(Ordering::Relaxed) {
                        engine.run(id(), steps(4)).await.expect("a run ends well");
                    }
                })
            })
            .collect();
        let beside = handler(ticks).await;
        busy.store(false, Ordering::Relaxed);
        for client in clients {
            client.await.expect("no client panics");
        }
        let closed = engine.shutdown(Duration::ZERO).await;
        closed.expect("the engine shuts down");
        (alone, beside)
    })
}

/// Calls the handler so often; how late the latest but one in a hundred were.
async fn handler(ticks: usize) -> f64 {
    let mut late = tokio::spawn(async move {
        let mut late = Vec::with_capacity(ticks);
        for _ in 0..ticks {
            let due = Instant::now() + TICK;
            tokio::time::sleep_until(due.into()).await;
            late.push(due.elapsed().as_secs_f64() * 1e3);
        }
        late
    })
    .await
    .expect("the handler does not panic");
    late.sort_by(f64::total_cmp);
    late.get(ticks - 1 - ticks / 100)
        .copied()
        .unwrap_or_default()
}

/// A file whose every sync takes [`SYNC`].
#[derive(Debug)]
struct SlowDisk(FileBackend);

impl SlowDisk {
    fn open(path: &Path) -> io::Result<Self> {
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        FileBackend::new(file).map(Self).map_err(io::Error::other)
    }
}

impl StorageBackend for SlowDisk {
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
        std::thread::sleep(SYNC);
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.0.close()
    }
}
