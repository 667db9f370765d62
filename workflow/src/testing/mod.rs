//! Tests of workflows. The [guide](crate::guide::testing) shows them in use.
//!
//! | what | for |
//! |---|---|
//! | [`crash_everywhere`] | a crash at each commit and each await, and the same outcome after each: feature `testing` |
//! | [`engine`] | an engine in memory whose clock jumps over sleeps: feature `testing` |
//! | [`Steps`] | steps that are stood in for, that fail, hang, or come late, by location: feature `testing` |
//! | [`expect`] | what a history has to say |
//! | [`replay()`], [`Replay`] | a history that was kept, against the code of today |
//!
//! The feature belongs to the tests alone, `[dev-dependencies] workflow = { features = ["testing"] }`: it brings tokio's virtual time.

#[cfg(feature = "testing")]
mod crash;
mod expect;
#[cfg(feature = "testing")]
mod place;
mod replay;
#[cfg(feature = "testing")]
mod steps;
#[cfg(feature = "testing")]
mod virtual_time;

#[cfg(feature = "testing")]
pub use crash::{Broken, CrashEverywhere, Crashes, crash_everywhere};
pub use expect::{Expect, expect};
pub use replay::{
    Frontier, History, HistoryError, ImportError, ReadError, Replay, ReplayError, Replayed, read,
    replay,
};
#[cfg(feature = "testing")]
pub use steps::{Fault, Steps, typed};
#[cfg(feature = "testing")]
pub use virtual_time::{BEGINNING, engine};
