//! Guides that had come to their end and go on: to be rolled back, or to go back where their flow allows that.
//!
//! 1. The end of the run and the position that goes on from it change places in one transaction. So whatever happens then, the guide
//!    is on its way, and a rollback that was begun is made.
//! 2. What the engine cancelled stays cancelled: its guide was not asked, and does not say so.

use super::decide::{Asked, Course};
use super::flow::FlowState;
use super::handle::Guide;
use super::operations::Operations;
use super::position::{Snapshot, Status};
use super::refused::Refused;
use super::run::visit_of;
use super::view::View;
use crate::context::guiding;
use crate::engine::{Coming, ControlError};
use crate::replay::{Body, Location, Record, position_location};
use crate::store::{Appended, Loaded, StoreError};

/// What came of looking at whether the guide has ended.
pub(super) enum Reopening {
    /// The command is given as it is: the revision that it was decided on, unless that was looked at, and its key.
    None(Option<u64>, Option<String>),
    /// It rolls back, when nobody holds it any more.
    RollsBack(Coming),
}

impl<S: FlowState> Guide<S> {
    /// Takes the guide up again if it has come to its end and the command asks for that.
    pub(super) async fn reopen(
        &self,
        asked: Asked,
        at: Option<u64>,
        key: Option<String>,
    ) -> Result<Reopening, Refused> {
        let ended = self.desk.view().map(|view| view.status);
        let reopens = match (asked, ended) {
            (Asked::Rollback, Some(status)) => status.is_final(),
            (Asked::Back, Some(Status::Completed)) => self.flow.plan().reopens,
            _ => false,
        };
        if !reopens || self.desk.is_closed() {
            return Ok(Reopening::None(at, key));
        }
        let inner = &self.engine.inner;
        if inner.stopping(self.run) > 0 {
            return Err(Refused::StillStopping);
        }
        // Nobody else takes it up, or reopens it, meanwhile.
        let held = inner.hold(self.run).await.map_err(stopped)?;
        let loaded = inner.store.load(self.run).await;
        let Some(Loaded { row, history }) = loaded.map_err(unread)? else {
            return Err(Refused::Stopped("it is gone".to_owned()));
        };
        let Some((end, newest)) = self.ended(&history)? else {
            // Somebody else was faster.
            return Ok(Reopening::None(at, key));
        };
        let revision = newest.position.revision;
        if at.is_some_and(|at| at != revision) {
            return Err(Refused::Stale { revision });
        }
        let course = Course {
            flow: &self.flow,
            position: &newest.position,
            state: &newest.state,
        };
        let now = inner.clock.now();
        let mut position = if asked == Asked::Rollback {
            course.rolls_back()
        } else {
            // What cannot be done is refused before anything is.
            course.went_back(now)?;
            course.reopened()
        };
        let rolls_back = asked == Asked::Rollback;
        if rolls_back {
            position.answers(key.clone());
        }
        let revision = position.revision;
        let at_stage = visit_of(&Location::root(), &position).unwrap_or_default();
        let next = Snapshot {
            position,
            state: newest.state,
            began: None,
            initial: newest.initial,
        };
        let payload = guiding::sealed(&*inner.codec, inner.payload_limit, &next);
        let payload = payload.map_err(|error| Refused::Encode(error.to_string()))?;
        let body = Body::State {
            revision,
            payload,
            command: key.clone().filter(|_| rolls_back),
        };
        let end = std::slice::from_ref(end);
        let rewrite = inner.going_on(
            &row,
            end,
            position_location(&Location::root(), revision),
            body,
        );
        match inner.store.rewrite(vec![rewrite]).await.map_err(unread)? {
            Appended::Applied | Appended::AlreadyApplied => {}
            _ => return Err(Refused::Busy),
        }
        let view = View::of(&self.flow, &next, rolls_back);
        let (operations, orphans) = Operations::stored(row.progress.as_deref(), &at_stage);
        let view = view.at_work(operations, orphans);
        self.desk.show_stored(view);
        Ok(if rolls_back {
            Reopening::RollsBack(held)
        } else {
            Reopening::None(None, key)
        })
    }

    /// The end that is recorded, and the position that led to it.
    fn ended<'a>(
        &self,
        history: &'a [Record],
    ) -> Result<Option<(&'a Record, Snapshot<S>)>, Refused> {
        let end = history.last();
        let Some(end) = end.filter(|end| matches!(end.body, Body::Finished(_))) else {
            return Ok(None);
        };
        let newest = guiding::position_of::<Snapshot<S>>(&*self.engine.inner.codec, history);
        let newest = newest.map_err(|error| Refused::Stopped(error.to_string()))?;
        match newest {
            Some(newest) if newest.position.status.is_final() => Ok(Some((end, newest))),
            _ => Err(Refused::Cancelled),
        }
    }
}

fn stopped(error: ControlError) -> Refused {
    Refused::Stopped(error.to_string())
}

/// The store failed, and whether anything was changed is unknown.
fn unread(error: StoreError) -> Refused {
    Refused::Stopped(error.to_string())
}
