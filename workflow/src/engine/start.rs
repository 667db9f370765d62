//! How a run begins, and how one enters memory and leaves it. `take_up.rs` has how one comes back from the store.

use std::sync::Arc;

use siphasher::sip128::SipHasher24;
use tokio::sync::OwnedSemaphorePermit;

use super::any::AnyWorkflow;
use super::board::{Board, Told};
use super::driver::{Begin, Driver, Exit};
use super::error::ParkedRun;
use super::hooks::ErrorEvent;
use super::host::RunHost;
use super::live::{Command, Live};
use super::registry::Entry;
use super::rollback::Rollback;
use super::room::{Place, Seat};
use super::{Engine, Inner, RunHandle, Runs, StartError, retry, telemetry};
use crate::codec::{self, canonical_hash};
use crate::context::{self, ArgError, Args, Call, Host, Input, InputError, Park, Run, Workflow};
use crate::replay::{
    Begun, Body, Finished, ParkReason, Payload, Replay, RunId, RunKey, RunState, Terms, Timestamp,
};
use crate::store::{
    Append, Appended, BoxFuture, InboxChange, NewRun, Parked, Post, RunPatch, RunRow, StoreError,
};

impl Engine {
    /// Waits for the right to begin a run. There may be many that wait here: they hold what they were given, no more.
    pub(super) async fn door(&self) -> Result<OwnedSemaphorePermit, StartError> {
        let door = Arc::clone(&self.inner.door).acquire_owned().await;
        door.map_err(|_closed| StartError::ShuttingDown)
    }

