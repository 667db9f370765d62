//! One run, laid over the picture of its workflow.
//!
//! 1. A record is told of at the site where it was made. What a fragment did is told of at its call, because its body is not
//!    drawn where it is called.
//! 2. What no site of this code made is [`Unknown`], and never told of at another one.
//! 3. Blocks record little of their own: how it stands with them is worked out from what is in them and after them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::drawing::{Class, Drawing};
use super::look::Look;
use super::outline::{Node, Part};
use super::state::{SiteState, State};
use super::{Graph, dot, json, mermaid};
use crate::replay::{
    AttemptState, Body, Failure, Finished, Kind, Location, Opened, Record, RunState, Segment, Site,
    Waiting,
};

/// A run over the graph of its workflow: made by [`Graph::of_run`] and [`RunHandle::graph`](crate::RunHandle::graph).
///
/// ```
/// # use workflow::{Engine, Failure, MemoryStore, RunState, now, workflow};
/// #[workflow]
/// async fn clock() -> Result<(), Failure> {
///     'ticks: for _ in 0..3 {
///         now!(tick).await;
///     }
///     Ok(())
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), workflow::Error> {
/// # let engine = Engine::builder().workflow(clock).store(MemoryStore::new()).build().await?;
/// let run = engine.start("clock-1", clock()).await?;
/// run.result().await?;
/// let over = run.graph().await?;
/// assert_eq!(over.ended(), Some(RunState::Completed));
/// let tick = over.site("ticks[]/tick").expect("it is in the code");
/// assert_eq!(tick.to_string(), "done 3 times");
/// assert_eq!(tick.places[2].0.to_string(), "ticks[2]/tick");
/// # Ok(())
/// # }
/// ```
///
/// It tells what the run's records tell. What was deleted from a history (iterations that a carried loop no longer keeps, branches
/// that lost a race) it does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunGraph {
    graph: Graph,
    sites: Vec<SiteState>,
    unknown: Vec<Unknown>,
    ended: Ended,
}

/// Something that a run has done where this code does nothing, or something else. A run that has one does not go on with this
/// code: see [`removed!`](crate::removed) and [`version!`](crate::version). That a run has none does not say that it goes on: the order
/// of its sites is not compared, nor which branches a block has.
///
/// ```
/// # use workflow::{Engine, Failure, MemoryStore, now, workflow};
/// #[workflow]
/// async fn clock() -> Result<(), Failure> {
///     now!(tick).await;
///     Ok(())
/// }
///
/// /// As the next deploy has it.
/// #[workflow]
/// async fn next_clock() -> Result<(), Failure> {
///     now!(tock).await;
///     Ok(())
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), workflow::Error> {
/// # let engine = Engine::builder().workflow(clock).store(MemoryStore::new()).build().await?;
/// let run = engine.start("clock-1", clock()).await?;
/// run.result().await?;
/// let over = next_clock::GRAPH.of_run(&run.history().await?);
/// let unknown = &over.unknown()[0];
/// assert_eq!(unknown.to_string(), "`tick` (now) is recorded, and not in the code");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unknown {
    /// Where in the run.
    pub location: Location,
    /// What was recorded there first; absent where the record does not say.
    pub recorded: Option<Kind>,
    /// What this code does there, if it does something.
    pub found: Option<&'static Site>,
}

/// `` `parcel` (step) is recorded, and not in the code ``
impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.location)?;
        if let Some(kind) = self.recorded {
            write!(f, " ({kind})")?;
        }
        match self.found {
            Some(site) => write!(f, " is recorded, and the code has {site}"),
            None => f.write_str(" is recorded, and not in the code"),
        }
    }
}

/// How far the run itself is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Ended {
    /// Its last state, as far as records tell it.
    state: Option<RunState>,
    /// What it failed by.
    cause: Option<Failure>,
}

impl RunGraph {
    /// What is drawn.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Every site of the code, in source order.
    pub fn sites(&self) -> &[SiteState] {
        &self.sites
    }

    /// The site at this path, as [`Site::path`] says it: `settle/paid/payment`, `items[]/ship`.
    pub fn site(&self, path: &str) -> Option<&SiteState> {
        self.sites.iter().find(|known| known.site.path == path)
    }

    /// What the run has done that this code does not, in the order of the history.
    pub fn unknown(&self) -> &[Unknown] {
        &self.unknown
    }

