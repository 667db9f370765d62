//! What the library's own code of a guided flow stands on: positions, visits, and the desk where its drivers are.

use std::any::type_name;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::wait::Operation;
use super::{
    Args, Body, BoxFut, CurrentStep, Cx, Desk, Fragment, Input, Park, Recorded, Run, Watching,
    opaque_debug,
};
use crate::codec::{self, BoxError, Codec};
use crate::replay::{
    self, Attempt, Backoff, Body as Recording, ChildStart, Claim, Failure, FailureKind, Finished,
    Held, Kept, Kind, LedgerEntry, Location, Noted, Noting, Op, Payload, Record, RunId, Scope,
    Site, Terms, Ticket, Timestamp, Undoing, newest_positions, position_location,
};

/// The channel on which a guide waits for what its drivers say. No user's channel has this name.
const CHANNEL: &str = "\0guide";

/// A run whose code is the library's own, or a place in it where such code runs.
pub struct Ground {
    cx: Cx,
    base: Location,
    /// Nothing for a place in a run.
    args: Option<Args>,
}

opaque_debug!(Ground);

impl Ground {
    /// What a run is called with.
    pub fn of(args: Args) -> Self {
        Self {
            cx: Cx::root(args.run()),
            base: Location::root(),
            args: Some(args),
        }
    }

    /// A place in a run: the scope of an operation that is answered by such code.
    fn within(cx: &Cx, scope: Scope) -> Self {
        let cx = cx.at(scope);
        let base = cx.run().replay().scope_location(scope);
        Self {
            cx,
            base,
            args: None,
        }
    }

    /// Queues a position of a flow that lies in this one.
    ///
    /// # Errors
    /// When it does not survive the codec, or is over the payload limit.
    pub fn note_within<P: Recorded>(
        &self,
        base: &Location,
        revision: u64,
        position: &P,
    ) -> Result<(), BoxError> {
        let codec::Encoded { json, .. } = codec::encode(position)?;
        let body = Recording::State {
            revision,
            payload: self.run().seal(json)?,
            command: None,
        };
        let location = position_location(base, revision);
        self.run().replay().note(location, body, Noting::Durable);
        Ok(())
    }

    /// The newest positions that were recorded of flows in stages of this one, with where they lie: the outer before what is in them.
    pub fn positions_within<P: DeserializeOwned>(&self) -> Vec<(Location, P)> {
        let positions: Vec<_> = {
            let replay = self.run().replay();
            let all = replay.positions().filter(|(base, _)| !base.is_root());
            all.map(|(base, payload)| (base.clone(), payload.clone()))
                .collect()
        };
        let read = |payload| self.run().decode(&payload).ok();
        let positions = positions.into_iter();
        positions
            .filter_map(|(base, payload)| Some((base, read(payload)?)))
            .collect()
    }

    /// Where its flow lies.
    pub fn base(&self) -> &Location {
        &self.base
    }

    /// The code of the run.
    pub fn body(self, code: impl FnOnce(Self) -> GroundCode) -> Body {
        let run = Arc::clone(self.run());
        Body::of(run, code(self))
    }

    /// What the run was begun with.
    ///
    /// # Errors
    /// Why the run has to be parked: it does not decode.
    pub fn input<T: DeserializeOwned>(&self, name: &'static str) -> Result<T, Park> {
        let args = self.args.as_ref().ok_or_else(|| Park {
            location: Some(self.base.clone()),
            reason: replay::ParkReason::Decode,
            detail: "what lies in a run has no input of its own".to_owned(),
        })?;
        args.input(name).map_err(|error| error.park())
    }

    /// What the run's drivers in this process share with it.
    pub fn desk(&self, make: fn() -> Arc<dyn Desk>) -> Arc<dyn Desk> {
        self.run().host().desk(make)
    }

    /// What the engine's clock says.
    pub fn now(&self) -> Timestamp {
        self.run().host().now()
    }

