//! The engine as its users see it: programs with the real macros, over a store that survives it, in paused time.
#![allow(
    clippy::unwrap_used,
    clippy::too_long_first_doc_paragraph,
    reason = "tests"
)]

mod any;
mod branches;
mod cuts;
mod delays;
mod either;
mod extremes;
mod handle;
mod leaving;
mod limits;
mod locked;
mod parking;
mod preflight;
mod priorities;
mod races;
mod rates;
mod recovery;
mod replays;
mod reports;
mod restarts;
mod retention;
mod sleep;
mod steps;
mod unclean;
mod undriven;
