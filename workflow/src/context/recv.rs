//! `recv!`, `send!` and replies, under way.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::channel::ChannelOf;
use super::wait::{Operation, Polled};
use super::{Channel, Cx, Durable, Recorded, derived, opaque_debug};
use crate::codec::{self, BoxError};
use crate::replay::{
    Failure, FailureKind, InvalidRunId, Kind, Message, Op, Outcome, RunId, Site, Wanted,
};

/// Receives one message.
pub fn recv<'c, T>(
    cx: &Cx,
    site: &'static Site,
    channels: &'c [ChannelOf<'c, T>],
) -> Recv<'c, T, One> {
    Recv::new(cx, site, channels, None, 1, false)
}

/// Receives one message, if it arrives in time.
pub fn recv_within<'c, T>(
    cx: &Cx,
    site: &'static Site,
    channels: &'c [ChannelOf<'c, T>],
    timeout: Duration,
) -> Recv<'c, T, Maybe> {
    Recv::new(cx, site, channels, Some(timeout), 1, false)
}

/// Receives up to `count` messages, or exactly so many.
pub fn recv_many<'c, T>(
    cx: &Cx,
    site: &'static Site,
    channels: &'c [ChannelOf<'c, T>],
    timeout: Option<Duration>,
    count: u32,
    exactly: bool,
) -> Recv<'c, T, Many> {
    Recv::new(cx, site, channels, timeout, count, exactly)
}

/// What a receive gives: one item, one or none, several.
pub trait Shape<T> {
    /// What is given.
    type Given;

    /// Gives it.
    fn give(items: Vec<T>) -> Option<Self::Given>;
}

/// One item.
#[derive(Debug)]
pub enum One {}
/// One item or none.
#[derive(Debug)]
pub enum Maybe {}
/// Several items.
#[derive(Debug)]
pub enum Many {}

impl<T> Shape<T> for One {
    type Given = T;

    fn give(items: Vec<T>) -> Option<T> {
        items.into_iter().next()
    }
}

impl<T> Shape<T> for Maybe {
    type Given = Option<T>;

    fn give(items: Vec<T>) -> Option<Option<T>> {
        Some(items.into_iter().next())
    }
}

impl<T> Shape<T> for Many {
    type Given = Vec<T>;

    fn give(items: Vec<T>) -> Option<Vec<T>> {
        Some(items)
    }
}

/// A receive under way.
#[must_use = "futures do nothing unless polled"]
pub struct Recv<'c, T, S> {
    operation: Operation,
    channels: &'c [ChannelOf<'c, T>],
    shape: PhantomData<fn() -> S>,
}

opaque_debug!(Sending, <R> Reply<R>);

impl<T, S> std::fmt::Debug for Recv<'_, T, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recv").finish_non_exhaustive()
    }
}

impl<'c, T, S> Recv<'c, T, S> {
    fn new(
        cx: &Cx,
        site: &'static Site,
        channels: &'c [ChannelOf<'c, T>],
        timeout: Option<Duration>,
        count: u32,
        exactly: bool,
    ) -> Self {
        let mut names: Vec<String> = Vec::with_capacity(channels.len());
        for channel in channels {
            let name = channel.name();
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        let wanted = Wanted {
            channels: names,
            until: timeout.map(|timeout| cx.run().host().now().after(timeout)),
            poll: timeout.is_some_and(|timeout| timeout.is_zero()),
            count: count.max(1),
            exactly,
        };
        Self {
            operation: Operation::new(cx, site, Op::Recv(wanted)),
            channels,
            shape: PhantomData,
        }
    }

    fn read(&self, message: &Message) -> Result<T, BoxError> {
        let channel = self
            .channels
            .iter()
            .find(|channel| channel.name() == message.channel)
            .ok_or("the code no longer receives from its channel here")?;
        channel.read(self.operation.cx.run(), message)
    }
}

