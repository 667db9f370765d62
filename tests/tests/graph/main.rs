//! The picture of a workflow, and of a run: as a user sees them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod order;
mod pictures;
mod runs;
