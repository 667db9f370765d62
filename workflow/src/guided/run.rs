//! The loop of a guide: the code of its run, written by the library.
//!
//! 1. One move at a time: while the code of a stage runs, other moves are refused.
//! 2. What a command does is one record, its position. Whoever asked is answered when it is durable, and when the code has ended that
//!    it began.
//! 3. The code of a stage begins after the position that says so is durable. So a guide that was cut off says where.
//! 4. User code is called outside of every lock, and a panic in it changes nothing.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::Value;

use super::committing::Committing;
use super::decide::Course;
use super::deciding::Deciding;
use super::desk::{Answer, Ask, Desk, give};
use super::doing::{Doing, What};
use super::flow::{Flow, FlowState, Interrupt};
use super::levels::path_of;
use super::migrate::Written;
use super::nested::all_of;
use super::position::{Event, Failing, FailingKind, Position, Snapshot, Status};
use super::refused::Refused;
use super::stage::Wishes;
use super::standing::{Newest, desk, newest};
use super::view::View;
use crate::context::{Args, Body, BoxFut, Ground, Park, guiding};
use crate::replay::{Finished, Held, Location, ParkReason, Undoing};

/// The field of a run's input that holds the person's data at the beginning.
pub(super) const INITIAL: &str = "state";

/// What a step says of itself is written after that at the latest.
const TOLD: Duration = Duration::from_secs(1);

/// The code of a guide of this flow.
pub(super) fn body<S: FlowState>(flow: &Flow<S>, args: Args) -> Body {
    let flow = flow.clone();
    Ground::of(args).body(|ground| {
        Box::pin(async move {
            let desk = desk(&ground)?;
            let newest = newest(&ground, &flow, &desk).await?;
            let mut guide = Guide::open(ground, flow, desk, newest)?;
            std::future::poll_fn(|task| guide.poll(task)).await
        })
    })
}

pub(super) struct Guide<S> {
    pub(super) ground: Ground,
    pub(super) flow: Flow<S>,
    pub(super) desk: Arc<Desk<S>>,
    /// Where it stands: the newest, which may not be durable yet.
    pub(super) now: Snapshot<S>,
    /// What is shown.
    pub(super) durable: Snapshot<S>,
    pub(super) committing: VecDeque<Committing<S>>,
    pub(super) doing: Option<Doing>,
    pub(super) wishes: Arc<Wishes<S>>,
    pub(super) deciding: Option<Deciding>,
    /// What was asked while it was being decided whether the guide is cancelled.
    pub(super) held: VecDeque<Ask<S>>,
    /// Code was given up in this drive before it ended: a thread may still be at it.
    pub(super) gave_up: bool,
    /// The gate is held, until it is known what is at the frontier.
    holds: bool,
    /// A `next` led to the end of the flow in the stage: it goes on when the code of that has ended, whoever waits for it.
    pub(super) goes_on: bool,
    /// How far the operations were when they were shown.
    seen: u64,
    /// When what the steps say of themselves is written.
    saving: Option<BoxFut<'static, ()>>,
}

/// How the loop ends.
type Ended = Option<Finished>;

