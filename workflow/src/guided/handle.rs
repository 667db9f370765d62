//! What a driver holds of a guide.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use serde::Serialize;
use tokio::sync::{oneshot, watch};

use super::desk::{Answer, Ask, Command, Desk, Laid, Shown};
use super::flow::{Flow, FlowState};
use super::key::{Guided, StageKey};
use super::migrate::{self, Unfit};
use super::observing::{Heard, Observer, Told};
use super::position::{Problem, StageName};
use super::refused::Refused;
use super::reopening::Reopening;
use super::view::View;
use super::{run, standing};
use crate::context::{self, Input};
use crate::engine::{Engine, EngineBuilder, Entry, StartError};
use crate::replay::{InvalidRunId, Location, RunId, RunKey, Site};
use crate::store::{Loaded, StoreError};

/// Why a guide was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The id cannot be one.
    #[error(transparent)]
    InvalidId(#[from] InvalidRunId),
    /// There is a guide of that id already, or there was.
    #[error("a guide `{id}` was started before")]
    AlreadyStarted {
        /// The id.
        id: RunId,
    },
    /// What has that id is something else.
    #[error("`{id}` is a run of `{existing}`, and not of the flow `{requested}`")]
    OtherFlow {
        /// The id.
        id: RunId,
        /// What it is.
        existing: String,
        /// What was asked for.
        requested: String,
    },
    /// The engine does not know the flow.
    #[error("the flow `{flow}` is not registered with this engine: `.guided(&flow)`")]
    NotRegistered {
        /// The flow.
        flow: String,
    },
    /// The run behind it could not be started.
    #[error(transparent)]
    Start(StartError),
    /// What is recorded of it does not decode. Nothing was written.
    #[error("what is recorded of guide `{id}` does not decode: {detail}")]
    Corrupt {
        /// The id.
        id: RunId,
        /// Why not.
        detail: String,
    },
    /// It is of a version of its flow that this code does not come from. Nothing of it was changed.
    #[error("guide `{id}` cannot go on: {}", migrate::needs(flow, *from, *to))]
    NeedsMigration {
        /// The id.
        id: RunId,
        /// The flow.
        flow: String,
        /// The version that recorded it.
        from: u32,
        /// The version of this code.
        to: u32,
    },
    /// A migration failed, or what it gave does not read as the person's data. Nothing of the guide was changed.
    #[error("guide `{id}` cannot go on: {}", migrate::failed(flow, *from, detail))]
    Migration {
        /// The id.
        id: RunId,
        /// The flow.
        flow: String,
        /// The version that the migration leads from.
        from: u32,
        /// What it says.
        detail: String,
    },
    /// It cannot be driven as things are.
    #[error("guide `{id}` cannot go on: {detail}")]
    Stopped {
        /// The id.
        id: RunId,
        /// Why not.
        detail: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl EngineBuilder {
    /// Adds the flow that `#[guided]` describes on this type.
    pub fn guide<F: Guided>(self) -> Self {
        self.flow(F::flow(), F::SITES)
    }

    /// Adds a flow.
    pub fn guided<S: FlowState>(self, flow: &Flow<S>) -> Self {
        self.flow(flow, &[])
    }

    fn flow<S: FlowState>(self, flow: &Flow<S>, sites: &'static [Site]) -> Self {
        // The names of what an engine knows live as long as the program, and so does a definition.
        let name = Box::leak(flow.name().to_owned().into_boxed_str());
        let of = flow.clone();
        self.entry(Entry {
            name,
            sites,
            path: std::any::type_name::<Flow<S>>(),
            states: Vec::new,
            run: Arc::new(move |args| Ok(run::body(&of, args))),
            // A guide undoes what it did by itself.
            undos: &[],
            alive: Some(Arc::new(standing::alive(flow))),
        })
    }
}

impl Engine {
    /// The guide with this id, through the flow that `#[guided]` describes on this type.
    pub fn guide<F: Guided>(&self, id: impl Into<String>) -> GuideAt<F, F::Stage> {
        GuideAt {
            engine: self.clone(),
            flow: F::flow().clone(),
            id: id.into(),
            stages: PhantomData,
        }
    }

    /// The guide with this id, whether it was started or not.
    pub fn guided<S: FlowState>(&self, flow: &Flow<S>, id: impl Into<String>) -> GuideAt<S> {
        GuideAt {
            engine: self.clone(),
            flow: flow.clone(),
            id: id.into(),
            stages: PhantomData,
        }
    }
}

/// A guide that is about to be opened or started. Made by [`Engine::guided`].
#[must_use = "help: open it with `.open()`, or start it with `.start(..)`"]
pub struct GuideAt<S, K = StageName> {
    engine: Engine,
    flow: Flow<S>,
    id: String,
    stages: PhantomData<fn() -> K>,
}

impl<S, K> fmt::Debug for GuideAt<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuideAt")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl<S: FlowState, K: StageKey> GuideAt<S, K> {
    /// Opens it where it stands; `None` when it was never started.
    ///
    /// # Errors
    /// [`OpenError`].
    ///
    /// # Cancel safety
    /// Nothing is changed by opening, so nothing is lost when this future is dropped.
    pub async fn open(self) -> Result<Option<Guide<S, K>>, OpenError> {
        let inner = &self.engine.inner;
        // A guide that a workflow waits for has the id of a child run, which nobody else could start.
        let id = RunId::from_stored(&self.id);
        let Some(row) = inner.store.find(&id).await? else {
            RunId::new(self.id.as_str())?;
            return Ok(None);
        };
        if row.workflow != self.flow.name() {
            return Err(OpenError::OtherFlow {
                id,
                existing: row.workflow,
                requested: self.flow.name().to_owned(),
            });
        }
        let guide = self.guide(id, row.key)?;
        if row.state.is_final() {
            guide.read().await?;
        }
        guide.ready().await.map(Some)
    }

    /// Starts it with this data. What it does first is durable when this returns; the body of its first stage may still run.
    ///
    /// # Errors
    /// [`OpenError::AlreadyStarted`], also when it has ended since; the others.
    ///
    /// # Cancel safety
    /// When this future is dropped, the guide may have been started or not.
    pub async fn start(self, state: S) -> Result<Guide<S, K>, OpenError> {
        let id = RunId::new(self.id.as_str())?;
        let entry = self.engine.inner.registry.get(self.flow.name());
        let entry = entry.ok_or_else(|| OpenError::NotRegistered {
            flow: self.flow.name().to_owned(),
        })?;
        let input = Input::new().field(run::INITIAL, &state);
        let (run, created) = match self.engine.begin_own(id.clone(), entry, input).await {
            Ok(begun) => begun,
            Err(StartError::OtherInput { id }) => return Err(OpenError::AlreadyStarted { id }),
            Err(StartError::OtherWorkflow { id, existing, .. }) => {
                let requested = self.flow.name().to_owned();
                return Err(OpenError::OtherFlow {
                    id,
                    existing,
                    requested,
                });
            }
            Err(error) => return Err(OpenError::Start(error)),
        };
        if !created {
            return Err(OpenError::AlreadyStarted { id });
        }
        self.guide(id, run)?.ready().await
    }

    /// Opens it, or starts it with what `state` gives when it was never started.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open_or_start(self, state: impl FnOnce() -> S) -> Result<Guide<S, K>, OpenError> {
        let again = Self {
            engine: self.engine.clone(),
            flow: self.flow.clone(),
            id: self.id.clone(),
            stages: PhantomData,
        };
        let first = Self {
            engine: self.engine.clone(),
            flow: self.flow.clone(),
            id: self.id.clone(),
            stages: PhantomData,
        };
        if let Some(guide) = first.open().await? {
            return Ok(guide);
        }
        match self.start(state()).await {
            // Somebody else was faster.
            Err(OpenError::AlreadyStarted { id }) => match again.open().await? {
                Some(guide) => Ok(guide),
                None => Err(OpenError::AlreadyStarted { id }),
            },
            started => started,
        }
    }

    fn guide(&self, id: RunId, run: RunKey) -> Result<Guide<S, K>, OpenError> {
        let desk = self
            .engine
            .inner
            .desks
            .desk(run, || Arc::new(Desk::<S>::new()));
        let desk: Arc<dyn Any + Send + Sync> = desk;
        match desk.downcast::<Desk<S>>() {
            Ok(desk) => {
                desk.observers.know(&self.flow);
                Ok(Guide {
                    engine: self.engine.clone(),
                    flow: self.flow.clone(),
                    id,
                    run,
                    desk,
                    stages: PhantomData,
                })
            }
            Err(_) => Err(OpenError::OtherFlow {
                id,
                existing: "another flow of the same name".to_owned(),
                requested: self.flow.name().to_owned(),
            }),
        }
    }
}

