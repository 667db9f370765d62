//! One run, from its beginning to its end, through as many crashes as its plan says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use workflow::replay::{
    AttemptState, Body, History, Location, Opened, Record, RunId, RunKey, RunState, Segment,
    Timestamp, Waiting,
};
use workflow::store::{CHILD_ENDED, Loaded, Store};
use workflow::{Engine, MemoryStore, Workflow};

use super::ast::{Node, Program};
use super::code::preflight;
use super::drive::{self, Cut, Drive, End, read};
use super::post;
use super::random::Random;
use super::walk::{Interpreted, Interpreter, Offspring};
use super::world::{Broken, Law, World};

/// How often a run is cut off.
#[derive(Debug, Clone, Copy)]
pub enum Plan {
    /// Never.
    Whole,
    /// Once, at the so-manieth instant of the first drive.
    Once(u64),
    /// Twice: at the so-manieth instant of the first drive, and of the second.
    Twice(u64, u64),
    /// Again and again, at random.
    Often,
}

/// How a run went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What it gave.
    pub answer: String,
    /// At how many instants its first drive could have been cut off.
    pub instants: u64,
    /// How many times it was driven.
    pub drives: u32,
    /// How many times it was killed.
    pub killed: u32,
}

/// One run.
#[derive(Debug)]
pub struct Life {
    /// The program, and the world it runs in.
    pub interpreter: Interpreter,
    /// What survives.
    pub store: MemoryStore,
    /// The run.
    pub key: RunKey,
    random: Random,
}

impl Life {
    /// A run of this program that has not begun. `fresh`: each entry of a body gives another value.
    pub fn new(program: &Program, seed: u64, fresh: bool) -> Self {
        let mut life = Self::scheduled(program, seed, fresh, Random::new(seed));
        // Some are sent before it is started.
        life.mail(25);
        life
    }

    /// A run to which nobody sends anything, with what happens in this order.
    pub fn scheduled(program: &Program, seed: u64, fresh: bool, random: Random) -> Self {
        let store = MemoryStore::new();
        let key = store.allocate();
        Self {
            interpreter: Interpreter {
                program: program.clone(),
                world: Arc::new(World::new(program, seed, fresh)),
            },
            store,
            key,
            random,
        }
    }

    /// What happened in which order.
    pub fn into_schedule(self) -> Random {
        self.random
    }

    /// The world it runs in.
    pub fn world(&self) -> &Arc<World> {
        &self.interpreter.world
    }

    /// Lives it to its end.
    ///
    /// # Errors
    /// The law that was broken first.
    pub fn live(&mut self, plan: Plan) -> Result<Verdict, Broken> {
        let mut verdict = Verdict {
            answer: String::new(),
            instants: 0,
            drives: 0,
            killed: 0,
        };
        loop {
            let cut = match (plan, verdict.drives) {
                (Plan::Once(at) | Plan::Twice(at, _), 0) | (Plan::Twice(_, at), 1) => Cut::At(at),
                (Plan::Often, ..12) => {
                    let kills = *self.random.pick(&[0, 5, 20, 60, 150]);
                    Cut::Often(kills, *self.random.pick(&[0, 0, 20, 60]))
                }
                _ => Cut::Never,
            };
            let (end, instants) = self.drive(cut);
            self.world().verdict()?;
            if verdict.drives == 0 {
                verdict.instants = instants;
            }
            verdict.drives += 1;
            match end {
                End::Done(answer) => {
                    verdict.answer = answer;
                    break;
                }
                End::Crashed => {
                    verdict.killed += 1;
                    self.crash();
                    // Killed before it could know that it had ended.
                    if let Some(Body::Finished(finished)) =
                        self.history().last().map(|end| &end.body)
                    {
                        verdict.answer = drive::shown(finished);
                        break;
                    }
                }
                End::Suspended(_) => {}
                End::Diverged(report) => self.world().broke(Law::Diverged, report),
            }
            if verdict.drives > 1_000 {
                self.world().broke(Law::Stuck, "1,000 drives, and no end");
            }
            self.judge_store();
            self.world().verdict()?;
            self.await_news();
            self.world().verdict()?;
        }
        self.world().finished();
        self.judge_store();
        self.audit(&verdict.answer);
        self.world().verdict()?;
        Ok(verdict)
    }

