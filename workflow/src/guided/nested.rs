//! A flow in a stage of another: in place, with positions of its own below the stage's visit.
//!
//! 1. It is the same loop as that of a guide, driven by the code of the stage: what awaits it is over when the flow is.
//! 2. What it says goes with what the flow around it says, in one batch.
//! 3. A command goes to the innermost flow. What has no place there falls outward: `back` at its first stage, `next` at its end.
//! 4. In a workflow it is a child run, which is driven by whoever opens it by its id.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use serde_json::Value;

use super::decide::Asked;
use super::desk::{Answer, Answering, Desk, Key};
use super::doing::all_of as all_failures;
use super::flow::{Flow, FlowState};
use super::levels::{Editing, Levels, Pressed, Within};
use super::migrate::{Unfit, migrated};
use super::position::{Event, Failing, FailingKind, Snapshot, StageName, Status};
use super::refused::Refused;
use super::run::{Guide, INITIAL, guarded};
use super::stage::Undone;
use super::standing::Newest;
use super::undoing::{Due, Unmade};
use crate::codec::BoxError;
use crate::context::{
    Asking, BoxFut, Cancellation, ChildOf, Claimed, Cx, Durable, Input, Once, guiding,
};
use crate::replay::{Failure, FailureKind, Finished, Kind, Location, Site};

/// A flow that may be in stages of another, whatever its data is.
pub(super) trait AnyFlow: Send + Sync {
    fn name(&self) -> &str;
    fn version(&self) -> u32;
    /// Those that may be in stages of it.
    fn nests(&self) -> &BTreeMap<String, Arc<dyn AnyFlow>>;
    /// What a visit of its stage, or a step of one, is undone by: named as in the ledger of a run of this flow. Nothing when this code
    /// has no undo for it.
    fn undo(&self, name: &str) -> Option<Unmade>;
    /// A recorded position of another version, as this version has it.
    fn migrate<'a>(
        &'a self,
        recorded: Snapshot<Value>,
        token: &'a Cancellation,
    ) -> BoxFut<'a, Result<Snapshot<Value>, Unfit>>;
}

impl<S: FlowState> AnyFlow for Flow<S> {
    fn name(&self) -> &str {
        self.name()
    }

    fn version(&self) -> u32 {
        self.version()
    }

    fn nests(&self) -> &BTreeMap<String, Arc<dyn AnyFlow>> {
        &self.plan().nests
    }

    fn undo(&self, name: &str) -> Option<Unmade> {
        let mut stages = self.plan().stages.iter();
        stages.find_map(|hooks| {
            let stage = hooks.name.clone();
            if stage == *name {
                let undo = hooks.undo.clone()?;
                return Some(Unmade {
                    of_step: false,
                    unfinished: hooks.undo_unfinished,
                    undo: Arc::new(move |due| Ok(undo(undone(&stage, due)?.1))),
                });
            }
            let step = hooks.steps.iter().find(|step| step.path == name)?;
            let undo = Arc::clone(&step.undo);
            Some(Unmade {
                of_step: true,
                unfinished: true,
                undo: Arc::new(move |due| {
                    let (output, undone) = undone(&stage, due)?;
                    undo(output, undone)
                }),
            })
        })
    }

    fn migrate<'a>(
        &'a self,
        recorded: Snapshot<Value>,
        token: &'a Cancellation,
    ) -> BoxFut<'a, Result<Snapshot<Value>, Unfit>> {
        Box::pin(async move {
            let (version, input) = (recorded.position.version, recorded.state.clone());
            let Snapshot {
                position, state, ..
            } = migrated(self, recorded, input, token).await?;
            let state = serde_json::to_value(&state).map_err(|error| Unfit::Failed {
                flow: self.name().to_owned(),
                from: version,
                detail: error.to_string(),
            })?;
            Ok(Snapshot {
                position,
                state,
                began: None,
                initial: None,
            })
        })
    }
}

/// What an undo is given, with the data as its flow has it.
fn undone<S: FlowState>(
    stage: &StageName,
    due: Due,
) -> Result<(Option<Bytes>, Undone<S>), BoxError> {
    let undone = Undone {
        stage: stage.clone(),
        visit: due.visit,
        step: due.step,
        finished: due.finished,
        state: serde_json::from_value(due.state)?,
    };
    Ok((due.output, undone))
}

