//! Messages on their way to runs, and what runs do to others.

use std::hash::Hasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use siphasher::sip128::{Hasher128, SipHasher24};

use super::live::{Command, Live};
use super::room::Place;
use super::{Engine, Inner, RunHandle, telemetry};
use crate::codec;
use crate::context::{Channel, Recorded, ToRun, Workflow};
use crate::replay::{
    Begun, Body, ChildStart, Failure, FailureKind, Finished, Incoming, Location, Message,
    NewMessage, Payload, Record, Replay, RunId, RunKey, RunState, Sent, Waiting,
};
use crate::store::{Answer, CHILD_ENDED, DeadLetter, Delivery, NewRun, Post, StoreError, encoding};

/// Why a message was not sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The id cannot be one.
    #[error(transparent)]
    InvalidId(#[from] crate::replay::InvalidRunId),
    /// The value does not survive the codec, or is over the payload limit.
    #[error("the message on channel `{channel}` cannot be sent: {detail}")]
    Value {
        /// The channel.
        channel: &'static str,
        /// Why.
        detail: String,
    },
    /// The run has ended, and takes no more messages.
    #[error("run `{id}` is {state} and takes no more messages")]
    Ended {
        /// The run.
        id: RunId,
        /// How it ended.
        state: RunState,
    },
    /// The engine is being shut down.
    #[error("the engine is shutting down; send the message to the next one")]
    ShuttingDown,
    /// The store failed. Whether the message was delivered is unknown: send it again with a dedup key, and it is delivered once.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// It was not sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The run took the request and came to its end without a reply.
    #[error("run `{id}` ended without a reply to the request on channel `{channel}`")]
    NoReply {
        /// The run.
        id: RunId,
        /// The channel.
        channel: &'static str,
    },
    /// The answer does not decode.
    #[error("the answer of run `{id}` does not decode: {detail}")]
    Answer {
        /// The run.
        id: RunId,
        /// Why.
        detail: String,
    },
    /// The engine was shut down while the request was waited for. Made again with the same dedup key, it goes on waiting for the
    /// same answer.
    #[error("the engine was shut down before run `{id}` answered")]
    ShutDown {
        /// The run.
        id: RunId,
    },
}

/// How many messages are read from an inbox at a time.
pub(super) const PAGE: usize = 256;

/// The ids of the messages that this engine sends.
#[derive(Debug, Default)]
pub(crate) struct MessageIds(AtomicU64);

impl Engine {
    /// Sends a message to a run, whatever its workflow. When this returns, the message is durably in the run's inbox.
    ///
    /// A run of that id need not have been started: the message is kept for
    /// [`EngineBuilder::keep_messages`](super::EngineBuilder::keep_messages), and is in the run's inbox when it starts.
    ///
    /// # Errors
    /// [`SendError`].
    ///
    /// # Cancel safety
    /// Dropped before it returns, the message may or may not have been delivered.
    pub async fn send<T: Recorded, R>(
        &self,
        to: impl ToRun,
        channel: &Channel<T, R>,
        value: &T,
    ) -> Result<(), SendError> {
        let to = to.to_run()?;
        self.inner.send(&to, channel, value, None).await.map(drop)
    }

    /// Sends a message to a run once: a second one to the same run and channel with the same key is not delivered.
    /// The key is yours: a webhook's event id, say. Otherwise as [`send`](Self::send).
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn send_once<T: Recorded, R>(
        &self,
        to: impl ToRun,
        channel: &Channel<T, R>,
        key: impl Into<String>,
        value: &T,
    ) -> Result<(), SendError> {
        let to = to.to_run()?;
        self.inner
            .send(&to, channel, value, Some(key.into()))
            .await
            .map(drop)
    }
}

impl<W: Workflow> RunHandle<W> {
    /// Sends a message to the run. As [`Engine::send`].
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn send<T: Recorded, R>(
        &self,
        channel: &Channel<T, R>,
        value: &T,
    ) -> Result<(), SendError> {
        let inner = &self.engine().inner;
        inner.send(self.id(), channel, value, None).await.map(drop)
    }

    /// Sends a message to the run once. As [`Engine::send_once`].
    ///
    /// # Errors
    /// [`SendError`].
    pub async fn send_once<T: Recorded, R>(
        &self,
        channel: &Channel<T, R>,
        key: impl Into<String>,
        value: &T,
    ) -> Result<(), SendError> {
        let inner = &self.engine().inner;
        inner
            .send(self.id(), channel, value, Some(key.into()))
            .await
            .map(drop)
    }

