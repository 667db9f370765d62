//! What is measured of the library: as its users use it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::runtime::Runtime;
use workflow::store::RunFilter;
use workflow::{Engine, Failure, RedbStore, StartError, Timestamp, sleep, step, workflow};

use crate::disk::micros_each;

#[step]
async fn one(i: u64) -> u64 {
    i
}

#[step]
async fn stamped(i: u64) -> u64 {
    STAMPS
        .lock()
        .expect("no holder panics")
        .push(Instant::now());
    i
}

/// The first step that is not recorded: notes when it is reached, and while [`HOLDS`] does not end.
#[step(timeout = "none")]
async fn frontier() -> u64 {
    *REACHED.lock().expect("no holder panics") = Some(Instant::now());
    if HOLDS.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    0
}

#[workflow]
pub(crate) async fn steps(n: u64) -> Result<u64, Failure> {
    let mut sum = 0;
    'all: for i in 0..n {
        sum += one(i).await?;
    }
    Ok(sum)
}

#[workflow]
async fn long(n: u64) -> Result<u64, Failure> {
    let mut sum = 0;
    'all: for i in 0..n {
        sum += stamped(i).await?;
    }
    Ok(sum)
}

#[workflow]
async fn replayed(n: u64) -> Result<u64, Failure> {
    let mut sum = 0;
    'all: for i in 0..n {
        sum += one(i).await?;
    }
    frontier().await?;
    Ok(sum)
}

#[workflow]
async fn sleeper(i: u64) -> Result<u64, Failure> {
    let x = one(i).await?;
    sleep!(nap, "1h").await;
    Ok(x)
}

#[workflow]
async fn waits(n: u64) -> Result<u64, Failure> {
    let mut sum = 0;
    'all: for i in 0..n {
        sum += one(i).await?;
    }
    sleep!(nap, "24h").await;
    Ok(sum)
}

#[workflow]
async fn timed(n: u64) -> Result<u64, Failure> {
    let mut sum = 0;
    'all: for i in 0..n {
        let since = begins();
        sum += one(i).await?;
        took(since);
    }
    Ok(sum)
}

/// Wakes at a time, in milliseconds from the epoch, and says how late it was.
#[workflow]
async fn alarm(due: i64) -> Result<(), Failure> {
    sleep!(due, until = Timestamp::from_millis(due)).await;
    rang(due).await?;
    Ok(())
}

#[step]
async fn rang(due: i64) {
    #[expect(clippy::cast_precision_loss, reason = "a time of today")]
    let late = since_epoch() - due as f64;
    LATE.lock().expect("no holder panics").push(late);
}

fn begins() -> Instant {
    Instant::now()
}

fn took(since: Instant) {
    let micros = since.elapsed().as_secs_f64() * 1e6;
    TIMES.lock().expect("no holder panics").push(micros);
}

/// Milliseconds.
fn since_epoch() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0.0, |now| now.as_secs_f64() * 1e3)
}

/// An engine on a file, and the runtime it runs on.
pub(crate) struct Ours {
    runtime: Runtime,
    engine: Option<Engine>,
    path: PathBuf,
    relaxed: Option<Duration>,
}

impl Ours {
    pub(crate) fn open(path: &Path) -> Self {
        let mut ours = Self::closed(path);
        ours.reopen();
        ours
    }

    /// One whose commits may wait so long for their sync.
    pub(crate) fn relaxed(path: &Path, wait: Duration) -> Self {
        let mut ours = Self::closed(path);
        ours.relaxed = Some(wait);
        ours.reopen();
        ours
    }

    /// Not yet opened.
    pub(crate) fn closed(path: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .expect("a runtime starts");
        Self {
            runtime,
            engine: None,
            path: path.to_owned(),
            relaxed: None,
        }
    }

    /// Closes the store, if it is open, and opens it; seconds until the engine is ready.
    pub(crate) fn reopen(&mut self) -> f64 {
        self.close();
        let since = Instant::now();
        let builder = Engine::builder()
            .workflow(steps)
            .workflow(long)
            .workflow(replayed)
            .workflow(sleeper)
            .workflow(waits)
            .workflow(timed)
            .workflow(alarm);
        let store = match self.relaxed {
            Some(wait) => RedbStore::builder().relaxed(wait),
            None => RedbStore::builder(),
        };
        let engine = self.runtime.block_on(async {
            let store = store.open(&self.path).expect("the store opens");
            builder.store(store).build().await
        });
        self.engine = Some(engine.expect("the engine opens"));
        since.elapsed().as_secs_f64()
    }

