//! The replay machine: a run's history on one side, the code that is replayed over it on the other.
//!
//! # The law, in one page
//!
//! What user code waits for is an *outcome*: one record. A run's records have one total order, and outcomes are handed
//! out strictly in that order, one per *pass* (hand out, poll the code until it is quiet, next), live and on replay.
//! So whatever the code's branches share comes out the same each time.
//!
//! *Durable* outcomes (steps, and wake-ups beside anything else) are handed out after their commit. *Riders* (`now!`,
//! ephemeral steps, lone wake-ups, and facts such as a race's decision) are handed out in their turn at once and go
//! with the next batch. A rider never overtakes an outcome whose commit is in flight.
//!
//! A loaded run first replays with nothing live. Only when the code is quiet and every record has been consumed does
//! the *gate* open. So a history that the code does not fit is found before anything was run.
//!
//! # Grammar
//!
//! Four kinds of methods, after quinn-proto. *Getters* tell. What *code* asks (`code.rs`): [`issue`](Replay::issue),
//! [`poll_outcome`](Replay::poll_outcome), [`may_run`](Replay::may_run), [`record`](Replay::record),
//! [`attempt_failed`](Replay::attempt_failed), [`enter`](Replay::enter), [`member`](Replay::member),
//! [`leave`](Replay::leave), [`decide`](Replay::decide). What *happened outside* (`driver.rs`): `handle_*`,
//! [`finish`](Replay::finish). What the driver must *do now*: `poll_*`.
//!
//! The driver's loop, in this order:
//!
//! 1. poll the code until it is quiet;
//! 2. [`poll_handout`](Replay::poll_handout); if it gave one, go to 1;
//! 3. [`handle_quiet`](Replay::handle_quiet) opens the gate when it is time; if it did, go to 1;
//! 4. [`poll_append`](Replay::poll_append); write the batch, [`handle_appended`](Replay::handle_appended), go to 2;
//! 5. [`poll_suspend`](Replay::poll_suspend); if it gives, the run may leave memory until then;
//! 6. wait for the code's waker, for [`next_deadline`](Replay::next_deadline) ([`handle_due`](Replay::handle_due)),
//!    or for word from outside.
//!
//! # Invariants
//!
//! 1. Outcomes are handed out in `seq` order, at most one between two quiet points.
//! 2. None is handed out twice; no durable one before `handle_appended`.
//! 3. Appended batches are prefixes of the queue, and one is in flight at a time.
//! 4. `may_run` is never ready before the gate, nor while a choice that was handed out is not durable.
//! 5. The gate opens iff every record that is not a fact is consumed or covered.
//! 6. A site is issued once per drive.
//! 7. The site reached is the scope's next recorded head, by name and kind, or the run diverged; after that nothing
//!    is issued, recorded or appended.
//! 8. No record is queued for a dropped scope; dropping one forgets what it has queued.
//! 9. At most one body per location is alive.
//! 10. No batch is closed before the gate; facts decided on the way are queued and die with a divergence.
//! 11. The wake time is a function of the pending waits.
//! 12. There is no clock, no randomness and no hash order in here.

mod ages;
mod asked;
mod carry;
mod code;
mod containers;
mod driver;
mod facts;
mod inbox;
mod kept;
mod ledger;
mod load;
mod notes;
mod progress;
mod tree;
mod unclean;
mod visits;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use asked::Claim;
pub use carry::Keeping;
pub use driver::{Batch, Phase, Standing, Suspend};
pub use facts::Pinned;
pub use inbox::{CHILD_ENDED, ChildStart, Incoming, Sent, Wanted};
pub use kept::Kept;
pub use load::HistoryError;
pub use notes::{Noted, Noting, base_of, newest_positions, position_location};
pub use visits::{Alive, Held};

use super::{
    Begun, Body, CodeId, Divergence, Failure, Issued, Kind, Location, Message, NewMessage, Now,
    Payload, Recorded, RunId, Segment, Site, Timestamp,
};
use ages::Age;
use facts::Fact;
use inbox::Inbox;
use kept::Keeper;
pub use ledger::{Ledger, LedgerEntry, Undoing, Unwinding, ledger_location};
use notes::Notes;
use tree::{Pending, Tree};
use unclean::Unclean;
use visits::Gate;

/// A scope of a run that is being driven: the body, a branch, an iteration, a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scope {
    node: u32,
    stamp: u32,
}

impl Scope {
    /// The workflow's body.
    pub const ROOT: Self = Self { node: 0, stamp: 0 };
}

/// An operation at the frontier: the code has come to it, and its outcome is not recorded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frontier {
    /// Where in the run.
    pub location: Location,
    /// Where in the source, and what it does.
    pub site: Site,
}

