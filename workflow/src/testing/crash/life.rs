//! One case: a process that ends at a given event, and another one that goes on to the end.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::super::steps::Steps;
use super::super::virtual_time::BEGINNING;
use super::event::{Cut, Spot};
use super::recorder::{Recorder, Seen, Watch};
use super::store::CuttingStore;
use crate::codec;
use crate::engine::{Clock, Engine, EngineBuilder, TokioClock};
use crate::replay::{Body, Failure, FailureKind, Finished, Location, Record, RunState, Timestamp};
use crate::store::{BoxFuture, MemoryStore, RunFilter, RunRow, Store};

/// The id of the run.
pub(super) const RUN: &str = "crash-everywhere";

/// What stands for what the test drives.
pub(super) const DRIVEN: &str = "what is driven";

/// How long threads of the process that ended may go on.
const STRAGGLERS: Duration = Duration::from_secs(5);

/// When it is first looked whether all runs have ended.
const LOOK: Duration = Duration::from_millis(100);
/// And how much later each time, as a part of the time that has passed: a child that sleeps for months is looked at some hundred times.
const LATER: u32 = 8;

/// What each case is made of.
pub(super) struct Plan {
    pub(super) drive: Drive,
    pub(super) configure: Vec<Arc<Configure>>,
    pub(super) fresh: Vec<Fresh>,
    pub(super) effects: Vec<Effect>,
    pub(super) posts: Vec<Post>,
    pub(super) steps: Vec<Steps>,
    pub(super) within: Duration,
    /// What of the run's value is compared.
    pub(super) outcome: Option<Box<Project>>,
}

/// What a process does.
pub(super) enum Drive {
    /// It starts a run of this workflow, with this input.
    Start(&'static str, Vec<u8>),
    /// What the test says.
    By(Box<By>),
}

pub(super) type By = dyn Fn(Engine) -> BoxFuture<'static, Result<Value, String>> + Send + Sync;

pub(super) type Configure = dyn Fn(EngineBuilder) -> EngineBuilder + Send + Sync;
pub(super) type Project = dyn Fn(&[u8]) -> Result<Value, serde_json::Error> + Send + Sync;

/// A state that is made anew for each case, and outlives the crash.
pub(super) struct Fresh {
    pub(super) type_id: TypeId,
    pub(super) make: Box<dyn Fn() -> Box<State> + Send + Sync>,
    pub(super) give: fn(EngineBuilder, &State) -> EngineBuilder,
}

/// A state of whatever type.
pub(super) type State = dyn Any + Send + Sync;

/// What is counted at the end.
pub(super) struct Effect {
    pub(super) name: &'static str,
    pub(super) of: TypeId,
    pub(super) count: Box<Count>,
}

pub(super) type Count = dyn Fn(&State) -> Box<dyn Counted> + Send + Sync;

/// What was counted, of whatever type.
pub(super) trait Counted: fmt::Debug + Send {
    fn any(&self) -> &dyn Any;
    fn is(&self, other: &dyn Counted) -> bool;
}

impl<T: PartialEq + fmt::Debug + Send + 'static> Counted for T {
    fn any(&self) -> &dyn Any {
        self
    }

    fn is(&self, other: &dyn Counted) -> bool {
        other.any().downcast_ref::<T>() == Some(self)
    }
}

/// Something that is done from outside, so long after the beginning.
pub(super) struct Post {
    pub(super) after: Duration,
    pub(super) what:
        Box<dyn Fn(Engine) -> BoxFuture<'static, Result<(), crate::Error>> + Send + Sync>,
}

/// What a case came to.
pub(super) struct Case {
    pub(super) seen: Seen,
    pub(super) came_to: Result<BTreeMap<String, Ended>, String>,
    pub(super) effects: Vec<(&'static str, Box<dyn Counted>)>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ended {
    Completed(Value),
    Failed {
        kind: String,
        location: String,
        message: String,
        /// It, or one of its branches, had no attempts left.
        spent: bool,
    },
    Cancelled,
    /// It has not, and need not.
    Open(String),
    /// It has not.
    Not(String),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed(value) => write!(f, "completed with {value}"),
            Self::Failed {
                kind,
                location,
                message,
                ..
            } => write!(f, "failed at `{location}` ({kind}): {message}"),
            Self::Cancelled => f.write_str("was cancelled"),
            Self::Open(state) => write!(f, "is {state}"),
            Self::Not(why) => write!(f, "has not ended: {why}"),
        }
    }
}