    /// Closes the store, if it is open.
    pub(crate) fn close(&mut self) {
        if let Some(engine) = self.engine.take() {
            let closed = self.runtime.block_on(engine.shutdown(Duration::ZERO));
            closed.expect("the engine shuts down");
        }
    }

    /// `runs` runs of `n` steps, all at once; microseconds per step.
    pub(crate) fn steps(&self, runs: usize, n: usize) -> f64 {
        let since = Instant::now();
        self.runtime.block_on(async {
            let tasks: Vec<_> = (0..runs)
                .map(|_| {
                    let engine = self.engine();
                    tokio::spawn(async move { engine.run(id(), steps(n as u64)).await })
                })
                .collect();
            for task in tasks {
                let ran = task.await.expect("no run panics");
                ran.expect("every run ends well");
            }
        });
        micros_each(since, runs * n)
    }

    /// One run of `to` steps: how long its last steps take, to how long the first ones after `from` take.
    pub(crate) fn ageing(&self, from: usize, to: usize, window: usize) -> (f64, f64) {
        STAMPS.lock().expect("no holder panics").clear();
        let run = self.engine();
        let ran = self.runtime.block_on(run.run(id(), long((to + 1) as u64)));
        ran.expect("the run ends well");
        let stamps = STAMPS.lock().expect("no holder panics");
        #[expect(clippy::cast_precision_loss, reason = "a window is small")]
        let each = |from: usize| {
            let took = stamps[from + window].duration_since(stamps[from]);
            took.as_secs_f64() * 1e6 / window as f64
        };
        (each(from), each(to - window))
    }

    /// Leaves a run with `n` recorded steps in the store, brings it back, and gives the microseconds per step from there
    /// to its frontier.
    pub(crate) fn replay(&self, n: usize) -> f64 {
        let (engine, id) = (self.engine(), id());
        HOLDS.store(true, Ordering::SeqCst);
        *REACHED.lock().expect("no holder panics") = None;
        self.runtime.block_on(async {
            let handle = engine.start(id.as_str(), replayed(n as u64)).await;
            let handle = handle.expect("the run starts");
            reached().await;
            *REACHED.lock().expect("no holder panics") = None;
            handle.evict(Duration::ZERO);
            while engine.in_memory() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            HOLDS.store(false, Ordering::SeqCst);
            let since = Instant::now();
            engine.resume(id.as_str()).await.expect("the run goes on");
            let took = reached().await.duration_since(since);
            handle.result().await.expect("the run ends well");
            #[expect(clippy::cast_precision_loss, reason = "a count of steps")]
            let each = took.as_secs_f64() * 1e6 / n as f64;
            each
        })
    }

    /// Starts `runs` runs that sleep, and waits until none is in memory.
    pub(crate) fn sleep(&self, runs: usize) {
        self.start_all(runs, |engine, i| async move {
            engine.start(id(), sleeper(i)).await.map(drop)
        });
        self.all_rest();
    }

    /// Leaves `runs` runs in the store that wait after `n` steps each.
    pub(crate) fn wait(&self, runs: usize, n: usize) {
        self.start_all(runs, |engine, _| async move {
            engine.start(id(), waits(n as u64)).await.map(drop)
        });
        self.all_rest();
    }

