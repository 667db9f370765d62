//! The tree of scopes and sites of one run: what is recorded of each, and what the code is doing there now.
//!
//! A slab with intrusive sibling lists. Recorded nodes come first among their siblings, in the order of their first
//! record; nodes that only the code has reached follow. A node is freed when the code has left it and nothing recorded
//! is left under it, so a run's memory is what is pending, not what has passed.

use std::collections::HashMap;
use std::task::Waker;

use bytes::Bytes;

use super::carry::{Boundary, Carrying};
use super::inbox::{ChildStart, Receiving, Sent};
use super::ledger::{Rolling, Undoing};
use super::{Outcome, Scope, Ticket};
use crate::replay::{Failure, Kind, Location, Message, Opened, RunId, Segment, Site, Timestamp};

/// The index of no node.
pub(super) const NONE: u32 = u32::MAX;

/// With more children than this, a node looks them up in a map.
const SCANNED: u32 = 16;

/// A name, an index or a key: what tells a node from its siblings.
#[derive(Debug, Clone)]
pub(super) enum Name {
    Site(Text),
    Branch(Text),
    Iter(u64),
    Key(Text, u32),
}

/// Text from the source, or from a recorded location (of whose buffer it is a slice).
#[derive(Debug, Clone)]
pub(super) enum Text {
    Static(&'static str),
    Recorded(Bytes),
}

impl Text {
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Static(text) => text.as_bytes(),
            Self::Recorded(bytes) => bytes,
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Static(text) => text,
            // It comes from a string slice, so the text is whole; an empty one would only spoil a report.
            Self::Recorded(bytes) => std::str::from_utf8(bytes).unwrap_or_default(),
        }
    }
}

impl Name {
    /// Takes a segment of a recorded location.
    pub(super) fn recorded(segment: Segment<'_>, location: &Location) -> Self {
        let text = |text: &str| Text::Recorded(location.slice_of(text));
        match segment {
            Segment::Site(name) => Self::Site(text(name)),
            Segment::Branch(name) => Self::Branch(text(name)),
            Segment::Iter(index) => Self::Iter(index),
            Segment::Key { key, occurrence } => Self::Key(text(key), occurrence),
        }
    }

    pub(super) fn is(&self, segment: Segment<'_>) -> bool {
        match (self, segment) {
            (Self::Site(mine), Segment::Site(name))
            | (Self::Branch(mine), Segment::Branch(name)) => mine.as_bytes() == name.as_bytes(),
            (Self::Iter(mine), Segment::Iter(index)) => *mine == index,
            (Self::Key(mine, n), Segment::Key { key, occurrence }) => {
                *n == occurrence && mine.as_bytes() == key.as_bytes()
            }
            _ => false,
        }
    }

    fn segment(&self) -> Segment<'_> {
        match self {
            Self::Site(name) => Segment::Site(name.as_str()),
            Self::Branch(name) => Segment::Branch(name.as_str()),
            Self::Iter(index) => Segment::Iter(*index),
            Self::Key(key, occurrence) => Segment::Key {
                key: key.as_str(),
                occurrence: *occurrence,
            },
        }
    }

    fn key(segment: Segment<'_>) -> NameKey {
        match segment {
            Segment::Site(name) => (0, name.as_bytes().into(), 0),
            Segment::Branch(name) => (1, name.as_bytes().into(), 0),
            Segment::Iter(index) => (2, [].into(), index),
            Segment::Key { key, occurrence } => (3, key.as_bytes().into(), occurrence.into()),
        }
    }
}

type NameKey = (u8, Box<[u8]>, u64);

/// A scope or a site.
#[derive(Debug)]
pub(super) struct Node {
    /// Changes whenever the slot is freed, so that stale claims on it are recognised.
    pub(super) stamp: u32,
    pub(super) parent: u32,
    prev: u32,
    next: u32,
    first: u32,
    last: u32,
    count: u32,
    /// The next recorded head that the code has to reach here.
    cursor: u32,
    pub(super) name: Name,
    /// True when records of it, or of something under it, were loaded.
    pub(super) recorded: bool,
    /// True when records of it, or of something under it, were loaded or queued.
    pub(super) touched: bool,
    /// True when the code has reached it.
    pub(super) issued: bool,
    /// What the history says it is; absent when only things below it are recorded.
    pub(super) kind: Option<Kind>,
    /// The number of its first record.
    pub(super) first_seq: u64,
    /// Own records that are not facts and that the code has not consumed yet.
    pub(super) unconsumed: u32,
    /// The recorded or queued outcome, until it is handed out.
    pub(super) outcome: Option<Outcome>,
    /// What is rarely there.
    pub(super) rare: Option<Box<Rare>>,
    /// What the code has in progress here.
    pub(super) op: Option<Pending>,
    location: Option<Location>,
}

