//! Where what runs on tokio takes the time from: the engine, and operations.

use std::fmt;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::replay::Timestamp;

/// Tells the time. The only source of it: deadlines, records and rows all carry what this says.
///
/// Waiting is tokio's; a clock that does not run with tokio's time makes wake-ups early or late, never lost.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// The present instant.
    fn now(&self) -> Timestamp;

    /// How long an engine waits at most before it asks again, so that it notices when the clock was set forward: 10 seconds, unless it
    /// says otherwise; a second at least, and 30 days at most. One that is never set may say more: then a virtual clock jumps far.
    fn longest_wait(&self) -> Duration {
        Duration::from_secs(10)
    }
}

/// The computer's clock. The default.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }
}

/// A clock that starts at a given instant and runs with tokio's time: paused and advanced with it in tests.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// use std::time::Duration;
/// use workflow::{Clock, Timestamp, TokioClock};
///
/// let clock = TokioClock::starting_at(Timestamp::from_millis(1_000));
/// tokio::time::sleep(Duration::from_secs(3_600)).await; // paused time: at once
/// assert_eq!(clock.now(), Timestamp::from_millis(3_601_000));
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    start: Timestamp,
    since: Instant,
}

impl TokioClock {
    /// A clock that says `start` now.
    pub fn starting_at(start: Timestamp) -> Self {
        Self {
            start,
            since: Instant::now(),
        }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        // Whole milliseconds, rounded down: tokio's timers fire at or after the instant they were set for.
        self.start.after(Duration::from_millis(
            u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX),
        ))
    }

    /// A day: nobody sets it.
    fn longest_wait(&self) -> Duration {
        Duration::from_secs(86_400)
    }
}
