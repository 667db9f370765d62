//! `race!`: the first success wins, and the others are dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

use super::branches::{Arm, Container, Wakers};
use super::{Cx, opaque_debug};
use crate::replay::{self, Entered, Failure, FailureKind, Member, Site};

/// What won a race, and what it gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Won<T> {
    /// The name of the branch that succeeded first.
    pub branch: &'static str,
    /// What it gave.
    pub value: T,
}

/// Enters a race.
pub fn enter_race(cx: &Cx, site: &'static Site, names: &'static [&'static str]) -> Race {
    let entered = cx
        .run()
        .replay()
        .enter(cx.scope(), site, replay::Container::Race(names));
    let (container, winner) = match entered {
        Entered::Open { scope, winner } => (Some(Container::new(cx, scope, names.len())), winner),
        Entered::Never => (None, None),
    };
    Race {
        cx: cx.clone(),
        container,
        winner,
        names,
        next: 0,
    }
}

/// A race that was entered, and whose branches are being written down.
pub struct Race {
    cx: Cx,
    /// Nothing when the run diverged here: then no branch is ever polled.
    container: Option<Container>,
    /// Who won it, when it is decided already.
    winner: Option<usize>,
    names: &'static [&'static str],
    next: usize,
}

opaque_debug!(Race, <T> RaceRun<'_, T>);

impl Race {
    /// The next branch's scope.
    pub fn branch(&mut self, name: &'static str) -> Cx {
        let index = self.next;
        self.next += 1;
        let Some(container) = &mut self.container else {
            return self.cx.clone();
        };
        if self.winner.is_some_and(|winner| winner != index) {
            // It lost, and is never polled.
            return self.cx.clone();
        }
        let scope = self
            .cx
            .run()
            .replay()
            .member(container.scope, Member::Branch(name));
        container.members[index] = Some(scope);
        self.cx.at(scope)
    }

    /// Runs the branches.
    pub fn race<T, const N: usize>(self, arms: [Arm<'_, T>; N]) -> RaceRun<'_, T> {
        let open = if self.winner.is_some() { 1 } else { N };
        RaceRun {
            arms: arms.into(),
            container: self.container,
            winner: self.winner,
            names: self.names,
            wakers: Wakers::new(N),
            begun: false,
            open,
        }
    }
}

/// A race under way.
#[must_use = "futures do nothing unless polled"]
pub struct RaceRun<'a, T> {
    arms: Vec<Arm<'a, T>>,
    container: Option<Container>,
    winner: Option<usize>,
    names: &'static [&'static str],
    wakers: Wakers,
    begun: bool,
    open: usize,
}

/// The arms are never pinned: their futures are boxed.
impl<T> Unpin for RaceRun<'_, T> {}

impl<T> Future for RaceRun<'_, T> {
    type Output = Result<Won<T>, Failure>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(container) = &mut this.container else {
            return Poll::Pending;
        };
        let mut round = this.wakers.round(task.waker());
        if !std::mem::replace(&mut this.begun, true) {
            round = match this.winner {
                Some(winner) => {
                    cut_others(&mut this.arms, winner);
                    [winner].into()
                }
                None => (0..this.arms.len()).collect(),
            };
        }
        for index in round {
            let waker = this.wakers.waker(index);
            let Poll::Ready(ended) = this.arms[index].poll(&mut Context::from_waker(waker)) else {
                continue;
            };
            if let Some(value) = this.arms[index].take() {
                cut_others(&mut this.arms, index);
                return this.won(index, value);
            }
            if let Err(thrown) = ended {
                container.failed(index, thrown);
            }
            this.open -= 1;
        }
        if this.open > 0 {
            return Poll::Pending;
        }
        container.leave();
        match container.failure(FailureKind::Race) {
            Some(failure) => Poll::Ready(Err(failure)),
            None => Poll::Pending,
        }
    }
}

impl<T> RaceRun<'_, T> {
    /// The losers are dropped; now the history may know.
    fn won(&mut self, index: usize, value: T) -> Poll<Result<Won<T>, Failure>> {
        let Some(mut container) = self.container.take() else {
            return Poll::Pending;
        };
        let decided = container.cx.run().replay().decide(container.scope, index);
        if !decided {
            return Poll::Pending;
        }
        container.ended(index, Ok(()));
        container.leave();
        let branch = self.names[index];
        Poll::Ready(Ok(Won { branch, value }))
    }
}

/// Dropping is the cancellation: the losers go in declared order.
fn cut_others<T>(arms: &mut [Arm<'_, T>], winner: usize) {
    for (index, arm) in arms.iter_mut().enumerate() {
        if index != winner {
            arm.cut();
        }
    }
}
