//! A flow: its graph, and the code behind it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::described;
use super::faults::Faults;
use super::graph::{Exit, Graph, Node};
use super::key::Guided;
use super::migrate::Migrations;
use super::nested::AnyFlow;
use super::observing::{Analytics, Sink, Told};
use super::position::{Problem, Problems, StageName};
use super::stage::{Stage, Undone, Work};
use crate::codec::BoxError;
use crate::context::{
    BoxFut, Cancellation, Fragment, Recorded, States, StepError, UndoArgs, UndoFn,
};
use crate::replay::Backoff;

/// What a flow asks of the person's data: `S` is written with every revision.
pub trait FlowState: Recorded + Clone + Send + Sync + 'static {}

impl<S: Recorded + Clone + Send + Sync + 'static> FlowState for S {}

pub(super) type Test<S> = Arc<dyn Fn(&S) -> bool + Send + Sync>;
type Check<S> = Arc<dyn Fn(&S, &mut Problems) + Send + Sync>;
type ExitGuard<S> = Arc<dyn Fn(S) -> BoxFut<'static, bool> + Send + Sync>;
type Undo<S> = Arc<dyn Fn(Undone<S>) -> BoxFut<'static, Result<(), BoxError>> + Send + Sync>;
pub(super) type Hook<S, T = ()> = Arc<dyn Fn(Stage<S>) -> Work<T> + Send + Sync>;

/// Whether an exit is open.
pub(super) enum Guard<S> {
    /// Always.
    Open,
    /// While this holds of the person's data.
    Test(Test<S>),
    /// When this durable code says so.
    Asks(Hook<S, bool>),
}

/// A flow that a person is led through, checked. Cheap to clone.
///
/// ```
/// use workflow::guided::{Flow, stage};
///
/// # #[derive(Clone, serde::Serialize, serde::Deserialize)]
/// # struct Project { name: String, cloud: bool }
/// let flow = Flow::<Project>::builder("project")
///     .stage(
///         stage("details")
///             .start()
///             .check(|project: &Project, problems| {
///                 problems.when(project.name.is_empty(), "name", "a project needs a name");
///             })
///             .to_if("region", |project| project.cloud)
///             .to("done"),
///     )
///     .stage(stage("region").skippable().to("done"))
///     .stage(stage("done").terminal())
///     .build()?;
/// assert_eq!(flow.graph().nodes().len(), 3);
/// # Ok::<(), workflow::guided::Faults>(())
/// ```
pub struct Flow<S>(Arc<Plan<S>>);

/// What a stage that is entered again does with what succeeded when it was entered before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Revisit {
    /// It keeps it: the body runs again, and its effects that succeeded are not had again.
    #[default]
    Keep,
    /// It begins anew: every effect is had again.
    Fresh,
}

/// What becomes of a body that was cut off when the process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Interrupt {
    /// The stage is shown as failed, and the person decides.
    #[default]
    Ask,
    /// It goes on by itself where it was, as a workflow does.
    Rerun,
}

/// What a flow consists of.
pub(super) struct Plan<S> {
    pub(super) name: String,
    pub(super) version: u32,
    pub(super) graph: Graph,
    pub(super) fingerprint: u64,
    /// In the order of the graph's nodes.
    pub(super) stages: Vec<Hooks<S>>,
    pub(super) history: usize,
    pub(super) exit: Option<ExitGuard<S>>,
    pub(super) reopens: bool,
    pub(super) migrations: Migrations,
    /// The flows that may be in stages of it.
    pub(super) nests: BTreeMap<String, Arc<dyn AnyFlow>>,
    pub(super) analytics: Option<Analytics<S>>,
    pub(super) sink: Option<Sink>,
    pub(super) hooks_timeout: Option<Duration>,
}

/// Takes a step of a stage back, with what it gave.
type StepUndo<S> = Arc<
    dyn Fn(Option<Bytes>, Undone<S>) -> Result<BoxFut<'static, Result<(), BoxError>>, BoxError>
        + Send
        + Sync,