    /// Sends a request to the run and waits for the answer.
    ///
    /// # Errors
    /// [`RequestError`].
    ///
    /// # Cancel safety
    /// Dropping this future does not take the request back. Made again by [`request_once`](Self::request_once) with the
    /// same key, it waits for the same answer.
    pub async fn request<T: Recorded, R: Recorded>(
        &self,
        channel: &Channel<T, R>,
        value: &T,
    ) -> Result<R, RequestError> {
        self.ask(channel, value, None).await
    }

    /// Sends a request to the run once, and waits for the answer: made a second time with the same key, it waits for, or gets,
    /// the answer of the first.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn request_once<T: Recorded, R: Recorded>(
        &self,
        channel: &Channel<T, R>,
        key: impl Into<String>,
        value: &T,
    ) -> Result<R, RequestError> {
        self.ask(channel, value, Some(key.into())).await
    }

    /// Up to `limit` messages that the run could not read, in arrival order, from the one after arrival `after` on.
    ///
    /// # Errors
    /// The store failed.
    pub async fn dead_letters(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, crate::Error> {
        let inner = &self.engine().inner;
        Ok(inner.store.dead_letters(self.key(), after, limit).await?)
    }

    async fn ask<T: Recorded, R: Recorded>(
        &self,
        channel: &Channel<T, R>,
        value: &T,
        key: Option<String>,
    ) -> Result<R, RequestError> {
        let inner = &self.engine().inner;
        let request = inner.send(self.id(), channel, value, key).await?;
        let unread = |detail: String| RequestError::Answer {
            id: self.id().clone(),
            detail,
        };
        loop {
            // Looked at before the store is: an answer that comes in between is seen as a change.
            let seen = self.board().answers();
            let answer = inner.store.answer(request).await.map_err(SendError::from)?;
            match answer {
                Some(Answer::Reply(payload)) => {
                    let json = codec::open(&*inner.codec, &payload)
                        .map_err(|error| unread(error.to_string()))?;
                    return serde_json::from_slice(&json)
                        .map_err(|error| unread(error.to_string()));
                }
                Some(Answer::NoReply) => return Err(self.no_reply(channel.name())),
                None => {}
            }
            let row = inner.store.row(self.key()).await.map_err(SendError::from)?;
            if row.is_none_or(|row| row.state.is_final()) {
                return Err(self.no_reply(channel.name()));
            }
            if inner.is_closing() {
                return Err(RequestError::ShutDown {
                    id: self.id().clone(),
                });
            }
            self.board().answered(seen).await;
        }
    }

    fn no_reply(&self, channel: &'static str) -> RequestError {
        RequestError::NoReply {
            id: self.id().clone(),
            channel,
        }
    }
}

impl Inner {
    /// Puts a message into a run's inbox; gives its id, or that of the first with its key.
    async fn send<T: Recorded, R>(
        self: &Arc<Self>,
        to: &RunId,
        channel: &Channel<T, R>,
        value: &T,
        key: Option<String>,
    ) -> Result<u128, SendError> {
        if self.is_closing() {
            return Err(SendError::ShuttingDown);
        }
        let limit = self.payload_limit;
        let seal = |json: Vec<u8>| {
            let payload = codec::seal(&*self.codec, json)?;
            let size = payload.bytes.len();
            if size > limit {
                return Err(
                    format!("it is {size} bytes, over the payload limit of {limit}").into(),
                );
            }
            Ok(payload)
        };
        let id = self.message_id();
        let message = channel
            .message(id, value, seal)
            .map_err(|error| SendError::Value {
                channel: channel.name(),
                detail: error.to_string(),
            })?;
        let message = NewMessage {
            dedup: key,
            ..message
        };
        let now = self.clock.now();
        let keep_until = now.after(self.keep_messages);
        let delivered = self.store.deliver(to, message, now, keep_until).await;
        if delivered.is_err() {
            // It may be there all the same, and nobody else says so.
            self.news_of(to.clone());
        }
        match delivered? {
            Delivery::Queued { run, .. } => {
                if let Some(run) = run {
                    self.news(run);
                }
                Ok(id)
            }
            Delivery::Duplicate { id } => Ok(id),
            Delivery::Final(run) => {
                let state = match self.store.row(run).await? {
                    Some(row) => row.state,
                    None => RunState::Completed,
                };
                Err(SendError::Ended {
                    id: to.clone(),
                    state,
                })
            }
        }
    }