    /// Starts a run, or finds the one that was started before.
    ///
    /// Boxed, as are its parts: of the many that start at once, few are past the door.
    pub(super) fn begin<W: Workflow>(
        &self,
        id: impl Into<String>,
        call: Call<W>,
        door: OwnedSemaphorePermit,
        announce: bool,
    ) -> BoxFuture<'_, Result<RunHandle<W>, StartError>> {
        let asked = self.asked(id.into(), call);
        Box::pin(async move {
            let brought = Box::pin(self.bring(asked?, announce, door)).await?;
            let Brought {
                id,
                run,
                board,
                wait,
                ..
            } = brought;
            if wait {
                return self.until_durable(W::NAME, &board, id, run).await;
            }
            Ok(RunHandle::new(self.clone(), id, run))
        })
    }

    /// Starts a run of a workflow that is known by its name, or finds the one that was started before.
    pub(super) async fn begin_json(
        &self,
        id: RunId,
        entry: Entry,
        json: Vec<u8>,
        terms: Terms,
    ) -> Result<RunHandle<AnyWorkflow>, StartError> {
        let asked = self.inner.asked_of(id, entry, Ok(json), terms)?;
        self.begin_asked(asked).await
    }

    /// Starts what was asked for, or finds the run that was started before.
    pub(super) async fn begin_asked(
        &self,
        asked: Asked,
    ) -> Result<RunHandle<AnyWorkflow>, StartError> {
        let workflow = asked.entry.name;
        let door = self.door().await?;
        let Brought {
            id,
            run,
            board,
            wait,
            ..
        } = Box::pin(self.bring(asked, true, door)).await?;
        if wait {
            return self.until_durable(workflow, &board, id, run).await;
        }
        Ok(RunHandle::new(self.clone(), id, run))
    }

    /// Starts a run whose code is the library's own; true when there was none of that id. Its beginning is durable with the first
    /// thing that it records.
    pub(crate) async fn begin_own(
        &self,
        id: RunId,
        entry: Entry,
        input: Input,
    ) -> Result<(RunKey, bool), StartError> {
        let door = self.door().await?;
        let json = input.into_json();
        let asked = self.inner.asked_of(id, entry, json, Terms::default())?;
        let Brought { run, created, .. } = Box::pin(self.bring(asked, false, door)).await?;
        Ok((run, created))
    }

    /// Checks what is asked for.
    fn asked<W: Workflow>(&self, id: String, call: Call<W>) -> Result<Asked, StartError> {
        let id = RunId::new(id)?;
        if self.inner.is_closing() {
            return Err(StartError::ShuttingDown);
        }
        let entry = self.inner.registry.get(W::NAME);
        let entry = entry.ok_or(StartError::NotRegistered { workflow: W::NAME })?;
        let terms = call.terms();
        self.inner.asked_of(id, entry, call.into_json(), terms)
    }

    /// Brings a new run into memory, or finds the run that has the id.
    async fn bring(
        &self,
        asked: Asked,
        announce: bool,
        door: OwnedSemaphorePermit,
    ) -> Result<Brought, StartError> {
        let inner = &self.inner;
        let Asked {
            id,
            entry,
            json,
            input_hash,
            terms,
        } = asked;
        // Whoever asks for an id that is being begun right now waits for the same beginning.
        let starting = loop {
            if inner.is_closing() {
                return Err(StartError::ShuttingDown);
            }
            let joined = inner.runs().by_id.get(&id).copied();
            if let Some(run) = joined {
                let joined = self.join(&id, run, entry.name, input_hash)?;
                if let Some((board, is_durable)) = joined {
                    return Ok(Brought {
                        id,
                        run,
                        board,
                        wait: announce && !is_durable,
                        created: false,
                    });
                }
                continue;
            }
            let sought = Sought::of(inner, &id);
            if let Some(row) = inner.store.find(&id).await? {
                return self.rejoin(row, entry.name, input_hash).await;
            }
            let run = inner.store.allocate();
            let live = Live::new(id.clone(), run, entry.name, input_hash, 0);
            let live = Arc::new(live.with_priority(terms.priority.unwrap_or_default()));
            if sought.enter(&live) {
                break live;
            }
        };
        let board = inner.boards.board(starting.run);
        let leave = LeaveOnDrop {
            inner,
            live: &starting,
            armed: true,
        };

        let run = starting.run;
        let gate = inner.limits.gate(entry.name, || Some(json.clone()));
        let now = inner.clock.now();
        let (begun, create) = inner.beginning(&id, entry.name, json, input_hash, terms, now)?;
        let place = Place::new(create.priority, run);
        let later = create.not_before;
        let mut wait = announce;
        let has_all = later.is_none()
            && gate
                .as_ref()
                .is_none_or(|gate| inner.limits.take(gate, place, now));
        match inner.room.try_enter() {
            Some(seat) if has_all => {
                let begins = gate.as_ref().map(|gate| inner.begins(gate, run));
                let begins = begins.transpose().map_err(|error| {
                    inner.frees(run);
                    refused(entry.name, error.to_string())
                })?;
                let begins = begins.flatten();
                let input = begun.input.clone();
                let replay = Replay::begin(begun, inner.code);
                leave.disarm();
                let begin = Begin::New {
                    create: Box::new(create),
                    announce: announce || begins.is_some(),
                    begins,
                    door,
                };
                inner.launch(&starting, entry, replay, &input, begin, seat);
            }
            None if inner.is_closing() => return Err(StartError::ShuttingDown),
            _ => {
                // No slot, no room in memory, or not its time: the run is stored, and driven when there is some, or it is. In a task of its own,
                // because others may wait for this beginning when whoever asked first does no longer.
                leave.disarm();
                let (inner, live) = (Arc::clone(inner), Arc::clone(&starting));
                let task = tokio::spawn(async move {
                    let written = inner.store_only(&live, begun, create, now).await;
                    drop(door);
                    let stored =
                        matches!(written, Ok(Appended::Applied | Appended::AlreadyApplied));
                    let gate = gate.filter(|_| later.is_none());
                    if let Some(gate) = &gate
                        && stored
                    {
                        // Before it is told: who starts another one after it is behind it.
                        inner.enqueue(gate, place);
                    }
                    inner.leave(&live);
                    if gate.is_some() {
                        let now = inner.clock.now();
                        let granted = if stored {
                            inner.limits.granted_with(live.run, now)
                        } else {
                            inner.limits.release(live.run, now)
                        };
                        inner.grant(granted);
                    }
                    let told = match written {
                        Ok(Appended::Applied | Appended::AlreadyApplied) => {
                            telemetry::started(&live.id, live.workflow);
                            if let Some(board) = inner.boards.find(live.run) {
                                board.tell_durable();
                            }
                            return match later {
                                None => inner.wake_at(place),
                                Some(at) => inner.scheduler.suspended(at, live.run),
                            };
                        }
                        Ok(Appended::Exists(by)) => taken(&live, by),
                        Ok(_) => Told::ShutDown,
                        Err(error) => Told::Unborn {
                            retryable: error.is_retryable(),
                            detail: error.to_string(),
                        },
                    };
                    inner.tell(live.run, told);
                });
                starting.driven_by(task.abort_handle());
                wait = true;
            }
        }
        Ok(Brought {
            id,
            run,
            board,
            wait,
            created: true,
        })
    }

    /// A handle on a run that is being begun, once its beginning is durable.
    async fn until_durable<W: Workflow>(
        &self,
        workflow: &'static str,
        board: &Board,
        id: RunId,
        run: RunKey,
    ) -> Result<RunHandle<W>, StartError> {
        match board.durable().await {
            Ok(())
            | Err(Told::Completed(_) | Told::Failed(_) | Told::Cancelled | Told::Parked(_)) => {
                Ok(RunHandle::new(self.clone(), id, run))
            }
            Err(Told::Taken { by, input_hash }) => {
                Box::pin(self.rejoin_taken(workflow, by, input_hash)).await
            }
            Err(Told::Gone) => Ok(RunHandle::new(self.clone(), id, run)),
            Err(Told::ShutDown) => Err(StartError::ShuttingDown),
            Err(Told::Unborn { retryable, detail }) => Err(unborn(retryable, detail).into()),
        }
    }

    /// The board of a run in memory, if it still is there, and whether its beginning is durable: a board that was just made
    /// knows nothing of what was told before.
    fn join(
        &self,
        id: &RunId,
        run: RunKey,
        workflow: &'static str,
        input_hash: u64,
    ) -> Result<Option<(Arc<Board>, bool)>, StartError> {
        let board = self.inner.boards.board(run);
        let Some(live) = self.inner.runs().by_key.get(&run).cloned() else {
            return Ok(None);
        };
        same(id, live.workflow, live.input_hash, workflow, input_hash)?;
        Ok(Some((board, live.is_durable())))
    }

    /// A handle on the run that was begun first where this engine would have begun one of that id.
    pub(super) async fn rejoin_taken<W: Workflow>(
        &self,
        workflow: &'static str,
        by: RunKey,
        input_hash: u64,
    ) -> Result<RunHandle<W>, StartError> {
        match self.inner.store.row(by).await? {
            Some(row) => {
                let Brought { id, run, .. } = self.rejoin(row, workflow, input_hash).await?;
                Ok(RunHandle::new(self.clone(), id, run))
            }
            None => Err(unborn(true, "its id was taken meanwhile".to_owned()).into()),
        }
    }

    /// A run that the store has, if it is the same.
    async fn rejoin(
        &self,
        row: RunRow,
        workflow: &'static str,
        input_hash: u64,
    ) -> Result<Brought, StartError> {
        // A handle on whatever workflow it is joined the run before.
        let any = workflow == AnyWorkflow::NAME;
        if row.workflow != workflow && !any {
            return Err(StartError::OtherWorkflow {
                id: row.id,
                existing: row.workflow,
                requested: workflow,
            });
        }
        let first = self.inner.store.first(row.key).await?;
        if let Some(Body::Begun(begun)) = first.map(|record| record.body) {
            same(&row.id, workflow, begun.input_hash, workflow, input_hash)?;
        }
        Ok(Brought {
            board: self.inner.boards.board(row.key),
            id: row.id,
            run: row.key,
            wait: false,
            created: false,
        })
    }
}

