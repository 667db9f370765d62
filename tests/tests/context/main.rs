//! The futures a workflow awaits, over a machine driven by hand: no runtime, no store, and a clock that is told.
//!
//! What the attributes write is written out here, so these tests do not depend on the macro crate.

#![allow(
    unused_braces,
    unused_qualifications,
    reason = "expansions, written out"
)]
#![allow(
    clippy::unit_arg,
    clippy::needless_borrow,
    reason = "expansions, written out"
)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod attempts;
mod branches;
mod derived;
mod driver;
mod fan_out;
mod inputs;
mod loops;
mod records;