    /// Drives it once, until it ends, rests, or is cut off.
    pub fn drive(&mut self, cut: Cut) -> (End, u64) {
        self.drive_with(cut, !self.random.explores())
    }

    fn drive_with(&mut self, cut: Cut, outside: bool) -> (End, u64) {
        let mut drive = Drive::new(
            &self.interpreter,
            &self.store,
            self.key,
            &mut self.random,
            cut,
        );
        drive.outside = outside;
        let end = drive.drive();
        let instants = drive.instants;
        drop(drive);
        (end, instants)
    }

    /// So many times in a hundred somebody sends something.
    fn mail(&mut self, percent: u64) {
        let post = Arc::clone(&self.world().post);
        while post.may_send() && self.random.percent(percent) {
            let at = self.world().now();
            post.send(&self.store, &mut self.random, at);
        }
    }

    /// The run is out of memory: what may come, comes, until it is due.
    fn await_news(&mut self) {
        let receives = self
            .interpreter
            .program
            .has(|node| matches!(node, Node::Recv(..) | Node::Serve(_)));
        if receives {
            self.mail(30);
        }
        loop {
            let Some(row) = read(self.store.row(self.key)) else {
                return;
            };
            let world = Arc::clone(self.world());
            world.judge_wake(&row, &self.store);
            if post::is_due(&row, world.now()) || world.verdict().is_err() {
                return;
            }
            let children = post::children(&self.store);
            // It may have been killed before its code came there.
            let mut wanting = row.waits.clone().unwrap_or_default();
            wanting.retain(|channel| channel != CHILD_ENDED);
            if !children.is_empty() && self.random.percent(60) {
                let child = self.random.pick(&children).clone();
                post::end_child(&self.store, &child, world.now());
            } else if let Some(wake_at) = row.wake_at {
                world.set_now(wake_at);
            } else if !wanting.is_empty() {
                let channel = self.random.pick(&wanting);
                world.post.feed(&self.store, channel, world.now());
            } else if children.is_empty() {
                world.broke(Law::Stuck, format!("nothing makes it due: {row:?}"));
            }
        }
    }

    /// The process is gone; some time passes.
    pub fn crash(&mut self) {
        self.store = self.store.crash();
        let pause = *self.random.pick(&[0, 1, 40, 5_000]);
        let then = self.world().now().after(Duration::from_millis(pause));
        self.world().set_now(then);
    }

    /// The next version of the code is deployed. What it comes to with this history, without running anything.
    ///
    /// # Panics
    /// When the run has not begun.
    ///
    /// # Errors
    /// When two replays come to different verdicts, or one does anything.
    pub fn deploy(&mut self, program: &Program) -> Result<Result<(), String>, Broken> {
        let world = World::edited(program, self.random.number(), self.world());
        self.interpreter = Interpreter {
            program: program.clone(),
            world: Arc::new(world),
        };
        let loaded = read(self.store.load(self.key));
        let loaded = loaded.expect("a run that was recorded");
        let row = loaded.row.standing();
        self.world().landed(&loaded.history, &[]);
        let preflight = || {
            let verdict = preflight(&self.interpreter, loaded.history.clone(), row.clone());
            self.world().end_drive();
            verdict
        };
        let (first, second) = (preflight(), preflight());
        if first != second {
            let what = format!("first {first:?}, then {second:?}");
            self.world().broke(Law::Preflight, what);
        }
        if !self.world().effects().is_empty() {
            self.world().broke(Law::Gate, "a preflight ran a body");
        }
        self.judge_preflight(first.as_ref().err());
        self.world().verdict()?;
        Ok(first.map(|_| ()))
    }

