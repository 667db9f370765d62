//! A program run by the real engine, over a store that is slow, fails, and dies.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use workflow::replay::{Message, NewMessage, RunId, RunKey};
use workflow::store::{Append, Appended, BoxFuture, Delivery, Loaded, RunRow, Store, StoreError};
use workflow::{Engine, MemoryStore, Record, Timestamp, TokioClock};

use super::ast::Program;
use super::ground::{Ground, OnDisk, Sudden};
use super::post;
use super::random::Random;
use super::walk::{Interpreted, Interpreter, Offspring};
use super::world::{Broken, Law, World};
use super::{drive, life};

/// How a process ends, if not by itself.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// The power fails at the so-manieth operation of the disk.
    Dark(u64),
    /// The store dies at the so-manieth append: before it is written, or after.
    Dies { append: u64, written: bool },
    /// The process is killed at an instant.
    Killed(Duration),
    /// The engine is shut down in good time.
    ShutDown(Duration),
    /// Nothing happens to it.
    Spared,
}

/// Runs a program in engines that die, each over what the one before had left. How many there were.
///
/// # Errors
/// The law that was broken first, and what happened.
///
/// # Panics
/// When no runtime can be made.
pub fn live_in_engine(program: &Program, seed: u64) -> Result<u32, (Broken, String)> {
    live::<MemoryStore>(program, seed, fate::<MemoryStore>)
}

/// The same over a redb store: processes are killed, and the power fails between any two operations of the disk and within them.
///
/// # Errors
/// The law that was broken first, and what happened.
///
/// # Panics
/// When no runtime can be made, or what was left cannot be opened.
pub fn live_on_disk(program: &Program, seed: u64) -> Result<u32, (Broken, String)> {
    live::<OnDisk>(program, seed, fate::<OnDisk>)
}

/// Runs a program in an engine that dies at each of its commits, before it and after it, and is killed at each millisecond; then
/// in one that is spared. How many engines there were.
///
/// # Errors
/// The law that was broken first, and what happened.
///
/// # Panics
/// When no runtime can be made.
pub fn live_cut_everywhere(program: &Program, seed: u64) -> Result<u32, (Broken, String)> {
    let commits =
        (1..=12).flat_map(|append| [false, true].map(|written| Fate::Dies { append, written }));
    let kills = (0..25).map(|millis| Fate::Killed(Duration::from_millis(millis)));
    let mut engines = 0;
    for first in commits.chain(kills) {
        engines += live::<MemoryStore>(program, seed, |_, engines| {
            if engines == 1 { first } else { Fate::Spared }
        })?;
    }
    Ok(engines)
}

fn live<G: Ground>(
    program: &Program,
    seed: u64,
    fate: impl Fn(&mut Random, u32) -> Fate,
) -> Result<u32, (Broken, String)> {
    let mut random = Random::new(seed ^ 0xc4a05);
    let world = Arc::new(World::new(program, seed, seed.is_multiple_of(2)));
    let interpreter = Interpreter {
        program: program.clone(),
        world: Arc::clone(&world),
    };
    let mut kept = G::fresh();
    let mut engines = 0;
    loop {
        engines += 1;
        let fate = fate(&mut random, engines);
        world.trace(|| format!("== engine {engines}: {fate:?}"));
        let store = Arc::new(Faulty::new(kept, &world, random.number(), fate));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let ended = runtime.block_on(incarnation(&interpreter, &store, fate));
        if !matches!(fate, Fate::ShutDown(_)) {
            world.violence("the process is gone");
        }
        drop(runtime);
        world.end_drive();
        let broken = |broken| (broken, world.told());
        world.verdict().map_err(broken)?;
        kept = store.left();
        judge_mail(&world, &kept);
        world.verdict().map_err(broken)?;
        if let Some(answer) = ended {
            judge_end(&interpreter, &kept, &answer);
            world.verdict().map_err(broken)?;
            return Ok(engines);
        }
        if engines > 100 {
            world.broke(Law::Stuck, "100 engines, and no end");
        }
    }
}