/// What was asked to be started, checked.
pub(super) struct Asked {
    id: RunId,
    entry: Entry,
    json: Vec<u8>,
    input_hash: u64,
    terms: Terms,
}

/// A run that was begun, or found.
struct Brought {
    id: RunId,
    run: RunKey,
    board: Arc<Board>,
    /// Its beginning may not be durable yet, and is to be.
    wait: bool,
    /// It was begun, and not found.
    created: bool,
}

fn refused(workflow: &'static str, detail: String) -> StartError {
    StartError::Input { workflow, detail }
}

/// The seed of a run, derived and not chosen: a start that was cut off before it was durable and is made again derives
/// the same keys and ids, so an effect of its first step is recognised by whoever it was had on.
pub(super) fn derive_seed(store: u128, id: &RunId) -> u128 {
    SipHasher24::new_with_key(&store.to_le_bytes())
        .hash(id.as_str().as_bytes())
        .as_u128()
}

/// What those are told who wait for a run whose id another engine took first.
fn taken(live: &Live, by: RunKey) -> Told {
    Told::Taken {
        by,
        input_hash: live.input_hash,
    }
}

/// The error of a start that the store refused again and again.
pub(super) fn unborn(retryable: bool, detail: String) -> StoreError {
    StoreError::Io {
        operation: "storing a new run",
        retryable,
        source: detail.into(),
    }
}

