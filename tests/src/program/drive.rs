//! One drive of a run: the documented loop over the real machine and store, cut anywhere.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use workflow::MemoryStore;
use workflow::context::Run;
use workflow::replay::{
    Batch, Body, Finished, Message, Phase, Record, Replay, RunKey, RunState, Timestamp,
};
use workflow::store::{
    Append, Appended, BoxFuture, InboxChange, NewRun, Post, RunPatch, RunRow, Store, StoreError,
};

use super::code::{CODE, Flag, begun, code, new_run};
use super::post;
use super::random::Random;
use super::walk::Interpreter;
use super::world::{Law, World};

/// When a drive is cut off.
#[derive(Debug, Clone)]
pub enum Cut {
    /// Never.
    Never,
    /// At the so-manieth instant, from 0.
    At(u64),
    /// At each instant, so many times in a thousand; and so many times in a thousand the run is drained instead.
    Often(u64, u64),
}

/// How a drive ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The process was killed.
    Crashed,
    /// The run left memory until then.
    Suspended(Option<Timestamp>),
    /// The code does not fit the history.
    Diverged(String),
    /// The run's end is durable.
    Done(String),
}

/// A run in memory.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each says something of its own"
)]
pub struct Drive<'d> {
    world: &'d Arc<World>,
    store: &'d MemoryStore,
    random: &'d mut Random,
    key: RunKey,
    run: Arc<Run>,
    body: Option<workflow::__private::Body>,
    flag: Arc<Flag>,
    create: Option<NewRun>,
    number: u64,
    writing: Option<(Append, bool)>,
    answer: Option<String>,
    draining: bool,
    /// Something came into the inbox, and the run has not heard of it.
    news: bool,
    /// A page of the inbox on its way, and whether there is more.
    reading: Option<(Vec<Message>, bool)>,
    /// Messages were given back: the store may have the run look again, though it has looked.
    returned: bool,
    /// Whether messages come while it is driven.
    pub outside: bool,
    cut: Cut,
    /// How many instants there were at which it could have been cut.
    pub instants: u64,
}

impl std::fmt::Debug for Drive<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drive")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// So many messages are read at once.
const PAGE: usize = 3;

/// What may come from outside.
#[derive(Clone, Copy)]
enum Act {
    Send,
    Hear,
    Read,
    EndChild,
}

/// A drive that is over before its time.
struct Over(End);

impl<'d> Drive<'d> {
    /// A drive of the run `key` by this program, from what the store has of it.
    ///
    /// # Panics
    /// When no run could have written what the store has.
    pub fn new(
        interpreter: &'d Interpreter,
        store: &'d MemoryStore,
        key: RunKey,
        random: &'d mut Random,
        cut: Cut,
    ) -> Self {
        let world = &interpreter.world;
        let loaded = read(store.load(key));
        let mut number = 0;
        let (replay, create) = if let Some(loaded) = loaded {
            // A claim lasts as long as the store is open.
            if loaded.row.last_append.0 == store.identity().boot {
                number = loaded.row.last_append.1;
            }
            world.begin_drive(&loaded.history);
            world.arrived(loaded.row.inbox_seq);
            let row = loaded.row.standing();
            let replay = Replay::load(loaded.history, CODE, row).expect("our own history");
            (replay, None)
        } else {
            world.begin_drive(&[]);
            (Replay::begin(begun(), CODE), Some(new_run()))
        };
        let (run, body) = code(interpreter, replay);
        Self {
            world,
            store,
            random,
            key,
            run,
            body: Some(body),
            flag: Arc::new(Flag(AtomicBool::new(true))),
            create,
            number,
            writing: None,
            answer: None,
            draining: false,
            news: false,
            reading: None,
            returned: false,
            outside: true,
            cut,
            instants: 0,
        }
    }

    /// Drives until the run ends, leaves memory, or is cut off.
    pub fn drive(&mut self) -> End {
        let end = loop {
            if let Err(Over(end)) = self.round() {
                break end;
            }
            if self.world.verdict().is_err() {
                break End::Crashed;
            }
            if self.instants > 50_000 {
                self.world.broke(Law::Stuck, "50,000 instants, and no end");
                break End::Crashed;
            }
        };
        self.body = None;
        self.world.end_drive();
        end
    }

