//! Those who are told what happens to a guide.
//!
//! 1. They are called beside the guide, on a thread of their own, in the order in which they came, the flow's own first: none of them
//!    delays it, and what goes wrong in one is told to the flow's sink, and to nobody else.
//! 2. What happened is told when it is durable, in order. So much of it is kept for those who are slow; they are told how much they
//!    missed.
//! 3. An observer is called outside of the lock: it may give commands, observe, and stop.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::flow::{Flow, FlowState};
use super::position::Event;
use super::run::said;
use super::view::View;
use crate::codec::BoxError;

/// So much is kept for observers that are slow.
const KEPT: usize = 1_024;

/// Something that happened to a guide, as observers are told of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Told<S> {
    /// What happened.
    pub event: Event,
    /// The way to the flow in a stage that it happened in, as [`View::nested`](field@View::nested) has it; absent when it is the
    /// guide's own.
    pub path: Option<String>,
    /// The guide as it was then: the revision that the event led to.
    pub view: Arc<View<S>>,
    /// So many events before this one were not told, for the observers did not keep up.
    pub missed: u64,
}

/// What an observer says: whether it is to be told of more, or what went wrong in it.
pub type Heard = Result<ControlFlow<()>, BoxError>;

pub(super) type Hears<S> = Box<dyn FnMut(&Told<S>) -> Heard + Send>;
pub(super) type Analytics<S> = Arc<dyn Fn(&Told<S>) -> Heard + Send + Sync>;
pub(super) type Sink = Arc<dyn Fn(&str) + Send + Sync>;

/// The observers of a guide.
pub(super) struct Observers<S>(Arc<Mutex<Inner<S>>>);

struct Inner<S> {
    observers: Vec<(u64, Hears<S>)>,
    /// The number that the next one gets; the flow's own is 0.
    next: u64,
    /// Those that were stopped while they were being called.
    stopped: Vec<u64>,
    sink: Option<Sink>,
    /// The flow's own observer is there, if it has one.
    knows: bool,
    queue: VecDeque<Told<S>>,
    missed: u64,
    /// Somebody is telling them.
    telling: bool,
}

impl<S> Clone for Observers<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Observers<S> {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Inner {
            observers: Vec::new(),
            next: 1,
            stopped: Vec::new(),
            sink: None,
            knows: false,
            queue: VecDeque::new(),
            missed: 0,
            telling: false,
        })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: FlowState> Observers<S> {
    /// Knows the flow's own observer from now on.
    pub(super) fn know(&self, flow: &Flow<S>) {
        let mut inner = self.inner();
        if std::mem::replace(&mut inner.knows, true) {
            return;
        }
        inner.sink.clone_from(&flow.plan().sink);
        if let Some(analytics) = flow.plan().analytics.clone() {
            let hears = Box::new(move |told: &Told<S>| analytics(told));
            inner.observers.insert(0, (0, hears));
        }
    }

    pub(super) fn add(&self, hears: Hears<S>) -> Observer {
        let mut inner = self.inner();
        let number = inner.next;
        inner.next += 1;
        inner.observers.push((number, hears));
        drop(inner);
        let all = self.clone();
        Observer(Arc::new(move || all.remove(number)))
    }

    fn remove(&self, number: u64) {
        let mut inner = self.inner();
        let known = inner.observers.iter().position(|(of, _)| *of == number);
        let gone = known.map(|known| inner.observers.remove(known));
        if gone.is_none() && inner.telling {
            inner.stopped.push(number);
        }
        // What it holds may be anything.
        drop(inner);
        drop(gone);
    }

    /// Tells what a revision did.
    pub(super) fn tell(&self, view: &Arc<View<S>>) {
        self.tell_of(view, None, &view.events);
    }

    /// Tells what happened in a flow in a stage.
    pub(super) fn tell_within(&self, view: &Arc<View<S>>, path: String, events: &[Event]) {
        self.tell_of(view, Some(path), events);
    }

    fn tell_of(&self, view: &Arc<View<S>>, path: Option<String>, events: &[Event]) {
        let mut inner = self.inner();
        if inner.observers.is_empty() && !inner.telling {
            return;
        }
        for event in events {
            if inner.queue.len() == KEPT {
                let lost = inner.queue.pop_front();
                inner.missed += 1 + lost.map_or(0, |lost| lost.missed);
            }
            inner.queue.push_back(Told {
                event: event.clone(),
                path: path.clone(),
                view: Arc::clone(view),
                missed: 0,
            });
        }
        if inner.queue.is_empty() || std::mem::replace(&mut inner.telling, true) {
            return;
        }
        drop(inner);
        let all = self.clone();
        // It ends by itself; nobody waits for it.
        drop(tokio::task::spawn_blocking(
            move || while all.tell_next() {},
        ));
    }

    /// Tells the oldest event to all of them; false when there is none.
    fn tell_next(&self) -> bool {
        let (told, mut observers, sink) = {
            let mut inner = self.inner();
            let Some(mut told) = inner.queue.pop_front() else {
                inner.telling = false;
                inner.stopped.clear();
                return false;
            };
            // They were older than this one.
            told.missed += std::mem::take(&mut inner.missed);
            let observers = std::mem::take(&mut inner.observers);
            (told, observers, inner.sink.clone())
        };
        observers.retain_mut(|(number, hears)| {
            if self.inner().stopped.contains(number) {
                return false;
            }
            let heard = catch_unwind(AssertUnwindSafe(|| hears(&told)));
            let text = match heard {
                Ok(Ok(flow)) => return flow.is_continue(),
                Ok(Err(error)) => error.to_string(),
                Err(panic) => said(&*panic),
            };
            if let Some(sink) = &sink {
                // It may fail, too; there is nobody left to be told.
                let _ = catch_unwind(AssertUnwindSafe(|| sink(&text)));
            } else {
                tracing::warn!(error = text, "an observer of a guide failed");
            }
            true
        });
        let mut inner = self.inner();
        let came = std::mem::take(&mut inner.observers);
        observers.extend(came);
        let stopped = std::mem::take(&mut inner.stopped);
        let (gone, observers) = observers
            .into_iter()
            .partition::<Vec<_>, _>(|(number, _)| stopped.contains(number));
        inner.observers = observers;
        drop(inner);
        // What they hold may be anything.
        drop(gone);
        true
    }
}

/// An observer of a guide, made by [`Guide::observe`](super::Guide::observe). It is told as long as the guide has handles in this process,
/// also when this is dropped.
pub struct Observer(Arc<dyn Fn() + Send + Sync>);

impl Observer {
    /// It is not told any more.
    pub fn stop(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").finish_non_exhaustive()
    }
}
