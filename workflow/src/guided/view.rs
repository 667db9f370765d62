//! What a person is shown of a guide.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::decide::Course;
use super::flow::Flow;
use super::key::StageKey;
use super::nested::was_given_up;
use super::position::Snapshot as Recorded;
use super::position::{Event, Failing, FailingKind, Position, Problem, StageName, Status};
use crate::operation::Snapshot;
use crate::replay::Timestamp;

/// A guide as of one revision. It does not change: a new one is made for each revision.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct View<S, K = StageName> {
    /// The revision: give it with a command, and the command is refused if the guide has moved since.
    pub revision: u64,
    /// What the guide is doing.
    pub status: Status,
    /// The person's data.
    pub state: S,
    /// The stage it is at. It stays there when it has ended; absent while it is idle.
    pub at: Option<K>,
    /// All stages, in the order in which they were written.
    pub stages: Vec<StageView<K>>,
    /// The stages that were visited, in order, each as often as it was.
    pub history: Vec<K>,
    /// The stages that were completed, in the order in which they first were.
    pub completed: Vec<K>,
    /// The stages that were skipped or passed over.
    pub skipped: Vec<K>,
    /// The stages that lie ahead as things stand.
    pub ahead: Vec<K>,
    /// What the checks found wrong.
    pub problems: Vec<Problem>,
    /// Which try of the stage's body it is, of those that it makes by itself: 1 unless its stage has retries, 0 when it has no body.
    pub attempts: u32,
    /// Why the stage failed, if it did; or what an operation of it waits for, if that is blocked.
    pub failure: Option<Failing>,
    /// The operations of the stage: the steps of its code, in the order in which that came to them, each named by its place in it. What
    /// has ended is durable; how far the others are is shown as they say it ([`CurrentStep::progress`]), and is not recorded. After a
    /// crash it is what was written last, and says so ([`Snapshot::is_stale`]). Of more than 500, those that succeeded first are not
    /// shown.
    ///
    /// [`CurrentStep::progress`]: crate::CurrentStep::progress
    pub operations: Vec<Snapshot>,
    /// What succeeded and is no longer asked for by any code: steps that a stage's code went by when it ran again, and effects for which
    /// this code has no undo any more, as it says ([`Snapshot::undo`]). They are named by where they are recorded.
    pub orphans: Vec<Snapshot>,
    /// What may be asked of it now.
    pub actions: Actions,
    /// Something is being done: moves are refused meanwhile.
    pub busy: bool,
    /// The flows that are in its stage, from the outside in, to the one that the next command goes to.
    pub nested: Vec<NestedView>,
    /// All that was done is in the store. It is not while the store fails: then what is shown is what was there before that, or that the
    /// guide was cancelled, and the rest is written again until it is there.
    pub durable: bool,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// What this revision did.
    pub events: Vec<Event>,
}

/// A flow in a stage, whatever its data is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NestedView {
    /// The way to it: the stages, and the names of the flows in them. [`Guide::within`](super::Guide::within) takes it.
    pub path: String,
    /// The flow's name.
    pub flow: String,
    /// The revision that it changed at last.
    pub revision: u64,
    /// What it is doing.
    pub status: Status,
    /// The person's data.
    pub state: serde_json::Value,
    /// The stage it is at.
    pub at: Option<StageName>,
    /// All its stages.
    pub stages: Vec<StageView>,
    /// Those that were visited, in order.
    pub history: Vec<StageName>,
    /// Those that were completed.
    pub completed: Vec<StageName>,
    /// Those that were skipped or passed over.
    pub skipped: Vec<StageName>,
    /// What the checks found wrong.
    pub problems: Vec<Problem>,
    /// Why its stage failed, if it did; or what an operation of it waits for.
    pub failure: Option<Failing>,
    /// The operations of its stage.
    pub operations: Vec<Snapshot>,
    /// What may be asked of it.
    pub actions: Actions,
    /// Something is being done in it.
    pub busy: bool,
    /// What its revision did.
    pub events: Vec<Event>,
}

