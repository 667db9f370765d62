//! Rolling a guide back: what its stages did is undone by the run's ledger, newest first.
//!
//! 1. The entry of a visit is made with the position that enters it, so that it stands before what the visit does; that the visit came to
//!    a good end is added with the position that leaves it.
//! 2. Each undo is recorded when it ended, so none is made twice but one that was cut off. A restart goes on where it was.
//! 3. The last batch takes the guide back to before it began: there is no instant at which it is half there.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use serde_json::Value;

use super::desk::{Answer, Answering};
use super::doing::{Doing, Gave, What};
use super::flow::{Flow, FlowState};
use super::nested::{self, AnyFlow, all_of};
use super::position::{Failing, Position, Snapshot, StageName, Status};
use super::refused::Refused;
use super::run::{Guide, INITIAL, said};
use crate::codec::BoxError;
use crate::context::{BoxFut, Park, Unmaking, Visiting};
use crate::operation::{Snapshot as Shown, Undo as Undone};
use crate::replay::{LedgerEntry, Location, Segment};

/// So often an undo is tried in one go.
const ATTEMPTS: u32 = 4;

impl<S: FlowState> Guide<S> {
    /// The name of a stage's undo in the ledger, which is the whole run's.
    fn undo_of(&self, stage: &StageName) -> String {
        if self.ground.base().is_root() {
            return stage.to_string();
        }
        format!("{}/{stage}", self.flow.name())
    }

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
            self.ground
                .arm(left.as_str(), visits.last, self.undo_of(left), true);
        }
        if let Some(entered) = next.at.as_ref().filter(|entered| undone(entered))
            && let Some(visits) = next.visits.get(entered)
            && before.visits.get(entered) != Some(visits)
        {
            self.ground
                .arm(entered.as_str(), visits.last, self.undo_of(entered), false);
        }
    }

    /// Undoes everything; the undo that failed is skipped first, if there is a reason for that.
    pub(super) fn roll_back(
        &mut self,
        skips: Option<String>,
        answering: Answering,
        key: Option<String>,
    ) {
        for given_up in self.give_up("the guide was rolled back") {
            let _ = given_up.send(Err(Refused::Busy));
        }
        // What only waited was not given up while it ran.
        self.gave_up = false;
        let next = self.course().rolls_back();
        let state = self.now.state.clone();
        match self.commit(next, state, key, false) {
            Ok(()) => {
                self.desk.levels.wait(self.ground.base(), answering);
                self.undo(skips);
            }
            Err(refused) => self.owe(answering, Err(refused)),
        }
    }

    /// Begins to undo, or goes on with it.
    pub(super) fn undo(&mut self, skips: Option<String>) {
        let flow = self.flow.clone();
        let state = serde_json::to_value(&self.now.state);
        let unmaking = self.ground.undoing();
        let code = Box::pin(async move {
            let state = state?;
            unmaking.said().await;
            if let (Some(reason), Some(entry)) = (skips, unmaking.newest()) {
                unmaking.undone(&entry, Ok(()), Some(&reason)).await;
            }
            while let Some(entry) = unmaking.newest() {
                undo(&unmaking, &flow, &state, entry).await?;
            }
            Ok(Gave::Nothing)
        });
        self.doing = Some(Doing {
            code,
            ended: None,
            what: What::Undo,
            moving: None,
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
                    self.desk.levels.operations.clear();
                    self.write(next, initial, None, None);
                    Ok(Answer::Revision(revision))
                }
                Err(park) => Err(Refused::Stopped(park.detail)),
            },
            Err(failing) => {
                self.list_orphans();
                let mut next = self.now.position.then();
                next.failure = Some(failing.clone());
                next.status = Status::RollingBack;
                let state = self.now.state.clone();
                self.write(next, state, None, None);
                Err(Refused::Failed(failing))
            }
        };
        for answering in self.desk.levels.waiting_at(&self.ground.base().clone()) {
            self.owe(answering, answer.clone());
        }
    }
}

/// What lasts of a guide that no code asks for.
impl<S: FlowState> Guide<S> {
    /// The code of a stage has ended well: what was kept for it, and what it did not ask for, is nobody's.
    pub(super) fn find_orphans(&self, visiting: &Visiting) {
        let Some(at) = &self.now.position.at else {
            return;
        };
        let stage = self.ground.base().branch(at.as_str());
        let unasked = visiting.unasked();
        let ledger = if unasked.is_empty() {
            Vec::new()
        } else {
            self.ground.ledger()
        };
        let orphans = unasked.iter().map(|at| {
            let entry = ledger.iter().find(|entry| entry.location == *at);
            let undo = match entry {
                None => Undone::None,
                Some(entry) if self.can_undo(entry) => Undone::Owed,
                Some(_) => Undone::Impossible,
            };
            Shown::orphaned(at.to_string(), undo)
        });
        let operations = &self.desk.levels.operations;
        operations.has_orphans(stage, orphans.collect());
    }

