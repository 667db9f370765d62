//! What a command does to a position: pure functions of the flow, the position and the person's data.
//!
//! 1. What is refused changes nothing.
//! 2. The way is found before anything is done on it: a flow that cannot go on does not first leave.
//! 3. A way over stages that are passed over visits each stage at most once.

use super::flow::{Flow, Guard, Plan, Revisit};
use super::position::{
    Entry, Event, Failing, FailingKind, Position, Problem, Problems, Released, StageName, Status,
};
use super::refused::Refused;
use crate::replay::Timestamp;

/// What is asked of a guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Next,
    Back,
    Skip,
    Retry,
    Resume,
    Release,
    Check,
    Edit,
    Cancel,
    Rollback,
    SkipUndo,
    Start,
}

impl Asked {
    /// Whether a guide with this status does it at all.
    pub(super) fn admit(self, status: Status) -> Result<(), Refused> {
        use Status::{Blocked, Cancelled, Completed, Failed, Idle, RollingBack, Waiting, Working};
        let refused = match (self, status) {
            (Self::Next | Self::Back | Self::Skip, Waiting)
            | (Self::Back | Self::Skip | Self::Retry | Self::Release, Blocked)
            | (Self::Back | Self::Retry | Self::Resume, Failed)
            | (Self::Check, Idle | Waiting | Blocked | Failed)
            | (Self::Edit, Idle | Waiting | Working | Blocked | Failed)
            | (Self::Cancel, Idle | Waiting | Working | Blocked | Failed | RollingBack)
            | (Self::Rollback, Idle | Waiting | Blocked | Failed | RollingBack)
            | (Self::SkipUndo, RollingBack)
            | (Self::Start, Idle) => {
                return Ok(());
            }
            (Self::Start, _) => Refused::AlreadyStarted,
            (_, Cancelled) => Refused::Cancelled,
            (_, Working) => Refused::Busy,
            (Self::Retry, Idle | Waiting | Completed) => Refused::NothingToRetry,
            (Self::Resume, Idle | Waiting | Blocked | Completed) => Refused::NothingToResume,
            (Self::Release, Idle | Waiting | Failed | Completed) => Refused::NotBlocked,
            (Self::SkipUndo, _) => Refused::NoUndoFails,
            (Self::Skip, _) => Refused::NotRunning(status),
            (_, Completed) => Refused::Finished,
            _ => Refused::NotRunning(status),
        };
        Err(refused)
    }
}

/// Where a way leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Landing {
    /// What is passed over on it.
    over: Vec<StageName>,
    /// Nothing when it leads to the end.
    at: Option<StageName>,
}

/// Why the way on is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// There is none.
    Refused(Refused),
    /// Durable code has to be asked whether this exit of the stage is open.
    Asks(usize),
}

impl From<Refused> for Way {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// A flow, where a guide of it stands, and the person's data.
pub(super) struct Course<'a, S> {
    pub(super) flow: &'a Flow<S>,
    pub(super) position: &'a Position,
    pub(super) state: &'a S,
}

