//! Drives one run: polls its code, writes what the machine wants written, waits for what it waits for.
//!
//! One future per run in memory. It owns the code's future; the machine is shared with the code through
//! [`Run`]. Nobody but this file decides *when*; nobody but the machine decides *what*; nobody but the store decides
//! *whether it is safe*.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep};

use super::limits::{self, Written};
use super::live::{Command, Live};
use super::mail;
use super::{Inner, retry, telemetry};
use crate::context::{Body, Park, Run};
use crate::replay::{
    Finished, Ledger, Location, Message, ParkReason, Phase, Record, RunState, Timestamp,
};
use crate::store::{
    Append, Appended, BoxFuture, InboxChange, NewRun, Parked, RunPatch, StoreError,
};

/// How many rounds a run may go without giving its worker to others.
const ROUNDS: u32 = 256;

/// How a drive ended.
#[derive(Debug)]
pub(crate) enum Exit {
    /// The run's end is durable.
    Finished(Finished),
    /// The run left memory; it wakes then, or with the next drive.
    Suspended(Option<Timestamp>),
    /// The run cannot go on; that is durable.
    Parked(Parked),
    /// The code of a visit of a stage does not fit its records. The guide goes on without it.
    Strayed(Strayed),
    /// The run was cancelled, or belongs to another claim now: nothing of ours is written any more.
    Refused(Appended),
    /// The run's code is over, durably, and its effects are to be undone.
    Unwinding(Box<Ledger>, u64),
    /// The store keeps failing. Nothing that was acknowledged is lost; what is `unborn` was not acknowledged at all.
    Storage { error: StoreError, unborn: bool },
}

/// A visit that this code cannot go on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Strayed {
    pub(crate) visit: Location,
    pub(crate) report: String,
}

/// How the run comes to be driven.
#[derive(Debug)]
pub(crate) enum Begin {
    /// The store does not have it yet. With `announce`, its beginning is durable before its code is polled.
    New {
        create: Box<NewRun>,
        announce: bool,
        /// What is written beside it, because it has to be known after a crash that it was begun. It is announced.
        begins: Option<Written>,
        /// Given back when that beginning is durable, or the run waits for something else.
        door: OwnedSemaphorePermit,
    },
    /// It was loaded. `parked`: its row says so, and the first change of its state takes that back.
    Loaded { parked: bool },
}

/// One run being driven.
pub(crate) struct Driver {
    inner: Arc<Inner>,
    live: Arc<Live>,
    run: Arc<Run>,
    body: Option<Body>,
    create: Option<Box<NewRun>>,
    begins: Option<Written>,
    door: Option<OwnedSemaphorePermit>,
    announce: bool,
    writing: Option<Writing>,
    finished: Option<Finished>,
    parking: Option<Parked>,
    /// The inbox, being read.
    reading: Option<Reading>,
    timer: Option<(Timestamp, Pin<Box<Sleep>>)>,
    /// How long a run that waits for others stays in memory.
    lingering: Option<Pin<Box<Sleep>>>,
    eviction: Eviction,
    /// The run was cancelled and is to be undone, once no body runs any more.
    unwinding: bool,
    /// The run's row says that it is parked.
    was_parked: bool,
    span: tracing::Span,
}

/// A page of the inbox on its way.
enum Reading {
    Page(BoxFuture<'static, Result<Vec<Message>, StoreError>>),
    /// The store failed: it is asked again then.
    Pause(Pin<Box<Sleep>>),
}

/// Whether the run is to leave memory.
enum Eviction {
    None,
    /// Its bodies may end until then.
    Grace(Pin<Box<Sleep>>),
    /// Their time is up.
    Over,
}

/// A batch under way, and again if the store fails.
struct Writing {
    append: Append,
    attempt: u32,
    since: Instant,
    state: WritingState,
}

impl Writing {
    fn is_failed(&self) -> bool {
        matches!(self.state, WritingState::Backoff(..))
    }