/// A stage, as a person is shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StageView<K = StageName> {
    /// Its name.
    pub name: K,
    /// What stands above it.
    pub title: String,
    /// What helps to fill it in.
    pub help: Option<String>,
    /// How far it is.
    pub progress: Progress,
}

/// How far a stage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The guide is at it.
    Current,
    /// The guide is at it, and it failed or is blocked.
    Error,
    /// It was left forward.
    Completed,
    /// It was skipped or passed over.
    Skipped,
    /// It has not been left.
    Pending,
}

/// What may be asked of a guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one per button, as a person sees them"
)]
#[non_exhaustive]
pub struct Actions {
    /// `next`.
    pub next: bool,
    /// `back`.
    pub back: bool,
    /// `skip`.
    pub skip: bool,
    /// `retry`.
    pub retry: bool,
    /// `release`: an operation of the stage is blocked.
    pub release: bool,
    /// `cancel`.
    pub cancel: bool,
}

impl<S: Clone> View<S> {
    /// What a flow shows of a position. `busy`: a move is on its way that is not in the position.
    pub(super) fn of(flow: &Flow<S>, snapshot: &Recorded<S>, busy: bool) -> Self {
        let Recorded {
            position, state, ..
        } = snapshot;
        let course = Course {
            flow,
            position,
            state,
        };
        let busy = busy || position.status == Status::Working;
        let stages = flow.graph().nodes().iter().map(|node| {
            let name = StageName::new(&*node.name);
            StageView {
                progress: progress(position, &name),
                title: node.title.as_ref().unwrap_or(&node.name).to_string(),
                help: node.help.as_deref().map(str::to_owned),
                name,
            }
        });
        let ends = position.status.is_final() || position.status == Status::Idle;
        Self {
            revision: position.revision,
            status: position.status,
            at: position.at.clone(),
            stages: stages.collect(),
            history: position.history().cloned().collect(),
            completed: position.completed.clone(),
            skipped: position.skipped.clone(),
            ahead: if ends { Vec::new() } else { ahead(&course) },
            problems: position.problems.clone(),
            attempts: position.attempts,
            failure: position.failure.clone(),
            operations: Vec::new(),
            orphans: Vec::new(),
            actions: Actions::of(flow, position, busy),
            busy,
            durable: true,
            started_at: position.started_at,
            completed_at: position.completed_at,
            events: position.events.clone(),
            nested: Vec::new(),
            state: state.clone(),
        }
    }

    /// The same, with what is in its stage: the innermost flow is what the person is at.
    pub(super) fn with(mut self, nested: Vec<NestedView>) -> Self {
        if let Some(innermost) = nested.last() {
            self.status = innermost.status;
            self.problems.clone_from(&innermost.problems);
            self.failure.clone_from(&innermost.failure);
            self.busy = innermost.busy;
            let outward = self.history.len() > 1;
            let outward = outward || nested.iter().any(|level| level.history.len() > 1);
            self.actions = Actions {
                back: outward && !innermost.busy,
                cancel: true,
                ..innermost.actions
            };
        }
        let newest = nested.iter().map(|level| level.revision).max();
        self.revision = self.revision.max(newest.unwrap_or_default());
        self.nested = nested;
        self
    }

    /// The same, as a flow in a stage is shown.
    pub(super) fn nested(&self, path: String, flow: &str) -> NestedView
    where
        S: serde::Serialize,
    {
        NestedView {
            path,
            flow: flow.to_owned(),
            revision: self.revision,
            status: self.status,
            state: serde_json::to_value(&self.state).unwrap_or_default(),
            at: self.at.clone(),
            stages: self.stages.clone(),
            history: self.history.clone(),
            completed: self.completed.clone(),
            skipped: self.skipped.clone(),
            problems: self.problems.clone(),
            failure: self.failure.clone(),
            operations: self.operations.clone(),
            actions: self.actions,
            busy: self.busy,
            events: self.events.clone(),
        }
    }

