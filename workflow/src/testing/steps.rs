//! Steps that are stood in for, and faults at them.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use serde::Serialize;

use super::place::Place;
use crate::codec::BoxError;
use crate::context::{BoxFut, CurrentStep, Instead, Intervening, Intervention, Workflow, critical};
use crate::engine::{Definition, EngineBuilder};
use crate::replay::Site;

/// What a test does to the steps of a workflow, by their locations: it stands in for a body, or makes one fail, hang, or come late.
/// Also it counts attempts.
///
/// A location is written as reports show it: `charge`, `settle/paid/payment`, `items[3]/ship`. Without brackets, `items/ship`, all
/// iterations are meant; so are all inner ones by `days[2]/hours/ring`. One that the workflow does not have panics at once, and says which
/// are near.
///
/// What is done comes in the place of the body, or around it, and nowhere else: options, retries, timeouts, records and replay
/// are those of the workflow. A step that is recorded is not run on replay, and so is not asked for here either.
///
/// ```
/// # use workflow::testing::{self, Steps};
/// # use workflow::{Failure, step, workflow};
/// #[step(retries = 2)]
/// async fn charge(cents: u32) -> Result<String, std::io::Error> {
///     panic!("no test calls the bank")
/// }
///
/// #[workflow]
/// async fn order(cents: u32) -> Result<String, Failure> {
///     charge(cents).await
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), workflow::Error> {
/// let steps = Steps::of(order)
///     .mock("charge", |step| Ok(format!("receipt of attempt {}", step.attempt())))
///     .fail("charge", 2, "the bank is closed");
/// let engine = testing::engine().workflow(order).steps(&steps).build().await?;
///
/// assert_eq!(engine.run("order-1", order(5)).await?, "receipt of attempt 3");
/// assert_eq!(steps.attempts("charge"), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Steps {
    workflow: &'static str,
    sites: &'static [Site],
    rules: Vec<Rule>,
    /// Shared by all clones: what is asked for is what became of those that an engine was given.
    done: Arc<Mutex<Done>>,
}

/// What became of them so far.
#[derive(Default)]
struct Done {
    /// Attempts by location, those of undos apart.
    attempts: BTreeMap<(String, bool), u32>,
    /// How often a rule was applied.
    applied: BTreeMap<usize, u32>,
}

#[derive(Clone)]
struct Rule {
    at: Place,
    undo: bool,
    act: Act,
}

#[derive(Clone)]
enum Act {
    Mock(Arc<Mock>),
    Fault(Fault, u32),
}

type Mock = dyn Fn(&CurrentStep) -> Result<Vec<u8>, BoxError> + Send + Sync;

/// What happens to an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It fails with this message, and its body is not run.
    Error(String),
    /// It fails with this message, marked as one that another attempt does not mend: [`critical`](crate::critical).
    Critical(String),
    /// It panics with this message in place of its body.
    Panic(String),
    /// It never ends, and its body is not run: what ends it is its timeout, or a race.
    Hangs,
    /// Its body begins so much later.
    Delay(Duration),
    /// Its body is run to its end, and fails with this message all the same: what an answer that got lost looks like. The effect is
    /// had, and another attempt follows.
    Unanswered(String),
}

/// An error with its type, for a [mock](Steps::mock): `failure.downcast::<CardError>()` finds it, as one that the step itself gave.
pub fn typed<E: Error + Serialize + Send + Sync + 'static>(
    error: E,
) -> Box<dyn Error + Send + Sync> {
    match serde_json::to_vec(&error) {
        Ok(json) => Box::new(Typed {
            error: error.into(),
            name: std::any::type_name::<E>(),
            json,
        }),
        Err(_) => error.into(),
    }
}

#[derive(Debug)]
struct Typed {
    error: BoxError,
    name: &'static str,
    json: Vec<u8>,
}

impl fmt::Display for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl Error for Typed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

impl Steps {
    /// The steps of this workflow, as they are: `Steps::of(checkout)`.
    pub fn of<Arguments, F: Definition<Arguments>>(_workflow: F) -> Self {
        Self::of_workflow::<F::Workflow>()
    }

