//! `join!`: all branches, awaited together.

use std::pin::Pin;
use std::task::{Context, Poll};

use super::branches::{Arm, Container, Wakers};
use super::{Cx, Thrown, opaque_debug};
use crate::replay::{self, Entered, Failure, FailureKind, Member, Site};

/// Enters a join.
pub fn enter_join(cx: &Cx, site: &'static Site, names: &[&'static str]) -> Join {
    let entered = cx
        .run()
        .replay()
        .enter(cx.scope(), site, replay::Container::Join(names));
    let container = match entered {
        Entered::Open { scope, .. } => Some(Container::new(cx, scope, names.len())),
        Entered::Never => None,
    };
    Join {
        cx: cx.clone(),
        container,
        next: 0,
    }
}

/// A join that was entered, and whose branches are being written down.
pub struct Join {
    cx: Cx,
    /// Nothing when the run diverged here: then no branch is ever polled.
    container: Option<Container>,
    next: usize,
}

opaque_debug!(Join);

impl Join {
    /// The next branch's scope.
    pub fn branch(&mut self, name: &'static str) -> Cx {
        let Some(container) = &mut self.container else {
            return self.cx.clone();
        };
        let scope = self
            .cx
            .run()
            .replay()
            .member(container.scope, Member::Branch(name));
        container.members[self.next] = Some(scope);
        self.next += 1;
        self.cx.at(scope)
    }

    /// Runs the branches.
    pub fn join<A: ArmSet>(self, arms: A) -> JoinRun<A> {
        JoinRun {
            arms: Some(arms),
            container: self.container,
            wakers: Wakers::new(A::LEN),
            begun: false,
            open: A::LEN,
        }
    }
}

/// A join under way.
#[must_use = "futures do nothing unless polled"]
pub struct JoinRun<A> {
    arms: Option<A>,
    container: Option<Container>,
    wakers: Wakers,
    begun: bool,
    open: usize,
}

impl<A> std::fmt::Debug for JoinRun<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinRun")
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

/// The arms are never pinned: their futures are boxed.
impl<A> Unpin for JoinRun<A> {}

impl<A: ArmSet> Future for JoinRun<A> {
    type Output = Result<A::Output, Failure>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let (Some(container), Some(arms)) = (&mut this.container, &mut this.arms) else {
            return Poll::Pending;
        };
        let mut round = this.wakers.round(task.waker());
        if !std::mem::replace(&mut this.begun, true) {
            round = (0..A::LEN).collect();
        }
        for index in round {
            let waker = this.wakers.waker(index);
            if let Poll::Ready(ended) = arms.poll(index, &mut Context::from_waker(waker)) {
                container.ended(index, ended);
                this.open -= 1;
            }
        }
        if this.open > 0 {
            return Poll::Pending;
        }
        container.leave();
        let failed = container.failure(FailureKind::Join);
        let values = this.arms.take().and_then(A::finish);
        Poll::Ready(match failed {
            Some(failure) => Err(failure),
            None => Ok(values.expect("a join without a failure has a value of every branch")),
        })
    }
}

/// The branches of a join: a tuple of one to twelve.
pub trait ArmSet {
    /// Their values.
    type Output;
    /// How many they are.
    const LEN: usize;
    /// Polls one of them, until it ends.
    fn poll(&mut self, index: usize, task: &mut Context<'_>) -> Poll<Result<(), Thrown>>;
    /// Their values, if all of them have one.
    fn finish(self) -> Option<Self::Output>;
}

macro_rules! arm_sets {
    ($([$len:literal: $($index:tt $ty:ident)*])*) => { $(
        impl<$($ty),*> ArmSet for ($(Arm<'_, $ty>,)*) {
            type Output = ($($ty,)*);
            const LEN: usize = $len;

            fn poll(&mut self, index: usize, task: &mut Context<'_>) -> Poll<Result<(), Thrown>> {
                match index {
                    $($index => self.$index.poll(task),)*
                    _ => Poll::Pending,
                }
            }

            fn finish(mut self) -> Option<Self::Output> {
                Some(($(self.$index.take()?,)*))
            }
        }
    )* };
}

arm_sets! {
    [1: 0 A]
    [2: 0 A 1 B]
    [3: 0 A 1 B 2 C]
    [4: 0 A 1 B 2 C 3 D]
    [5: 0 A 1 B 2 C 3 D 4 E]
    [6: 0 A 1 B 2 C 3 D 4 E 5 F]
    [7: 0 A 1 B 2 C 3 D 4 E 5 F 6 G]
    [8: 0 A 1 B 2 C 3 D 4 E 5 F 6 G 7 H]
    [9: 0 A 1 B 2 C 3 D 4 E 5 F 6 G 7 H 8 I]
    [10: 0 A 1 B 2 C 3 D 4 E 5 F 6 G 7 H 8 I 9 J]
    [11: 0 A 1 B 2 C 3 D 4 E 5 F 6 G 7 H 8 I 9 J 10 K]
    [12: 0 A 1 B 2 C 3 D 4 E 5 F 6 G 7 H 8 I 9 J 10 K 11 L]
}
