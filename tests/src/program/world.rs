//! What outlives a crash: the bodies' effects, what is known to be durable, and whether a law was broken.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use workflow::replay::{AttemptState, Body, Message, Opened, Segment, Waiting};
use workflow::store::Store;
use workflow::store::{Append, RunRow};
use workflow::{Clock, FailureKind, Location, Record, Timestamp, TokioClock};

use super::ast::{How, Node, Program, Wants};
use super::post::{self, PostOffice};
use super::random::Random;

mod bodies;
mod judge;
mod law;

pub(super) use bodies::Timer;
pub use law::{Broken, Law};

use bodies::{Sleeping, Working};

/// What is issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaf {
    Step(How),
    Now,
    Sleep(u64),
    Recv(Wants),
    Send,
    Child,
    /// Between two iterations.
    Boundary,
    /// A container whose members run side by side.
    Beside,
    /// A container whose members follow each other.
    Scope,
}

/// All that outlives a crash, and the watch over it.
#[derive(Debug)]
pub struct World {
    state: Mutex<State>,
    /// What is sent to the run.
    pub(super) post: Arc<PostOffice>,
}

#[derive(Debug)]
struct State {
    random: Random,
    now: Timestamp,
    clock: Option<TokioClock>,
    /// Outcomes may change after a crash, by the user's wish.
    fickle: bool,
    /// Every entry of a body gives another value.
    fresh: bool,
    races: BTreeSet<&'static str>,
    working: Vec<Working>,
    sleeping: Vec<Sleeping>,
    numbers: u64,
    /// The durable outcomes: their number, and what they look like.
    ended: BTreeMap<Location, (u64, String)>,
    /// With which arguments what is recorded was reached.
    args: BTreeMap<Location, u64>,
    deadlines: BTreeMap<Location, Timestamp>,
    /// The last failed attempts.
    failed: BTreeMap<Location, u32>,
    /// What containers looked like when they were recorded.
    opened: BTreeMap<Location, Opened>,
    /// The locations whose body was entered, with which arguments, how often.
    started: BTreeMap<Location, (u64, u32)>,
    alive: BTreeSet<Location>,
    /// The versions that were chosen.
    pins: BTreeMap<Location, u32>,
    /// Iterations whose records are gone: nothing runs in them again.
    pruned: BTreeSet<Location>,
    /// The longest hand-out so far, as far as it is durable.
    handed: Vec<(Location, String)>,
    drive: Driven,
    /// Bodies were cut off: by a crash, or at the end of the grace.
    violent: bool,
    trace: Vec<String>,
    broken: Option<Broken>,
}

/// What is known of the present drive.
#[derive(Debug, Default)]
struct Driven {
    issued: BTreeMap<Location, (usize, u64, Leaf)>,
    pending: BTreeSet<Location>,
    entered: BTreeMap<Location, Opened>,
    observed: Vec<(Location, String)>,
    lost: Vec<Location>,
    /// The newest boundaries: what lies before them is not reached again.
    boundaries: Vec<(Location, u64)>,
    /// Receives that had another beside them.
    crowded: BTreeSet<Location>,
    /// How many messages had arrived when a receive was reached.
    arrived: BTreeMap<Location, u64>,
    /// How many have.
    newest: u64,
    /// Choices that were handed out and are not durable.
    choices: BTreeSet<Location>,
    deadlines: BTreeMap<Location, Timestamp>,
    /// The outcomes of the history, in order.
    history: Vec<Location>,
    live: bool,
    effects: Vec<Location>,
    /// What was observed since the last hand-out.
    pass: Vec<Location>,
}