fn fate<G: Ground>(random: &mut Random, engines: u32) -> Fate {
    let millis = |random: &mut Random| {
        let longest = *random.pick(&[20, 200, 4_000]);
        Duration::from_millis(random.below(longest))
    };
    match random.below(10) {
        _ if engines > 8 => Fate::Spared,
        0..4 if G::HAS_POWER => {
            let most = *random.pick(&[4, 20, 100]);
            Fate::Dark(random.below(most))
        }
        0..5 => Fate::Dies {
            append: random.within(1, 8),
            written: random.percent(50),
        },
        5..8 => Fate::Killed(millis(random)),
        _ => Fate::ShutDown(millis(random)),
    }
}

/// One process. The run's answer, if it came to its end.
async fn incarnation<G: Ground>(
    interpreter: &Interpreter,
    store: &Arc<Faulty<G>>,
    fate: Fate,
) -> Option<String> {
    let world = &interpreter.world;
    let clock = TokioClock::starting_at(world.now());
    world.set_clock(Some(clock));
    let engine = Engine::builder()
        .shared_store(Arc::clone(store) as Arc<dyn Store>)
        .workflow(Interpreted::call)
        .workflow(Offspring::call)
        .state(interpreter.clone())
        .clock(clock)
        .build()
        .await;
    // Without power there is none.
    let Ok(engine) = engine else {
        assert!(store.inner.is_dark(), "{engine:?}");
        return None;
    };
    let run = async {
        let handle = match engine.start("run", Interpreted::call()).await {
            Ok(handle) => handle,
            Err(error) => return Err(error.to_string()),
        };
        match handle.result().await {
            Ok(answer) => Ok(answer.to_string()),
            Err(workflow::Error::Failed(failure)) => Ok(failure.to_string()),
            Err(error) => Err(format!("{error:?}")),
        }
    };
    let time = match fate {
        Fate::Killed(time) | Fate::ShutDown(time) => time,
        // Longer than anything that goes on by itself.
        Fate::Dark(_) | Fate::Dies { .. } | Fate::Spared => Duration::from_secs(100_000),
    };
    let ended = tokio::select! {
        ended = run => Some(ended),
        () = send(&engine, store) => None,
        () = store.died.notified() => None,
        () = store.watch() => None,
        () = tokio::time::sleep(time) => {
            if let Fate::Dark(_) | Fate::Dies { .. } | Fate::Spared = fate {
                world.broke(Law::Stuck, "a day has passed, and the run goes on");
            }
            None
        }
    };
    if ended.is_none() && matches!(fate, Fate::ShutDown(_)) {
        let closed = engine.shutdown(Duration::from_secs(50)).await;
        world.trace(|| format!("shut down: {closed:?}"));
    }
    world.set_clock(None);
    match ended? {
        Ok(answer) => Some(answer),
        Err(error) => {
            world.broke(Law::Stuck, error);
            None
        }
    }
}

/// Sends to the run: now and then, as long as others have something to say; after that what it waits for.
async fn send<G: Ground>(engine: &Engine, store: &Arc<Faulty<G>>) {
    let world = &store.world;
    let mut idle = 1;
    loop {
        let millis = lock(&store.random).below(40) * idle;
        tokio::time::sleep(Duration::from_millis(millis)).await;
        if lock(&store.left).is_some() || store.inner.is_dark() {
            std::future::pending::<()>().await;
        }
        let inner = &store.inner;
        let row = row(inner);
        let inbox = row.as_ref().map(|row| post::inbox(inner, row.key));
        if let Some(row) = &row {
            world.judge_wake(row, inner);
        }
        let wanting = world.wanting(&inbox.unwrap_or_default());
        let (more, channel) = if world.post.may_send() {
            let channels = ["a", "a", "b", "c", "ask"];
            (true, Some(*lock(&store.random).pick(&channels)))
        } else {
            let rests = row.is_some_and(|row| !post::is_due(&row, world.now()));
            let channel =
                (rests && !wanting.is_empty()).then(|| *lock(&store.random).pick(&wanting));
            (false, channel)
        };
        let Some(channel) = channel else {
            idle = (idle * 2).min(100_000);
            continue;
        };
        idle = 1;
        let value = world.post.count();
        // What fails may have been delivered; the store has counted it.
        let _ = if more && lock(&store.random).percent(10) {
            engine
                .send("run", post::words(channel), &value.to_string())
                .await
        } else if channel == "ask" {
            engine.send("run", &post::ASK, &value).await
        } else {
            engine.send("run", post::channel(channel), &value).await
        };
    }
}

