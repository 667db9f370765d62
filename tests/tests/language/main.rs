//! The whole language over the real engine: messages, carried loops, blocks, versions and children.
#![allow(
    clippy::unwrap_used,
    clippy::too_long_first_doc_paragraph,
    reason = "tests"
)]
#![allow(clippy::cast_possible_truncation, reason = "the numbers are small")]

mod attempt;
mod blocks;
mod carry;
mod children;
mod control;
mod gates;
mod host;
mod mailbox;
mod messages;
mod progress;
mod pruning;
mod requests;
mod rollback;
mod undo;
mod values;
mod versions;
