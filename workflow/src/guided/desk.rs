//! Where the drivers of a guide and its loop meet: commands go in, views and answers come out.
//!
//! 1. A view is shown when its revision is durable, in the order of revisions.
//! 2. A command lies at the desk until the loop takes it. While the loop is away it stays there, and the loop is called back.
//! 3. That the guide was cancelled is shown before that, if the store fails: nothing may be done any more. It is marked.
//! 4. A desk that was closed shows what it showed, and takes nothing.
//! 5. Whoever asked is answered once, or the answer is dropped, and that is an answer, too.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::{oneshot, watch};

use super::decide::Asked;
use super::flow::FlowState;
use super::levels::{Editing, Levels};
use super::migrate::Unfit;
use super::observing::Observers;
use super::position::{Event, Problem, StageName, Status};
use super::refused::Refused;
use super::view::View;
use crate::context::{self, Left};

/// A command of a driver.
pub(super) struct Ask<S> {
    pub(super) command: Command<S>,
    /// The revision that it was decided on.
    pub(super) at: Option<u64>,
    pub(super) key: Option<String>,
    pub(super) answer: Answering,
}

/// What is asked, and with what.
pub(super) enum Command<S> {
    Next,
    Back,
    Skip,
    Retry,
    Resume,
    Check,
    Edit(Box<dyn FnOnce(&mut S) + Send>),
    Cancel,
    /// With what, as JSON.
    Release(String),
    Rollback,
    /// The undo that fails is skipped, for this reason.
    SkipUndo(String),
    Start(S),
    /// What comes with it does not serialise: it is not given.
    Unfit(String),
    /// Changes the data of the flow in a stage that lies there.
    EditWithin(String, Editing),
    /// Gives up the flow in a stage that lies there.
    CancelWithin(String),
}

impl<S> Command<S> {
    pub(super) fn asked(&self) -> Asked {
        match self {
            Self::Next => Asked::Next,
            Self::Back => Asked::Back,
            Self::Skip => Asked::Skip,
            Self::Retry => Asked::Retry,
            Self::Resume => Asked::Resume,
            Self::Check => Asked::Check,
            Self::Edit(_) | Self::EditWithin(..) => Asked::Edit,
            Self::Cancel | Self::CancelWithin(_) => Asked::Cancel,
            Self::Release(_) | Self::Unfit(_) => Asked::Release,
            Self::Rollback => Asked::Rollback,
            Self::SkipUndo(_) => Asked::SkipUndo,
            Self::Start(_) => Asked::Start,
        }
    }
}

/// What a command gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The guide is at this stage, or at its end.
    At(Option<StageName>),
    /// A flow in a stage is at this stage of its own.
    Inside(String, StageName),
    Found(Vec<Problem>),
    Revision(u64),
}

/// The key of whoever asked.
pub(super) type Key = Option<String>;

/// Whoever waits for an answer.
pub(super) type Answering = oneshot::Sender<Result<Answer, Refused>>;

/// An answer that is given when what it says is durable.
pub(super) type Owed = (Answering, Result<Answer, Refused>);

/// What everybody at the desk sees.
pub(super) struct Shown<S> {
    pub(super) view: Option<Arc<View<S>>>,
    /// Why the guide is not driven, if it cannot be as things are.
    pub(super) stopped: Option<String>,
    /// It was closed: what is shown stays as it is.
    pub(super) closed: bool,
    /// The same, if it is for the version of its flow.
    pub(super) unfit: Option<Unfit>,
}

pub(super) struct Desk<S> {
    inner: Mutex<Inner<S>>,
    /// Who waits for the end of a body is among these, whether the loop is there meanwhile or not.
    pub(super) levels: Arc<Levels>,
    shown: watch::Sender<Shown<S>>,
    pub(super) observers: Observers<S>,
}

struct Inner<S> {
    asks: VecDeque<Ask<S>>,
    /// The loop is there.
    present: bool,
    waker: Option<Waker>,
    /// What is shown, and who is answered, when the guide's end is durable.
    parting: Option<Parting<S>>,
    /// Whoever opens the guide waits for it to be shown.
    wanted: bool,
    /// How many wait for the guide to be opened, and who is told when the last of them goes.
    openers: usize,
    deserted: Option<Waker>,
    /// Why what the guide said is not written yet.
    failing: Option<String>,
    /// The loop has not been told of that.
    untold: bool,
}

/// Somebody waits for the guide to be opened, as long as this is held.
pub(super) struct Opener<S>(Arc<Desk<S>>);

impl<S> Drop for Opener<S> {
    fn drop(&mut self) {
        let mut inner = self.0.inner();
        inner.openers -= 1;
        if inner.openers == 0
            && let Some(waker) = inner.deserted.take()
        {
            drop(inner);
            waker.wake();
        }
    }
}