/// What few nodes have.
#[derive(Debug, Default)]
pub(super) struct Rare {
    /// The container as recorded.
    pub(super) opened: Option<Opened>,
    /// The recorded winner of a race.
    pub(super) decided: Option<String>,
    /// The number of the record that says so.
    pub(super) decided_seq: u64,
    /// The recorded deadline of a sleep or receive.
    pub(super) until: Option<Timestamp>,
    /// The last failed attempt: its number, how it failed, and when the next may begin.
    pub(super) failed: Option<(u32, Failure, Timestamp)>,
    /// The attempt that was announced last.
    pub(super) started: Option<u32>,
    /// The container as the code has it: what `Opened` will say with the first record below it.
    pub(super) unopened: Option<Opened>,
    /// The branches of a race, in declared order.
    pub(super) branches: Vec<&'static str>,
    /// True for a container whose members run side by side, while it is open.
    pub(super) branching: bool,
    /// How many iterations had a key so far.
    pub(super) keys: HashMap<Box<str>, u32>,
    /// The child run that was started here.
    pub(super) child: Option<RunId>,
    /// What was taken in this branch of a race, and where: it goes back if the branch loses.
    pub(super) taken: Vec<(Location, Message)>,
    /// What a carried loop is at.
    pub(super) carrying: Option<Box<Carrying>>,
    /// The site that entered it.
    pub(super) site: Option<&'static Site>,
    children: Option<HashMap<NameKey, u32>>,
}

/// An operation that the code has issued and not got the outcome of.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) op: Doing,
    /// The site that issued it; a boundary has the loop's.
    pub(super) site: Option<&'static Site>,
    pub(super) waker: Option<Waker>,
    /// The outcome is there to be fetched.
    pub(super) handed_out: bool,
}

/// What a pending operation is at.
#[derive(Debug)]
pub(super) enum Doing {
    Step(Stepping),
    Sleep {
        until: Timestamp,
    },
    Now {
        now: Timestamp,
    },
    /// The end of an iteration; one that is recorded only waits for its turn.
    Boundary(Option<Boundary>),
    Recv(Box<Receiving>),
    /// What is sent, or why it cannot be, until its record is queued.
    Sent(Option<Box<(Kind, Result<Sent, Failure>)>>),
    Rolling(Rolling),
    /// What the library's own code has to answer, until it was asked.
    Asked {
        kind: Kind,
        claimed: bool,
    },
    /// A time limit: it ends nothing by itself, and tells whoever asks that it has passed.
    Limit {
        until: Timestamp,
        over: bool,
    },
    /// The child to be started, until it is.
    Child(Option<Box<ChildStart>>),
}

impl Doing {
    /// What it does; absent for what is no site of the code.
    pub(super) fn kind(&self) -> Option<Kind> {
        Some(match self {
            Self::Step(_) => Kind::Step,
            Self::Sleep { .. } => Kind::Sleep,
            Self::Now { .. } => Kind::Now,
            Self::Recv(_) => Kind::Recv,
            Self::Sent(sent) => sent.as_ref()?.0,
            Self::Rolling(_) => Kind::Rollback,
            Self::Child(_) => Kind::Child,
            Self::Boundary(_) | Self::Asked { .. } | Self::Limit { .. } => return None,
        })
    }
}

/// What a pending step is at.
#[derive(Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts, each with its own writer"
)]
pub(super) struct Stepping {
    pub(super) ephemeral: bool,
    pub(super) announced: bool,
    pub(super) undoing: Option<Undoing>,
    /// How many attempts it may have in all.
    pub(super) attempts: u32,
    /// Its body is running, or is announced.
    pub(super) alive: bool,
    /// Its body is announced, and has not begun.
    pub(super) announcing: bool,
    /// The record of its last attempt is not durable yet.
    pub(super) unsaved: bool,
    /// It may begin only when this deadline has been taken off.
    pub(super) wake_at: Option<Timestamp>,
    /// `Started` is durable for the attempt that may begin.
    pub(super) started: bool,
    /// The number of the last failed attempt, and how it failed.
    pub(super) failed: u32,
    pub(super) last: Option<Failure>,
    /// Its body has ended for good: only its turn is awaited.
    pub(super) ended: bool,
}

/// The tree. Node 0 is the workflow's body.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    free: Vec<u32>,
}