    fn round(&mut self) -> Result<(), Over> {
        if self.flag.0.swap(false, Ordering::AcqRel) && self.body.is_some() {
            self.instant()?;
            self.poll_code();
            return Ok(());
        }
        let mut replay = self.run.replay();
        if replay.poll_handout() {
            drop(replay);
            self.world.pass();
            if !self.flag.0.load(Ordering::Acquire) {
                self.world.broke(Law::Stuck, "a hand-out wakes nobody");
            }
            return Ok(());
        }
        if replay.handle_quiet() {
            drop(replay);
            self.world.pass();
            self.world.went_live();
            return Ok(());
        }
        if let Some(divergence) = replay.divergence() {
            return Err(Over(End::Diverged(divergence.to_string())));
        }
        drop(replay);
        self.close_batch();
        if self.writing.is_none() {
            self.rest()?;
        }
        self.instant()?;
        self.act()
    }

    /// An instant at which the process may be killed.
    fn instant(&mut self) -> Result<(), Over> {
        let instant = self.instants;
        self.instants += 1;
        let killed = match self.cut {
            Cut::Never => false,
            Cut::At(at) => at == instant,
            Cut::Often(kills, drains) => {
                let live = self.run.replay().phase() == Phase::Live;
                if live && !self.draining && self.random.below(1_000) < drains {
                    self.world.trace(|| "drain".into());
                    self.draining = true;
                    self.run.replay().handle_drain();
                }
                self.random.below(1_000) < kills
            }
        };
        if killed {
            self.world.violence("killed");
            return Err(Over(End::Crashed));
        }
        Ok(())
    }

    fn poll_code(&mut self) {
        let Some(body) = &mut self.body else { return };
        let waker = Waker::from(Arc::clone(&self.flag));
        let Poll::Ready(ended) = Pin::new(body).poll(&mut Context::from_waker(&waker)) else {
            return;
        };
        self.body = None;
        match ended {
            Ok(finished) => {
                self.answer = Some(shown(&finished));
                let was_live = self.run.replay().phase() == Phase::Live;
                let fits = self.run.replay().finish(finished);
                if fits && !was_live {
                    self.world.went_live();
                }
            }
            Err(park) => self
                .world
                .broke(Law::Stuck, format!("parked: {}", park.detail)),
        }
    }

    fn close_batch(&mut self) {
        if self.writing.is_some() {
            return;
        }
        let now = self.world.now();
        let Some(batch) = self.run.replay().poll_append(now) else {
            return;
        };
        let row_changes = batch.state.is_some()
            || batch.wake_at.is_some()
            || batch.waits.is_some()
            || batch.releases;
        let inbox_changes = !(batch.returns.is_empty()
            && batch.takes.is_empty()
            && batch.dead.is_empty()
            && batch.sent.is_empty());
        if !inbox_changes && batch.records.is_empty() && !row_changes {
            self.world.broke(Law::Idle, "a batch holds nothing");
        }
        self.world.closed(&batch.records);
        self.writing = Some((self.append(batch, now), false));
    }

    fn append(&mut self, batch: Batch, at: Timestamp) -> Append {
        self.number += 1;
        Append {
            run: self.key,
            epoch: self.store.identity().boot,
            number: self.number,
            expected_seq: batch.expected_seq,
            create: self.create.take(),
            records: batch.records,
            deletes: batch.deletes,
            patch: RunPatch {
                state: batch.state,
                wake_at: batch.wake_at,
                waits: batch.waits,
                at,
                code: batch.code,
                ..RunPatch::default()
            },
            inbox: InboxChange {
                returns: batch.returns,
                takes: batch.takes,
                dead: batch.dead,
                seen: batch.seen,
            },
            posts: batch
                .sent
                .into_iter()
                .map(|sent| post::posted(self.store, sent, at))
                .collect(),
        }
    }

