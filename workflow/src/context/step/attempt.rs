//! One attempt of a step: its body, its time, and what surrounds it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};
use std::time::Duration;

use super::super::body::panic_message;
use super::super::{BoxFut, CurrentStep, Host, Instead, Intervention, StepSpan};
use super::source::{Source, Started, Thread};
use crate::replay::Timestamp;
use crate::store::BoxFuture;

/// An attempt under way. Dropping it cancels it.
pub(super) struct Running<'s, R> {
    pub(super) step: CurrentStep,
    pub(super) started_at: Timestamp,
    body: Option<BoxFut<'s, R>>,
    around: Option<Box<Around<R>>>,
    thread: Option<Thread>,
    span: Option<Box<dyn StepSpan>>,
    time: Option<Duration>,
    timer: Option<BoxFuture<'static, ()>>,
}

/// What stands before the body of an attempt, and what that gave.
struct Around<R> {
    intervention: Box<dyn Intervention>,
    begun: bool,
    returned: Option<Result<R, String>>,
}

/// How an attempt ended.
pub(super) enum Ended<R> {
    Returned(R),
    /// This is taken in place of what the body gave.
    Instead(Instead),
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
        let intervening = host.intervening();
        let intervention = intervening.and_then(|(who, workflow)| who.attempt(workflow, &step));
        if let Some(intervention) = intervention {
            let around = Around {
                intervention,
                begun: false,
                returned: None,
            };
            return Ok(Self {
                step,
                started_at,
                body: None,
                around: Some(Box::new(around)),
                thread: None,
                span,
                time,
                timer: None,
            });
        }
        let made = within(span.as_deref(), &step, || source.start(Some(host), &step));
        let Started { body, thread } = made.map_err(Ended::Panicked)?;
        Ok(Self {
            step,
            started_at,
            body: Some(body),
            around: None,
            thread,
            span,
            time,
            timer: None,
        })
    }

    /// Polls the body, then the clock. Once it has ended, the body is gone.
    pub(super) fn poll(
        &mut self,
        source: &Source<'s, R>,
        host: &dyn Host,
        task: &mut Context<'_>,
    ) -> Poll<Ended<R>> {
        if self.around.is_some() {
            return match self.poll_around(source, host, task) {
                Poll::Ready(ended) => Poll::Ready(ended),
                Poll::Pending => self.poll_time(host, task),
            };
        }
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
        self.poll_time(host, task)
    }

    /// Polls what stands before the body, which polls the body.
    fn poll_around(
        &mut self,
        source: &Source<'s, R>,
        host: &dyn Host,
        task: &mut Context<'_>,
    ) -> Poll<Ended<R>> {
        let (Some(around), step) = (&mut self.around, &self.step) else {
            return Poll::Pending;
        };
        let (body, thread, span) = (&mut self.body, &mut self.thread, self.span.as_deref());
        let Around {
            intervention,
            begun,
            returned,
        } = &mut **around;
        let mut poll_body = |task: &mut Context<'_>| {
            let polled = within(span, step, || {
                if !*begun {
                    *begun = true;
                    let started = source.start(Some(host), step);
                    *body = Some(started.body);
                    *thread = started.thread;
                }
                match body {
                    Some(body) => body.as_mut().poll(task),
                    None => Poll::Pending,
                }
            });
            let ended = match polled {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(value)) => Ok(value),
                Err(panic) => Err(panic),
            };
            let dropped = within(span, step, || drop(body.take()));
            *returned = Some(ended.and_then(|value| dropped.map(|()| value)));
            Poll::Ready(())
        };
        // What stands before a body may panic in its place.
        let polled = within(span, step, || intervention.poll(task, &mut poll_body));
        let ended = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(Some(instead))) => Ended::Instead(instead),
            Ok(Poll::Ready(None)) => match returned.take() {
                Some(Ok(value)) => Ended::Returned(value),
                Some(Err(panic)) => Ended::Panicked(panic),
                None => Ended::Panicked("the step's body did not end".to_owned()),
            },
            Err(panic) => Ended::Panicked(panic),
        };
        self.around = None;
        // It may have been given up before its end.
        if self.body.is_some() {
            self.step.cancellation().cancel();
            if let Err(panic) = self.drop_body() {
                return Poll::Ready(Ended::Panicked(panic));
            }
        }
        Poll::Ready(ended)
    }

    /// Polls the clock: the attempt ends when its time is up.
    fn poll_time(&mut self, host: &dyn Host, task: &mut Context<'_>) -> Poll<Ended<R>> {
        let Some(time) = self.time else {
            return Poll::Pending;
        };
        let timer = self.timer.get_or_insert_with(|| host.sleep(time));
        if timer.as_mut().poll(task).is_pending() {
            return Poll::Pending;
        }
        self.step.cancellation().cancel();
        self.around = None;
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