    /// The same, with its operations and the orphans of the guide.
    pub(super) fn at_work(mut self, operations: Vec<Snapshot>, orphans: Vec<Snapshot>) -> Self {
        (self.operations, self.orphans) = (operations, orphans);
        self
    }
}

impl<S: Clone> View<S> {
    /// The same, with the stages of a flow that is known at compile time.
    pub(super) fn typed<K: StageKey>(&self) -> View<S, K> {
        let all = |stages: &[StageName]| stages.iter().filter_map(K::of).collect();
        let stages = self.stages.iter().filter_map(|stage| {
            Some(StageView {
                name: K::of(&stage.name)?,
                title: stage.title.clone(),
                help: stage.help.clone(),
                progress: stage.progress,
            })
        });
        View {
            revision: self.revision,
            status: self.status,
            state: self.state.clone(),
            at: self.at.as_ref().and_then(K::of),
            stages: stages.collect(),
            history: all(&self.history),
            completed: all(&self.completed),
            skipped: all(&self.skipped),
            ahead: all(&self.ahead),
            problems: self.problems.clone(),
            failure: self.failure.clone(),
            operations: self.operations.clone(),
            orphans: self.orphans.clone(),
            actions: self.actions,
            attempts: self.attempts,
            busy: self.busy,
            nested: self.nested.clone(),
            durable: self.durable,
            started_at: self.started_at,
            completed_at: self.completed_at,
            events: self.events.clone(),
        }
    }

    /// The same, of a guide whose run was cancelled by the engine.
    pub(super) fn cancelled(&self) -> Self {
        let mut view = Self {
            status: Status::Cancelled,
            actions: Actions::default(),
            busy: false,
            ahead: Vec::new(),
            ..self.clone()
        };
        for operation in &mut view.operations {
            operation.given_up("the run was cancelled");
        }
        view
    }
}

impl<S: Clone> View<S> {
    /// The same, before the store has it.
    pub(super) fn unsaved(&self) -> Self {
        Self {
            durable: false,
            ..self.clone()
        }
    }

    /// The same, when it has it.
    pub(super) fn saved(&self) -> Self {
        Self {
            durable: true,
            ..self.clone()
        }
    }
}

impl Actions {
    fn of<S>(flow: &Flow<S>, position: &Position, busy: bool) -> Self {
        let open = matches!(
            position.status,
            Status::Waiting | Status::Working | Status::Blocked | Status::Failed
        );
        let stuck = matches!(position.status, Status::Blocked | Status::Failed);
        let node = position.at.as_ref();
        let node = node.and_then(|at| flow.graph().node(at.as_str()));
        Self {
            next: !busy && position.status == Status::Waiting,
            back: !busy
                && (open || (position.status == Status::Completed && flow.plan().reopens))
                && position.history().nth(1).is_some(),
            skip: !busy
                && (matches!(position.status, Status::Waiting | Status::Blocked)
                    || was_given_up(position.status, position.failure.as_ref()))
                && node.is_some_and(|node| node.skippable),
            retry: !busy && stuck,
            release: !busy && is_blocked(position),
            cancel: open,
        }
    }
}

/// Whether an operation of the stage is blocked.
fn is_blocked(position: &Position) -> bool {
    let blocks = |failing: &Failing| failing.kind == FailingKind::Blocked;
    position.status == Status::Blocked && position.failure.as_ref().is_some_and(blocks)
}

/// A guard that panics is told of when it decides, and not when one only looks.
fn ahead<S>(course: &Course<'_, S>) -> Vec<StageName> {
    catch_unwind(AssertUnwindSafe(|| course.stages_ahead())).unwrap_or_default()
}

fn progress(position: &Position, stage: &StageName) -> Progress {
    let is_current = position.at.as_ref() == Some(stage) && !position.status.is_final();
    match position.status {
        Status::Failed | Status::Blocked if is_current => Progress::Error,
        _ if is_current => Progress::Current,
        _ if position.completed.contains(stage) => Progress::Completed,
        _ if position.skipped.contains(stage) => Progress::Skipped,
        _ => Progress::Pending,
    }
}