    /// Nothing is being written: may the run leave memory?
    fn rest(&mut self) -> Result<(), Over> {
        let suspend = self.run.replay().poll_suspend();
        if let Some(suspend) = suspend {
            if !self.draining {
                self.judge_row(suspend.wake_at);
            }
            if self.draining || self.random.percent(30) {
                self.world.trace(|| "leaves memory".into());
                return Err(Over(End::Suspended(suspend.wake_at)));
            }
        }
        self.close_batch();
        Ok(())
    }

    /// The row's wake time and channels are those of the waits which the history holds.
    fn judge_row(&self, wake_at: Option<Timestamp>) {
        if self.news || self.returned {
            // It may be due because of that.
            return;
        }
        let loaded = read(self.store.load(self.key));
        let loaded = loaded.expect("a run that rests is stored");
        let pending = super::life::next_wake(&loaded.history);
        let RunRow {
            state,
            wake_at: row,
            waits,
            ..
        } = loaded.row;
        let expected = self.world.awaited();
        let found: BTreeSet<_> = waits.into_iter().flatten().collect();
        if found != expected {
            let what = format!("its row waits for {found:?}, its code for {expected:?}");
            self.world.broke(Law::Wake, what);
        }
        if row != wake_at || pending != wake_at || state != RunState::Waiting {
            let what = format!(
                "rests until {wake_at:?}, its row says {state} until {row:?}, its history {pending:?}"
            );
            self.world.broke(Law::Wake, what);
        }
    }

    /// Something happens outside.
    fn act(&mut self) -> Result<(), Over> {
        let working = self.world.working();
        let deadline = if self.draining {
            None
        } else {
            self.run.replay().next_deadline()
        };
        let timer = self.world.next_timer();
        let due = [deadline, timer].into_iter().flatten().min();
        let writes = u64::from(self.writing.is_some()) * self.random.times(2);
        let grace = u64::from(self.draining && self.writing.is_none());
        // A clock that is slow lets bodies end first.
        let ticks = u64::from(due.is_some());
        let choices = working as u64 + writes + ticks + grace;
        if self.outside(choices == 0) {
            return Ok(());
        }
        if choices == 0 {
            if self.feed() {
                return Ok(());
            }
            if !self.flag.0.load(Ordering::Acquire) && !self.run.replay().wants_append() {
                self.world.broke(Law::Stuck, "nothing can happen any more");
            }
            return Ok(());
        }
        let choice = self.random.below(choices);
        if choice < working as u64 {
            self.world
                .complete(usize::try_from(choice).unwrap_or_default());
        } else if choice < working as u64 + writes {
            self.write()?;
        } else if choice < working as u64 + writes + ticks {
            let late = if self.random.explores() {
                0
            } else {
                *self.random.pick(&[0, 0, 0, 1, 7])
            };
            let due = due.unwrap_or_default().after(Duration::from_millis(late));
            self.world.set_now(due);
            self.world.trace(|| format!("it is {due}"));
            self.world.fire_timers();
            if deadline.is_some() {
                self.run.replay().handle_due(self.world.now());
                self.reading = None;
            }
        } else {
            self.world.violence("grace is over");
            self.body = None;
            self.run.replay().handle_dropped();
        }
        Ok(())
    }

    /// Perhaps something comes from others, or the run hears of it.
    fn outside(&mut self, alone: bool) -> bool {
        let wants = self.run.replay().wants_inbox();
        let children = post::children(self.store);
        let mut acts = Vec::new();
        if self.outside && self.world.post.may_send() {
            acts.push(Act::Send);
        }
        if self.news {
            acts.extend([Act::Hear, Act::Hear]);
        }
        if wants.is_some() {
            acts.extend([Act::Read, Act::Read]);
        }
        if self.outside && !children.is_empty() {
            acts.push(Act::EndChild);
        }
        let urgent = wants.is_some() || self.news;
        let percent = if urgent { 80 } else { 30 };
        if acts.is_empty() || !(alone || self.random.percent(percent)) {
            return false;
        }
        match *self.random.pick(&acts) {
            Act::Send => {
                let at = self.world.now();
                self.world.post.send(self.store, self.random, at);
                self.news = true;
            }
            Act::Hear => {
                self.world.trace(|| "hears of news".into());
                self.news = false;
                self.reading = None;
                self.run.replay().handle_news();
                if let Some(row) = read(self.store.row(self.key)) {
                    self.world.arrived(row.inbox_seq);
                }
            }
            Act::Read => match (self.reading.take(), wants) {
                (Some((messages, more)), _) => {
                    let arrivals: Vec<_> = messages.iter().map(|it| it.arrival).collect();
                    self.world
                        .trace(|| format!("reads {arrivals:?}, more: {more}"));
                    let incoming = messages.into_iter().map(post::incoming).collect();
                    self.run.replay().handle_inbox(incoming, more);
                }
                (None, Some(after)) => {
                    let messages = read(self.store.inbox(self.key, after, PAGE));
                    let more = messages.len() == PAGE;
                    self.reading = Some((messages, more));
                }
                (None, None) => {}
            },
            Act::EndChild => {
                let child = self.random.pick(&children).clone();
                self.world.trace(|| format!("child {} ends", child.id));
                post::end_child(self.store, &child, self.world.now());
                self.news = true;
            }
        }
        true
    }

