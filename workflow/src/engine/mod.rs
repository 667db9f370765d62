//! Floor 3: the engine. The only floor that knows tokio.
//!
//! `driver` drives one run; `scheduler` decides which runs are driven; `live` and `board` are what others know of a run
//! in memory and of a run they hold a handle on.

mod any;
mod board;
mod builder;
mod cancel;
mod control;
mod desks;
mod driver;
mod error;
mod handle;
mod hooks;
mod host;
mod limits;
mod live;
mod long;
mod mail;
mod preflight;
mod quarantine;
mod registry;
pub(crate) mod rehearsal;
mod retention;
mod retry;
mod rollback;
mod room;
mod scheduler;
#[cfg(feature = "schedules")]
mod schedules;
mod start;
mod take_up;
mod telemetry;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

pub use crate::clock::{Clock, SystemClock, TokioClock};
pub use any::{AnyWorkflow, StartJson};
pub use builder::EngineBuilder;
pub use cancel::Cancel;
pub use control::{ControlError, Rewound};
pub use error::{AttachError, BuildError, CancelError, ParkedRun, StartError};
pub use handle::{RunHandle, Status, Watch, Watched};
pub use hooks::{ErrorEvent, Retry};
pub use limits::{Limit, Queued, Rate};
pub use mail::{RequestError, SendError};
pub use preflight::{
    MissingState, Preflight, PreflightFinding, PreflightProgress, PreflightReport,
};
pub(crate) use preflight::{undo_missing, undone_after};
pub use registry::Definition;
pub(crate) use registry::Entry;
pub use retention::{DeleteError, Retention, Swept};
pub use rollback::SkipUndoError;
#[cfg(feature = "schedules")]
pub use schedules::{Backfilled, ScheduleError, ScheduleHandle, ScheduleStatus};
pub(crate) use take_up::Coming;

use crate::codec::{self, Codec};
use crate::context::{Call, Intervening, Output, States, Workflow};
use crate::error::Error;
use crate::replay::{CodeId, History, Location, Payload, RunId, RunKey, RunState, Timestamp};
use crate::store::{
    Appended, Census, Identity, Page, Parked, Rewrite, RunFilter, RunPatch, RunRow, Store,
    StoreError,
};
use board::{Boards, Told};
use desks::Desks;
use driver::Strayed;
use hooks::Reporter;
use host::Random;
use limits::Limits;
use live::{Live, Threads};
use long::Long;
use mail::MessageIds;
use quarantine::Quarantine;
use registry::Registry;
use retention::Retentions;
use room::Room;
use scheduler::Scheduler;
#[cfg(feature = "schedules")]
use schedules::Schedules;

/// How long a shutdown waits for the error hooks at least.
const HOOKS: Duration = Duration::from_secs(1);

/// No key of a value of the library's own is behind this one, and no other's is before it.
const OWN_VALUES: &str = "\0\u{10ffff}";

/// Runs workflows over a store. Cheap to clone; every clone is the same engine.
///
/// Dropping the last clone stops the engine as a crash would: nothing that was acknowledged is lost, and what was under
/// way goes on when an engine opens the store again. [`Engine::shutdown`] is the polite way.
///
/// ```
/// # use workflow::{Engine, MemoryStore, step, workflow};
/// #[step]
/// async fn greet(name: &str) -> String {
///     format!("hello, {name}")
/// }
///
/// #[workflow]
/// async fn hello(name: String) -> Result<String, workflow::Failure> {
///     greet(&name).await
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), workflow::Error> {
/// let engine = Engine::builder().workflow(hello).store(MemoryStore::new()).build().await?;
/// assert_eq!(engine.run("greeting-1", hello("world".to_owned())).await?, "hello, world");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
    /// Held by the public clones only: when the last one goes, so does the scheduler.
    _alive: Arc<Alive>,
}