    pub(super) fn of_workflow<W: Workflow>() -> Self {
        Self {
            workflow: W::NAME,
            sites: W::SITES,
            rules: Vec::new(),
            done: Arc::default(),
        }
    }

    /// Runs this in place of the body of the step at that location. It is told of the attempt: its number, its location, how the one
    /// before it failed; not of the step's arguments, which are its body's own and need not be data.
    ///
    /// The value is written as JSON and read as the step's own type, as on a replay; one that does not fit fails the step with
    /// [`FailureKind::Encode`](crate::FailureKind::Encode), which says so. An error is one of the step: `Err("declined".into())`,
    /// `Err(CardError::Declined.into())`, or [`typed`]. A `retry_if` is not asked; [`critical`](crate::critical) ends the retries.
    ///
    /// Of two mocks of one location the later one holds.
    ///
    /// # Panics
    /// When the workflow has no step there.
    #[must_use]
    #[track_caller]
    pub fn mock<T: Serialize>(
        self,
        location: &str,
        body: impl Fn(&CurrentStep) -> Result<T, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    ) -> Self {
        let mock = move |step: &CurrentStep| Ok(serde_json::to_vec(&body(step)?)?);
        self.rule(location, false, Act::Mock(Arc::new(mock)))
    }

    /// Lets the first so many attempts at that location fail with this message, before anything else is done there. They are
    /// attempts: with the step's own retries the next ones follow.
    ///
    /// # Panics
    /// When the workflow has no step there.
    #[must_use]
    #[track_caller]
    pub fn fail(self, location: &str, times: u32, message: impl Into<String>) -> Self {
        self.fault(location, times, Fault::Error(message.into()))
    }

    /// Does this to the first so many attempts at that location. What is said of a location first happens first: two that fail, then
    /// one that hangs.
    ///
    /// # Panics
    /// When the workflow has no step there.
    #[must_use]
    #[track_caller]
    pub fn fault(self, location: &str, times: u32, fault: Fault) -> Self {
        self.rule(location, false, Act::Fault(fault, times))
    }

    /// Runs this in place of the undo of the step at that location.
    ///
    /// # Panics
    /// When the workflow has no step there.
    #[must_use]
    #[track_caller]
    pub fn mock_undo(
        self,
        location: &str,
        undo: impl Fn(&CurrentStep) -> Result<(), Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    ) -> Self {
        let mock = move |step: &CurrentStep| undo(step).map(|()| b"null".to_vec());
        self.rule(location, true, Act::Mock(Arc::new(mock)))
    }

    /// Does this to the first so many attempts of the undo of the step at that location.
    ///
    /// # Panics
    /// When the workflow has no step there.
    #[must_use]
    #[track_caller]
    pub fn fault_undo(self, location: &str, times: u32, fault: Fault) -> Self {
        self.rule(location, true, Act::Fault(fault, times))
    }

    /// How many attempts were begun at that location, in all runs and all its iterations together, when brackets are left out.
    ///
    /// # Panics
    /// When the workflow has no step there.
    #[track_caller]
    pub fn attempts(&self, location: &str) -> u32 {
        self.count(&self.place(location), false)
    }

    /// How many attempts of its undo were begun.
    ///
    /// # Panics
    /// When the workflow has no step there.
    #[track_caller]
    pub fn undo_attempts(&self, location: &str) -> u32 {
        self.count(&self.place(location), true)
    }

    /// The same rules, and nothing is done yet.
    pub(super) fn fresh(&self) -> Self {
        Self {
            done: Arc::default(),
            ..self.clone()
        }
    }

    #[track_caller]
    fn place(&self, location: &str) -> Place {
        match Place::of_step(location, self.workflow, self.sites) {
            Ok(place) => place,
            Err(unknown) => panic!("{unknown}"),
        }
    }

    #[track_caller]
    fn rule(mut self, location: &str, undo: bool, act: Act) -> Self {
        let at = self.place(location);
        self.rules.push(Rule { at, undo, act });
        self
    }

    fn count(&self, place: &Place, undo: bool) -> u32 {
        let done = self.done();
        let found = done.attempts.iter();
        let found = found.filter(|((at, of_undo), _)| *of_undo == undo && place.is_text(at));
        found.map(|(_, attempts)| attempts).sum()
    }

