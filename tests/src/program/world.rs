//! What outlives a crash: the bodies' effects, what is known to be durable, and whether a law was broken.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use workflow::replay::{AttemptState, Body, Opened, Waiting};
use workflow::{Clock, FailureKind, Location, Record, Timestamp, TokioClock};

use super::ast::{How, Node, Program};
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
    /// The last failed attempts.
    failed: BTreeMap<Location, u32>,
    /// What containers looked like when they were recorded.
    opened: BTreeMap<Location, Opened>,
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
    entered: BTreeMap<Location, Opened>,
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
        let history = history.into_iter().map(|(_, at)| at.clone()).collect();
        state.drive = Driven {
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
            if state.is_lost(&record.location) {
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