impl<S: FlowState> Guide<S> {
    pub(super) fn open(
        ground: Ground,
        flow: Flow<S>,
        desk: Arc<Desk<S>>,
        newest: Newest<S>,
    ) -> Result<Self, Park> {
        let begins = matches!(newest, Newest::None(_));
        let mut migrated = None;
        let now = match newest {
            Newest::Recorded(newest) => newest,
            Newest::Migrated(newest, within) => {
                migrated = Some(within);
                newest
            }
            Newest::None(state) => Snapshot {
                position: Position {
                    flow: (!ground.base().is_root()).then(|| flow.name().to_owned()),
                    ..Position::idle(flow.version(), flow.plan().fingerprint)
                },
                state,
                began: None,
                initial: None,
            },
        };
        if let Some(unknown) = now
            .position
            .at
            .as_ref()
            .filter(|at| flow.plan().hooks(at).is_none())
        {
            return Err(Park {
                location: None,
                reason: ParkReason::Version,
                detail: format!(
                    "the guide is at stage `{unknown}`, which the flow `{}` does not have\n  \
                     ways out: give the stage back its name, or deploy code that has it",
                    flow.name()
                ),
            });
        }
        let mut guide = Self {
            ground,
            flow,
            desk,
            durable: now.clone(),
            now,
            committing: VecDeque::new(),
            doing: None,
            wishes: Arc::new(Wishes::new()),
            deciding: None,
            held: VecDeque::new(),
            gave_up: false,
            holds: false,
            goes_on: false,
            seen: 0,
            saving: None,
        };
        let outermost = guide.is_outermost();
        let steps = guide.flow.plan().stages.iter().flat_map(|it| &it.steps);
        guide.ground.undo_sites(steps.map(|step| {
            let undoing = Undoing {
                path: if outermost { step.path } else { step.within },
                unknown: step.unknown,
            };
            (step.path, undoing)
        }));
        guide.desk.observers.know(&guide.flow);
        if outermost {
            let within = guide.ground.positions_within::<Written>().into_iter();
            let within = within.map(|(_, written)| written.position.revision).max();
            let newest = guide.now.position.revision.max(within.unwrap_or_default());
            let declared = all_of(&guide.flow.plan().nests).into_iter();
            let declared = declared.map(|flow| flow.name().to_owned()).collect();
            guide.desk.levels.begin(newest, declared);
            let stored = guide.ground.published();
            let (levels, clock) = (Arc::clone(&guide.desk.levels), guide.ground.clock());
            levels.operations.begin(stored.as_deref(), clock);
            guide.ground.watched_by(levels);
            guide.desk.arrive();
            guide.ground.await_desk();
        }
        if begins {
            guide.begin()?;
        } else {
            let shows = migrated.is_none();
            if let Some(within) = migrated {
                guide.record(within)?;
            }
            guide.stray();
            guide.goes_on = guide.had_ended();
            if let Some(visit) = guide.visit() {
                guide.desk.levels.operations.enters(visit);
            }
            guide.list_orphans();
            if let Some(live) = guide.now.position.live.clone() {
                if guide.is_outermost() {
                    guide.holds = true;
                    guide.ground.hold_gate();
                }
                guide.enter(&live, None, false);
            }
            let rolls_back = guide.now.position.status == Status::RollingBack;
            if rolls_back && guide.now.position.failure.is_none() {
                guide.undo(None);
            }
            if shows && guide.is_outermost() {
                let view = View::of(&guide.flow, &guide.now, rolls_back);
                let view = guide.at_work(view, &guide.now.position);
                guide.desk.show(Arc::new(view));
            }
        }
        Ok(guide)
    }

    /// Whether the flow in the stage that was under way had ended by a `next`, as the newest of all that there were in that visit.
    fn had_ended(&self) -> bool {
        let Some(visit) = self.visit().filter(|_| self.now.position.live.is_some()) else {
            return false;
        };
        let within = self.ground.positions_within::<Written>().into_iter();
        let within = within.filter(|(base, _)| base.is_under(&visit));
        let newest = within.max_by_key(|(_, written)| written.position.revision);
        newest.is_some_and(|(_, written)| written.position.status == Status::Completed)
    }

    /// Where the last visit of the stage that it is at has its records.
    pub(super) fn visit(&self) -> Option<Location> {
        visit_of(self.ground.base(), &self.now.position)
    }

    /// What the stage's operations are, as the view has them.
    fn at_work(&self, view: View<S>, position: &Position) -> View<S> {
        let operations = &self.desk.levels.operations;
        let visit = visit_of(self.ground.base(), position);
        let own = visit.map(|visit| operations.of(&visit));
        view.at_work(own.unwrap_or_default(), operations.orphans())
    }