fn same(
    id: &RunId,
    existing: &str,
    recorded: u64,
    requested: &'static str,
    issued: u64,
) -> Result<(), StartError> {
    if existing != requested {
        return Err(StartError::OtherWorkflow {
            id: id.clone(),
            existing: existing.to_owned(),
            requested,
        });
    }
    if recorded != issued {
        return Err(StartError::OtherInput { id: id.clone() });
    }
    Ok(())
}

/// A run that did not come to be driven leaves memory again.
struct LeaveOnDrop<'a> {
    inner: &'a Inner,
    live: &'a Live,
    armed: bool,
}

impl LeaveOnDrop<'_> {
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for LeaveOnDrop<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.inner.leave(self.live);
        }
    }
}

/// An id that the store is asked for.
struct Sought<'a> {
    inner: &'a Inner,
    id: &'a RunId,
    /// How often a run of that id had left memory before.
    left: u64,
}

impl<'a> Sought<'a> {
    fn of(inner: &'a Inner, id: &'a RunId) -> Self {
        let mut runs = inner.runs();
        let (by, left) = runs.sought.entry(id.clone()).or_default();
        *by += 1;
        let left = *left;
        drop(runs);
        Self { inner, id, left }
    }

    /// Puts a new run of that id among those in memory; false when one is there, or was there since the store was
    /// asked: then its answer may be of before.
    fn enter(&self, live: &Arc<Live>) -> bool {
        let mut runs = self.inner.runs();
        let fresh = matches!(runs.sought.get(self.id), Some((_, left)) if *left == self.left);
        fresh && self.inner.enter_among(&mut runs, live)
    }
}

impl Drop for Sought<'_> {
    fn drop(&mut self) {
        let mut runs = self.inner.runs();
        if let Some((by, _)) = runs.sought.get_mut(self.id) {
            *by -= 1;
            if *by == 0 {
                runs.sought.remove(self.id);
            }
        }
    }
}

impl Inner {
    /// Puts a run among those in memory; false when it is there, or the engine is closing.
    pub(super) fn enter(&self, live: &Arc<Live>) -> bool {
        self.enter_among(&mut self.runs(), live)
    }

    fn enter_among(&self, runs: &mut Runs, live: &Arc<Live>) -> bool {
        // Looked at under the lock: who closes sets this first and then takes the runs there are.
        if self.is_closing()
            || runs.by_id.contains_key(&live.id)
            || runs.by_key.contains_key(&live.run)
        {
            return false;
        }
        runs.by_id.insert(live.id.clone(), live.run);
        runs.by_key.insert(live.run, Arc::clone(live));
        telemetry::in_memory(runs.by_key.len());
        true
    }

    pub(super) fn leave(&self, live: &Live) {
        let mut runs = self.runs();
        runs.by_id.remove(&live.id);
        runs.by_key.remove(&live.run);
        telemetry::in_memory(runs.by_key.len());
        if live.threads.count() > 0 {
            runs.left_behind.insert(live.run, Arc::clone(&live.threads));
        }
        if let Some((_, left)) = runs.sought.get_mut(&live.id) {
            *left += 1;
        }
        drop(runs);
        self.left.notify_waiters();
    }