impl Plan {
    /// Runs one case.
    pub(super) fn case(&self, cut: Option<(usize, Cut)>) -> Case {
        let steps = self.steps.iter().map(Steps::fresh).collect();
        let recorder = Recorder::new(cut, steps);
        let world: Vec<_> = self.fresh.iter().map(|fresh| (fresh.make)()).collect();
        let mut below = MemoryStore::new();
        let mut now = BEGINNING;
        let came_to = loop {
            let store = Arc::new(CuttingStore::new(below, Arc::clone(&recorder)));
            recorder.revive();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build();
            let runtime = match runtime {
                Ok(runtime) => runtime,
                Err(error) => break Err(format!("no runtime can be made: {error}")),
            };
            let (came_to, at) = runtime.block_on(self.process(&store, &recorder, &world, now));
            // All that is in memory of the process goes with it, tasks of the user's own, too.
            runtime.shutdown_timeout(STRAGGLERS);
            if let Some(came_to) = came_to {
                break came_to;
            }
            (below, now) = (store.left(), at);
        };
        let of = |effect: &Effect| {
            let found = self.fresh.iter().zip(&world);
            let mut found = found.filter(|(fresh, _)| fresh.type_id == effect.of);
            let (_, state) = found.next()?;
            Some((effect.name, (effect.count)(&**state)))
        };
        Case {
            seen: recorder.seen(),
            came_to,
            effects: self.effects.iter().filter_map(of).collect(),
        }
    }

    /// One process. What the runs came to, unless it ended before that.
    async fn process(
        &self,
        store: &Arc<CuttingStore>,
        recorder: &Arc<Recorder>,
        world: &[Box<State>],
        now: Timestamp,
    ) -> (Option<Result<BTreeMap<String, Ended>, String>>, Timestamp) {
        let clock = TokioClock::starting_at(now);
        let mut builder = Engine::builder();
        for configure in &self.configure {
            builder = configure(builder);
        }
        for (fresh, state) in self.fresh.iter().zip(world) {
            builder = (fresh.give)(builder, &**state);
        }
        let watch = Watch(Arc::clone(recorder));
        let built = builder
            .shared_store(Arc::clone(store) as Arc<dyn Store>)
            .clock(clock)
            .jitter_seed(0)
            .intervened_by(|_| Arc::new(watch))
            .build();
        let to_the_end = async {
            let engine = built.await.map_err(|error| error.to_string())?;
            self.to_the_end(&engine, clock, recorder).await
        };
        let came_to = tokio::select! {
            biased;
            () = recorder.died() => None,
            came_to = to_the_end => Some(came_to),
        };
        (came_to, clock.now())
    }

    async fn to_the_end(
        &self,
        engine: &Engine,
        clock: TokioClock,
        recorder: &Recorder,
    ) -> Result<BTreeMap<String, Ended>, String> {
        let all = async {
            let (workflow, input) = match &self.drive {
                Drive::Start(workflow, input) => (*workflow, input),
                Drive::By(drive) => return Ok(Some(drive(engine.clone()).await?)),
            };
            let run = engine.start_json(RUN, workflow, input).await;
            let run = run.map_err(|error| error.to_string())?;
            let posts = self.post(engine, clock);
            tokio::pin!(posts);
            // Until it has ended, or stands still for good.
            tokio::select! {
                biased;
                _ = run.result() => {}
                error = &mut posts => return Err(error),
            }
            // And those that it left behind.
            let left_behind = tokio::time::Instant::now();
            while self.rows(engine).await?.iter().any(is_under_way) {
                let passed = left_behind.elapsed();
                tokio::time::sleep(LOOK.max(passed / LATER)).await;
            }
            Ok(None)
        };
        let mut ended = BTreeMap::new();
        let driven = match tokio::time::timeout(self.within, all).await {
            Ok(came_to) => came_to?,
            Err(_) => None,
        };
        if let Drive::By(_) = self.drive {
            let days = self.within.as_secs() / 86_400;
            let late = || Ended::Not(format!("it is still under way after {days} days"));
            ended.insert(
                DRIVEN.to_owned(),
                driven.map_or_else(late, Ended::Completed),
            );
        }
        for row in self.rows(engine).await? {
            let end = self.end(engine, &row, recorder).await?;
            ended.insert(row.id.to_string(), end);
        }
        Ok(ended)
    }

    /// Does what is done from outside, each at its time. Comes back with what went wrong only.
    async fn post(&self, engine: &Engine, clock: TokioClock) -> String {
        let began = engine.status(RUN).await;
        let began = began.map_or_else(|_| clock.now(), |status| status.created_at);
        let mut posts: Vec<_> = self.posts.iter().collect();
        posts.sort_by_key(|post| post.after);
        let mut going = tokio::task::JoinSet::new();
        for post in posts {
            let at = began.after(post.after);
            let wait = tokio::time::sleep(at.since(clock.now()));
            tokio::pin!(wait);
            loop {
                tokio::select! {
                    biased;
                    Some(done) = going.join_next() => if let Some(error) = failed(done) { return error },
                    () = &mut wait => break,
                }
            }
            going.spawn((post.what)(engine.clone()));
        }
        while let Some(done) = going.join_next().await {
            if let Some(error) = failed(done) {
                return error;
            }
        }
        std::future::pending().await
    }