    /// How the drive ends when a batch that failed is not written again.
    fn given_up(self) -> Option<Exit> {
        let unborn = self.append.create.is_some();
        match self.state {
            WritingState::Backoff(_, error) => Some(Exit::Storage { error, unborn }),
            WritingState::Appending(_) => None,
        }
    }
}

enum WritingState {
    Appending(BoxFuture<'static, Result<Appended, StoreError>>),
    Backoff(Pin<Box<Sleep>>, StoreError),
}

impl Driver {
    /// A driver of `body` over `run`.
    pub(crate) fn new(
        inner: Arc<Inner>,
        live: Arc<Live>,
        run: Arc<Run>,
        body: Body,
        begin: Begin,
    ) -> Self {
        let span = tracing::info_span!(telemetry::RUN, run = %live.id, workflow = live.workflow);
        let (create, begins, announce, door, was_parked) = match begin {
            Begin::New {
                create,
                announce,
                begins,
                door,
            } => (Some(create), begins, announce, Some(door), false),
            Begin::Loaded { parked } => (None, None, false, None, parked),
        };
        Self {
            inner,
            live,
            run,
            body: Some(body),
            create,
            begins,
            door,
            announce,
            writing: None,
            finished: None,
            parking: None,
            reading: None,
            timer: None,
            lingering: None,
            eviction: Eviction::None,
            unwinding: false,
            was_parked,
            span,
        }
    }

    /// Drives the run until it ends, leaves memory, or cannot go on.
    pub(crate) async fn drive(&mut self) -> Exit {
        if self.announce
            && let Some(exit) = poll_fn(|cx| self.poll_writing(cx)).await
        {
            return exit;
        }
        self.live.wakes.wake_code();
        poll_fn(|cx| self.poll(cx)).await
    }

    /// Reads the inbox when the machine wants it; true when it was given something.
    fn poll_inbox(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(after) = self.run.replay().wants_inbox() else {
            self.reading = None;
            return false;
        };
        loop {
            match &mut self.reading {
                None => {
                    let (store, run) = (Arc::clone(&self.inner.store), self.live.run);
                    let page = async move { store.inbox(run, after, mail::PAGE).await };
                    self.reading = Some(Reading::Page(Box::pin(page)));
                }
                Some(Reading::Pause(pause)) => {
                    if pause.as_mut().poll(cx).is_pending() {
                        return false;
                    }
                    self.reading = None;
                }
                Some(Reading::Page(page)) => match page.as_mut().poll(cx) {
                    Poll::Pending => return false,
                    Poll::Ready(Ok(messages)) => {
                        self.reading = None;
                        let more = messages.len() == mail::PAGE;
                        let incoming = mail::incoming(messages);
                        self.run.replay().handle_inbox(incoming, more);
                        return true;
                    }
                    Poll::Ready(Err(error)) => {
                        tracing::warn!(run = %self.live.id, %error, "the inbox could not be read; it is read again");
                        let pause = tokio::time::sleep(retry::INBOX_PAUSE);
                        self.reading = Some(Reading::Pause(Box::pin(pause)));
                    }
                },
            }
        }
    }

