//! How an engine is described and built.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::sync::{Notify, Semaphore};

use super::board::Boards;
use super::desks::Desks;
use super::hooks::{ErrorEvent, Hooks};
use super::host::Random;
use super::limits::{Key, Limit, Limits, Rate, Rules};
use super::long::Long;
use super::mail::MessageIds;
use super::preflight::Preflight;
use super::quarantine::Quarantine;
use super::registry::{Definition, Entry, Registry};
use super::retention::{Retention, Retentions};
use super::room::Room;
use super::scheduler::Scheduler;
#[cfg(feature = "schedules")]
use super::schedules::Schedules;
use super::{Alive, BuildError, Clock, Engine, Inner, Runs, SystemClock};
use crate::codec::{Codec, Json};
use crate::context::{Intervening, States, Workflow};
use crate::graph::Graph;
use crate::replay::CodeId;
use crate::store::Store;

/// So many runs may be on their way from a start to their first durable record: as many as fill a commit. So a burst of
/// runs that soon sleep is never in memory at once.
const DOOR: usize = 128;

/// Describes an engine. Made by [`Engine::builder`].
#[must_use = "help: end it with `.build()` or `.open(..)`: only that makes an engine"]
pub struct EngineBuilder {
    store: Option<Arc<dyn Store>>,
    registry: Registry,
    twice: Option<(Entry, Entry)>,
    states: States,
    codec: Arc<dyn Codec>,
    clock: Arc<dyn Clock>,
    hooks: Hooks,
    payload_limit: usize,
    long_history: u64,
    in_memory: usize,
    linger: Duration,
    limits: Rules,
    retentions: Retentions,
    #[cfg(feature = "schedules")]
    schedules: Vec<crate::schedule::Schedule>,
    keep_messages: Duration,
    code: Option<CodeId>,
    drives: bool,
    intervening: Option<Arc<dyn Intervening>>,
    seed: Option<u64>,
}

impl EngineBuilder {
    pub(super) fn new() -> Self {
        Self {
            store: None,
            registry: Registry::default(),
            twice: None,
            states: States::default(),
            codec: Arc::new(Json),
            clock: Arc::new(SystemClock),
            hooks: Hooks::default(),
            payload_limit: 1 << 20,
            long_history: 10_000,
            in_memory: 10_000,
            linger: Duration::from_secs(1),
            limits: Rules::default(),
            retentions: Retentions::default(),
            #[cfg(feature = "schedules")]
            schedules: Vec::new(),
            keep_messages: Duration::from_secs(7 * 86_400),
            code: None,
            drives: true,
            intervening: None,
            seed: None,
        }
    }

    /// Where runs are kept.
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Where runs are kept, shared with others.
    pub fn shared_store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// Adds a workflow by its function: `.workflow(checkout)`.
    pub fn workflow<Arguments, F: Definition<Arguments>>(self, _function: F) -> Self {
        self.registered::<F::Workflow>()
    }

    /// Adds a workflow by its type.
    pub(crate) fn registered<W: Workflow>(self) -> Self {
        self.entry(Entry::of::<W>()).drawn(W::GRAPH)
    }

    /// Knows the picture of a workflow.
    fn drawn(mut self, graph: Graph) -> Self {
        self.registry.draw(graph);
        self
    }

    /// Adds whatever has a name and code.
    pub(crate) fn entry(mut self, entry: Entry) -> Self {
        if let Some(before) = self.registry.add(entry.clone()) {
            self.twice.get_or_insert((before, entry));
        }
        self
    }