>;

/// A step of a stage that has an undo of its own.
pub(super) struct UndoneStep<S> {
    /// Its place in the stage's body.
    place: String,
    pub(super) unknown: bool,
    pub(super) undo: StepUndo<S>,
    /// The path of its site, below its flow. It lives as long as the program, as a definition does.
    pub(super) path: &'static str,
    /// How the ledger names it when its flow is in a stage of another: with the flow's name before the path. Else by the path.
    pub(super) within: &'static str,
}

/// The code behind a stage.
pub(super) struct Hooks<S> {
    pub(super) name: StageName,
    pub(super) when: Option<Test<S>>,
    /// In the order of the node's exits.
    pub(super) exits: Vec<Guard<S>>,
    pub(super) checks: Vec<Check<S>>,
    /// Checks that are durable code.
    pub(super) asks: Vec<Hook<S, Vec<Problem>>>,
    pub(super) body: Option<Hook<S>>,
    pub(super) leave: Option<Hook<S>>,
    pub(super) revisit: Revisit,
    pub(super) interrupt: Interrupt,
    pub(super) timeout: Option<Duration>,
    /// So often its body is tried again by itself.
    pub(super) retries: u32,
    pub(super) backoff: Backoff,
    pub(super) undo: Option<Undo<S>>,
    pub(super) undo_unfinished: bool,
    pub(super) steps: Vec<UndoneStep<S>>,
}

impl<S> Flow<S> {
    /// Begins to describe a flow. Its name is that of its guides in the store.
    pub fn builder(name: impl Into<String>) -> FlowBuilder<S> {
        FlowBuilder {
            name: name.into(),
            version: 1,
            stages: Vec::new(),
            history: usize::MAX,
            exit: None,
            reopens: false,
            migrations: Migrations::new(),
            nests: BTreeMap::new(),
            circles: Vec::new(),
            analytics: None,
            sink: None,
            hooks_timeout: None,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its version.
    pub fn version(&self) -> u32 {
        self.0.version
    }

    /// The name of a stage, as views have it, if there is a stage of that name.
    pub fn stage_name(&self, name: &str) -> Option<StageName> {
        let mut stages = self.0.stages.iter().map(|stage| &stage.name);
        stages.find(|stage| **stage == *name).cloned()
    }

    /// Its shape.
    pub fn graph(&self) -> &Graph {
        &self.0.graph
    }

    pub(super) fn plan(&self) -> &Plan<S> {
        &self.0
    }
}

impl<S> Plan<S> {
    /// The place of a stage among the stages.
    pub(super) fn index(&self, name: &StageName) -> Option<usize> {
        self.stages.iter().position(|stage| stage.name == *name)
    }

    pub(super) fn hooks(&self, name: &StageName) -> Option<&Hooks<S>> {
        self.stages.iter().find(|stage| stage.name == *name)
    }
}

impl<S> Clone for Flow<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> fmt::Debug for Flow<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow")
            .field("name", &self.0.name)
            .field("version", &self.0.version)
            .finish_non_exhaustive()
    }
}

/// Describes a flow. Made by [`Flow::builder`].
#[must_use = "help: end it with `.build()`"]
pub struct FlowBuilder<S> {
    name: String,
    version: u32,
    stages: Vec<StageBuilder<S>>,
    history: usize,
    exit: Option<ExitGuard<S>>,
    reopens: bool,
    migrations: Migrations,
    nests: BTreeMap<String, Arc<dyn AnyFlow>>,
    /// The flows that could not be nested, because they are being built for this one: each with those in between.
    circles: Vec<Vec<String>>,
    analytics: Option<Analytics<S>>,
    sink: Option<Sink>,
    hooks_timeout: Option<Duration>,
}

impl<S> fmt::Debug for FlowBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowBuilder")
            .field("name", &self.name)
            .field("stages", &self.stages)
            .finish_non_exhaustive()
    }
}

