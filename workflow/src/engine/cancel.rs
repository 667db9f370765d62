//! Cancelling: at once, or after undoing what was done.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::live::Command;
use super::mail::waited_for;
use super::take_up::Coming;
use super::{CancelError, Inner};
use crate::replay::{Body, Location, Record, RunId, RunKey, RunState};
use crate::store::{Append, Appended, BoxFuture, InboxChange, RunPatch, RunRow, StoreError};

/// How long step bodies may take to end before what they did is undone.
const GRACE: Duration = Duration::from_secs(30);

/// A cancellation, to be awaited. Made by [`Engine::cancel`](super::Engine::cancel) and
/// [`RunHandle::cancel`](super::RunHandle::cancel).
///
/// Awaited as it is, the run's futures are dropped and it is `Cancelled`, durably. With [`and_undo`](Self::and_undo) its ledger is
/// undone first.
#[must_use = "help: `.await` it: a cancellation that is not awaited does nothing"]
pub struct Cancel {
    pub(super) inner: Arc<Inner>,
    pub(super) id: RunId,
    pub(super) undo: bool,
}

impl Cancel {
    /// Undoes what the run has done, newest first, and ends it as cancelled then.
    ///
    /// In two phases: nothing new is begun, and step bodies that run may end (up to 30 seconds), so that no effect lands after its
    /// undo; then the ledger is undone. The cancellation is durable when this returns; the undoing goes on. Child runs that it waits
    /// for are cancelled and undone, too; those that have completed are not.
    ///
    /// A run that is being undone already goes on with that, and ends as it would have: failed, if that is why. One that is parked
    /// because of an undo tries it again.
    pub fn and_undo(mut self) -> Self {
        self.undo = true;
        self
    }
}

impl std::fmt::Debug for Cancel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cancel")
            .field("run", &self.id)
            .field("undo", &self.undo)
            .finish_non_exhaustive()
    }
}

impl IntoFuture for Cancel {
    type Output = Result<(), CancelError>;
    type IntoFuture = BoxFuture<'static, Result<(), CancelError>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { inner, id, undo } = self;
            let Some(row) = inner.store.find(&id).await? else {
                return Err(CancelError::NotFound { id: id.to_string() });
            };
            if undo {
                inner.cancel_and_undo(&id, row.key).await
            } else {
                inner.cancel(&id, row.key).await
            }
        })
    }
}

impl Inner {
    /// Cancels and undoes the children that a run was waiting for when it was cancelled.
    pub(super) async fn cancel_and_undo_children(self: Arc<Self>, run: RunKey) {
        let history = match self.store.load(run).await {
            Ok(loaded) => loaded.map(|loaded| loaded.history).unwrap_or_default(),
            Err(error) => {
                tracing::warn!(?run, %error, "the children of a cancelled run could not be read");
                return;
            }
        };
        for child in waited_for(&history) {
            let cancel = Cancel {
                inner: Arc::clone(&self),
                id: child.clone(),
                undo: true,
            };
            if let Err(CancelError::Store(error)) = cancel.await {
                tracing::warn!(%child, %error, "the child of a cancelled run could not be cancelled");
            }
        }
    }

    pub(super) async fn cancel_and_undo(
        self: &Arc<Self>,
        id: &RunId,
        run: RunKey,
    ) -> Result<(), CancelError> {
        let board = self.boards.board(run);
        let by = Instant::now() + GRACE;
        let mut asked = false;
        loop {
            let Some(row) = self.store.row(run).await? else {
                return Err(CancelError::NotFound { id: id.to_string() });
            };
            match row.state {
                RunState::RollingBack => return Ok(()),
                RunState::Cancelled if asked => return Ok(()),
                state if state.is_final() => {
                    return Err(CancelError::Ended {
                        id: id.clone(),
                        state,
                    });
                }
                _ => {}
            }
            if row
                .parked
                .as_ref()
                .is_some_and(|parked| parked.reason.is_of_undo())
            {
                // It is being undone already, and stuck there.
                return Ok(self.try_again(row).await?);
            }
            if self.is_closing() {
                return Err(StoreError::Closed.into());
            }
            let live = self.runs().by_key.get(&run).cloned();
            if let Some(live) = live {
                live.tell(Command::CancelAndUndo { by });
                asked = true;
                // It may leave memory just now, without having seen this.
                let _ = tokio::time::timeout(Duration::from_millis(50), board.rolled_back()).await;
            } else if let Some(coming) = Coming::of(self, run) {
                // Nobody drives it, so none of its bodies runs: it can be undone as it is.
                let said = self.unwind(&row).await?;
                drop(coming);
                if said {
                    // Undoing does not wait for a slot.
                    self.frees(run);
                    board.reopen();
                    self.wake(run);
                    return Ok(());
                }
            } else {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }

    /// Says that a run which nobody drives is to be undone. False when it was written to meanwhile.
    async fn unwind(&self, row: &RunRow) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let append = Append {
            run: row.key,
            epoch: self.identity.boot,
            number: self.last_number(row) + 1,
            expected_seq: row.last_seq,
            create: None,
            records: vec![Record {
                seq: row.last_seq + 1,
                at: now,
                code: self.code,
                location: Location::root(),
                body: Body::Unwinding { cause: None },
            }],
            deletes: Vec::new(),
            patch: RunPatch {
                state: Some(RunState::RollingBack),
                parked: Some(None),
                wake_at: Some(None),
                waits: Some(None),
                at: now,
                code: self.code,
                ..RunPatch::default()
            },
            inbox: InboxChange::default(),
            posts: Vec::new(),
        };
        match self.store.append(append).await {
            Ok(Appended::Applied | Appended::AlreadyApplied) => Ok(true),
            // Whoever opened the store since drives it, and has to be asked.
            Ok(Appended::Lost) => Err(StoreError::Closed),
            Ok(_) | Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
