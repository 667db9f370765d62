//! When a run begins, and before whom.

use std::time::Duration;

use super::Timestamp;

/// When a run begins, and before whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terms {
    /// So long after it was stored, and no sooner.
    pub delay: Option<Duration>,
    /// Nor before this time.
    pub not_before: Option<Timestamp>,
    /// Its priority. A child has its parent's if nothing is said, any other run 0.
    pub priority: Option<i32>,
}

impl Terms {
    /// Before when a run that is stored now does not begin. Nothing when that is no longer ahead.
    pub fn not_before(&self, now: Timestamp) -> Option<Timestamp> {
        let delayed = self.delay.map(|delay| now.after(delay));
        let at = delayed.max(self.not_before)?;
        (at > now).then_some(at)
    }
}