impl<S> FlowBuilder<S> {
    /// Its version, from 1: raise it when guides under way have to be changed to go on with it.
    pub fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// Adds a stage. The order in which they are added is the one in which they are shown, and means nothing else.
    pub fn stage(mut self, stage: StageBuilder<S>) -> Self {
        self.stages.push(stage);
        self
    }

    /// Keeps so many stops of the way that was walked, at least two; all by default. `back` goes no further than that.
    pub fn history(mut self, stops: usize) -> Self {
        self.history = stops.max(2);
        self
    }

    /// `back` from a guide that was completed takes it up again. It is refused by default.
    pub fn reopen(mut self, reopens: bool) -> Self {
        self.reopens = reopens;
        self
    }

    /// Told of everything that happens to guides of this flow, before all observers. As with those, nothing that goes wrong in it
    /// concerns the guide.
    pub fn analytics(
        mut self,
        analytics: impl Fn(&Told<S>) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.analytics = Some(Arc::new(move |told| {
            analytics(told).map(|()| ControlFlow::Continue(()))
        }));
        self
    }

    /// Told what goes wrong in observers, and in [`analytics`](Self::analytics). It is logged by default.
    pub fn on_observer_error(mut self, sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.sink = Some(Arc::new(sink));
        self
    }

    /// How long what a stage does when it is left may take, and the exit guard; as long as they like by default. Zero is no limit, too.
    pub fn hooks_timeout(mut self, timeout: Duration) -> Self {
        self.hooks_timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
        self
    }