/// All flows that may be in stages of a flow, however deep, with those that are declared twice once.
pub(super) fn all_of(nests: &BTreeMap<String, Arc<dyn AnyFlow>>) -> Vec<Arc<dyn AnyFlow>> {
    let mut found: Vec<Arc<dyn AnyFlow>> = Vec::new();
    let mut next: Vec<_> = nests.values().cloned().collect();
    while let Some(flow) = next.pop() {
        if !found.iter().any(|known| known.name() == flow.name()) {
            next.extend(flow.nests().values().cloned());
            found.push(flow);
        }
    }
    found
}

impl<S: FlowState> Flow<S> {
    /// A guide of this flow in durable code: what awaits it goes on when the person has come to its end, and gets the data they gave.
    ///
    /// [`guide!`](crate::guide!) is this with a name of its own, and without the flow where its data says which it is.
    ///
    /// In the code of a stage it runs in place: it is part of the guide that the stage is of, which shows it and leads through it, and
    /// that guide's flow declares it ([`FlowBuilder::nests`](super::FlowBuilder::nests)). In a workflow it is a child run, whose id is
    /// the parent's and the place of the call, and which is driven by whoever opens a guide of that id.
    ///
    /// When the person gives it up, and not what it is in, it ends with a failure of kind
    /// [`Cancelled`](crate::FailureKind::Cancelled).
    pub fn guide(&self, initial: S) -> Nest<S> {
        Nest {
            flow: self.clone(),
            initial,
        }
    }
}

/// A guide in durable code. Made by [`Flow::guide`].
#[must_use = "help: `.await` it in durable code: a flow that is not awaited is not gone through"]
pub struct Nest<S> {
    flow: Flow<S>,
    initial: S,
}

impl<S> fmt::Debug for Nest<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Nest").field(&self.flow).finish()
    }
}

#[diagnostic::do_not_recommend]
impl<S: FlowState> Once for Nest<S> {}

#[diagnostic::do_not_recommend]
impl<S: FlowState> Durable for Nest<S> {
    type Output = Result<S, Failure>;
    type Future = Nesting<S>;

    fn run(self, cx: &Cx, site: &'static Site) -> Nesting<S> {
        let Some(levels) = guiding::shared(cx).and_then(|shared| shared.downcast().ok()) else {
            let input = Input::new().field(INITIAL, &self.initial);
            // The names of what an engine knows live as long as the program.
            let name = Box::leak(self.flow.name().to_owned().into_boxed_str());
            return Nesting(Doing::Child(ChildOf::new(cx, site, name, input)));
        };
        Nesting(Doing::Here(Box::new(Here {
            asking: Asking::new(cx, site, Kind::Guide),
            flow: self.flow,
            initial: Some(self.initial),
            levels,
            claimed: None,
            inner: None,
            ended: None,
        })))
    }
}

/// A guide in durable code, under way.
#[must_use = "futures do nothing unless polled"]
pub struct Nesting<S: FlowState>(Doing<S>);

impl<S: FlowState> fmt::Debug for Nesting<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nesting").finish_non_exhaustive()
    }
}

enum Doing<S: FlowState> {
    Child(ChildOf<S>),
    Here(Box<Here<S>>),
}

/// A flow that is gone through in place.
struct Here<S: FlowState> {
    asking: Asking<S>,
    flow: Flow<S>,
    initial: Option<S>,
    levels: Arc<Levels>,
    claimed: Option<Claimed<S>>,
    inner: Option<(Location, Arc<Mutex<Guide<S>>>)>,
    /// How it ended.
    ended: Option<Result<S, (FailureKind, String)>>,
}

/// Nothing in it is pinned.
impl<S: FlowState> Unpin for Nesting<S> {}

impl<S: FlowState> Future for Nesting<S> {
    type Output = Result<S, Failure>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Doing::Child(child) => Pin::new(child).poll(task),
            Doing::Here(here) => here.poll(task),
        }
    }
}

