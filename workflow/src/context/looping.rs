//! Labelled loops: each iteration is a scope.

use std::pin::Pin;
use std::task::{Context, Poll};

use super::Cx;
use crate::replay::{Container, Entered, Member, Scope, Site};

/// Enters a loop. Awaited, because a loop that does not fit the history is never entered.
pub fn enter_loop(cx: &Cx, site: &'static Site) -> LoopEntry {
    LoopEntry {
        cx: cx.clone(),
        site,
        entered: false,
    }
}

/// A loop about to be entered.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct LoopEntry {
    cx: Cx,
    site: &'static Site,
    entered: bool,
}

impl Future for LoopEntry {
    type Output = Loop;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Loop> {
        if std::mem::replace(&mut self.entered, true) {
            return Poll::Pending;
        }
        let entered = self
            .cx
            .run()
            .replay()
            .enter(self.cx.scope(), self.site, Container::Loop);
        match entered {
            Entered::Open { scope, .. } => Poll::Ready(Loop {
                cx: self.cx.clone(),
                scope,
                iteration: None,
                next: 0,
            }),
            Entered::Never => Poll::Pending,
        }
    }
}

/// A loop under way. It is left when it is dropped: by `break`, by `?`, or with the whole run.
#[derive(Debug)]
pub struct Loop {
    cx: Cx,
    scope: Scope,
    iteration: Option<Scope>,
    next: u64,
}

impl Loop {
    /// The next iteration, by its index. The one before is left.
    pub fn iteration(&mut self) -> Cx {
        let index = self.next;
        self.next += 1;
        self.enter(Member::Iter(index))
    }

    /// The next iteration, by its key. The one before is left.
    pub fn keyed<K: ToString + ?Sized>(&mut self, key: &K) -> Cx {
        let key = key.to_string();
        self.enter(Member::Key(&key))
    }

    /// False. It lets the expansion use the user's label.
    pub fn never(&self) -> bool {
        false
    }

    fn enter(&mut self, member: Member<'_>) -> Cx {
        let scope = {
            let mut replay = self.cx.run().replay();
            if let Some(before) = self.iteration.take() {
                replay.leave(before);
            }
            replay.member(self.scope, member)
        };
        self.iteration = Some(scope);
        self.cx.at(scope)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let mut replay = self.cx.run().replay();
        if let Some(iteration) = self.iteration {
            replay.leave(iteration);
        }
        replay.leave(self.scope);
    }
}