    /// What says that, wherever it is taken.
    pub fn clock(&self) -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
        self.run().host().clock()
    }

    /// The steps of the run are watched from now on.
    pub fn watched_by(&self, watch: Arc<dyn Watching>) {
        self.run().watched_by(watch);
    }

    /// What the run's row has of what was published.
    pub fn published(&self) -> Option<String> {
        self.run().host().published()
    }

    /// Puts something into the run's row, with the next batch; `now`: and there is one soon.
    pub fn publish(&self, json: String, now: bool) {
        self.run().host().progress(&json);
        let mut replay = self.run().replay();
        if now {
            replay.publish_now(json);
        } else {
            replay.publish(json);
        }
    }

    /// No value over so many bytes is recorded.
    pub fn payload_limit(&self) -> usize {
        self.run().payload_limit()
    }

    /// Waits by the engine's timers, without a record.
    pub fn sleep(&self, duration: Duration) -> BoxFut<'static, ()> {
        self.run().host().sleep(duration)
    }

    /// The run does not rest as long as this is held.
    pub fn stay_up(&self) -> Up {
        Up::stay(self.run())
    }

    /// Whether somebody who drove the run died after this.
    pub fn died_since(&self, at: Timestamp) -> bool {
        self.run().replay().died_since(at)
    }

    /// How many bodies that were given up still occupy a thread.
    pub fn stopping(&self) -> usize {
        self.run().host().stopping()
    }

    /// Why the code of this visit cannot be gone on with, if so.
    pub fn strayed(&self, stage: &str, number: u32) -> Option<String> {
        let visit = visit_location(&self.base, stage, number);
        self.run().host().strayed(&visit)
    }

    /// Waits, as long as the run is driven, so that it rests when nothing is to be done.
    pub fn await_desk(&self) {
        self.run().replay().await_desk(CHANNEL);
    }

    // ===== positions =====

    /// The newest position that was recorded before this drive.
    ///
    /// # Errors
    /// Why the run has to be parked: it does not decode.
    pub fn position<P: DeserializeOwned>(&self) -> Result<Option<P>, Park> {
        let Some(payload) = self.run().replay().position(&self.base).cloned() else {
            return Ok(None);
        };
        self.run().decode(&payload).map(Some).map_err(|error| {
            let wanted = type_name::<P>();
            Park {
                location: None,
                reason: replay::ParkReason::Decode,
                detail: format!(
                    "the recorded position of the guide does not decode into `{wanted}`: {error}\n  \
                     ways out: make the type accept what was recorded (`#[serde(default)]`, `#[serde(alias = \"..\")]`)"
                ),
            }
        })
    }

    /// Queues a position; gives it as it reads back. Positions older than `keep` revisions are deleted.
    ///
    /// # Errors
    /// When it does not survive the codec, or is over the payload limit.
    pub fn note<P: Recorded>(
        &self,
        revision: u64,
        position: &P,
        command: Option<String>,
        noting: Noting,
        keep: u64,
    ) -> Result<(P, Noted), BoxError> {
        let codec::Encoded { json, value } = codec::encode(position)?;
        let payload = self.run().seal(json)?;
        let body = Recording::State {
            revision,
            payload,
            command,
        };
        let mut replay = self.run().replay();
        if let Some(old) = revision.checked_sub(keep).filter(|old| *old > 0) {
            replay.forget(position_location(&self.base, old));
        }
        let noted = replay.note(position_location(&self.base, revision), body, noting);
        Ok((value, noted))
    }

    /// Whether a note is durable.
    pub fn poll_noted(&self, noted: Noted, task: &Context<'_>) -> Poll<()> {
        self.run().replay().poll_noted(noted, task.waker())
    }

    /// Whether a note is being written, or is durable.
    pub fn is_closed(&self, noted: Noted) -> bool {
        self.run().replay().is_closed(noted)
    }

    /// Deletes, with the next batch, what the visits of a stage have recorded.
    pub fn forget_visits(&self, stage: &str) {
        self.run().replay().forget(self.base.branch(stage));
    }

    /// Deletes, with the next batch, what a visit has recorded.
    pub fn forget_visit(&self, stage: &str, number: u32) {
        let visit = visit_location(&self.base, stage, number);
        self.run().replay().forget(visit);
    }

    /// Whether something that flows in a visit did is still to be undone, with the data that they have.
    pub fn owes_flows(&self, stage: &str, number: u32) -> bool {
        let visit = visit_location(&self.base, stage, number);
        let replay = self.run().replay();
        let mut flows = replay.positions().map(|(base, _)| base);
        flows.any(|base| {
            let mut owed = replay.ledger().entries();
            base.is_under(&visit) && owed.any(|entry| entry.location.is_under(base))
        })
    }

    // ===== the ledger =====

    /// A visit has effects that are undone by the stage's own undo; it is `done`, or not yet.
    pub fn arm(&self, stage: &str, number: u32, undo: String, done: bool) {
        let output = done.then(|| Payload::json(number.to_string().into_bytes()));
        let visit = visit_location(&self.base, stage, number);
        self.run().replay().arm_visit(visit, undo, output);
    }

    /// The steps at these sites, by their paths below the flow, have undos of the flow's.
    pub fn undo_sites(&self, undos: impl IntoIterator<Item = (&'static str, Undoing)>) {
        self.run().replay().undo_sites(&self.base.path(), undos);
    }

    /// The open entries, oldest first.
    pub fn ledger(&self) -> Vec<LedgerEntry> {
        self.run().replay().ledger().entries().cloned().collect()
    }

    /// The ledger, one entry after the other.
    pub fn undoing(&self) -> Unmaking {
        Unmaking {
            run: Arc::clone(self.run()),
            _up: self.stay_up(),
        }
    }

    // ===== visits =====

    /// The scope of a visit.
    pub fn visit(&self, stage: &str, number: u32, keeps: Option<u32>) -> Visiting {
        let scope = self
            .run()
            .replay()
            .visit(self.cx.scope(), stage, number, keeps);
        Visiting(self.cx.at(scope))
    }

    /// The code waits for something before it begins, or begins.
    pub fn before_code(&self, before: bool) {
        self.run().replay().before_code(before);
    }

    /// The gate is not to open before [`open_gate`](Self::open_gate).
    pub fn hold_gate(&self) {
        self.run().replay().hold_gate();
    }

    /// What is at the frontier, once every record is consumed.
    pub fn poll_gate(&self, task: &Context<'_>) -> Poll<Held> {
        self.run().replay().poll_gate(task.waker())
    }

    /// Lets the gate open.
    pub fn open_gate(&self) {
        self.run().replay().open_gate();
    }

    fn run(&self) -> &Arc<Run> {
        self.cx.run()
    }
}

