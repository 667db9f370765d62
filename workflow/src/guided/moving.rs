//! A move that is on its way out of a stage: what the stage is asked before it is left.
//!
//! 1. First the checks, then the way, then what the stage does when it is left: nothing is left that could not go on.
//! 2. Each that is durable code runs beside the body, in a scope of its own for each time that it is asked. Nothing of the move is
//!    recorded before its position is: a crash leaves the guide where it was.
//! 3. What was answered holds for the data that was looked at. When somebody edits that meanwhile, it is asked again; when the stage
//!    itself does, as it is left, only the way is.

use std::sync::Arc;

use super::decide::Way;
use super::desk::{Answer, Answering};
use super::doing::{Doing, Gave, What};
use super::flow::{FlowState, Guard, Hook};
use super::position::{Entry, Failing, Problem};
use super::refused::Refused;
use super::run::{Guide, guarded};
use super::stage::Stage;
use crate::codec::BoxError;
use crate::context::{BoxFut, Cx, guiding};

/// The scopes in a visit in which a stage is asked: whether what was given is right, where to go on, and to be left.
const CHECKING: &str = "\0check";
const ROUTING: &str = "\0route";
const LEAVING: &str = "\0leave";

/// A move that is on its way.
pub(super) struct Moving {
    aim: Aim,
    answering: Answering,
    key: Option<String>,
    /// The revision whose data was looked at.
    since: u64,
    checked: bool,
    left: bool,
    /// What guards that are durable code said of the exits.
    open: Vec<(usize, bool)>,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aim {
    /// What is wrong, and nothing more.
    Check,
    Next,
    Skip,
}

impl Moving {
    /// Whoever waits for it.
    pub(super) fn answering(self) -> Answering {
        self.answering
    }
}

impl<S: FlowState> Guide<S> {
    pub(super) fn next(&mut self, answering: Answering, key: Option<String>) {
        self.set_out(Aim::Next, answering, key);
    }

    pub(super) fn skip(&mut self, answering: Answering, key: Option<String>) {
        self.set_out(Aim::Skip, answering, key);
    }

    pub(super) fn check(&mut self, answering: Answering, key: Option<String>) {
        self.set_out(Aim::Check, answering, key);
    }

    fn set_out(&mut self, aim: Aim, answering: Answering, key: Option<String>) {
        self.go_on(Moving {
            aim,
            answering,
            key,
            since: self.now.position.revision,
            checked: aim == Aim::Skip,
            left: aim == Aim::Skip,
            open: Vec::new(),
        });
    }

    /// Goes on as far as nothing has to be waited for.
    fn go_on(&mut self, mut moving: Moving) {
        if !moving.checked {
            let found = match guarded(|| self.course().check()) {
                Ok(found) => found,
                Err(refused) => return self.owe(moving.answering, Err(refused)),
            };
            if !found.is_empty() {
                return self.found(&found, moving);
            }
            let asks = self.course().here().map(|here| here.asks.clone());
            if let Some(asks) = asks.filter(|asks| !asks.is_empty()) {
                return self.ask_checks(asks, moving);
            }
            moving.checked = true;
        }
        if moving.aim == Aim::Check {
            return self.found(&[], moving);
        }
        let way = guarded(|| self.course().ahead(&moving.open));
        let landing = match way {
            Ok(Ok(landing)) => landing,
            Ok(Err(Way::Asks(exit))) => return self.ask_guard(exit, moving),
            Ok(Err(Way::Refused(refused))) | Err(refused) => {
                return self.owe(moving.answering, Err(refused));
            }
        };
        let leave = self.course().here().and_then(|here| here.leave.clone());
        if let Some(leave) = leave.filter(|_| !moving.left) {
            return self.ask(What::Leave, moving, |stage, cx| {
                Box::pin(async move {
                    let aside = guiding::aside(cx, LEAVING, true).await?;
                    leave(stage).begin(aside.cx()).await?;
                    Ok(Gave::Nothing)
                })
            });
        }
        let Moving {
            aim,
            answering,
            key,
            ..
        } = moving;
        let skips = aim == Aim::Skip;
        let next = self.course().moved(&landing, skips, self.ground.now());
        self.arrive(next, answering, key);
    }

