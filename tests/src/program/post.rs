//! Messages that are sent to the run, and where each of them is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use workflow::replay::{
    Begun, Body, Finished, Incoming, Message, NewMessage, Replay, RunKey, Segment, Sent, Waiting,
};
use workflow::store::{
    Answer, Append, Appended, CHILD_ENDED, DeadLetter, Delivery, InboxChange, Loaded, NewRun, Page,
    Post, RunFilter, RunPatch, RunRow, Store, encoding,
};
use workflow::{
    Channel, Failure, FailureKind, Location, Payload, Record, RunId, RunState, Timestamp,
};

use super::ast::Wants;
use super::code::{CODE, begun, new_run};
use super::drive::{now, read};
use super::random::Random;
use super::sites;
use super::walk::brought_up;

static A: Channel<u64> = Channel::new("a");
static B: Channel<u64> = Channel::new("b");
static C: Channel<u64> = Channel::new("c");

/// The channel of requests.
pub(super) static ASK: Channel<u64, u64> = Channel::new("ask");

/// What a receive of one request asks for.
pub(super) const REQUEST: Wants = Wants {
    from: &["ask"],
    within: None,
    count: 1,
    exactly: false,
};

/// How long a message waits for its run to be started.
const KEPT: Duration = Duration::from_secs(1_000_000);

/// The channel of this name.
pub(super) fn channel(name: &str) -> &'static Channel<u64> {
    match name {
        "a" => &A,
        "b" => &B,
        _ => &C,
    }
}

/// A channel of that name, of what is not a number.
pub(super) fn words(name: &str) -> &'static Channel<String> {
    static A: Channel<String> = Channel::new("a");
    static B: Channel<String> = Channel::new("b");
    static C: Channel<String> = Channel::new("c");
    match name {
        "a" => &A,
        "b" => &B,
        _ => &C,
    }
}

/// The name of the site that answers what the site of this name took.
pub(super) fn reply_to(name: &str) -> &'static str {
    sites::name(&format!("{name}-reply"))
}

/// What was sent to the run: it outlives crashes, and new code.
#[derive(Debug, Default)]
pub(super) struct PostOffice(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    count: u64,
    /// The messages that are durably delivered, and the place of each.
    delivered: BTreeMap<u128, u64>,
    /// Taken in what is pruned or removed by now.
    settled: BTreeSet<u128>,
}