    /// Checks what a run is to be started with.
    pub(super) fn asked_of(
        &self,
        id: RunId,
        entry: Entry,
        json: Result<Vec<u8>, InputError>,
        terms: Terms,
    ) -> Result<Asked, StartError> {
        let json = json.map_err(|error| refused(entry.name, error.to_string()))?;
        let limit = self.payload_limit;
        if json.len() > limit {
            let detail = format!("it is {} bytes long, the limit is {limit}", json.len());
            return Err(refused(entry.name, detail));
        }
        let input_hash = canonical_hash(&json);
        Ok(Asked {
            id,
            entry,
            json,
            input_hash,
            terms,
        })
    }

    /// What a run that nobody else started begins with.
    fn beginning(
        &self,
        id: &RunId,
        workflow: &'static str,
        json: Vec<u8>,
        input_hash: u64,
        terms: Terms,
        now: Timestamp,
    ) -> Result<(Begun, NewRun), StartError> {
        let input = codec::seal(&*self.codec, json)
            .map_err(|error| refused(workflow, error.to_string()))?;
        let begun = Begun {
            workflow: workflow.to_owned(),
            input,
            input_hash,
            seed: derive_seed(self.identity.id, id),
            generation: 0,
            parent: None,
            forked_from: None,
        };
        let create = NewRun {
            id: id.clone(),
            workflow: workflow.to_owned(),
            parent: None,
            detached: false,
            not_before: terms.not_before(now),
            priority: terms.priority.unwrap_or_default(),
        };
        Ok((begun, create))
    }

    /// Stores a new run together with what goes in the same transaction, and drives it then. Nothing is written when there is one of
    /// that id.
    #[cfg(feature = "schedules")]
    pub(super) async fn begin_stored(
        self: &Arc<Self>,
        asked: Asked,
        posts: Vec<Post>,
    ) -> Result<Appended, StartError> {
        let Asked {
            id,
            entry,
            json,
            input_hash,
            terms,
        } = asked;
        let now = self.clock.now();
        let (begun, create) = self.beginning(&id, entry.name, json, input_hash, terms, now)?;
        let (priority, later) = (create.priority, create.not_before);
        let run = self.store.allocate();
        let append = self.first_append(run, 1, begun, create, posts, now)?;
        let appended = self.store.append(append).await?;
        if let Appended::Applied | Appended::AlreadyApplied = appended {
            telemetry::started(&id, entry.name);
            match later {
                None => self.wake_at(Place::new(priority, run)),
                Some(at) => self.scheduler.suspended(at, run),
            }
        }
        Ok(appended)
    }

    /// Stores a run without driving it, as of the time from which its delay counts.
    async fn store_only(
        &self,
        live: &Live,
        begun: Begun,
        create: NewRun,
        now: Timestamp,
    ) -> Result<Appended, StoreError> {
        let append = self.first_append(live.run, live.number(), begun, create, Vec::new(), now)?;
        self.store.append(append).await
    }

    /// The beginning of a run, as it is stored.
    fn first_append(
        &self,
        run: RunKey,
        number: u64,
        begun: Begun,
        create: NewRun,
        posts: Vec<Post>,
        now: Timestamp,
    ) -> Result<Append, StoreError> {
        let later = create.not_before.is_some();
        let batch = Replay::begin(begun, self.code)
            .poll_append(now)
            .into_iter()
            .next();
        let Some(batch) = batch else {
            return Err(StoreError::Closed);
        };
        let patch = RunPatch {
            // One that is to begin later is `Waiting`.
            state: (!later).then_some(RunState::Pending),
            at: now,
            code: self.code,
            ..RunPatch::default()
        };
        Ok(Append {
            run,
            epoch: self.identity.boot,
            number,
            expected_seq: 0,
            create: Some(create),
            records: batch.records,
            deletes: Vec::new(),
            patch,
            inbox: InboxChange::default(),
            posts,
        })
    }