impl World {
    /// A world in which nothing has happened.
    pub fn new(program: &Program, seed: u64, fresh: bool) -> Self {
        let races = program.nodes().into_iter().filter_map(|node| match node {
            Node::Race { name, .. } => Some(*name),
            _ => None,
        });
        Self {
            state: Mutex::new(State {
                random: Random::new(seed ^ 0x00b0_d1e5),
                now: Timestamp::from_millis(1_000),
                clock: None,
                fickle: program.is_fickle(),
                fresh,
                races: races.collect(),
                working: Vec::new(),
                sleeping: Vec::new(),
                numbers: 0,
                ended: BTreeMap::new(),
                args: BTreeMap::new(),
                deadlines: BTreeMap::new(),
                failed: BTreeMap::new(),
                opened: BTreeMap::new(),
                started: BTreeMap::new(),
                alive: BTreeSet::new(),
                pins: BTreeMap::new(),
                pruned: BTreeSet::new(),
                handed: Vec::new(),
                drive: Driven::default(),
                violent: false,
                trace: Vec::new(),
                broken: None,
            }),
            post: Arc::default(),
        }
    }

    /// A world in which other code did what is recorded: what that computed does not bind this one.
    pub(super) fn edited(program: &Program, seed: u64, before: &Self) -> Self {
        let mut world = Self::new(program, seed, true);
        {
            let mut state = world.state();
            state.now = before.now();
            state.violent = true;
        }
        world.post = Arc::clone(&before.post);
        world
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ===== time =====

    /// What the clock says.
    pub fn now(&self) -> Timestamp {
        let state = self.state();
        state.clock.map_or(state.now, |clock| clock.now())
    }

    pub(super) fn set_now(&self, now: Timestamp) {
        let mut state = self.state();
        state.now = state.now.max(now);
    }

    pub(super) fn set_clock(&self, clock: Option<TokioClock>) {
        let mut state = self.state();
        if let Some(before) = state.clock.take() {
            state.now = before.now();
        }
        state.clock = clock;
    }

    // ===== a drive =====

    pub(super) fn begin_drive(&self, history: &[Record]) {
        let mut state = self.state();
        state.drive = Driven {
            live: history.is_empty(),
            ..Driven::default()
        };
        let mut known = BTreeSet::new();
        for record in history {
            if record.body.is_outcome() {
                state.drive.history.push(record.location.clone());
                known.insert(record.location.clone());
            }
        }
        state.drive.boundaries = boundaries(&state.drive.history);
        if !state.ended.keys().eq(known.iter()) {
            let what = format!("loaded {known:?}, known to be durable {:?}", state.ended);
            state.broken(Law::Store, what);
        }
        state.trace(|| format!("-- drive over {} records", history.len()));
    }

    /// An engine begins to drive the run: whoever drove it before has left.
    pub(super) fn engine_drives(&self) {
        if self.state().clock.is_none() {
            return;
        }
        self.end_drive();
        let mut state = self.state();
        let mut history: Vec<_> = state
            .ended
            .iter()
            .map(|(at, (seq, _))| (*seq, at))
            .collect();
        history.sort();
        let history: Vec<_> = history.into_iter().map(|(_, at)| at.clone()).collect();
        state.drive = Driven {
            boundaries: boundaries(&history),
            history,
            ..Driven::default()
        };
        state.trace(|| "-- drive by the engine".into());
    }

    /// The process is gone: what was in memory with it.
    pub(super) fn end_drive(&self) {
        let mut state = self.state();
        state.judge_order();
        state.drive.live = false;
        let left = std::mem::take(&mut state.alive);
        if !left.is_empty() {
            state.broken(Law::Twice, format!("bodies outlive their run: {left:?}"));
        }
    }

    /// One outcome was handed out, or the gate was opened.
    pub(super) fn pass(&self) {
        self.state().drive.pass.clear();
    }

    pub(super) fn went_live(&self) {
        let mut state = self.state();
        state.trace(|| "gate opens".into());
        state.drive.live = true;
        state.judge_consumed("the gate opened");
        let other = state.drive.entered.iter().find_map(|(at, entered)| {
            let recorded = state.opened.get(at)?;
            (recorded != entered && !state.is_lost(at)).then(|| (at.clone(), recorded.clone()))
        });
        if let Some((at, recorded)) = other {
            let what = format!("the gate opens, and `{at}` was recorded with {recorded:?}");
            state.broken(Law::Gate, what);
        }
    }

    pub(super) fn trace(&self, line: impl FnOnce() -> String) {
        self.state().trace(line);
    }

    /// The last things that happened.
    pub fn told(&self) -> String {
        self.state().trace.join("\n")
    }

    /// The law that was broken first.
    pub fn verdict(&self) -> Result<(), Broken> {
        match &self.state().broken {
            Some(broken) => Err(broken.clone()),
            None => Ok(()),
        }
    }

    /// Bodies are cut off.
    pub(super) fn violence(&self, how: &str) {
        let mut state = self.state();
        state.trace(|| how.to_owned());
        state.violent = true;
    }

    pub(super) fn broke(&self, law: Law, what: impl Into<String>) {
        self.state().broken(law, what.into());
    }

    /// The bodies that were entered in this drive.
    pub fn effects(&self) -> Vec<Location> {
        self.state().drive.effects.clone()
    }

    /// How often the body at this location was entered.
    pub fn entered(&self, at: &Location) -> u32 {
        self.state().started.get(at).map_or(0, |(_, times)| *times)
    }

    // ===== told by the code =====

    pub(super) fn issued(&self, at: &Location, arg: u64, leaf: Leaf) {
        let mut state = self.state();
        if let Some(recorded) = state.args.get(at)
            && *recorded != arg
        {
            let what =
                format!("`{at}` was recorded with {recorded:x}, and is reached with {arg:x}");
            state.broken(Law::Argument, what);
        }
        let number = state.drive.issued.len();
        let before = state.drive.issued.insert(at.clone(), (number, arg, leaf));
        if before.is_some() {
            state.broken(Law::Twice, format!("`{at}` is issued twice in one drive"));
        }
        if let Leaf::Recv(_) = leaf {
            let others: Vec<_> = state.receives().map(|(other, _)| other.clone()).collect();
            if !others.is_empty() {
                state.drive.crowded.insert(at.clone());
                state.drive.crowded.extend(others);
            }
            let newest = state.drive.newest;
            state.drive.arrived.insert(at.clone(), newest);
        }
        if let Leaf::Sleep(millis) = leaf {
            let now = state.clock.map_or(state.now, |clock| clock.now());
            let until = now.after(std::time::Duration::from_millis(millis));
            state.drive.deadlines.insert(at.clone(), until);
        }
        if !matches!(leaf, Leaf::Beside | Leaf::Scope) {
            state.drive.pending.insert(at.clone());
        }
    }

    /// A container is entered, and looks like this.
    pub(super) fn entered_as(&self, at: &Location, opened: Opened) {
        self.state().drive.entered.insert(at.clone(), opened);
    }

    pub(super) fn observed(&self, at: &Location, shown: &str, leaf: Leaf) {
        let mut state = self.state();
        state.trace(|| format!("handed out {at}"));
        let recorded = state.ended.get(at).cloned();
        if let Some((_, recorded)) = &recorded
            && recorded != shown
        {
            let what = format!("`{at}` is recorded as {recorded}, and handed out as {shown}");
            state.broken(Law::Repeat, what);
        }
        if recorded.is_none() {
            match leaf {
                Leaf::Step(how) if !how.rides() => {
                    state.broken(
                        Law::Durable,
                        format!("`{at}` is handed out before its commit"),
                    );
                }
                Leaf::Recv(_) | Leaf::Send | Leaf::Child => {
                    let what = format!("`{at}` is handed out before its commit");
                    state.broken(Law::Durable, what);
                }
                Leaf::Sleep(_) if state.drive.pending.len() > 1 => {
                    let what = format!("the end of `{at}` rides, with something else pending");
                    state.broken(Law::Durable, what);
                }
                Leaf::Now => {
                    state.drive.choices.insert(at.clone());
                }
                _ => {}
            }
        }
        // A receive that was given up is one that waited until then.
        let ended =
            matches!(leaf, Leaf::Sleep(_)) || (matches!(leaf, Leaf::Recv(_)) && shown == "[]");
        if ended {
            let known = state.deadlines.get(at).or(state.drive.deadlines.get(at));
            let now = state.clock.map_or(state.now, |clock| clock.now());
            if let Some(&until) = known
                && until > now
            {
                state.broken(Law::Early, format!("`{at}` ends at {now}, not at {until}"));
            }
        }
        if state.clock.is_some() {
            // An engine does not tell when it hands out.
            state.drive.pass.clear();
        }
        let beside = state
            .drive
            .pass
            .iter()
            .find(|other| state.is_beside(at, other));
        if let Some(other) = beside.cloned() {
            let what = format!("`{at}` and `{other}`, side by side, are handed out in one pass");
            state.broken(Law::Pass, what);
        }
        state.drive.pass.push(at.clone());
        state.drive.pending.remove(at);
        state.drive.observed.push((at.clone(), shown.to_owned()));
    }

    /// A version gate gave this.
    pub(super) fn chose(&self, at: &Location, version: u32) {
        let mut state = self.state();
        state.trace(|| format!("version {version} at {at}"));
        match state.pins.get(at).copied() {
            Some(pinned) if pinned != version => {
                let what = format!("`{at}` is pinned to {pinned}, and gives {version}");
                state.broken(Law::Repeat, what);
            }
            Some(_) => {}
            None => {
                state.drive.choices.insert(at.clone());
            }
        }
    }

    /// A site is declared removed.
    pub(super) fn removed(&self, at: &Location) {
        self.state().drive.lost.push(at.clone());
    }

    /// A branch lost its race.
    pub(super) fn lost(&self, branch: &Location) {
        let mut state = self.state();
        state.trace(|| format!("lost {branch}"));
        if let Some(at) = state.alive.iter().find(|at| at.is_under(branch)).cloned() {
            state.broken(
                Law::Twice,
                format!("`{at}` has lost, and its body is alive"),
            );
        }
        state.drive.pending.retain(|at| !at.is_under(branch));
        state.drive.choices.retain(|at| !at.is_under(branch));
        state.drive.lost.push(branch.clone());
    }

    // ===== told by the store =====

    /// A batch was closed.
    pub(super) fn closed(&self, records: &[Record]) {
        let mut state = self.state();
        for record in records {
            let declares = matches!(record.body, Body::Removed { .. });
            if state.is_lost(&record.location) && !declares {
                let what = format!(
                    "a record of `{}`, which had lost, is written",
                    record.location
                );
                state.broken(Law::Store, what);
            }
        }
        if !state.drive.live && state.clock.is_none() {
            state.broken(Law::Gate, "a batch is closed before the gate".into());
        }
        state.drive.live = true;
    }

    /// A batch is durable.
    pub(super) fn landed(&self, records: &[Record], deletes: &[Location]) {
        let mut state = self.state();
        for scope in deletes {
            state.ended.retain(|at, _| !at.is_under(scope));
            state.args.retain(|at, _| !at.is_under(scope));
            state.deadlines.retain(|at, _| !at.is_under(scope));
            state.failed.retain(|at, _| !at.is_under(scope));
            state.opened.retain(|at, _| !at.is_under(scope));
            state.handed.retain(|(at, _)| !at.is_under(scope));
            state.pins.retain(|at, _| !at.is_under(scope));
            // What came of it is in what the loop carries.
            state.drive.choices.retain(|at| !at.is_under(scope));
            if matches!(scope.segments().last(), Some(Segment::Iter(_))) {
                state.started.retain(|at, _| !at.is_under(scope));
                state.pruned.insert(scope.clone());
            }
        }
        for record in records {
            let at = &record.location;
            state.drive.choices.remove(at);
            if let Some(&(_, arg, _)) = state.drive.issued.get(at) {
                state.args.insert(at.clone(), arg);
            }
            match &record.body {
                Body::Waiting(
                    Waiting::Sleep { until }
                    | Waiting::Recv {
                        until: Some(until), ..
                    },
                ) => {
                    state.deadlines.insert(at.clone(), *until);
                }
                Body::Pin { value, .. } => {
                    state.pins.insert(at.clone(), *value);
                }
                Body::Taken(messages) => {
                    let payloads = messages.iter().map(|message| &message.payload.bytes);
                    let shown: Vec<_> = payloads
                        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
                        .collect();
                    state.ends(at, record.seq, format!("[{}]", shown.join(", ")));
                }
                Body::Carried { state: locals, .. } => {
                    let shown = String::from_utf8_lossy(&locals.bytes).into_owned();
                    state.ends(at, record.seq, shown);
                }
                Body::Opened(opened) => {
                    state.opened.insert(at.clone(), opened.clone());
                }
                Body::Attempt {
                    number,
                    state: AttemptState::Failed { .. },
                } => {
                    state.failed.insert(at.clone(), *number);
                }
                Body::Ended(ended) => {
                    if let Err(failure) = &ended.outcome
                        && failure.kind() == FailureKind::Interrupted
                        && !state.violent
                    {
                        state.broken(Law::Polite, format!("`{at}` was interrupted by nothing"));
                    }
                    let shown = match &ended.outcome {
                        Ok(payload) => String::from_utf8_lossy(&payload.bytes).into_owned(),
                        Err(failure) => failure.to_string(),
                    };
                    state.ends(at, record.seq, shown);
                }
                _ => {}
            }
        }
        state.trace(|| {
            let told: Vec<_> = records
                .iter()
                .map(|record| record.location.to_string())
                .collect();
            format!("durable: {told:?}, deleted {deletes:?}")
        });
    }

    /// So many messages have arrived.
    pub(super) fn arrived(&self, newest: u64) {
        let mut state = self.state();
        state.drive.newest = state.drive.newest.max(newest);
    }

    /// A batch is durable that took messages; `inbox` is what it has left. A receive takes what came first, and what was
    /// there in time. What the batch itself put back, a decision's losers had held while its receives took theirs.
    pub(super) fn took(&self, append: &Append, inbox: &[Message]) {
        let held = |message: &Message| {
            let returns = &append.inbox.returns;
            returns.iter().any(|back| back.arrival == message.arrival)
        };
        let mut state = self.state();
        for record in &append.records {
            let at = &record.location;
            let (Body::Taken(taken), Some((_, _, Leaf::Recv(wants)))) =
                (&record.body, state.drive.issued.get(at))
            else {
                continue;
            };
            if state.drive.crowded.contains(at) {
                continue;
            }
            let until = state.deadlines.get(at).copied();
            let last = taken.last().map_or(0, |message| message.arrival);
            let arrived = state.drive.arrived.get(at).copied().unwrap_or_default();
            let short = taken.len() < wants.least();
            let polled = wants.within == Some(0);
            let passed_over = inbox
                .iter()
                .filter(|message| !held(message))
                .find(|message| {
                    let in_time = until.is_none_or(|until| message.at < until);
                    let first = message.arrival < last;
                    // What a run sends to itself has the stamp of a batch that was still to be written.
                    let others = u64::try_from(message.id).is_ok();
                    let there = others
                        && if polled {
                            message.arrival <= arrived
                        } else {
                            until.is_some()
                        };
                    wants.from.contains(&message.channel.as_str())
                        && in_time
                        && (first || (short && there))
                });
            if let Some(message) = passed_over {
                let what = format!("`{at}` takes {taken:?}, and leaves {message:?}");
                state.broken(Law::Message, what);
            }
        }
    }

    /// The channels on which something is missing that is waited for.
    pub(super) fn wanting(&self, inbox: &[Message]) -> Vec<&'static str> {
        let state = self.state();
        let waiting = state
            .receives()
            .filter(|(at, _)| !state.ended.contains_key(at));
        // One with a deadline goes on by itself.
        let wanting = waiting
            .filter(|(at, wants)| wants.within.is_none() && !state.is_served(at, wants, inbox));
        wanting
            .flat_map(|(_, wants)| wants.from.iter().copied())
            .collect()
    }