    /// Writes what is queued now, and nothing else.
    fn poll_writing(&mut self, cx: &mut Context<'_>) -> Poll<Option<Exit>> {
        self.close_batch();
        match self.poll_append(cx) {
            Poll::Ready(exit) => Poll::Ready(exit),
            Poll::Pending if self.writing.is_none() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Exit> {
        self.live.wakes.begin(cx.waker());
        for _ in 0..ROUNDS {
            if self.live.wakes.take_outside()
                && let Some(exit) = self.obey()
            {
                return Poll::Ready(exit);
            }
            if self.live.wakes.take_news() {
                self.run.replay().handle_news();
                // What is being read may be from before.
                self.reading = None;
            }
            if self.live.wakes.take_code() && self.poll_code() {
                continue;
            }
            if let Some(strayed) = self.strayed() {
                self.drop_body();
                return Poll::Ready(Exit::Strayed(strayed));
            }
            if let Some(parked) = self.cannot_go_on() {
                self.park(parked);
            }
            if self.parking.is_none() {
                let mut replay = self.run.replay();
                if replay.poll_handout() || replay.handle_quiet() {
                    // The gate may have opened without waking anything; then the next round finds nothing woken.
                    continue;
                }
            }
            if self.parking.is_none() && self.cannot_go_on().is_some() {
                continue;
            }
            if self.unwinding && self.parking.is_none() && self.run.replay().alive() == 0 {
                self.unwinding = false;
                self.drop_body();
                self.run.replay().unwind();
            }
            if self.parking.is_none() && self.poll_inbox(cx) {
                continue;
            }
            self.close_batch();
            match self.poll_append(cx) {
                Poll::Ready(Some(exit)) => return Poll::Ready(exit),
                Poll::Ready(None) => continue,
                Poll::Pending => {}
            }
            if self.writing.is_none() && self.parking.is_none() {
                match self.rest() {
                    Rest::Exit(exit) => return Poll::Ready(exit),
                    Rest::Again => continue,
                    Rest::Wait => {}
                }
            }
            if self.poll_timers(cx) || !self.live.wakes.end() {
                continue;
            }
            return Poll::Pending;
        }
        self.live.wakes.end();
        // Others want this worker too.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Polls the code once; false when there is none any more.
    fn poll_code(&mut self) -> bool {
        let Some(body) = &mut self.body else {
            return false;
        };
        let waker = Waker::from(Arc::clone(&self.live.wakes));
        let quiet = self.run.replay().phase() == Phase::Replaying;
        let span = if quiet {
            tracing::Span::none()
        } else {
            self.span.clone()
        };
        let polled = span.in_scope(|| {
            catch_unwind(AssertUnwindSafe(|| {
                Pin::new(&mut *body).poll(&mut Context::from_waker(&waker))
            }))
        });
        match polled {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(Ok(finished))) => {
                self.drop_body();
                if self.run.replay().finish(finished.clone()) {
                    self.finished = Some(finished);
                }
            }
            Ok(Poll::Ready(Err(Park { reason, detail, .. }))) => {
                self.drop_body();
                self.park(self.parked(reason, detail));
            }
            Err(panic) => {
                self.drop_body();
                let detail = format!(
                    "the workflow's own code panicked: {}",
                    panic_message(&*panic)
                );
                self.park(self.parked(ParkReason::Panicked, detail));
            }
        }
        true
    }

    /// Drops the code. What it holds may be anything, and may panic when it is dropped.
    fn drop_body(&mut self) {
        if let Some(body) = self.body.take()
            && catch_unwind(AssertUnwindSafe(|| drop(body))).is_err()
        {
            tracing::warn!(run = %self.live.id, "the workflow's own code panicked while it was dropped");
        }
    }

    /// The visit that the code cannot go on with, once nothing is being written.
    fn strayed(&self) -> Option<Strayed> {
        if self.parking.is_some() || self.writing.is_some() {
            return None;
        }
        let replay = self.run.replay();
        let visit = replay.diverged_visit()?.clone();
        let report = replay.divergence()?.to_string();
        Some(Strayed { visit, report })
    }

    /// Why the run has to be parked, if it has to.
    fn cannot_go_on(&self) -> Option<Parked> {
        if self.parking.is_some() {
            return None;
        }
        let replay = self.run.replay();
        if self.writing.is_some() && replay.diverged_visit().is_some() {
            // Looked at again when that has landed.
            return None;
        }
        replay
            .divergence()
            .map(|divergence| self.parked(ParkReason::Diverged, divergence.to_string()))
    }

    fn parked(&self, reason: ParkReason, detail: String) -> Parked {
        Parked {
            reason,
            by: self.inner.code,
            detail,
        }
    }

    /// Drops the code and asks for the run to be parked. What was queued and not written dies with it.
    fn park(&mut self, parked: Parked) {
        self.drop_body();
        self.parking = Some(parked);
    }

    // ===== writing =====

    fn close_batch(&mut self) {
        if self.writing.is_some() {
            return;
        }
        let now = self.inner.clock.now();
        let mut replay = self.run.replay();
        if self.parking.is_some() {
            // What bodies have done stays done, also when the code around them cannot go on.
            replay.handle_flush();
        }
        let batch = replay.poll_append(now);
        drop(replay);
        let append = if let Some(batch) = batch {
            let parked = (self.was_parked && batch.state.is_some()).then_some(None);
            self.was_parked &= parked.is_none();
            let mut patch = RunPatch {
                state: batch.state,
                parked,
                wake_at: batch.wake_at,
                waits: batch.waits,
                progress: batch.progress,
                unclean: batch.recovers.then_some(0),
                released: batch.releases,
                at: now,
                code: batch.code,
                ..RunPatch::default()
            };
            let sent = batch.sent.into_iter();
            let posts = sent.map(|sent| self.inner.post(&self.live, sent));
            let begins = self.begins.take().map(limits::values);
            if begins.is_some() {
                patch.state = Some(RunState::Running);
            }
            Append {
                run: self.live.run,
                epoch: self.inner.identity.boot,
                number: self.live.number(),
                expected_seq: batch.expected_seq,
                create: self.create.take().map(|create| *create),
                records: batch.records,
                deletes: batch.deletes,
                patch,
                inbox: InboxChange {
                    returns: batch.returns,
                    takes: batch.takes,
                    dead: batch.dead,
                    seen: batch.seen,
                },
                posts: posts.chain(begins.into_iter().flatten()).collect(),
            }
        } else if let Some(parked) = self.parking.clone() {
            self.parking_append(parked, now)
        } else {
            return;
        };
        self.write(append);
    }

    fn parking_append(&mut self, parked: Parked, now: Timestamp) -> Append {
        let patch = RunPatch {
            state: Some(RunState::Parked),
            parked: Some(Some(parked)),
            wake_at: Some(None),
            waits: Some(None),
            at: now,
            code: self.inner.code,
            ..RunPatch::default()
        };
        let expected_seq = self.run.replay().last_seq();
        Append {
            run: self.live.run,
            epoch: self.inner.identity.boot,
            number: self.live.number(),
            expected_seq,
            create: None,
            records: Vec::new(),
            deletes: Vec::new(),
            patch,
            inbox: InboxChange::default(),
            posts: Vec::new(),
        }
    }

    fn write(&mut self, append: Append) {
        let state = WritingState::Appending(self.appending(append.clone()));
        self.writing = Some(Writing {
            append,
            attempt: 0,
            since: Instant::now(),
            state,
        });
    }

    fn appending(&self, append: Append) -> BoxFuture<'static, Result<Appended, StoreError>> {
        let store = Arc::clone(&self.inner.store);
        Box::pin(async move { store.append(append).await })
    }

    /// Goes on with the batch under way. Ready(None) when it landed.
    fn poll_append(&mut self, cx: &mut Context<'_>) -> Poll<Option<Exit>> {
        // A shutdown does not wait for a store that fails for longer than for a body.
        let no_more = matches!(self.eviction, Eviction::Over) && self.inner.is_closing();
        loop {
            if no_more && let Some(failed) = self.writing.take_if(|writing| writing.is_failed()) {
                return Poll::Ready(failed.given_up());
            }
            let Some(writing) = &mut self.writing else {
                return Poll::Pending;
            };
            let answer = match &mut writing.state {
                WritingState::Backoff(sleep, _) => {
                    std::task::ready!(sleep.as_mut().poll(cx));
                    let again = writing.append.clone();
                    let state = WritingState::Appending(self.appending(again));
                    if let Some(writing) = &mut self.writing {
                        writing.state = state;
                    }
                    continue;
                }
                WritingState::Appending(appending) => {
                    std::task::ready!(appending.as_mut().poll(cx))
                }
            };
            return match answer {
                Ok(Appended::Applied | Appended::AlreadyApplied) => Poll::Ready(self.landed()),
                Ok(refused) => Poll::Ready(Some(Exit::Refused(refused))),
                Err(error) if error.is_retryable() && writing.attempt < retry::STORAGE_ATTEMPTS => {
                    writing.attempt += 1;
                    let wait = retry::storage(writing.attempt);
                    tracing::warn!(run = %self.live.id, %error, ?wait, "the store failed; the batch is kept and written again");
                    telemetry::store_failed();
                    self.inner.tell_desk_of(self.live.run, &error);
                    writing.state =
                        WritingState::Backoff(Box::pin(tokio::time::sleep(wait)), error);
                    continue;
                }
                Err(error) => {
                    let unborn = writing.append.create.is_some();
                    Poll::Ready(Some(Exit::Storage { error, unborn }))
                }
            };
        }
    }

    /// The batch is durable.
    fn landed(&mut self) -> Option<Exit> {
        let Writing {
            append,
            attempt,
            since,
            ..
        } = self.writing.take()?;
        telemetry::appended(append.records.len(), since.elapsed());
        if attempt > 0 {
            self.inner.tell_desk_written(self.live.run);
        }
        // One that is about to leave has said its last with this.
        self.lingering.take_if(|lingering| !lingering.is_elapsed());
        self.door = None;
        if let Some(parked) = append.patch.parked.flatten() {
            return Some(Exit::Parked(parked));
        }
        let (done, unwinding) = {
            let mut replay = self.run.replay();
            replay.handle_appended();
            let done = replay.phase() == Phase::Done;
            let ledger = replay.ledger();
            let unwinding = (done && ledger.unwinds().is_some())
                .then(|| (Box::new(ledger.clone()), replay.last_seq()));
            (done, unwinding)
        };
        self.tell(&append.records);
        self.inner.posted(self.live.run, &append.posts);
        if let Some((ledger, last_seq)) = unwinding {
            if let Some(board) = self.inner.boards.find(self.live.run) {
                board.roll_back();
            }
            return Some(Exit::Unwinding(ledger, last_seq));
        }
        if done {
            self.finished.take().map(Exit::Finished)
        } else {
            None
        }
    }

    fn tell(&mut self, records: &[Record]) {
        self.live.set_durable();
        if let Some(board) = self.inner.boards.find(self.live.run) {
            board.tell_durable();
            if board.is_watched() {
                board.publish(records);
            }
        }
        self.live.report(&self.inner, records);
        self.inner.grew(&self.live, records.len());
    }

    // ===== resting =====

    /// Nothing is to be polled, handed out or written now.
    fn rest(&mut self) -> Rest {
        self.door = None;
        let mut replay = self.run.replay();
        if !self.draining()
            && replay
                .next_deadline()
                .is_some_and(|at| at <= self.inner.clock.now())
        {
            // It does not rest: the timers say so next. Its row is not to say anything else meanwhile.
            return Rest::Wait;
        }
        let patient = replay.rests_patiently();
        if patient {
            let (wake_at, waits) = (replay.next_deadline(), replay.waits_for_others());
            drop(replay);
            if !self.leaves(wake_at, waits) {
                return Rest::Wait;
            }
            replay = self.run.replay();
        }
        if let Some(suspend) = replay.poll_suspend() {
            let waits = replay.waits_for_others();
            drop(replay);
            return if self.leaves(suspend.wake_at, waits) {
                Rest::Exit(Exit::Suspended(suspend.wake_at))
            } else {
                Rest::Wait
            };
        }
        if !patient {
            self.lingering = None;
        }
        if replay.phase() == Phase::Live
            && replay.pending() == 0
            && self.finished.is_none()
            && !self.draining()
        {
            drop(replay);
            let Park { reason, detail, .. } = not_durable();
            self.park(self.parked(reason, detail));
            return Rest::Again;
        }
        // Suspending may have asked for another batch.
        if replay.wants_append() {
            Rest::Again
        } else {
            Rest::Wait
        }
    }

    /// Whether a run that only waits leaves memory now. One that waits for others stays a while: an answer often comes soon.
    fn leaves(&mut self, wake_at: Option<Timestamp>, waits_for_others: bool) -> bool {
        if self.draining() || self.inner.is_crowded() {
            return true;
        }
        if self
            .inner
            .limits
            .is_wanted(self.live.workflow, self.live.run)
        {
            return true;
        }
        if !waits_for_others {
            return self.inner.leaves_memory(wake_at);
        }
        let linger = self.inner.linger;
        let lingering = self
            .lingering
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(linger)));
        lingering.is_elapsed()
    }

