//! The code of a stage under way: its body, or what it does when it is left.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::decide::Asked;
use super::desk::{Answer, Answering};
use super::flow::FlowState;
use super::levels::{Pressed, Within as _};
use super::moving::Moving;
use super::nested::kind_of;
use super::position::{Event, Failing, FailingKind, Position, Problem, Released, Status, Visit};
use super::refused::Refused;
use super::run::{Guide, guarded, said};
use super::stage::{Stage, Wish};
use crate::codec::BoxError;
use crate::context::{BoxFut, Limit, Visiting, guiding};
use crate::replay::{Failure, FailureKind, Location};

/// The code of a stage under way. Fields are dropped in order: the code before its scope.
pub(super) struct Doing {
    pub(super) code: BoxFut<'static, Result<Gave, BoxError>>,
    /// How it ended, until something follows from that.
    pub(super) ended: Option<Result<Gave, Failing>>,
    pub(super) what: What,
    /// The move that it is asked for, if it is not the stage's body.
    pub(super) moving: Option<Moving>,
    pub(super) limit: Option<Limit>,
    pub(super) visiting: Option<Visiting>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The stage's body.
    Body,
    /// Checks of the stage.
    Check,
    /// The guard of an exit.
    Route(usize),
    /// What the stage does when it is left.
    Leave,
    /// The undos of what was done.
    Undo,
}

/// What the code of a stage gave.
pub(super) enum Gave {
    Nothing,
    /// What is wrong.
    Found(Vec<Problem>),
    /// Whether an exit is open.
    Open(bool),
}

impl<S: FlowState> Guide<S> {
    /// Writes a position that stands at a stage, and begins that stage's body, if it has one: then the command is answered when that has
    /// ended.
    pub(super) fn arrive(&mut self, next: Position, answering: Answering, key: Option<String>) {
        self.arm(&next);
        if next.live.is_none() {
            let here = match next.status {
                Status::Completed => Answer::At(None),
                _ => Answer::At(next.at.clone()),
            };
            return self.change(next, (answering, Ok(here)), key);
        }
        let state = self.now.state.clone();
        match self.commit(next, state, key, false) {
            Ok(()) => self.enter_live(Some(answering)),
            Err(refused) => self.owe(answering, Err(refused)),
        }
    }

    pub(super) fn enter_live(&mut self, answering: Option<Answering>) {
        if let Some(live) = self.now.position.live.clone() {
            self.enter(&live, answering, true);
        }
    }

    /// Begins the body of a visit, or goes on with it. One that is `new` does not know yet what it keeps.
    pub(super) fn enter(&mut self, visit: &Visit, answering: Option<Answering>, new: bool) {
        // It may take long, and the guide may leave memory meanwhile.
        if let Some(answering) = answering {
            self.desk.levels.wait(self.ground.base(), answering);
        }
        let (number, first) = (visit.number, visit.first);
        let keeps = (first < number).then(|| number - 1);
        let visiting = self.ground.visit(visit.stage.as_str(), number, keeps);
        if let Some(at) = self.visit() {
            let operations = &self.desk.levels.operations;
            operations.enters(at.clone());
            if let Some(Released { places, with }) = self.now.position.released.clone() {
                operations.release(at, places, with);
            }
        }
        let began = self.now.began.as_ref().unwrap_or(&self.now.state);
        let stage = Stage {
            name: visit.stage.clone(),
            visit: visit.number,
            entry: visit.entry,
            state: began.clone(),
            wishes: Arc::clone(&self.wishes),
        };
        let body = self.flow.plan().hooks(&visit.stage);
        let body = body.and_then(|hooks| hooks.body.clone());
        let (cx, base) = (visiting.cx(), self.ground.base().clone());
        let name = visit.stage.to_string();
        let pause = visit.not_before.filter(|at| *at > self.ground.now());
        let pause = pause.and_then(|until| visiting.pause(until));
        let code = Box::pin(async move {
            // A body that the code no longer has leaves nothing to do.
            let Some(body) = body else {
                return Ok(Gave::Nothing);
            };
            if let Some(pause) = pause {
                std::future::poll_fn(|task| pause.poll(task)).await;
            }
            if new && keeps.is_some() {
                guiding::keep(cx.clone(), base, name, first, number).await?;
            }
            body(stage).begin(cx).await?;
            Ok(Gave::Nothing)
        });
        self.doing = Some(Doing {
            code,
            ended: None,
            what: What::Body,
            moving: None,
            limit: visit.deadline.map(|deadline| visiting.limit(deadline)),
            visiting: Some(visiting),
        });
    }