impl PostOffice {
    fn sent(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next message on this channel. One that is not `readable` does not decode.
    pub(super) fn next(&self, channel: &str, readable: bool) -> NewMessage {
        let mut sent = self.sent();
        sent.count += 1;
        let text = if readable {
            sent.count.to_string()
        } else {
            format!("\"{}\"", sent.count)
        };
        NewMessage {
            id: sent.count.into(),
            channel: channel.to_owned(),
            dedup: None,
            reply_to: None,
            payload: Payload::json(text.into_bytes()),
        }
    }

    /// Whether others have not sent enough yet.
    pub(super) fn may_send(&self) -> bool {
        self.sent().count < 12
    }

    /// One more is sent; which.
    pub(super) fn count(&self) -> u64 {
        let mut sent = self.sent();
        sent.count += 1;
        sent.count
    }

    /// Somebody sends something.
    pub(super) fn send(&self, store: &dyn Store, random: &mut Random, at: Timestamp) {
        let channel = *random.pick(&["a", "a", "a", "b", "b", "c", "ask"]);
        let message = self.next(channel, !random.percent(12));
        self.deliver(store, message, at);
    }

    /// Somebody sends what the run waits for.
    pub(super) fn feed(&self, store: &dyn Store, channel: &str, at: Timestamp) {
        let message = self.next(channel, true);
        self.deliver(store, message, at);
    }

    fn deliver(&self, store: &dyn Store, message: NewMessage, at: Timestamp) {
        let id = message.id;
        let keep_until = at.after(KEPT);
        let delivery = now(store.deliver(&new_run().id, message, at, keep_until));
        self.delivered(id, delivery.expect("a store in memory that is open"));
    }

    /// It is durable that a message was delivered.
    pub(super) fn delivered(&self, id: u128, delivery: Delivery) {
        if let Delivery::Queued { arrival, .. } = delivery {
            self.sent().delivered.insert(id, arrival);
        }
    }

    /// A batch is durable. `before` is what was recorded before it. What is wrong with it, if anything is.
    pub(super) fn landed(
        &self,
        store: &dyn Store,
        before: &[Record],
        append: &Append,
    ) -> Result<(), String> {
        let mut sent = self.sent();
        let me = new_run().id;
        for post in &append.posts {
            if let Post::Message { to, message, .. } = post
                && *to == me
            {
                let letters = letters(store, append.run);
                let inbox = inbox(store, append.run);
                let lies = |id| {
                    let mut all = inbox
                        .iter()
                        .chain(letters.iter().map(|letter| &letter.message));
                    all.find(|message: &&Message| message.id == id)
                        .map(|it| it.arrival)
                };
                // Not there: the batch ends the run, and it is no longer to be delivered.
                match lies(message.id) {
                    Some(arrival) => {
                        sent.delivered.insert(message.id, arrival);
                    }
                    None => return Err(format!("{message:?}, sent to itself, is nowhere")),
                }
            }
        }
        for scope in &append.deletes {
            let lost = matches!(scope.segments().last(), Some(Segment::Branch(_)));
            for record in before
                .iter()
                .filter(|record| record.location.is_under(scope))
            {
                let at = &record.location;
                match &record.body {
                    Body::Taken(messages) if !lost => {
                        sent.settled
                            .extend(messages.iter().map(|message| message.id));
                    }
                    Body::Waiting(Waiting::Child {
                        id,
                        detached: false,
                    }) if !is_ended(before, at) => {
                        let row = read(store.find(id));
                        if row.is_none_or(|row| !row.state.is_final()) {
                            return Err(format!("`{at}` is gone, and child `{id}` goes on"));
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Every message is in exactly one of the inbox, a record, the dead letters; and where it was.
    pub(super) fn judge(
        &self,
        store: &dyn Store,
        run: RunKey,
        history: &[Record],
    ) -> Result<(), String> {
        let sent = self.sent();
        let mut found: BTreeMap<u128, Vec<(&str, u64)>> = BTreeMap::new();
        let inbox = inbox(store, run);
        let letters = letters(store, run);
        let mut put = |place, message: &Message| {
            found
                .entry(message.id)
                .or_default()
                .push((place, message.arrival));
        };
        for message in inbox.iter().filter(|message| !is_child_end(message)) {
            put("the inbox", message);
        }
        for letter in &letters {
            put("the dead letters", &letter.message);
        }
        for record in history {
            if let Body::Taken(messages) = &record.body {
                for message in messages {
                    put("a record", message);
                }
            }
        }
        for (id, arrival) in &sent.delivered {
            let settled = sent.settled.contains(id);
            match found.get(id).map(Vec::as_slice) {
                None if settled => {}
                Some([(_, at)]) if at == arrival && !settled => {}
                places => {
                    return Err(format!(
                        "message {id}, which arrived as {arrival}, is in {places:?}; taken for good: {settled}"
                    ));
                }
            }
        }
        answered(store, history)
    }
}

/// Each request whose reply is recorded has an answer.
fn answered(store: &dyn Store, history: &[Record]) -> Result<(), String> {
    for record in history {
        let Body::Taken(messages) = &record.body else {
            continue;
        };
        let Some((scope, name)) = parted(&record.location) else {
            continue;
        };
        let reply = scope.site(reply_to(&name));
        let unanswered =
            |message: &&Message| read::<Option<Answer>>(store.answer(message.id)).is_none();
        if is_ended(history, &reply)
            && let Some(message) = messages.iter().find(unanswered)
        {
            return Err(format!(
                "request {} is replied to, and has no answer",
                message.id
            ));
        }
    }
    Ok(())
}

fn is_ended(history: &[Record], at: &Location) -> bool {
    let mut here = history.iter().filter(|record| record.location == *at);
    here.any(|record| matches!(record.body, Body::Ended(_)))
}

/// The scope and the name of a site.
fn parted(at: &Location) -> Option<(Location, String)> {
    let segments: Vec<_> = at.segments().collect();
    let (Segment::Site(name), above) = segments.split_last()? else {
        return None;
    };
    let scope = above
        .iter()
        .fold(Location::root(), |scope, &segment| scope.child(segment));
    Some((scope, (*name).to_owned()))
}

pub(super) fn inbox(store: &dyn Store, run: RunKey) -> Vec<Message> {
    read(store.inbox(run, 0, usize::MAX))
}

fn letters(store: &dyn Store, run: RunKey) -> Vec<DeadLetter> {
    read(store.dead_letters(run, 0, usize::MAX))
}

pub(super) fn is_child_end(message: &Message) -> bool {
    message.channel == CHILD_ENDED
}

/// Whether a message decodes where it is received.
pub(super) fn is_readable(message: &Message) -> bool {
    message.payload.bytes.first() != Some(&b'"')
}

/// The children that have not ended.
pub(super) fn children(store: &dyn Store) -> Vec<RunRow> {
    let all: Page = read(store.list(&RunFilter {
        limit: usize::MAX,
        ..RunFilter::default()
    }));
    let rows = all.rows.into_iter();
    rows.filter(|row| row.parent.is_some() && !row.state.is_final())
        .collect()
}

/// Whether the child that a run has at a location has ended.
pub(super) fn has_ended(store: &dyn Store, parent: &RunId, at: &Location) -> bool {
    let row: Option<RunRow> = read(store.find(&RunId::child(parent, at, 0)));
    row.is_some_and(|row| row.state.is_final())
}

/// Ends a child as its code would have ended it.
pub(super) fn end_child(store: &dyn Store, child: &RunRow, at: Timestamp) {
    let loaded: Option<Loaded> = read(store.load(child.key));
    let history = loaded.map(|loaded| loaded.history).unwrap_or_default();
    let arg = history.first().and_then(|record| match &record.body {
        Body::Begun(begun) => {
            let input: serde_json::Value = serde_json::from_slice(&begun.input.bytes).ok()?;
            input.get("arg")?.as_u64()
        }
        _ => None,
    });
    let (state, finished) = match brought_up(arg.expect("a child has an argument")) {
        Ok(value) => {
            let value = Payload::json(value.to_string().into_bytes());
            (RunState::Completed, Finished::Completed(value))
        }
        Err(message) => {
            let failure = Failure::new(FailureKind::Exhausted, Location::root(), message);
            (RunState::Failed, Finished::Failed(failure))
        }
    };
    let seq = child.last_seq + 1;
    let end = Append {
        run: child.key,
        epoch: child.epoch.max(store.identity().boot),
        number: 1,
        expected_seq: child.last_seq,
        create: None,
        records: vec![Record {
            seq,
            at,
            code: CODE,
            location: Location::root(),
            body: Body::Finished(finished),
        }],
        deletes: Vec::new(),
        patch: RunPatch {
            state: Some(state),
            at,
            code: CODE,
            ..RunPatch::default()
        },
        inbox: InboxChange::default(),
        posts: Vec::new(),
    };
    let ended = now(store.append(end));
    assert!(matches!(ended, Ok(Appended::Applied)), "{ended:?}");
}

/// Whether an engine would drive a run now.
pub(super) fn is_due(row: &RunRow, now: Timestamp) -> bool {
    row.state.is_active()
        || (row.state == RunState::Waiting && row.wake_at.is_some_and(|at| at <= now))
}

/// What lies in an inbox, as the machine takes it.
pub(super) fn incoming(message: Message) -> Incoming {
    if !is_child_end(&message) {
        return Incoming::Message(message);
    }
    let child = message.reply_to.as_deref().unwrap_or_default();
    let finished = encoding::decode_finished(&message.payload.bytes);
    Incoming::ChildEnded {
        arrival: message.arrival,
        child: RunId::from_stored(&String::from_utf8_lossy(child)),
        result: match finished.expect("the store wrote it") {
            Finished::Completed(value) => Ok(value),
            Finished::Failed(failure) => Err(failure),
            Finished::Cancelled => {
                let at = Location::root();
                Err(Failure::new(FailureKind::Cancelled, at, "it was cancelled"))
            }
        },
    }
}

/// What a run does to others, as a store is asked for it.
pub(super) fn posted(store: &dyn Store, sent: Sent, now: Timestamp) -> Post {
    match sent {
        Sent::Message { to, message } => Post::Message {
            to,
            message,
            keep_until: now.after(KEPT),
        },
        Sent::Cancel(id) => Post::Cancel(id),
        Sent::Values(values) => Post::Values(values),
        Sent::Answer { request, reply } => Post::Answer {
            request,
            answer: Answer::Reply(reply),
        },
        Sent::Child(child) => {
            let parent = Some((new_run().id, child.location));
            let begun = Begun {
                workflow: child.workflow.to_owned(),
                input: child.input,
                input_hash: child.input_hash,
                parent: parent.clone(),
                ..begun()
            };
            let batch = Replay::begin(begun, CODE).poll_append(now);
            Post::Run {
                run: store.allocate(),
                new: NewRun {
                    id: child.id,
                    workflow: child.workflow.to_owned(),
                    parent,
                    detached: child.detached,
                    not_before: None,
                    priority: 0,
                },
                records: batch.map(|batch| batch.records).unwrap_or_default(),
            }
        }
    }
}
