//! What every store does with messages, posts and the ends of children.
//!
//! A store shows its newest state as a [`View`]. Here it is decided what a change does to which runs, down to the last
//! number: arrivals, stamps, wake times. What is written is a list of transitions, which are applied without a question.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::transition::Transition;
use super::{
    Answer, Appended, CHILD_ENDED, DeadLetter, Delivery, InboxChange, NewRun, Post, RunPatch,
    RunRow, StoreError, encoding,
};
use crate::replay::{
    Body, CodeId, Finished, Message, NewMessage, Payload, Record, RunId, RunKey, RunState,
    Timestamp,
};

/// What becomes of a message, or of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It is in the run's inbox.
    Put(Message),
    /// The message of this arrival is in the run's inbox no longer.
    Take(u64),
    /// It is among the run's dead letters, and in its inbox no longer.
    Dead(DeadLetter),
    /// It is kept until there is a run with this id.
    Stray(RunId, Stray),
    /// The message of this arrival is kept for this id no longer.
    Lapse(RunId, u64),
    /// A request is answered.
    Answer(u128, Answer),
    /// The application's value under a key is this, or gone.
    Value(String, Option<Payload>),
    /// Nothing of the run is there any more, nor are the answers to these requests.
    Gone(Vec<u128>),
}

/// A message for an id that no run has yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stray {
    pub(crate) message: Message,
    pub(crate) keep_until: Timestamp,
}

impl Effect {
    /// What it does to the row of the run.
    pub(crate) fn apply(&self, row: &mut RunRow) {
        if let Self::Put(message) | Self::Dead(DeadLetter { message, .. }) = self {
            row.inbox_seq = row.inbox_seq.max(message.arrival);
        }
    }
}

/// Records as a store keeps them.
pub(crate) trait Records: From<Vec<Record>> + Default {
    /// The run's end, if it is among them.
    fn finished(&self) -> Result<Option<Finished>, StoreError>;
}

impl Records for Vec<Record> {
    fn finished(&self) -> Result<Option<Finished>, StoreError> {
        Ok(self.last().and_then(|record| match &record.body {
            Body::Finished(finished) => Some(finished.clone()),
            _ => None,
        }))
    }
}

/// The newest state of a store, while something is written to it.
pub(crate) trait View {
    type Fault: From<StoreError>;
    type Records: Records;

    /// The row of a run.
    fn row(&mut self, run: RunKey) -> Result<Option<&RunRow>, Self::Fault>;
    /// The run with an id.
    fn find(&mut self, id: &RunId) -> Result<Option<RunKey>, Self::Fault>;
    /// Up to `limit` messages of a run's inbox after arrival `after`, in order.
    fn inbox(&mut self, run: RunKey, after: u64, limit: usize)
    -> Result<Vec<Message>, Self::Fault>;
    /// The id of the message that was delivered to a run with a dedup key.
    fn delivered(
        &mut self,
        run: RunKey,
        channel: &str,
        key: &str,
    ) -> Result<Option<u128>, Self::Fault>;
    /// The messages that are kept for an id, in order of arrival.
    fn strays(&mut self, id: &RunId) -> Result<Vec<Stray>, Self::Fault>;
    /// Some of the messages that were to be kept until `at` or less.
    fn lapsed(&mut self, at: Timestamp) -> Result<Vec<(RunId, u64)>, Self::Fault>;
    /// Whether a request is answered.
    fn is_answered(&mut self, request: u128) -> Result<bool, Self::Fault>;
    /// Writes what happens to a run, and its new records; what is asked after this is answered with it. Nothing that
    /// follows is refused.
    fn write(&mut self, transition: Transition, records: Self::Records);
}

/// Writes a batch, if it may be written.
pub(crate) fn append<V: View>(
    view: &mut V,
    mut transition: Transition,
    records: V::Records,
    inbox: InboxChange,
    posts: Vec<Post>,
) -> Result<Appended, V::Fault> {
    let taken = match &transition.create {
        Some(new) => view.find(&new.id)?,
        None => None,
    };
    if let Some(refused) = transition.judge(view.row(transition.run)?, taken)? {
        return Ok(refused);
    }
    receive(view, &mut transition, inbox)?;
    let sender = Sender {
        run: transition.run,
        epoch: transition.epoch,
        at: transition.patch.at,
        code: transition.patch.code,
    };
    advance(view, transition, records)?;
    for post in posts {
        sender.post(view, post)?;
    }
    Ok(Appended::Applied)
}

/// Cancels a run, if it is not final.
pub(crate) fn cancel<V: View>(
    view: &mut V,
    run: RunKey,
    at: Timestamp,
) -> Result<Appended, V::Fault> {
    let Some(row) = view.row(run)?.filter(|row| !row.state.is_final()) else {
        return Ok(Appended::Final);
    };
    let (transition, record) = Transition::cancel(row, at);
    advance(view, transition, vec![record].into())?;
    Ok(Appended::Applied)
}