    /// Goes on with the code under way; true when that led to anything.
    pub(super) fn poll_doing(&mut self, task: &mut Context<'_>) -> bool {
        let decided = !self.desk.levels.is_deciding();
        let Some(doing) = &mut self.doing else {
            return false;
        };
        if doing.ended.is_none() {
            let polled = catch_unwind(AssertUnwindSafe(|| doing.code.as_mut().poll(task)));
            doing.ended = match polled {
                Ok(Poll::Ready(ended)) => Some(ended.map_err(|error| failing(&*error))),
                Ok(Poll::Pending) => None,
                Err(panic) => Some(Err(panicked(&*panic))),
            };
        }
        let visiting = doing.visiting.as_ref();
        if doing.ended.is_some() && visiting.is_some_and(Visiting::is_left_over) {
            // It does not fit what is recorded: the machine says so.
            return false;
        }
        // Nothing follows from its end while it is being decided whether anything does.
        if decided && let Some(ended) = doing.ended.take() {
            self.ended(ended);
            return true;
        }
        if self.grant() {
            return true;
        }
        if decided && self.is_late(task) {
            self.gave_up = true;
            let failing = self.late();
            let operations = &self.desk.levels.operations;
            operations.gives_up(Some(failing.text.clone()));
            self.ended(Err(failing));
            self.desk.levels.operations.gives_up(None);
            return true;
        }
        false
    }

    /// Does what the code under way asks for; true when it asked for anything.
    pub(super) fn grant(&mut self) -> bool {
        let mut any = false;
        while let Some((wish, claimed)) = self.wishes.take() {
            any = true;
            self.catch_up();
            let Wish::Edit(edit) = wish else {
                claimed.answer(Ok(&self.now.state));
                continue;
            };
            let mut state = self.now.state.clone();
            let edited = guarded(|| edit(&mut state)).and_then(|()| {
                let next = self.course().edited();
                // In one batch with the answer.
                self.commit(next, state, None, false)
            });
            match edited {
                Ok(()) => claimed.answer(Ok(&self.now.state)),
                Err(refused @ Refused::Panicked(_)) => {
                    claimed.answer(Err((FailureKind::Panicked, refused.to_string())));
                }
                Err(refused) => claimed.answer(Err((FailureKind::Encode, refused.to_string()))),
            }
        }
        any
    }

    /// Whether the time of the code under way is up.
    pub(super) fn is_late(&self, task: &Context<'_>) -> bool {
        let limit = self.doing.as_ref().and_then(|doing| doing.limit.as_ref());
        limit.is_some_and(|limit| limit.poll(task).is_ready())
    }

    /// What there is to say of that.
    pub(super) fn late(&self) -> Failing {
        let at = self.now.position.at.as_ref();
        let stage = at.map_or("", |at| at.as_str());
        let what = self.doing.as_ref().map(|doing| doing.what);
        let hooks = self.flow.plan().hooks_timeout;
        let (what, limit) = match what {
            Some(What::Check) => ("checking the stage", hooks),
            Some(What::Route(_)) => ("finding the way on from the stage", hooks),
            Some(What::Leave) => ("leaving the stage", hooks),
            _ => {
                let hooks = at.and_then(|at| self.flow.plan().hooks(at));
                ("the stage", hooks.and_then(|hooks| hooks.timeout))
            }
        };
        let limit = limit.unwrap_or_default();
        Failing {
            kind: FailingKind::TimedOut,
            text: format!("{what} `{stage}` took longer than {limit:?}"),
            at: Vec::new(),
        }
    }

    /// The code under way is over, whatever it was at; gives those who wait for it.
    pub(super) fn give_up(&mut self, because: &str) -> Vec<Answering> {
        let mut waiting = self.desk.levels.waiting_at(self.ground.base());
        self.goes_on = false;
        let Some(doing) = self.doing.take() else {
            return waiting;
        };
        let operations = &self.desk.levels.operations;
        operations.gives_up(Some(because.to_owned()));
        drop(doing.code);
        drop(doing.visiting);
        operations.gives_up(None);
        self.wishes.clear();
        self.open_gate();
        self.gave_up = true;
        waiting.extend(doing.moving.map(Moving::answering));
        waiting
    }

    /// The code under way has ended.
    pub(super) fn ended(&mut self, ended: Result<Gave, Failing>) {
        let Some(Doing {
            code,
            what,
            moving,
            visiting,
            ..
        }) = self.doing.take()
        else {
            return;
        };
        if let (What::Body, Ok(_), Some(visiting)) = (what, &ended, &visiting) {
            self.find_orphans(visiting);
        }
        drop(code);
        drop(visiting);
        self.wishes.clear();
        self.open_gate();
        match (what, moving) {
            (What::Body, _) => self.body_ended(ended.map(drop)),
            (What::Undo, _) => self.undone(ended.map(drop)),
            (what, Some(moving)) => self.answered(what, ended, moving),
            (_, None) => {}
        }
    }