    /// An engine's preflight finds what the machine does, and does nothing either.
    fn judge_preflight(&self, diverged: Option<&String>) {
        let program = &self.interpreter.program;
        let beside = Arc::new(World::edited(program, 0, self.world()));
        let interpreter = Interpreter {
            program: program.clone(),
            world: Arc::clone(&beside),
        };
        let store = Arc::new(self.store.crash());
        let shared: Arc<dyn Store> = Arc::<MemoryStore>::clone(&store);
        let builder = Engine::builder()
            .shared_store(shared)
            .workflow(Interpreted::call)
            .workflow(Offspring::call)
            .state(interpreter);
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let report = runtime
            .expect("a runtime")
            .block_on(async { builder.preflight().await })
            .expect("a store that can be read");
        let mut findings = report.findings.iter();
        let found = findings.find(|finding| finding.workflow == Interpreted::NAME);
        if found.map(|finding| &finding.detail) != diverged {
            let what = format!("the machine comes to {diverged:?}, and an engine to {report}");
            self.world().broke(Law::Preflight, what);
        }
        let before = read(self.store.load(self.key));
        let after = read(store.load(self.key));
        let same = |loaded: Loaded| (loaded.history, loaded.row.last_append, loaded.row.state);
        if before.map(same) != after.map(same) || !beside.effects().is_empty() {
            self.world()
                .broke(Law::Untouched, "an engine's preflight did something");
        }
    }

    /// Goes on with the code that was deployed: diverged with everything as it was, or to the end with no effect in the
    /// past. Whether it went on.
    ///
    /// # Panics
    /// When the run has not begun.
    ///
    /// # Errors
    /// The law that was broken first.
    pub fn go_on(&mut self, verdict: Result<(), String>) -> Result<bool, Broken> {
        let before = read(self.store.load(self.key));
        let before = before.expect("a run that was recorded");
        let cut = if self.random.percent(50) {
            Cut::Never
        } else {
            Cut::Often(60, 0)
        };
        // What comes in would be a change, too.
        let (end, _) = self.drive_with(cut, verdict.is_ok());
        self.world().verdict()?;
        self.world().judge_past(&before.history);
        if let Err(report) = verdict {
            let after = read(self.store.load(self.key));
            let after = after.expect("a run that was recorded");
            let untouched = after.row == before.row && after.history == before.history;
            if !untouched || !self.world().effects().is_empty() {
                self.world()
                    .broke(Law::Untouched, format!("{report}\nleft {after:?}"));
            }
            if !matches!(&end, End::Diverged(again) if *again == report) && end != End::Crashed {
                self.world()
                    .broke(Law::Preflight, format!("it diverges, then {end:?}"));
            }
            self.world().verdict()?;
            return Ok(false);
        }
        match end {
            End::Done(answer) => {
                self.world().finished();
                self.audit(&answer);
            }
            End::Diverged(report) => {
                self.world()
                    .broke(Law::Preflight, format!("it goes on, then {report}"));
            }
            End::Crashed | End::Suspended(_) => {
                self.crash();
                if !self.history().last().is_some_and(drive::is_end) {
                    self.live(Plan::Often)?;
                }
            }
        }
        self.judge_store();
        if let Some(lost) = missing(&before.history, &self.history()) {
            self.world()
                .broke(Law::Store, format!("the record at `{lost}` is gone"));
        }
        self.world().verdict()?;
        Ok(true)
    }

    /// What is stored of it.
    pub fn history(&self) -> Vec<Record> {
        let loaded = read(self.store.load(self.key));
        loaded.map(|loaded| loaded.history).unwrap_or_default()
    }

    /// Replays the whole history, as a crash-free run with the same outcomes: the same answer, and nothing else to
    /// write. What would be written.
    fn audit(&self, answer: &str) {
        let history: Vec<_> = self.history();
        match replayed(&self.interpreter.program, &history) {
            Ok(written) => {
                let again = written.last().map(drive::ending);
                if again.as_deref() != Some(answer) || written.len() != 1 {
                    let what = format!("{answer} first, {again:?} on replay; written: {written:?}");
                    self.world().broke(Law::Answer, what);
                }
            }
            Err(broken) => self
                .world()
                .broke(broken.law, format!("at the end: {}", broken.what)),
        }
    }