    /// An id that no other message has: a keyed hash of the store, its opening and a count.
    fn message_id(&self) -> u128 {
        let mut hasher = SipHasher24::new_with_key(&self.identity.id.to_le_bytes());
        hasher.write_u64(self.identity.boot);
        hasher.write_u64(self.message_ids.0.fetch_add(1, Ordering::Relaxed));
        hasher.finish128().as_u128()
    }

    /// Something came into the inbox of a run. One in memory looks; one that is not is driven, if it waits for that.
    pub(crate) fn news(self: &Arc<Self>, run: RunKey) {
        let live = self.runs().by_key.get(&run).cloned();
        if let Some(live) = live {
            return live.news();
        }
        let inner = Arc::clone(self);
        tokio::spawn(async move {
            match inner.store.row(run).await {
                Ok(Some(row)) if row.is_due(inner.clock.now()) => inner.wake(run),
                Ok(_) => {}
                // Its row says that it is due; it is found when the deadlines are read again.
                Err(error) => {
                    tracing::warn!(?run, %error, "a run with news could not be looked at");
                }
            }
        });
    }

    /// A batch is durable that did something to others.
    pub(super) fn posted(self: &Arc<Self>, by: RunKey, posts: &[Post]) {
        for post in posts {
            match post {
                Post::Message { to, .. } => self.news_of(to.clone()),
                Post::Run { run, new, .. } => {
                    telemetry::started(&new.id, &new.workflow);
                    match new.not_before {
                        None => self.wake_at(Place::new(new.priority, *run)),
                        Some(at) => self.scheduler.suspended(at, *run),
                    }
                    if let Some((parent, _)) = &new.parent
                        && !new.detached
                    {
                        self.check_child(parent, &new.id);
                    }
                }
                Post::Cancel(id) => self.cancelled(id.clone()),
                Post::Values(_) => {}
                Post::Answer { .. } => {
                    if let Some(board) = self.boards.find(by) {
                        board.answer();
                    }
                }
            }
        }
    }

    /// Makes sure that a child with an id of its own is the parent's: if another run has the id, the parent would wait for ever.
    fn check_child(self: &Arc<Self>, parent: &RunId, child: &RunId) {
        if child.is_under(parent) {
            return;
        }
        let (inner, parent, child) = (Arc::clone(self), parent.clone(), child.clone());
        tokio::spawn(async move {
            let ours = match inner.store.find(&child).await {
                Ok(Some(row)) => row.parent.is_some_and(|(of, _)| of == parent) && !row.detached,
                Ok(None) => false,
                // It is looked at again when the parent is next driven.
                Err(_) => return,
            };
            if ours {
                return;
            }
            let failure = Failure::new(
                FailureKind::Child,
                Location::root(),
                "another run has this id: give the child another one",
            );
            let mut payload = Vec::new();
            encoding::encode_finished(&Finished::Failed(failure), &mut payload);
            let message = NewMessage {
                id: inner.message_id(),
                channel: CHILD_ENDED.to_owned(),
                dedup: Some(child.to_string()),
                reply_to: Some(child.as_str().to_owned().into()),
                payload: Payload::json(payload),
            };
            let now = inner.clock.now();
            if let Ok(Delivery::Queued { run: Some(run), .. }) =
                inner.store.deliver(&parent, message, now, now).await
            {
                inner.news(run);
            }
        });
    }

    /// The same for all the children that a run was waiting for when it was loaded.
    pub(super) fn check_children(self: &Arc<Self>, parent: &RunId, history: &[Record]) {
        for child in waited_for(history) {
            self.check_child(parent, &child);
        }
    }

    /// Something came into the inbox of the run with this id.
    pub(super) fn news_of(self: &Arc<Self>, id: RunId) {
        let run = self.runs().by_id.get(&id).copied();
        if let Some(run) = run {
            return self.news(run);
        }
        let inner = Arc::clone(self);
        tokio::spawn(async move {
            if let Ok(Some(row)) = inner.store.find(&id).await {
                inner.news(row.key);
            }
        });
    }

    /// A run was cancelled in a transaction of another.
    fn cancelled(self: &Arc<Self>, id: RunId) {
        let inner = Arc::clone(self);
        tokio::spawn(async move {
            if let Ok(Some(row)) = inner.store.find(&id).await
                && row.state == RunState::Cancelled
            {
                telemetry::cancelled(&row.id, &row.workflow);
                inner.told_cancelled(row.key);
                inner.cancel_children(row.key).await;
            }
        });
    }