    fn body_ended(&mut self, ended: Result<(), Failing>) {
        self.catch_up();
        let mut next = self.now.position.then();
        let stage = next.live.take().map(|live| live.stage);
        // An error is one of the code, or of a step, and comes again when that is replayed.
        let follows = match &ended {
            Ok(()) => true,
            Err(failing) => matches!(failing.kind, FailingKind::Error | FailingKind::Blocked),
        };
        let ended = ended.map_err(|failing| self.or_blocked(failing));
        let again = ended.as_ref().err().and_then(|failing| {
            let now = self.ground.now();
            self.course().tries_again(failing, now)
        });
        if let Some(again) = again {
            let state = self.now.state.clone();
            self.arm(&again);
            if self.commit(again, state, None, false).is_ok() {
                return self.enter_live(None);
            }
        }
        let mut answer = match ended {
            Ok(()) => {
                next.settle();
                next.released = None;
                next.events.extend(stage.map(Event::Done));
                Ok(Answer::At(next.at.clone()))
            }
            Err(failing) => {
                next.fail(failing.clone());
                let event = match failing.kind {
                    FailingKind::Blocked => Event::Blocked,
                    _ => Event::Failed,
                };
                next.events.extend(stage.map(event));
                Err(Refused::Failed(failing))
            }
        };
        let short = next.clone();
        let state = self.now.state.clone();
        if let Err(refused) = self.commit(next, state, None, follows) {
            answer = Err(self.end_short(short, &refused));
        }
        let base = self.ground.base().clone();
        for answering in self.desk.levels.waiting_at(&base) {
            self.owe(answering, answer.clone());
        }
        // The flow in it came to its end by a `next` that goes on here.
        let mut following = self.desk.levels.following(&base);
        if std::mem::take(&mut self.goes_on) && following.is_empty() && answer.is_ok() {
            // Whoever pressed it is gone with the process that they pressed it in.
            following.push((oneshot::channel().0, None));
        }
        for (answering, key) in following {
            match &answer {
                Ok(_) => drop(self.press(
                    Pressed {
                        asked: Asked::Next,
                        with: None,
                        answering,
                        key,
                    },
                    false,
                )),
                Err(refused) => self.owe(answering, Err(refused.clone())),
            }
        }
    }

    /// An error that does not say that it is of a blocked step, when there is one: the stage is blocked.
    fn or_blocked(&self, failing: Failing) -> Failing {
        let visit = self.visit().filter(|_| failing.kind == FailingKind::Error);
        let blocked = visit.map(|visit| self.desk.levels.operations.blocked(&visit));
        let blocked = blocked.unwrap_or_default();
        let said = |(_, reason): &(Location, String)| failing.text.contains(reason.as_str());
        let Some((_, reason)) = blocked.iter().find(|it| said(it)) else {
            return failing;
        };
        Failing {
            kind: FailingKind::Blocked,
            text: reason.clone(),
            at: blocked.iter().map(|(at, _)| at.to_string()).collect(),
        }
    }

    /// The end of a body does not fit into a record: what there is to say of it is cut short, so that the guide does not stay at it.
    fn end_short(&mut self, mut next: Position, refused: &Refused) -> Refused {
        let text = match next.failure.take() {
            Some(failing) => failing.text,
            None => refused.to_string(),
        };
        let failing = Failing {
            kind: FailingKind::Error,
            text: text.chars().take(LONGEST).collect(),
            at: Vec::new(),
        };
        next.fail(failing.clone());
        next.events.clear();
        next.problems.clear();
        let state = self.now.state.clone();
        match self.commit(next, state, None, true) {
            Ok(()) => Refused::Failed(failing),
            // Its data alone is too much, which it was not before.
            Err(refused) => refused,
        }
    }
}

/// So much is kept of what a failure says, when all of it is too much.
const LONGEST: usize = 200;

fn panicked(panic: &(dyn std::any::Any + Send)) -> Failing {
    Failing {
        kind: FailingKind::Panicked,
        text: said(panic),
        at: Vec::new(),
    }
}

/// What an error of a stage's code says.
fn failing(error: &(dyn std::error::Error + 'static)) -> Failing {
    let failure = find(error);
    let kind = kind_of(failure);
    if let (FailingKind::Blocked, Some(failure)) = (kind, failure) {
        let blocked = all_of(failure).into_iter();
        let blocked = blocked.filter(|it| it.kind() == FailureKind::Blocked);
        let blocked: Vec<_> = blocked.collect();
        let said: Vec<_> = blocked.iter().map(|it| it.message()).collect();
        return Failing {
            kind,
            text: said.join("; "),
            at: blocked.iter().map(|it| it.location().to_string()).collect(),
        };
    }
    let at = failure.map(|failure| failure.location().to_string());
    let text = error.to_string();
    Failing {
        kind,
        text: if text.trim().is_empty() {
            "it failed, and does not say why".to_owned()
        } else {
            text
        },
        at: at.into_iter().filter(|at| !at.is_empty()).collect(),
    }
}

/// The failure in the chain of an error's sources.
fn find<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e Failure> {
    let mut next = Some(error);
    for _ in 0..DEPTH {
        let error = next?;
        if let Some(failure) = error.downcast_ref() {
            return Some(failure);
        }
        next = error.source();
    }
    None
}

/// So many sources of an error are looked at: one whose chain leads back to itself ends there.
const DEPTH: usize = 32;

/// A failure, or those of its branches.
pub(super) fn all_of(failure: &Failure) -> Vec<&Failure> {
    if failure.branches().is_empty() {
        return vec![failure];
    }
    failure.branches().iter().flat_map(all_of).collect()
}