/// Where a visit waits before its code begins.
const PAUSING: &str = "\0pause";

/// The code of a run.
pub type GroundCode = BoxFut<'static, Result<Finished, Park>>;

/// The scope of a visit, or one inside. When it is dropped, what had not ended in it is given up.
#[derive(Debug)]
pub struct Visiting(Cx);

impl Visiting {
    /// The scope, as the expansions pass it around.
    pub fn cx(&self) -> Cx {
        self.0.clone()
    }

    /// Whether anything was recorded in it before this drive.
    pub fn is_recorded(&self) -> bool {
        self.0.run().replay().is_recorded(self.0.scope())
    }

    /// Whether its code has ended, in a replay, before what is recorded of it was used up.
    pub fn is_left_over(&self) -> bool {
        self.0.run().replay().is_left_over(self.0.scope())
    }

    /// Where those effects of earlier visits lie that succeeded and that nothing in this one asked for.
    pub fn unasked(&self) -> Vec<Location> {
        self.0.run().replay().unasked(self.0.scope())
    }

    /// Waits before its code begins, without a record; nothing when the code has begun before.
    pub fn pause(&self, until: Timestamp) -> Option<Limit> {
        let mut replay = self.0.run().replay();
        if replay.is_recorded(self.0.scope()) {
            return None;
        }
        let pause = replay.aside(self.0.scope(), PAUSING, 1);
        Some(Limit {
            ticket: replay.limit(pause, until),
            run: Arc::clone(self.0.run()),
        })
    }

    /// Gives it a time limit.
    #[must_use]
    pub fn limit(&self, until: Timestamp) -> Limit {
        Limit {
            ticket: self.0.run().replay().limit(self.0.scope(), until),
            run: Arc::clone(self.0.run()),
        }
    }
}

/// The time limit of a visit.
#[derive(Debug)]
pub struct Limit {
    run: Arc<Run>,
    ticket: Ticket,
}

impl Limit {
    /// Ready when it has passed.
    pub fn poll(&self, task: &Context<'_>) -> Poll<()> {
        self.run.replay().poll_limit(&self.ticket, task.waker())
    }
}

impl Drop for Visiting {
    fn drop(&mut self) {
        self.0.run().replay().abandon(self.0.scope());
    }
}

/// The run is at something that its machine does not see, and does not rest meanwhile.
#[derive(Debug)]
pub struct Up(Arc<Run>);

