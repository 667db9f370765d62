//! A step that is awaited outside of workflows.

use std::pin::Pin;
use std::task::{Context, Poll};

use super::super::{BoxFut, CurrentStep};
use super::source::Source;

/// A step outside of workflows: its body, once, without retries, timeout and record.
#[must_use = "futures do nothing unless polled"]
pub struct Alone<'s, R> {
    step: CurrentStep,
    state: State<'s, R>,
}

enum State<'s, R> {
    New(Source<'s, R>),
    Running(BoxFut<'s, R>),
}

impl<'s, R> Alone<'s, R> {
    pub(super) fn new(source: Source<'s, R>) -> Self {
        Self {
            step: CurrentStep::alone(),
            state: State::New(source),
        }
    }
}

impl<R> Future for Alone<'_, R> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<R> {
        let this = &mut *self;
        let _entered = this.step.enter();
        if let State::New(source) = &this.state {
            this.state = State::Running(source.start(None, &this.step).body);
        }
        match &mut this.state {
            State::Running(body) => body.as_mut().poll(task),
            State::New(_) => Poll::Pending,
        }
    }
}