    /// The channels that are waited for.
    pub(super) fn awaited(&self) -> BTreeSet<String> {
        let state = self.state();
        let own = |at: &Location| match state.drive.issued.get(at) {
            Some((_, _, Leaf::Recv(wants))) => wants.from.to_vec(),
            Some((_, _, Leaf::Child)) => vec![workflow::store::CHILD_ENDED],
            _ => Vec::new(),
        };
        let channels = state.drive.pending.iter().flat_map(own);
        channels.map(str::to_owned).collect()
    }

    /// A run that is not due waits for nothing that is there.
    pub(super) fn judge_wake(&self, row: &RunRow, store: &dyn Store) {
        if row.state.is_final() || post::is_due(row, self.now()) {
            return;
        }
        let inbox = post::inbox(store, row.key);
        let mut state = self.state();
        let mut waiting = state
            .drive
            .pending
            .iter()
            .filter(|at| !state.ended.contains_key(at));
        let lost = waiting.find(|at| match state.drive.issued.get(at) {
            Some((_, _, Leaf::Recv(wants))) => state.is_served(at, wants, &inbox),
            Some((_, _, Leaf::Child)) => post::has_ended(store, &row.id, at),
            _ => false,
        });
        if let Some(at) = lost.cloned() {
            let what = format!(
                "what `{at}` waits for is there, and the run is not due: {row:?}, {inbox:?}"
            );
            state.broken(Law::Wake, what);
        }
    }

