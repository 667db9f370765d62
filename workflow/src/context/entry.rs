//! Scopes that are entered where they stand: loops and blocks.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Cx;
use crate::replay::{Container, Entered, Scope, Site};

/// A scope about to be entered. Awaited, because one that does not fit the history is never entered.
#[must_use = "futures do nothing unless polled"]
pub struct Entry<T> {
    cx: Cx,
    site: &'static Site,
    container: Container<'static>,
    make: fn(Inside) -> T,
    entered: bool,
}

impl<T> Entry<T> {
    pub(super) fn new(
        cx: &Cx,
        site: &'static Site,
        container: Container<'static>,
        make: fn(Inside) -> T,
    ) -> Self {
        Self {
            cx: cx.clone(),
            site,
            container,
            make,
            entered: false,
        }
    }
}

impl<T> fmt::Debug for Entry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entry").field(&self.site.name).finish()
    }
}

impl<T> Future for Entry<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        if std::mem::replace(&mut self.entered, true) {
            return Poll::Pending;
        }
        let entered = self
            .cx
            .run()
            .replay()
            .enter(self.cx.scope(), self.site, self.container);
        match entered {
            Entered::Open { scope, .. } => Poll::Ready((self.make)(Inside {
                cx: self.cx.clone(),
                scope,
            })),
            Entered::Never => Poll::Pending,
        }
    }
}

/// A scope that was entered. It is left when it is dropped: at its end, by `break`, by `?`, or with the whole run.
#[derive(Debug)]
pub struct Inside {
    pub(super) cx: Cx,
    pub(super) scope: Scope,
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.cx.run().replay().leave(self.scope);
    }
}