    /// A run's code over its machine, before it is polled.
    pub(super) fn code_of(
        &self,
        id: RunId,
        entry: &Entry,
        replay: Replay,
        input: &Payload,
        host: Arc<dyn Host>,
    ) -> (Arc<Run>, Result<context::Body, ArgError>) {
        let run = Run::new(
            id,
            replay,
            host,
            Arc::clone(&self.codec),
            self.payload_limit,
        );
        let body = Args::new(Arc::clone(&run), input, Arc::clone(&self.states))
            .and_then(|args| (entry.run)(args));
        (run, body)
    }

    /// Drives a run in a task of its own.
    pub(super) fn launch(
        self: &Arc<Self>,
        live: &Arc<Live>,
        entry: Entry,
        replay: Replay,
        input: &Payload,
        begin: Begin,
        seat: Seat,
    ) {
        let seed = (replay.seed(), replay.generation());
        let host = Arc::new(RunHost::new(Arc::clone(self), Arc::clone(live)));
        let (run, body) = self.code_of(live.id.clone(), &entry, replay, input, host);
        let driven = Arc::clone(live);
        let (inner, live) = (Arc::clone(self), Arc::clone(live));
        let task = match body {
            Ok(body) => {
                let mut driver =
                    Driver::new(Arc::clone(&inner), Arc::clone(&live), run, body, begin);
                tokio::spawn(async move {
                    // By reference: a future that owns it would hold it twice.
                    let exit = driver.drive().await;
                    drop(driver);
                    if let Exit::Unwinding(ledger, last_seq) = exit {
                        let rollback = Rollback {
                            inner: Arc::clone(&inner),
                            live: Arc::clone(&live),
                            entry,
                            ledger: *ledger,
                            last_seq,
                            seed,
                            was_parked: false,
                        };
                        return inner.launch_rollback(&live, rollback, seat);
                    }
                    inner.left_memory(&live, exit);
                    drop(seat);
                })
            }
            Err(error) => tokio::spawn(async move {
                let Park { reason, detail, .. } = error.park();
                let exit = inner.park(&live, (reason, detail)).await;
                inner.left_memory(&live, exit);
                drop((begin, seat));
            }),
        };
        driven.driven_by(task.abort_handle());
    }

    /// Goes on undoing a run, in a task of its own.
    pub(super) fn launch_rollback(
        self: &Arc<Self>,
        live: &Arc<Live>,
        rollback: Rollback,
        seat: Seat,
    ) {
        let (inner, driven) = (Arc::clone(self), Arc::clone(live));
        let task = tokio::spawn(async move {
            let exit = rollback.run().await;
            inner.left_memory(&driven, exit);
            drop(seat);
        });
        live.driven_by(task.abort_handle());
    }

    /// The number of the last append that this opening of the store made to a run.
    pub(super) fn last_number(&self, row: &RunRow) -> u64 {
        if row.last_append.0 == self.identity.boot {
            row.last_append.1
        } else {
            0
        }
    }

    /// Parks a run whose code could not even be begun.
    pub(super) async fn park(&self, live: &Live, (reason, detail): (ParkReason, String)) -> Exit {
        let parked = Parked {
            reason,
            by: self.code,
            detail,
        };
        let now = self.clock.now();
        let patch = RunPatch {
            state: Some(RunState::Parked),
            parked: Some(Some(parked.clone())),
            wake_at: Some(None),
            at: now,
            code: self.code,
            ..RunPatch::default()
        };
        let append = Append {
            run: live.run,
            epoch: self.identity.boot,
            number: live.number(),
            expected_seq: live.last_seq(),
            create: None,
            records: Vec::new(),
            deletes: Vec::new(),
            patch,
            inbox: InboxChange::default(),
            posts: Vec::new(),
        };
        match self.store.append(append).await {
            Ok(Appended::Applied | Appended::AlreadyApplied) => Exit::Parked(parked),
            Ok(refused) => Exit::Refused(refused),
            Err(error) => Exit::Storage {
                error,
                unborn: false,
            },
        }
    }