impl<T, S: Shape<T>> Future for Recv<'_, T, S> {
    type Output = Result<S::Given, Failure>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let run = Arc::clone(self.operation.cx.run());
        loop {
            match self.operation.poll_either(task) {
                Polled::Outcome(Outcome::Taken(messages)) => {
                    let items = messages.iter().map(|message| self.read(message));
                    return match items.collect() {
                        Ok(items) => match S::give(items) {
                            Some(given) => Poll::Ready(Ok(given)),
                            // A receive without a deadline takes at least one message.
                            None => Poll::Pending,
                        },
                        Err(error) => {
                            run.park_at_decode::<T>(&self.operation.location(), &error);
                            Poll::Pending
                        }
                    };
                }
                Polled::Outcome(Outcome::Ended(Err(failure))) => {
                    return Poll::Ready(Err(failure));
                }
                Polled::Outcome(_) | Polled::Pending => return Poll::Pending,
                Polled::Offer(ticket, offered) => {
                    // Read outside of the machine's lock: it is the user's code that does it.
                    let unreadable = offered
                        .iter()
                        .filter_map(|message| {
                            let error = self.read(message).err()?;
                            Some((message.arrival, error.to_string()))
                        })
                        .collect();
                    run.replay().accept(&ticket, unreadable);
                    self.operation.issued(ticket);
                }
            }
        }
    }
}

/// Something that names a run: an id, or a handle.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name a run",
    note = "help: give a `RunId`, a string, or a `RunHandle`"
)]
pub trait ToRun {
    /// The run's id.
    ///
    /// # Errors
    /// When it is no id.
    fn to_run(&self) -> Result<RunId, InvalidRunId>;
}

impl ToRun for RunId {
    fn to_run(&self) -> Result<RunId, InvalidRunId> {
        Ok(self.clone())
    }
}

impl ToRun for str {
    fn to_run(&self) -> Result<RunId, InvalidRunId> {
        parse(self)
    }
}

impl ToRun for String {
    fn to_run(&self) -> Result<RunId, InvalidRunId> {
        parse(self)
    }
}

/// The id of a run, or of a child run: that of its parent and a location.
fn parse(id: &str) -> Result<RunId, InvalidRunId> {
    match id.split_once('/') {
        Some((parent, location)) if !location.is_empty() => {
            RunId::new(parent)?;
            Ok(RunId::from_stored(id))
        }
        _ => RunId::new(id),
    }
}

/// As text, so that it may be part of an input, a message or a result.
impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).map_err(serde::de::Error::custom)
    }
}

#[diagnostic::do_not_recommend]
impl<T: ToRun + ?Sized> ToRun for &T {
    fn to_run(&self) -> Result<RunId, InvalidRunId> {
        (**self).to_run()
    }
}

/// Sends a message to a run. It is in that run's inbox in the transaction that records it here, and so once.
pub fn send<T: Recorded, R>(
    cx: &Cx,
    site: &'static Site,
    to: impl ToRun,
    channel: &Channel<T, R>,
    value: T,
) -> Sending {
    let id = derived::message_id(cx, site);
    let op = to.to_run().map_err(BoxError::from).and_then(|to| {
        let message = channel.message(id, &value, |json| cx.run().seal(json))?;
        Ok(Op::Send { to, message })
    });
    sending(cx, site, Kind::Send, op)
}

/// A value that cannot be sent is a failure of the site, and recorded as one.
fn sending(cx: &Cx, site: &'static Site, kind: Kind, op: Result<Op, BoxError>) -> Sending {
    let op = op.unwrap_or_else(|error| {
        let location = cx.location_of(site);
        let failure = Failure::new(FailureKind::Encode, location, error.to_string());
        Op::Failed { kind, failure }
    });
    Sending(Operation::new(cx, site, op))
}

/// A message on its way.
#[must_use = "futures do nothing unless polled"]
pub struct Sending(Operation);

impl Future for Sending {
    type Output = Result<(), Failure>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        self.0
            .poll(task)
            .map(|outcome| outcome.into_result().map(|_| ()))
    }
}

/// The answer to a request, to be awaited in the workflow.
#[must_use = "help: `.await` it: an answer that is not awaited is not given"]
pub struct Reply<R> {
    request: u128,
    answer: R,
}

impl<R> Reply<R> {
    pub(super) fn new(request: u128, answer: R) -> Self {
        Self { request, answer }
    }
}

#[diagnostic::do_not_recommend]
impl<R: Recorded> Durable for Reply<R> {
    type Output = Result<(), Failure>;
    type Future = Sending;

    fn run(self, cx: &Cx, site: &'static Site) -> Sending {
        let op = codec::encode(&self.answer)
            .map_err(BoxError::from)
            .and_then(|encoded| cx.run().seal(encoded.json))
            .map(|reply| Op::Reply {
                request: self.request,
                reply,
            });
        sending(cx, site, Kind::Reply, op)
    }
}