    /// Where the code of the live visit does not fit its records, the stage has failed, for this program. Nothing of that is recorded.
    fn stray(&mut self) {
        let Some(live) = &self.now.position.live else {
            return;
        };
        let (stage, number) = (live.stage.to_string(), live.number);
        let Some(report) = self.ground.strayed(&stage, number) else {
            return;
        };
        let base = self.ground.base().clone();
        let failing = Failing {
            kind: FailingKind::Diverged,
            text: format!("visit {number} of the stage `{stage}` cannot be gone on with: {report}"),
            at: vec![guiding::visit_location(&base, &stage, number).to_string()],
        };
        self.now.position.fail(failing.clone());
        self.now.began = None;
        self.durable = self.now.clone();
        let levels = &self.desk.levels;
        let waiting = if self.is_outermost() {
            levels.waiting()
        } else {
            let following = levels.following(&base).into_iter();
            let following = following.map(|(answering, _)| answering);
            levels
                .waiting_at(&base)
                .into_iter()
                .chain(following)
                .collect()
        };
        for answering in waiting {
            give(vec![(answering, Err(Refused::Failed(failing.clone())))]);
        }
    }

    /// Records what was migrated, in one batch. It is shown when that is durable.
    fn record(&mut self, within: Vec<(Location, Snapshot<Value>)>) -> Result<(), Park> {
        let park = |detail: String| Park {
            location: None,
            reason: ParkReason::Encode,
            detail,
        };
        for (base, mut newest) in within {
            let revision = self.desk.levels.revision() + 1;
            newest.position.revision = revision;
            let noted = self.ground.note_within(&base, revision, &newest);
            noted.map_err(|error| park(error.to_string()))?;
            self.desk.levels.came_to(revision);
        }
        self.catch_up();
        let mut position = self.now.position.clone();
        position.revision += 1;
        let state = self.now.state.clone();
        let recorded = self.commit(position, state, None, false);
        recorded.map_err(|refused| park(refused.to_string()))
    }

    /// It is no flow in a stage of another.
    pub(super) fn is_outermost(&self) -> bool {
        self.ground.base().is_root()
    }

    /// Its next revision comes after those of all flows of the guide.
    pub(super) fn catch_up(&mut self) {
        self.now.position.revision = self.desk.levels.revision();
    }

    /// The first position.
    fn begin(&mut self) -> Result<(), Park> {
        self.catch_up();
        let now = self.ground.now();
        let started = guarded(|| self.course().started(now)).and_then(|started| started);
        let started = started.map_err(|refused| Park {
            location: None,
            reason: ParkReason::Panicked,
            detail: format!("the flow `{}` cannot be begun: {refused}", self.flow.name()),
        })?;
        let state = self.now.state.clone();
        self.arm(&started);
        if let Err(refused) = self.commit(started, state, None, false) {
            return Err(Park {
                location: None,
                reason: ParkReason::Encode,
                detail: refused.to_string(),
            });
        }
        if !self.is_outermost() && !self.now.position.status.is_final() {
            // Whoever came to the stage has come to this.
            let base = self.ground.base().clone();
            for answering in self.desk.levels.come_to(&base) {
                match self.now.position.live {
                    Some(_) => self.desk.levels.wait(&base, answering),
                    None => self.owe(answering, Ok(self.here())),
                }
            }
        }
        self.enter_live(None);
        Ok(())
    }