/// The end of a guide, until it is durable.
struct Parting<S> {
    view: Arc<View<S>>,
    owed: Vec<Owed>,
    /// What happened in flows in stages.
    within: Vec<(String, Vec<Event>)>,
    /// The store failed to take it, and is asked again.
    failed: bool,
}

/// What became of a command that was laid on the desk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Laid {
    Taken,
    /// The loop has to be called back.
    Away,
    /// The guide has ended: nobody takes it any more.
    Over(Status),
    Closed,
}

impl<S> Desk<S> {
    pub(super) fn new() -> Self {
        Self::within(Arc::default())
    }

    /// That of a flow in a stage. Nobody comes to it.
    pub(super) fn within(levels: Arc<Levels>) -> Self {
        Self {
            levels,
            inner: Mutex::new(Inner {
                asks: VecDeque::new(),
                present: false,
                waker: None,
                parting: None,
                wanted: false,
                openers: 0,
                deserted: None,
                failing: None,
                untold: false,
            }),
            shown: watch::Sender::new(Shown {
                view: None,
                stopped: None,
                closed: false,
                unfit: None,
            }),
            observers: Observers::new(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner<S>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ===== for drivers =====

    pub(super) fn watch(&self) -> watch::Receiver<Shown<S>> {
        self.shown.subscribe()
    }

    pub(super) fn view(&self) -> Option<Arc<View<S>>> {
        self.shown.borrow().view.clone()
    }

    pub(super) fn stopped(&self) -> Option<String> {
        self.shown.borrow().stopped.clone()
    }

    /// It is driven again: why it stopped before no longer counts.
    pub(super) fn call_back(&self) {
        let mut inner = self.inner();
        if !inner.present {
            inner.wanted = true;
            self.go_on();
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.shown.borrow().closed
    }

    /// Nothing is taken any more, and what is shown stays as it is; false when that was so before.
    pub(super) fn close(&self) -> bool {
        let mut inner = self.inner();
        let mut before = false;
        self.shown
            .send_modify(|shown| before = std::mem::replace(&mut shown.closed, true));
        let asks = std::mem::take(&mut inner.asks);
        let waiting = self.levels.waiting();
        drop(inner);
        let asked = asks.into_iter().map(|ask| ask.answer);
        for answering in asked.chain(waiting) {
            // Whoever asked may have gone.
            let _ = answering.send(Err(Refused::Closed));
        }
        !before
    }

    fn go_on(&self) {
        self.shown.send_modify(|shown| {
            shown.stopped = None;
            shown.unfit = None;
        });
    }

    /// Waits for the guide to be opened.
    pub(super) fn opener(self: &Arc<Self>) -> Opener<S> {
        self.inner().openers += 1;
        Opener(Arc::clone(self))
    }

    pub(super) fn lay(&self, ask: Ask<S>) -> Laid {
        let mut inner = self.inner();
        if self.is_closed() {
            return Laid::Closed;
        }
        let over = match &inner.parting {
            // It is given up, whatever the store says meanwhile.
            Some(parting) => (parting.failed && ask.command.asked() != Asked::Cancel)
                .then_some(Status::Cancelled),
            None if inner.present => None,
            None => self
                .view()
                .filter(|view| view.durable)
                .map(|view| view.status),
        };
        if let Some(status) = over.filter(|status| status.is_final()) {
            return Laid::Over(status);
        }
        inner.asks.push_back(ask);
        match inner.waker.take() {
            _ if !inner.present => Laid::Away,
            Some(waker) => {
                drop(inner);
                waker.wake();
                Laid::Taken
            }
            None => Laid::Taken,
        }
    }

    /// Shows what the store has of a guide that nobody drives.
    pub(super) fn show_stored(&self, view: View<S>) {
        let inner = self.inner();
        if !inner.present {
            self.show(Arc::new(view));
        }
    }

    // ===== for the loop =====

    pub(super) fn arrive(&self) {
        let mut inner = self.inner();
        inner.present = true;
        inner.wanted = false;
        self.go_on();
    }

    /// How many wait for the guide to be opened; `task` is told when nobody does any more.
    pub(super) fn openers(&self, task: &Context<'_>) -> usize {
        let mut inner = self.inner();
        inner.deserted = Some(task.waker().clone());
        inner.openers
    }

    /// The guide cannot go on with this version of its flow.
    pub(super) fn refuse(&self, unfit: Unfit) {
        self.shown.send_modify(|shown| shown.unfit = Some(unfit));
    }

    /// Why what it said is not written yet, if it was not told that.
    pub(super) fn take_unwritten(&self) -> Option<String> {
        let mut inner = self.inner();
        std::mem::take(&mut inner.untold).then(|| inner.failing.clone())?
    }

    /// The store fails: what is newest is not there.
    pub(super) fn is_failing(&self) -> bool {
        self.inner().failing.is_some()
    }

    pub(super) fn poll_ask(&self, task: &Context<'_>) -> Poll<Ask<S>> {
        let mut inner = self.inner();
        if let Some(ask) = inner.asks.pop_front() {
            return Poll::Ready(ask);
        }
        inner.waker = Some(task.waker().clone());
        Poll::Pending
    }

    pub(super) fn show(&self, view: Arc<View<S>>) {
        self.shown.send_if_modified(|shown| {
            let shows = !shown.closed;
            if shows {
                shown.view = Some(view);
            }
            shows
        });
    }

    /// The guide has come to its end: what is shown and answered when that is durable.
    pub(super) fn part(
        &self,
        view: Arc<View<S>>,
        owed: Vec<Owed>,
        within: Vec<(String, Vec<Event>)>,
    ) {
        self.inner().parting = Some(Parting {
            view,
            owed,
            within,
            failed: false,
        });
    }
}

impl<S: FlowState> context::Desk for Desk<S> {
    fn left(&self, left: Left) -> bool {
        let mut inner = self.inner();
        inner.present = false;
        inner.waker = None;
        inner.failing = None;
        match left {
            Left::Away => return !inner.asks.is_empty() || inner.wanted,
            Left::Ended { cancelled } => {
                let parting = inner.parting.take();
                let late = parting.as_ref().filter(|parting| parting.failed);
                let revision = late.map(|parting| parting.view.revision);
                let asks = std::mem::take(&mut inner.asks);
                let waiting = self.levels.waiting();
                if let Some(Parting {
                    view, owed, within, ..
                }) = parting
                {
                    for (path, events) in within {
                        self.observers.tell_within(&view, path, &events);
                    }
                    self.observers.tell(&view);
                    self.show(view);
                    give(owed);
                } else if cancelled && let Some(view) = self.view() {
                    // By the engine, and not by a driver.
                    self.show(Arc::new(view.cancelled()));
                }
                let status = self.view().map_or(Status::Cancelled, |view| view.status);
                drop(inner);
                for answering in waiting {
                    let _ = answering.send(Err(Refused::Cancelled));
                }
                for ask in asks {
                    let asked = ask.command.asked();
                    let answer = match revision {
                        // It waited for the very end that is durable now.
                        Some(revision) if asked == Asked::Cancel => Ok(Answer::Revision(revision)),
                        _ => Err(asked.admit(status).err().unwrap_or(Refused::Finished)),
                    };
                    // Whoever asked may have gone.
                    let _ = ask.answer.send(answer);
                }
            }
            Left::Stopped(why) => {
                inner.parting = None;
                // Dropped, they say that it stopped; that has to be known by then.
                let asks = std::mem::take(&mut inner.asks);
                let waiting = self.levels.waiting();
                drop(inner);
                self.shown.send_modify(|shown| shown.stopped = Some(why));
                drop((asks, waiting));
            }
        }
        false
    }

    fn shared(&self) -> Option<Arc<dyn std::any::Any + Send + Sync>> {
        let levels: Arc<dyn std::any::Any + Send + Sync> = self.levels.clone();
        Some(levels)
    }

    fn not_written(&self, error: &str) {
        let mut inner = self.inner();
        let Some(parting) = &mut inner.parting else {
            (inner.failing, inner.untold) = (Some(error.to_owned()), true);
            let waker = inner.waker.take();
            drop(inner);
            if let Some(view) = self.view().filter(|view| view.durable) {
                self.show(Arc::new(view.unsaved()));
            }
            waker.into_iter().for_each(Waker::wake);
            return;
        };
        if parting.view.status != Status::Cancelled {
            return;
        }
        parting.failed = true;
        let view = Arc::new(parting.view.unsaved());
        let owed = std::mem::take(&mut parting.owed);
        drop(inner);
        self.show(view);
        // What was given up is told so; those who asked for it are told why it does not last yet.
        let unsaved = |answer: Result<Answer, Refused>| match answer {
            Ok(_) => Err(Refused::Store(error.to_owned())),
            refused => refused,
        };
        let owed = owed.into_iter();
        give(owed.map(|(to, answer)| (to, unsaved(answer))).collect());
    }

    fn written(&self) {
        let mut inner = self.inner();
        (inner.failing, inner.untold) = (None, false);
        let parts = inner.parting.is_some();
        drop(inner);
        if let Some(view) = self.view().filter(|view| !view.durable && !parts) {
            self.show(Arc::new(view.saved()));
        }
    }
}

/// Gives answers. Whoever waited for one may have gone.
pub(super) fn give(owed: Vec<Owed>) {
    for (answering, answer) in owed {
        let _ = answering.send(answer);
    }
}
