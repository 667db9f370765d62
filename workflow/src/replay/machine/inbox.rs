//! Messages, children and what is sent: what the run gets from others, and does to them.
//!
//! 1. A message is taken by its record: both are in one transaction. Until then it is in the inbox, whatever the code is
//!    at.
//! 2. Of two receives of one channel the one that has waited longer takes first; each takes in arrival order.
//! 3. A receive looks first: it waits, and its deadline passes, only when the inbox has been read to its end.
//! 4. What a branch has taken goes back to its old place when the branch loses its race.
//! 5. What is sent is in the transaction of its record.

use std::collections::{BTreeMap, BTreeSet};
use std::task::{Poll, Waker};

use super::code::remember;
use super::tree::{Doing, Name};
use super::{Class, Outcome, Replay, Ticket};
use crate::replay::{
    Body, Ended, Failure, Kind, Location, Message, NewMessage, Payload, RunId, Terms, Timestamp,
    Waiting,
};

/// The channel on which a parent is told of the end of its child. No user's channel has this name.
pub const CHILD_ENDED: &str = "\0child";

/// What a receive waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// From which channels.
    pub channels: Vec<String>,
    /// Until when, if no deadline is recorded; for ever when absent.
    pub until: Option<Timestamp>,
    /// True to look and not to wait.
    pub poll: bool,
    /// How many at most, at least one.
    pub count: u32,
    /// Nothing is taken before there are so many.
    pub exactly: bool,
}

/// What a run does to others in the transaction of its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// Puts a message into the inbox of a run.
    Message {
        /// The run.
        to: RunId,
        /// The message.
        message: NewMessage,
    },
    /// Starts a child run.
    Child(ChildStart),
    /// Cancels a run.
    Cancel(RunId),
    /// Writes values of the application; `None` removes one.
    Values(Vec<(String, Option<Payload>)>),
    /// Answers a request; the first answer stays.
    Answer {
        /// The id of the message that was the request.
        request: u128,
        /// The answer.
        reply: Payload,
    },
}

/// A child run to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildStart {
    /// Its id.
    pub id: RunId,
    /// Its workflow's name.
    pub workflow: &'static str,
    /// Its input.
    pub input: Payload,
    /// The hash of the input's canonical JSON.
    pub input_hash: u64,
    /// Where in this run it is started.
    pub location: Location,
    /// True when its end is not waited for.
    pub detached: bool,
    /// When it begins, and before whom.
    pub terms: Terms,
}

/// What lies in a run's inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming {
    /// A message.
    Message(Message),
    /// The end of a child run.
    ChildEnded {
        /// Its place in the inbox.
        arrival: u64,
        /// The child.
        child: RunId,
        /// Its value, or why it has none.
        result: Result<Payload, Failure>,
    },
}

/// A receive that the code is at.
#[derive(Debug)]
pub(super) struct Receiving {
    wanted: Wanted,
    /// Messages held for it, while the code reads them.
    offered: Vec<Message>,
    /// The inbox was read to its end, and had not enough.
    waits: bool,
    /// Its deadline has passed, and the inbox is read once more.
    expired: bool,
}

impl Receiving {
    pub(super) fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            offered: Vec::new(),
            waits: false,
            expired: false,
        }
    }
}

/// What is known of the run's inbox.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    known: BTreeMap<u64, Message>,
    /// Messages held or taken beyond what was read: they may lie in the inbox still, and are not to be taken twice.
    claimed: BTreeSet<u64>,
    ended: BTreeMap<RunId, (u64, Result<Payload, Failure>)>,
    /// The newest arrival that was read.
    pub(super) seen: u64,
    /// Nothing newer was there when it was read, and no news came since.
    fresh: bool,
    /// Receives at the frontier, the longest waiting first.
    receivers: Vec<(u32, u32)>,
    children: BTreeMap<RunId, (u32, u32)>,
    /// Receives that the code reads messages for.
    offers: usize,
    /// Receives and children that wait without a deadline.
    pub(super) untimed: usize,
    /// Messages that go back with the next batch.
    pub(super) returns: Vec<Message>,
    /// Arrivals that are of no more use.
    pub(super) takes: Vec<u64>,
    /// Messages that the code could not read.
    pub(super) dead: Vec<(u64, String)>,
    /// What is done to others with the next batch, for no record of its own.
    pub(super) cancels: Vec<RunId>,
}