/// A guide: one person's way through a flow. Cheap to clone; every clone is a driver, and so is every other handle on the same id.
/// Dropping it does nothing to the guide.
///
/// `K` is what its stages are called: [`StageName`], or the enum of a flow that is known at compile time.
pub struct Guide<S, K = StageName> {
    pub(super) engine: Engine,
    pub(super) flow: Flow<S>,
    pub(super) id: RunId,
    pub(super) run: RunKey,
    pub(super) desk: Arc<Desk<S>>,
    pub(super) stages: PhantomData<fn() -> K>,
}

impl<S, K> Clone for Guide<S, K> {
    fn clone(&self) -> Self {
        Self {
            engine: self.engine.clone(),
            flow: self.flow.clone(),
            id: self.id.clone(),
            run: self.run,
            desk: Arc::clone(&self.desk),
            stages: PhantomData,
        }
    }
}

impl<S, K> fmt::Debug for Guide<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guide")
            .field("flow", &self.flow)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Where a move led.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moved<K = StageName> {
    /// To this stage, whose body, if it has one, has ended well.
    To(K),
    /// To the end.
    Finished,
    /// A flow in the stage moved.
    Inside {
        /// The way to it.
        path: String,
        /// Its stage.
        to: StageName,
    },
}

impl<S: FlowState, K: StageKey> Guide<S, K> {
    /// The guide's id, which is that of its run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The guide as it stands. What is shown is durable.
    ///
    /// # Panics
    /// Never: a guide that was opened has a view.
    pub fn view(&self) -> Arc<View<S, K>> {
        let view = self.desk.view();
        typed(view.expect("a guide that was opened has a view"))
    }

