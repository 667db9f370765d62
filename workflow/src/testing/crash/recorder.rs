//! What a run does, event by event, and the end of it at one of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::sync::Notify;

use super::super::steps::Steps;
use super::event::{Attempted, Cut, Event, Spot, Told, What, said};
use crate::context::{CurrentStep, Instead, Intervening, Intervention};
use crate::replay::{AttemptState, Body, Location, Record, RunId, RunKey};
use crate::store::{Append, Post};

/// How often a body may wait before it is no longer counted.
const WAITS: u32 = 8;

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
