//! What joins and races share: branches, each with its own waker, so that a pass polls only what was woken.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use super::{BoxFut, Cx, Thrown, opaque_debug};
use crate::replay::{Failure, FailureKind, Location, Scope};

/// The future of a branch, and what became of it.
pub struct Arm<'a, T> {
    future: Option<BoxFut<'a, Result<T, Thrown>>>,
    value: Option<T>,
}

opaque_debug!(<T> Arm<'_, T>);

/// A branch, from its code. `Fn`, so that the code can change nothing it captures: results are given by value.
pub fn arm<'a, T>(code: impl Fn() -> BoxFut<'a, Result<T, Thrown>>) -> Arm<'a, T> {
    Arm {
        future: Some(code()),
        value: None,
    }
}

/// The code of an item's branch, as it is: only held to being `Fn`.
pub fn item<'a, T>(
    code: impl Fn() -> BoxFut<'a, Result<T, Thrown>>,
) -> impl Fn() -> BoxFut<'a, Result<T, Thrown>> {
    code
}

impl<T> Arm<'_, T> {
    /// Polls it until it ends; then its future is gone.
    pub(super) fn poll(&mut self, task: &mut Context<'_>) -> Poll<Result<(), Thrown>> {
        let Some(future) = &mut self.future else {
            return Poll::Pending;
        };
        let Poll::Ready(ended) = future.as_mut().poll(task) else {
            return Poll::Pending;
        };
        self.future = None;
        Poll::Ready(ended.map(|value| self.value = Some(value)))
    }

    /// Drops its future, if it has not ended.
    pub(super) fn cut(&mut self) {
        self.future = None;
    }

    pub(super) fn take(&mut self) -> Option<T> {
        self.value.take()
    }
}

/// The wakers of branches, and which of them were woken.
pub(super) struct Wakers {
    shared: Arc<Shared>,
    branches: Vec<Option<(Arc<Branch>, Waker)>>,
}

struct Shared {
    woken: Mutex<Woken>,
}

#[derive(Default)]
struct Woken {
    parent: Option<Waker>,
    ready: VecDeque<usize>,
}

struct Branch {
    index: usize,
    queued: AtomicBool,
    shared: Arc<Shared>,
}

impl Wakers {
    pub(super) fn new(branches: usize) -> Self {
        let woken = Mutex::new(Woken::default());
        let mut wakers = Vec::new();
        wakers.resize_with(branches, || None);
        Self {
            shared: Arc::new(Shared { woken }),
            branches: wakers,
        }
    }

    /// Those that were woken since the last round. Whoever is woken from now on wakes `parent`.
    pub(super) fn round(&self, parent: &Waker) -> VecDeque<usize> {
        let mut woken = self.shared.lock();
        match &mut woken.parent {
            Some(known) if known.will_wake(parent) => {}
            known => *known = Some(parent.clone()),
        }
        std::mem::take(&mut woken.ready)
    }

    /// The waker to poll a branch with. From now on it can be woken again.
    pub(super) fn waker(&mut self, index: usize) -> &Waker {
        let shared = &self.shared;
        let (branch, waker) = self.branches[index].get_or_insert_with(|| {
            let queued = AtomicBool::new(false);
            let branch = Arc::new(Branch {
                index,
                queued,
                shared: Arc::clone(shared),
            });
            let waker = Waker::from(Arc::clone(&branch));
            (branch, waker)
        });
        branch.queued.store(false, Ordering::Release);
        waker
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Woken> {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Branch {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.queued.swap(true, Ordering::AcqRel) {
            return;
        }
        let parent = {
            let mut woken = self.shared.lock();
            woken.ready.push_back(self.index);
            woken.parent.clone()
        };
        if let Some(parent) = parent {
            parent.wake();
        }
    }
}

/// The container that branches belong to.
pub(super) struct Container {
    pub(super) cx: Cx,
    pub(super) location: Location,
    pub(super) scope: Scope,
    /// The scopes of the members, as far as they were entered.
    pub(super) members: Vec<Option<Scope>>,
    /// How they failed, those that did.
    pub(super) failures: Vec<Option<Failure>>,
}

impl Container {
    pub(super) fn new(cx: &Cx, scope: Scope, members: usize) -> Self {
        let location = cx.run().replay().scope_location(scope);
        Self {
            cx: cx.clone(),
            location,
            scope,
            members: vec![None; members],
            failures: vec![None; members],
        }
    }

    /// A branch ended: nothing more is issued in it.
    pub(super) fn ended(&mut self, index: usize, result: Result<(), Thrown>) {
        if let Err(thrown) = result {
            self.failed(index, thrown);
        }
        if let Some(scope) = self.members[index] {
            self.cx.run().replay().leave(scope);
        }
    }

    /// A branch failed, and its scope is kept: it may yet lose, and then its records go.
    pub(super) fn failed(&mut self, index: usize, thrown: Thrown) {
        let location = match self.members[index] {
            Some(scope) => self.cx.run().replay().scope_location(scope),
            None => self.location.clone(),
        };
        self.failures[index] = Some(thrown.into_failure(&location));
    }

    /// All have ended: the container is left.
    pub(super) fn leave(&self) {
        self.cx.run().replay().leave(self.scope);
    }

    /// The failure of the whole, from those of its branches; nothing when none failed.
    pub(super) fn failure(&mut self, kind: FailureKind) -> Option<Failure> {
        let failures: Vec<_> = self.failures.iter_mut().filter_map(Option::take).collect();
        if failures.is_empty() {
            return None;
        }
        let what = match kind {
            FailureKind::Race => "every branch failed".to_owned(),
            _ => format!(
                "{} of {} branches failed",
                failures.len(),
                self.members.len()
            ),
        };
        let told: Vec<_> = failures
            .iter()
            .take(TOLD)
            .map(ToString::to_string)
            .collect();
        let more = if failures.len() > TOLD { "; .." } else { "" };
        let message = format!("{what}: {}{more}", told.join("; "));
        Some(Failure::new(kind, self.location.clone(), message).with_branches(failures))
    }
}

/// How many branches' failures a message spells out. All of them are in [`Failure::branches`].
const TOLD: usize = 8;
