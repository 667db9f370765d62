//! An engine for tests: in memory, and with a clock that jumps.

use std::time::Instant;

use crate::engine::{Engine, EngineBuilder, TokioClock};
use crate::replay::Timestamp;
use crate::store::MemoryStore;

/// What the clock of [`engine`] says at first: the beginning of 2030, in UTC.
pub const BEGINNING: Timestamp = Timestamp::from_millis(1_893_456_000_000);

/// An engine for a test, in memory: add the workflows and states, and build it. Its time jumps: whenever all runs wait, and all else in the
/// test's runtime does, it is at once when the first of them goes on. A sleep of a year takes no time at all, and what comes after
/// what is always the same.
///
/// The clock says [`BEGINNING`] when this is called. It is that of tokio, which this pauses: `tokio::time::sleep` and `timeout` in the test,
/// and in bodies of steps, jump along with it. What waits for something that is not tokio's, a socket of a real service say, does
/// not hold the clock back, and its timeouts come at once: mock such steps ([`Steps`](super::Steps)).
///
/// ```
/// use workflow::{Failure, now, sleep, testing, workflow};
///
/// #[workflow]
/// async fn reminder() -> Result<u64, Failure> {
///     let before = now!(before).await;
///     sleep!(wait, "30d").await;
///     Ok(now!(after).await.since(before).as_secs())
/// }
///
/// # #[tokio::main(flavor = "current_thread")] // as `#[tokio::test]`
/// # async fn main() -> Result<(), workflow::Error> {
/// let engine = testing::engine().workflow(reminder).build().await?;
/// assert_eq!(engine.run("r", reminder()).await?, 30 * 86_400);
/// # Ok(())
/// # }
/// ```
///
/// # Panics
/// Outside of a tokio runtime of one thread, which `#[tokio::test]` makes.
pub fn engine() -> EngineBuilder {
    if !is_paused() {
        tokio::time::pause();
    }
    Engine::builder()
        .store(MemoryStore::new())
        .clock(TokioClock::starting_at(BEGINNING))
}

/// Whether tokio's time stands still: then it is not the time of now. Tokio does not tell, and pausing twice panics.
fn is_paused() -> bool {
    let before = Instant::now();
    let tokio = tokio::time::Instant::now().into_std();
    !(before..=Instant::now()).contains(&tokio)
}
