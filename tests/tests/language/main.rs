//! The whole language over the real engine: messages, carried loops, blocks, versions and children.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod attempt;
mod carry;
mod children;
mod control;
mod messages;
mod progress;
mod requests;
mod versions;