/// `settle/window` (sleep) at src/orders.rs:31
impl std::fmt::Display for Frontier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Site {
            kind, file, line, ..
        } = self.site;
        write!(f, "`{}` ({kind}) at {file}:{line}", self.location)
    }
}

/// A claim on the outcome of an operation that was issued.
#[derive(Debug, PartialEq, Eq)]
pub struct Ticket {
    node: u32,
    stamp: u32,
}

/// What is issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// An effect whose outcome is recorded.
    Step {
        /// Its outcome rides on the next commit instead of forcing one.
        ephemeral: bool,
        /// `Started` is durable before the body begins (`at_most_once`).
        announced: bool,
        /// How its effect is undone, if it can be.
        undoing: Option<Undoing>,
        /// How many attempts it may have in all. Only those that ended with the process are counted here; of the others,
        /// whoever runs the body says whether one follows.
        attempts: u32,
    },
    /// The instant of arrival, handed out as a JSON number of milliseconds.
    Now {
        /// What the clock says.
        now: Timestamp,
    },
    /// A wait until then. A recorded deadline wins over this one.
    Sleep {
        /// The deadline, if none is recorded.
        until: Timestamp,
    },
    /// Messages from the run's inbox. Ask `poll_offer` beside `poll_outcome`.
    Recv(Wanted),
    /// A message to another run.
    Send {
        /// The run.
        to: RunId,
        /// The message.
        message: NewMessage,
    },
    /// The answer to a request.
    Reply {
        /// The id of the message that was the request.
        request: u128,
        /// The answer.
        reply: Payload,
    },
    /// A child run.
    Child(ChildStart),
    /// The undoing of what was done since a checkpoint. Ask `poll_undo` beside `poll_outcome`.
    Rollback {
        /// The checkpoint.
        to: Location,
    },
    /// What the library's own code has to answer. Ask `poll_claim` beside `poll_outcome`.
    Asked(Kind),
    /// What could not even be begun, recorded as a failure of the site.
    Failed {
        /// What was to be done.
        kind: Kind,
        /// Why not.
        failure: Failure,
    },
}

impl Op {
    fn kind(&self) -> Kind {
        match self {
            Self::Step { .. } => Kind::Step,
            Self::Now { .. } => Kind::Now,
            Self::Sleep { .. } => Kind::Sleep,
            Self::Recv(_) => Kind::Recv,
            Self::Send { .. } => Kind::Send,
            Self::Reply { .. } => Kind::Reply,
            Self::Child(_) => Kind::Child,
            Self::Failed { kind, .. } | Self::Asked(kind) => *kind,
            Self::Rollback { .. } => Kind::Rollback,
        }
    }
}

/// What a site got when it was issued.
#[derive(Debug)]
pub enum Issue {
    /// Its outcome at once: nothing runs beside it, so this is its turn.
    Ready(Outcome),
    /// A claim on an outcome that comes in its turn. For a step, ask `may_run` beside `poll_outcome`.
    Pending(Ticket),
    /// Nothing, ever: the run diverged, and the driver drops the future. Stay pending.
    Never,
}

/// What is handed out to user code, as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Of an operation that ends with a value or a failure.
    Ended(Result<Payload, Failure>),
    /// The messages that a receive took; none when its deadline passed.
    Taken(Vec<Message>),
    /// The boundary between two iterations of a carried loop.
    Carried {
        /// The next iteration.
        next: u64,
        /// The carried locals.
        state: Payload,
    },
}

impl Outcome {
    /// The value or the failure of an operation that has one.
    ///
    /// # Panics
    /// When it is of another kind. A site gets an outcome of its own kind: the history was compared when it was reached.
    pub fn into_result(self) -> Result<Payload, Failure> {
        match self {
            Self::Ended(result) => result,
            other => unreachable!("an operation that ends got {other:?}"),
        }
    }
}

/// An attempt that may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Which one, from 1.
    pub number: u32,
    /// How the last one failed.
    pub last: Option<Failure>,
}

/// How a body ended for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Its value or its failure.
    pub result: Result<Payload, Failure>,
    /// How many times the body was entered.
    pub attempts: u32,
    /// When the last attempt began.
    pub started_at: Timestamp,
    /// Values of the application that are written with the record; `None` removes one.
    pub values: Vec<(String, Option<Payload>)>,
}

