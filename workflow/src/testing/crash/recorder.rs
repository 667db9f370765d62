//! What a run does, event by event, and the end of it at one of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::sync::Notify;

use super::super::steps::Steps;
use super::life::RUN;
use crate::context::{CurrentStep, Instead, Intervening, Intervention};
use crate::replay::{AttemptState, Body, Location, Record, RunId, RunKey};
use crate::store::{Append, Post};

/// How often a body may wait before it is no longer counted.
const WAITS: u32 = 8;

/// Something that happens in a process, at which it may end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// The workflow and the run that it happens in; of a message, those that it is sent to.
    pub(super) workflow: String,
    pub(super) run: RunId,
    /// Where, first what happened last.
    pub(super) places: Vec<Location>,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// Something is written, and these are its words.
    Write(String),
    /// A body is about to begin.
    Begin(Attempted),
    /// A body waits, for the so-manieth time.
    Wait(Attempted, u32),
    /// A body has ended, and nothing of that is written.
    End(Attempted),
}

/// Which attempt of a body, and whether it is that of the undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attempted {
    pub(super) attempt: u32,
    pub(super) undo: bool,
}

/// How the process ends at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Before it was written, or where the body is.
    Before,
    /// After it was written, and before anybody was told.
    After,
}

impl Event {
    /// The ways in which a process may end here.
    pub(super) fn cuts(&self) -> &'static [Cut] {
        match self.what {
            What::Write(_) => &[Cut::Before, Cut::After],
            _ => &[Cut::Before],
        }
    }

    /// What a crash there is, for people.
    pub(super) fn told(&self, cut: Cut) -> String {
        let at = self.places.first().map(ToString::to_string);
        let at = at.unwrap_or_default();
        let of_run = if self.run.as_str() == RUN || self.run.as_str().is_empty() {
            String::new()
        } else {
            format!(" of `{}`", self.run)
        };
        let body = |body: &Attempted| {
            let of = if body.undo { "the undo of " } else { "" };
            format!("attempt {} of {of}`{at}`{of_run}", body.attempt)
        };
        match (&self.what, cut) {
            (What::Write(what), Cut::Before) => {
                format!("just before it was written{of_run} that {what}")
            }
            (What::Write(what), Cut::After) => {
                format!(
                    "just after it was written{of_run} that {what}, and before anybody was told"
                )
            }
            (What::Begin(of), _) => format!("where the body of {} was about to begin", body(of)),
            (What::Wait(of, 1), _) => format!("within the body of {}, where it waited", body(of)),
            (What::Wait(of, number), _) => format!(
                "within the body of {}, where it waited for time {number}",
                body(of)
            ),
            (What::End(of), _) => format!(
                "where the body of {} had ended, and nothing of that was written",
                body(of)
            ),
        }
    }
}

/// A step in a run, or its undo.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) run: RunId,
    pub(super) location: Location,
    pub(super) undo: bool,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = if self.undo { "the undo of " } else { "" };
        write!(f, "{of}`{}`", self.location)
    }
}

/// Writes down what happens in the processes of one case, and ends the first of them where it is told to.
pub(super) struct Recorder {
    state: Mutex<State>,
    died: Notify,
    steps: Vec<Steps>,
}

#[derive(Default)]
struct State {
    cut: Option<(usize, Cut)>,
    /// The process at hand is gone: nothing of it happens any more.
    dead: bool,
    seen: Seen,
    runs: HashMap<RunKey, (RunId, String)>,
    /// Where entries of ledgers are of.
    armed: BTreeMap<(RunId, u64), Location>,
    /// Bodies that have begun, and whose end is not written.
    under_way: BTreeSet<Spot>,
}

/// What was seen in one case.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// What happened in the first process.
    pub(super) events: Vec<Event>,
    /// Whether it ended where it was told to.
    pub(super) died: bool,
    /// The bodies that this cut off.
    pub(super) cut_off: BTreeSet<Spot>,
    /// How often each body was begun, in all processes.
    pub(super) begun: BTreeMap<Spot, u32>,
}

