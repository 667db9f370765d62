//! Tests of workflows.
//!
//! | what | for |
//! |---|---|
#![cfg_attr(
    feature = "testing",
    doc = "| [`crash_everywhere`] | a crash at each commit and each await, and the same outcome and effects after each |",
    doc = "| [`crash_driven`] | the same for guided flows, and for several runs |",
    doc = "| [`engine`] | an engine in memory whose clock jumps over waits |",
    doc = "| [`Steps`] | steps that are stood in for, that fail, hang, or come late, by location |"
)]
//! | [`expect`] | what a history has to say |
//! | [`replay()`], [`Replay`] | a history that was kept, against the code of today |
//!
//! The last two are always there. The feature `testing` has the others, and the guide a page on them all; it belongs to the tests alone,
//! `[dev-dependencies] workflow = { features = ["testing"] }`, for it brings tokio's virtual time.

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
pub use crash::{Broken, CrashEverywhere, Crashes, Driven, crash_driven, crash_everywhere};
pub use expect::{Expect, expect};
pub use replay::{
    Frontier, History, HistoryError, ImportError, ReadError, Replay, ReplayError, Replayed, read,
    replay,
};
#[cfg(feature = "testing")]
pub use steps::{Fault, Steps, typed};
#[cfg(feature = "testing")]
pub use virtual_time::{BEGINNING, engine};