    /// How the run ended, or [`RunState::RollingBack`] while it is undone; `None` before that.
    pub fn ended(&self) -> Option<RunState> {
        self.ended.state
    }

    /// What the run failed by, also while it is undone.
    pub fn failure(&self) -> Option<&Failure> {
        self.ended.cause.as_ref()
    }

    /// The picture, as [Mermaid](https://mermaid.js.org) reads it.
    pub fn mermaid(&self) -> String {
        mermaid::print(&self.drawing())
    }

    /// The picture, as [Graphviz](https://graphviz.org) reads it.
    pub fn dot(&self) -> String {
        dot::print(&self.drawing())
    }

    /// The picture as data: the form of [`Graph::json`], with a `run` and with a `state` for each site.
    pub fn json(&self) -> String {
        json::print(&self.drawing(), self.graph.sites(), Some(self))
    }

    fn drawing(&self) -> Drawing {
        let mut drawing = Drawing::of(&self.graph);
        let mut block = BTreeMap::new();
        for node in &mut drawing.nodes {
            match node.class {
                Class::Start => node.look = Look::Done,
                Class::End => {
                    let (look, note) = self.end();
                    node.look = look;
                    node.note = note;
                }
                Class::Site(_) => {
                    let site = node.part.as_ref().map(|part| part.site.path);
                    let Some(known) = site.and_then(|path| self.site(path)) else {
                        continue;
                    };
                    node.look = Look::of_state(known.state);
                    node.note = Some(known.to_string()).filter(|note| !note.is_empty());
                    if known.kind != known.site.kind && known.site.kind == Kind::Call {
                        node.refine(known.kind);
                    }
                    node.state = Some(known.clone());
                    if let Some(group) = node.group {
                        // The block's own node is the first in it.
                        block.entry(group).or_insert(known.state);
                    }
                }
                Class::After(_) => {
                    let state = node.group.and_then(|group| block.get(&group));
                    node.look = match state {
                        Some(State::Done) => Look::Done,
                        _ => Look::Still,
                    };
                }
                Class::Choice | Class::Channel => {}
            }
        }
        drawing
    }

    fn end(&self) -> (Look, Option<String>) {
        let Some(state) = self.ended.state else {
            return (Look::Still, None);
        };
        let look = match state {
            RunState::Completed => Look::Done,
            RunState::RollingBack => Look::Active,
            _ => Look::Failed,
        };
        let said = match state {
            RunState::RollingBack => "rolling back",
            state => state.word(),
        };
        let note = match &self.ended.cause {
            Some(cause) if cause.location().is_root() => format!("{said}: {}", cause.kind()),
            Some(cause) => format!("{said} at {}: {}", cause.location(), cause.kind()),
            None => said.to_owned(),
        };
        (look, Some(note))
    }
}

impl Graph {
    /// This run, laid over the graph: `checkout::GRAPH.of_run(&run.history().await?)`.
    ///
    /// ```
    /// use workflow::graph::State;
    /// use workflow::{Engine, Failure, MemoryStore, sleep, step, workflow};
    ///
    /// #[step]
    /// async fn brew() -> String {
    ///     "tea".to_owned()
    /// }
    ///
    /// #[workflow]
    /// async fn tea() -> Result<String, Failure> {
    ///     let tea = brew().await?;
    ///     sleep!(steep, "3m").await;
    ///     Ok(tea)
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), workflow::Error> {
    /// # let engine = Engine::builder().workflow(tea).store(MemoryStore::new()).build().await?;
    /// let run = engine.start("tea-1", tea()).await?;
    /// # let mut watch = run.watch(1);
    /// # while let Some(seen) = watch.next().await? {
    /// #     if seen.record().is_some_and(|seen| seen.location.to_string() == "steep") { break }
    /// # }
    /// let now = tea::GRAPH.of_run(&run.history().await?);
    /// let state = |path| now.site(path).map(|site| site.state);
    /// assert_eq!(state("brew"), Some(State::Done));
    /// assert_eq!(state("steep"), Some(State::Waiting));
    /// println!("{}", now.mermaid());
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_run(&self, history: &[Record]) -> RunGraph {
        Reading::of(self, history).finish()
    }
}