impl Inbox {
    pub(super) fn has_waiters(&self) -> bool {
        !self.receivers.is_empty() || !self.children.is_empty()
    }

    /// The receives at the frontier, the longest waiting first.
    pub(super) fn receivers(&self) -> std::vec::IntoIter<u32> {
        let nodes: Vec<_> = self.receivers.iter().map(|(node, _)| *node).collect();
        nodes.into_iter()
    }

    fn claim(&mut self, arrival: u64) -> Option<Message> {
        if arrival > self.seen {
            self.claimed.insert(arrival);
        }
        self.known.remove(&arrival)
    }

    fn give_back(&mut self, message: Message) {
        self.claimed.remove(&message.arrival);
        self.known.insert(message.arrival, message);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.offers == 0 && (self.fresh || !self.has_waiters())
    }

    pub(super) fn clear_changes(&mut self) {
        self.returns.clear();
        self.takes.clear();
        self.dead.clear();
        self.cancels.clear();
    }

    pub(super) fn has_changes(&self) -> bool {
        !(self.returns.is_empty()
            && self.takes.is_empty()
            && self.dead.is_empty()
            && self.cancels.is_empty())
    }
}

impl Replay {
    // ===== asked by code =====

    /// Messages that a receive may take, once there are enough: the code reads them, and says so by
    /// [`accept`](Self::accept).
    pub fn poll_offer(&mut self, ticket: &Ticket, waker: &Waker) -> Poll<Vec<Message>> {
        if self.tree.is_stale(ticket.node, ticket.stamp) {
            return Poll::Pending;
        }
        let Some(pending) = &mut self.tree.get_mut(ticket.node).op else {
            return Poll::Pending;
        };
        match &pending.op {
            Doing::Recv(receiving) if !receiving.offered.is_empty() => {
                Poll::Ready(receiving.offered.clone())
            }
            _ => {
                remember(&mut pending.waker, waker);
                Poll::Pending
            }
        }
    }

    /// The messages offered were read. Those that could not be, by arrival and with the reason, go to the dead letters,
    /// and the receive goes on waiting; when all could, they are taken.
    pub fn accept(&mut self, ticket: &Ticket, unreadable: Vec<(u64, String)>) {
        if self.is_stopped() || self.tree.is_stale(ticket.node, ticket.stamp) {
            return;
        }
        let Some(receiving) = self.receiving(ticket.node) else {
            return;
        };
        let mut offered = std::mem::take(&mut receiving.offered);
        if offered.is_empty() {
            return;
        }
        self.inbox.offers -= 1;
        if unreadable.is_empty() {
            self.taken(ticket.node, offered);
            return;
        }
        offered.retain(|message| !unreadable.iter().any(|(dead, _)| *dead == message.arrival));
        for message in offered {
            self.inbox.give_back(message);
        }
        self.inbox.dead.extend(unreadable);
        self.forced = true;
        self.match_inbox();
    }

    // ===== said by the driver =====

    /// The arrival after which the inbox is to be read now, if it is: answered by [`handle_inbox`](Self::handle_inbox).
    /// Not before the run's beginning is durable: what was sent before that is in its inbox from then on.
    pub fn wants_inbox(&self) -> Option<u64> {
        let wants = self.is_open()
            && self.last_seq > 0
            && !self.draining
            && !self.inbox.fresh
            && self.inbox.has_waiters();
        wants.then_some(self.inbox.seen)
    }

    /// Something came into the inbox since it was read.
    pub fn handle_news(&mut self) {
        self.inbox.fresh = false;
        // The store may have made the run due because of it, also while a batch that ended its waiting was being written:
        // whatever the row is to say has to be said again.
        self.row.wake_at = Some(Timestamp::MIN);
    }

    /// What lies in the inbox after what was read before, in arrival order; `more` when that is not all.
    pub fn handle_inbox(&mut self, incoming: Vec<Incoming>, more: bool) {
        if self.is_stopped() {
            return;
        }
        for incoming in incoming {
            match incoming {
                Incoming::Message(message) => {
                    self.inbox.seen = self.inbox.seen.max(message.arrival);
                    if !self.inbox.claimed.contains(&message.arrival) {
                        self.inbox.known.insert(message.arrival, message);
                    }
                }
                Incoming::ChildEnded {
                    arrival,
                    child,
                    result,
                } => {
                    self.inbox.seen = self.inbox.seen.max(arrival);
                    self.inbox.ended.insert(child, (arrival, result));
                }
            }
        }
        let beyond = self.inbox.seen + 1;
        self.inbox.claimed = self.inbox.claimed.split_off(&beyond);
        self.inbox.fresh = !more;
        self.match_inbox();
    }