fn judge_end(interpreter: &Interpreter, kept: &dyn Store, answer: &str) {
    let world = &interpreter.world;
    world.finished();
    judge_mail(world, kept);
    let loaded = row(kept).and_then(|row| drive::read(kept.load(row.key)));
    let history = loaded.map(|loaded| loaded.history).unwrap_or_default();
    if let Err(what) = life::judge_pruned(&interpreter.program, &history) {
        world.broke(Law::Store, what);
    }
    if let Err(what) = life::judge_history(&history) {
        world.broke(Law::Store, what);
    }
    match life::replayed(&interpreter.program, &history) {
        Ok(written) => {
            let again = written.last().map(drive::ending);
            if again.as_deref() != Some(answer) || written.len() != 1 {
                let what = format!("{answer} first, {again:?} on replay; written: {written:?}");
                world.broke(Law::Answer, what);
            }
        }
        Err(broken) => world.broke(broken.law, format!("at the end: {}", broken.what)),
    }
}

/// Where each message is, and whether the run is due when it has to be.
fn judge_mail(world: &World, kept: &dyn Store) {
    let Some(row) = row(kept) else { return };
    let loaded = drive::read(kept.load(row.key));
    let history = loaded.map(|loaded| loaded.history).unwrap_or_default();
    if let Err(what) = world.post.judge(kept, row.key, &history) {
        world.broke(Law::Message, what);
    }
    world.judge_wake(&row, kept);
}

/// The run's row.
fn row(store: &dyn Store) -> Option<RunRow> {
    let id = RunId::new("run").expect("a valid id");
    drive::read(store.find(&id))
}

/// A store that is slow, fails, and dies.
#[derive(Debug)]
struct Faulty<G> {
    inner: G,
    world: Arc<World>,
    random: Mutex<Random>,
    fate: Fate,
    appends: AtomicU64,
    /// The batch that was told of last.
    told: Mutex<(u64, u64)>,
    /// What it left when it died.
    left: Mutex<Option<G>>,
    died: Notify,
}

impl<G: Ground> Faulty<G> {
    fn new(inner: G, world: &Arc<World>, seed: u64, fate: Fate) -> Self {
        if let Fate::Dark(operations) = fate {
            inner.lose_power(operations);
        }
        Self {
            inner,
            world: Arc::clone(world),
            random: Mutex::new(Random::new(seed)),
            fate,
            appends: AtomicU64::new(0),
            told: Mutex::default(),
            left: Mutex::default(),
            died: Notify::new(),
        }
    }

    /// What one would find who opened it again.
    fn left(&self) -> G {
        let left = lock(&self.left).take();
        left.unwrap_or_else(|| self.after())
    }

    fn after(&self) -> G {
        let mut random = lock(&self.random);
        let loses_power = self.inner.is_dark() || random.percent(30);
        self.inner.after(if loses_power {
            Sudden::PowerCut(random.number())
        } else {
            Sudden::Kill
        })
    }

    /// Waits until the power has failed where nobody asked the store for anything.
    async fn watch(&self) {
        let mut wait = Duration::from_millis(10);
        loop {
            tokio::time::sleep(wait).await;
            if self.inner.is_dark() {
                return;
            }
            wait = (wait * 2).min(Duration::from_secs(100));
        }
    }