    /// All of them are asked, one after the other.
    fn ask_checks(&mut self, asks: Vec<Hook<S, Vec<Problem>>>, moving: Moving) {
        self.ask(What::Check, moving, |stage, cx| {
            Box::pin(async move {
                let mut found = Vec::new();
                for ask in asks {
                    let aside = guiding::aside(cx.clone(), CHECKING, false).await?;
                    found.extend(ask(stage.again()).begin(aside.cx()).await?);
                }
                Ok(Gave::Found(found))
            })
        });
    }

    fn ask_guard(&mut self, exit: usize, moving: Moving) {
        let course = self.course();
        let guard = course.here().and_then(|here| here.exits.get(exit));
        let Some(Guard::Asks(guard)) = guard else {
            return self.owe(moving.answering, Err(Refused::NoRoute));
        };
        let guard = Arc::clone(guard);
        self.ask(What::Route(exit), moving, |stage, cx| {
            Box::pin(async move {
                let aside = guiding::aside(cx, ROUTING, false).await?;
                guard(stage).begin(aside.cx()).await.map(Gave::Open)
            })
        });
    }

    /// Begins durable code of the stage that one is at, beside its body.
    fn ask(
        &mut self,
        what: What,
        moving: Moving,
        begin: impl FnOnce(Stage<S>, Cx) -> BoxFut<'static, Result<Gave, BoxError>>,
    ) {
        let Some(at) = self.now.position.at.clone() else {
            return self.owe(moving.answering, Err(Refused::NoRoute));
        };
        let visits = self.now.position.visits.get(&at).copied();
        let visit = visits.unwrap_or_default().last;
        let visiting = self.ground.visit(at.as_str(), visit, None);
        if let Some(visit) = self.visit() {
            let operations = &self.desk.levels.operations;
            for hook in [CHECKING, ROUTING, LEAVING] {
                // What was asked before is over.
                operations.only(&visit.branch(hook), None);
            }
            operations.enters(visit);
        }
        let stage = Stage {
            name: at,
            visit,
            entry: Entry::Forward,
            state: self.now.state.clone(),
            wishes: Arc::clone(&self.wishes),
        };
        let limit = self.flow.plan().hooks_timeout;
        let limit = limit.map(|limit| visiting.limit(self.ground.now().after(limit)));
        self.doing = Some(Doing {
            code: begin(stage, visiting.cx()),
            ended: None,
            what,
            moving: Some(moving),
            limit,
            visiting: Some(visiting),
        });
        self.show();
    }

    /// What was asked has answered.
    pub(super) fn answered(
        &mut self,
        what: What,
        ended: Result<Gave, Failing>,
        mut moving: Moving,
    ) {
        self.catch_up();
        let gave = match ended {
            Ok(gave) => gave,
            Err(failing) => {
                let refused = match what {
                    What::Leave => Refused::Leave(failing),
                    _ => Refused::Check(failing),
                };
                self.owe(moving.answering, Err(refused));
                return self.show();
            }
        };
        let revision = self.now.position.revision;
        if std::mem::replace(&mut moving.since, revision) != revision {
            // What was answered, was of other data.
            moving.open.clear();
            if what == What::Leave {
                moving.left = true;
            } else {
                moving.checked = moving.aim == Aim::Skip || moving.left;
            }
            self.go_on(moving);
            return self.show();
        }
        match (what, gave) {
            (What::Check, Gave::Found(found)) if !found.is_empty() => self.found(&found, moving),
            (What::Check, _) => {
                moving.checked = true;
                self.go_on(moving);
            }
            (What::Route(exit), Gave::Open(open)) => {
                moving.open.push((exit, open));
                self.go_on(moving);
            }
            _ => {
                moving.left = true;
                self.go_on(moving);
            }
        }
        self.show();
    }

    /// The checks have found this, or nothing.
    fn found(&mut self, found: &[Problem], moving: Moving) {
        let Moving {
            aim,
            answering,
            key,
            ..
        } = moving;
        let answer = match aim {
            Aim::Check => Ok(Answer::Found(found.to_vec())),
            _ => Err(Refused::Invalid(found.to_vec())),
        };
        match self.course().checked(found) {
            Some(next) => self.change(next, (answering, answer), key),
            None => self.owe(answering, answer),
        }
    }
}
