//! `workflow::testing` in the hands of users: what it says of workflows that are right, and what it finds in those that are not.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

mod corners;
mod crashes;
mod found;
mod guides;
mod language;
mod steps;