    /// The store has a run cancelled: whoever drives it or waits for it is told.
    pub(super) fn told_cancelled(self: &Arc<Self>, run: RunKey) {
        let live = {
            let mut runs = self.runs();
            if let Some(cancelled) = runs.coming.get_mut(&run) {
                *cancelled = true;
            }
            runs.by_key.get(&run).cloned()
        };
        if let Some(live) = live {
            live.tell(Command::Cancelled);
        }
        // It may have left just before it was told.
        if !self.is_live(run) {
            self.frees(run);
            self.tell(run, super::board::Told::Cancelled);
        }
    }

    /// Cancels the runs that a cancelled run was waiting for, and theirs.
    pub(super) async fn cancel_children(self: &Arc<Self>, run: RunKey) {
        let mut cancelled = vec![run];
        while let Some(run) = cancelled.pop() {
            let history = match self.store.load(run).await {
                Ok(Some(loaded)) => loaded.history,
                Ok(None) => continue,
                Err(error) => {
                    tracing::warn!(?run, %error, "the children of a cancelled run could not be read");
                    continue;
                }
            };
            for child in waited_for(&history) {
                let Ok(Some(row)) = self.store.find(&child).await else {
                    continue;
                };
                // What it did is being undone already.
                if row.is_undone() {
                    continue;
                }
                if let Ok(crate::store::Appended::Applied) =
                    self.store.cancel(row.key, self.clock.now()).await
                {
                    telemetry::cancelled(&row.id, &row.workflow);
                    self.told_cancelled(row.key);
                    cancelled.push(row.key);
                }
            }
        }
    }

    /// What a run does to others, as the store is asked for it.
    pub(super) fn post(&self, live: &Live, sent: Sent) -> Post {
        let now = self.clock.now();
        match sent {
            Sent::Message { to, message } => Post::Message {
                to,
                message,
                keep_until: now.after(self.keep_messages),
            },
            Sent::Cancel(id) => Post::Cancel(id),
            Sent::Values(values) => Post::Values(values),
            Sent::Answer { request, reply } => Post::Answer {
                request,
                answer: Answer::Reply(reply),
            },
            Sent::Child(child) => {
                let ChildStart {
                    id,
                    workflow,
                    input,
                    input_hash,
                    location,
                    detached,
                    terms,
                } = child;
                let parent = Some((live.id.clone(), location));
                let begun = Begun {
                    workflow: workflow.to_owned(),
                    input,
                    input_hash,
                    seed: super::start::derive_seed(self.identity.id, &id),
                    generation: 0,
                    parent: parent.clone(),
                    forked_from: None,
                };
                let batch = Replay::begin(begun, self.code).poll_append(now);
                Post::Run {
                    run: self.store.allocate(),
                    new: NewRun {
                        id,
                        workflow: workflow.to_owned(),
                        parent,
                        detached,
                        not_before: terms.not_before(now),
                        priority: terms.priority.unwrap_or(live.priority),
                    },
                    records: batch.map(|batch| batch.records).unwrap_or_default(),
                }
            }
        }
    }
}

/// What lies in an inbox, as the machine takes it.
pub(super) fn incoming(messages: Vec<Message>) -> Vec<Incoming> {
    messages.into_iter().map(read).collect()
}

fn read(message: Message) -> Incoming {
    if message.channel != CHILD_ENDED {
        return Incoming::Message(message);
    }
    let child = message.reply_to.as_deref().unwrap_or_default();
    let child = RunId::from_stored(&String::from_utf8_lossy(child));
    let result = match encoding::decode_finished(&message.payload.bytes) {
        Ok(Finished::Completed(value)) => Ok(value),
        Ok(Finished::Failed(failure)) => Err(failure),
        Ok(Finished::Cancelled) => Err(Failure::new(
            FailureKind::Cancelled,
            Location::root(),
            "it was cancelled",
        )),
        Err(error) => Err(Failure::new(
            FailureKind::Decode,
            Location::root(),
            format!("its end cannot be read: {error}"),
        )),
    };
    Incoming::ChildEnded {
        arrival: message.arrival,
        child,
        result,
    }
}

/// The children that a run has started and was still waiting for.
pub(super) fn waited_for(history: &[Record]) -> Vec<RunId> {
    let mut waiting = std::collections::BTreeMap::new();
    for record in history {
        match &record.body {
            Body::Waiting(Waiting::Child {
                id,
                detached: false,
            }) => {
                waiting.insert(record.location.clone(), id.clone());
            }
            Body::Ended(_) => {
                waiting.remove(&record.location);
            }
            _ => {}
        }
    }
    waiting.into_values().collect()
}