    fn done(&self) -> std::sync::MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An attempt begins: what is done to it.
    pub(super) fn begin(
        &self,
        workflow: &str,
        step: &CurrentStep,
        undo: bool,
    ) -> Option<Box<dyn Intervention>> {
        if workflow != self.workflow {
            return None;
        }
        let at = step.location().to_string();
        let mut done = self.done();
        *done.attempts.entry((at.clone(), undo)).or_default() += 1;
        let mut fault = None;
        let mut mock = None;
        let rules = self.rules.iter().enumerate();
        for (index, rule) in rules.filter(|(_, rule)| rule.undo == undo && rule.at.is_text(&at)) {
            match &rule.act {
                Act::Mock(of_rule) => mock = Some(Arc::clone(of_rule)),
                Act::Fault(of_rule, times) => {
                    let applied = done.applied.entry(index).or_default();
                    if fault.is_none() && *applied < *times {
                        *applied += 1;
                        fault = Some(of_rule.clone());
                    }
                }
            }
        }
        if fault.is_none() && mock.is_none() {
            return None;
        }
        Some(Box::new(Standing {
            step: step.clone(),
            fault,
            mock,
            delay: None,
        }))
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps")
            .field("workflow", &self.workflow)
            .field("attempts", &self.done().attempts)
            .finish_non_exhaustive()
    }
}

impl EngineBuilder {
    /// Does to the steps of a workflow what a test says. For tests: with the feature `testing` only.
    pub fn steps(self, steps: &Steps) -> Self {
        let steps = steps.clone();
        self.intervened_by(|others| Arc::new(Both { steps, others }))
    }
}

/// Steps, and who is asked when they have nothing to say.
struct Both {
    steps: Steps,
    others: Option<Arc<dyn Intervening>>,
}

impl Intervening for Both {
    fn attempt(&self, workflow: &str, step: &CurrentStep) -> Option<Box<dyn Intervention>> {
        let ours = self.steps.begin(workflow, step, false);
        ours.or_else(|| self.others.as_ref()?.attempt(workflow, step))
    }

    fn undo(&self, workflow: &str, step: &CurrentStep) -> Option<Box<dyn Intervention>> {
        let ours = self.steps.begin(workflow, step, true);
        ours.or_else(|| self.others.as_ref()?.undo(workflow, step))
    }
}

/// What is done to one attempt.
struct Standing {
    step: CurrentStep,
    fault: Option<Fault>,
    mock: Option<Arc<Mock>>,
    delay: Option<BoxFut<'static, ()>>,
}

impl Standing {
    /// The mock, or else the body.
    fn poll_base(
        &self,
        task: &mut Context<'_>,
        body: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>,
    ) -> Poll<Option<Instead>> {
        let Some(mock) = &self.mock else {
            return body(task).map(|()| None);
        };
        Poll::Ready(Some(match mock(&self.step) {
            Ok(json) => Instead::Value(json),
            Err(error) => match error.downcast::<Typed>() {
                Ok(typed) => Instead::Error {
                    error: typed.error,
                    typed: Some((typed.name, typed.json)),
                },
                Err(error) => Instead::Error { error, typed: None },
            },
        }))
    }
}

impl Intervention for Standing {
    fn poll(
        &mut self,
        task: &mut Context<'_>,
        body: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>,
    ) -> Poll<Option<Instead>> {
        let failed = |error: BoxError| Poll::Ready(Some(Instead::Error { error, typed: None }));
        match &self.fault {
            None => self.poll_base(task, body),
            Some(Fault::Error(message)) => failed(message.clone().into()),
            Some(Fault::Critical(message)) => failed(critical(message.clone()).into()),
            Some(Fault::Panic(message)) => panic!("{message}"),
            Some(Fault::Hangs) => Poll::Pending,
            Some(Fault::Delay(delay)) => {
                let delay = *delay;
                let late = self
                    .delay
                    .get_or_insert_with(|| Box::pin(tokio::time::sleep(delay)));
                ready!(late.as_mut().poll(task));
                self.fault = None;
                self.poll_base(task, body)
            }
            Some(Fault::Unanswered(message)) => {
                let message = message.clone();
                ready!(self.poll_base(task, body));
                failed(message.into())
            }
        }
    }
}