    /// Follows the views, as they come. One that is slow sees the newest only: nothing waits for it.
    pub fn watch(&self) -> Changes<S, K> {
        Changes(self.desk.watch(), PhantomData)
    }

    /// Has somebody told of what happens from now on: beside the guide, which does not wait for it, and is not concerned when it fails.
    /// `Ok(ControlFlow::Break(()))` is enough of it.
    pub fn observe(&self, hears: impl FnMut(&Told<S>) -> Heard + Send + 'static) -> Observer {
        self.desk.observers.add(Box::new(hears))
    }

    /// Goes on to the next stage, or to the end.
    pub fn next(&self) -> Press<S, Moved<K>> {
        self.press(Command::Next, moved)
    }

    /// Goes back to the stage that was visited before this one.
    pub fn back(&self) -> Press<S, Moved<K>> {
        self.press(Command::Back, moved)
    }

    /// Passes this stage by, if it is skippable: neither its checks nor what it does when it is left are asked.
    pub fn skip(&self) -> Press<S, Moved<K>> {
        self.press(Command::Skip, moved)
    }

    /// Tries the body of the stage again, after it failed, or after something was found wrong.
    pub fn retry(&self) -> Press<S, Moved<K>> {
        self.press(Command::Retry, moved)
    }

    /// Goes on with a stage whose body was cut off when its process ended, keeping what succeeded: what [`retry`](Self::retry) does, and
    /// refused as [`Refused::NothingToResume`] when it failed for another reason.
    pub fn resume(&self) -> Press<S, Moved<K>> {
        self.press(Command::Resume, moved)
    }