    async fn rows(&self, engine: &Engine) -> Result<Vec<RunRow>, String> {
        let mut filter = RunFilter::default();
        let mut rows = Vec::new();
        loop {
            let page = engine.list(&filter).await;
            let page = page.map_err(|error| error.to_string())?;
            rows.extend(page.rows);
            if page.next.is_none() {
                return Ok(rows);
            }
            filter.after = page.next;
        }
    }

    async fn end(
        &self,
        engine: &Engine,
        row: &RunRow,
        recorder: &Recorder,
    ) -> Result<Ended, String> {
        if let Some(parked) = &row.parked {
            let (reason, detail) = (parked.reason, &parked.detail);
            return Ok(Ended::Not(format!("it is parked ({reason}): {detail}")));
        }
        let history = engine.export(row.id.as_str()).await;
        let history = history.map_err(|error| error.to_string())?;
        Ok(match history.finished() {
            Some(Finished::Completed(payload)) => {
                let json = codec::open(&*engine.inner.codec, payload);
                let json = json.map_err(|error| error.to_string())?;
                let whole = || serde_json::from_slice(&json);
                let value = match &self.outcome {
                    Some(outcome) if row.id.as_str() == RUN => outcome(&json),
                    // What may differ in the run may differ in its children.
                    Some(_) => Ok(Value::Null),
                    None => whole(),
                };
                Ended::Completed(value.map_err(|error| error.to_string())?)
            }
            Some(Finished::Failed(failure)) => Ended::Failed {
                kind: failure.kind().to_string(),
                location: failure.location().to_string(),
                message: codec::open_failure(&*engine.inner.codec, failure.clone())
                    .message()
                    .to_owned(),
                spent: is_spent(failure),
            },
            Some(Finished::Cancelled) => Ended::Cancelled,
            // What the test drives may stay open.
            None if matches!(self.drive, Drive::By(_)) => Ended::Open(row.state.to_string()),
            None => {
                let bodies = recorder.under_way(&row.id);
                Ended::Not(waits(row, history.records(), &bodies, self.within))
            }
        })
    }
}

fn failed(done: Result<Result<(), crate::Error>, tokio::task::JoinError>) -> Option<String> {
    match done {
        // A run that has ended has what it wants.
        Ok(Ok(()) | Err(crate::Error::Send(crate::SendError::Ended { .. }))) => None,
        Ok(Err(error)) => Some(format!("what is done from outside failed: {error}")),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => None,
        },
    }
}

fn is_spent(failure: &Failure) -> bool {
    failure.kind() == FailureKind::Exhausted || failure.branches().iter().any(is_spent)
}

fn is_under_way(row: &RunRow) -> bool {
    !row.state.is_final() && row.state != RunState::Parked
}

/// What a run waits for that has not ended.
fn waits(row: &RunRow, records: &[Record], bodies: &[Spot], within: Duration) -> String {
    let mut open: Vec<&Location> = Vec::new();
    for record in records {
        match &record.body {
            Body::Waiting(_) => open.push(&record.location),
            body if body.is_outcome() => open.retain(|at| **at != record.location),
            _ => {}
        }
    }
    let at: Vec<_> = open.iter().map(|at| format!("`{at}`")).collect();
    let at = if at.is_empty() {
        String::new()
    } else {
        format!(" at {}", at.join(", "))
    };
    let channels = row.waits.iter().flatten();
    let channels = channels.filter(|channel| !channel.starts_with('\0'));
    let channels: Vec<_> = channels.map(|channel| format!("`{channel}`")).collect();
    let wants = if channels.is_empty() {
        String::new()
    } else {
        format!(" for a message on {}", channels.join(", "))
    };
    let bodies = bodies.iter().map(ToString::to_string);
    let bodies: Vec<_> = bodies.map(|of| format!(" in the body of {of}")).collect();
    let bodies = bodies.join(" and");
    let days = within.as_secs() / 86_400;
    // What only sleeps goes on by itself.
    let longer = if row.wake_at.is_some() {
        "; if it is to take so long, give it more time by `.within(..)`"
    } else {
        ""
    };
    format!(
        "after {days} days it is {}{at}{wants}{bodies}{longer}",
        row.state
    )
}