/// A history that is being read.
struct Reading {
    graph: Graph,
    /// The number of each path's site.
    numbers: BTreeMap<&'static str, usize>,
    read: Vec<Read>,
    unknown: BTreeMap<Location, (u64, Unknown)>,
    /// Where the effect of each entry of the ledger was had.
    armed: BTreeMap<u64, Location>,
    ended: Ended,
}

/// What a history tells of one site.
#[derive(Debug, Clone, Default)]
struct Read {
    /// The kind that was recorded of a call.
    kind: Option<Kind>,
    /// What it recorded of its own, and where.
    places: BTreeMap<Location, State>,
    /// What was recorded under a call of a fragment.
    below: BTreeMap<Location, State>,
    /// Where in the run it was come to.
    entered: BTreeSet<Location>,
    /// Iterations or items that something was recorded in.
    members: BTreeSet<Location>,
    /// How many there are at least.
    count: u64,
    /// The number of the last record of it or under it.
    last: Option<u64>,
    /// A race was decided without the branch that it stands in.
    is_lost: bool,
    state: Option<State>,
}

/// What follows the parts that are being looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// Something that was reached, or the end: what was not reached before it was passed.
    Reached,
    /// Nothing that was reached.
    Nothing,
    /// The same parts, in another iteration.
    Again,
    /// The same parts, in other items at the same time.
    Beside,
}

/// A site on the way to a location.
struct OnWay {
    number: usize,
    at: Location,
    /// The iteration or item that the way goes through.
    member: Option<Location>,
}

/// What belongs to a location.
enum Found {
    /// A site.
    Site(usize),
    /// Something in the call of a fragment, or in what the code no longer has.
    Below(usize),
    /// A branch or an iteration itself.
    Member(usize),
    Nothing,
}

impl Reading {
    fn of(graph: &Graph, history: &[Record]) -> Self {
        let sites = graph.sites().iter().enumerate();
        let mut reading = Self {
            graph: *graph,
            numbers: sites.map(|(number, site)| (site.path, number)).collect(),
            read: vec![Read::default(); graph.sites().len()],
            unknown: BTreeMap::new(),
            armed: BTreeMap::new(),
            ended: Ended::default(),
        };
        for record in history {
            reading.record(record);
        }
        reading
    }

    fn record(&mut self, record: &Record) {
        match &record.body {
            Body::Unwinding { cause } => {
                self.ended = Ended {
                    state: Some(RunState::RollingBack),
                    cause: cause.clone(),
                };
            }
            Body::Finished(finished) => {
                let (state, cause) = match finished {
                    Finished::Completed(_) => (RunState::Completed, None),
                    Finished::Failed(failure) => (RunState::Failed, Some(failure.clone())),
                    Finished::Cancelled => (RunState::Cancelled, None),
                };
                self.ended.state = Some(state);
                self.ended.cause = cause;
            }
            Body::Armed {
                number, location, ..
            } => {
                self.armed.insert(*number, location.clone());
            }
            Body::Undone {
                undoes,
                attempt,
                outcome,
                skipped,
            } => {
                let state = match (skipped, outcome) {
                    (Some(_), _) => State::UndoSkipped,
                    (None, Ok(())) => State::Undone,
                    (None, Err(_)) => State::Undoing {
                        attempt: attempt.saturating_add(1),
                    },
                };
                if let Some(location) = self.armed.get(undoes).cloned() {
                    self.undone(&location, state);
                }
            }
            Body::Begun(_) | Body::Control(_) | Body::State { .. } | Body::Removed { .. } => {}
            _ if record.location.is_root() => {}
            body => self.at(record, body),
        }
    }

