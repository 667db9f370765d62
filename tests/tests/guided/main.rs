//! Guided flows as their drivers see them, over a store that survives the engine, in paused time.
#![allow(
    clippy::unwrap_used,
    clippy::too_long_first_doc_paragraph,
    reason = "tests"
)]

mod asking;
mod attribute;
mod bodies;
mod branches;
mod cancelling;
mod checks;
mod closing;
mod deploying;
mod edits;
mod limits;
mod migration;
mod model;
mod model_nested;
mod navigation;
mod nesting;
mod observing;
mod opening;
mod operations;
mod parallel;
mod reopening;
mod together;
mod undoing;

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use workflow::guided::{Flow, FlowBuilder, Guide, Stage, StageBuilder, StageName, View, stage};
use workflow::replay::RunId;
use workflow::store::Store as _;
use workflow::{Engine, Failure, fragment, step};
use workflow_tests::World;

/// What the person of these tests gives.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Form {
    name: String,
    number: u32,
}

/// What was done, in order: what a test looks at.
#[derive(Debug, Clone, Default)]
struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    fn say(&self, what: impl Into<String>) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(what.into());
    }

    /// How much was said so far.
    fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// What was said since.
    fn since(&self, count: usize) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[count..].to_vec()
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An effect of a stage: it takes its time, and fails when it is told to.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Effect {
    name: String,
    millis: u64,
    fails: bool,
}

thread_local! {
    /// Where effects are told. A test is one thread.
    static TRACE: Trace = Trace::default();
}

fn trace() -> Trace {
    TRACE.with(Clone::clone)
}

#[derive(Debug, thiserror::Error)]
#[error("no {0} today")]
struct Unlucky(String);

#[step(retries = 0, timeout = "none")]
async fn have(effect: Effect) -> Result<String, Unlucky> {
    trace().say(effect.name.clone());
    if effect.millis > 0 {
        workflow_tests::pass(effect.millis).await;
    }
    if effect.fails {
        return Err(Unlucky(effect.name));
    }
    Ok(effect.name)
}

/// A body of one effect.
#[fragment]
async fn one(effect: Effect) -> Result<(), Failure> {
    have(effect).await?;
    Ok(())
}

/// A body that has the effect `name`, and does nothing else.
fn says(
    name: &str,
) -> impl Fn(Stage<Form>) -> workflow::Fragment<'static, Result<(), Failure>> + use<> {
    takes(name, 0)
}

/// The same, and it takes so long.
fn takes(
    name: &str,
    millis: u64,
) -> impl Fn(Stage<Form>) -> workflow::Fragment<'static, Result<(), Failure>> + use<> {
    let name = name.to_owned();
    move |_| {
        one(Effect {
            name: name.clone(),
            millis,
            fails: false,
        })
    }
}

/// A body that fails.
fn unlucky(_: Stage<Form>) -> workflow::Fragment<'static, Result<(), Failure>> {
    one(Effect {
        name: "luck".to_owned(),
        millis: 0,
        fails: true,
    })
}

/// A body that does nothing durable.
#[fragment]
async fn nothing() -> Result<(), Failure> {
    Ok(())
}

/// A stage that says when it is entered and left: its plain code does, each time that it runs.
fn told(name: &str) -> StageBuilder<Form> {
    let said = |what: &str| {
        let said = format!("{what} {name}");
        move |_| {
            trace().say(said.clone());
            nothing()
        }
    };
    stage(name).body(said("enter")).leave(said("leave"))
}

fn flow(stages: impl IntoIterator<Item = StageBuilder<Form>>) -> Flow<Form> {
    described(stages).build().unwrap()
}

fn described(stages: impl IntoIterator<Item = StageBuilder<Form>>) -> FlowBuilder<Form> {
    let builder = Flow::builder("flow");
    stages.into_iter().fold(builder, FlowBuilder::stage)
}

/// a, b and c in a row, each saying when it is entered and left.
fn row() -> Flow<Form> {
    flow([
        told("a").start().to("b"),
        told("b").to("c"),
        told("c").terminal(),
    ])
}

/// a, b and c in a row that only ask.
fn questions() -> Flow<Form> {
    flow([
        stage("a").start().to("b"),
        stage("b").to("c"),
        stage("c").terminal(),
    ])
}

async fn engine(world: &World, flow: &Flow<Form>) -> Engine {
    trace().take();
    world.engine().guided(flow).build().await.unwrap()
}

/// A guide of this flow that was just started, when its first stage waits for the person.
async fn started(world: &World, flow: &Flow<Form>) -> Guide<Form> {
    let engine = engine(world, flow).await;
    let guide = engine
        .guided(flow, "g")
        .start(Form::default())
        .await
        .unwrap();
    rested(&guide).await;
    guide
}

/// Waits until no body runs.
async fn rested(guide: &Guide<Form>) {
    let mut changes = guide.watch();
    while guide.view().busy {
        changes.next().await.unwrap();
    }
}

/// What a restart finds when the process is killed now: the guide and its engine are gone.
async fn killed(world: &World, guide: Guide<Form>) -> World {
    let world = world.crash();
    drop(guide);
    // Whoever still waits for a command holds the engine: its tasks end here.
    tokio::task::yield_now().await;
    world
}

/// How many transactions the guide has cost.
async fn commits(world: &World) -> u64 {
    let row = world.store.find(&RunId::new("g").unwrap()).await.unwrap();
    row.unwrap().last_append.1
}

fn history(view: &View<Form>) -> Vec<&str> {
    view.history.iter().map(StageName::as_str).collect()
}

fn completed(view: &View<Form>) -> Vec<&str> {
    view.completed.iter().map(StageName::as_str).collect()
}

fn skipped(view: &View<Form>) -> Vec<&str> {
    view.skipped.iter().map(StageName::as_str).collect()
}