    /// Lets an operation of the stage go on that is blocked, with what somebody says to it: the stage's code runs again, keeping what
    /// succeeded, and the step that was blocked finds `with` in [`CurrentStep::released`](crate::CurrentStep::released). It is recorded.
    /// Refused as [`Refused::NotBlocked`] when nothing is.
    pub fn release(&self, with: impl Serialize) -> Press<S, Moved<K>> {
        let command = match serde_json::to_string(&with) {
            Ok(json) => Command::Release(json),
            Err(error) => Command::Unfit(error.to_string()),
        };
        self.press(command, moved)
    }

    /// Asks the checks of the stage, and shows what they find. Gives it, too.
    pub fn check(&self) -> Press<S, Vec<Problem>> {
        self.press(Command::Check, |answer| match answer {
            Answer::Found(problems) => problems,
            _ => Vec::new(),
        })
    }

    /// Changes the person's data; gives the revision that has the change. Also while the body of a stage runs.
    pub fn edit(&self, edit: impl FnOnce(&mut S) + Send + 'static) -> Press<S, u64> {
        self.press(Command::Edit(Box::new(edit)), revision)
    }

    /// Gives the guide up, whatever it is at; gives the last revision.
    pub fn cancel(&self) -> Press<S, u64> {
        self.press(Command::Cancel, revision)
    }

    /// Undoes what the guide did, newest first, and takes it back to before it began; gives the revision that is there then. What keeps
    /// failing is told, and may be tried again: what was undone by then is not undone again.
    pub fn rollback(&self) -> Press<S, u64> {
        self.press(Command::Rollback, revision)
    }

    /// Passes over the undo at which a rollback stands, because it keeps failing or this code does not have it, and goes on with the
    /// others. `reason` is recorded. [`View::failure`](field@View::failure) says which it is.
    pub fn skip_undo(&self, reason: impl Into<String>) -> Press<S, u64> {
        self.press(Command::SkipUndo(reason.into()), revision)
    }

    /// Begins again, after a rollback.
    pub fn start(&self, state: S) -> Press<S, Moved<K>> {
        self.press(Command::Start(state), moved)
    }

    /// A flow that is in a stage of this one, and whose data is a `T`: `path` is what the view says of it. It need not be there; what is
    /// asked of it then is refused.
    pub fn within<T: FlowState>(&self, path: impl Into<String>) -> Inside<S, T> {
        Inside {
            guide: self.untyped(),
            path: path.into(),
            data: PhantomData,
        }
    }

    /// Closes the guide in this process, for every handle on it: what runs is given up where it is, as when the process ends, and
    /// the view stays as it was. Commands that are under way, and later ones, get [`Refused::Closed`]. The guide itself is not changed:
    /// opened anew, it goes on.
    ///
    /// # Cancel safety
    /// It is closed from the first poll on. When this future ends, no code of the guide runs here any more, but for threads.
    pub async fn close(&self) {
        if !self.desk.close() {
            return;
        }
        let inner = &self.engine.inner;
        let desk: Arc<dyn context::Desk> = Arc::clone(&self.desk) as _;
        inner.desks.clear(self.run, &desk);
        inner.put_out(self.run).await;
    }

    /// The same guide, with its stages called by their names.
    fn untyped(&self) -> Guide<S> {
        Guide {
            engine: self.engine.clone(),
            flow: self.flow.clone(),
            id: self.id.clone(),
            run: self.run,
            desk: Arc::clone(&self.desk),
            stages: PhantomData,
        }
    }

    fn press<T>(&self, command: Command<S>, read: fn(Answer) -> T) -> Press<S, T> {
        Press {
            guide: self.untyped(),
            command,
            at: None,
            key: None,
            read,
            gives: PhantomData,
        }
    }

    /// Waits until there is something to show.
    async fn ready(self) -> Result<Self, OpenError> {
        let _opener = self.desk.opener();
        let mut shown = self.desk.watch();
        if self.desk.view().is_none() {
            if self.engine.inner.is_closing() {
                let detail = "the engine is shutting down".to_owned();
                return Err(OpenError::Stopped {
                    id: self.id,
                    detail,
                });
            }
            // What stopped it before may have been mended.
            self.desk.call_back();
            self.engine.inner.wake(self.run);
        }
        let stopped = {
            // The desk is held, so its end of the channel is there.
            let known = |shown: &Shown<S>| shown.view.is_some() || shown.stopped.is_some();
            let Ok(shown) = shown.wait_for(known).await else {
                return Ok(self);
            };
            match &shown.view {
                Some(_) => None,
                None => shown.stopped.clone().map(|why| (why, shown.unfit.clone())),
            }
        };
        match stopped {
            Some((detail, unfit)) => Err(unfit_or(self.id.clone(), unfit, detail)),
            None => Ok(self),
        }
    }