/// What all parts of an engine share.
pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) identity: Identity,
    pub(crate) code: CodeId,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) codec: Arc<dyn Codec>,
    pub(crate) payload_limit: usize,
    pub(crate) linger: Duration,
    pub(crate) keep_messages: Duration,
    pub(crate) message_ids: MessageIds,
    pub(crate) registry: Registry,
    pub(crate) states: Arc<States>,
    pub(crate) reporter: Reporter,
    pub(crate) random: Random,
    /// Who is asked before a body begins; nobody, outside of tests.
    pub(crate) intervening: Option<Arc<dyn Intervening>>,
    pub(crate) boards: Boards,
    pub(crate) scheduler: Scheduler,
    pub(crate) quarantine: Quarantine,
    pub(crate) limits: Limits,
    pub(crate) retentions: Retentions,
    #[cfg(feature = "schedules")]
    pub(crate) schedules: Schedules,
    pub(crate) desks: Desks,
    pub(crate) long: Long,
    /// From so many records on a history is long.
    pub(crate) long_history: u64,
    /// When the engine was built.
    pub(crate) opened_at: Timestamp,
    /// Whether it drives runs. If not, it has no scheduler, and no run comes into memory.
    pub(crate) drives: bool,
    /// Room for runs in memory.
    pub(crate) room: Arc<Room>,
    /// Room for beginnings that are not durable yet.
    pub(crate) door: Arc<Semaphore>,
    live: Mutex<Runs>,
    /// Told whenever a run leaves memory.
    left: Notify,
    closing: AtomicBool,
}

/// The runs in memory.
#[derive(Default)]
struct Runs {
    by_key: HashMap<RunKey, Arc<Live>>,
    by_id: HashMap<RunId, RunKey>,
    /// Those on their way in; true when one was cancelled meanwhile. What was read of a run is true only as long as
    /// nobody else drives it, so only one reads at a time.
    coming: HashMap<RunKey, bool>,
    /// Ids that the store is asked for: by how many, and how often a run of that id has left since.
    sought: HashMap<RunId, (usize, u64)>,
    /// Threads that bodies of runs which have left occupy all the same.
    left_behind: HashMap<RunKey, Arc<Threads>>,
    /// Visits that this program cannot go on with.
    strayed: HashMap<RunKey, Vec<Strayed>>,
}

struct Alive(Arc<Inner>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.closing.store(true, Ordering::SeqCst);
        self.0.scheduler.stop();
        drop(self.0.quarantine.stop());
        drop(self.0.retentions.stop());
        #[cfg(feature = "schedules")]
        drop(self.0.schedules.stop());
        self.0.room.close();
        self.0.door.close();
        // Dropped outside the lock: what a run holds may be anything.
        let runs = std::mem::take(&mut *self.0.runs());
        telemetry::in_memory(0);
        for live in runs.by_key.values() {
            live.abort();
        }
        self.0.boards.tell_all(&Told::ShutDown);
    }
}