    /// Polls the timers; true when one of them fired.
    fn poll_timers(&mut self, cx: &mut Context<'_>) -> bool {
        if let Eviction::Grace(grace) = &mut self.eviction
            && grace.as_mut().poll(cx).is_ready()
        {
            self.eviction = Eviction::Over;
            // What has not ended is dropped, and begins again with the next drive.
            self.drop_body();
            self.run.replay().handle_dropped();
            return true;
        }
        if let Some(lingering) = &mut self.lingering
            && !lingering.is_elapsed()
            && lingering.as_mut().poll(cx).is_ready()
        {
            return true;
        }
        let Some(deadline) = self.run.replay().next_deadline() else {
            self.timer = None;
            return false;
        };
        if self.draining() || self.parking.is_some() {
            return false;
        }
        loop {
            let now = self.inner.clock.now();
            if deadline <= now {
                self.timer = None;
                self.run.replay().handle_due(now);
                telemetry::fired(deadline, now);
                // What is being read may be from before, and a receive looks once more after its deadline.
                self.reading = None;
                return true;
            }
            if self.timer.as_ref().is_none_or(|(at, _)| *at != deadline) {
                // In pieces, so that a clock that was set forward is noticed.
                let wait = deadline.since(now).min(self.inner.longest_wait());
                self.timer = Some((
                    deadline,
                    Box::pin(tokio::time::sleep_until(Instant::now() + wait)),
                ));
            }
            let Some((_, sleep)) = &mut self.timer else {
                return false;
            };
            if sleep.as_mut().poll(cx).is_pending() {
                return false;
            }
            self.timer = None;
        }
    }