impl Tree {
    pub(super) fn new() -> Self {
        let mut root = Node::new(NONE, Name::Site(Text::Static("")));
        root.location = Some(Location::root());
        // Code that does one thing after another needs no more than the site that it is at.
        let mut nodes = Vec::with_capacity(2);
        nodes.push(root);
        Self {
            nodes,
            free: Vec::new(),
        }
    }

    pub(super) fn get(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    pub(super) fn get_mut(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    pub(super) fn rare(&mut self, node: u32) -> &mut Rare {
        self.get_mut(node).rare.get_or_insert_default()
    }

    pub(super) fn ticket(&self, node: u32) -> Ticket {
        Ticket {
            node,
            stamp: self.get(node).stamp,
        }
    }

    pub(super) fn scope(&self, node: u32) -> Scope {
        Scope {
            node,
            stamp: self.get(node).stamp,
        }
    }

    pub(super) fn is_stale(&self, node: u32, stamp: u32) -> bool {
        self.get(node).stamp != stamp
    }

    /// Adds a child at the end of its siblings.
    pub(super) fn add(&mut self, parent: u32, name: Name) -> u32 {
        let child = if let Some(child) = self.free.pop() {
            let stamp = self.get(child).stamp;
            *self.get_mut(child) = Node {
                stamp,
                ..Node::new(parent, name)
            };
            child
        } else {
            self.nodes.push(Node::new(parent, name));
            u32::try_from(self.nodes.len() - 1).expect("a run has fewer than 2^32 live sites")
        };
        let before = self.get(parent).last;
        self.get_mut(child).prev = before;
        if before == NONE {
            self.get_mut(parent).first = child;
        } else {
            self.get_mut(before).next = child;
        }
        let up = self.get_mut(parent);
        up.last = child;
        up.count += 1;
        if up.rare.as_ref().is_some_and(|rare| rare.children.is_some()) {
            let key = self.name_key(child);
            self.map(parent, |children| children.insert(key, child));
        }
        child
    }

    /// Finds a child by its name. Iterations that come in order are found without a search.
    pub(super) fn find(&mut self, parent: u32, segment: Segment<'_>) -> Option<u32> {
        let node = self.get(parent);
        for hint in [node.cursor, node.last] {
            if hint != NONE && self.get(hint).name.is(segment) {
                return Some(hint);
            }
        }
        if node.last == NONE {
            return None;
        }
        if node.count <= SCANNED {
            return self
                .children(parent)
                .find(|&child| self.get(child).name.is(segment));
        }
        if node
            .rare
            .as_ref()
            .is_none_or(|rare| rare.children.is_none())
        {
            let all = self
                .children(parent)
                .map(|child| (self.name_key(child), child))
                .collect();
            self.rare(parent).children = Some(all);
        }
        let children = self.get(parent).rare.as_ref()?.children.as_ref()?;
        children.get(&Name::key(segment)).copied()
    }

    /// True when an iteration `index` cannot be among the children, because they are in order and all earlier.
    pub(super) fn is_beyond_last(&self, parent: u32, segment: Segment<'_>) -> bool {
        let node = self.get(parent);
        match (node.last, segment) {
            (NONE, _) => true,
            (last, Segment::Iter(index)) => {
                matches!(self.get(last).name, Name::Iter(at) if at < index && node.is_plain_loop())
            }
            _ => false,
        }
    }

    /// True when there is nothing below it.
    pub(super) fn is_leaf(&self, node: u32) -> bool {
        self.get(node).first == NONE
    }

    pub(super) fn children(&self, parent: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.get(parent).first;
        std::iter::from_fn(move || {
            let child = (at != NONE).then_some(at)?;
            at = self.get(child).next;
            Some(child)
        })
    }

    /// The next recorded head that the code has to reach in this scope.
    pub(super) fn head(&self, scope: u32) -> Option<u32> {
        let cursor = self.get(scope).cursor;
        (cursor != NONE).then_some(cursor)
    }

    /// The recorded head that the code has passed by, if this scope lies in a container that has no records itself.
    pub(super) fn passed(&self, scope: u32) -> Option<u32> {
        let mut at = scope;
        while at != NONE && !self.get(at).recorded {
            let Node { name, parent, .. } = self.get(at);
            // Members have no order among each other, so only a container can be passed by.
            if matches!(name, Name::Site(_))
                && *parent != NONE
                && let Some(head) = self.head(*parent)
            {
                return Some(head);
            }
            at = *parent;
        }
        None
    }

    /// Puts the cursor at the first recorded child, once all records are loaded.
    pub(super) fn rewind_cursors(&mut self) {
        for node in 0..self.nodes.len() {
            self.nodes[node].cursor = self.nodes[node].first;
        }
    }

    /// Moves the cursor past a head that the code has reached.
    pub(super) fn advance(&mut self, scope: u32, head: u32) {
        if self.get(scope).cursor == head {
            let next = self.get(head).next;
            self.get_mut(scope).cursor = if next != NONE && self.get(next).recorded {
                next
            } else {
                NONE
            };
        }
    }

    /// Frees a node and everything under it; `each` sees every node before it goes.
    pub(super) fn free(&mut self, node: u32, mut each: impl FnMut(u32, &mut Node)) {
        let (parent, prev, next) = (
            self.get(node).parent,
            self.get(node).prev,
            self.get(node).next,
        );
        if self
            .get(parent)
            .rare
            .as_ref()
            .is_some_and(|rare| rare.children.is_some())
        {
            let key = self.name_key(node);
            self.map(parent, |children| children.remove(&key));
        }
        self.advance(parent, node);
        let up = self.get_mut(parent);
        up.count -= 1;
        if up.first == node {
            up.first = next;
        }
        if up.last == node {
            up.last = prev;
        }
        if prev != NONE {
            self.get_mut(prev).next = next;
        }
        if next != NONE {
            self.get_mut(next).prev = prev;
        }
        // Most have nothing below them, and take no memory to go.
        let mut doomed = Vec::new();
        let mut at = Some(node);
        while let Some(node) = at {
            doomed.extend(self.children(node));
            at = doomed.pop();
            let gone = self.get_mut(node);
            each(node, gone);
            gone.stamp = gone.stamp.wrapping_add(1);
            gone.rare = None;
            gone.op = None;
            gone.outcome = None;
            gone.location = None;
            self.free.push(node);
        }
    }

    /// The location of a node, kept for the next time that it is asked for.
    pub(super) fn location(&mut self, node: u32) -> Location {
        let location = self.location_of(node);
        self.get_mut(node).location.get_or_insert(location).clone()
    }

    /// The location of a node, without keeping anything.
    pub(super) fn location_of(&self, node: u32) -> Location {
        match &self.get(node).location {
            Some(location) => location.clone(),
            None => Location::encoded(self.encoded_location(node, 0)),
        }
    }

    /// The location of a node, in one buffer with room for as many bytes more as stand below it.
    fn encoded_location(&self, node: u32, below: usize) -> Vec<u8> {
        let found = self.get(node);
        if let Some(location) = &found.location {
            let known = location.as_bytes();
            let mut bytes = Vec::with_capacity(known.len() + below);
            bytes.extend_from_slice(known);
            return bytes;
        }
        let segment = found.name.segment();
        let mut bytes = self.encoded_location(found.parent, segment.encoded_len() + below);
        segment.encode(&mut bytes);
        bytes
    }

    /// Every node, from the root down, in no particular order beyond parents first.
    pub(super) fn under(&self, node: u32) -> Vec<u32> {
        let mut found = vec![node];
        let mut at = 0;
        while at < found.len() {
            found.extend(self.children(found[at]));
            at += 1;
        }
        found
    }

    fn name_key(&self, node: u32) -> NameKey {
        Name::key(self.get(node).name.segment())
    }

    fn map<T>(&mut self, parent: u32, change: impl FnOnce(&mut HashMap<NameKey, u32>) -> T) {
        if let Some(children) = &mut self.rare(parent).children {
            change(children);
        }
    }
}

impl Node {
    fn new(parent: u32, name: Name) -> Self {
        Self {
            stamp: 0,
            parent,
            prev: NONE,
            next: NONE,
            first: NONE,
            last: NONE,
            count: 0,
            cursor: NONE,
            name,
            recorded: false,
            touched: false,
            issued: false,
            kind: None,
            first_seq: 0,
            unconsumed: 0,
            outcome: None,
            rare: None,
            op: None,
            location: None,
        }
    }

    /// True when nothing says that its members run side by side, so iterations come one after the other.
    fn is_plain_loop(&self) -> bool {
        self.rare.as_ref().is_none_or(|rare| {
            matches!(rare.opened, None | Some(Opened::Carry(_))) && !rare.branching
        })
    }

    /// The index of an iteration.
    pub(super) fn iteration(&self) -> Option<u64> {
        match self.name {
            Name::Iter(index) => Some(index),
            _ => None,
        }
    }

    pub(super) fn stepping(&mut self) -> Option<&mut Stepping> {
        match &mut self.op.as_mut()?.op {
            Doing::Step(step) => Some(step),
            _ => None,
        }
    }
}