    // ===== receives =====

    /// A receive is at the frontier.
    pub(super) fn begin_recv(&mut self, node: u32) {
        let stamp = self.tree.get(node).stamp;
        // One that had waited before this drive has waited longer than one that had not.
        let waited = |this: &Self, node: u32| match this.tree.get(node).first_seq {
            0 => u64::MAX,
            seq => seq,
        };
        let mine = waited(self, node);
        let at = self
            .inbox
            .receivers
            .iter()
            .position(|&(other, _)| waited(self, other) > mine)
            .unwrap_or(self.inbox.receivers.len());
        self.inbox.receivers.insert(at, (node, stamp));
        self.match_inbox();
    }

    /// A receive's deadline has passed: it looks once more.
    pub(super) fn expire(&mut self, node: u32) {
        let Some(receiving) = self.receiving(node) else {
            return;
        };
        receiving.expired = true;
        receiving.waits = false;
        self.inbox.fresh = false;
    }

    fn receiving(&mut self, node: u32) -> Option<&mut Receiving> {
        match &mut self.tree.get_mut(node).op.as_mut()?.op {
            Doing::Recv(receiving) => Some(receiving),
            _ => None,
        }
    }

    /// Gives what is known to those that wait for it.
    fn match_inbox(&mut self) {
        if !self.is_open() || self.draining {
            return;
        }
        for (node, _) in self.inbox.receivers.clone() {
            self.match_receiver(node);
        }
        self.match_children();
    }

    fn match_receiver(&mut self, node: u32) {
        let Some(receiving) = self.receiving(node) else {
            return;
        };
        if !receiving.offered.is_empty() {
            return;
        }
        let (waited, expired) = (receiving.waits, receiving.expired);
        let wanted = receiving.wanted.clone();
        let count = wanted.count.max(1) as usize;
        let fitting: Vec<u64> = self
            .inbox
            .known
            .values()
            // One that came back from a branch may lie beyond what was read, and others before it.
            .filter(|message| self.inbox.fresh || message.arrival <= self.inbox.seen)
            .filter(|message| {
                wanted.channels.contains(&message.channel)
                    && wanted
                        .until
                        .is_none_or(|until| message.at <= until || wanted.poll)
            })
            .take(count)
            .map(|message| message.arrival)
            .collect();
        let enough = if wanted.exactly { count } else { 1 };
        // At the deadline an exact receive is content with what is there.
        let settles = self.inbox.fresh && (expired || wanted.poll);
        if fitting.len() >= enough || (settles && !fitting.is_empty()) {
            let offered = fitting
                .iter()
                .filter_map(|arrival| self.inbox.claim(*arrival))
                .collect();
            if waited {
                self.wait_no_more(node);
            }
            self.inbox.offers += 1;
            if let Some(pending) = &mut self.tree.get_mut(node).op
                && let Doing::Recv(receiving) = &mut pending.op
            {
                receiving.waits = false;
                receiving.offered = offered;
                pending.wake();
            }
        } else if settles {
            self.taken(node, Vec::new());
        } else if self.inbox.fresh && !waited && !expired {
            self.wait_for_messages(node, &wanted);
        }
    }

    /// The inbox has been read to its end: now the receive waits.
    fn wait_for_messages(&mut self, node: u32, wanted: &Wanted) {
        if let Some(receiving) = self.receiving(node) {
            receiving.waits = true;
        }
        let Some(until) = wanted.until else {
            self.inbox.untimed += 1;
            return;
        };
        self.deadlines.insert((until, node));
        let recorded = self.tree.get(node).rare.as_ref();
        if recorded.is_none_or(|rare| rare.until.is_none()) {
            self.tree.rare(node).until = Some(until);
            self.push_at(node, Body::Waiting(waiting(wanted)), Class::Durable);
        }
    }

    fn wait_no_more(&mut self, node: u32) {
        let until = self.receiving(node).and_then(|it| it.wanted.until);
        match until {
            Some(until) => {
                self.deadlines.remove(&(until, node));
            }
            None => self.inbox.untimed -= 1,
        }
    }

    fn taken(&mut self, node: u32, messages: Vec<Message>) {
        self.inbox.receivers.retain(|(other, _)| *other != node);
        let outcome = Outcome::Taken(messages.clone());
        self.push_outcome(node, outcome, Body::Taken(messages), Class::Durable);
    }

