//! What the code of a stage is given, and what it gives.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use super::flow::FlowState;
use super::position::{Entry, StageName};
use crate::codec::BoxError;
use crate::context::{Asking, BoxFut, Claimed, Cx, Durable, Fragment, StepError, guiding};
use crate::replay::{Failure, Kind, Site};

/// What the code of a stage is given: the person's data, and why the code runs.
///
/// The data is as it was when the code began, but for what the code itself changed with [`edit`](Self::edit) or looked at again with
/// [`refresh`](Self::refresh): so the code comes out the same when it is replayed, whatever is edited beside it.
pub struct Stage<S> {
    pub(super) name: StageName,
    pub(super) visit: u32,
    pub(super) entry: Entry,
    pub(super) state: S,
    pub(super) wishes: Arc<Wishes<S>>,
}

impl<S> fmt::Debug for Stage<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage")
            .field("name", &self.name)
            .field("visit", &self.visit)
            .field("entry", &self.entry)
            .finish_non_exhaustive()
    }
}

impl<S> Stage<S> {
    /// The stage's name.
    pub fn name(&self) -> &StageName {
        &self.name
    }

    /// How many times the stage was entered or tried again, this time included.
    pub fn visit(&self) -> u32 {
        self.visit
    }

    /// Why it runs.
    pub fn entry(&self) -> Entry {
        self.entry
    }

    /// The person's data.
    pub fn state(&self) -> &S {
        &self.state
    }
}

impl<S: FlowState> Stage<S> {
    /// The same, for other code.
    pub(super) fn again(&self) -> Self {
        Self {
            name: self.name.clone(),
            visit: self.visit,
            entry: self.entry,
            state: self.state.clone(),
            wishes: Arc::clone(&self.wishes),
        }
    }

    /// Changes the person's data, as it is by then, in its turn among the edits of others: `stage.edit(|form| ..).await?` in the
    /// code of the stage.
    pub fn edit(&mut self, edit: impl FnOnce(&mut S) + Send + 'static) -> Edit<'_, S> {
        Edit {
            stage: self,
            wish: Wish::Edit(Box::new(edit)),
        }
    }

    /// Looks at the person's data again: what was edited since the code began shows from then on.
    pub fn refresh(&mut self) -> Edit<'_, S> {
        Edit {
            stage: self,
            wish: Wish::Look,
        }
    }
}

/// A visit of a stage that is to be undone, or a step of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Undone<S> {
    /// The stage.
    pub stage: StageName,
    /// Which visit of it.
    pub visit: u32,
    /// The step, as `create[1]/publish`; absent when it is the visit.
    pub step: Option<String>,
    /// Whether the visit was left by `next`, or the step succeeded.
    pub finished: bool,
    /// The person's data, as it is before the rollback takes it back.
    pub state: S,
}

/// What the code of a stage asks of the loop.
pub(super) enum Wish<S> {
    Edit(Box<dyn FnOnce(&mut S) + Send>),
    Look,
}

/// What the code of a stage asks of the loop, until it is answered.
pub(super) struct Wishes<S>(Mutex<VecDeque<(Wish<S>, Claimed<S>)>>);

impl<S> Wishes<S> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    pub(super) fn take(&self) -> Option<(Wish<S>, Claimed<S>)> {
        self.wishes().pop_front()
    }

    /// Forgets what nobody waits for any more.
    pub(super) fn clear(&self) {
        let gone = std::mem::take(&mut *self.wishes());
        drop(gone);
    }

    fn wishes(&self) -> std::sync::MutexGuard<'_, VecDeque<(Wish<S>, Claimed<S>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A change of the person's data by the code of a stage, or a look at it.
#[must_use = "help: `.await` it: an edit that is not awaited is not made"]
pub struct Edit<'a, S> {
    stage: &'a mut Stage<S>,
    wish: Wish<S>,
}

/// The same, under way.
#[must_use = "futures do nothing unless polled"]
pub struct Editing<'a, S> {
    stage: &'a mut Stage<S>,
    wish: Option<Wish<S>>,
    asking: Asking<S>,
}

impl<S> fmt::Debug for Edit<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edit").finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for Editing<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Editing").finish_non_exhaustive()
    }
}

#[diagnostic::do_not_recommend]
impl<'a, S: FlowState> Durable for Edit<'a, S> {
    type Output = Result<(), Failure>;
    type Future = Editing<'a, S>;

    fn run(self, cx: &Cx, site: &'static Site) -> Editing<'a, S> {
        Editing {
            stage: self.stage,
            wish: Some(self.wish),
            asking: Asking::new(cx, site, Kind::Stage),
        }
    }
}

/// Nothing in it is pinned.
impl<S> Unpin for Editing<'_, S> {}

impl<S: FlowState> Future for Editing<'_, S> {
    type Output = Result<(), Failure>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let (wish, wishes) = (&mut this.wish, &this.stage.wishes);
        let answer = ready!(this.asking.poll(task, |claimed| {
            if let Some(wish) = wish.take() {
                wishes.wishes().push_back((wish, claimed));
            }
        }));
        Poll::Ready(answer.map(|state| this.stage.state = state))
    }
}

/// Durable code of a stage, whatever its error type.
pub(super) struct Work<T>(Box<dyn FnOnce(Cx) -> BoxFut<'static, Result<T, BoxError>> + Send>);

impl<T: 'static> Work<T> {
    pub(super) fn of<E: StepError + 'static>(fragment: Fragment<'static, Result<T, E>>) -> Self {
        Self(Box::new(move |cx| {
            let code = guiding::begin(fragment, cx);
            Box::pin(async move { code.await.map_err(StepError::boxed) })
        }))
    }

    /// Begins it in this scope.
    pub(super) fn begin(self, cx: Cx) -> BoxFut<'static, Result<T, BoxError>> {
        (self.0)(cx)
    }

    /// What follows from what it gives.
    pub(super) fn map<U: 'static>(self, map: fn(T) -> U) -> Work<U> {
        Work(Box::new(move |cx| {
            let code = (self.0)(cx);
            Box::pin(async move { code.await.map(map) })
        }))
    }
}

impl<T> fmt::Debug for Work<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").finish_non_exhaustive()
    }
}
