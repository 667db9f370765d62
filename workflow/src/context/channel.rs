//! Channels: what is sent to a run from outside, and received in it.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use super::{Recorded, Run};
use crate::codec::{self, BoxError};
use crate::replay::{Message, NewMessage};

/// A typed channel, shared by those who send and the workflows that receive:
///
/// ```
/// use workflow::Channel;
///
/// static PAYMENT: Channel<u32> = Channel::new("payment");
/// ```
///
/// A message sent on it lies in the inbox of one run until that run takes it. Channels are told apart by their name,
/// within one run; two with the same name are one.
///
/// With a second type it is a channel of requests: who receives has to [`reply`](Request::reply) with an `R`, and who
/// sends waits for it.
pub struct Channel<T, R = OneWay> {
    name: &'static str,
    /// Told by [`new`](Self::new), so that what cannot be recorded is refused there and nowhere else.
    read: fn(&Run, &Message) -> Result<T, BoxError>,
    types: PhantomData<fn(T) -> R>,
}

/// The answer of a [`Channel`] whose messages are not answered.
#[derive(Debug, Clone, Copy)]
pub enum OneWay {}

impl<T: Recorded, R> Channel<T, R> {
    /// A channel of that name.
    ///
    /// # Panics
    /// At compile time, in a `static`: when the name is empty or begins with a NUL, which names of the engine's own do.
    pub const fn new(name: &'static str) -> Self {
        assert!(
            !name.is_empty(),
            "the name of a channel is empty: it is what senders and receivers find each other by\nhelp: give it one, such as `Channel::new(\"payment\")`"
        );
        assert!(
            name.as_bytes()[0] != 0,
            "the name of a channel begins with a NUL"
        );
        Self {
            name,
            read: read::<T>,
            types: PhantomData,
        }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// A message on this channel.
    ///
    /// # Errors
    /// When the value does not survive JSON, or the codec cannot seal it.
    pub(crate) fn message(
        &self,
        id: u128,
        value: &T,
        seal: impl FnOnce(Vec<u8>) -> Result<crate::replay::Payload, BoxError>,
    ) -> Result<NewMessage, BoxError> {
        let encoded = codec::encode(value)
            .map_err(|error| format!("a `{}` does not survive JSON: {error}", type_name::<T>()))?;
        Ok(NewMessage {
            id,
            channel: self.name.to_owned(),
            dedup: None,
            reply_to: None,
            payload: seal(encoded.json)?,
        })
    }
}

fn read<T: Recorded>(run: &Run, message: &Message) -> Result<T, BoxError> {
    run.decode(&message.payload)
}

impl<T, R> fmt::Debug for Channel<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Channel").field(&self.name).finish()
    }
}

/// A request, taken by a run. Its sender waits until it is answered, or until the run has ended.
#[must_use = "help: answer it with `.reply(value).await?`: whoever sent this waits for that"]
#[derive(Debug)]
pub struct Request<T, R> {
    value: T,
    id: u128,
    types: PhantomData<fn(R)>,
}

impl<T, R> Request<T, R> {
    /// What was asked.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// Answers it: `request.reply(answer).await?` in the workflow. The answer is recorded and given in one transaction. The first
    /// answer stays.
    pub fn reply(self, answer: R) -> super::Reply<R> {
        super::Reply::new(self.id, answer)
    }
}

impl<T, R> Deref for Request<T, R> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// What can be received from. Implemented by [`Channel`] only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a channel that can be received from",
    label = "`recv!` takes channels",
    note = "help: declare one: `static PAYMENT: Channel<Payment> = Channel::new(\"payment\");`, of a type that is `Serialize` and `DeserializeOwned`"
)]
pub trait Receive: Sync {
    /// What a message gives.
    type Item;

    /// The channel's name.
    fn channel(&self) -> &'static str;

    /// What a message says.
    ///
    /// # Errors
    /// When it does not decode.
    fn read(&self, run: &Run, message: &Message) -> Result<Self::Item, BoxError>;
}

impl<T> Receive for Channel<T> {
    type Item = T;

    fn channel(&self) -> &'static str {
        self.name
    }

    fn read(&self, run: &Run, message: &Message) -> Result<T, BoxError> {
        (self.read)(run, message)
    }
}

impl<T, R: Recorded> Receive for Channel<T, R> {
    type Item = Request<T, R>;

    fn channel(&self) -> &'static str {
        self.name
    }

    fn read(&self, run: &Run, message: &Message) -> Result<Request<T, R>, BoxError> {
        Ok(Request {
            value: (self.read)(run, message)?,
            id: message.id,
            types: PhantomData,
        })
    }
}

#[diagnostic::do_not_recommend]
impl<C: Receive + ?Sized> Receive for &C {
    type Item = C::Item;

    fn channel(&self) -> &'static str {
        (**self).channel()
    }

    fn read(&self, run: &Run, message: &Message) -> Result<C::Item, BoxError> {
        (**self).read(run, message)
    }
}

/// A channel of which nothing is known but its name and what its messages give.
pub struct ChannelOf<'c, T>(&'c dyn Receive<Item = T>);

impl<T> ChannelOf<'_, T> {
    pub(super) fn name(&self) -> &'static str {
        self.0.channel()
    }

    pub(super) fn read(&self, run: &Run, message: &Message) -> Result<T, BoxError> {
        self.0.read(run, message)
    }
}

impl<T> fmt::Debug for ChannelOf<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChannelOf").field(&self.name()).finish()
    }
}

/// A channel that is received from.
pub fn channel<C: Receive>(channel: &C) -> ChannelOf<'_, C::Item> {
    ChannelOf(channel)
}

/// Makes sure that `OneWay` is never taken for an answer: it is not `Serialize`, and must not become so.
#[expect(dead_code, reason = "its bounds are what matters")]
fn one_way_is_no_answer<T>()
where
    T: Serialize + for<'de> Deserialize<'de>,
{
}
