//! `sleep!` and `now!`: waits and instants, as the history has them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::{Cx, opaque_debug};
use crate::replay::{Issue, Location, Message, Op, Outcome, Site, Ticket, Timestamp};

/// A wait for a deadline: the one recorded on first arrival.
#[must_use = "futures do nothing unless polled"]
pub struct Sleep(Operation);

/// The instant of first arrival.
#[must_use = "futures do nothing unless polled"]
pub struct Now(Operation);

opaque_debug!(Sleep, Now);

/// Waits for a time.
pub fn sleep(cx: &Cx, site: &'static Site, duration: Duration) -> Sleep {
    let until = cx.run().host().now().after(duration);
    Sleep(Operation::new(cx, site, Op::Sleep { until }))
}

/// Waits until a time.
pub fn sleep_until(cx: &Cx, site: &'static Site, until: impl Into<Timestamp>) -> Sleep {
    Sleep(Operation::new(
        cx,
        site,
        Op::Sleep {
            until: until.into(),
        },
    ))
}

/// Reads the clock, once.
pub fn now(cx: &Cx, site: &'static Site) -> Now {
    let now = cx.run().host().now();
    Now(Operation::new(cx, site, Op::Now { now }))
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        // That it ended is all there is to know of it.
        self.0.poll(task).map(|_| ())
    }
}

impl Future for Now {
    type Output = Timestamp;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Timestamp> {
        let run = self.0.cx.run().clone();
        let decoded = match ready!(self.0.poll(task)).into_result() {
            Ok(payload) => run.decode(&payload),
            Err(failure) => Err(failure.into()),
        };
        match decoded {
            Ok(now) => Poll::Ready(now),
            Err(error) => {
                run.park_at_decode::<Timestamp>(&self.0.cx.location_of(self.0.site), &error);
                Poll::Pending
            }
        }
    }
}

/// An operation without a body, on its way from its site to its outcome.
pub(super) struct Operation {
    pub(super) cx: Cx,
    site: &'static Site,
    state: State,
}

/// What an operation was given.
pub(super) enum Polled {
    /// Its outcome.
    Outcome(Outcome),
    /// Messages to be read.
    Offer(Ticket, Vec<Message>),
    Pending,
}

enum State {
    New(Op),
    Issued(Ticket),
    /// It ended, or it never will.
    Spent,
}

impl Operation {
    pub(super) fn new(cx: &Cx, site: &'static Site, op: Op) -> Self {
        Self {
            cx: cx.clone(),
            site,
            state: State::New(op),
        }
    }

    /// Where it is.
    pub(super) fn location(&self) -> Location {
        self.cx.location_of(self.site)
    }

    /// Its claim, once it was issued and while its outcome is not there.
    pub(super) fn ticket(&self) -> Option<&Ticket> {
        match &self.state {
            State::Issued(ticket) => Some(ticket),
            _ => None,
        }
    }

    /// Goes on waiting after an offer.
    pub(super) fn issued(&mut self, ticket: Ticket) {
        self.state = State::Issued(ticket);
    }

    pub(super) fn poll(&mut self, task: &mut Context<'_>) -> Poll<Outcome> {
        match self.poll_either(task) {
            Polled::Outcome(outcome) => Poll::Ready(outcome),
            Polled::Offer(ticket, _) => {
                self.issued(ticket);
                Poll::Pending
            }
            Polled::Pending => Poll::Pending,
        }
    }

    /// Its outcome, or, for a receive, messages to be read.
    pub(super) fn poll_either(&mut self, task: &mut Context<'_>) -> Polled {
        let mut replay = self.cx.run().replay();
        let ticket = match std::mem::replace(&mut self.state, State::Spent) {
            State::New(op) => match replay.issue(self.cx.scope(), self.site, op) {
                Issue::Ready(outcome) => return Polled::Outcome(outcome),
                Issue::Pending(ticket) => ticket,
                Issue::Never => return Polled::Pending,
            },
            State::Issued(ticket) => ticket,
            State::Spent => return Polled::Pending,
        };
        if let Poll::Ready(outcome) = replay.poll_outcome(&ticket, task.waker()) {
            return Polled::Outcome(outcome);
        }
        match replay.poll_offer(&ticket, task.waker()) {
            Poll::Ready(messages) => Polled::Offer(ticket, messages),
            Poll::Pending => {
                self.state = State::Issued(ticket);
                Polled::Pending
            }
        }
    }
}