    /// The operations of the stage that have an undo of their own owe it as soon as the ledger has it.
    pub(super) fn mark_undos(&self) {
        let at = self.now.position.at.as_ref();
        let hooks = at.and_then(|at| self.flow.plan().hooks(at));
        if hooks.is_none_or(|hooks| hooks.steps.is_empty()) {
            return;
        }
        let ledger = self.ground.ledger().into_iter();
        let owed: BTreeSet<_> = ledger.map(|entry| entry.location).collect();
        if let Some(visit) = self.visit() {
            let operations = &self.desk.levels.operations;
            operations.each(&visit, |at, shown| {
                if owed.contains(at) {
                    shown.undone_by(Undone::Owed);
                }
            });
        }
    }

    /// Lists the effects for which this code has no undo any more.
    pub(super) fn list_orphans(&self) {
        if !self.is_outermost() {
            return;
        }
        let ledger = self.ground.ledger().into_iter();
        let impossible = ledger.filter(|entry| !self.can_undo(entry));
        let impossible =
            impossible.map(|entry| Shown::orphaned(entry.location.to_string(), Undone::Impossible));
        let operations = &self.desk.levels.operations;
        operations.has_orphans(Location::root(), impossible.collect());
    }

    fn can_undo(&self, entry: &LedgerEntry) -> bool {
        if let Some((name, undo)) = within(&entry.undo) {
            let flows = all_of(&self.flow.plan().nests);
            let flow = flows.iter().find(|flow| flow.name() == name);
            return flow.is_some_and(|flow| flow.undo(undo).is_some());
        }
        // Of a flow in a stage the ledger names it with the flow.
        AnyFlow::undo(&self.flow, &entry.undo).is_some()
    }
}

/// What is to be undone, of a flow whatever its data is.
pub(super) struct Due {
    pub(super) visit: u32,
    /// The step, if it is one.
    pub(super) step: Option<String>,
    pub(super) finished: bool,
    /// What the step gave, if that is known.
    pub(super) output: Option<Bytes>,
    pub(super) state: Value,
}

type Undo = dyn Fn(Due) -> Result<BoxFut<'static, Result<(), BoxError>>, BoxError> + Send + Sync;

/// What a visit of a stage is undone by, or a step of one, whatever the data of its flow is.
#[derive(Clone)]
pub(super) struct Unmade {
    pub(super) of_step: bool,
    /// Also when the visit did not come to a good end.
    pub(super) unfinished: bool,
    pub(super) undo: Arc<Undo>,
}

/// Undoes one entry, trying again while it fails.
async fn undo<S: FlowState>(
    unmaking: &Unmaking,
    flow: &Flow<S>,
    state: &Value,
    entry: LedgerEntry,
) -> Result<(), BoxError> {
    let (unmade, base, state) = if let Some((name, undo)) = within(&entry.undo) {
        let flows = all_of(&flow.plan().nests);
        let flow = flows.iter().find(|flow| flow.name() == name);
        let unmade = flow.and_then(|flow| flow.undo(undo));
        let around = unmaking.positions::<Snapshot<Value>>(&entry)?;
        let of = |snapshot: &Snapshot<Value>| snapshot.position.flow.as_deref() == Some(name);
        let found = around.into_iter().find(|(_, snapshot)| of(snapshot));
        let (base, snapshot) =
            found.ok_or_else(|| format!("`{}` has no position of `{name}`", entry.location))?;
        (unmade, base, snapshot.state)
    } else {
        let unmade = AnyFlow::undo(flow, &entry.undo);
        (unmade, Location::root(), state.clone())
    };
    let Some(unmade) = unmade else {
        return Err(missing(&entry));
    };
    let finished = entry.output.is_some();
    if !finished && !unmade.unfinished {
        unmaking.undone(&entry, Ok(()), Some("unfinished")).await;
        return Ok(());
    }
    let output = unmaking.output(&entry)?;
    let mut entry = entry;
    for tried in 1..=ATTEMPTS {
        let due = Due {
            visit: visit_of(&base, &entry.location),
            step: unmade.of_step.then(|| entry.location.to_string()),
            finished,
            output: output.clone(),
            state: state.clone(),
        };
        let ended = match nested::begin(&unmade, due) {
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
            return Err(format!(
                "the undo of `{}` keeps failing: {text}\n  \
                 ways out: mend what it needs and roll back again, or skip it: `guide.skip_undo(\"why\")`",
                entry.location
            )
            .into());
        }
        entry.attempts += 1;
        unmaking.pause(tried).await;
    }
    Ok(())
}

/// The flow in a stage that an undo is of, and how that names it; nothing when it is the outermost flow's: `stage`, or `stage[]/place`.
fn within(undo: &str) -> Option<(&str, &str)> {
    undo.split_once('/')
        .filter(|(name, _)| !name.ends_with("[]"))
}

fn missing(entry: &LedgerEntry) -> BoxError {
    format!(
        "`{}` is to be undone, and this code has no undo `{}` for it\n  \
         ways out: deploy code that has it and roll back again, or skip it: `guide.skip_undo(\"why\")`",
        entry.location, entry.undo
    )
    .into()
}

/// The number of the visit of a flow's stage that a location lies in.
fn visit_of(flow: &Location, location: &Location) -> u32 {
    match location.segments().nth(flow.segments().count() + 1) {
        Some(Segment::Iter(number)) => u32::try_from(number).unwrap_or_default(),
        _ => 0,
    }
}