    /// Something was recorded at a place of the code.
    fn at(&mut self, record: &Record, body: &Body) {
        let location = &record.location;
        let kind = kind_of(body);
        let (found, way) = self.find(location);
        let unknown = match found {
            Found::Site(number) => {
                let site = &self.graph.sites()[number];
                let is_it = kind.is_none_or(|kind| is_like(site.kind, kind));
                (!is_it).then_some(Some(site))
            }
            Found::Nothing => Some(None),
            Found::Below(_) | Found::Member(_) => None,
        };
        if let Some(site) = unknown {
            let unknown = Unknown {
                location: location.clone(),
                recorded: kind,
                found: site,
            };
            let known = self.unknown.entry(location.clone());
            known
                .and_modify(|(_, known)| known.recorded = known.recorded.or(kind))
                .or_insert((record.seq, unknown));
            return;
        }
        for on_way in way {
            let read = &mut self.read[on_way.number];
            read.last = Some(record.seq);
            read.entered.insert(on_way.at);
            read.members.extend(on_way.member);
        }
        match found {
            Found::Site(number) => {
                let read = &mut self.read[number];
                if self.graph.sites()[number].kind == Kind::Call {
                    read.kind = kind.or(read.kind);
                }
                let before = read.places.get(location).copied();
                if let Some(state) = state_of(body, before) {
                    read.places.insert(location.clone(), state);
                }
                match body {
                    Body::Decided { branch } => self.decided(number, branch),
                    Body::Opened(Opened::JoinAll(items)) => read.count = read.count.max(*items),
                    _ => {}
                }
            }
            Found::Below(number) => {
                let read = &mut self.read[number];
                if self.graph.sites()[number].kind == Kind::Call {
                    read.kind = Some(Kind::Fragment);
                }
                let before = read.below.get(location).copied();
                if let Some(state) = state_of(body, before) {
                    read.below.insert(location.clone(), state);
                }
            }
            Found::Member(number) => {
                // The iteration's own record, at its end.
                if let Body::Carried { next, .. } = body {
                    let read = &mut self.read[number];
                    read.count = read.count.max(*next);
                }
            }
            Found::Nothing => {}
        }
    }

    fn undone(&mut self, location: &Location, state: State) {
        match self.find(location) {
            (Found::Site(number), _) => {
                self.read[number].places.insert(location.clone(), state);
            }
            (Found::Below(number), _) => {
                self.read[number].below.insert(location.clone(), state);
            }
            _ => {}
        }
    }

    /// What is at a location, and the sites on the way to it.
    fn find(&self, location: &Location) -> (Found, Vec<OnWay>) {
        let mut way: Vec<OnWay> = Vec::new();
        let mut path = String::new();
        let mut at = Location::root();
        let mut found = Found::Nothing;
        for segment in location.segments() {
            at = at.child(segment);
            let (Segment::Site(name) | Segment::Branch(name)) = segment else {
                path.push_str("[]");
                if let Found::Site(number) | Found::Member(number) = found {
                    if let Some(on_way) = way.last_mut() {
                        on_way.member = Some(at.clone());
                    }
                    found = Found::Member(number);
                }
                continue;
            };
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(name);
            let site = self.numbers.get(path.as_str()).copied();
            found = match (site, found) {
                (Some(number), _) if matches!(segment, Segment::Site(_)) => {
                    way.push(OnWay {
                        number,
                        at: at.clone(),
                        member: None,
                    });
                    Found::Site(number)
                }
                (_, Found::Site(number) | Found::Below(number)) if self.hides(number) => {
                    Found::Below(number)
                }
                (_, Found::Site(number)) if matches!(segment, Segment::Branch(_)) => {
                    Found::Member(number)
                }
                _ => Found::Nothing,
            };
        }
        (found, way)
    }

    /// Whether what was done in this site is not in the graph.
    fn hides(&self, number: usize) -> bool {
        matches!(
            self.graph.sites()[number].kind,
            Kind::Call | Kind::Removed | Kind::Fragment
        )
    }

    /// A race was won: what stands in its other branches has lost.
    fn decided(&mut self, race: usize, branch: &str) {
        let sites = self.graph.sites();
        let race_path = sites[race].path;
        for (site, read) in sites.iter().zip(&mut self.read) {
            let below = site.path.strip_prefix(race_path);
            let Some(below) = below.and_then(|below| below.strip_prefix('/')) else {
                continue;
            };
            let of = below.split_once('/').map_or(below, |(of, _)| of);
            read.is_lost |= of != branch;
        }
    }