/// What is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container<'a> {
    /// Branches that are all awaited.
    Join(&'a [&'static str]),
    /// Branches of which the first success is taken.
    Race(&'a [&'static str]),
    /// So many branches made at run time, all awaited.
    JoinAll(u64),
    /// A labelled loop whose iterations are all kept.
    Loop,
    /// A labelled loop with these carried locals, started again from them.
    Carry(&'a [&'static str]),
    /// A fragment, run in place.
    Fragment,
    /// A block at whose edge failures stop.
    Attempt,
}

/// What entering gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entered {
    /// The container's scope, whose members are entered by `member`.
    Open {
        /// The scope.
        scope: Scope,
        /// Of a race that is already decided: the only branch to run.
        winner: Option<usize>,
    },
    /// Nothing, ever: the run diverged. Stay pending.
    Never,
}

/// Which member of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member<'a> {
    /// A branch by its name.
    Branch(&'static str),
    /// An iteration or item by its index.
    Iter(u64),
    /// An iteration or item by its key; the machine counts repetitions.
    Key(&'a str),
}

/// Whether a record may be handed out before it is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Durable,
    Rider,
}

/// A record that waits for the next batch. Its `seq` is given when the batch closes.
#[derive(Debug)]
struct Queued {
    location: Location,
    body: Body,
    class: Class,
    /// True for `now!` and `version!`: no body may begin before it is durable.
    choice: bool,
    /// Of an earlier visit: what it says was done to others before.
    kept: bool,
    /// The operation that waits for this record to be durable, and is no outcome of it.
    notify: Option<(u32, u32)>,
    /// What is done to others in the same transaction.
    sent: Option<Box<Sent>>,
}

/// An outcome that waits for its turn.
#[derive(Debug)]
struct Turn {
    node: u32,
    stamp: u32,
    ready: Ready,
}

/// When an outcome's turn may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ready {
    /// As soon as it is first in line.
    Now,
    /// When the batch that will hold it is durable; not closed yet.
    Unclosed,
    /// When this batch is durable.
    Batch(u64),
}

/// A batch that is being written.
#[derive(Debug)]
struct InFlight {
    number: u64,
    last_seq: u64,
    choices: usize,
    notify: Vec<(u32, u32, bool)>,
    finishes: bool,
}

/// The replay machine of one run. See the module's documentation.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each with its own writer"
)]
pub struct Replay {
    seed: u128,
    generation: u32,
    /// The seeds and generations that the run has had, in order.
    ages: Vec<Age>,
    code: CodeId,
    phase: Phase,
    tree: Tree,
    turns: VecDeque<Turn>,
    queue: VecDeque<Queued>,
    /// Scopes whose durable records go with the next batch.
    deletes: Vec<Location>,
    facts: BTreeMap<Location, Fact>,
    inbox: Inbox,
    ledger: Ledger,
    /// The ledger without what a replay has settled anew, which is not recorded before the gate.
    as_recorded: Option<Box<Ledger>>,
    /// The code's end, or that the run unwinds, is queued or recorded: nothing else ends it any more.
    over: bool,
    in_flight: Option<InFlight>,
    /// How many of the queued records must be durable soon.
    durables: usize,
    /// Something waits for the queue to be durable though nothing in it asks for that by itself.
    forced: bool,
    last_seq: u64,
    appended: u64,
    closed: u64,
    /// Records loaded, not facts, and not consumed yet.
    unconsumed: u64,
    /// Choices that are queued or in flight.
    choices: usize,
    /// Open containers whose members run side by side.
    branching: u32,
    /// Operations issued whose outcome has not been fetched.
    pending: usize,
    /// Bodies running, or announced.
    alive: usize,
    deadlines: BTreeSet<(Timestamp, u32)>,
    /// Operations that go live when the gate opens, in the order in which they were issued.
    before_gate: Vec<(u32, u32)>,
    /// Steps that may not run yet for a reason that concerns them all.
    held: Vec<(u32, u32)>,
    divergence: Option<Box<Divergence>>,
    /// The sites of the workflow's code, for reports.
    sites: &'static [Site],
    /// The site that the code has reached last.
    reached: Option<&'static Site>,
    /// What the code published since the last batch was closed.
    progress: Option<String>,
    /// What the run's row says, as of the last batch closed.
    row: Standing,
    draining: bool,
    /// The last batch said that the run is let go of.
    released: bool,
    /// What is known of earlier owners that died.
    unclean: Unclean,
    notes: Notes,
    gate: Gate,
    /// Visits that go on from earlier ones.
    keepers: Vec<Keeper>,
    /// Steps whose code does not say how they are undone, by the paths of their sites.
    undos: BTreeMap<String, Undoing>,
    /// The visits that are replayed.
    alive_visits: Vec<Location>,
    /// What it has to say of itself while it rests can wait until something else is said.
    patient: bool,
}

