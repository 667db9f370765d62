//! When a run begins, and before whom.

use std::time::Duration;

use super::Timestamp;

/// When a run begins, and before whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terms {
    /// Not before; at once if nothing is said.
    pub begins: Option<Begins>,
    /// Its priority. A child has its parent's if nothing is said, any other run 0.
    pub priority: Option<i32>,
}

/// Before when a run does not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// So long after it was stored.
    After(Duration),
    /// That time.
    At(Timestamp),
}

impl Terms {
    /// Before when a run that is stored now does not begin. Nothing when that is no longer ahead.
    pub fn not_before(&self, now: Timestamp) -> Option<Timestamp> {
        let at = match self.begins? {
            Begins::After(delay) => now.after(delay),
            Begins::At(at) => at,
        };
        (at > now).then_some(at)
    }
}