#[cfg(test)]
mod tests {
    use super::super::flow::stage;
    use super::*;

    fn shown(status: Status, stops: &[&str]) -> View<u32> {
        let flow = Flow::<u32>::builder("f")
            .stage(stage("a").start().to("b").title("First").help("begin"))
            .stage(stage("b").skippable().to_if("c", |n| *n > 0).to("d"))
            .stage(stage("c").to("d"))
            .stage(stage("d").terminal())
            .build()
            .unwrap();
        let mut position = Position::idle(1, 0);
        for stop in stops {
            let stop = StageName::new(*stop);
            position.stop_at(&stop, false, usize::MAX);
            position.at = Some(stop);
        }
        position.status = status;
        let snapshot = Recorded {
            position,
            state: 1,
            began: None,
            initial: None,
        };
        View::of(&flow, &snapshot, false)
    }

    fn offered(view: &View<u32>) -> Vec<&'static str> {
        let Actions {
            next,
            back,
            skip,
            retry,
            release,
            cancel,
        } = view.actions;
        let all = [
            (back, "back"),
            (retry, "retry"),
            (release, "release"),
            (next, "next"),
            (skip, "skip"),
            (cancel, "cancel"),
        ];
        all.into_iter()
            .filter_map(|(on, name)| on.then_some(name))
            .collect()
    }

    // GDE-VW-02
    #[test]
    fn the_offered_actions_follow_from_the_status() {
        assert_eq!(offered(&shown(Status::Waiting, &["a"])), ["next", "cancel"]);
        assert_eq!(
            offered(&shown(Status::Waiting, &["a", "c"])),
            ["back", "next", "cancel"]
        );
        assert_eq!(
            offered(&shown(Status::Failed, &["a", "c"])),
            ["back", "retry", "cancel"]
        );
        assert_eq!(
            offered(&shown(Status::Blocked, &["a", "c"])),
            ["back", "retry", "cancel"]
        );
        assert_eq!(offered(&shown(Status::Working, &["a", "c"])), ["cancel"]);
        assert_eq!(offered(&shown(Status::Completed, &["a", "d"])), [""; 0]);
        assert_eq!(offered(&shown(Status::Cancelled, &["a", "c"])), [""; 0]);
        // GDE-NAV-22
        assert_eq!(
            offered(&shown(Status::Waiting, &["a", "b"])),
            ["back", "next", "skip", "cancel"]
        );
        assert_eq!(
            offered(&shown(Status::Failed, &["a", "b"])),
            ["back", "retry", "cancel"]
        );
    }

    // GDE-VW-01
    #[test]
    fn a_stage_is_shown_by_how_far_it_is_with_its_title_and_help() {
        let view = shown(Status::Blocked, &["a", "b"]);
        assert_eq!(view.stages[0].title, "First");
        assert_eq!(view.stages[0].help.as_deref(), Some("begin"));
        assert_eq!(view.stages[1].title, "b");
        assert_eq!(view.stages[1].progress, Progress::Error);
        assert_eq!(view.stages[2].progress, Progress::Pending);
        let mut position = Position::idle(1, 0);
        let (a, b) = (StageName::new("a"), StageName::new("b"));
        position.complete(&a);
        position.skip(&b);
        position.at = Some(a.clone());
        position.status = Status::Waiting;
        assert_eq!(progress(&position, &a), Progress::Current);
        assert_eq!(progress(&position, &b), Progress::Skipped);
        position.at = Some(b);
        assert_eq!(progress(&position, &a), Progress::Completed);
    }

    // GDE-VW-04
    #[test]
    fn the_stages_ahead_follow_from_the_guards() {
        let ahead = shown(Status::Waiting, &["a"]).ahead;
        assert_eq!(ahead, ["b", "c", "d"]);
        assert_eq!(shown(Status::Completed, &["d"]).ahead, [""; 0]);
    }
}
