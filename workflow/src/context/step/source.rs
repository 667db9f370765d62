//! Where the body of an attempt comes from.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use super::super::{BoxFut, CurrentStep, Host};

/// Makes a body for each attempt.
pub(super) enum Source<'s, R> {
    /// Of a step function: it owns its arguments.
    Owned(Box<dyn Fn() -> BoxFut<'s, R> + Send + 's>),
    /// Of a step in place: it borrows from the workflow.
    Borrowed(&'s (dyn Fn() -> BoxFut<'s, R> + Sync + 's)),
    /// On a thread of the host that may block; in place, when there is no host.
    Blocking(Box<StartBlocking<'s, R>>),
}

/// Starts a body on a thread.
type StartBlocking<'s, R> = dyn Fn(Option<&dyn Host>, &CurrentStep) -> Started<'s, R> + Send + 's;

/// A body, and the thread that it occupies, if it does.
pub(super) struct Started<'s, R> {
    pub(super) body: BoxFut<'s, R>,
    pub(super) thread: Option<Thread>,
}

impl<'s, R> Source<'s, R> {
    pub(super) fn start(&self, host: Option<&dyn Host>, step: &CurrentStep) -> Started<'s, R> {
        let body = match self {
            Self::Owned(body) => body(),
            Self::Borrowed(body) => body(),
            Self::Blocking(start) => return start(host, step),
        };
        Started { body, thread: None }
    }
}

/// The source of bodies that block.
pub(super) fn blocking<R: Send + 'static>(
    body: Arc<dyn Fn() -> R + Send + Sync>,
) -> Source<'static, R> {
    Source::Blocking(Box::new(move |host, step| {
        let body = Arc::clone(&body);
        match host {
            Some(host) => on_a_thread(host, step.clone(), body),
            None => Started {
                body: Box::pin(async move { body() }),
                thread: None,
            },
        }
    }))
}

fn on_a_thread<R: Send + 'static>(
    host: &dyn Host,
    step: CurrentStep,
    body: Arc<dyn Fn() -> R + Send + Sync>,
) -> Started<'static, R> {
    let job = Arc::new(Job {
        state: Mutex::new(State::Running(None)),
    });
    let thread = Thread(Arc::new(Occupied::default()));
    // Also when the host drops the job unrun.
    let (ours, freed) = (Arc::clone(&job), FreedWhenDropped(thread.clone()));
    host.run_blocking(Box::new(move || {
        // Nobody waits for it any more when it was given up before there was a thread for it.
        if !step.cancellation().is_cancelled() {
            let entered = step.enter();
            let ended = catch_unwind(AssertUnwindSafe(|| body()));
            drop(entered);
            // The arguments go before the outcome comes.
            drop(body);
            ours.end(ended);
        }
        drop(freed);
    }));
    Started {
        body: Box::pin(Joined(job)),
        thread: Some(thread),
    }
}

/// A thread that a body occupies, also after its attempt was given up.
#[derive(Clone)]
pub(super) struct Thread(Arc<Occupied>);

#[derive(Default)]
struct Occupied(Mutex<(bool, Option<Waker>)>);

impl Thread {
    /// Ready when the body has let go of it.
    pub(super) fn poll_free(&self, task: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.0 {
            return Poll::Ready(());
        }
        state.1 = Some(task.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, (bool, Option<Waker>)> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct FreedWhenDropped(Thread);

impl Drop for FreedWhenDropped {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.0.lock();
            state.0 = true;
            state.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A body on a thread, and whoever waits for it.
struct Job<R> {
    state: Mutex<State<R>>,
}

enum State<R> {
    Running(Option<Waker>),
    Ended(thread::Result<R>),
    Taken,
}

impl<R> Job<R> {
    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, ended: thread::Result<R>) {
        let before = std::mem::replace(&mut *self.lock(), State::Ended(ended));
        if let State::Running(Some(waker)) = before {
            waker.wake();
        }
    }
}

struct Joined<R>(Arc<Job<R>>);

impl<R> Future for Joined<R> {
    type Output = R;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<R> {
        let mut state = self.0.lock();
        if let State::Running(waker) = &mut *state {
            *waker = Some(task.waker().clone());
            return Poll::Pending;
        }
        let ended = std::mem::replace(&mut *state, State::Taken);
        drop(state);
        match ended {
            State::Ended(Ok(value)) => Poll::Ready(value),
            State::Ended(Err(panic)) => resume_unwind(panic),
            State::Running(_) | State::Taken => Poll::Pending,
        }
    }
}