    /// Asked before a guide is cancelled: `false` refuses it. Of two guards the later one holds.
    pub fn exit_guard(self, may_leave: impl Fn(&S) -> bool + Send + Sync + 'static) -> Self
    where
        S: Send + 'static,
    {
        self.exit_guard_async(move |state| {
            let may_leave = may_leave(&state);
            async move { may_leave }
        })
    }

    /// The same, by whoever takes their time: a question to the person, say. Meanwhile no move is completed, and edits are taken. It is
    /// given the data as it was when it was asked, and is asked again by the next cancel after a restart: nothing of it is recorded.
    pub fn exit_guard_async<F>(mut self, may_leave: impl Fn(S) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        self.exit = Some(Arc::new(move |state| Box::pin(may_leave(state))));
        self
    }

    /// Another flow may be in stages of this one: their code goes through it with [`Flow::guide`].
    pub fn nests<T: FlowState>(mut self, flow: &Flow<T>) -> Self {
        self.nests
            .insert(flow.name().to_owned(), Arc::new(flow.clone()));
        self
    }

    /// The same, of the flow that `#[guided]` describes on this data.
    pub fn nests_described<T: Guided>(mut self) -> Self {
        match described::circle::<T>() {
            Some(circle) => {
                self.circles.push(circle);
                self
            }
            None => self.nests(T::flow()),
        }
    }

    /// How the data of a guide of version `from` becomes that of the next version. Of several, those that are needed are called one after
    /// the other, each once; a guide that was migrated is recorded as such before it is seen. When one fails, the guide is not opened,
    /// and stays as it was.
    ///
    /// ```
    /// use workflow::guided::{Flow, stage};
    ///
    /// # #[derive(Clone, serde::Serialize, serde::Deserialize)]
    /// # struct Project { title: String }
    /// let flow = Flow::<Project>::builder("project")
    ///     .version(2)
    ///     .migrate(1, |mut data| {
    ///         data["title"] = data["name"].take();
    ///         Ok(data)
    ///     })
    ///     .stage(stage("details").start().to("done"))
    ///     .stage(stage("done").terminal())
    ///     .build()?;
    /// # Ok::<(), workflow::guided::Faults>(())
    /// ```
    pub fn migrate(
        self,
        from: u32,
        migrate: impl Fn(serde_json::Value) -> Result<serde_json::Value, BoxError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.migrate_async(from, move |data, _| std::future::ready(migrate(data)))
    }

    /// The same, by whoever takes their time. The token says when nobody waits for it any more.
    pub fn migrate_async<F>(
        mut self,
        from: u32,
        migrate: impl Fn(serde_json::Value, Cancellation) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<serde_json::Value, BoxError>> + Send + 'static,
    {
        let migrate =
            Arc::new(move |data, token| -> BoxFut<'static, _> { Box::pin(migrate(data, token)) });
        self.migrations.insert(from, migrate);
        self
    }

    /// Checks the flow.
    ///
    /// # Errors
    /// [`Faults`]: everything that is wrong with it.
    pub fn build(self) -> Result<Flow<S>, Faults> {
        let nodes = self.stages.iter().map(|stage| stage.node.clone());
        let graph = Graph::new(nodes.collect());
        let migrations: Vec<u32> = self.migrations.keys().copied().collect();
        let asking = self.stages.iter().filter(|stage| stage.asks_on_the_way());
        let asking: Vec<_> = asking.map(|stage| &*stage.node.name).collect();
        let circles = self.circles;
        Faults::of(
            &self.name,
            &graph,
            self.version,
            &migrations,
            &asking,
            circles,
        )?;
        let stages = self.stages.into_iter();
        let stages: Vec<_> = stages.map(|stage| stage.into_hooks(&self.name)).collect();
        Ok(Flow(Arc::new(Plan {
            name: self.name,
            version: self.version,
            fingerprint: graph.fingerprint(),
            graph,
            stages,
            history: self.history,
            exit: self.exit,
            reopens: self.reopens,
            migrations: self.migrations,
            nests: self.nests,
            analytics: self.analytics,
            sink: self.sink,
            hooks_timeout: self.hooks_timeout,
        })))
    }
}

/// Describes a stage. Made by [`stage`].
#[must_use = "help: add it to a flow with `.stage(..)`"]
pub struct StageBuilder<S> {
    node: Node,
    when: Option<Test<S>>,
    exits: Vec<Guard<S>>,
    checks: Vec<Check<S>>,
    asks: Vec<Hook<S, Vec<Problem>>>,
    body: Option<Hook<S>>,
    leave: Option<Hook<S>>,
    revisit: Revisit,
    interrupt: Interrupt,
    timeout: Option<Duration>,
    retries: u32,
    backoff: Backoff,
    undo: Option<Undo<S>>,
    undo_unfinished: bool,
    steps: Vec<UndoneStep<S>>,
}

/// Begins to describe a stage: what a person is asked, or something that is done, or both.
pub fn stage<S>(name: impl Into<String>) -> StageBuilder<S> {
    StageBuilder {
        node: Node::new(name),
        when: None,
        exits: Vec::new(),
        checks: Vec::new(),
        asks: Vec::new(),
        body: None,
        leave: None,
        revisit: Revisit::Keep,
        interrupt: Interrupt::Ask,
        timeout: None,
        retries: 0,
        backoff: Backoff::DEFAULT,
        undo: None,
        undo_unfinished: false,
        steps: Vec::new(),
    }
}

/// What the undo of a step of a guided flow takes.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the undo of a step in a guided flow takes what the step gives, and nothing else but an `Undone<{S}>`",
    label = "takes `{Self}`",
    note = "help: write it as `async fn undo(gave: T)` or `async fn undo(gave: T, undone: Undone<{S}>)`; states of the engine are a workflow's"
)]
pub trait UndoneWith<S> {}

#[diagnostic::do_not_recommend]
impl<S, T> UndoneWith<S> for (T,) {}
#[diagnostic::do_not_recommend]
impl<S, T> UndoneWith<S> for (T, Undone<S>) {}

impl<S> fmt::Debug for StageBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StageBuilder").field(&self.node).finish()
    }
}