/// Puts a message where the run with this id finds it.
pub(crate) fn deliver<V: View>(
    view: &mut V,
    to: &RunId,
    message: NewMessage,
    at: Timestamp,
    keep_until: Timestamp,
) -> Result<Delivery, V::Fault> {
    let Some(run) = view.find(to)? else {
        return keep(view, to, message, at, keep_until);
    };
    // Asked first: who sends again what has arrived learns that it has, also when the run is done with it.
    if let Some(key) = &message.dedup
        && let Some(id) = view.delivered(run, &message.channel, key)?
    {
        return Ok(Delivery::Duplicate { id });
    }
    put(view, run, message, at)
}

/// Puts a message into the inbox of a run.
fn put<V: View>(
    view: &mut V,
    run: RunKey,
    message: NewMessage,
    at: Timestamp,
) -> Result<Delivery, V::Fault> {
    let Some(row) = view.row(run)?.filter(|row| !row.state.is_final()) else {
        return Ok(Delivery::Final(run));
    };
    let arrival = row.inbox_seq + 1;
    let wakes = row
        .waits
        .as_deref()
        .is_some_and(|waits| on(waits, &message.channel));
    let mut transition = Transition::touch(row, at.max(row.updated_at));
    if wakes {
        transition.patch.wake_at = Some(Some(sooner(row.wake_at, at)));
    }
    let message = arrived(message, arrival, transition.patch.at);
    transition.effects.push(Effect::Put(message));
    view.write(transition, V::Records::default());
    Ok(Delivery::Queued {
        run: Some(run),
        arrival,
        wakes,
    })
}

/// Writes values that concern no run.
pub(crate) fn put_values<V: View>(view: &mut V, values: Vec<(String, Option<Payload>)>) {
    let values = values.into_iter();
    let mut transition = Transition::nobody();
    transition.effects = values
        .map(|(key, value)| Effect::Value(key, value))
        .collect();
    view.write(transition, V::Records::default());
}

/// Keeps a message for a run that may come to be.
fn keep<V: View>(
    view: &mut V,
    to: &RunId,
    message: NewMessage,
    at: Timestamp,
    keep_until: Timestamp,
) -> Result<Delivery, V::Fault> {
    let strays = view.strays(to)?;
    let first = strays.iter().find(|stray| {
        stray.keep_until > at
            && message.dedup.is_some()
            && (&stray.message.channel, &stray.message.dedup) == (&message.channel, &message.dedup)
    });
    if let Some(first) = first {
        let id = first.message.id;
        return Ok(Delivery::Duplicate { id });
    }
    let last = strays.last().map(|stray| &stray.message);
    let arrival = last.map_or(0, |last| last.arrival) + 1;
    let stamp = last.map_or(at, |last| last.at.max(at));
    let message = arrived(message, arrival, stamp);
    // Nobody else asks for those that nobody came for.
    let lapsed = view.lapsed(at)?;
    let lapsed = lapsed
        .into_iter()
        .map(|(to, arrival)| Effect::Lapse(to, arrival));
    let mut transition = Transition::nobody();
    transition.effects.extend(lapsed);
    transition.effects.push(Effect::Stray(
        to.clone(),
        Stray {
            message,
            keep_until,
        },
    ));
    view.write(transition, V::Records::default());
    Ok(Delivery::Queued {
        run: None,
        arrival,
        wakes: false,
    })
}

fn arrived(message: NewMessage, arrival: u64, at: Timestamp) -> Message {
    let NewMessage {
        id,
        channel,
        dedup,
        reply_to,
        payload,
    } = message;
    Message {
        id,
        channel,
        arrival,
        at,
        dedup,
        reply_to,
        payload,
    }
}

/// Whether one who waits on these channels is woken by a message on this one.
fn on(waits: &[String], channel: &str) -> bool {
    waits.is_empty() || waits.iter().any(|wait| wait == channel)
}

fn sooner(wake_at: Option<Timestamp>, at: Timestamp) -> Timestamp {
    wake_at.map_or(at, |wake_at| wake_at.min(at))
}