    // ===== told from outside =====

    /// Whether the run begins nothing any more, because it is to leave memory.
    fn draining(&self) -> bool {
        !matches!(self.eviction, Eviction::None)
    }

    fn obey(&mut self) -> Option<Exit> {
        match self.live.command()? {
            Command::Cancelled => {
                self.drop_body();
                Some(Exit::Refused(Appended::Final))
            }
            Command::CancelAndUndo { by } => {
                self.run.replay().handle_drain();
                if !self.draining() {
                    self.eviction = Eviction::Grace(Box::pin(tokio::time::sleep_until(by)));
                }
                self.unwinding = true;
                None
            }
            Command::Evict { by } => {
                self.run.replay().handle_drain();
                self.eviction = Eviction::Grace(Box::pin(tokio::time::sleep_until(by)));
                // A run that has not passed the gate has nothing to save, and is due when its row says.
                let replay = self.run.replay();
                let replaying = replay.phase() == Phase::Replaying
                    && self.parking.is_none()
                    && self.writing.is_none();
                replaying.then(|| Exit::Suspended(replay.recorded_wake()))
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.drop_body();
    }
}

/// The run has to be parked: nothing that is recorded can wake it.
pub(super) fn not_durable() -> Park {
    let detail = "the workflow awaits something that is not durable: nothing that is recorded can wake it. \
                  Make it a step: mark the function `#[step]`, or put `#[step]` on the statement";
    Park {
        reason: ParkReason::NotDurable,
        detail: detail.to_owned(),
        location: None,
    }
}

enum Rest {
    Exit(Exit),
    Again,
    Wait,
}

pub(super) fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    if let Some(message) = panic.downcast_ref::<&str>() {
        message
    } else if let Some(message) = panic.downcast_ref::<String>() {
        message
    } else {
        "(no message)"
    }
}