    async fn pause(&self) {
        let millis = *lock(&self.random).pick(&[0, 0, 1, 3, 9]);
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    fn fails(&self, operation: &'static str) -> Result<(), StoreError> {
        if !lock(&self.random).percent(8) {
            return Ok(());
        }
        self.world.trace(|| format!("the store fails: {operation}"));
        Err(StoreError::Io {
            operation,
            retryable: true,
            source: "no space left on device".into(),
        })
    }

    async fn die(&self) {
        if lock(&self.left).is_none() {
            let left = self.after();
            lock(&self.left).get_or_insert(left);
        }
        self.died.notify_one();
        std::future::pending::<()>().await;
    }

    async fn write(&self, append: Append) -> Result<Appended, StoreError> {
        if lock(&self.left).is_some() {
            self.die().await;
        }
        let mine = (append.epoch, append.number);
        // A child's are not watched.
        let inner = &self.inner;
        let is_child = match &append.create {
            Some(new) => new.parent.is_some(),
            None => row(inner).is_none_or(|row| row.key != append.run),
        };
        if !is_child && std::mem::replace(&mut *lock(&self.told), mine) != mine {
            self.world.closed(&append.records);
        }
        self.pause().await;
        self.fails("before writing")?;
        let this = self.appends.fetch_add(1, Ordering::Relaxed) + 1;
        let dies = |when| matches!(self.fate, Fate::Dies { append, written } if append == this && written == when);
        if dies(false) || self.inner.is_dark() {
            self.die().await;
        }
        let before = drive::read(inner.load(append.run));
        let before = before.map(|loaded| loaded.history).unwrap_or_default();
        let answer = match inner.append(append.clone()).await {
            Err(_) if self.inner.is_dark() => {
                // Nobody knows whether it is there before the power is back.
                let left = self.after();
                let there = drive::read(left.row(append.run));
                if !is_child && there.is_some_and(|row| row.last_append == mine) {
                    self.landed(&append, &before, &left);
                }
                lock(&self.left).get_or_insert(left);
                self.die().await;
                unreachable!("who has died does nothing any more")
            }
            answer => answer?,
        };
        if answer == Appended::Applied && !is_child {
            self.landed(&append, &before, inner);
        }
        if dies(true) {
            self.die().await;
        }
        self.pause().await;
        self.fails("after writing")?;
        Ok(answer)
    }

    /// A batch of the run is durable.
    fn landed(&self, append: &Append, before: &[Record], store: &dyn Store) {
        self.world.landed(&append.records, &append.deletes);
        self.world.took(append, &post::inbox(store, append.run));
        if let Err(what) = self.world.post.landed(store, before, append) {
            self.world.broke(Law::Message, what);
        }
    }
}

impl<G: Ground> Store for Faulty<G> {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(self.write(append))
    }

    fn load(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Loaded>, StoreError>> {
        Box::pin(async move {
            self.pause().await;
            self.inner.load(run).await
        })
    }

    fn deliver<'a>(
        &'a self,
        to: &'a RunId,
        message: NewMessage,
        at: Timestamp,
        keep_until: Timestamp,
    ) -> BoxFuture<'a, Result<Delivery, StoreError>> {
        Box::pin(async move {
            self.pause().await;
            self.fails("before a delivery")?;
            if lock(&self.left).is_some() {
                self.die().await;
            }
            let (id, own) = (message.id, to.as_str() == "run");
            let delivery = self.inner.deliver(to, message, at, keep_until).await?;
            if own {
                self.world.post.delivered(id, delivery);
            }
            self.pause().await;
            self.fails("after a delivery")?;
            Ok(delivery)
        })
    }

    fn inbox(
        &self,
        run: RunKey,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Message>, StoreError>> {
        Box::pin(async move {
            self.pause().await;
            self.fails("reading an inbox")?;
            let page = self.inner.inbox(run, after, limit).await;
            self.pause().await;
            page
        })
    }

    crate::pass_on! {
        inner: identity allocate cancel rewrite delete find row due active dead_letters answer value values put list close
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