impl Engine {
    /// Begins to describe an engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::new()
    }

    /// Starts a run and waits for its result. The same id, workflow and input give the same run: when it was started
    /// before, this attaches to it.
    ///
    /// The id is yours: an order number, a request's idempotency key. Its beginning becomes durable with its first step
    /// at the latest while that step's body is running; who must know that it will be run before it is, uses
    /// [`start`](Self::start).
    ///
    /// # Errors
    /// [`Error::Failed`] when the workflow returned an error; [`Error::Cancelled`]; [`Error::Parked`] when it cannot go
    /// on with this code; [`Error::Start`] when it was not started; [`Error::ShutDown`].
    ///
    /// # Cancel safety
    /// Dropping this future does not stop the run.
    pub async fn run<W: Workflow>(
        &self,
        id: impl Into<String>,
        call: Call<W>,
    ) -> Result<Output<W>, Error> {
        let door = self.door().await?;
        let handle = self.begin(id, call, door, false).await?;
        handle.result().await
    }

    /// Starts a run; its beginning is durable when this returns. The same id, workflow and input give the same run. When it is to
    /// begin, and before whom, is said of the call: [`Call::delay`], [`Call::not_before`], [`Call::priority`].
    ///
    /// # Errors
    /// [`StartError`]: the id is not one, belongs to another run, the input cannot be stored, or the store failed.
    ///
    /// # Cancel safety
    /// When this future is dropped, the run may have been started or not; starting it again is safe.
    pub async fn start<W: Workflow>(
        &self,
        id: impl Into<String>,
        call: Call<W>,
    ) -> Result<RunHandle<W>, StartError> {
        let door = self.door().await?;
        self.begin(id, call, door, true).await
    }

    /// A handle on a run that was started before, in this process or an earlier one. The type is the workflow's own:
    /// `engine.attach::<checkout>("order-17")`.
    ///
    /// # Errors
    /// [`AttachError`]: there is none, it is one of another workflow, or the store failed.
    pub async fn attach<W: Workflow>(
        &self,
        id: impl AsRef<str>,
    ) -> Result<RunHandle<W>, AttachError> {
        let row = self.row_of(id.as_ref()).await?;
        if row.workflow != W::NAME && W::NAME != AnyWorkflow::NAME {
            return Err(AttachError::OtherWorkflow {
                id: row.id,
                existing: row.workflow,
                requested: W::NAME,
            });
        }
        Ok(RunHandle::new(self.clone(), row.id.clone(), row.key))
    }

    /// What a run is doing, whatever its workflow.
    ///
    /// # Errors
    /// [`AttachError::NotFound`], or the store failed.
    pub async fn status(&self, id: impl AsRef<str>) -> Result<Status, AttachError> {
        let row = self.row_of(id.as_ref()).await?;
        let live = self.inner.runs().by_key.get(&row.key).cloned();
        let queued = self.inner.limits.queued(row.key, self.inner.clock.now());
        let mut status = Status::from(row);
        status.queued = queued;
        // What it published since its last commit is in memory only.
        if let Some(progress) = live.and_then(|live| live.progress()) {
            status.progress = Some(progress);
        }
        Ok(status)
    }

    /// Cancels a run, whatever its workflow. When it was awaited it is durable; the futures of the run are dropped. A body that
    /// runs on another thread may still be ending. [`Cancel::and_undo`] undoes first what was done.
    ///
    /// # Errors
    /// [`CancelError`]: there is none, it has ended, or the store failed.
    pub fn cancel(&self, id: impl AsRef<str>) -> Cancel {
        Cancel {
            inner: Arc::clone(&self.inner),
            id: RunId::from_stored(id.as_ref()),
            undo: false,
        }
    }

    /// Drives a run that is not in memory though it could go on: one that was evicted, or parked and may be tried again
    /// by an operator. One that is leaving memory comes back. Nothing happens when it stays in memory, or is final.
    ///
    /// In an engine that [drives nothing](EngineBuilder::drives_nothing) a parked run is no longer parked then, and the next engine
    /// tries it again.
    ///
    /// # Errors
    /// [`AttachError::NotFound`], or the store failed.
    pub async fn resume(&self, id: impl AsRef<str>) -> Result<(), AttachError> {
        let row = self.row_of(id.as_ref()).await?;
        Ok(self.inner.try_again(row).await?)
    }

    /// The history of a run, whatever its workflow: to be read, or kept and replayed by [`testing`](crate::testing).
    ///
    /// Values are as they are stored: those that a codec sealed stay sealed.
    ///
    /// # Errors
    /// [`AttachError::NotFound`], or the store failed.
    pub async fn export(&self, id: impl AsRef<str>) -> Result<History, AttachError> {
        let row = self.row_of(id.as_ref()).await?;
        let loaded = self.inner.store.load(row.key).await?;
        let history = loaded.and_then(|loaded| History::stored(row.id, loaded.history));
        history.ok_or_else(|| AttachError::NotFound {
            id: id.as_ref().to_owned(),
        })
    }

    /// What a step [`put`](crate::CurrentStep::put) under this key, as of the newest record; `None` when there is nothing.
    ///
    /// # Errors
    /// [`Error::Value`] when it is not a `T`, or the store failed.
    pub async fn value<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Error> {
        if key.starts_with('\0') {
            // The library's own.
            return Ok(None);
        }
        let value = self.inner.store.value(key).await?;
        value.map(|value| self.read_value(key, &value)).transpose()
    }

    /// Up to `limit` values whose keys begin with `prefix`, in the order of their keys, from the one after the key `after` on:
    /// for the next page, the last key of this one.
    ///
    /// ```no_run
    /// # async fn f(engine: workflow::Engine) -> Result<(), workflow::Error> {
    /// let bookings: Vec<(String, u32)> = engine.values("bookings/", None, 100).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] when one is not a `T`, or the store failed.
    pub async fn values<T: DeserializeOwned>(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, T)>, Error> {
        // The library's own, whose keys begin with a NUL, come before all others.
        let after = after
            .filter(|after| *after > OWN_VALUES)
            .or(Some(OWN_VALUES));
        let values = self.inner.store.values(prefix, after, limit).await?;
        let values = values.into_iter().map(|(key, value)| {
            let value = self.read_value(&key, &value)?;
            Ok((key, value))
        });
        values.collect()
    }

    fn read_value<T: DeserializeOwned>(&self, key: &str, value: &Payload) -> Result<T, Error> {
        let json = codec::open(&*self.inner.codec, value);
        let read = json.and_then(|json| Ok(serde_json::from_slice(&json)?));
        read.map_err(|error| Error::Value {
            key: key.to_owned(),
            detail: error.to_string(),
        })
    }

    /// Runs that fit the filter, in start order or the other way round.
    ///
    /// # Errors
    /// The store failed.
    pub async fn list(&self, filter: &RunFilter) -> Result<Page, Error> {
        Ok(self.inner.store.list(filter).await?)
    }

    /// How many runs there are, by workflow and state. The embedded store counts once, and keeps the count from then on.
    ///
    /// # Errors
    /// The store failed.
    pub async fn census(&self) -> Result<Census, Error> {
        Ok(self.inner.store.census().await?)
    }

    /// How many runs are in memory.
    pub fn in_memory(&self) -> usize {
        self.inner.runs().by_key.len()
    }

    /// Takes no new runs, lets step bodies end within `grace`, saves, and closes the store. Runs that were not at
    /// their end go on when an engine opens the store again.
    ///
    /// When this returns, no task of this engine is alive, and the store's file can be opened again.
    ///
    /// # Errors
    /// The store failed. Nothing that was acknowledged is lost.
    pub async fn shutdown(&self, grace: Duration) -> Result<(), Error> {
        let inner = &self.inner;
        inner.closing.store(true, Ordering::SeqCst);
        inner.scheduler.stop();
        if let Some(task) = inner.quarantine.stop() {
            // It was told to end; its error says only that.
            let _ = task.await;
        }
        if let Some(task) = inner.retentions.stop() {
            let _ = task.await;
        }
        #[cfg(feature = "schedules")]
        for task in inner.schedules.stop() {
            let _ = task.await;
        }
        inner.room.close();
        inner.door.close();
        let by = ends(grace);
        loop {
            let left = inner.left.notified();
            tokio::pin!(left);
            left.as_mut().enable();
            let live: Vec<_> = inner.runs().by_key.values().cloned().collect();
            if live.is_empty() {
                break;
            }
            for run in live {
                run.evict_by(by);
            }
            left.await;
        }
        inner.scheduler.stopped().await;
        inner.boards.tell_all(&Told::ShutDown);
        // A hook may block for ever; it does not hold back the closing of the store for longer than a body may.
        let told = inner.reporter.finish();
        if tokio::time::timeout_at(by.max(Instant::now() + HOOKS), told)
            .await
            .is_err()
        {
            tracing::warn!("an error hook does not end; the engine is shut down all the same");
        }
        Ok(inner.store.close().await?)
    }

    async fn row_of(&self, id: &str) -> Result<RunRow, AttachError> {
        let found = self.inner.store.find(&RunId::from_stored(id)).await?;
        found.ok_or_else(|| AttachError::NotFound { id: id.to_owned() })
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("store", &self.inner.store)
            .field("in_memory", &self.in_memory())
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No timer is set for longer, so that a clock that was set forward is noticed. Whatever the clock says, it is asked from time to
    /// time, and not all the time.
    pub(crate) fn longest_wait(&self) -> Duration {
        let longest = self.clock.longest_wait();
        longest.clamp(Duration::from_secs(1), Duration::from_secs(86_400 * 30))
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Whether runs wait for room in memory.
    pub(crate) fn is_crowded(&self) -> bool {
        self.room.is_crowded()
    }

    /// Whether a run that only waits until then leaves memory.
    pub(crate) fn leaves_memory(&self, wake_at: Option<Timestamp>) -> bool {
        self.is_crowded() || wake_at.is_none_or(|at| at.since(self.clock.now()) > self.linger)
    }

    /// Whether this code is worth a try where that parking says other code could not go on: one try per build.
    pub(crate) fn may_try(&self, parked: &Parked) -> bool {
        parked.by != self.code && parked.reason.wakes_with_other_code()
    }

    async fn cancel(self: &Arc<Self>, id: &RunId, run: RunKey) -> Result<(), CancelError> {
        match self.store.cancel(run, self.clock.now()).await? {
            Appended::Applied | Appended::AlreadyApplied => {}
            _ => {
                let row = self.store.row(run).await?;
                return Err(match row {
                    Some(row) => CancelError::Ended {
                        id: id.clone(),
                        state: row.state,
                    },
                    None => CancelError::NotFound { id: id.to_string() },
                });
            }
        }
        self.told_cancelled(run);
        if let Ok(Some(row)) = self.store.row(run).await {
            telemetry::cancelled(id, &row.workflow);
            if let Some((parent, _)) = row.parent
                && !row.detached
            {
                self.news_of(parent);
            }
        }
        self.cancel_children(run).await;
        Ok(())
    }

    /// The visits of a run that this program cannot go on with.
    pub(crate) fn strayed(&self, run: RunKey) -> Vec<Strayed> {
        self.runs().strayed.get(&run).cloned().unwrap_or_default()
    }

    /// Of those, only the visits that are under way count: the others are over, and are not come to again.
    pub(crate) fn forget_strayed(&self, run: RunKey, is_over: impl Fn(&Location) -> bool) {
        let mut runs = self.runs();
        if let Some(strayed) = runs.strayed.get_mut(&run) {
            strayed.retain(|strayed| !is_over(&strayed.visit));
            if strayed.is_empty() {
                runs.strayed.remove(&run);
            }
        }
    }

    /// The threads that a run left behind.
    fn threads_of(&self, run: RunKey) -> Arc<Threads> {
        let mut runs = self.runs();
        runs.left_behind.retain(|_, threads| threads.count() > 0);
        runs.left_behind.get(&run).cloned().unwrap_or_default()
    }

    /// How many bodies of a run that is not in memory still occupy a thread.
    pub(crate) fn stopping(&self, run: RunKey) -> usize {
        self.threads_of(run).count()
    }

    /// Takes a run out of memory; true when it was there.
    pub(crate) fn evict(&self, run: RunKey, grace: Duration) -> bool {
        let live = self.runs().by_key.get(&run).cloned();
        live.inspect(|live| live.evict_by(ends(grace))).is_some()
    }

    /// Takes a run out of memory, bodies and all, and waits until it has left. Whoever brings it back meanwhile is not waited for.
    pub(crate) async fn put_out(&self, run: RunKey) {
        let found = self.runs().by_key.get(&run).cloned();
        let Some(live) = found else { return };
        live.evict_by(Instant::now());
        loop {
            let left = self.left.notified();
            tokio::pin!(left);
            left.as_mut().enable();
            let there = self.runs().by_key.get(&run).cloned();
            if !there.is_some_and(|there| Arc::ptr_eq(&there, &live)) {
                return;
            }
            left.await;
        }
    }

    /// Has a run driven that stands still, by this engine or by the next one.
    async fn try_again(self: &Arc<Self>, mut row: RunRow) -> Result<(), StoreError> {
        if self.drives {
            if !row.state.is_final() {
                self.boards.board(row.key).reopen();
                self.come_back(row.key, row.state == RunState::Parked);
            }
            return Ok(());
        }
        while row.state == RunState::Parked {
            let state = if row.is_undone() {
                RunState::RollingBack
            } else {
                RunState::Pending
            };
            let unparked = Rewrite {
                run: row.key,
                expected_seq: row.last_seq,
                remove: Vec::new(),
                records: Vec::new(),
                patch: RunPatch {
                    state: Some(state),
                    parked: Some(None),
                    wake_at: Some(None),
                    waits: Some(None),
                    unclean: Some(0),
                    at: self.clock.now(),
                    code: self.code,
                    ..RunPatch::default()
                },
                returns: Vec::new(),
                posts: Vec::new(),
            };
            match self.store.rewrite(vec![unparked]).await? {
                Appended::Applied | Appended::AlreadyApplied => break,
                // It has changed since it was read.
                _ => match self.store.row(row.key).await? {
                    Some(now) => row = now,
                    None => break,
                },
            }
        }
        Ok(())
    }

    /// Brings a run back into memory, also when it is just leaving.
    pub(crate) fn come_back(self: &Arc<Self>, run: RunKey, parked: bool) {
        // Under the lock: it is asked before it is taken out of the map, or found to be gone.
        let leaving = {
            let runs = self.runs();
            let live = runs.by_key.get(&run);
            live.inspect(|live| live.come_back(parked)).is_some()
        };
        if !leaving {
            self.wake(run);
        }
    }

    pub(crate) fn is_live(&self, run: RunKey) -> bool {
        self.runs().by_key.contains_key(&run)
    }

    /// Whether it is in memory, or on its way there.
    pub(crate) fn is_coming(&self, run: RunKey) -> bool {
        let runs = self.runs();
        runs.by_key.contains_key(&run) || runs.coming.contains_key(&run)
    }

    pub(crate) fn tell(&self, run: RunKey, told: Told) {
        if let Some(board) = self.boards.find(run) {
            board.tell(told);
        }
    }
}

/// When a grace that begins now is over.
fn ends(grace: Duration) -> Instant {
    Instant::now() + grace.min(Duration::from_secs(86_400 * 365))
}

/// What a row says of a run, as [`Engine::list`] gives it. What the run published since its last commit is not in it.
impl From<RunRow> for Status {
    fn from(row: RunRow) -> Self {
        Self {
            id: row.id,
            workflow: row.workflow,
            state: row.state,
            parked: row.parked,
            wake_at: if row.state == RunState::Waiting {
                row.wake_at
            } else {
                None
            },
            waits_for: match row.waits {
                Some(channels) if row.state == RunState::Waiting => channels
                    .into_iter()
                    // Those of the engine's own begin with a NUL.
                    .filter(|channel| !channel.starts_with('\0'))
                    .collect(),
                _ => Vec::new(),
            },
            generation: row.generation,
            parent: row.parent,
            created_at: row.created_at,
            updated_at: row.updated_at,
            finished_at: row.finished_at,
            records: row.last_seq,
            progress: row.progress,
            not_before: row.not_before,
            priority: row.priority,
            queued: None,
        }
    }
}