impl<S: FlowState> Here<S> {
    fn poll(&mut self, task: &mut Context<'_>) -> Poll<Result<S, Failure>> {
        let claimed = &mut self.claimed;
        if let Poll::Ready(outcome) = self.asking.poll(task, |claim| *claimed = Some(claim)) {
            self.leave(task);
            return Poll::Ready(outcome);
        }
        if self.inner.is_none()
            && self.ended.is_none()
            && let Some(initial) = self.initial.take()
        {
            self.enter(initial);
        }
        if self.ended.is_none()
            && let Some((base, inner)) = &self.inner
        {
            self.levels.polled_by(base, task.waker());
            let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
            match inner.poll(task) {
                Poll::Pending => {}
                Poll::Ready(Ok(Finished::Cancelled)) => {
                    let text = format!("the flow `{}` was given up", self.flow.name());
                    self.ended = Some(Err((FailureKind::Cancelled, text)));
                }
                Poll::Ready(Ok(_)) => self.ended = Some(Ok(inner.now.state.clone())),
                Poll::Ready(Err(park)) => self.asking.park(park),
            }
        }
        if let Some(ended) = &self.ended
            && let Some(claimed) = self.claimed.take()
        {
            claimed.answer(match ended {
                Ok(state) => Ok(state),
                Err(failure) => Err(failure.clone()),
            });
            if let Some((base, _)) = &self.inner {
                self.levels.leave(base);
            }
        }
        Poll::Pending
    }

    fn enter(&mut self, initial: S) {
        // Where it has an outcome, that only has to come.
        let Some(ground) = self.asking.below() else {
            return;
        };
        if !self.levels.is_declared(self.flow.name()) {
            let name = self.flow.name();
            let text = format!(
                "the flow `{name}` is not declared where it is used: `nests(..)` in the `#[guided]` of the flow around it, with the type of its data; \
                 or `.nests(&{name})` on its builder"
            );
            self.ended = Some(Err((FailureKind::Critical, text)));
            return;
        }
        let base = ground.base().clone();
        let desk = Arc::new(Desk::within(Arc::clone(&self.levels)));
        let newest = match ground.position::<Snapshot<S>>() {
            Ok(newest) => newest.map_or(Newest::None(initial), Newest::Recorded),
            Err(park) => return self.asking.park(park),
        };
        match Guide::open(ground, self.flow.clone(), desk, newest) {
            Ok(guide) => {
                let inner = Arc::new(Mutex::new(guide));
                let shared: Arc<Mutex<dyn Within>> = inner.clone();
                self.levels.enter(base.clone(), shared);
                {
                    let inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
                    // What is not durable yet is shown when it is.
                    if inner.has_durable() {
                        inner.show();
                    }
                }
                self.inner = Some((base, inner));
            }
            Err(park) => self.asking.park(park),
        }
    }

    /// It is over: whoever waits for what it said is told.
    fn leave(&mut self, task: &Context<'_>) {
        if let Some((base, inner)) = self.inner.take() {
            let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.poll_committing(task);
            self.levels.leave(&base);
            self.levels.operations.only(&base, None);
        }
    }
}

impl<S: FlowState> Drop for Here<S> {
    fn drop(&mut self) {
        if let Some((base, inner)) = self.inner.take() {
            self.levels.leave(&base);
            self.levels.operations.only(&base, None);
            if let Ok(inner) = inner.try_lock() {
                // It is written with whatever it was left for.
                self.levels.tells(&base, inner.not_durable());
            }
            // Whoever holds it asks it nothing any more.
            if let Ok(mut inner) = inner.try_lock() {
                inner.doing = None;
            }
        }
    }
}