impl Up {
    fn stay(run: &Arc<Run>) -> Self {
        run.replay().stay_up();
        Self(Arc::clone(run))
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        self.0.replay().settle_in();
    }
}

/// An operation of a stage's code that the library's own code answers.
pub struct Asking<T> {
    operation: Operation,
    asked: PhantomData<fn() -> T>,
}

opaque_debug!(<T> Asking<T>);

impl<T: Recorded> Asking<T> {
    /// The operation of a site.
    pub fn new(cx: &Cx, site: &'static Site, kind: Kind) -> Self {
        Self {
            operation: Operation::new(cx, site, Op::Asked(kind)),
            asked: PhantomData,
        }
    }

    /// The place of whoever is to answer it, once it was begun; nothing when it has an answer, recorded or kept, that only has to come.
    pub fn below(&self) -> Option<Ground> {
        let ticket = self.operation.ticket()?;
        let cx = &self.operation.cx;
        let scope = cx.run().replay().scope_below(ticket)?;
        Some(Ground::within(cx, scope))
    }

    /// It cannot go on, and its run with it.
    pub fn park(&self, park: Park) {
        self.operation.cx.run().park(park);
    }

    /// Its answer, once there is one; `ask` is called when there is to be one.
    pub fn poll(
        &mut self,
        task: &mut Context<'_>,
        ask: impl FnOnce(Claimed<T>),
    ) -> Poll<Result<T, Failure>> {
        let run = Arc::clone(self.operation.cx.run());
        if let Poll::Ready(outcome) = self.operation.poll(task) {
            let payload = match outcome.into_result() {
                Ok(payload) => payload,
                Err(failure) => return Poll::Ready(Err(failure)),
            };
            return match run.decode(&payload) {
                Ok(value) => Poll::Ready(Ok(value)),
                Err(error) => {
                    run.park_at_decode::<T>(&self.operation.location(), &error);
                    Poll::Pending
                }
            };
        }
        if let Some(ticket) = self.operation.ticket() {
            let claim = run.replay().poll_claim(ticket, task.waker());
            if let Poll::Ready(claim) = claim {
                ask(Claimed {
                    claim,
                    location: self.operation.location(),
                    run,
                    asked: PhantomData,
                });
            }
        }
        Poll::Pending
    }
}

/// The right to answer an operation of a stage's code.
pub struct Claimed<T> {
    claim: Claim,
    location: Location,
    run: Arc<Run>,
    asked: PhantomData<fn(T)>,
}

opaque_debug!(<T> Claimed<T>);

impl<T: Recorded> Claimed<T> {
    /// Answers it; or says why there is no answer. An answer that does not survive the codec is none.
    pub fn answer(self, answer: Result<&T, (FailureKind, String)>) {
        let encoded = answer.and_then(|value| {
            let encoded = codec::encode(value).map_err(BoxError::from);
            let sealed = encoded.and_then(|encoded| self.run.seal(encoded.json));
            sealed.map_err(|error| (FailureKind::Encode, error.to_string()))
        });
        let outcome =
            encoded.map_err(|(kind, text)| Failure::new(kind, self.location.clone(), text));
        self.run.replay().answer(self.claim, outcome);
    }
}

/// The desk of a run that nobody drives.
struct NoDesk;

impl Desk for NoDesk {
    fn left(&self, _: super::Left) -> bool {
        false
    }
}

/// The undoing of a run's ledger, newest entry first. The run does not rest meanwhile.
#[derive(Debug)]
pub struct Unmaking {
    run: Arc<Run>,
    _up: Up,
}

impl Unmaking {
    /// Waits until all that the run has said so far is durable: that it is undone, for one.
    pub async fn said(&self) {
        let said = self.run.replay().said();
        let run = &self.run;
        std::future::poll_fn(|task| run.replay().poll_noted(said, task.waker())).await;
    }

    /// The newest entry that is open.
    pub fn newest(&self) -> Option<LedgerEntry> {
        self.run.replay().ledger().newest().cloned()
    }

    /// The positions of the flows that an entry lies in, from the inside out.
    ///
    /// # Errors
    /// When one does not decode.
    pub fn positions<P: DeserializeOwned>(
        &self,
        entry: &LedgerEntry,
    ) -> Result<Vec<(Location, P)>, BoxError> {
        let mut around: Vec<_> = {
            let replay = self.run.replay();
            let all = replay.positions();
            let around = all.filter(|(base, _)| entry.location.is_under(base));
            around
                .map(|(base, payload)| (base.clone(), payload.clone()))
                .collect()
        };
        around.sort_by_key(|(base, _)| std::cmp::Reverse(base.as_bytes().len()));
        let around = around.into_iter();
        around
            .map(|(base, payload)| Ok((base, self.run.decode(&payload)?)))
            .collect()
    }