    /// The run has ended.
    pub(super) fn finished(&self) {
        let mut state = self.state();
        state.judge_consumed("the run ended");
        if state.fickle {
            return;
        }
        let abandoned = state
            .started
            .keys()
            .find(|at| !state.ended.contains_key(at) && !state.is_raced(at) && !state.is_lost(at));
        if let Some(at) = abandoned.cloned() {
            let what = format!("the body of `{at}` began on a path that the run did not take");
            state.broken(Law::Abandoned, what);
        }
    }

    /// After an edit: no effect of this drive lies before what `history` records.
    pub(super) fn judge_past(&self, history: &[Record]) {
        let mut state = self.state();
        let recorded: Vec<_> = history
            .iter()
            .filter(|record| {
                // The cursor of a loop stands behind its newest boundary.
                !record.body.is_fact() && !matches!(record.body, Body::Carried { .. })
            })
            .map(|record| record.location.clone())
            .filter(|at| !state.is_lost(at) && !state.is_behind(at))
            .collect();
        for effect in state.drive.effects.clone() {
            if let Some(at) = recorded.iter().find(|at| state.is_before(&effect, at)) {
                let what = format!("the body of `{effect}` began, and `{at}` after it is recorded");
                state.broken(Law::Past, what);
            }
        }
    }
}

/// The newest boundary of each carried loop, among these outcomes.
fn boundaries(ended: &[Location]) -> Vec<(Location, u64)> {
    let mut newest: BTreeMap<Location, u64> = BTreeMap::new();
    for at in ended {
        let Some(Segment::Iter(index)) = at.segments().last() else {
            continue;
        };
        let segments: Vec<_> = at.segments().collect();
        let above = &segments[..segments.len() - 1];
        let carried = above
            .iter()
            .fold(Location::root(), |scope, &segment| scope.child(segment));
        let known = newest.entry(carried).or_insert(index);
        *known = index.max(*known);
    }
    newest.into_iter().collect()
}
