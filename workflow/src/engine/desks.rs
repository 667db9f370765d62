//! The desks of runs: what their drivers in this process share with their code. What it is, is theirs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::Inner;
use super::driver::Exit;
use crate::context::{Desk, Left};
use crate::replay::{Finished, RunKey};
use crate::store::{Appended, StoreError};

/// The desks that somebody holds.
#[derive(Default)]
pub(crate) struct Desks(Mutex<HashMap<RunKey, Weak<dyn Desk>>>);

impl Desks {
    /// The desk of a run; made when nobody holds one.
    pub(crate) fn desk(&self, run: RunKey, make: fn() -> Arc<dyn Desk>) -> Arc<dyn Desk> {
        let mut desks = self.desks();
        if let Some(known) = desks.get(&run).and_then(Weak::upgrade) {
            return known;
        }
        if desks.len() == desks.capacity() {
            // Before it grows, those go that nobody holds any more.
            desks.retain(|_, desk| desk.strong_count() > 0);
        }
        let desk = make();
        desks.insert(run, Arc::downgrade(&desk));
        desk
    }

    fn find(&self, run: RunKey) -> Option<Arc<dyn Desk>> {
        self.desks().get(&run).and_then(Weak::upgrade)
    }

    /// A desk is nobody's any more: whoever comes to the run next makes another.
    pub(crate) fn clear(&self, run: RunKey, desk: &Arc<dyn Desk>) {
        let mut desks = self.desks();
        let known = desks.get(&run).and_then(Weak::upgrade);
        if known.is_some_and(|known| Arc::ptr_eq(&known, desk)) {
            desks.remove(&run);
        }
    }

    fn desks(&self) -> MutexGuard<'_, HashMap<RunKey, Weak<dyn Desk>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// A batch of a run could not be written.
    pub(super) fn tell_desk_of(&self, run: RunKey, error: &StoreError) {
        if let Some(desk) = self.desks.find(run) {
            desk.not_written(&error.to_string());
        }
    }

    /// It was written after all.
    pub(super) fn tell_desk_written(&self, run: RunKey) {
        if let Some(desk) = self.desks.find(run) {
            desk.written();
        }
    }

    /// A run has left memory; true when somebody at its desk wants it back.
    pub(super) fn tell_desk(&self, run: RunKey, exit: &Exit) -> bool {
        let Some(desk) = self.desks.find(run) else {
            return false;
        };
        let left = match exit {
            Exit::Finished(Finished::Cancelled) | Exit::Refused(Appended::Final) => {
                Left::Ended { cancelled: true }
            }
            Exit::Finished(_) => Left::Ended { cancelled: false },
            Exit::Suspended(_) if self.is_closing() => {
                Left::Stopped("the engine was shut down".to_owned())
            }
            Exit::Suspended(_) | Exit::Strayed(_) => Left::Away,
            Exit::Parked(parked) => {
                Left::Stopped(format!("parked ({}): {}", parked.reason, parked.detail))
            }
            Exit::Storage { error, .. } => Left::Stopped(error.to_string()),
            Exit::Refused(_) => Left::Stopped("another engine drives it".to_owned()),
            Exit::Unwinding(..) => Left::Stopped("it is being undone".to_owned()),
        };
        desk.left(left)
    }
}