    /// What the step of an entry gave, as JSON; absent when it is unknown whether it did anything.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn output(&self, entry: &LedgerEntry) -> Result<Option<Bytes>, BoxError> {
        let output = entry.output.as_ref();
        let opened = output.map(|payload| codec::open(self.run.codec(), payload));
        opened.transpose()
    }

    /// Polls an undo as the engine's own: its code may ask for the step that is undone.
    pub async fn as_step(
        &self,
        entry: &LedgerEntry,
        mut undo: BoxFut<'static, Result<(), BoxError>>,
    ) -> Result<(), BoxError> {
        let seed = {
            let replay = self.run.replay();
            (replay.seed(), replay.generation())
        };
        let attempt = Attempt {
            number: entry.attempts + 1,
            last: None,
        };
        let (id, at) = (self.run.id().clone(), entry.location.clone());
        let origin = entry.origin.clone().unwrap_or_else(|| at.clone());
        let step = CurrentStep::derived(id, at, origin, attempt, None, seed);
        std::future::poll_fn(|task| {
            let _entered = step.enter();
            undo.as_mut().poll(task)
        })
        .await
    }

    /// Records what became of an attempt, or why there was none.
    pub async fn undone(
        &self,
        entry: &LedgerEntry,
        outcome: Result<(), BoxError>,
        skipped: Option<&str>,
    ) {
        let outcome = outcome.map_err(|error| {
            let kind = FailureKind::Exhausted;
            Failure::from_error(kind, entry.location.clone(), "", &*error)
        });
        let attempt = entry.attempts + u32::from(skipped.is_none());
        let skipped = skipped.map(str::to_owned);
        let run = &self.run;
        let noted = run
            .replay()
            .note_undone(entry.number, attempt, outcome, skipped);
        std::future::poll_fn(|task| run.replay().poll_noted(noted, task.waker())).await;
    }

    /// Waits before the next attempt.
    pub async fn pause(&self, tried: u32) {
        let wait = Backoff::DEFAULT.wait(tried, 0.0);
        self.run.host().sleep(wait).await;
    }
}

/// A visit goes on from earlier ones of its stage, of which `first` is the first.
///
/// # Errors
/// The store failed, and does not get better by trying again.
pub async fn keep(
    cx: Cx,
    base: Location,
    stage: String,
    first: u32,
    number: u32,
) -> Result<(), BoxError> {
    let history = history(cx.run()).await?;
    let visits: Vec<_> = (first..number)
        .map(|number| visit_location(&base, &stage, number))
        .collect();
    let kept = Kept::of(&history, &visits);
    let first = visit_location(&base, &stage, first);
    cx.run().replay().keep(cx.scope(), first, kept);
    Ok(())
}

/// A scope in a visit for code that is tried beside its body. What succeeded when it was tried before is kept, if it `keeps`.
///
/// # Errors
/// The store failed, and does not get better by trying again.
pub async fn aside(cx: Cx, name: &'static str, keeps: bool) -> Result<Visiting, BoxError> {
    let history = history(cx.run()).await?;
    let mut replay = cx.run().replay();
    let at = replay.scope_location(cx.scope()).branch(name);
    let mut tried = Vec::new();
    while let Some(number) = u64::try_from(tried.len()).ok().map(|tried| tried + 1) {
        let before = at.iteration(number);
        if !history
            .iter()
            .any(|record| record.location.is_under(&before))
        {
            break;
        }
        tried.push(before);
    }
    let number = u32::try_from(tried.len())
        .unwrap_or(u32::MAX)
        .saturating_add(1);
    let scope = replay.aside(cx.scope(), name, number);
    if let Some(first) = tried.first().cloned().filter(|_| keeps) {
        replay.keep(scope, first, Kept::of(&history, &tried));
    }
    drop(replay);
    Ok(Visiting(cx.at(scope)))
}