    fn judge_store(&self) {
        let history = self.history();
        if let Err(what) = judge_history(&history) {
            self.world().broke(Law::Store, what);
        }
        if let Err(what) = judge_export(&history) {
            self.world().broke(Law::Store, what);
        }
        if let Err(what) = judge_pruned(&self.interpreter.program, &history) {
            self.world().broke(Law::Store, what);
        }
        let Some(row) = read(self.store.row(self.key)) else {
            return;
        };
        let post = Arc::clone(&self.world().post);
        if let Err(what) = post.judge(&self.store, self.key, &history) {
            self.world().broke(Law::Message, what);
        }
        self.world().judge_wake(&row, &self.store);
        let left = post::children(&self.store);
        let left = left.into_iter().find(|child| !child.detached);
        if row.state.is_final() && left.is_some() {
            let what = format!("the run has ended, and {left:?} goes on");
            self.world().broke(Law::Store, what);
        }
        let mut due = read(self.store.due(None, Timestamp::MAX, 1_000));
        due.retain(|(_, run)| *run == row.key);
        let wakes: Vec<_> = row.wake_at.map(|at| (at, row.key)).into_iter().collect();
        if due != wakes || row.state.is_final() && row.wake_at.is_some() {
            self.world()
                .broke(Law::Wake, format!("due {due:?}, the row {row:?}"));
        }
    }
}

/// What a run has written is a history that may be exported, and that comes back as it was.
fn judge_export(history: &[Record]) -> Result<(), String> {
    if history.is_empty() {
        // Killed before its beginning was durable.
        return Ok(());
    }
    let exported = History::new(RunId::from_stored("a"), history.to_vec());
    let exported = exported.map_err(|error| format!("no run could have written it: {error}"))?;
    let json = exported.to_json();
    match History::from_json(&json) {
        Ok(read) if read == exported => Ok(()),
        Ok(_) => Err(format!("it comes back otherwise: {json}")),
        Err(error) => Err(format!("it does not come back: {error}\n{json}")),
    }
}

/// What a replay of a finished run's history would write.
///
/// # Errors
/// When it breaks a law.
pub fn replayed(program: &Program, history: &[Record]) -> Result<Vec<Record>, Broken> {
    let world = Arc::new(World::new(program, 0, false));
    let kept: Vec<_> = history
        .iter()
        .filter(|record| !drive::is_end(record))
        .cloned()
        .collect();
    world.violence("an audit");
    world.landed(&kept, &[]);
    world.set_now(kept.last().map(|record| record.at).unwrap_or_default());
    let interpreter = Interpreter {
        program: program.clone(),
        world: Arc::clone(&world),
    };
    let row = workflow::replay::Standing {
        state: RunState::Running,
        ..Default::default()
    };
    let written = preflight(&interpreter, kept, row);
    world.end_drive();
    world.verdict()?;
    written.map_err(|what| Broken {
        law: Law::Diverged,
        what,
    })
}

/// When a run that only waits has to be woken, by its history alone.
pub(super) fn next_wake(history: &[Record]) -> Option<Timestamp> {
    let mut waits: BTreeMap<&Location, Timestamp> = BTreeMap::new();
    for record in history {
        let at = &record.location;
        match &record.body {
            Body::Waiting(
                Waiting::Sleep { until }
                | Waiting::Recv {
                    until: Some(until), ..
                },
            ) => {
                waits.insert(at, *until);
            }
            Body::Attempt {
                state: AttemptState::Failed { wake_at, .. },
                ..
            } => {
                waits.insert(at, *wake_at);
            }
            Body::Ended(_) | Body::Taken(_) => {
                waits.remove(at);
            }
            Body::Decided { branch } => {
                let winner = at.branch(branch);
                // What is pending in it when it has won is gone with it.
                waits.retain(|wait, _| !wait.is_under(at) || wait.is_under(&winner));
            }
            _ => {}
        }
    }
    waits.into_values().min()
}

