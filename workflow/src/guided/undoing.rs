//! Rolling a guide back: what its stages did is undone by the run's ledger, newest first.
//!
//! 1. The entry of a visit is made with the position that enters it, so that it stands before what the visit does; that the visit came to
//!    a good end is added with the position that leaves it.
//! 2. Each undo is recorded when it ended, so none is made twice but one that was cut off. A restart goes on where it was.
//! 3. The last batch takes the guide back to before it began: there is no instant at which it is half there.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use super::desk::{Answer, Answering};
use super::doing::{Doing, What};
use super::flow::{Flow, FlowState, Hooks, UndoneStep};
use super::position::{Failing, Position, StageName, Status};
use super::refused::Refused;
use super::run::{Guide, INITIAL, said};
use super::stage::Undone;
use crate::codec::BoxError;
use crate::context::{Park, Unmaking};
use crate::replay::{LedgerEntry, Location, Segment};

/// So often an undo is tried in one go.
const ATTEMPTS: u32 = 4;

impl<S: FlowState> Guide<S> {
    /// Makes or completes the ledger's entries of the visits that a move leaves and enters.
    pub(super) fn arm(&self, next: &Position) {
        let (before, plan) = (&self.now.position, self.flow.plan());
        let undone = |stage: &StageName| plan.hooks(stage).is_some_and(|it| it.undo.is_some());
        if let Some(left) = before.at.as_ref().filter(|left| undone(left))
            && next.completed.contains(left)
            && let Some(visits) = before.visits.get(left)
            && (next.at != before.at
                || next.visits.get(left) != Some(visits)
                || next.completed_at.is_some())
        {
            self.ground.arm(left.as_str(), visits.last, true);
        }
        if let Some(entered) = next.at.as_ref().filter(|entered| undone(entered))
            && let Some(visits) = next.visits.get(entered)
            && before.visits.get(entered) != Some(visits)
        {
            self.ground.arm(entered.as_str(), visits.last, false);
        }
    }

    pub(super) fn roll_back(&mut self, answering: Answering, key: Option<String>) {
        let next = self.course().rolls_back();
        let state = self.now.state.clone();
        match self.commit(next, state, key, false) {
            Ok(()) => {
                self.desk.wait(answering);
                self.undo();
            }
            Err(refused) => self.owe(answering, Err(refused)),
        }
    }

    /// Begins to undo, or goes on with it.
    pub(super) fn undo(&mut self) {
        let (flow, state) = (self.flow.clone(), self.now.state.clone());
        let unmaking = self.ground.undoing();
        let code = Box::pin(async move {
            unmaking.said().await;
            while let Some(entry) = unmaking.newest() {
                undo(&unmaking, &flow, &state, entry).await?;
            }
            Ok(())
        });
        self.doing = Some(Doing {
            code,
            ended: None,
            what: What::Undo,
            answering: None,
            key: None,
            limit: None,
            visiting: None,
        });
    }

    /// What the guide began with, as this version of its flow has it.
    fn initial(&self) -> Result<S, Park> {
        let migrated = self.now.initial.clone();
        migrated.map_or_else(|| self.ground.input(INITIAL), Ok)
    }

    /// The ledger is undone, or an entry of it cannot be.
    pub(super) fn undone(&mut self, ended: Result<(), Failing>) {
        let answer = match ended {
            Ok(()) => match self.initial() {
                Ok(initial) => {
                    for stage in self.now.position.visits.keys() {
                        self.ground.forget_visits(stage.as_str());
                    }
                    let next = self.course().rolled_back();
                    let revision = next.revision;
                    self.write(next, initial, None, None);
                    Ok(Answer::Revision(revision))
                }
                Err(park) => Err(Refused::Stopped(park.detail)),
            },
            Err(failing) => {
                let mut next = self.now.position.then();
                next.failure = Some(failing.clone());
                next.status = Status::RollingBack;
                let state = self.now.state.clone();
                self.write(next, state, None, None);
                Err(Refused::Failed(failing))
            }
        };
        for answering in self.desk.waiting() {
            self.owe(answering, answer.clone());
        }
    }
}

/// Undoes one entry, trying again while it fails.
async fn undo<S: FlowState>(
    unmaking: &Unmaking,
    flow: &Flow<S>,
    state: &S,
    entry: LedgerEntry,
) -> Result<(), BoxError> {
    let Some((hooks, step)) = of(flow, &entry) else {
        return Err(missing(&entry));
    };
    let finished = entry.output.is_some();
    let all = step.is_some() || hooks.undo_unfinished;
    if !finished && !all {
        unmaking.undone(&entry, Ok(()), Some("unfinished")).await;
        return Ok(());
    }
    let output = unmaking.output(&entry)?;
    let mut entry = entry;
    for tried in 1..=ATTEMPTS {
        let undone = Undone {
            stage: hooks.name.clone(),
            visit: visit_of(&entry.location),
            step: step.map(|_| entry.location.to_string()),
            finished,
            state: state.clone(),
        };
        let begun = catch_unwind(AssertUnwindSafe(|| match (step, &hooks.undo) {
            (Some(step), _) => (step.undo)(output.clone(), undone),
            (None, Some(undo)) => Ok(undo(undone)),
            (None, None) => Err(missing(&entry)),
        }));
        let begun = begun.unwrap_or_else(|panic| Err(said(&*panic).into()));
        let ended = match begun {
            Ok(mut undoing) => {
                let guarded = std::future::poll_fn(move |task| {
                    let polled = AssertUnwindSafe(|| undoing.as_mut().poll(task));
                    catch_unwind(polled)
                        .unwrap_or_else(|panic| Poll::Ready(Err(said(&*panic).into())))
                });
                unmaking.as_step(&entry, Box::pin(guarded)).await
            }
            Err(error) => Err(error),
        };
        let text = ended.as_ref().err().map(ToString::to_string);
        unmaking.undone(&entry, ended, None).await;
        let Some(text) = text else { return Ok(()) };
        if tried == ATTEMPTS {
            return Err(format!("the undo of `{}` keeps failing: {text}", entry.location).into());
        }
        entry.attempts += 1;
        unmaking.pause(tried).await;
    }
    Ok(())
}

/// Whose undo an entry asks for: a stage's, or that of a step in one.
fn of<'a, S>(
    flow: &'a Flow<S>,
    entry: &LedgerEntry,
) -> Option<(&'a Hooks<S>, Option<&'a UndoneStep<S>>)> {
    flow.plan().stages.iter().find_map(|hooks| {
        if hooks.name == *entry.undo.as_str() {
            return hooks.undo.is_some().then_some((hooks, None));
        }
        let step = hooks.steps.iter().find(|step| step.path == entry.undo)?;
        Some((hooks, Some(step)))
    })
}

fn missing(entry: &LedgerEntry) -> BoxError {
    format!(
        "`{}` is to be undone, and this code has no undo for it",
        entry.location
    )
    .into()
}

/// The number of the visit that a location lies in.
fn visit_of(location: &Location) -> u32 {
    let number = location.segments().find_map(|segment| match segment {
        Segment::Iter(number) => u32::try_from(number).ok(),
        _ => None,
    });
    number.unwrap_or_default()
}