    async fn answered(
        &self,
        answered: oneshot::Receiver<Result<Answer, Refused>>,
    ) -> Result<Answer, Refused> {
        if let Ok(answer) = answered.await {
            return answer;
        }
        if self.desk.is_closed() {
            return Err(Refused::Closed);
        }
        let stopped = self.desk.stopped();
        let why = stopped.unwrap_or_else(|| "it was taken out of memory".to_owned());
        Err(Refused::Stopped(why))
    }

    /// Shows what the store has of a guide that has ended.
    async fn read(&self) -> Result<(), OpenError> {
        let inner = &self.engine.inner;
        let loaded = inner.store.load(self.run).await?;
        let (history, published) = match loaded {
            Some(Loaded { row, history }) => (history, row.progress),
            None => (Vec::new(), None),
        };
        let view = standing::stored(&self.flow, &*inner.codec, &history, published.as_deref());
        let view = view.await;
        let corrupt = |detail: String| OpenError::Corrupt {
            id: self.id.clone(),
            detail,
        };
        match view {
            Ok(Some(Ok(view))) => self.desk.show_stored(view),
            Ok(Some(Err(unfit))) => {
                let detail = unfit.to_string();
                return Err(unfit_or(self.id.clone(), Some(unfit), detail));
            }
            Ok(None) => return Err(corrupt("it has no position".to_owned())),
            Err(error) => return Err(corrupt(error.to_string())),
        }
        Ok(())
    }
}

/// Why a guide was not opened, when it is for the version of its flow, or for something else.
fn unfit_or(id: RunId, unfit: Option<Unfit>, detail: String) -> OpenError {
    match unfit {
        Some(Unfit::Needs { flow, from, to }) => OpenError::NeedsMigration { id, flow, from, to },
        Some(Unfit::Failed { flow, from, detail }) => OpenError::Migration {
            id,
            flow,
            from,
            detail,
        },
        Some(Unfit::GivenUp { .. }) | None => OpenError::Stopped { id, detail },
    }
}

fn moved<K: StageKey>(answer: Answer) -> Moved<K> {
    match answer {
        Answer::At(Some(stage)) => {
            Moved::To(K::of(&stage).expect("a guide moves to stages of its flow"))
        }
        Answer::Inside(path, to) => Moved::Inside { path, to },
        _ => Moved::Finished,
    }
}

/// The view as a driver has it: the same one, if its stages are called by their names.
fn typed<S: FlowState, K: StageKey>(view: Arc<View<S>>) -> Arc<View<S, K>> {
    let any: Arc<dyn Any + Send + Sync> = Arc::clone(&view) as _;
    any.downcast().unwrap_or_else(|_| Arc::new(view.typed()))
}

fn revision(answer: Answer) -> u64 {
    match answer {
        Answer::Revision(revision) => revision,
        _ => 0,
    }
}

/// A command, given when it is awaited. It gives when it is durable, and when the body of the stage that it led to has ended.
///
/// # Cancel safety
/// Once awaited, the command is given: dropping the future then does not take it back.
#[must_use = "help: `.await` it: a command that is not awaited is not given"]
pub struct Press<S, T> {
    guide: Guide<S>,
    command: Command<S>,
    at: Option<u64>,
    key: Option<String>,
    read: fn(Answer) -> T,
    gives: PhantomData<fn() -> T>,
}

impl<S, T> Press<S, T> {
    /// The revision that it was decided on, as the view shows it: if the guide has moved since, the command is refused as
    /// [`Refused::Stale`]. So a button that is pressed twice moves once.
    pub fn at(mut self, revision: u64) -> Self {
        self.at = Some(revision);
        self
    }

