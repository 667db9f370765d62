//! Floor 0: what a run's history is, and how code is replayed over it. No clock, no IO, no async, no features.

#![deny(clippy::disallowed_methods)]

mod divergence;
mod failure;
mod history;
mod id;
mod json;
mod location;
mod machine;
mod payload;
mod record;
mod retry;
mod rewind;
mod site;
mod state;
mod terms;
mod time;

pub use divergence::{Divergence, Issued, Now, Recorded};
pub use failure::{Failure, FailureKind};
pub use history::{History, ImportError};
pub use id::{CodeId, InvalidRunId, RunId, RunKey};
pub use location::{Location, MalformedLocation, Segment, Segments};
pub use machine::{
    Alive, Attempt, Batch, CHILD_ENDED, ChildStart, Claim, Container, Ending, Entered, Frontier,
    Held, HistoryError, Incoming, Issue, Keeping, Kept, Ledger, LedgerEntry, Member, Noted, Noting,
    Op, Outcome, Phase, Pinned, Replay, Scope, Sent, Standing, Suspend, Ticket, Undoing, Unwinding,
    Wanted, base_of, ledger_location, newest_positions, position_location,
};
pub use payload::Payload;
pub use record::{
    AttemptState, Begun, Body, Control, Ended, Finished, Message, NewMessage, Opened, Record,
    Waiting,
};
pub use retry::Backoff;
pub use rewind::{Recovery, Rewind, RewindError, fork};
pub use site::{Kind, Site};
pub use state::{ParkReason, RunState};
pub use terms::Terms;
pub use time::Timestamp;
