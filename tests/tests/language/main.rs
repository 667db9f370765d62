//! The whole language over the real engine: messages, carried loops, blocks, versions and children.
#![allow(
    clippy::unwrap_used,
    clippy::too_long_first_doc_paragraph,
    reason = "tests"
)]

mod attempt;
mod carry;
mod children;
mod messages;
mod requests;
mod rollback;
mod undo;
mod versions;