impl<S> StageBuilder<S> {
    /// The flow begins here. One stage says so.
    pub fn start(mut self) -> Self {
        self.node.start = true;
        self
    }

    /// The flow ends with `next` from here.
    pub fn terminal(mut self) -> Self {
        self.node.terminal = true;
        self
    }

    /// A person may pass it by.
    pub fn skippable(mut self) -> Self {
        self.node.skippable = true;
        self
    }

    /// What a person reads above it; its name by default.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.node.title = Some(Cow::Owned(title.into()));
        self
    }

    /// What helps a person to fill it in.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.node.help = Some(Cow::Owned(help.into()));
        self
    }

    /// Leads to another stage. Of several exits the first one that is open is taken.
    pub fn to(mut self, target: impl Into<String>) -> Self {
        self.node.exits.to_mut().push(Exit {
            target: Cow::Owned(target.into()),
            guarded: false,
        });
        self.exits.push(Guard::Open);
        self
    }

    /// Leads to another stage while `open` holds. It has to be a function of the person's data alone: it is asked whenever
    /// somebody wants to know, and not recorded.
    pub fn to_if(
        mut self,
        target: impl Into<String>,
        open: impl Fn(&S) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.node.exits.to_mut().push(Exit {
            target: Cow::Owned(target.into()),
            guarded: true,
        });
        self.exits.push(Guard::Test(Arc::new(open)));
        self
    }

    /// Leads to another stage when durable code says so: a call of a `#[fragment]` function, whose steps are recorded. It is asked when
    /// the person wants to go on, after the exits before it, and asked again when the data was edited meanwhile. What it said last time
    /// does not count; where the way leads from here is not shown before ([`View::ahead`](field@super::View::ahead)). A stage that may be
    /// passed over ([`when`](Self::when)) has none of these. When it fails, the person stays: [`Refused::Check`](super::Refused::Check).
    pub fn to_if_async<E: StepError + 'static>(
        mut self,
        target: impl Into<String>,
        open: impl Fn(Stage<S>) -> Fragment<'static, Result<bool, E>> + Send + Sync + 'static,
    ) -> Self {
        self.node.exits.to_mut().push(Exit {
            target: Cow::Owned(target.into()),
            guarded: true,
        });
        self.exits
            .push(Guard::Asks(Arc::new(move |stage| Work::of(open(stage)))));
        self
    }

    /// When no exit is open, `next` is refused: otherwise the last exit has to be one that is always open.
    pub fn stay(mut self) -> Self {
        self.node.stays = true;
        self
    }

    /// Passed over while `when` does not hold. Asked going forward only.
    pub fn when(mut self, when: impl Fn(&S) -> bool + Send + Sync + 'static) -> Self {
        self.node.conditional = true;
        self.when = Some(Arc::new(when));
        self
    }

    /// Asked before the stage is left by `next`: what it finds wrong is shown, and the person stays. Of several, all are asked.
    pub fn check(mut self, check: impl Fn(&S, &mut Problems) + Send + Sync + 'static) -> Self {
        self.checks.push(Arc::new(check));
        self
    }

    /// A check that is durable code: a call of a `#[fragment]` function, whose steps are recorded. It is asked after the others found
    /// nothing, each time anew, and asked again when the data was edited meanwhile. When it fails, nothing is found, and the person
    /// stays: [`Refused::Check`](super::Refused::Check).
    ///
    /// ```
    /// use workflow::guided::{Problems, Stage, stage};
    /// use workflow::{Failure, fragment, step};
    ///
    /// # #[derive(Clone, serde::Serialize, serde::Deserialize)]
    /// # struct Project { name: String }
    /// #[step]
    /// async fn is_taken(name: String) -> Result<bool, std::io::Error> {
    ///     // asks a service
    /// #   Ok(name == "acme")
    /// }
    ///
    /// #[fragment]
    /// async fn name_is_free(stage: Stage<Project>) -> Result<Problems, Failure> {
    ///     let mut problems = Problems::default();
    ///     let taken = is_taken(stage.state().name.clone()).await?;
    ///     problems.when(taken, "name", "there is such a project");
    ///     Ok(problems)
    /// }
    ///
    /// let details = stage("details").check_async(name_is_free).to("done");
    /// # drop(details);
    /// ```
    pub fn check_async<E: StepError + 'static>(
        mut self,
        check: impl Fn(Stage<S>) -> Fragment<'static, Result<Problems, E>> + Send + Sync + 'static,
    ) -> Self {
        self.asks.push(Arc::new(move |stage| {
            Work::of(check(stage)).map(Problems::into_found)
        }));
        self
    }

    /// Runs when the stage is entered: durable code, a call of a `#[fragment]` function. The person cannot go on before it ended.
    pub fn body<E: StepError + 'static>(
        mut self,
        body: impl Fn(Stage<S>) -> Fragment<'static, Result<(), E>> + Send + Sync + 'static,
    ) -> Self {
        self.body = Some(Arc::new(move |stage| Work::of(body(stage))));
        self
    }

    /// Runs when the stage is left by `next`, after its checks passed: durable code, as its body. When it fails, the person stays.
    pub fn leave<E: StepError + 'static>(
        mut self,
        leave: impl Fn(Stage<S>) -> Fragment<'static, Result<(), E>> + Send + Sync + 'static,
    ) -> Self {
        self.leave = Some(Arc::new(move |stage| Work::of(leave(stage))));
        self
    }

    /// What it does with what succeeded when it was entered before. A retry keeps that in any case.
    pub fn revisit(mut self, revisit: Revisit) -> Self {
        self.revisit = revisit;
        self
    }

    /// What becomes of its body when the process ends while an effect of it is under way. One that only waits goes on in any case.
    pub fn on_interrupt(mut self, interrupt: Interrupt) -> Self {
        self.interrupt = interrupt;
        self
    }

    /// How long its body may take, waits, retries and restarts included; as long as it likes by default. Zero is no limit, too.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
        self
    }

    /// Its body is tried again by itself so often when it fails, panics or takes too long, before the stage is shown as failed. Each try
    /// is a visit that keeps what succeeded, as when a person tries again.
    pub fn retries(mut self, retries: u32, backoff: Backoff) -> Self {
        self.retries = retries;
        self.backoff = backoff;
        self
    }

    /// Takes back what a visit of the stage did, when the guide is rolled back: called once per visit that was left by `next`, newest
    /// first, and again while it fails. It may come twice, if the process ends while it runs.
    pub fn undo<F, E>(mut self, undo: impl Fn(Undone<S>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: StepError + 'static,
    {
        self.undo = Some(Arc::new(move |undone| {
            let undoing = undo(undone);
            Box::pin(async move { undoing.await.map_err(StepError::boxed) })
        }));
        self
    }

    /// Takes back what one step of the body did, given what the step gave: `.undo_step("create_repo", |repo: Repo, _| ..)`. The step is
    /// named by its place in the body, as in the history without numbers: `publish/docs/write`, `repos[]/make`. When the guide is
    /// rolled back it is called once for each time that the step succeeded, in its turn among the other undos, newest first.
    pub fn undo_step<T, F, E>(
        self,
        place: impl Into<String>,
        undo: impl Fn(T, Undone<S>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        T: DeserializeOwned,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: StepError + 'static,
    {
        self.undoes(place.into(), false, move |output, undone| {
            let output = output.ok_or("what the step gave is not known")?;
            Ok(undo(serde_json::from_slice(&output)?, undone))
        })
    }

    /// The same, also when it is not known whether the step did anything: then it is given `None`. So it is when the step failed, or
    /// was cut off. It costs a commit before the step begins.
    pub fn undo_step_unknown<T, F, E>(
        self,
        place: impl Into<String>,
        undo: impl Fn(Option<T>, Undone<S>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        T: DeserializeOwned,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: StepError + 'static,
    {
        self.undoes(place.into(), true, move |output, undone| {
            let output = output.map(|output| serde_json::from_slice(&output));
            Ok(undo(output.transpose()?, undone))
        })
    }

    /// The same, as `#[guided]` has it from `#[step(undo(..))]` in the stage's code: the undo, and whether it is also called when it is
    /// not known whether the step did anything.
    #[doc(hidden)]
    pub fn undo_site<A, H>(self, place: &str, (undo, unknown): (H, bool)) -> Self
    where
        A: UndoneWith<S>,
        H: UndoFn<A> + Clone + Send + Sync + 'static,
        S: FlowState,
    {
        self.undoes(place.to_owned(), unknown, move |output, undone| {
            if output.is_none() && !unknown {
                return Err("what the step gave is not known".into());
            }
            let mut states = States::default();
            states.insert(undone);
            undo.clone().call(UndoArgs::of(output, states))
        })
    }

    fn undoes<F, E>(
        mut self,
        place: String,
        unknown: bool,
        undo: impl Fn(Option<Bytes>, Undone<S>) -> Result<F, BoxError> + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: StepError + 'static,
    {
        self.steps.push(UndoneStep {
            place,
            unknown,
            undo: Arc::new(move |output, undone| {
                let undoing = undo(output, undone)?;
                Ok(Box::pin(
                    async move { undoing.await.map_err(StepError::boxed) },
                ))
            }),
            path: "",
            within: "",
        });
        self
    }

    /// Its undo is called also for visits that were not left by `next`: what they did is not known to be whole.
    pub fn undo_unfinished(mut self) -> Self {
        self.undo_unfinished = true;
        self
    }

    /// It may be passed over, and has guards that could not be asked then.
    fn asks_on_the_way(&self) -> bool {
        let asks = |guard: &Guard<S>| matches!(guard, Guard::Asks(_));
        self.when.is_some() && self.exits.iter().any(asks)
    }

    fn into_hooks(mut self, flow: &str) -> Hooks<S> {
        for step in &mut self.steps {
            let within = format!("{flow}/{}[]/{}", self.node.name, step.place);
            step.within = Box::leak(within.into_boxed_str());
            step.path = &step.within[flow.len() + 1..];
        }
        Hooks {
            steps: self.steps,
            name: StageName::new(self.node.name.into_owned()),
            when: self.when,
            exits: self.exits,
            checks: self.checks,
            asks: self.asks,
            body: self.body,
            leave: self.leave,
            revisit: self.revisit,
            interrupt: self.interrupt,
            timeout: self.timeout,
            retries: self.retries,
            backoff: self.backoff,
            undo: self.undo,
            undo_unfinished: self.undo_unfinished,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::faults::Fault;
    use super::*;

    // GDE-DEF-11
    #[test]
    fn a_flow_with_several_mistakes_is_not_built_and_all_are_told() {
        let flow = Flow::<u32>::builder("f")
            .stage(stage("a").to_if("b", |n| *n > 0))
            .stage(stage("b").to("dnoe"))
            .stage(stage("done").terminal().skippable())
            .build();
        let faults = flow.unwrap_err();
        let kinds = faults.faults();
        assert_eq!(faults.flow(), "f");
        assert_eq!(kinds.len(), 4, "{faults}");
        assert!(kinds.contains(&Fault::NoStart));
        assert!(kinds.contains(&Fault::MayGetStuck { stage: "a".into() }));
        assert!(kinds.contains(&Fault::SkippableTerminal {
            stage: "done".into()
        }));
        assert!(
            faults.to_string().contains("did you mean `done`?"),
            "{faults}"
        );
    }

    // GDE-NAV-29
    #[test]
    fn a_flow_without_stages_is_not_built() {
        let faults = Flow::<u32>::builder("f").build().unwrap_err();
        assert_eq!(faults.faults(), [Fault::NoStart, Fault::NoTerminal]);
    }
}
