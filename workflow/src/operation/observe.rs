//! Who looks on while an operation runs. Nobody who does can hurt it.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use super::{Snapshot, Status};
use crate::codec::BoxError;

/// A change of an operation's status.
#[derive(Debug, Clone)]
pub struct Event {
    pub(super) from: Status,
    pub(super) snapshot: Snapshot,
}

impl Event {
    /// The status before.
    pub fn from(&self) -> Status {
        self.from
    }

    /// The status since.
    pub fn to(&self) -> Status {
        self.snapshot.status()
    }

    /// The operation as it was just then.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }
}

/// Is told of every change of status.
pub(super) type Observer = Arc<dyn Fn(&Event) -> Result<(), BoxError> + Send + Sync>;

/// An observer gave an error, or panicked. The operation goes on undisturbed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ObserverError {
    /// What the observer was told.
    pub event: Event,
    /// What it said, or what its panic said.
    pub message: String,
}

impl fmt::Display for ObserverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "an observer of operation `{}` failed when it became {}: {}",
            self.event.snapshot.name(),
            self.event.to(),
            self.message
        )
    }
}

impl std::error::Error for ObserverError {}

/// The snapshots of an operation as they come. Made by [`Operation::watch`](super::Operation::watch).
///
/// Whoever is slow sees the latest and misses some before it: nothing waits for a watcher. [`Snapshot::revision`] tells.
#[derive(Clone)]
pub struct Watch(pub(super) watch::Receiver<Snapshot>);

impl Watch {
    /// The next snapshot that was not seen yet, the latest there is; the first call gives the present one. `None` when the
    /// operation was closed, or nobody has it any more, and the last one was seen.
    ///
    /// # Cancel safety
    /// Nothing is lost when this future is dropped.
    pub async fn next(&mut self) -> Option<Snapshot> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().clone())
    }

    /// The latest snapshot.
    pub fn latest(&self) -> Snapshot {
        self.0.borrow().clone()
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&*self.0.borrow()).finish()
    }
}