/// What a batch does to its run's inbox. Makes the run due when it waits for what is there already.
pub(super) fn receive<V: View>(
    view: &mut V,
    transition: &mut Transition,
    change: InboxChange,
) -> Result<(), V::Fault> {
    let at = transition.patch.at;
    let mut inbox = Inbox {
        run: transition.run,
        last: 0,
        put: BTreeMap::new(),
        gone: BTreeSet::new(),
        effects: Vec::new(),
    };
    let (mut waits, mut wake_at) = (None, None);
    if let Some(new) = &transition.create {
        inbox.claim(view, &new.id, at)?;
    } else if let Some(row) = view.row(transition.run)? {
        inbox.last = row.inbox_seq;
        wake_at = row.wake_at;
        // Cloned only where it may matter: most batches are of runs to which nothing was sent.
        if transition.patch.waits.is_none() && row.inbox_seq > 0 {
            waits.clone_from(&row.waits);
        }
    }
    if let Some(new) = &transition.patch.waits {
        waits.clone_from(new);
    }
    let returned: BTreeSet<_> = change
        .returns
        .iter()
        .map(|message| message.arrival)
        .collect();
    for message in change.returns {
        inbox.give_back(view, message)?;
    }
    for arrival in change.takes {
        inbox.take(view, arrival)?;
        inbox.effects.push(Effect::Take(arrival));
    }
    for (arrival, reason) in change.dead {
        let message = inbox.take(view, arrival)?;
        let letter = DeadLetter {
            message,
            reason,
            at,
        };
        inbox.effects.push(Effect::Dead(letter));
    }

    let ends = transition.patch.state.is_some_and(RunState::is_final);
    if let Some(waits) = waits.filter(|_| !ends)
        && inbox.holds(view, &waits, change.seen, &returned)?
    {
        let wake_at = transition.patch.wake_at.unwrap_or(wake_at);
        transition.patch.wake_at = Some(Some(sooner(wake_at, at)));
    }
    transition.effects = inbox.effects;
    Ok(())
}

/// A run's inbox while a batch changes it.
struct Inbox {
    run: RunKey,
    last: u64,
    /// What the batch puts there.
    put: BTreeMap<u64, Message>,
    gone: BTreeSet<u64>,
    effects: Vec<Effect>,
}

/// So many messages are looked at at once.
const LOOK: usize = 32;

impl Inbox {
    /// Moves what was kept for a new run into its inbox.
    fn claim<V: View>(&mut self, view: &mut V, id: &RunId, at: Timestamp) -> Result<(), V::Fault> {
        for Stray {
            message,
            keep_until,
        } in view.strays(id)?
        {
            self.last = message.arrival;
            self.effects
                .push(Effect::Lapse(id.clone(), message.arrival));
            if keep_until > at {
                self.effects.push(Effect::Put(message.clone()));
                self.put.insert(message.arrival, message);
            }
        }
        Ok(())
    }

    fn give_back<V: View>(&mut self, view: &mut V, message: Message) -> Result<(), V::Fault> {
        if message.arrival == 0
            || message.arrival > self.last
            || self.get(view, message.arrival)?.is_some()
        {
            return Err(self.conflict(message.arrival));
        }
        self.effects.push(Effect::Put(message.clone()));
        self.put.insert(message.arrival, message);
        Ok(())
    }

    fn take<V: View>(&mut self, view: &mut V, arrival: u64) -> Result<Message, V::Fault> {
        match self.get(view, arrival)? {
            Some(message) => {
                self.gone.insert(arrival);
                Ok(message)
            }
            None => Err(self.conflict(arrival)),
        }
    }

    fn get<V: View>(&self, view: &mut V, arrival: u64) -> Result<Option<Message>, V::Fault> {
        if arrival == 0 || self.gone.contains(&arrival) {
            return Ok(None);
        }
        if let Some(message) = self.put.get(&arrival) {
            return Ok(Some(message.clone()));
        }
        let found = view.inbox(self.run, arrival - 1, 1)?.pop();
        Ok(found.filter(|message| message.arrival == arrival))
    }

    fn conflict<F: From<StoreError>>(&self, arrival: u64) -> F {
        F::from(StoreError::Conflict {
            expected: arrival,
            found: self.last,
        })
    }

    /// Whether there is a message on one of these channels that its owner has not seen, or has just given back.
    fn holds<V: View>(
        &self,
        view: &mut V,
        waits: &[String],
        seen: u64,
        returned: &BTreeSet<u64>,
    ) -> Result<bool, V::Fault> {
        let counts = |message: &Message| {
            on(waits, &message.channel) && !self.gone.contains(&message.arrival)
        };
        let news = |arrival: &u64| *arrival > seen || returned.contains(arrival);
        if self
            .put
            .values()
            .any(|message| counts(message) && news(&message.arrival))
        {
            return Ok(true);
        }
        let mut after = seen;
        while after < self.last {
            let messages = view.inbox(self.run, after, LOOK)?;
            if messages.iter().any(&counts) {
                return Ok(true);
            }
            match messages.last() {
                Some(last) if messages.len() == LOOK => after = last.arrival,
                _ => break,
            }
        }
        Ok(false)
    }
}