    fn finish(mut self) -> RunGraph {
        if self.ended.state.is_some() {
            let reads = self.read.iter_mut();
            for state in
                reads.flat_map(|read| read.places.values_mut().chain(read.below.values_mut()))
            {
                if matches!(
                    state,
                    State::Waiting | State::Retrying { .. } | State::Running
                ) {
                    *state = State::CutOff;
                }
            }
        }
        let after = match self.ended.state {
            Some(RunState::Completed) => After::Reached,
            _ => After::Nothing,
        };
        self.settle(&self.graph.parts(), after);
        let sites = self.graph.sites().iter().zip(&self.read);
        let sites = sites.map(|(site, read)| {
            let ended = |wanted: State| {
                let states = read.places.values().filter(move |state| **state == wanted);
                states.count() as u64
            };
            let kind = read.kind.unwrap_or(site.kind);
            let times = match kind {
                Kind::Loop | Kind::JoinAll => read.count.max(read.members.len() as u64),
                Kind::Join | Kind::Race | Kind::Attempt | Kind::Fragment => {
                    read.entered.len() as u64
                }
                _ => ended(State::Done),
            };
            SiteState {
                site,
                kind,
                state: read.state.unwrap_or(State::NotReached),
                times,
                failures: ended(State::Failed),
                places: read.places.clone().into_iter().collect(),
            }
        });
        let sites = sites.collect();
        let mut unknown: Vec<_> = self.unknown.into_values().collect();
        unknown.sort_by_key(|(seq, _)| *seq);
        RunGraph {
            graph: self.graph,
            sites,
            unknown: unknown.into_iter().map(|(_, unknown)| unknown).collect(),
            ended: self.ended,
        }
    }

    /// Works out how it stands with these parts, the last first. Gives whether one of them was reached.
    fn settle(&mut self, parts: &[Part], after: After) -> bool {
        let lasts: Vec<Option<u64>> = parts.iter().map(|part| self.last_in(part)).collect();
        let mut after = after;
        let mut reached = false;
        for (at, part) in parts.iter().enumerate().rev() {
            let here = match part {
                Part::Leaves(_) => false,
                Part::Choice(arms) => {
                    let taken = |arm: usize| {
                        let mut parts = arms[arm].parts.iter();
                        parts.any(|part| self.last_in(part).is_some())
                    };
                    let taken: Vec<bool> = (0..arms.len()).map(taken).collect();
                    let mut here = false;
                    for (number, arm) in arms.iter().enumerate() {
                        let others = taken.iter().enumerate();
                        let other_is = others
                            .clone()
                            .any(|(other, taken)| *taken && other != number);
                        let is_passed = after == After::Nothing && other_is && !taken[number];
                        let after = if is_passed { After::Reached } else { after };
                        here |= self.settle(&arm.parts, after);
                    }
                    here
                }
                Part::Site(node) => {
                    // In an iteration, too, only one part is worked on at a time.
                    let others = lasts.iter().enumerate().filter(|(other, _)| *other != at);
                    let is_older = others.map(|(_, last)| *last).max().flatten() > lasts[at];
                    let is_passed = after == After::Reached || (after == After::Again && is_older);
                    self.settle_site(node, after, is_passed)
                }
            };
            reached |= here;
            if here && after == After::Nothing {
                after = After::Reached;
            }
        }
        reached
    }

    fn last_in(&self, part: &Part) -> Option<u64> {
        match part {
            Part::Site(node) => self.read[self.number(node)].last,
            Part::Choice(arms) => {
                let parts = arms.iter().flat_map(|arm| &arm.parts);
                parts.filter_map(|part| self.last_in(part)).max()
            }
            Part::Leaves(_) => None,
        }
    }

    fn number(&self, node: &Node) -> usize {
        self.numbers
            .get(node.site.path)
            .copied()
            .unwrap_or_default()
    }

    fn settle_site(&mut self, node: &Node, after: After, is_passed: bool) -> bool {
        let number = self.number(node);
        // Of its races in a loop the last one, too.
        let places = &self.read[number].places;
        let is_decided = node.site.kind == Kind::Race
            && !places.is_empty()
            && places.values().all(|state| *state == State::Done);
        let within = match (node.site.kind, after) {
            (_, After::Reached) => After::Reached,
            (Kind::Loop, After::Nothing | After::Again) => After::Again,
            (Kind::JoinAll, _) | (_, After::Beside) => After::Beside,
            (Kind::Race, After::Nothing) if is_decided => After::Reached,
            (_, after) => after,
        };
        for body in &node.bodies {
            self.settle(&body.parts, within);
        }
        let is_reached = self.read[number].last.is_some();
        let read = &self.read[number];
        let state = if node.site.kind == Kind::Derived {
            State::Untold
        } else if !is_reached && read.is_lost {
            State::Lost
        } else if !is_reached && after == After::Reached && node.site.kind != Kind::Removed {
            State::Skipped
        } else if !is_reached {
            State::NotReached
        } else if !node.bodies.is_empty() || read.places.is_empty() {
            self.block(node, is_passed || is_decided)
        } else {
            let heaviest = read.places.values().max_by_key(|state| state.weight());
            heaviest.copied().unwrap_or(State::NotReached)
        };
        self.read[number].state = Some(state);
        is_reached
    }