impl Replay {
    /// The machine of a run that begins now. Its first batch creates it.
    pub fn begin(begun: Begun, code: CodeId) -> Self {
        let mut replay = Self::empty(&begun, code);
        replay.phase = Phase::Live;
        replay.push(Queued::new(
            Location::root(),
            Body::Begun(Box::new(begun)),
            Class::Durable,
        ));
        replay
    }

    fn empty(begun: &Begun, code: CodeId) -> Self {
        Self {
            seed: begun.seed,
            generation: begun.generation,
            ages: vec![Age::first(begun.seed, begun.generation)],
            code,
            phase: Phase::Replaying,
            tree: Tree::new(),
            turns: VecDeque::new(),
            queue: VecDeque::with_capacity(2),
            deletes: Vec::new(),
            facts: BTreeMap::new(),
            inbox: Inbox::default(),
            ledger: Ledger::default(),
            as_recorded: None,
            over: false,
            in_flight: None,
            durables: 0,
            forced: false,
            last_seq: 0,
            appended: 0,
            closed: 0,
            unconsumed: 0,
            choices: 0,
            branching: 0,
            pending: 0,
            alive: 0,
            deadlines: BTreeSet::new(),
            before_gate: Vec::new(),
            held: Vec::new(),
            divergence: None,
            sites: &[],
            reached: None,
            progress: None,
            row: Standing::default(),
            draining: false,
            released: false,
            unclean: Unclean::default(),
            notes: Notes::default(),
            gate: Gate::default(),
            keepers: Vec::new(),
            undos: BTreeMap::new(),
            alive_visits: Vec::new(),
            patient: false,
        }
    }

    // ===== getters =====

    /// What the machine is doing.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Where the code and the history part, once they do.
    pub fn divergence(&self) -> Option<&Divergence> {
        self.divergence.as_deref()
    }

    /// The run's seed, for what is derived from now on.
    pub fn seed(&self) -> u128 {
        self.seed
    }

    /// The run's generation, for what is derived from now on.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The number of the last record that is durable.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// How many operations were issued and have not got their outcome.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// How many step bodies are running, or are announced and about to.
    pub fn alive(&self) -> usize {
        self.alive
    }

    /// Tells which sites the workflow's code has: a divergence then says where in the source they are.
    pub fn knows(&mut self, sites: &'static [Site]) {
        self.sites = sites;
    }

    /// What the code has issued and the history has no outcome of, in the order in which it was issued. Asked before the gate,
    /// once the code is quiet.
    pub fn frontier(&self) -> Vec<Frontier> {
        let waiting = self.before_gate.iter();
        let waiting = waiting.filter(|(node, stamp)| !self.tree.is_stale(*node, *stamp));
        waiting
            .filter_map(|(node, _)| {
                let pending = self.tree.get(*node).op.as_ref()?;
                let mut site = *pending.site?;
                site.kind = pending.op.kind().unwrap_or(site.kind);
                let location = self.tree.location_of(*node);
                Some(Frontier { location, site })
            })
            .collect()
    }

    /// The location of an issued operation.
    pub fn location(&mut self, ticket: &Ticket) -> Location {
        self.tree.location(ticket.node)
    }

    /// The location of a scope.
    pub fn scope_location(&self, scope: Scope) -> Location {
        self.tree.location_of(scope.node)
    }

    /// The location of a site of a scope.
    pub fn site_location(&self, scope: Scope, site: &Site) -> Location {
        self.scope_location(scope).site(site.name)
    }

    // ===== shared by code and driver =====

    fn is_open(&self) -> bool {
        self.phase == Phase::Live
    }

    /// True when nothing is issued any more.
    fn is_stopped(&self) -> bool {
        matches!(self.phase, Phase::Diverged | Phase::Done)
    }

    fn push(&mut self, queued: Queued) {
        self.choices += usize::from(queued.choice);
        self.durables += usize::from(queued.class == Class::Durable);
        self.queue.push_back(queued);
    }

    /// Queues a record of a site; what its containers looked like goes before the first record below them.
    fn push_at(&mut self, node: u32, body: Body, class: Class) -> &mut Queued {
        self.open_above(node);
        let location = self.tree.location_of(node);
        self.push(Queued::new(location, body, class));
        self.queue.back_mut().expect("a record was just queued")
    }

