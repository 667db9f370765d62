//! What outlives a crash: the bodies' effects, what is known to be durable, and whether a law was broken.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use workflow::replay::{Body, Segment, Waiting};
use workflow::{Clock, FailureKind, Location, Record, Timestamp, TokioClock};

use super::ast::{How, Node, Program};
use super::random::Random;

mod bodies;

pub(super) use bodies::Timer;
use bodies::{Sleeping, Working};

/// A law of replay (the numbers are those of `SEMANTICS`, part 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Law {
    /// 1: what is handed out is in the records' order, and repeats after a crash.
    Order,
    /// 1: a durable outcome is handed out after its commit, a rider not before its turn.
    Durable,
    /// 2: what is recorded never runs again.
    Rerun,
    /// 2: a location has one live body, and is issued once per drive.
    Twice,
    /// 3: a recorded operation is reached with the same arguments.
    Argument,
    /// 4: the hand-outs of the surviving prefix repeat identically.
    Repeat,
    /// 5: a body starts again only with the same arguments.
    Flip,
    /// 5: a body that started is on the path that the run takes.
    Abandoned,
    /// 5: no body begins while a choice is not durable.
    Barrier,
    /// 6: nothing is live before the whole history is consumed.
    Gate,
    /// 6: code that was not edited does not diverge.
    Diverged,
    /// 9: no record under a loser, none without its surroundings.
    Store,
    /// 11: the wake time is that of the pending waits.
    Wake,
    /// 1: one hand-out per pass.
    Pass,
    /// 12: the answer is that of a crash-free run with the same outcomes.
    Answer,
    /// 17: two replays of one history come to the same verdict.
    Preflight,
    /// 18: a wait ends not before its deadline.
    Early,
    /// A run that leaves memory in good time interrupts no step.
    Polite,
    /// The run goes on until it ends.
    Stuck,
    /// After an edit: no effect lies before what is recorded.
    Past,
    /// After an edit: a divergence has left everything as it was.
    Untouched,
}

/// A law that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub law: Law,
    /// How.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.law, self.what)
    }
}

/// What is issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaf {
    Step(How),
    Now,
    Sleep(u64),
    /// A container whose members run side by side.
    Beside,
    /// A container whose members follow each other.
    Scope,
}

