//! Positions on their way into the store, and who is answered when they are there.
//!
//! 1. A guide stands at the newest position from the moment that it is queued. It is shown, and whoever asked for it is answered, when
//!    it is durable.
//! 2. One that cannot be recorded leaves the guide where it was.
//! 3. When the store fails, whoever waits for what it did not take is told; it is written again all the same.

use super::desk::{Answer, Answering, Owed, give};
use super::flow::FlowState;
use super::levels::path_of;
use super::position::{Position, Snapshot};
use super::refused::Refused;
use super::run::Guide;
use crate::replay::{Noted, Noting};

/// A position on its way into the store.
pub(super) struct Committing<S> {
    pub(super) noted: Noted,
    /// It follows from what is durable: it is true before it is written, and is written with what comes next.
    pub(super) follows: bool,
    /// Code begins with it.
    begins: bool,
    pub(super) snapshot: Snapshot<S>,
    pub(super) owed: Vec<Owed>,
}

/// So many positions are kept.
const KEPT: u64 = 20;

impl<S: FlowState> Guide<S> {
    /// A position that leaves the person's data as it is.
    pub(super) fn change(&mut self, next: Position, owed: Owed, key: Option<String>) {
        let state = self.now.state.clone();
        self.write(next, state, Some(owed), key);
    }

    /// Writes a position, or tells who asked why it cannot be written.
    pub(super) fn write(
        &mut self,
        next: Position,
        state: S,
        owed: Option<Owed>,
        key: Option<String>,
    ) {
        let (answering, answer) = match owed {
            Some((answering, answer)) => (Some(answering), Some(answer)),
            None => (None, None),
        };
        match self.commit(next, state, key, false) {
            Ok(()) => {
                if let (Some(answering), Some(answer)) = (answering, answer) {
                    self.owe(answering, answer);
                }
            }
            Err(refused) => {
                if let Some(answering) = answering {
                    self.owe(answering, Err(refused));
                }
            }
        }
    }

    /// Queues a position: from now on the guide is there. When it cannot be recorded, it is where it was. One that `follows` from what
    /// is recorded comes out the same when that is replayed, and costs no commit of its own.
    pub(super) fn commit(
        &mut self,
        mut next: Position,
        state: S,
        key: Option<String>,
        follows: bool,
    ) -> Result<(), Refused> {
        let begins = next.live.is_some() && next.live != self.now.position.live;
        let began = if next.live.is_none() || begins {
            None
        } else {
            // Edited while the body runs: a replay of it begins with what it began with.
            self.now
                .began
                .clone()
                .or_else(|| Some(self.now.state.clone()))
        };
        next.answers(key.clone());
        let revision = next.revision;
        let snapshot = Snapshot {
            position: next,
            state,
            began,
            initial: self.now.initial.clone(),
        };
        let noting = match (begins, follows) {
            (true, _) => Noting::Intent,
            (false, true) => Noting::Rider,
            (false, false) => Noting::Durable,
        };
        let noted = self.ground.note(revision, &snapshot, key, noting, KEPT);
        let (snapshot, noted) = noted.map_err(|error| Refused::Encode(error.to_string()))?;
        self.desk.levels.came_to(revision);
        self.save_operations(false);
        self.prune(&snapshot.position);
        self.now = snapshot.clone();
        self.committing.push_back(Committing {
            noted,
            follows: follows && !begins,
            begins,
            snapshot,
            owed: Vec::new(),
        });
        Ok(())
    }

    /// Visits that nothing goes on from any more are deleted with the position that enters another. What they did is in the ledger.
    fn prune(&self, next: &Position) {
        for (stage, before) in &self.now.position.visits {
            let Some(entered) = next.visits.get(stage).filter(|it| *it != before) else {
                continue;
            };
            let hooks = self.flow.plan().hooks(stage);
            let works = hooks.is_some_and(|hooks| hooks.body.is_some());
            let gone = match (entered.first == entered.last, works) {
                (true, _) => before.first..=before.last,
                // It has what it did when it was left, and each time is one of its own.
                (false, false) => before.last..=before.last,
                (false, true) => continue,
            };
            for number in gone {
                // What flows in it did is undone with the data that they have by then.
                if !self.ground.owes_flows(stage.as_str(), number) {
                    self.ground.forget_visit(stage.as_str(), number);
                }
            }
        }
    }

    /// Answers, when what the guide has said so far is durable.
    pub(super) fn owe(&mut self, answering: Answering, answer: Result<Answer, Refused>) {
        let answer = match answer {
            Ok(Answer::At(Some(to))) if !self.is_outermost() => {
                Ok(Answer::Inside(path_of(self.ground.base()), to))
            }
            answer => answer,
        };
        match self.committing.back_mut() {
            Some(newest) => newest.owed.push((answering, answer)),
            None => give(vec![(answering, answer)]),
        }
    }

    /// Those who wait for what the store failed to take are told.
    pub(super) fn tell_unwritten(&mut self) {
        if !self.is_outermost() {
            return;
        }
        if let Some(error) = self.desk.take_unwritten() {
            for level in self.desk.levels.inside_out() {
                level.with(|inner| inner.unwritten(&error));
            }
            self.unwritten(&error);
        }
    }

    /// The same, of this flow.
    pub(super) fn unwritten(&mut self, error: &str) {
        let refused = || Refused::Store(error.to_owned());
        let mut begins = false;
        for committing in &mut self.committing {
            if committing.follows || !self.ground.is_closed(committing.noted) {
                continue;
            }
            begins |= committing.begins;
            for (answering, answer) in std::mem::take(&mut committing.owed) {
                give(vec![(answering, answer.and_then(|_| Err(refused())))]);
            }
        }
        if begins {
            // The code that they wait for does not begin before that is written.
            for answering in self.desk.levels.waiting_at(self.ground.base()) {
                give(vec![(answering, Err(refused()))]);
            }
        }
    }
}