    fn open_above(&mut self, node: u32) {
        let mut unopened = Vec::new();
        let mut at = node;
        while at != tree::NONE {
            let up = self.tree.get_mut(at);
            if let Some(opened) = up.rare.as_mut().and_then(|rare| rare.unopened.take()) {
                unopened.push((at, opened));
            } else if up.touched && at != node {
                // Whoever touched it opened everything above it.
                break;
            }
            up.touched = true;
            at = up.parent;
        }
        for (node, opened) in unopened.into_iter().rev() {
            let location = self.tree.location_of(node);
            self.push(Queued::new(location, Body::Opened(opened), Class::Rider));
        }
    }

    /// Queues the outcome of an operation that ended, and puts it in line.
    fn push_ended(&mut self, node: u32, ended: super::Ended, class: Class) {
        let outcome = Outcome::Ended(ended.outcome.clone());
        self.push_outcome(node, outcome, Body::Ended(ended), class);
    }

    /// Queues an outcome and puts it in line.
    fn push_outcome(&mut self, node: u32, outcome: Outcome, body: Body, class: Class) {
        self.tree.get_mut(node).outcome = Some(outcome);
        self.push_at(node, body, class);
        let ready = if class == Class::Rider {
            Ready::Now
        } else {
            Ready::Unclosed
        };
        let stamp = self.tree.get(node).stamp;
        self.turns.push_back(Turn { node, stamp, ready });
    }

    /// Stops everything: the code does not fit the history.
    fn diverge(&mut self, location: Location, recorded: Recorded, issued: Issued) {
        if self.divergence.is_none() {
            let standing = match &issued {
                Issued::End => self.reached.into_iter().copied().collect(),
                Issued::NotReached => self.standing_at(),
                _ => Vec::new(),
            };
            let now = self.site_now(match &recorded {
                Recorded::Site { location, .. } => location,
                _ => &location,
            });
            self.divergence = Some(Box::new(Divergence {
                location,
                recorded,
                issued,
                now,
                standing,
            }));
        }
        self.phase = Phase::Diverged;
        self.queue.clear();
        self.deletes.clear();
        self.progress = None;
        self.inbox.clear_changes();
        self.turns.clear();
    }

    /// Where the code has the site of this location now.
    fn site_now(&self, location: &Location) -> Now {
        if self.sites.is_empty() {
            return Now::Unknown;
        }
        let path = location.path();
        if let Some(site) = self.sites.iter().find(|site| site.path == path) {
            return Now::At(*site);
        }
        // What stands in a fragment is listed with the fragment, not with who calls it.
        let around = self.sites.iter().rfind(|site| {
            let calls = matches!(site.kind, Kind::Fragment | Kind::Call);
            let rest = path.strip_prefix(site.path);
            calls && rest.is_some_and(|rest| rest.starts_with('/'))
        });
        around.map_or(Now::Gone, |site| Now::In(*site))
    }

    /// The sites that the code waits at, or else the one that it has reached last.
    fn standing_at(&self) -> Vec<Site> {
        let mut standing: Vec<Site> = Vec::new();
        for Frontier { site, .. } in self.frontier() {
            // Iterations and items side by side wait at one site.
            if !standing.contains(&site) {
                standing.push(site);
            }
        }
        if standing.is_empty() {
            standing.extend(self.reached.copied());
        }
        standing
    }

    fn recorded_at(&self, node: u32) -> Recorded {
        // The first record is the node's own, or that of something below it.
        let found = self.tree.get(node);
        Recorded::Site {
            location: self.tree.location_of(node),
            kind: self.kind_of(node),
            seq: found.first_seq,
        }
    }

    /// What a recorded node is: what its own records say, else what the things below it look like.
    fn kind_of(&self, node: u32) -> Option<Kind> {
        let found = self.tree.get(node);
        found.kind.or_else(|| {
            let below = self
                .tree
                .children(node)
                .find(|&child| self.tree.get(child).recorded)?;
            match self.tree.get(below).name {
                tree::Name::Iter(_) | tree::Name::Key(..) => Some(Kind::Loop),
                tree::Name::Site(_) => Some(Kind::Fragment),
                tree::Name::Branch(_) => None,
            }
        })
    }
}

impl Queued {
    fn new(location: Location, body: Body, class: Class) -> Self {
        Self {
            location,
            body,
            class,
            choice: false,
            kept: false,
            notify: None,
            sent: None,
        }
    }
}

impl Pending {
    fn new(op: tree::Doing, site: Option<&'static Site>) -> Self {
        Self {
            op,
            site,
            waker: None,
            handed_out: false,
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The name of a member as the tree looks it up.
fn segment_of(member: Member<'_>, occurrence: u32) -> Segment<'_> {
    match member {
        Member::Branch(name) => Segment::Branch(name),
        Member::Iter(index) => Segment::Iter(index),
        Member::Key(key) => Segment::Key { key, occurrence },
    }
}