    /// Starts `runs` runs that sleep until `after` from now, and then wake one after the other in `over`; waits for them. Seconds from
    /// the first's time to the last one's step; and how late each was, in milliseconds, in order.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        reason = "counts and times"
    )]
    pub(crate) fn wake(&self, runs: usize, after: Duration, over: Duration) -> (f64, Vec<f64>) {
        let first = (since_epoch() + after.as_secs_f64() * 1e3) as i64;
        let over = i64::try_from(over.as_millis()).expect("minutes");
        LATE.lock().expect("no holder panics").clear();
        self.start_all(runs, |engine, i| {
            let due = first + over * i as i64 / runs as i64;
            async move { engine.start(id(), alarm(due)).await.map(drop) }
        });
        assert!(
            since_epoch() < first as f64,
            "the runs are woken before all of them sleep"
        );
        let all = || LATE.lock().expect("no holder panics").len() == runs;
        self.runtime.block_on(async {
            while !all() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        let took = (since_epoch() - first as f64) / 1e3;
        let mut late = std::mem::take(&mut *LATE.lock().expect("no holder panics"));
        late.sort_by(f64::total_cmp);
        (took, late)
    }

    /// Does so many steps in so many runs at once; how long each took its workflow, in microseconds, in order.
    pub(crate) fn latencies(&self, runs: usize, n: usize) -> Vec<f64> {
        TIMES.lock().expect("no holder panics").clear();
        self.runtime.block_on(async {
            let runs = (0..runs).map(|_| {
                let engine = self.engine();
                tokio::spawn(async move { engine.run(id(), timed(n as u64)).await })
            });
            for run in runs.collect::<Vec<_>>() {
                run.await.expect("no run panics").expect("a run ends well");
            }
        });
        let mut times = std::mem::take(&mut *TIMES.lock().expect("no holder panics"));
        times.sort_by(f64::total_cmp);
        times
    }

    /// Seconds for the first page of a list of the runs that wait, and for the one after it.
    pub(crate) fn list(&self) -> (f64, f64) {
        self.runtime.block_on(async {
            let mut filter = RunFilter {
                workflow: Some("sleeper".to_owned()),
                limit: 100,
                ..RunFilter::default()
            };
            let since = Instant::now();
            let page = self.engine().list(&filter).await.expect("runs are listed");
            let first = since.elapsed().as_secs_f64();
            filter.after = page.rows.last().map(|row| row.key);
            let since = Instant::now();
            let page = self.engine().list(&filter).await.expect("runs are listed");
            assert_eq!(page.rows.len(), 100);
            (first, since.elapsed().as_secs_f64())
        })
    }

    /// The most that another task was late, in milliseconds, while this was done.
    pub(crate) fn lateness(&self, work: impl FnOnce()) -> f64 {
        const TICK: Duration = Duration::from_millis(1);
        let done = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&done);
        let ticker = self.runtime.spawn(async move {
            let mut most = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let due = Instant::now() + TICK;
                tokio::time::sleep_until(due.into()).await;
                most = most.max(due.elapsed());
            }
            most.as_secs_f64() * 1e3
        });
        work();
        done.store(true, Ordering::Relaxed);
        self.runtime
            .block_on(ticker)
            .expect("the ticker does not panic")
    }

    /// Starts so many, a thousand at a time.
    fn start_all<F>(&self, runs: usize, start: impl Fn(Engine, u64) -> F)
    where
        F: Future<Output = Result<(), StartError>> + Send + 'static,
    {
        self.runtime.block_on(async {
            for burst in (0..runs as u64).collect::<Vec<_>>().chunks(1000) {
                let starts = burst
                    .iter()
                    .map(|i| tokio::spawn(start(self.engine(), *i)))
                    .collect::<Vec<_>>();
                for start in starts {
                    let started = start.await.expect("no start panics");
                    started.expect("every run starts");
                }
            }
        });
    }

    fn all_rest(&self) {
        self.runtime.block_on(async {
            while self.engine().in_memory() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }

    /// Replays all live runs to their frontiers, from a file that was just opened and without an engine; steps and seconds.
    pub(crate) fn preflight(&mut self) -> (u64, f64) {
        self.close();
        let store = RedbStore::open(&self.path).expect("the store opens");
        let asked = Engine::builder().workflow(waits).store(store).preflight();
        let report = self.runtime.block_on(async { asked.await });
        let report = report.expect("the runs are read");
        assert!(report.is_clean(), "{report}");
        // Beside its steps, a run has how it began and that it waits.
        let steps = report.records - 2 * report.runs;
        (steps, report.took.as_secs_f64())
    }

    /// The file's size.
    pub(crate) fn bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |file| file.len())
    }

    fn engine(&self) -> Engine {
        self.engine.clone().expect("open from its making on")
    }
}

async fn reached() -> Instant {
    loop {
        let at = *REACHED.lock().expect("no holder panics");
        if let Some(at) = at {
            return at;
        }
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
}

pub(crate) fn id() -> String {
    NEXT.fetch_add(1, Ordering::Relaxed).to_string()
}

/// Numbers runs from here on: those before are another process's.
pub(crate) fn number_from(first: u64) {
    NEXT.store(first, Ordering::Relaxed);
}

static NEXT: AtomicU64 = AtomicU64::new(0);
static TIMES: Mutex<Vec<f64>> = Mutex::new(Vec::new());
static LATE: Mutex<Vec<f64>> = Mutex::new(Vec::new());
static HOLDS: AtomicBool = AtomicBool::new(false);
static REACHED: Mutex<Option<Instant>> = Mutex::new(None);
static STAMPS: Mutex<Vec<Instant>> = Mutex::new(Vec::new());