    /// A drive is over: whoever waits is told, and the next one is arranged.
    pub(super) fn left_memory(self: &Arc<Self>, live: &Live, exit: Exit) {
        match &exit {
            Exit::Parked(parked) => {
                telemetry::parked(live, parked.reason, &parked.detail);
                self.reporter.report(ErrorEvent::Parked {
                    run: live.id.clone(),
                    reason: parked.reason,
                    detail: parked.detail.clone(),
                });
            }
            Exit::Storage { error, .. } => {
                tracing::error!(run = %live.id, %error, "the store keeps failing; the run is tried again later");
            }
            _ => {}
        }
        self.leave(live);
        let granted = match &exit {
            Exit::Suspended(_) | Exit::Strayed(_) | Exit::Storage { unborn: false, .. } => {
                self.limits.suspended(live.run, self.clock.now())
            }
            _ => self.limits.release(live.run, self.clock.now()),
        };
        self.grant(granted);
        let wanted = self.tell_desk(live.run, &exit);
        // Looked at when it has left: who cancels looks whether it has after telling it.
        let cancelled = live.command() == Some(Command::Cancelled);
        let back = live.comes_back()
            && match &exit {
                Exit::Suspended(_) | Exit::Parked(_) | Exit::Strayed(_) => !cancelled,
                Exit::Storage { unborn, .. } => !cancelled && !unborn,
                Exit::Finished(_) | Exit::Refused(_) | Exit::Unwinding(..) => false,
            };
        let back = back || matches!(exit, Exit::Strayed(_)) && !cancelled;
        if matches!(exit, Exit::Finished(_)) {
            self.forget_strayed(live.run, |_| true);
        }
        let told = match exit {
            Exit::Suspended(_) | Exit::Parked(_) | Exit::Strayed(_) | Exit::Storage { .. }
                if cancelled =>
            {
                Some(Told::Cancelled)
            }
            Exit::Finished(Finished::Completed(payload)) => Some(Told::Completed(payload)),
            Exit::Finished(Finished::Failed(failure)) => Some(Told::Failed(failure)),
            Exit::Finished(Finished::Cancelled) | Exit::Refused(Appended::Final) => {
                Some(Told::Cancelled)
            }
            Exit::Refused(Appended::Exists(by)) => Some(taken(live, by)),
            Exit::Refused(_) => Some(Told::ShutDown),
            // Whoever asked for it to come back asked after it was parked.
            Exit::Parked(_) if back => None,
            Exit::Parked(Parked { reason, detail, .. }) => Some(Told::Parked(ParkedRun {
                id: live.id.clone(),
                reason,
                detail,
            })),
            Exit::Strayed(strayed) => {
                tracing::warn!(run = %live.id, visit = %strayed.visit, "its code does not fit its records: {}", strayed.report);
                let mut runs = self.runs();
                runs.strayed.entry(live.run).or_default().push(strayed);
                None
            }
            // Rolled back before it comes here.
            Exit::Unwinding(..) => None,
            Exit::Suspended(wake_at) => {
                if let Some(at) = wake_at {
                    self.scheduler.suspended(at, live.run);
                }
                None
            }
            // Whoever started it is told, and starts it again; nobody else knows of it.
            Exit::Storage {
                error,
                unborn: true,
            } => Some(Told::Unborn {
                retryable: error.is_retryable(),
                detail: error.to_string(),
            }),
            Exit::Storage { .. } => {
                self.scheduler
                    .at(self.clock.now().after(retry::STORAGE_PAUSE), live.run);
                None
            }
        };
        if matches!(
            told,
            Some(Told::Completed(_) | Told::Failed(_) | Told::Cancelled)
        ) && let Some(parent) = live.awaited_by()
        {
            self.news_of(parent.clone());
        }
        if told.is_none() && live.wakes.take_news() {
            // It came while the run was leaving.
            self.wake(live.run);
        }
        if let Some(told) = told {
            self.tell(live.run, told);
        }
        if back || wanted {
            self.wake(live.run);
        }
        self.boards.sweep(live.run);
    }
}