    /// How it stands with what is known only from what is in it.
    fn block(&self, node: &Node, is_passed: bool) -> State {
        let read = &self.read[self.number(node)];
        let mut within: Vec<State> = read.below.values().copied().collect();
        let bodies = node.bodies.iter().flat_map(|body| &body.parts);
        bodies.for_each(|part| self.states_in(part, &mut within));
        let active = within.iter().filter(|state| state.is_active());
        match active.max_by_key(|state| state.weight()) {
            Some(State::Waiting) => return State::Waiting,
            Some(State::Undoing { attempt }) => return State::Undoing { attempt: *attempt },
            Some(_) => return State::Running,
            None => {}
        }
        let is_cause = self.ended.cause.as_ref().is_some_and(|cause| {
            let (_, way) = self.find(cause.location());
            let number = self.number(node);
            way.iter().any(|on_way| on_way.number == number)
        });
        if is_cause {
            State::Failed
        } else if is_passed {
            State::Done
        } else if self.ended.state.is_some() {
            State::CutOff
        } else {
            State::Running
        }
    }

    fn states_in(&self, part: &Part, states: &mut Vec<State>) {
        match part {
            Part::Site(node) => states.extend(self.read[self.number(node)].state),
            Part::Choice(arms) => {
                let parts = arms.iter().flat_map(|arm| &arm.parts);
                parts.for_each(|part| self.states_in(part, states));
            }
            Part::Leaves(_) => {}
        }
    }
}

/// Whether a record of this kind may be of a site of that one.
fn is_like(site: Kind, recorded: Kind) -> bool {
    // An answer to a request is awaited as a call, and what was removed was anything.
    site.is_like(recorded)
        || (site == Kind::Call && recorded == Kind::Reply)
        || site == Kind::Removed
}

/// The kind that a record gives away.
fn kind_of(body: &Body) -> Option<Kind> {
    Some(match body {
        Body::Opened(Opened::Join(_)) => Kind::Join,
        Body::Opened(Opened::Race(_)) | Body::Decided { .. } => Kind::Race,
        Body::Opened(Opened::JoinAll(_)) => Kind::JoinAll,
        Body::Opened(Opened::Carry(_)) | Body::Carried { .. } => Kind::Loop,
        Body::Opened(Opened::Stage { .. }) => Kind::Stage,
        Body::Waiting(Waiting::Sleep { .. }) => Kind::Sleep,
        Body::Waiting(Waiting::Recv { .. }) | Body::Taken(_) => Kind::Recv,
        Body::Waiting(Waiting::Child { .. }) => Kind::Child,
        Body::Attempt { .. } => Kind::Step,
        Body::Ended(ended) => ended.kind,
        Body::Pin { .. } => Kind::Version,
        Body::Checkpoint => Kind::Checkpoint,
        Body::Settled { .. } => Kind::Settle,
        _ => return None,
    })
}

/// What a record makes of the place where it was made.
fn state_of(body: &Body, before: Option<State>) -> Option<State> {
    Some(match body {
        Body::Waiting(Waiting::Body) => match before {
            // It was to be tried again.
            Some(State::Retrying { attempt }) => State::Retrying { attempt },
            _ => State::Running,
        },
        Body::Waiting(_) => State::Waiting,
        Body::Opened(Opened::Race(_)) => State::Running,
        Body::Attempt { number, state } => match (state, *number) {
            (AttemptState::Started, 0 | 1) => State::Running,
            (AttemptState::Started, attempt) => State::Retrying { attempt },
            (AttemptState::Failed { .. }, number) => State::Retrying {
                attempt: number.saturating_add(1),
            },
        },
        Body::Ended(ended) => match ended.outcome {
            Ok(_) => State::Done,
            Err(_) => State::Failed,
        },
        Body::Taken(_)
        | Body::Pin { .. }
        | Body::Checkpoint
        | Body::Settled { .. }
        | Body::Decided { .. }
        | Body::Closed(_) => State::Done,
        _ => return None,
    })
}