/// A record that is gone, though it lay in no branch that lost.
fn missing(before: &[Record], after: &[Record]) -> Option<Location> {
    let losers = |at: &Location| {
        after.iter().any(|record| match &record.body {
            Body::Decided { branch } => {
                let race = &record.location;
                at != race && at.is_under(race) && !at.is_under(&race.branch(branch))
            }
            _ => false,
        })
    };
    // What a loop has pruned, and what is declared removed.
    let covered = |at: &Location| {
        after.iter().any(|record| match &record.body {
            Body::Removed { .. } => at.is_under(&record.location),
            Body::Opened(Opened::Carry(_)) => {
                at.is_under(&record.location) && *at != record.location
            }
            _ => false,
        })
    };
    before
        .iter()
        .find(|record| {
            let at = &record.location;
            !after.contains(record) && !losers(at) && !covered(at)
        })
        .map(|record| record.location.clone())
}

/// A carried loop keeps so many iterations, and no more: what is stored of it is bounded.
pub(super) fn judge_pruned(program: &Program, history: &[Record]) -> Result<(), String> {
    let kept = |carried: &Location| {
        let Some(Segment::Site(name)) = carried.segments().last() else {
            return None;
        };
        program.nodes().into_iter().find_map(|node| match node {
            Node::Carry {
                name: label,
                carried,
                ..
            } if *label == name => Some(carried.kept()),
            _ => None,
        })
    };
    for record in history {
        let Body::Carried { next, .. } = &record.body else {
            continue;
        };
        let segments: Vec<_> = record.location.segments().collect();
        let above = &segments[..segments.len() - 1];
        let carried = above
            .iter()
            .fold(Location::root(), |scope, &segment| scope.child(segment));
        let Some(kept) = kept(&carried) else {
            continue;
        };
        let stray = history.iter().find(|record| {
            let mut below = record.location.segments().skip(above.len());
            record.location.is_under(&carried)
                && matches!(below.next(), Some(Segment::Iter(index)) if index + kept < *next)
        });
        if let Some(stray) = stray {
            return Err(format!(
                "`{carried}` comes to iteration {next}, keeps {kept}, and `{}` is still recorded",
                stray.location
            ));
        }
    }
    Ok(())
}

/// The rules of a history that stand in it alone.
pub(super) fn judge_history(history: &[Record]) -> Result<(), String> {
    let mut opened: BTreeMap<&Location, &Opened> = BTreeMap::new();
    let mut last = 0;
    for (index, record) in history.iter().enumerate() {
        if record.seq <= last {
            return Err(format!("record {} follows {last}", record.seq));
        }
        last = record.seq;
        if (index == 0) != matches!(record.body, Body::Begun(_)) {
            return Err("it begins otherwise than with how the run began".into());
        }
        if let Body::Opened(what) = &record.body
            && opened.insert(&record.location, what).is_some()
        {
            return Err(format!("`{}` is opened twice", record.location));
        }
        let mut scope = Location::root();
        for segment in record.location.segments() {
            if matches!(segment, Segment::Branch(_)) && !opened.contains_key(&scope) {
                return Err(format!(
                    "`{}` is recorded, and `{scope}` not opened",
                    record.location
                ));
            }
            scope = scope.child(segment);
        }
    }
    for record in history {
        let Body::Decided { branch } = &record.body else {
            continue;
        };
        let (race, winner) = (&record.location, record.location.branch(branch));
        let under = history.iter().map(|record| &record.location);
        let stray = under
            .filter(|at| at.is_under(race) && *at != race)
            .find(|at| !at.is_under(&winner));
        if let Some(at) = stray {
            return Err(format!(
                "`{branch}` won `{race}`, and `{at}` is still recorded"
            ));
        }
    }
    Ok(())
}
