//! Owners that died while they drove the run.
//!
//! A step costs one commit, so nothing says that its body had begun when the process ended. What is known is how often the run was
//! claimed and not let go of: each of those claims counts as an attempt of every body that is reached before anything new is durable,
//! for any of them may have been what killed the process. What becomes durable takes the count back.

use super::{Phase, Replay};
use crate::replay::{AttemptState, Body, Record, Timestamp};

/// What is known of earlier owners.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unclean {
    /// How many in a row died.
    pub(super) claims: u32,
    /// When this one took the run over.
    at: Timestamp,
}

impl Unclean {
    /// Whether it may have been the body of a step that waits until then.
    pub(super) fn counts_for(&self, wake_at: Option<Timestamp>) -> bool {
        self.claims > 0 && wake_at.is_none_or(|wake_at| wake_at <= self.at)
    }
}

impl Replay {
    /// So many owners in a row died while they drove the run; this one took it over then. Told before the code is polled.
    pub fn handle_unclean(&mut self, claims: u32, at: Timestamp) {
        self.unclean.claims = claims;
        self.unclean.at = at;
    }

    /// Whether an owner may have died after this.
    pub fn died_since(&self, at: Timestamp) -> bool {
        self.unclean.counts_for(Some(at))
    }

    /// What these records say of the count of unclean claims: 0 when they tell of a body's end, or of anything else that
    /// goes on. Not when they only say what is waited for.
    pub(super) fn takes_back_unclean(&mut self, records: &[Record]) -> bool {
        let goes_on = |record: &Record| match &record.body {
            Body::Waiting(_) | Body::Control(_) => false,
            Body::Attempt { state, .. } => matches!(state, AttemptState::Failed { .. }),
            _ => true,
        };
        if self.unclean.claims == 0 || !records.iter().any(goes_on) {
            return false;
        }
        self.unclean.claims = 0;
        true
    }

    /// Whether the run is being let go of in the middle of something: its row has to say so, or the next owner takes this one for
    /// dead.
    pub(super) fn releases(&self) -> bool {
        self.phase == Phase::Live && self.draining && self.alive == 0
    }
}