    /// A key of yours. A second command with it is not obeyed: it is told where the guide is. The guide remembers its last 64 keys.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
}

impl<S, T> fmt::Debug for Press<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Press")
            .field("command", &self.command.asked())
            .finish_non_exhaustive()
    }
}

impl<S: FlowState, T: 'static> Press<S, T> {
    async fn give(self) -> Result<T, Refused> {
        let Self {
            guide,
            command,
            at,
            key,
            read,
            ..
        } = self;
        if guide.engine.inner.is_closing() && !guide.desk.is_closed() {
            return Err(Refused::Stopped("the engine is shutting down".to_owned()));
        }
        if let Command::Unfit(why) = command {
            return Err(Refused::Encode(why));
        }
        let asked = command.asked();
        let (answer, answered) = oneshot::channel();
        let (at, key) = match guide.reopen(asked, at, key).await? {
            Reopening::None(at, key) => (at, key),
            // What it was asked for is in its position.
            Reopening::RollsBack(held) => {
                guide.desk.levels.wait(&Location::root(), answer);
                drop(held);
                guide.engine.inner.wake(guide.run);
                return guide.answered(answered).await.map(read);
            }
        };
        let laid = guide.desk.lay(Ask {
            command,
            at,
            key,
            answer,
        });
        match laid {
            Laid::Taken => {}
            Laid::Away => guide.engine.inner.wake(guide.run),
            Laid::Closed => return Err(Refused::Closed),
            Laid::Over(status) => {
                return Err(asked.admit(status).err().unwrap_or(Refused::Finished));
            }
        }
        guide.answered(answered).await.map(read)
    }
}

impl<S: FlowState, T: 'static> IntoFuture for Press<S, T> {
    type Output = Result<T, Refused>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.give())
    }
}

/// A flow in a stage of a guide. Made by [`Guide::within`].
pub struct Inside<S, T> {
    guide: Guide<S>,
    path: String,
    data: PhantomData<fn() -> T>,
}

impl<S, T> fmt::Debug for Inside<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside")
            .field("guide", &self.guide)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl<S: FlowState, T: FlowState> Inside<S, T> {
    /// It as it stands, if it is there and its data is a `T`.
    pub fn view(&self) -> Option<Arc<View<T>>> {
        let level = self.guide.desk.levels.at(&self.path)?;
        let (_, view) = level.shows?;
        view.downcast().ok()
    }

    /// Changes the person's data in it.
    pub fn edit(&self, edit: impl FnOnce(&mut T) + Send + 'static) -> Press<S, u64> {
        let edit = Box::new(move |data: &mut dyn Any| {
            let data = data.downcast_mut();
            data.map(edit).is_some()
        });
        let command = Command::EditWithin(self.path.clone(), edit);
        self.guide.press(command, revision)
    }

    /// Gives it up, and not what it is in: the code that awaits it gets a failure.
    pub fn cancel(&self) -> Press<S, u64> {
        let command = Command::CancelWithin(self.path.clone());
        self.guide.press(command, revision)
    }
}

/// The views of a guide, as they come. Made by [`Guide::watch`].
pub struct Changes<S, K = StageName>(watch::Receiver<Shown<S>>, PhantomData<fn() -> K>);

impl<S, K> fmt::Debug for Changes<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").finish_non_exhaustive()
    }
}

impl<S: FlowState, K: StageKey> Changes<S, K> {
    /// The next view that was not given yet; `None` when the guide is gone, or was closed.
    ///
    /// # Cancel safety
    /// Nothing is lost when this future is dropped.
    pub async fn next(&mut self) -> Option<Arc<View<S, K>>> {
        loop {
            self.0.changed().await.ok()?;
            let shown = self.0.borrow_and_update();
            if shown.closed {
                return None;
            }
            if let Some(view) = shown.view.clone() {
                return Some(typed(view));
            }
        }
    }
}

/// What the desk has to be for the engine to keep it.
#[expect(dead_code, reason = "its bounds are what matters")]
fn a_desk_is_one<S: FlowState>(desk: Arc<Desk<S>>) -> Arc<dyn context::Desk> {
    desk
}