impl<S> Course<'_, S> {
    /// What the checks of the stage find wrong.
    pub(super) fn check(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        for check in self.here().into_iter().flat_map(|here| &here.checks) {
            check(self.state, &mut problems);
        }
        problems.into_found()
    }

    /// The position after the checks of a `check` or `next` found this; nothing when nothing changes.
    pub(super) fn checked(&self, found: &[Problem]) -> Option<Position> {
        let position = self.position;
        let changes = match position.status {
            Status::Waiting => !found.is_empty(),
            // What an operation waits for is not found out by asking the person's data.
            Status::Blocked => position.failure.is_none() && found != position.problems,
            // Elsewhere it is only looked at.
            _ => false,
        };
        if !changes {
            return None;
        }
        let mut next = position.then();
        next.settle();
        if !found.is_empty() {
            next.status = Status::Blocked;
            next.problems = found.to_vec();
        }
        if let Some(at) = &position.at {
            next.say(Event::Checked(at.clone()));
        }
        Some(next)
    }

    /// Where the way forward leads, as far as these exits of the stage are known to be open or not.
    pub(super) fn ahead(&self, open: &[(usize, bool)]) -> Result<Landing, Way> {
        let at = self.position.at.as_ref();
        let from = at.and_then(|at| self.plan().index(at));
        let from = from.ok_or(Refused::NoRoute)?;
        if self.plan().graph.nodes()[from].terminal {
            return Ok(Landing {
                over: Vec::new(),
                at: None,
            });
        }
        Ok(self.land(self.exit(from, open)?)?)
    }

    /// The stages that lie ahead as things stand, up to the end or until the way is not known or comes back on itself.
    pub(super) fn stages_ahead(&self) -> Vec<StageName> {
        let mut found: Vec<StageName> = Vec::new();
        let at = self.position.at.as_ref();
        let mut at = at.and_then(|at| self.plan().index(at));
        while let Some(from) = at {
            let Ok(exit) = self.exit(from, &[]) else {
                break;
            };
            let Ok(Landing { at: Some(next), .. }) = self.land(exit) else {
                break;
            };
            if found.contains(&next) || self.position.at.as_ref() == Some(&next) {
                break;
            }
            at = self.plan().index(&next);
            found.push(next);
        }
        found
    }

    /// The position after the stage was left forward.
    pub(super) fn moved(&self, landing: &Landing, skips: bool, now: Timestamp) -> Position {
        let mut next = self.position.then();
        if let Some(at) = &self.position.at {
            if skips {
                next.skip(at);
                next.say(Event::Skipped(at.clone()));
            } else {
                next.complete(at);
                next.say(Event::Checked(at.clone()));
                next.say(Event::Left(at.clone()));
            }
        }
        self.arrive(&mut next, landing, now);
        next
    }

    /// The position after going back.
    pub(super) fn went_back(&self, now: Timestamp) -> Result<Position, Refused> {
        let mut next = self.position.then();
        next.stops.pop();
        while next.stops.last().is_some_and(|stop| stop.over) {
            if let Some(over) = next.stops.pop() {
                next.undecide(&over.stage);
            }
        }
        let to = next.stops.last().ok_or(Refused::AtStart)?.stage.clone();
        next.undecide(&to);
        next.at = Some(to.clone());
        next.say(Event::WentBack(to.clone()));
        self.enter(&mut next, &to, Entry::Back, now);
        Ok(next)
    }

    /// The position when the stage is tried again.
    pub(super) fn retried(&self, now: Timestamp) -> Option<Position> {
        let at = self.position.at.clone()?;
        let mut next = self.position.then();
        next.say(Event::Retried(at.clone()));
        self.enter(&mut next, &at, Entry::Retry, now);
        Some(next)
    }

    /// The position when what was blocked is let go on, with this.
    pub(super) fn released(&self, with: String, now: Timestamp) -> Option<Position> {
        let at = self.position.at.clone()?;
        let failure = self.position.failure.as_ref();
        let blocked = failure.filter(|failing| failing.kind == FailingKind::Blocked)?;
        let before = self.position.visits.get(&at)?.last;
        let visit = format!("{at}[{before}]/");
        let mut next = self.position.then();
        next.say(Event::Released(at.clone()));
        self.enter(&mut next, &at, Entry::Retry, now);
        // Of a flow in a stage, they are below that.
        let place = |place: &String| {
            let start = place.rfind(&visit)? + visit.len();
            Some(place[start..].to_owned())
        };
        next.released = Some(Released {
            places: blocked.at.iter().filter_map(place).collect(),
            with,
        });
        Some(next)
    }

    /// The position when the stage is tried again by itself, if it is.
    pub(super) fn tries_again(&self, failing: &Failing, now: Timestamp) -> Option<Position> {
        let hooks = self.here()?;
        let failed = matches!(
            failing.kind,
            FailingKind::Error | FailingKind::Panicked | FailingKind::TimedOut
        );
        let tried = self.position.attempts;
        if !failed || tried > hooks.retries || hooks.retries == 0 {
            return None;
        }
        let mut next = self.retried(now)?;
        next.attempts = tried + 1;
        if let Some(live) = &mut next.live {
            let wait = hooks.backoff.wait(tried, 0.0);
            live.not_before = (!wait.is_zero()).then(|| now.after(wait));
            live.deadline = live.deadline.map(|deadline| deadline.after(wait));
        }
        Some(next)
    }

    /// The position after the person's data changed.
    pub(super) fn edited(&self) -> Position {
        let mut next = self.position.then();
        if next.status == Status::Blocked && next.failure.is_none() {
            next.settle();
        }
        next.say(Event::Edited);
        next
    }

    /// The position after the guide was given up.
    pub(super) fn cancelled(&self, now: Timestamp) -> Position {
        let mut next = self.position.then();
        next.live = None;
        next.status = Status::Cancelled;
        next.completed_at = Some(now);
        next.say(Event::Cancelled);
        next
    }

    /// The position of a guide that had come to its end and is taken up again, where it was.
    pub(super) fn reopened(&self) -> Position {
        let mut next = self.position.then();
        next.settle();
        next.completed_at = None;
        next.say(Event::Reopened);
        next
    }

    /// The position when what was done begins to be undone.
    pub(super) fn rolls_back(&self) -> Position {
        let mut next = self.position.then();
        next.problems.clear();
        next.failure = None;
        next.live = None;
        next.completed_at = None;
        next.status = Status::RollingBack;
        next.say(Event::RollingBack);
        next
    }

    /// The position when it is undone.
    pub(super) fn rolled_back(&self) -> Position {
        let mut next = self.position.then();
        next.reset();
        next.say(Event::RolledBack);
        next
    }

    /// The position of a guide that begins.
    pub(super) fn started(&self, now: Timestamp) -> Result<Position, Refused> {
        let mut next = self.position.then();
        next.started_at = Some(now);
        next.say(Event::Started);
        let starts = |node: &super::graph::Node| node.start;
        let start = self.plan().graph.nodes().iter().position(starts);
        let landing = self.land(start.ok_or(Refused::NoRoute)?)?;
        self.arrive(&mut next, &landing, now);
        Ok(next)
    }

    // ===== helpers =====

    fn plan(&self) -> &Plan<S> {
        self.flow.plan()
    }

    pub(super) fn here(&self) -> Option<&super::flow::Hooks<S>> {
        let at = self.position.at.as_ref()?;
        self.plan().hooks(at)
    }

    /// The first open exit of a stage.
    fn exit(&self, from: usize, open: &[(usize, bool)]) -> Result<usize, Way> {
        let guards = &self.plan().stages[from].exits;
        for (exit, guard) in guards.iter().enumerate() {
            let is_open = match guard {
                Guard::Open => true,
                Guard::Test(test) => test(self.state),
                Guard::Asks(_) => {
                    let said = open.iter().find(|(said, _)| *said == exit);
                    said.ok_or(Way::Asks(exit))?.1
                }
            };
            if is_open {
                let exit = self.plan().graph.nodes()[from].exits.get(exit);
                let target = exit.map(|exit| StageName::new(&*exit.target));
                let index = target.and_then(|target| self.plan().index(&target));
                return index.ok_or(Way::Refused(Refused::NoRoute));
            }
        }
        Err(Way::Refused(Refused::NoRoute))
    }

    /// Goes on from a stage that is about to be entered, past those whose condition does not hold.
    fn land(&self, first: usize) -> Result<Landing, Refused> {
        let mut over: Vec<StageName> = Vec::new();
        let mut at = first;
        loop {
            let stage = &self.plan().stages[at];
            if stage.when.as_ref().is_none_or(|when| when(self.state)) {
                let at = Some(stage.name.clone());
                return Ok(Landing { over, at });
            }
            if over.contains(&stage.name) {
                return Err(Refused::NoRoute);
            }
            over.push(stage.name.clone());
            if self.plan().graph.nodes()[at].terminal {
                return Ok(Landing { over, at: None });
            }
            // None of them is asked on the way: that was seen when the flow was built.
            at = self.exit(at, &[]).map_err(|_| Refused::NoRoute)?;
        }
    }

    fn arrive(&self, next: &mut Position, landing: &Landing, now: Timestamp) {
        let cap = self.plan().history;
        for over in &landing.over {
            next.skip(over);
            next.stop_at(over, true, cap);
            next.say(Event::PassedOver(over.clone()));
        }
        if let Some(at) = &landing.at {
            next.at = Some(at.clone());
            next.stop_at(at, false, cap);
            next.say(Event::Entered(at.clone()));
            self.enter(next, at, Entry::Forward, now);
        } else {
            next.settle();
            next.status = Status::Completed;
            next.completed_at = Some(now);
            next.say(Event::Completed);
        }
    }

    /// Stands at a stage and, if it has a body, begins that.
    fn enter(&self, next: &mut Position, at: &StageName, entry: Entry, now: Timestamp) {
        next.settle();
        // What a flow in the stage was left from is over.
        next.live = None;
        if entry != Entry::Retry {
            next.released = None;
        }
        let hooks = self.plan().hooks(at);
        let works = hooks.is_some_and(|hooks| hooks.body.is_some());
        let keeps =
            entry == Entry::Retry || hooks.is_some_and(|hooks| hooks.revisit == Revisit::Keep);
        next.visit(at, entry, keeps, works);
        next.attempts = u32::from(works);
        if let (Some(live), Some(limit)) = (&mut next.live, hooks.and_then(|hooks| hooks.timeout)) {
            live.deadline = Some(now.after(limit));
        }
    }
}