/// Writes what an owner or a canceller does to a run. When that is its end, its parent is told in the same transaction.
fn advance<V: View>(
    view: &mut V,
    transition: Transition,
    records: V::Records,
) -> Result<(), V::Fault> {
    let at = transition.patch.at;
    let told = match transition.patch.state.filter(|state| state.is_final()) {
        Some(_) => child_ended(view, &transition, &records)?,
        None => None,
    };
    view.write(transition, records);
    if let Some((parent, message)) = told
        && let Some(parent) = view.find(&parent)?
    {
        // A final one wants to know nothing more.
        put(view, parent, message, at)?;
    }
    Ok(())
}

/// Who is to be told of the end of a run, and how.
fn child_ended<V: View>(
    view: &mut V,
    transition: &Transition,
    records: &V::Records,
) -> Result<Option<(RunId, NewMessage)>, V::Fault> {
    let (id, parent) = match (&transition.create, view.row(transition.run)?) {
        (Some(new), _) if !new.detached => (&new.id, &new.parent),
        (None, Some(row)) if !row.detached => (&row.id, &row.parent),
        _ => return Ok(None),
    };
    let Some((parent, _)) = parent else {
        return Ok(None);
    };
    // An owner that ends a run says how; the parent must not wait for ever if it does not.
    let finished = records.finished()?.unwrap_or(Finished::Cancelled);
    let mut payload = Vec::new();
    encoding::encode_finished(&finished, &mut payload);
    let message = NewMessage {
        id: transition.run.0.into(),
        channel: CHILD_ENDED.to_owned(),
        dedup: None,
        reply_to: Some(Bytes::copy_from_slice(id.as_str().as_bytes())),
        payload: Payload {
            codec: 0,
            bytes: payload.into(),
        },
    };
    Ok(Some((parent.clone(), message)))
}

/// The run whose batch does something to others.
pub(super) struct Sender {
    pub(super) run: RunKey,
    pub(super) epoch: u64,
    pub(super) at: Timestamp,
    pub(super) code: CodeId,
}

impl Sender {
    pub(super) fn post<V: View>(&self, view: &mut V, post: Post) -> Result<(), V::Fault> {
        match post {
            Post::Message {
                to,
                message,
                keep_until,
            } => {
                // Delivered or not, the message is the receiver's; a copy is needed only where it is nobody's.
                let copy = message.clone();
                if let Delivery::Final(_) = deliver(view, &to, message, self.at, keep_until)? {
                    self.bury(view, &to, copy)?;
                }
            }
            Post::Run { run, new, records } => self.start(view, run, new, records)?,
            Post::Cancel(id) => {
                // What is being undone goes on with that: nobody but an operator ends it there.
                let run = view.find(&id)?;
                if let Some(run) = run
                    && !view.row(run)?.is_some_and(RunRow::is_undone)
                {
                    cancel(view, run, self.at)?;
                }
            }
            Post::Values(values) => put_values(view, values),
            Post::Answer { request, answer } => {
                if !view.is_answered(request)? {
                    let mut transition = Transition::nobody();
                    transition.effects.push(Effect::Answer(request, answer));
                    view.write(transition, V::Records::default());
                }
            }
        }
        Ok(())
    }

    /// Puts a message that cannot be delivered into the sender's own dead letters. It gets a number of the sender's
    /// inbox, so that the letters of both kinds have one order.
    fn bury<V: View>(&self, view: &mut V, to: &RunId, message: NewMessage) -> Result<(), V::Fault> {
        let Some(row) = view.row(self.run)? else {
            return Ok(());
        };
        let arrival = row.inbox_seq + 1;
        let mut transition = Transition::touch(row, self.at.max(row.updated_at));
        let letter = DeadLetter {
            message: arrived(message, arrival, transition.patch.at),
            reason: format!("it was sent to run `{to}`, which had ended"),
            at: self.at,
        };
        transition.effects.push(Effect::Dead(letter));
        view.write(transition, V::Records::default());
        Ok(())
    }

    fn start<V: View>(
        &self,
        view: &mut V,
        run: RunKey,
        new: NewRun,
        records: Vec<Record>,
    ) -> Result<(), V::Fault> {
        if view.find(&new.id)?.is_some() || view.row(run)?.is_some() {
            return Ok(());
        }
        let mut transition = Transition {
            run,
            epoch: self.epoch,
            number: 0,
            expected_seq: 0,
            last_seq: records.len() as u64,
            create: Some(new),
            deletes: Vec::new(),
            removed: Vec::new(),
            patch: RunPatch {
                at: self.at,
                code: self.code,
                ..RunPatch::default()
            },
            effects: Vec::new(),
        };
        receive(view, &mut transition, InboxChange::default())?;
        advance(view, transition, records.into())
    }
}
