//! One attempt of a step: its body, its time, and what surrounds it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};
use std::time::Duration;

use super::super::body::panic_message;
use super::super::{BoxFut, CurrentStep, Host, StepSpan};
use super::source::{Source, Started, Thread};
use crate::replay::Timestamp;
use crate::store::BoxFuture;

/// An attempt under way. Dropping it cancels it.
pub(super) struct Running<'s, R> {
    pub(super) step: CurrentStep,
    pub(super) started_at: Timestamp,
    body: Option<BoxFut<'s, R>>,
    thread: Option<Thread>,
    span: Option<Box<dyn StepSpan>>,
    time: Option<Duration>,
    timer: Option<BoxFuture<'static, ()>>,
}

/// How an attempt ended.
pub(super) enum Ended<R> {
    Returned(R),
    Panicked(String),
    TimedOut,
}

impl<'s, R> Running<'s, R> {
    /// Begins an attempt: makes its body, and polls nothing yet.
    pub(super) fn begin(
        source: &Source<'s, R>,
        host: &dyn Host,
        step: CurrentStep,
        started_at: Timestamp,
        time: Option<Duration>,
    ) -> Result<Self, Ended<R>> {
        let span = host.step_span(&step);
        let made = within(span.as_deref(), &step, || source.start(Some(host), &step));
        let Started { body, thread } = made.map_err(Ended::Panicked)?;
        Ok(Self {
            step,
            started_at,
            body: Some(body),
            thread,
            span,
            time,
            timer: None,
        })
    }

    /// Polls the body, then the clock. Once it has ended, the body is gone.
    pub(super) fn poll(&mut self, host: &dyn Host, task: &mut Context<'_>) -> Poll<Ended<R>> {
        let Some(body) = &mut self.body else {
            return Poll::Pending;
        };
        match within(self.span.as_deref(), &self.step, || {
            body.as_mut().poll(task)
        }) {
            Ok(Poll::Ready(returned)) => {
                let dropped = self.drop_body();
                return Poll::Ready(
                    dropped.map_or_else(Ended::Panicked, |()| Ended::Returned(returned)),
                );
            }
            Ok(Poll::Pending) => {}
            Err(panic) => {
                // A body that panicked may panic again when it is dropped; the first message is the one to tell.
                let _ = self.drop_body();
                return Poll::Ready(Ended::Panicked(panic));
            }
        }
        let Some(time) = self.time else {
            return Poll::Pending;
        };
        let timer = self.timer.get_or_insert_with(|| host.sleep(time));
        if timer.as_mut().poll(task).is_pending() {
            return Poll::Pending;
        }
        self.step.cancellation().cancel();
        let dropped = self.drop_body();
        Poll::Ready(dropped.map_or_else(Ended::Panicked, |()| Ended::TimedOut))
    }

    /// The thread that the body may still occupy.
    pub(super) fn into_thread(mut self) -> Option<Thread> {
        self.thread.take()
    }

    fn drop_body(&mut self) -> Result<(), String> {
        let body = self.body.take();
        within(self.span.as_deref(), &self.step, || drop(body))
    }
}

impl<R> Drop for Running<'_, R> {
    fn drop(&mut self) {
        if self.body.is_some() {
            self.step.cancellation().cancel();
        }
    }
}

/// Runs user code as the current step, inside its span. A panic comes back as its message.
fn within<T>(
    span: Option<&dyn StepSpan>,
    step: &CurrentStep,
    code: impl FnOnce() -> T,
) -> Result<T, String> {
    let _entered = step.enter();
    let caught = match span {
        None => Some(catch_unwind(AssertUnwindSafe(code))),
        Some(span) => {
            let (mut code, mut caught) = (Some(code), None);
            span.in_scope(&mut || {
                caught = code.take().map(|code| catch_unwind(AssertUnwindSafe(code)));
            });
            caught
        }
    };
    match caught {
        Some(Ok(value)) => Ok(value),
        Some(Err(panic)) => Err(panic_message(&*panic)),
        None => Err("the step's span did not poll its body".to_owned()),
    }
}