/// What the run has recorded, once all that it has said so far is durable.
async fn history(run: &Arc<Run>) -> Result<Vec<Record>, BoxError> {
    let _up = Up::stay(run);
    let said = run.replay().said();
    std::future::poll_fn(|task| run.replay().poll_noted(said, task.waker())).await;
    loop {
        match run.host().history().await {
            Ok(history) => return Ok(history),
            Err(error) if error.is_retryable() => run.host().sleep(PAUSE).await,
            Err(error) => return Err(error.into()),
        }
    }
}

/// After a failure of the store it is asked again then.
const PAUSE: Duration = Duration::from_millis(200);

/// The result of a guide, as it is recorded at its end.
///
/// # Errors
/// Why the run has to be parked: it does not survive the codec.
pub fn result<T: Recorded>(ground: &Ground, value: &T) -> Result<Payload, Park> {
    super::body::encode_result(ground.run(), value)
}

/// A position, as it is recorded.
///
/// # Errors
/// When it does not survive the codec, or is over the payload limit.
pub fn sealed<P: Recorded>(
    codec: &dyn Codec,
    limit: usize,
    position: &P,
) -> Result<Payload, BoxError> {
    super::run::seal(codec, limit, codec::encode(position)?.json)
}

/// The newest position of a history, as the codec has it.
///
/// # Errors
/// When it cannot be opened, or does not decode.
pub fn position_of<P: DeserializeOwned>(
    codec: &dyn Codec,
    history: &[Record],
) -> Result<Option<P>, BoxError> {
    let found = newest_positions(history).remove(&Location::root());
    let Some(payload) = found else {
        return Ok(None);
    };
    Ok(Some(serde_json::from_slice(&codec::open(codec, payload)?)?))
}

/// The newest positions of all flows of a history, by where they lie: the outer before what is in them. What does not decode is left
/// out.
pub fn positions_of<P: DeserializeOwned>(
    codec: &dyn Codec,
    history: &[Record],
) -> Vec<(Location, P)> {
    let positions = newest_positions(history).into_iter();
    let read = |payload| serde_json::from_slice(&codec::open(codec, payload).ok()?).ok();
    positions
        .filter_map(|(base, payload)| Some((base, read(payload)?)))
        .collect()
}

/// Begins the code of a fragment in this very scope.
pub fn begin<R>(fragment: Fragment<'_, R>, cx: Cx) -> BoxFut<'_, R> {
    (fragment.0)(cx)
}

/// Where the records of a visit lie.
pub fn visit_location(base: &Location, stage: &str, number: u32) -> Location {
    base.branch(stage).iteration(number.into())
}

/// What the desk of the run shares with its code, if it is the run of a guide.
pub fn shared(cx: &Cx) -> Option<Arc<dyn std::any::Any + Send + Sync>> {
    cx.run().host().desk(|| Arc::new(NoDesk)).shared()
}

/// A child run of code that is the library's own.
pub struct ChildOf<T> {
    operation: Operation,
    gives: PhantomData<fn() -> T>,
}

opaque_debug!(<T> ChildOf<T>);

impl<T: DeserializeOwned> ChildOf<T> {
    /// The child run of a site, named after its parent and its place.
    pub fn new(cx: &Cx, site: &'static Site, workflow: &'static str, input: Input) -> Self {
        let location = cx.location_of(site);
        let (_, generation) = cx.identity();
        let op = input.into_json().map_err(BoxError::from).and_then(|json| {
            Ok(Op::Child(ChildStart {
                id: RunId::child(cx.run().id(), &location, generation),
                workflow,
                input_hash: codec::canonical_hash(&json),
                input: cx.run().seal(json)?,
                location: location.clone(),
                detached: false,
                terms: Terms::default(),
            }))
        });
        let op = op.unwrap_or_else(|error| Op::Failed {
            kind: Kind::Child,
            failure: Failure::new(FailureKind::Encode, location, error.to_string()),
        });
        Self {
            operation: Operation::new(cx, site, op),
            gives: PhantomData,
        }
    }
}

impl<T: DeserializeOwned> Future for ChildOf<T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let run = Arc::clone(self.operation.cx.run());
        match ready!(self.operation.poll(task)).into_result() {
            Ok(payload) => match run.decode(&payload) {
                Ok(value) => Poll::Ready(Ok(value)),
                Err(error) => {
                    run.park_at_decode::<T>(&self.operation.location(), &error);
                    Poll::Pending
                }
            },
            Err(failure) => Poll::Ready(Err(codec::open_failure(run.codec(), failure))),
        }
    }
}
