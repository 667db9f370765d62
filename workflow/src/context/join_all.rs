//! `join_all!`: a branch per item, made at run time, so many at once.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use super::branches::{Arm, Container, Wakers, arm};
use super::{BoxFut, Cx, Thrown};
use crate::replay::{self, Entered, Failure, FailureKind, Member, Site};

/// Takes the items in. Nothing is entered yet.
pub fn enter_all<I: IntoIterator>(
    cx: &Cx,
    site: &'static Site,
    limit: Option<usize>,
    items: I,
) -> Items<I::Item> {
    let slots = items.into_iter().map(Slot::new).collect();
    // None at once would be none ever.
    let limit = limit.unwrap_or(usize::MAX).max(1);
    Items {
        cx: cx.clone(),
        site,
        limit,
        slots,
        keys: None,
    }
}

/// An item's key, as text.
pub fn key<K: ToString + ?Sized>(key: &K) -> String {
    key.to_string()
}

/// The items of a `join_all!`.
pub struct Items<I> {
    cx: Cx,
    site: &'static Site,
    limit: usize,
    slots: Vec<Slot<I>>,
    keys: Option<Vec<String>>,
}

impl<I> std::fmt::Debug for Items<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Items")
            .field("len", &self.slots.len())
            .finish_non_exhaustive()
    }
}

impl<I> Items<I> {
    /// Names the branches by key instead of by index.
    pub fn keyed(&mut self, key: impl Fn(&I) -> String) {
        self.keys = Some(
            self.slots
                .iter()
                .filter_map(|slot| slot.peek(&key))
                .collect(),
        );
    }

    /// A slot per item, for its branch to open.
    pub fn slots(&self) -> &[Slot<I>] {
        &self.slots
    }

    /// Runs the branches, one per slot.
    pub fn run<'a, T, F>(&'a self, code: Vec<F>) -> JoinAllRun<'a, I, F, T>
    where
        F: Fn() -> BoxFut<'a, Result<T, Thrown>>,
    {
        let open = code.len();
        JoinAllRun {
            items: self,
            code,
            arms: Vec::new(),
            state: State::New,
            running: 0,
            open,
        }
    }

    /// The first key that two items have.
    fn duplicate(&self) -> Option<&str> {
        let mut seen = BTreeSet::new();
        self.keys
            .iter()
            .flatten()
            .find(|key| !seen.insert(key.as_str()))
            .map(String::as_str)
    }
}

/// An item that waits for its branch.
pub struct Slot<I> {
    item: Mutex<Option<I>>,
    cx: OnceLock<Cx>,
}

impl<I> std::fmt::Debug for Slot<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

impl<I> Slot<I> {
    fn new(item: I) -> Self {
        Self {
            item: Mutex::new(Some(item)),
            cx: OnceLock::new(),
        }
    }

    /// The branch's scope and its item. Called by the branch when it is first polled, and once.
    ///
    /// # Panics
    /// When it was called before.
    pub fn open(&self) -> (Cx, I) {
        let item = self
            .item
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let cx = self.cx.get().cloned();
        cx.zip(item)
            .expect("a slot is opened once, by its branch, after that was started")
    }

    fn peek<R>(&self, look: impl Fn(&I) -> R) -> Option<R> {
        self.item
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .map(look)
    }
}

/// A `join_all!` under way.
#[must_use = "futures do nothing unless polled"]
pub struct JoinAllRun<'a, I, F, T> {
    items: &'a Items<I>,
    code: Vec<F>,
    /// Those that were started: a prefix, in input order.
    arms: Vec<Arm<'a, T>>,
    state: State,
    running: usize,
    open: usize,
}

enum State {
    New,
    Entered(Container, Wakers),
    /// It ended, or it never will.
    Spent,
}

impl<I, F, T> std::fmt::Debug for JoinAllRun<'_, I, F, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinAllRun")
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

/// The arms are never pinned: their futures are boxed.
impl<I, F, T> Unpin for JoinAllRun<'_, I, F, T> {}

impl<'a, I, F, T> Future for JoinAllRun<'a, I, F, T>
where
    F: Fn() -> BoxFut<'a, Result<T, Thrown>>,
{
    type Output = Result<Vec<T>, Failure>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let State::New = this.state {
            if let Some(key) = this.items.duplicate() {
                this.state = State::Spent;
                let location = this.items.cx.location_of(this.items.site);
                let message = format!("two items have the key `{key}`; no branch was started");
                return Poll::Ready(Err(Failure::new(
                    FailureKind::DuplicateKey,
                    location,
                    message,
                )));
            }
            this.state = this.enter();
        }
        let State::Entered(container, wakers) = &mut this.state else {
            return Poll::Pending;
        };
        let mut round = wakers.round(task.waker());
        loop {
            while this.running < this.items.limit && this.arms.len() < this.code.len() {
                let index = this.arms.len();
                start(this.items, container, index);
                this.arms.push(arm(&this.code[index]));
                this.running += 1;
                round.push_back(index);
            }
            let Some(index) = round.pop_front() else {
                break;
            };
            let waker = wakers.waker(index);
            if let Poll::Ready(ended) = this.arms[index].poll(&mut Context::from_waker(waker)) {
                container.ended(index, ended);
                this.running -= 1;
                this.open -= 1;
            }
        }
        if this.open > 0 {
            return Poll::Pending;
        }
        container.leave();
        let failed = container.failure(FailureKind::Join);
        this.state = State::Spent;
        Poll::Ready(match failed {
            Some(failure) => Err(failure),
            None => Ok(this.arms.iter_mut().filter_map(Arm::take).collect()),
        })
    }
}

impl<I, F, T> JoinAllRun<'_, I, F, T> {
    fn enter(&self) -> State {
        let (cx, len) = (&self.items.cx, self.code.len());
        let container = replay::Container::JoinAll(len as u64);
        let entered = cx
            .run()
            .replay()
            .enter(cx.scope(), self.items.site, container);
        match entered {
            Entered::Open { scope, .. } => {
                State::Entered(Container::new(cx, scope, len), Wakers::new(len))
            }
            Entered::Never => State::Spent,
        }
    }
}

/// Opens the scope of an item's branch.
fn start<I>(items: &Items<I>, container: &mut Container, index: usize) {
    let member = match &items.keys {
        Some(keys) => Member::Key(&keys[index]),
        None => Member::Iter(index as u64),
    };
    let scope = items.cx.run().replay().member(container.scope, member);
    container.members[index] = Some(scope);
    // Set once: each item is started once.
    let _ = items.slots[index].cx.set(items.cx.at(scope));
}