impl<S: FlowState> Within for Guide<S> {
    fn press(&mut self, press: Pressed, over: bool) -> Option<Pressed> {
        self.catch_up();
        let at_start = self.now.position.history().nth(1).is_none();
        if over {
            if at_start {
                return Some(press);
            }
            for given_up in self.give_up(WENT_BACK) {
                let _ = given_up.send(Err(Refused::Busy));
            }
            self.back(press.answering, press.key);
            return None;
        }
        let asked = press.asked;
        if asked == Asked::Back && at_start && self.admit(asked).is_ok() {
            return Some(press);
        }
        let Pressed {
            with,
            answering,
            key,
            ..
        } = press;
        if let Err(refused) = self.admit(asked) {
            // Whoever asked may have gone.
            let _ = answering.send(Err(refused));
            return None;
        }
        match asked {
            Asked::Next => self.next(answering, key),
            Asked::Back => self.back(answering, key),
            Asked::Skip => self.skip(answering, key),
            Asked::Retry | Asked::Resume => self.retry(answering, key),
            Asked::Release => self.release(with.unwrap_or_default(), answering, key),
            _ => self.check(answering, key),
        }
        None
    }

    fn edit(&mut self, edit: Editing, answering: Answering, key: Key) {
        self.catch_up();
        if let Err(refused) = self.admit(Asked::Edit) {
            let _ = answering.send(Err(refused));
            return;
        }
        let mut state = self.now.state.clone();
        let edited = guarded(|| edit(&mut state as &mut dyn Any));
        match edited {
            Ok(true) => {
                let next = self.course().edited();
                let answer = Ok(Answer::Revision(next.revision));
                self.write(next, state, Some((answering, answer)), key);
            }
            Ok(false) => self.owe(answering, Err(Refused::NotThere)),
            Err(refused) => self.owe(answering, Err(refused)),
        }
    }

    fn ask_exit(&mut self) -> Option<BoxFut<'static, bool>> {
        let guard = self.flow.plan().exit.clone()?;
        let state = self.now.state.clone();
        Some(guard(state))
    }

    fn cancelled(&mut self, answering: Vec<(Answering, Key)>) {
        self.catch_up();
        let given_up = self.give_up(CANCELLED);
        let next = self.course().cancelled(self.ground.now());
        let revision = next.revision;
        let state = self.now.state.clone();
        let key = answering.iter().find_map(|(_, key)| key.clone());
        let written = self.commit(next, state, key, false);
        for (answering, _) in answering {
            let answer = written.clone().map(|()| Answer::Revision(revision));
            self.owe(answering, answer);
        }
        for answering in given_up {
            self.owe(answering, Err(Refused::Cancelled));
        }
    }

    fn interrupted(&mut self, effects: &[Location]) {
        self.catch_up();
        self.cut_off(effects);
    }

    fn unwritten(&mut self, error: &str) {
        Guide::unwritten(self, error);
    }

    fn untold(&mut self) -> Vec<Event> {
        self.not_durable()
    }

    fn answer_to(&self, key: &str) -> Option<u64> {
        self.now.position.answer_to(key)
    }
}

/// What a failure is for the stage that it ends: one of kind `Cancelled` says that the flow in it was given up; and what only waits for
/// somebody, in all its branches, has not failed.
pub(super) fn kind_of(failure: Option<&Failure>) -> FailingKind {
    let Some(failure) = failure else {
        return FailingKind::Error;
    };
    let all = all_failures(failure);
    if failure.kind() == FailureKind::Cancelled {
        FailingKind::NestedCancelled
    } else if all.iter().all(|it| it.kind() == FailureKind::Blocked) {
        FailingKind::Blocked
    } else {
        FailingKind::Error
    }
}

/// Why the operations of a guide that is given up are cancelled.
pub(super) const CANCELLED: &str = "the guide was cancelled";

/// Why those of a stage are that the person goes back from.
pub(super) const WENT_BACK: &str = "the person went back";

/// Whether the stage that the guide is at failed because the flow in it was given up.
pub(super) fn was_given_up(status: Status, failure: Option<&Failing>) -> bool {
    let given_up = |failing: &Failing| failing.kind == FailingKind::NestedCancelled;
    status == Status::Failed && failure.is_some_and(given_up)
}

/// Calls an undo. A panic in it is a failure.
pub(super) fn begin(
    unmade: &Unmade,
    due: Due,
) -> Result<BoxFut<'static, Result<(), BoxError>>, BoxError> {
    let begun = catch_unwind(AssertUnwindSafe(|| (unmade.undo)(due)));
    begun.unwrap_or_else(|panic| Err(super::run::said(&*panic).into()))
}
