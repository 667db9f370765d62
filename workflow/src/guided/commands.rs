//! What the loop does with a command.
//!
//! 1. A command is obeyed whole or refused: what is refused changes nothing.
//! 2. A command that was obeyed before, by its key, is not obeyed again.

use super::decide::Asked;
use super::desk::{Answer, Answering, Ask, Command};
use super::flow::FlowState;
use super::levels::{Level, Pressed};
use super::nested::{WENT_BACK, was_given_up};
use super::position::{Failing, FailingKind};
use super::refused::Refused;
use super::run::{Guide, guarded};

impl<S: FlowState> Guide<S> {
    pub(super) fn obey(&mut self, ask: Ask<S>) {
        let beside = matches!(ask.command, Command::Edit(_) | Command::Cancel);
        if self.deciding.is_some() && !beside {
            // It may be the last word: what else is asked waits for it.
            self.held.push_back(ask);
            return;
        }
        let Ask {
            command,
            at,
            key,
            answer,
        } = ask;
        self.catch_up();
        let known = |key: &String| {
            let own = self.now.position.answer_to(key);
            own.or_else(|| self.desk.levels.answer_to(key))
        };
        if let Some(revision) = key.as_ref().and_then(known) {
            return self.answer_again(command.asked(), revision, answer);
        }
        let revision = self.now.position.revision;
        let admitted = match at {
            Some(at) if at != revision => Err(Refused::Stale { revision }),
            _ if self.goes_within(command.asked()) => {
                let asked = command.asked();
                let with = match command {
                    Command::Release(with) => Some(with),
                    _ => None,
                };
                return self.press_within(Pressed {
                    asked,
                    with,
                    answering: answer,
                    key,
                });
            }
            _ => self.admit(command.asked()),
        };
        if let Err(refused) = admitted {
            // Whoever asked may have gone.
            let _ = answer.send(Err(refused));
            return;
        }
        match command {
            Command::Next => self.next(answer, key),
            Command::Back => self.back(answer, key),
            Command::Skip => self.skip(answer, key),
            Command::Retry | Command::Resume => self.retry(answer, key),
            Command::Check => self.check(answer, key),
            Command::Edit(edit) => self.edit(edit, answer, key),
            Command::Cancel => self.cancel(answer, key),
            Command::Release(with) => self.release(with, answer, key),
            Command::Rollback => self.roll_back(None, answer, key),
            Command::SkipUndo(reason) => self.roll_back(Some(reason), answer, key),
            Command::Start(state) => self.start(state, answer, key),
            Command::Unfit(why) => self.owe(answer, Err(Refused::Encode(why))),
            Command::EditWithin(path, edit) => match self.desk.levels.at(&path) {
                Some(level) => level.with(|inner| inner.edit(edit, answer, key)),
                None => self.owe(answer, Err(Refused::NotThere)),
            },
            Command::CancelWithin(path) => self.cancel_within(path, answer, key),
        }
    }

    /// Whether a command is for a flow in the stage: that waits for the person, and this one for that.
    fn goes_within(&self, asked: Asked) -> bool {
        let moves = matches!(
            asked,
            Asked::Next
                | Asked::Back
                | Asked::Skip
                | Asked::Retry
                | Asked::Resume
                | Asked::Release
                | Asked::Check
        );
        moves && !self.desk.levels.outside_in().is_empty()
    }

    /// Gives a command to the innermost flow. What has no place there falls outward.
    fn press_within(&mut self, mut press: Pressed) {
        let mut over = false;
        for level in self.desk.levels.outside_in().into_iter().rev() {
            match level.with(|inner| inner.press(press, over)) {
                Some(fallen) => press = fallen,
                None => return,
            }
            over = true;
        }
        let Pressed { answering, key, .. } = press;
        if self.now.position.history().nth(1).is_none() {
            return self.owe(answering, Err(Refused::AtStart));
        }
        for given_up in self.give_up(WENT_BACK) {
            let _ = given_up.send(Err(Refused::Busy));
        }
        self.back(answering, key);
    }

    pub(super) fn admit(&self, asked: Asked) -> Result<(), Refused> {
        let status = self.now.position.status;
        let failure = self.now.position.failure.as_ref();
        let (skips, undoes) = (asked == Asked::Skip, asked == Asked::Rollback);
        // Whoever gave up what is in the stage may pass the stage by; what waits in it is over when all is undone.
        let waits = undoes
            && self
                .desk
                .levels
                .outside_in()
                .last()
                .is_some_and(Level::waits);
        if !(waits || skips && was_given_up(status, failure)) {
            asked.admit(status)?;
        }
        // What leaves a stage is not in the position.
        let beside = matches!(asked, Asked::Edit | Asked::Cancel);
        let cut_off = |failing: &Failing| failing.kind == FailingKind::Interrupted;
        if asked == Asked::Resume && !failure.is_some_and(cut_off) {
            return Err(Refused::NothingToResume);
        }
        if self.doing.is_some() && !beside && !waits {
            return Err(Refused::Busy);
        }
        if !beside && self.gave_up && self.ground.stopping() > 0 {
            return Err(Refused::StillStopping);
        }
        if asked == Asked::Skip {
            let at = self.now.position.at.as_ref();
            let node = at.and_then(|at| self.flow.graph().node(at.as_str()));
            if !node.is_some_and(|node| node.skippable) {
                return Err(Refused::NotSkippable);
            }
        }
        Ok(())
    }

    /// A command that was obeyed before: nothing is done, and the answer says where the guide is.
    fn answer_again(&mut self, asked: Asked, revision: u64, answering: Answering) {
        let answer = match asked {
            Asked::Edit | Asked::Cancel | Asked::Rollback | Asked::SkipUndo => {
                Answer::Revision(revision)
            }
            Asked::Check => Answer::Found(self.now.position.problems.clone()),
            _ => self.here(),
        };
        self.owe(answering, Ok(answer));
    }

    /// Begins again, after a rollback.
    fn start(&mut self, state: S, answering: Answering, key: Option<String>) {
        let now = self.ground.now();
        let before = std::mem::replace(&mut self.now.state, state);
        let started = guarded(|| self.course().started(now)).and_then(|started| started);
        match started {
            Ok(next) => self.arrive(next, answering, key),
            Err(refused) => {
                self.now.state = before;
                self.owe(answering, Err(refused));
            }
        }
    }

    pub(super) fn back(&mut self, answering: Answering, key: Option<String>) {
        match self.course().went_back(self.ground.now()) {
            Ok(next) => self.arrive(next, answering, key),
            Err(refused) => self.owe(answering, Err(refused)),
        }
    }

    pub(super) fn retry(&mut self, answering: Answering, key: Option<String>) {
        match self.course().retried(self.ground.now()) {
            Some(next) => self.arrive(next, answering, key),
            None => self.owe(answering, Err(Refused::NothingToRetry)),
        }
    }

    /// Lets go on what is blocked.
    pub(super) fn release(&mut self, with: String, answering: Answering, key: Option<String>) {
        match self.course().released(with, self.ground.now()) {
            Some(next) => self.arrive(next, answering, key),
            None => self.owe(answering, Err(Refused::NotBlocked)),
        }
    }

    fn edit(
        &mut self,
        edit: Box<dyn FnOnce(&mut S) + Send>,
        answering: Answering,
        key: Option<String>,
    ) {
        let mut state = self.now.state.clone();
        if let Err(refused) = guarded(|| edit(&mut state)) {
            return self.owe(answering, Err(refused));
        }
        let next = self.course().edited();
        let answer = Ok(Answer::Revision(next.revision));
        self.write(next, state, Some((answering, answer)), key);
    }
}
