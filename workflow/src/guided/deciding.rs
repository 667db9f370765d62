//! Whether the guide may be cancelled: decided beside whatever it is at.
//!
//! 1. One decision at a time. It is the guide's: whoever asked for it may go, and whoever asks meanwhile shares it.
//! 2. While it is open, no move is completed and none is begun. Edits are taken.
//! 3. A guard that panics has not said yes. Only those who asked are told.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

use super::desk::{Answer, Answering, Key};
use super::flow::FlowState;
use super::nested::CANCELLED;
use super::refused::Refused;
use super::run::{Guide, guarded, said};
use crate::context::{BoxFut, Up};

/// A decision that is open.
pub(super) struct Deciding {
    guard: BoxFut<'static, bool>,
    /// The flow in a stage that it is about; the guide, if there is none.
    within: Option<String>,
    /// Those who asked, with their keys.
    asked: Vec<(Answering, Key)>,
    /// When its time is up, if that is limited.
    late: Option<BoxFut<'static, ()>>,
    _up: Up,
}

impl<S: FlowState> Guide<S> {
    pub(super) fn cancel(&mut self, answering: Answering, key: Key) {
        self.ask_to_leave(None, answering, key);
    }

    /// Gives up a flow in a stage, and what is in it.
    pub(super) fn cancel_within(&mut self, path: String, answering: Answering, key: Key) {
        match self.desk.levels.at(&path) {
            Some(_) => self.ask_to_leave(Some(path), answering, key),
            None => self.owe(answering, Err(Refused::NotThere)),
        }
    }

    /// Asks the guards: of the outermost flow that is to be left first.
    fn ask_to_leave(&mut self, within: Option<String>, answering: Answering, key: Key) {
        if let Some(deciding) = &mut self.deciding {
            if deciding.within == within {
                deciding.asked.push((answering, key));
            } else {
                self.owe(answering, Err(Refused::Busy));
            }
            return;
        }
        let own = self.flow.plan().exit.clone();
        let own = own.filter(|_| within.is_none());
        let levels = Arc::clone(&self.desk.levels);
        if own.is_none() && levels.outside_in().is_empty() {
            return self.give_in(vec![(answering, key)]);
        }
        let state = self.now.state.clone();
        match guarded(|| own.map(|guard| guard(state))) {
            Ok(own) => {
                levels.set_deciding(true);
                let of = within.clone();
                let guard = Box::pin(async move {
                    let may = match own {
                        Some(guard) => guard.await,
                        None => true,
                    };
                    may && levels.may_leave(of).await
                });
                self.deciding = Some(Deciding {
                    guard,
                    within,
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
        let Some(Deciding { within, asked, .. }) = self.deciding.take() else {
            return true;
        };
        self.desk.levels.set_deciding(false);
        match refused {
            None => match within.map(|path| self.desk.levels.at(&path)) {
                None => self.give_in(asked),
                Some(Some(level)) => level.with(|inner| inner.cancelled(asked)),
                Some(None) => {
                    for (answering, _) in asked {
                        self.owe(answering, Err(Refused::NotThere));
                    }
                }
            },
            Some(refused) => {
                for (answering, _) in asked {
                    self.owe(answering, Err(refused.clone()));
                }
            }
        }
        true
    }

    /// Cancels the guide: what it is at is given up.
    fn give_in(&mut self, asked: Vec<(Answering, Key)>) {
        // Those within first: each says of itself that it was given up.
        for level in self.desk.levels.inside_out() {
            level.with(|inner| inner.cancelled(Vec::new()));
        }
        self.catch_up();
        let mut given_up = self.give_up(CANCELLED);
        given_up.extend(self.desk.levels.waiting());
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