impl Recorder {
    pub(super) fn new(cut: Option<(usize, Cut)>, steps: Vec<Steps>) -> Arc<Self> {
        let state = State {
            cut,
            ..State::default()
        };
        Arc::new(Self {
            state: Mutex::new(state),
            died: Notify::new(),
            steps,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when the process has ended.
    pub(super) async fn died(&self) {
        self.died.notified().await;
    }

    /// Another process begins.
    pub(super) fn revive(&self) {
        self.state().dead = false;
    }

    pub(super) fn seen(&self) -> Seen {
        self.state().seen.clone()
    }

    /// The bodies of a run that have begun, and whose end is not written.
    pub(super) fn under_way(&self, run: &RunId) -> Vec<Spot> {
        let state = self.state();
        let spots = state.under_way.iter();
        spots.filter(|spot| spot.run == *run).cloned().collect()
    }

    /// Never resolves in a process that has ended.
    pub(super) async fn alive(&self) {
        let dead = self.state().dead;
        if dead {
            pending::<()>().await;
        }
    }

    /// Something is about to be written: how the process ends here, if it does.
    pub(super) fn write(&self, run: Option<RunKey>, told: Told) -> Option<Cut> {
        let mut state = self.state();
        let (id, workflow) = match (told.of, run.and_then(|run| state.runs.get(&run))) {
            (Some((id, workflow)), _) => (id, workflow),
            (None, Some((id, workflow))) => (id.clone(), workflow.clone()),
            (None, None) => (RunId::from_stored(""), String::new()),
        };
        let Told { places, what, .. } = told;
        state.event(Event {
            workflow,
            run: id,
            places,
            what: What::Write(what),
        })
    }

    /// The process ends.
    pub(super) async fn die(&self) {
        self.end();
        pending::<()>().await;
    }

    fn end(&self) {
        let mut state = self.state();
        state.dead = true;
        state.seen.died = true;
        state.seen.cut_off = std::mem::take(&mut state.under_way);
        drop(state);
        self.died.notify_one();
    }

    /// A batch is about to be written: its words.
    pub(super) fn describe(&self, append: &Append) -> Told {
        let state = self.state();
        let known = state.runs.get(&append.run);
        let id = match (&append.create, known) {
            (Some(new), _) => Some((new.id.clone(), new.workflow.clone())),
            (None, known) => known.cloned(),
        };
        let armed = |undoes: u64| {
            let (id, _) = id.as_ref()?;
            state.armed.get(&(id.clone(), undoes)).cloned()
        };
        let mut words = Vec::new();
        let mut places = Vec::new();
        for record in &append.records {
            let (place, said) = said(record, &armed);
            words.extend(said);
            places.extend(place);
        }
        places.reverse();
        if words.is_empty() {
            let state = append.patch.state;
            words.push(state.map_or_else(
                || "the run has changed".to_owned(),
                |state| format!("the run is {state}"),
            ));
        }
        Told {
            of: id,
            places,
            what: words.join(", and that "),
        }
    }

    /// A batch is written.
    pub(super) fn written(&self, append: &Append) {
        let mut state = self.state();
        if let Some(new) = &append.create {
            let of = (new.id.clone(), new.workflow.clone());
            state.runs.insert(append.run, of);
        }
        for post in &append.posts {
            if let Post::Run { run, new, .. } = post {
                let of = (new.id.clone(), new.workflow.clone());
                state.runs.insert(*run, of);
            }
        }
        let Some((id, _)) = state.runs.get(&append.run).cloned() else {
            return;
        };
        for record in &append.records {
            state.settle(&id, record);
        }
        for scope in &append.deletes {
            let gone = |spot: &Spot| spot.run == id && spot.location.is_under(scope);
            state.under_way.retain(|spot| !gone(spot));
        }
    }

    fn begin(&self, spot: &Spot) {
        let mut state = self.state();
        *state.seen.begun.entry(spot.clone()).or_default() += 1;
        state.under_way.insert(spot.clone());
    }
}

impl State {
    fn event(&mut self, event: Event) -> Option<Cut> {
        if self.seen.died {
            // Only the first process is cut.
            return None;
        }
        let number = self.seen.events.len();
        self.seen.events.push(event);
        self.cut.filter(|(at, _)| *at == number).map(|(_, cut)| cut)
    }

    /// A record is written: what was under way may have ended with it.
    fn settle(&mut self, id: &RunId, record: &Record) {
        let at = &record.location;
        let is_at = |spot: &Spot, at: &Location| spot.run == *id && spot.location == *at;
        match &record.body {
            Body::Ended(_)
            | Body::Attempt {
                state: AttemptState::Failed { .. },
                ..
            } => self.under_way.retain(|spot| spot.undo || !is_at(spot, at)),
            // What lost is dropped.
            Body::Decided { .. } => self
                .under_way
                .retain(|spot| spot.undo || spot.run != *id || !spot.location.is_under(at)),
            Body::Armed {
                number, location, ..
            } => {
                self.armed.insert((id.clone(), *number), location.clone());
            }
            Body::Undone { undoes, .. } => {
                if let Some(at) = self.armed.get(&(id.clone(), *undoes)) {
                    self.under_way.retain(|spot| !spot.undo || !is_at(spot, at));
                }
            }
            Body::Unwinding { .. } => self.under_way.retain(|spot| spot.undo || spot.run != *id),
            Body::Finished(_) => self.under_way.retain(|spot| spot.run != *id),
            _ => {}
        }
    }
}

/// What is about to be written.
pub(super) struct Told {
    pub(super) of: Option<(RunId, String)>,
    pub(super) places: Vec<Location>,
    pub(super) what: String,
}

/// Where a record is, and what it says; nothing of those that ride along with others.
fn said(
    record: &Record,
    armed: &impl Fn(u64) -> Option<Location>,
) -> (Option<Location>, Option<String>) {
    let at = &record.location;
    let here = || (!at.is_root()).then(|| at.clone());
    let words = match &record.body {
        Body::Begun(_) => "the run begins".to_owned(),
        Body::Waiting(_) => format!("`{at}` waits"),
        Body::Attempt {
            number,
            state: AttemptState::Started,
        } => format!("attempt {number} of `{at}` begins"),
        Body::Attempt { number, .. } => format!("attempt {number} of `{at}` failed"),
        Body::Ended(_) => format!("`{at}` ended"),
        Body::Taken(_) => format!("`{at}` took a message"),
        Body::Decided { branch } => format!("`{branch}` won `{at}`"),
        Body::Carried { next, .. } => format!("`{at}` goes on with iteration {next}"),
        Body::Pin { .. } => format!("`{at}` has its version"),
        Body::State { revision, .. } => format!("its state has revision {revision}"),
        Body::Unwinding { .. } => "the run is to be undone".to_owned(),
        Body::Undone {
            undoes, outcome, ..
        } => {
            let of = armed(*undoes);
            let at = of.as_ref().map(ToString::to_string).unwrap_or_default();
            let said = match outcome {
                Ok(()) => format!("`{at}` was undone"),
                Err(_) => format!("the undo of `{at}` failed"),
            };
            return (of, Some(said));
        }
        Body::Finished(_) => "the run ended".to_owned(),
        Body::Armed { location, .. } => return (Some(location.clone()), None),
        _ => return (here(), None),
    };
    (here(), Some(words))
}

/// Stands before all bodies, and asks the recorder.
pub(super) struct Watch(pub(super) Arc<Recorder>);

impl Watch {
    fn cutting(&self, workflow: &str, step: &CurrentStep, undo: bool) -> Box<dyn Intervention> {
        Box::new(Cutting {
            recorder: Arc::clone(&self.0),
            spot: Spot {
                run: step.run_id().clone(),
                location: step.location().clone(),
                undo,
            },
            workflow: workflow.to_owned(),
            step: step.clone(),
            begun: false,
            waits: 0,
            inner: None,
        })
    }
}

impl Intervening for Watch {
    fn attempt(&self, workflow: &str, step: &CurrentStep) -> Option<Box<dyn Intervention>> {
        Some(self.cutting(workflow, step, false))
    }

    fn undo(&self, workflow: &str, step: &CurrentStep) -> Option<Box<dyn Intervention>> {
        Some(self.cutting(workflow, step, true))
    }
}

/// One body that is watched.
struct Cutting {
    recorder: Arc<Recorder>,
    spot: Spot,
    workflow: String,
    step: CurrentStep,
    begun: bool,
    waits: u32,
    /// What else stands before it.
    inner: Option<Box<dyn Intervention>>,
}

impl Cutting {
    /// Something happens in the body; pending when the process ends there.
    fn happens(&self, what: impl FnOnce(Attempted) -> What) -> Poll<()> {
        let mut state = self.recorder.state();
        if state.dead {
            return Poll::Pending;
        }
        let cut = state.event(Event {
            workflow: self.workflow.clone(),
            run: self.spot.run.clone(),
            places: vec![self.spot.location.clone()],
            what: what(Attempted {
                attempt: self.step.attempt(),
                undo: self.spot.undo,
            }),
        });
        drop(state);
        if cut.is_some() {
            self.recorder.end();
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}

impl Intervention for Cutting {
    fn poll(
        &mut self,
        task: &mut Context<'_>,
        body: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>,
    ) -> Poll<Option<Instead>> {
        if self.recorder.state().dead {
            return Poll::Pending;
        }
        if !self.begun {
            self.begun = true;
            ready!(self.happens(What::Begin));
            self.recorder.begin(&self.spot);
            // Not before: what a test does to an attempt is done to one that begins.
            let (workflow, undo) = (&self.workflow, self.spot.undo);
            let mut steps = self.recorder.steps.iter();
            self.inner = steps.find_map(|steps| steps.begin(workflow, &self.step, undo));
        }
        let polled = match &mut self.inner {
            Some(inner) => inner.poll(task, body),
            None => body(task).map(|()| None),
        };
        match polled {
            Poll::Pending => {
                if self.waits < WAITS {
                    self.waits += 1;
                    let number = self.waits;
                    let _ = self.happens(|of| What::Wait(of, number));
                }
                Poll::Pending
            }
            Poll::Ready(instead) => {
                ready!(self.happens(What::End));
                Poll::Ready(instead)
            }
        }
    }
}
