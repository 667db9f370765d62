//! Whether the guide may be cancelled: decided beside whatever it is at.
//!
//! 1. One decision at a time. It is the guide's: whoever asked for it may go, and whoever asks meanwhile shares it.
//! 2. While it is open, no move is completed and none is begun. Edits are taken.
//! 3. A guard that panics has not said yes. Only those who asked are told.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use super::desk::{Answer, Answering};
use super::flow::FlowState;
use super::refused::Refused;
use super::run::{Guide, guarded, said};
use crate::context::{BoxFut, Up};

/// A decision that is open.
pub(super) struct Deciding {
    guard: BoxFut<'static, bool>,
    /// Those who asked, with their keys.
    asked: Vec<(Answering, Option<String>)>,
    /// When its time is up, if that is limited.
    late: Option<BoxFut<'static, ()>>,
    _up: Up,
}

impl<S: FlowState> Guide<S> {
    pub(super) fn cancel(&mut self, answering: Answering, key: Option<String>) {
        if let Some(deciding) = &mut self.deciding {
            deciding.asked.push((answering, key));
            return;
        }
        let Some(guard) = self.flow.plan().exit.clone() else {
            return self.give_in(vec![(answering, key)]);
        };
        let state = self.now.state.clone();
        match guarded(|| guard(state)) {
            Ok(guard) => {
                self.deciding = Some(Deciding {
                    guard,
                    asked: vec![(answering, key)],
                    late: self
                        .flow
                        .plan()
                        .hooks_timeout
                        .map(|limit| self.ground.sleep(limit)),
                    _up: self.ground.stay_up(),
                });
            }
            Err(refused) => self.owe(answering, Err(refused)),
        }
    }

    /// Goes on deciding; true when it is decided.
    pub(super) fn decide(&mut self, task: &mut Context<'_>) -> bool {
        let Some(deciding) = &mut self.deciding else {
            return false;
        };
        let polled = catch_unwind(AssertUnwindSafe(|| deciding.guard.as_mut().poll(task)));
        let refused = match polled {
            Ok(Poll::Pending) => {
                let late = deciding.late.as_mut();
                if !late.is_some_and(|late| late.as_mut().poll(task).is_ready()) {
                    return false;
                }
                let limit = self.flow.plan().hooks_timeout.unwrap_or_default();
                Some(Refused::Late(format!(
                    "the exit guard took longer than {limit:?}"
                )))
            }
            Ok(Poll::Ready(true)) => None,
            Ok(Poll::Ready(false)) => Some(Refused::GuardSaidNo),
            Err(panic) => Some(Refused::Panicked(said(&*panic))),
        };
        let asked = self.deciding.take().map(|deciding| deciding.asked);
        let asked = asked.unwrap_or_default();
        match refused {
            None => self.give_in(asked),
            Some(refused) => {
                for (answering, _) in asked {
                    self.owe(answering, Err(refused.clone()));
                }
            }
        }
        true
    }

    /// Cancels the guide: what it is at is given up.
    fn give_in(&mut self, asked: Vec<(Answering, Option<String>)>) {
        let mut given_up = self.give_up();
        given_up.extend(self.held.drain(..).map(|held| held.answer));
        let mut next = self.course().cancelled(self.ground.now());
        let revision = next.revision;
        for (_, key) in &asked {
            next.answers(key.clone());
        }
        let state = self.now.state.clone();
        let written = self.commit(next, state, None, false);
        for (answering, _) in asked {
            let answer = written.clone().map(|()| Answer::Revision(revision));
            self.owe(answering, answer);
        }
        for answering in given_up {
            self.owe(answering, Err(Refused::Cancelled));
        }
    }
}