    pub(super) fn poll(&mut self, task: &mut Context<'_>) -> Poll<Result<Finished, Park>> {
        loop {
            self.tell_unwritten();
            self.poll_committing(task);
            if let Some(finished) = self.finished()? {
                return Poll::Ready(Ok(finished));
            }
            if self.decide(task) {
                continue;
            }
            if self.poll_doing(task) {
                continue;
            }
            if self.holds && self.poll_gate(task) {
                continue;
            }
            if self.deciding.is_none()
                && let Some(held) = self.held.pop_front()
            {
                self.obey(held);
                continue;
            }
            if self.look_at_operations(task) {
                continue;
            }
            if self.is_outermost() && self.desk.levels.take_changed() {
                let view = self.shown();
                self.tell_within(&view);
                self.present(view);
            }
            match self.desk.poll_ask(task) {
                Poll::Ready(ask) => self.obey(ask),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Shows what has changed of the operations, and has it written in time; true when that made anything due.
    fn look_at_operations(&mut self, task: &mut Context<'_>) -> bool {
        let levels = Arc::clone(&self.desk.levels);
        let outermost = self.is_outermost();
        let version = levels.operations.version(outermost.then_some(&*task));
        if version != self.seen && self.has_durable() {
            self.mark_undos();
            self.seen = version;
            self.show();
            if outermost {
                levels.wake_inside();
            }
        }
        if !outermost || !levels.operations.has_told() {
            return false;
        }
        let ground = &self.ground;
        let saving = self.saving.get_or_insert_with(|| ground.sleep(TOLD));
        if saving.as_mut().poll(task).is_pending() {
            return false;
        }
        self.saving = None;
        self.save_operations(true);
        true
    }

    /// Has what the steps say of themselves written, `now` or with whatever is written next.
    pub(super) fn save_operations(&self, now: bool) {
        let limit = self.ground.payload_limit();
        if let Some(json) = self.desk.levels.operations.unsaved(now, limit) {
            self.ground.publish(json, now);
        }
    }

    /// Shows what is durable by now, and answers those who waited for it.
    pub(super) fn poll_committing(&mut self, task: &Context<'_>) {
        while let Some(next) = self.committing.front() {
            if !next.follows && self.ground.poll_noted(next.noted, task).is_pending() {
                return;
            }
            if let Some(Committing { snapshot, owed, .. }) = self.committing.pop_front() {
                self.durable = snapshot;
                let visit = visit_of(self.ground.base(), &self.durable.position);
                let operations = &self.desk.levels.operations;
                operations.only(self.ground.base(), visit.as_ref());
                // Before it is shown: whoever sees it and observes then is told of what comes after.
                let view = self.shown();
                self.tell_within(&view);
                self.desk.observers.tell(&view);
                if !self.is_outermost() {
                    let levels = &self.desk.levels;
                    levels.tells(self.ground.base(), view.events.clone());
                }
                self.present(view);
                give(owed);
            }
        }
    }

    /// Before its first position is durable there is nothing to be shown.
    pub(super) fn has_durable(&self) -> bool {
        self.durable.position.revision > 0
    }

    /// The observers of a guide are told what happened in flows in stages of it.
    fn tell_within(&self, view: &Arc<View<S>>) {
        if self.is_outermost() {
            for (path, events) in self.desk.levels.take_told() {
                self.desk.observers.tell_within(view, path, &events);
            }
        }
    }

    /// What happened that is not durable yet.
    pub(super) fn not_durable(&self) -> Vec<Event> {
        let committing = self.committing.iter();
        committing
            .flat_map(|next| next.snapshot.position.events.clone())
            .collect()
    }

    pub(super) fn show(&self) {
        self.present(self.shown());
    }

    fn shown(&self) -> Arc<View<S>> {
        // Also while what it led to is on its way into the store.
        let busy = matches!(&self.doing, Some(doing) if doing.what != What::Body)
            || self.committing.iter().any(|next| !next.follows);
        let view = View::of(&self.flow, &self.durable, busy);
        let mut view = self.at_work(view, &self.durable.position);
        if !self.is_outermost() {
            return Arc::new(view);
        }
        view.durable = !self.desk.is_failing();
        let shows = self.desk.levels.outside_in().into_iter();
        let nested = shows.filter_map(|level| level.shows.map(|(view, _)| view));
        // What it is at is not durable yet where nothing is in it: then nothing is shown of that.
        Arc::new(view.with(nested.collect()))
    }

    /// To the drivers, or, of a flow in a stage, to the flows around it.
    fn present(&self, view: Arc<View<S>>) {
        if self.is_outermost() {
            return self.desk.show(view);
        }
        let base = self.ground.base();
        let shown = view.nested(path_of(base), self.flow.name());
        self.desk.levels.show(base, (shown, view));
    }

    /// What the run ends with, if the guide has come to its end. What was to be shown then is shown when that is durable.
    fn finished(&mut self) -> Result<Ended, Park> {
        if !self.now.position.status.is_final() {
            return Ok(None);
        }
        let finished = match self.now.position.status {
            Status::Cancelled => Finished::Cancelled,
            _ => Finished::Completed(guiding::result(&self.ground, &self.now.state)?),
        };
        if !self.is_outermost() {
            // A `next` that led to the end goes on in the flow around this one.
            let levels = Arc::clone(&self.desk.levels);
            let around = levels.around(self.ground.base());
            let beside = levels.beside(self.ground.base());
            for committing in &mut self.committing {
                for (answering, answer) in std::mem::take(&mut committing.owed) {
                    let ends = answer == Ok(Answer::At(None));
                    match &beside {
                        // The stage is not over: another flow is in it.
                        Some((path, at)) if ends => {
                            let answer = Answer::Inside(path.clone(), at.clone());
                            committing.owed.push((answering, Ok(answer)));
                        }
                        None if ends => levels.follow(&around, answering, None),
                        _ => committing.owed.push((answering, answer)),
                    }
                }
            }
            return Ok(Some(finished));
        }
        let owed = self.committing.drain(..).flat_map(|next| next.owed);
        let owed = owed.collect();
        let view = View::of(&self.flow, &self.now, false);
        let view = self.at_work(view, &self.now.position);
        // What was given up within goes with the end.
        let mut within = self.desk.levels.take_told();
        for level in self.desk.levels.inside_out() {
            let events = level.with(|inner| inner.untold());
            within.push((path_of(&level.base), events));
        }
        self.desk.part(Arc::new(view), owed, within);
        Ok(Some(finished))
    }

    // ===== what is left by an earlier drive =====

    fn poll_gate(&mut self, task: &Context<'_>) -> bool {
        let Poll::Ready(Held { effects, .. }) = self.ground.poll_gate(task) else {
            return false;
        };
        // What runs in a flow in the stage was cut off there.
        let mut own = effects;
        for level in self.desk.levels.inside_out() {
            let (within, rest) = own.into_iter().partition(|at| at.is_under(&level.base));
            let within: Vec<Location> = within;
            own = rest;
            if !within.is_empty() {
                level.with(|inner| inner.interrupted(&within));
            }
        }
        self.catch_up();
        let effects = own;
        // Where it only waited, nothing was interrupted.
        if effects.is_empty() || !self.cut_off(&effects) {
            self.open_gate();
        }
        true
    }

    /// Effects of the code under way were cut off. False when it goes on all the same.
    pub(super) fn cut_off(&mut self, effects: &[Location]) -> bool {
        let live = self.now.position.live.as_ref();
        let hooks = live.and_then(|live| self.flow.plan().hooks(&live.stage));
        let reruns = hooks.is_some_and(|hooks| hooks.interrupt == Interrupt::Rerun);
        if reruns || self.had_not_begun() {
            return false;
        }
        let at: Vec<String> = effects.iter().map(ToString::to_string).collect();
        if let Some(visit) = self.visit() {
            self.desk.levels.operations.cut_off(&visit);
        }
        self.ended(Err(Failing {
            kind: FailingKind::Interrupted,
            text: format!("interrupted in {}", at.join(", ")),
            at,
        }));
        true
    }

    /// The body under way was to begin at some time, and whoever drove the guide last let go of it before that.
    fn had_not_begun(&self) -> bool {
        let live = self.now.position.live.as_ref();
        let begins = live.and_then(|live| live.not_before);
        let visiting = self.doing.as_ref().and_then(|it| it.visiting.as_ref());
        begins.is_some_and(|at| !self.ground.died_since(at))
            && visiting.is_some_and(|visiting| !visiting.is_recorded())
    }

    pub(super) fn open_gate(&mut self) {
        if std::mem::take(&mut self.holds) {
            self.ground.open_gate();
        }
    }

    pub(super) fn course(&self) -> Course<'_, S> {
        Course {
            flow: &self.flow,
            position: &self.now.position,
            state: &self.now.state,
        }
    }

    pub(super) fn here(&self) -> Answer {
        match self.now.position.status {
            Status::Completed => Answer::At(None),
            _ => Answer::At(self.now.position.at.clone()),
        }
    }
}

/// Where the last visit of the stage that a position is at has its records.
pub(super) fn visit_of(base: &Location, position: &Position) -> Option<Location> {
    let at = position.at.as_ref()?;
    let last = position.visits.get(at)?.last;
    Some(guiding::visit_location(base, at.as_str(), last))
}

/// Calls code of the flow's author. A panic in it is told, and nothing more.
pub(super) fn guarded<T>(code: impl FnOnce() -> T) -> Result<T, Refused> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| Refused::Panicked(said(&*panic)))
}

pub(super) fn said(panic: &(dyn std::any::Any + Send)) -> String {
    guiding::panic_message(panic)
}
