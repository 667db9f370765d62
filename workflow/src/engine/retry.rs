//! How the engine itself waits and tries again.

use std::time::Duration;

/// How often a batch is written again before the drive is given up for now: about a minute in all.
pub(crate) const STORAGE_ATTEMPTS: u32 = 12;

/// When a drive was given up because the store failed, the run is tried again after this.
pub(crate) const STORAGE_PAUSE: Duration = Duration::from_secs(30);

/// An inbox that could not be read is read again after this.
pub(crate) const INBOX_PAUSE: Duration = Duration::from_secs(1);

/// How long to wait before a batch is written for the so-manieth time again.
pub(crate) fn storage(attempt: u32) -> Duration {
    Duration::from_millis(10 << attempt.min(10)).min(Duration::from_secs(10))
}