    /// The record of a receive that was reached and has none yet.
    pub(super) fn arrival_of(&mut self, node: u32) -> Body {
        Body::Waiting(match self.receiving(node) {
            Some(receiving) => waiting(&receiving.wanted),
            None => Waiting::Body,
        })
    }

    /// The channels that the run waits for, in the order of the receives, each once.
    pub(super) fn awaited_channels(&self) -> Vec<String> {
        let mut channels: Vec<String> = Vec::new();
        for &(node, _) in &self.inbox.receivers {
            let Some(pending) = &self.tree.get(node).op else {
                continue;
            };
            if let Doing::Recv(receiving) = &pending.op {
                for channel in &receiving.wanted.channels {
                    if !channels.contains(channel) {
                        channels.push(channel.clone());
                    }
                }
            }
        }
        if !self.inbox.children.is_empty() {
            channels.push(CHILD_ENDED.to_owned());
        }
        channels
    }

    // ===== children and what is sent =====

    /// A child call is at the frontier: the child is started, unless it was.
    pub(super) fn begin_child(&mut self, node: u32, child: ChildStart) {
        if child.detached {
            self.push_sent(node, Kind::Child, Ok(Sent::Child(child)));
            return;
        }
        let found = self.tree.get(node);
        let stamp = found.stamp;
        // One that was started has the id that it was started with, whatever it would get now.
        let started = found.rare.as_ref().and_then(|rare| rare.child.clone());
        let id = started.as_ref().unwrap_or(&child.id);
        self.inbox.children.insert(id.clone(), (node, stamp));
        self.inbox.untimed += 1;
        if started.is_none() {
            self.tree.rare(node).child = Some(child.id.clone());
            let waiting = Waiting::Child {
                id: child.id.clone(),
                detached: false,
            };
            let queued = self.push_at(node, Body::Waiting(waiting), Class::Durable);
            queued.sent = Some(Box::new(Sent::Child(child)));
        }
        self.match_children();
    }

    fn match_children(&mut self) {
        let known: Vec<_> = self
            .inbox
            .children
            .keys()
            .filter(|child| self.inbox.ended.contains_key(*child))
            .cloned()
            .collect();
        for child in known {
            let Some((node, _)) = self.inbox.children.remove(&child) else {
                continue;
            };
            self.inbox.untimed -= 1;
            if let Some((arrival, result)) = self.inbox.ended.remove(&child) {
                self.inbox.takes.push(arrival);
                let outcome = result.map_err(|failure| self.of_child(node, &child, failure));
                self.push_ended(node, ended(Kind::Child, outcome), Class::Durable);
            }
        }
        // A child's call is at the frontier before its end comes in: nobody waits for these any more.
        let late = std::mem::take(&mut self.inbox.ended);
        self.inbox
            .takes
            .extend(late.into_values().map(|(arrival, _)| arrival));
    }

    /// The failure of a child, as its parent sees it: at the call, in the child's words, with all the child's own in it.
    fn of_child(&self, node: u32, child: &RunId, failure: Failure) -> Failure {
        use crate::replay::FailureKind;
        let kind = match failure.kind() {
            FailureKind::Cancelled => FailureKind::Cancelled,
            _ => FailureKind::Child,
        };
        let message = format!("child run `{child}`: {}", failure.message());
        Failure::new(kind, self.tree.location_of(node), message)
            .with_type_name(failure.type_name())
            .with_chain(failure.chain().to_vec())
            .with_value(failure.value().cloned())
            .with_branches(vec![failure])
    }

    /// Queues the record of what is sent, and with it what is sent.
    pub(super) fn push_sent(&mut self, node: u32, kind: Kind, sent: Result<Sent, Failure>) {
        let (outcome, sent) = match sent {
            Ok(sent) => (Ok(Payload::json(&b"null"[..])), Some(Box::new(sent))),
            Err(failure) => (Err(failure), None),
        };
        self.push_ended(node, ended(kind, outcome), Class::Durable);
        if let Some(queued) = self.queue.back_mut() {
            queued.sent = sent;
        }
    }

    // ===== races =====

    /// A receive's outcome was handed out: if its branch loses its race yet, its messages go back.
    pub(super) fn keep_taken(&mut self, node: u32, outcome: &Outcome) {
        if let Outcome::Taken(messages) = outcome
            && !messages.is_empty()
            && let Some(branch) = self.race_branch(node)
        {
            let location = self.tree.location_of(node);
            let kept = messages
                .iter()
                .map(|message| (location.clone(), message.clone()));
            self.tree.rare(branch).taken.extend(kept);
        }
    }

