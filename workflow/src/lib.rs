//! Durable functions: ordinary async Rust that survives crashes, deploys and long waits.

// What expansions say to name this crate, also from within it.
#[allow(unused_extern_crates, reason = "named by expansions")]
extern crate self as workflow;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod codec;
#[doc(hidden)]
pub mod context;
mod macros;
pub mod replay;
pub mod store;

pub use bytes::Bytes;
pub use uuid::Uuid;
pub use workflow_macros::{fragment, step, workflow};

pub use codec::{Codec, Json};
pub use context::{
    Call, Cancellation, Critical, CurrentStep, Fragment, Output, Random, Recorded, Step, Won,
    Workflow, critical, current_step, try_current_step,
};
pub use replay::{
    Backoff, Divergence, Failure, FailureKind, InvalidRunId, Kind, Location, ParkReason, Payload,
    Record, RunId, RunState, Site, Timestamp,
};
pub use store::MemoryStore;
#[cfg(feature = "redb")]
pub use store::RedbStore;