/// All that outlives a crash, and the watch over it.
#[derive(Debug)]
pub struct World {
    state: Mutex<State>,
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
    /// The locations whose body was entered, with which arguments, how often.
    started: BTreeMap<Location, (u64, u32)>,
    alive: BTreeSet<Location>,
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
    observed: Vec<(Location, String)>,
    lost: Vec<Location>,
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
                random: Random::new(seed ^ 0xb0d1e5),
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
                started: BTreeMap::new(),
                alive: BTreeSet::new(),
                handed: Vec::new(),
                drive: Driven::default(),
                violent: false,
                trace: Vec::new(),
                broken: None,
            }),
        }
    }

    /// A world in which other code did what is recorded: what that computed does not bind this one.
    pub(super) fn edited(program: &Program, seed: u64, now: Timestamp) -> Self {
        let world = Self::new(program, seed, true);
        {
            let mut state = world.state();
            state.now = now;
            state.violent = true;
        }
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

    // ===== a drive =====

    pub(super) fn begin_drive(&self, history: &[Record]) {
        let mut state = self.state();
        state.drive = Driven {
            live: history.is_empty(),
            ..Driven::default()
        };
        let mut known = BTreeSet::new();
        for record in history {
            if matches!(record.body, Body::Ended(_)) {
                state.drive.history.push(record.location.clone());
                known.insert(record.location.clone());
            }
        }
        if !state.ended.keys().eq(known.iter()) {
            let what = format!("loaded {known:?}, known to be durable {:?}", state.ended);
            state.broken(Law::Store, what);
        }
        state.trace(|| format!("-- drive over {} records", history.len()));
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
        if let Leaf::Sleep(millis) = leaf {
            let now = state.clock.map_or(state.now, |clock| clock.now());
            let until = now.after(std::time::Duration::from_millis(millis));
            state.drive.deadlines.insert(at.clone(), until);
        }
        if !matches!(leaf, Leaf::Beside | Leaf::Scope) {
            state.drive.pending.insert(at.clone());
        }
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
        if let Leaf::Sleep(_) = leaf {
            let known = state.deadlines.get(at).or(state.drive.deadlines.get(at));
            let now = state.clock.map_or(state.now, |clock| clock.now());
            if let Some(&until) = known
                && until > now
            {
                state.broken(Law::Early, format!("`{at}` ends at {now}, not at {until}"));
            }
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

    /// A branch lost its race.
    pub(super) fn lost(&self, branch: &Location) {
        let mut state = self.state();
        state.trace(|| format!("lost {branch}"));
        state.drive.pending.retain(|at| !at.is_under(branch));
        state.drive.choices.retain(|at| !at.is_under(branch));
        state.drive.lost.push(branch.clone());
    }

    // ===== told by the store =====

    /// A batch was closed.
    pub(super) fn closed(&self, records: &[Record]) {
        let mut state = self.state();
        for record in records {
            if state.is_lost(&record.location) {
                let what = format!(
                    "a record of `{}`, which had lost, is written",
                    record.location
                );
                state.broken(Law::Store, what);
            }
        }
        if !state.drive.live {
            state.broken(Law::Gate, "a batch is closed before the gate".into());
        }
    }

    /// A batch is durable.
    pub(super) fn landed(&self, records: &[Record], deletes: &[Location]) {
        let mut state = self.state();
        for scope in deletes {
            state.ended.retain(|at, _| !at.is_under(scope));
            state.args.retain(|at, _| !at.is_under(scope));
            state.deadlines.retain(|at, _| !at.is_under(scope));
            state.handed.retain(|(at, _)| !at.is_under(scope));
        }
        for record in records {
            let at = &record.location;
            state.drive.choices.remove(at);
            if let Some(&(_, arg, _)) = state.drive.issued.get(at) {
                state.args.insert(at.clone(), arg);
            }
            match &record.body {
                Body::Waiting(Waiting::Sleep { until }) => {
                    state.deadlines.insert(at.clone(), *until);
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
                    if state
                        .ended
                        .insert(at.clone(), (record.seq, shown))
                        .is_some()
                    {
                        state.broken(Law::Store, format!("`{at}` is recorded twice"));
                    }
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
            .find(|at| !state.ended.contains_key(at) && !state.is_raced(at));
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
            .filter(|record| !record.body.is_fact())
            .map(|record| record.location.clone())
            .filter(|at| !state.is_lost(at))
            .collect();
        for effect in state.drive.effects.clone() {
            if let Some(at) = recorded.iter().find(|at| state.is_before(&effect, at)) {
                let what = format!("the body of `{effect}` began, and `{at}` after it is recorded");
                state.broken(Law::Past, what);
            }
        }
    }
}

impl State {
    fn broken(&mut self, law: Law, what: String) {
        self.trace(|| format!("BROKEN {law:?}: {what}"));
        self.broken.get_or_insert(Broken { law, what });
    }

    fn trace(&mut self, line: impl FnOnce() -> String) {
        if self.broken.is_none() && self.trace.len() < 4_000 {
            self.trace.push(line());
        }
    }

    fn is_raced(&self, at: &Location) -> bool {
        at.segments()
            .any(|segment| matches!(segment, Segment::Site(name) if self.races.contains(name)))
    }

    fn is_lost(&self, at: &Location) -> bool {
        self.drive.lost.iter().any(|branch| at.is_under(branch))
    }

    /// Where two locations part, and whether they do so side by side.
    fn parting(&self, one: &Location, other: &Location) -> Option<(bool, Location, Location)> {
        let mut common = Location::root();
        for (mine, theirs) in one.segments().zip(other.segments()) {
            if mine != theirs {
                let beside = matches!(self.drive.issued.get(&common), Some((_, _, Leaf::Beside)));
                return Some((beside, common.child(mine), common.child(theirs)));
            }
            common = common.child(mine);
        }
        None
    }

    fn is_beside(&self, one: &Location, other: &Location) -> bool {
        self.parting(one, other)
            .is_some_and(|(beside, _, _)| beside)
    }

    /// Whether the code comes to `one` before it comes to `other`, whatever the schedule.
    fn is_before(&self, one: &Location, other: &Location) -> bool {
        let Some((false, one, other)) = self.parting(one, other) else {
            return false;
        };
        let first = |scope: &Location| {
            let under = self
                .drive
                .issued
                .iter()
                .filter(|(at, _)| at.is_under(scope));
            under.map(|(_, (number, _, _))| *number).min()
        };
        match (first(&one), first(&other)) {
            (Some(one), Some(other)) => one < other,
            // The one was reached, the other was not, so it still lies ahead.
            (one, _) => one.is_some(),
        }
    }

    fn judge_consumed(&mut self, when: &str) {
        let seen: BTreeSet<_> = self.drive.observed.iter().map(|(at, _)| at).collect();
        let left = self
            .drive
            .history
            .iter()
            .find(|at| !seen.contains(at) && !self.is_lost(at));
        if let Some(at) = left.cloned() {
            self.broken(Law::Gate, format!("{when}, and `{at}` is not consumed"));
        }
    }

    /// What was handed out is in the records' order, and begins as it did before.
    fn judge_order(&mut self) {
        let observed = &self.drive.observed;
        let kept: Vec<_> = observed
            .iter()
            .filter_map(|(at, _)| Some((self.ended.get(at)?.0, at)))
            .collect();
        if let Some(pair) = kept.windows(2).find(|pair| pair[0].0 > pair[1].0) {
            let what = format!(
                "`{}` (record {}) is handed out before `{}` (record {})",
                pair[0].1, pair[0].0, pair[1].1, pair[1].0
            );
            self.broken(Law::Order, what);
            return;
        }
        let durable = |list: &[(Location, String)]| -> Vec<_> {
            let kept = list.iter().filter(|(at, _)| self.ended.contains_key(at));
            kept.cloned().collect()
        };
        let before = durable(&self.handed);
        let known: BTreeSet<_> = before.iter().map(|(at, _)| at.clone()).collect();
        let again: Vec<_> = observed
            .iter()
            .filter(|(at, _)| known.contains(at))
            .cloned()
            .collect();
        if !before.starts_with(&again) {
            let what = format!("first {before:?}, then {again:?}");
            self.broken(Law::Repeat, what);
            return;
        }
        if self.drive.live {
            self.handed = durable(&self.drive.observed);
        }
    }
}
