//! Undoing what an operation did, the newest first.

use std::sync::Arc;

use super::Attempt;
use super::error::RollbackError;
use super::failing::text_of;
use super::shared::Shared;
use super::snapshot::{Status, Undo};
use super::state::State;
use super::work::{BoxFuture, Ended};
use crate::replay::{Failure, FailureKind};

/// Rolls an operation back: its children, newest first, then itself.
pub(super) async fn roll_back(shared: Arc<Shared>) -> Result<(), RollbackError> {
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(RollbackError::NoRuntime {
            name: shared.name(),
        });
    }
    // Before anything is undone: a rollback that cannot be whole is better not begun.
    if let Some(child) = shared.unknown_undo("") {
        let name = shared.name();
        return Err(RollbackError::Unknown { name, child });
    }
    step(shared).await
}

/// One operation of the tree.
fn step(shared: Arc<Shared>) -> BoxFuture<Result<(), RollbackError>> {
    Box::pin(async move {
        let rolling = Rolling::begin(&shared)?;
        let below = {
            let state = shared.lock();
            let oldest_first = state.earlier.iter().chain(&state.children);
            oldest_first.rev().cloned().collect::<Vec<_>>()
        };
        for child in below {
            if !child.owes_undo() {
                continue;
            }
            if let Err(error) = step(child).await {
                rolling.fail(&shared.failure(FailureKind::Rollback, error.to_string()));
                return Err(error);
            }
        }
        let failed = {
            let alongside = shared.show_in_time();
            tokio::select! {
                biased;
                failed = own(&shared) => failed,
                () = alongside => None,
            }
        };
        match failed {
            None => {
                rolling.succeed();
                Ok(())
            }
            Some(message) => {
                let failure = shared.failure(FailureKind::Rollback, message);
                rolling.fail(&failure);
                Err(RollbackError::Failed(failure))
            }
        }
    })
}

/// Runs the operation's own undo, if it is owed; gives why it failed.
async fn own(shared: &Arc<Shared>) -> Option<String> {
    let undo = shared.core.undo.as_ref()?;
    let owed = shared.change(|state| {
        (state.record.undo == Undo::Owed).then(|| {
            let result = state.record.result.clone();
            (Attempt::new(shared, state, None), result)
        })
    });
    let (attempt, result) = owed?;
    let body = undo.begin(result.as_deref(), attempt);
    match body.await {
        Ended::Value(()) => None,
        Ended::Error(error) => Some(text_of(error)),
        Ended::Encode(said) | Ended::Panicked(said) => Some(said),
    }
}

/// A rollback under way. Dropping it leaves one that failed.
struct Rolling<'a>(&'a Shared);

impl<'a> Rolling<'a> {
    fn begin(shared: &'a Shared) -> Result<Self, RollbackError> {
        shared.change(|state| {
            let (name, status) = (shared.name(), state.record.status);
            if state.closed {
                return Err(RollbackError::Closed { name });
            }
            if status.is_in_flight() {
                return Err(RollbackError::InFlight { name, status });
            }
            if state.is_stopping() {
                return Err(RollbackError::StillStopping { name });
            }
            let unfinished = status == Status::RollbackFailed;
            if !unfinished && !state.owes_undo() {
                return Err(RollbackError::NothingToUndo { name, status });
            }
            state.record.failure = None;
            state.record.reason = None;
            state.set(Status::RollingBack);
            Ok(())
        })?;
        Ok(Self(shared))
    }

    fn succeed(self) {
        self.end(|state| {
            if state.record.undo == Undo::Owed {
                state.record.undo = Undo::Done;
            }
            state.set(Status::RolledBack);
        });
    }

    fn fail(&self, failure: &Failure) {
        self.end(|state| {
            state.failed(failure);
            state.set(Status::RollbackFailed);
        });
    }

    fn end(&self, end: impl FnOnce(&mut State)) {
        let attempt = self.0.change(|state| {
            if state.record.status == Status::RollingBack {
                state.fence();
                end(state);
            }
            state.attempt.clone()
        });
        attempt.cancel();
    }
}

impl Drop for Rolling<'_> {
    fn drop(&mut self) {
        let message = "the future that rolled it back was dropped".to_owned();
        self.fail(&self.0.failure(FailureKind::Interrupted, message));
    }
}

impl Shared {
    /// The path of an operation here or below whose undo is owed and not known.
    fn unknown_undo(&self, above: &str) -> Option<String> {
        let path = format!("{above}{}", self.core.name);
        let (undo, below) = {
            let state = self.lock();
            let below: Vec<_> = state
                .earlier
                .iter()
                .chain(&state.children)
                .cloned()
                .collect();
            (state.record.undo, below)
        };
        if undo == Undo::Owed && self.core.undo.is_none() {
            return Some(path);
        }
        let above = format!("{path}/");
        below.iter().find_map(|child| child.unknown_undo(&above))
    }
}
