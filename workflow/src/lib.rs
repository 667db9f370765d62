//! Durable functions: ordinary async Rust that survives crashes, deploys and long waits.

pub use bytes::Bytes;

pub mod replay;
pub mod store;

pub use replay::{
    Backoff, Divergence, Failure, FailureKind, InvalidRunId, Kind, Location, ParkReason, Payload,
    Record, RunId, RunState, Site, Timestamp,
};
pub use store::MemoryStore;
#[cfg(feature = "redb")]
pub use store::RedbStore;