    /// Nothing else can happen: what is waited for is sent.
    fn feed(&mut self) -> bool {
        let wanting = self.world.wanting(&post::inbox(self.store, self.key));
        if wanting.is_empty() || self.draining {
            return false;
        }
        let channel = *self.random.pick(&wanting);
        let at = self.world.now();
        self.world.post.feed(self.store, channel, at);
        self.news = true;
        true
    }

    /// The batch lands, or the store fails: before it is written, or after.
    fn write(&mut self) -> Result<(), Over> {
        let Some((append, landed)) = &mut self.writing else {
            return Ok(());
        };
        if self.random.percent(5) {
            self.world.trace(|| "the store fails before writing".into());
            return Ok(());
        }
        let before = read(self.store.load(self.key)).map(|loaded| loaded.history);
        let answer = now(self.store.append(append.clone()));
        let expected = if *landed {
            Appended::AlreadyApplied
        } else {
            Appended::Applied
        };
        if !matches!(&answer, Ok(answer) if *answer == expected) {
            self.world
                .broke(Law::Store, format!("{answer:?} to {append:?}"));
        }
        if !std::mem::replace(landed, true) {
            self.returned |= !append.inbox.returns.is_empty();
            self.world.landed(&append.records, &append.deletes);
            let before = before.unwrap_or_default();
            self.world.took(append, &post::inbox(self.store, self.key));
            let landed = self.world.post.landed(self.store, &before, append);
            if let Err(what) = landed {
                self.world.broke(Law::Message, what);
            }
            let itself = |post: &Post| matches!(post, Post::Message { .. } | Post::Cancel(_));
            if append.posts.iter().any(itself) {
                self.news = true;
            }
        }
        self.instant()?;
        if self.random.percent(5) {
            self.world.trace(|| "the store fails after writing".into());
            return Ok(());
        }
        self.writing = None;
        let mut replay = self.run.replay();
        replay.handle_appended();
        if replay.phase() == Phase::Done {
            let answer = self.answer.take().unwrap_or_default();
            return Err(Over(End::Done(answer)));
        }
        Ok(())
    }
}

pub(super) fn shown(finished: &Finished) -> String {
    match finished {
        Finished::Completed(payload) => String::from_utf8_lossy(&payload.bytes).into_owned(),
        Finished::Failed(failure) => failure.to_string(),
        Finished::Cancelled => "cancelled".into(),
    }
}

/// The answer in a record that ends a run.
pub(super) fn ending(record: &Record) -> String {
    match &record.body {
        Body::Finished(finished) => shown(finished),
        other => format!("{other:?}"),
    }
}

/// The answer of a future that never waits.
pub(super) fn now<T>(mut future: BoxFuture<'_, T>) -> T {
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(answer) => answer,
        Poll::Pending => unreachable!("a store in memory answers at the first poll"),
    }
}

/// What a store in memory holds.
pub(super) fn read<T>(asked: BoxFuture<'_, Result<T, StoreError>>) -> T {
    now(asked).expect("a store in memory that is open can be read")
}

/// True for a record that ends the run.
pub(super) fn is_end(record: &Record) -> bool {
    matches!(record.body, Body::Finished(_))
}
