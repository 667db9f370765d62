//! Durable functions: ordinary async Rust that survives crashes, deploys and long waits.
//!
//! # The model
//!
//! A **workflow** is an async function marked `#[workflow]`. Each time it is started, under an id of your choice, that
//! is a **run**. Everything durable it does stands at a **site**: a call of a `#[step]` function, a `sleep!`, a `join!`,
//! and so on. Each site has a **name**, taken from what you wrote (the called function, a macro's first word, a loop's
//! label), and in one **scope** every name stands once; the compiler refuses a second one. The path of names down to a site
//! is its **location**: `settle/paid/payment`, `items[3]/ship`.
//!
//! The engine keeps a **history** of each run: what every site gave, in one order. When the process dies, the function is
//! called again with the same input, and every site that is recorded gives what it gave before, without doing anything:
//! that is **replay**. Where the history ends, at the **frontier**, the function goes on for real. So an effect that is
//! recorded is never had twice; one that was cut off before it was recorded is had again.
//!
//! This works because nothing but recorded values decides where the code goes. In a `#[workflow]` body every `.await` is a
//! durable operation, and the type system checks it; clocks, randomness and the like are refused by the macro. What touches
//! the world stands in a **step**.
//!
//! ```
//! use workflow::{Engine, Failure, MemoryStore, join, sleep, step, workflow};
//!
//! /// Touches the world: runs until it succeeds (or its retries are used up), and is recorded then.
//! #[step(retries = 5, timeout = "10s")]
//! async fn reserve(item: &str) -> Result<u32, std::io::Error> {
//!     Ok(item.len() as u32)
//! }
//!
//! #[step]
//! async fn charge(cents: u32) -> Result<String, std::io::Error> {
//!     Ok(format!("paid {cents}"))
//! }
//!
//! #[workflow]
//! async fn order(item: String) -> Result<String, Failure> {
//!     let cents = reserve(&item).await?; // recorded at `reserve`
//!     sleep!(cool_off, "50ms").await; // recorded at `cool_off`; not in memory when it is long
//!     let (receipt, again) = join!(
//!         settle,
//!         paid = charge(cents).await?, // recorded at `settle/paid/charge`
//!         checked = reserve(&item).await?,
//!     )
//!     .await?;
//!     assert_eq!(cents, again);
//!     Ok(receipt)
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), workflow::Error> {
//! let engine = Engine::builder().workflow(order).store(MemoryStore::new()).build().await?;
//! let receipt = engine.run("order-17", order("book".to_owned())).await?;
//! assert_eq!(receipt, "paid 4");
//! // The same id and input are the same run: nothing is done twice.
//! assert_eq!(engine.run("order-17", order("book".to_owned())).await?, receipt);
//! # Ok(())
//! # }
//! ```
//!
//! # What goes wrong, and what happens then
//!
//! - **A step fails**: it is retried by its policy, and what it gives at last, value or [`Failure`], is recorded. `?` lets
//!   the failure end the workflow; without it, it is data.
//! - **The process dies**: the run goes on when an engine opens the store again. A body that was cut off has had an attempt; one that
//!   keeps ending the process fails when its attempts are used up, and its run is driven alone meanwhile.
//! - **The code changes under a live run**: each scope's sites must come in the recorded order. The first thing that does
//!   not fit is a *divergence*: found before anything is run, reported with location, recorded, issued and the source line,
//!   and the run is *parked*, untouched, until code that fits is deployed. [`EngineBuilder::preflight`] says before a deploy which
//!   runs that would be, and [`testing`] replays kept histories in `cargo test`.
//! - **A run failed, or went wrong**: [`RunHandle::recover`] retries what it failed by, [`RunHandle::rewind`] takes it back to a
//!   location, [`RunHandle::fork`] does that in a copy.
//! - **The store fails**: no attempt is used up, what a step gave is kept and written again.
//!
//! # Where things are
//!
//! The [`guide`](mod@guide) begins with a [tutorial](guide::tutorial), has a page per construct, and tells what is guaranteed.
//!
//! [`macro@workflow`], [`macro@step`], [`macro@fragment`] mark functions. In their bodies stand:
//!
//! - [`sleep!`], [`recv!`] and [`send!`] over a [`Channel`], [`now!`], [`uuid!`], [`random!`];
//! - [`join!`], [`race!`], [`join_all!`], labelled loops with `#[key]` or `#[carry]`;
//! - [`attempt!`]; [`checkpoint!`], `#[step(undo(..))]` and [`settle!`]; [`version!`] and [`removed!`]; [`progress!`];
//! - other workflows, awaited as a [`Call`].
//!
//! [`Engine`] runs workflows over a [`Store`](store::Store): [`MemoryStore`] for tests, [`RedbStore`] for one file on disk.
//! [`operation`] has units of work that show a person how they go on, in a step's body or in any tokio program.
//! [`Graph`] is the picture of a workflow, `checkout::GRAPH`; [`RunHandle::graph`] lays a run over it.
//! The [guide](guide::schedules) tells how runs are started by the calendar, with feature `schedules`.
//! [`current_step`] tells a step's body which attempt it is and gives it an idempotency key. [`replay`] is the machine
//! underneath, without clock, IO or runtime.
//!
//! # Features
//!
//! | feature | default | brings |
//! |---|---|---|
//! | `engine` | yes | the engine, on tokio |
//! | `redb` | yes | the store in one file |
//! | `axum` | no | the HTTP API of an engine, `http::router(engine)`; errors as responses |
//! | `dashboard` | no | the dashboard of an engine, `dashboard::router(engine)` |
//! | `openapi` | no | the description of that API |
//! | `metrics` | no | what happens, told to the `metrics` facade |
//! | `testing` | no | tests of workflows: crashes everywhere, time that jumps, steps that fail |
//! | `schedules` | no | runs that the engine starts by the calendar: the [guide](guide::schedules) |
//! | `conformance` | no | the laws of storage as a test suite for a store of your own |
//! | `cli` | no | the command `workflow`: the [guide](guide::cli) says what it does |

#![cfg_attr(docsrs, feature(doc_cfg))]

// What expansions say to name this crate, also from within it.
#[allow(unused_extern_crates, reason = "named by expansions")]
extern crate self as workflow;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
#[cfg(feature = "engine")]
mod clock;
mod codec;
#[doc(hidden)]
pub mod context;
#[cfg(feature = "dashboard")]
pub mod dashboard;
#[cfg(feature = "engine")]
mod engine;
#[cfg(feature = "engine")]
mod error;
pub mod graph;
#[cfg(all(feature = "engine", feature = "redb"))]
pub mod guide;
#[cfg(feature = "engine")]
pub mod guided;
#[cfg(feature = "axum")]
pub mod http;
mod lock;
mod macros;
#[cfg(feature = "engine")]
pub mod operation;
pub mod replay;
#[cfg(feature = "schedules")]
pub mod schedule;
pub mod store;
#[cfg(feature = "engine")]
pub mod testing;

pub use bytes::Bytes;
pub use graph::Graph;
pub use uuid::Uuid;
#[cfg(feature = "engine")]
pub use workflow_macros::guided;
pub use workflow_macros::{fragment, lock, step, workflow};

pub use codec::{Codec, Json};
pub use context::{
    Blocked, Call, Cancellation, Channel, Critical, CurrentStep, Detached, Fragment, OneWay,
    Output, PutError, Random, Recorded, Request, Step, ToRun, Won, Workflow, blocked, critical,
    current_step, try_current_step,
};
#[cfg(feature = "engine")]
pub use engine::{
    AnyWorkflow, AttachError, BuildError, Cancel, CancelError, Clock, ControlError, Definition,
    DeleteError, Engine, EngineBuilder, ErrorEvent, Limit, MissingState, ParkedRun, Preflight,
    PreflightFinding, PreflightProgress, PreflightReport, Queued, Rate, RequestError, Retention,
    Retry, Rewound, RunHandle, SendError, SkipUndoError, StartError, StartJson, Status, Swept,
    SystemClock, TokioClock, Watch, Watched,
};
#[cfg(feature = "schedules")]
pub use engine::{Backfilled, ScheduleError, ScheduleHandle, ScheduleStatus};
#[cfg(feature = "engine")]
pub use error::Error;
pub use replay::{
    Backoff, Divergence, Failure, FailureKind, History, InvalidRunId, Kind, Location, ParkReason,
    Payload, Record, RunId, RunState, Site, Timestamp,
};
#[cfg(feature = "schedules")]
pub use schedule::{Cron, Firing, Fold, Gap, Missed, Overlap, Schedule};
pub use store::MemoryStore;
#[cfg(feature = "redb")]
pub use store::RedbStore;