    /// Gives a value to the `#[state]` parameters of its type. Each run gets a clone; a later value of the same type
    /// takes the place of an earlier one.
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, state: T) -> Self {
        self.states.insert(state);
        self
    }

    /// How payloads are sealed. JSON as it is by default; give one to encrypt or compress.
    pub fn codec(mut self, codec: impl Codec + 'static) -> Self {
        self.codec = Arc::new(codec);
        self
    }

    /// Where the time is taken from. The computer's clock by default; tests give a [`TokioClock`](super::TokioClock).
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Told of what goes wrong in runs, in order, once that is durable. It may block; it cannot fail or delay a run.
    pub fn on_error(mut self, hook: impl Fn(&ErrorEvent) + Send + Sync + 'static) -> Self {
        self.hooks.add(hook);
        self
    }

    /// The largest encoded value, in bytes; 1 MiB by default. Raise it for the odd large value; keep files elsewhere.
    pub fn payload_limit(mut self, bytes: usize) -> Self {
        self.payload_limit = bytes;
        self
    }

    /// From how many records on a run's history is long: the log then warns of it, once, with the places where it grows;
    /// 10,000 by default. What a carried loop deletes does not count.
    pub fn long_history(mut self, records: u64) -> Self {
        self.long_history = records;
        self
    }

    /// How many runs may be in memory at once; 10,000 by default. Those over it are stored and wait for room: the one of the highest
    /// [priority](crate::Call::priority) goes first, and of equals the one that was started first.
    ///
    /// # Panics
    /// When `runs` is 0.
    pub fn in_memory(mut self, runs: usize) -> Self {
        assert!(runs > 0, "an engine needs room for at least one run");
        self.in_memory = runs;
        self
    }

    /// How many runs of a workflow may be under way at once in this engine. Those over it are stored, and begun when there is a
    /// slot, those of a higher [priority](crate::Call::priority) first, and of equals in start order; [`Status::queued`](super::Status::queued) says so. A later limit of the same workflow takes the place
    /// of an earlier one.
    ///
    /// The limit holds after a restart, too. Children and forks count as any other run; a run that rolls back counts, and does not
    /// wait.
    ///
    /// ```
    /// # use workflow::{Engine, Limit, MemoryStore, workflow};
    /// # #[workflow]
    /// # async fn export(customer: String) -> u32 { customer.len() as u32 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), workflow::Error> {
    /// let engine = Engine::builder()
    ///     .workflow(export)
    ///     .limit(export, Limit::working(4))
    ///     .store(MemoryStore::new())
    ///     .build()
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub fn limit<Arguments, F: Definition<Arguments>>(
        mut self,
        _function: F,
        limit: Limit,
    ) -> Self {
        self.limits.limit::<Arguments, F>(limit, Key::ALL);
        self
    }

    /// The same for each key by itself: so many runs of a customer, say. The key is taken from the workflow's arguments, a tuple.
    ///
    /// It is asked again when the run goes on, and so says the same for the same arguments. Runs whose recorded input is no longer
    /// what the workflow takes share one key, and so do those for whose arguments it panics.
    ///
    /// ```
    /// # use workflow::{Engine, Limit, workflow};
    /// # #[workflow]
    /// # async fn export(customer: String, year: u16) -> u32 { customer.len() as u32 }
    /// # let _ =
    /// Engine::builder()
    ///     .workflow(export)
    ///     .limit_per(export, Limit::unfinished(1), |(customer, _year)| customer.clone())
    /// # ;
    /// ```
    pub fn limit_per<Arguments: DeserializeOwned, F: Definition<Arguments>>(
        mut self,
        _function: F,
        limit: Limit,
        key: impl Fn(&Arguments) -> String + Send + Sync + 'static,
    ) -> Self {
        self.limits.limit::<Arguments, F>(limit, Key::of(key));
        self
    }

    /// How many runs of a workflow may begin in a time, in this engine. Those over it are stored, and begun when the rate allows, in the
    /// order in which they [get slots](Self::limit); [`Status::queued`](super::Status::queued) says when that is. A later rate of
    /// the same workflow takes the place of an earlier one. A workflow may have a limit and a rate: a run then needs both to begin.
    ///
    /// What counts is the beginning of a run, once: that it goes on after a wait, a restart or a crash does not. Children and forks
    /// count as any other run; one that is recovered or rewound begins again. The rate holds over a restart: what was begun before it counts,
    /// also when the process was killed.
    ///
    /// A run of such a workflow costs a commit more when it is begun, because that is durable before anything of it is done.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use workflow::{Engine, MemoryStore, Rate, workflow};
    /// # #[workflow]
    /// # async fn export(customer: String) -> u32 { customer.len() as u32 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), workflow::Error> {
    /// let engine = Engine::builder()
    ///     .workflow(export)
    ///     .rate(export, Rate::per(10, Duration::from_secs(60)))
    ///     .store(MemoryStore::new())
    ///     .build()
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub fn rate<Arguments, F: Definition<Arguments>>(mut self, _function: F, rate: Rate) -> Self {
        self.limits.rate::<Arguments, F>(rate, Key::ALL);
        self
    }

    /// The same for each key by itself: so many begins of a customer, say. The key is taken from the workflow's arguments, a tuple, as
    /// for [`limit_per`](Self::limit_per), and need not be the same.
    ///
    /// A begin counts for the key that it had then. So when the function that gives the key is changed, runs may begin for one
    /// interval as if none had before.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use workflow::{Engine, Rate, workflow};
    /// # #[workflow]
    /// # async fn export(customer: String, year: u16) -> u32 { customer.len() as u32 }
    /// # let _ =
    /// Engine::builder()
    ///     .workflow(export)
    ///     .rate_per(export, Rate::per(1, Duration::from_secs(5)), |(customer, _year)| customer.clone())
    /// # ;
    /// ```
    pub fn rate_per<Arguments: DeserializeOwned, F: Definition<Arguments>>(
        mut self,
        _function: F,
        rate: Rate,
        key: impl Fn(&Arguments) -> String + Send + Sync + 'static,
    ) -> Self {
        self.limits.rate::<Arguments, F>(rate, Key::of(key));
        self
    }

    /// How long runs are kept after their end, of every workflow of which [`retention_of`](Self::retention_of) says nothing else. For
    /// ever by default.
    ///
    /// What is kept no longer is deleted from time to time, a little at a time, by the engine: the later the longer the times are,
    /// by a tenth of the shortest, and a quarter of an hour at most. A child stays as long as its parent has not ended, and goes with
    /// its parent at the latest. [`Engine::delete`] tells what is deleted, and what that means for the run's id: keep runs for longer
    /// than anybody may start one of the same id again.
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retentions.others(retention);
        self
    }

    /// How long runs of this workflow are kept after their end.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use workflow::{Engine, Retention, workflow};
    /// # #[workflow]
    /// # async fn export(customer: String) -> u32 { customer.len() as u32 }
    /// const DAY: Duration = Duration::from_secs(86_400);
    /// # let _ =
    /// Engine::builder()
    ///     .workflow(export)
    ///     .retention(Retention::all(30 * DAY))
    ///     // Those that failed or were cancelled are kept for ever.
    ///     .retention_of(export, Retention::forever().completed(DAY))
    /// # ;
    /// ```
    pub fn retention_of<Arguments, F: Definition<Arguments>>(
        mut self,
        _function: F,
        retention: Retention,
    ) -> Self {
        self.retentions.of::<Arguments, F>(retention);
        self
    }

    /// Starts runs by the calendar. [`Schedule`](crate::Schedule) says how; [`Engine::schedule`] looks at it, pauses it, and starts what
    /// was missed.
    #[cfg(feature = "schedules")]
    pub fn schedule(mut self, schedule: crate::schedule::Schedule) -> Self {
        self.schedules.push(schedule);
        self
    }

    /// A run whose next deadline is further away than this leaves memory; 1 s by default. Raise it when runs sleep
    /// often and briefly, and memory is plenty.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// How long a message is kept for a run that was not started yet; a week by default.
    pub fn keep_messages(mut self, keep: Duration) -> Self {
        self.keep_messages = keep;
        self
    }

    /// Tells this build of the program from others, in place of the fingerprint that the engine takes. A run that one
    /// build could not go on with is tried again by another.
    pub fn code_id(mut self, code: u64) -> Self {
        self.code = Some(CodeId(code));
        self
    }

    /// Makes an engine that drives no run: for a program of an operator, who lists, cancels, sends, rewinds and forks, and leaves
    /// the driving to the program that has the workflows. It needs none of them.
    ///
    /// No run is taken up when it is built, and none goes on by what is done with it. What is done is in the store, durably, and
    /// goes on when an engine that drives opens it: a run that was recovered, rewound or forked, that has a message, or that was
    /// started. [`resume`](Engine::resume) says of a parked run that the next engine tries it again. Whoever waits here for a
    /// run that has not ended waits until this engine is shut down.
    ///
    /// ```
    /// # use workflow::{Engine, MemoryStore};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), workflow::Error> {
    /// let store = MemoryStore::new(); // RedbStore::open("orders.redb")?
    /// let operator = Engine::builder().store(store).drives_nothing().build().await?;
    /// assert!(operator.recover("order-17").await.is_err()); // there is none
    /// # Ok(())
    /// # }
    /// ```
    pub fn drives_nothing(mut self) -> Self {
        self.drives = false;
        self
    }

    /// Opens the file at `path`, made when there is none, and builds the engine on it.
    ///
    /// # Errors
    /// As [`build`](Self::build), and those of [`RedbStore::open`](crate::store::RedbStore::open).
    #[cfg(feature = "redb")]
    pub async fn open(self, path: impl Into<std::path::PathBuf>) -> Result<Engine, BuildError> {
        let path = path.into();
        let opened = tokio::task::spawn_blocking(move || crate::store::RedbStore::open(path)).await;
        let store = match opened {
            Ok(store) => store?,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        };
        self.store(store).build().await
    }

    /// Checks the description and starts the engine: runs that were under way go on at once, unless it
    /// [drives nothing](Self::drives_nothing).
    ///
    /// # Errors
    /// [`BuildError`]: no store, two workflows of one name, a `#[state]` that was not given, or the store failed.
    #[allow(
        clippy::unused_async,
        reason = "stores on other machines are asked who they are"
    )]
    pub async fn build(self) -> Result<Engine, BuildError> {
        self.is_unambiguous()?;
        if let Some((workflow, state)) = self.registry.missing(&self.states).into_iter().next() {
            return Err(BuildError::MissingState {
                workflow,
                parameter: state.parameter,
                type_name: state.type_name,
            });
        }
        let limits = self.limits.said();
        let retentions = self.retentions.workflows().map(|name| (name, "retention"));
        for (workflow, what) in limits.chain(retentions) {
            if self.registry.get(workflow).is_none() {
                return Err(BuildError::NotRegistered { workflow, what });
            }
        }
        #[cfg(feature = "schedules")]
        for schedule in &self.schedules {
            let (workflow, what) = (schedule.workflow(), "schedule");
            if self.registry.get(workflow).is_none() {
                return Err(BuildError::NotRegistered { workflow, what });
            }
        }
        let inner = self.assemble()?;
        // Made first: when the rest fails, or is not waited for, what was started ends with it.
        let engine = Engine {
            inner: Arc::clone(&inner),
            _alive: Arc::new(Alive(Arc::clone(&inner))),
        };
        if inner.drives {
            Scheduler::start(&inner);
            Retentions::start(&inner);
            #[cfg(feature = "schedules")]
            Schedules::start(&inner).await?;
        }
        Ok(engine)
    }

    /// Says of every live run in the store whether it goes on with this code, and starts nothing: no engine is built, no run
    /// goes on, nothing is written, no step is run. What a deploy asks before it lets the new program at the store.
    ///
    /// Of the workflows those have to be registered of which there are live runs, with their states. A state is only handed to
    /// the workflow's code, which does not use it outside of steps; so it may be one that is not connected to anything.
    ///
    /// ```
    /// # use workflow::{Engine, MemoryStore, workflow};
    /// # #[workflow]
    /// # async fn order(item: String) -> u32 { item.len() as u32 }
    /// use std::process::ExitCode;
    ///
    /// #[tokio::main(flavor = "current_thread")]
    /// async fn main() -> Result<ExitCode, workflow::Error> {
    ///     let store = MemoryStore::new(); // RedbStore::open("orders.redb")?
    ///     let report = Engine::builder().workflow(order).store(store).preflight().await?;
    ///     println!("{report}");
    ///     Ok(report.exit_code())
    /// }
    /// ```
    pub fn preflight(mut self) -> Preflight {
        // Nothing goes wrong in a run that does not go on.
        self.hooks = Hooks::default();
        let unambiguous = self.is_unambiguous();
        Preflight::new(unambiguous.and_then(|()| self.assemble()))
    }

    /// Who is asked before a body begins, by who was asked so far.
    #[cfg(feature = "testing")]
    pub(crate) fn intervened_by(
        mut self,
        intervening: impl FnOnce(Option<Arc<dyn Intervening>>) -> Arc<dyn Intervening>,
    ) -> Self {
        self.intervening = Some(intervening(self.intervening.take()));
        self
    }

    /// What the jitter of retries is derived from.
    #[cfg(feature = "testing")]
    pub(crate) fn jitter_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    fn is_unambiguous(&self) -> Result<(), BuildError> {
        match &self.twice {
            None => Ok(()),
            Some((first, second)) => Err(BuildError::SameName {
                name: first.name,
                first: first.path,
                second: second.path,
            }),
        }
    }

    /// All parts of an engine, at rest.
    fn assemble(self) -> Result<Arc<Inner>, BuildError> {
        let store = self.store.ok_or(BuildError::NoStore)?;
        #[cfg(feature = "metrics")]
        store.tell_commits(Arc::new(super::telemetry::store_committed));
        let identity = store.identity();
        let seed = self.seed.unwrap_or_else(|| {
            u64::from(std::process::id())
                ^ u64::try_from(self.clock.now().as_millis()).unwrap_or_default()
        });
        let opened_at = self.clock.now();
        // Without room, a run that is started is stored and left at that.
        let room = if self.drives { self.in_memory } else { 0 };
        Ok(Arc::new(Inner {
            identity,
            store,
            code: self.code.unwrap_or_else(|| self.registry.code_id()),
            clock: self.clock,
            codec: self.codec,
            payload_limit: self.payload_limit,
            linger: self.linger,
            keep_messages: self.keep_messages,
            message_ids: MessageIds::default(),
            registry: self.registry,
            states: Arc::new(self.states),
            reporter: self.hooks.start(),
            random: Random::seeded(seed),
            intervening: self.intervening,
            boards: Boards::default(),
            scheduler: Scheduler::new(),
            quarantine: Quarantine::default(),
            limits: Limits::new(self.limits),
            retentions: self.retentions,
            #[cfg(feature = "schedules")]
            schedules: Schedules::new(self.schedules)?,
            desks: Desks::default(),
            long: Long::default(),
            long_history: self.long_history,
            opened_at,
            drives: self.drives,
            room: Arc::new(Room::new(room)),
            door: Arc::new(Semaphore::new(DOOR)),
            live: Mutex::new(Runs::default()),
            left: Notify::new(),
            closing: false.into(),
        }))
    }
}

impl fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineBuilder")
            .field("store", &self.store)
            .field("workflows", &self.registry)
            .finish_non_exhaustive()
    }
}