    /// The branch of a race that a node lies in, the innermost.
    pub(super) fn race_branch(&self, node: u32) -> Option<u32> {
        let mut at = node;
        while at != super::Scope::ROOT.node {
            let found = self.tree.get(at);
            let races = |node: u32| {
                let rare = self.tree.get(node).rare.as_ref();
                rare.is_some_and(|rare| !rare.branches.is_empty() && rare.branching)
            };
            if matches!(found.name, Name::Branch(_)) && races(found.parent) {
                return Some(at);
            }
            at = found.parent;
        }
        None
    }

    /// The winner of a race has taken for good, unless the race itself lies in a branch that may lose.
    pub(super) fn keep_won(&mut self, race: u32, winner: u32) {
        let taken = match &mut self.tree.get_mut(winner).rare {
            Some(rare) if !rare.taken.is_empty() => std::mem::take(&mut rare.taken),
            _ => return,
        };
        if let Some(branch) = self.race_branch(race) {
            self.tree.rare(branch).taken.extend(taken);
        }
    }

    /// What was taken in an iteration that is pruned stays taken.
    pub(super) fn settle_taken(&mut self, carried: u32, pruned: &Location) {
        let mut at = self.race_branch(carried);
        while let Some(branch) = at {
            self.tree
                .rare(branch)
                .taken
                .retain(|(location, _)| !location.is_under(pruned));
            at = self.race_branch(self.tree.get(branch).parent);
        }
    }

    /// What a losing branch had taken goes back: into the inbox with the next batch, and to whoever waits for it here at once.
    pub(super) fn give_back(&mut self, dropped: Dropped) {
        let Dropped {
            taken,
            unsaved,
            children,
        } = dropped;
        if taken.is_empty() && children.is_empty() {
            return;
        }
        for message in taken {
            if !unsaved.contains(&message.arrival) {
                self.inbox.returns.push(message.clone());
            }
            self.inbox.give_back(message);
        }
        self.inbox.cancels.extend(children);
        self.match_inbox();
    }

    /// Lets go of what dropped operations waited for.
    pub(super) fn forget_waiting(&mut self, gone: &[u32]) {
        if !self.inbox.has_waiters() {
            return;
        }
        let gone: BTreeSet<u32> = gone.iter().copied().collect();
        self.inbox
            .receivers
            .retain(|(node, _)| !gone.contains(node));
        let untimed = &mut self.inbox.untimed;
        self.inbox.children.retain(|_, (node, _)| {
            let stays = !gone.contains(node);
            *untimed -= usize::from(!stays);
            stays
        });
    }

    /// An operation that is dropped while it waits for messages.
    pub(super) fn drop_receiving(
        &mut self,
        node: u32,
        receiving: Receiving,
        dropped: &mut Dropped,
    ) {
        if receiving.waits {
            match receiving.wanted.until {
                Some(until) => {
                    self.deadlines.remove(&(until, node));
                }
                None => self.inbox.untimed -= 1,
            }
        }
        if !receiving.offered.is_empty() {
            self.inbox.offers -= 1;
            dropped
                .unsaved
                .extend(receiving.offered.iter().map(|message| message.arrival));
            dropped.taken.extend(receiving.offered);
        }
    }
}

/// What lay in a branch that was dropped.
#[derive(Debug, Default)]
pub(super) struct Dropped {
    /// Messages that it had taken, or that were held for it.
    pub(super) taken: Vec<Message>,
    /// The arrivals of those that no durable record took: the inbox has them still.
    pub(super) unsaved: BTreeSet<u64>,
    /// Children that it waited for.
    pub(super) children: Vec<RunId>,
}

impl Dropped {
    pub(super) fn extend(&mut self, other: Self) {
        self.taken.extend(other.taken);
        self.unsaved.extend(other.unsaved);
        self.children.extend(other.children);
    }
}

fn waiting(wanted: &Wanted) -> Waiting {
    Waiting::Recv {
        channels: Some(wanted.channels.clone()),
        until: wanted.until,
        want: wanted.count,
    }
}

fn ended(kind: Kind, outcome: Result<Payload, Failure>) -> Ended {
    Ended {
        kind,
        outcome,
        attempts: 0,
        started_at: Timestamp::default(),
        input_hash: None,
    }
}
