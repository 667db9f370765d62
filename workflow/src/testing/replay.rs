//! Tests of workflows against what runs of them have recorded.
//!
//! A run's history is exported once, from a live engine, and kept beside the tests. Each build then replays it against the code of
//! that day, in microseconds, without a store, a runtime or a clock, and without running any step: the test fails when the code no
//! longer fits, with the report that the run would be parked with.
//!
//! ```
//! use workflow::testing::{self, Replay, Replayed};
//! use workflow::{Engine, Failure, MemoryStore, sleep, step, workflow};
//!
//! #[derive(Clone)]
//! struct Stock;
//!
//! #[step]
//! async fn reserve(stock: &Stock, item: &str) -> u32 {
//!     item.len() as u32
//! }
//!
//! #[workflow]
//! async fn order(item: String, #[state] stock: Stock) -> Result<u32, Failure> {
//!     let held = reserve(&stock, &item).await?;
//!     sleep!(pause, "1h").await;
//!     Ok(held)
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Once, where the run is:
//! let engine = Engine::builder().workflow(order).state(Stock).store(MemoryStore::new()).build().await?;
//! let run = engine.start("order-17", order("book".to_owned())).await?;
//! # run.watch(3).next().await?;
//! # let dir = tempfile::tempdir()?;
//! # let file = dir.path().join("order-17.json");
//! std::fs::write(&file, run.export().await?.to_json())?;
//!
//! // In a test, from then on:
//! let history = testing::read(&file)?;
//! let replayed = Replay::of(order).state(Stock).over(&history)?;
//! assert!(replayed.waits_at("pause"));
//! # Ok(())
//! # }
//! ```
//!
//! A workflow without `#[state]` parameters needs less: `testing::replay(order, &history)?`.

use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::codec::{self, Codec, Json};
use crate::context::{Args, Output, Park, Run, States, Workflow};
use crate::engine::rehearsal::{Gate, Silent, caught, rehearse};
use crate::engine::{Definition, undo_missing, undone_after};
use crate::replay::{
    Body, CodeId, Divergence, Failure, Finished, Ledger, Now, ParkReason, Record, Recorded,
    Replay as Machine, RunState, Standing,
};

pub use crate::replay::{Frontier, History, HistoryError, ImportError};

/// Reads a history from a file, as [`History::to_json`] wrote it.
///
/// # Errors
/// [`ReadError`], which names the file, and what is wrong in it and where.
pub fn read(path: impl AsRef<Path>) -> Result<History, ReadError> {
    let path = path.as_ref();
    let at = || path.to_owned();
    let text =
        std::fs::read_to_string(path).map_err(|source| ReadError::File { path: at(), source })?;
    History::from_json(&text).map_err(|source| ReadError::Import { path: at(), source })
}

/// Why a history could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file could not be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// What is in it is no history.
    #[error("{}: {source}", path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: ImportError,
    },
}

/// Replays a history against a workflow that has no `#[state]` parameters. [`Replay`] is for those that have.
///
/// # Errors
/// As [`Replay::over`].
pub fn replay<Arguments, F: Definition<Arguments>>(
    workflow: F,
    history: &History,
) -> Result<Replayed<Output<F::Workflow>>, ReplayError> {
    Replay::of(workflow).over(history)
}

/// A replay under construction: a workflow, and what its code is given.
///
/// A state is only handed to the workflow's code, whose steps are not run: it may be one that is not connected to anything.
#[must_use = "help: end it with `.over(&history)`"]
pub struct Replay<W> {
    states: Arc<States>,
    codec: Arc<dyn Codec>,
    workflow: PhantomData<fn() -> W>,
}

impl<W: Workflow> Replay<W> {
    /// A replay of this workflow: `Replay::of(checkout)`.
    pub fn of<Arguments, F: Definition<Arguments, Workflow = W>>(_workflow: F) -> Self {
        Self {
            states: Arc::default(),
            codec: Arc::new(Json),
            workflow: PhantomData,
        }
    }

    /// Gives a value to the `#[state]` parameters of its type.
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, state: T) -> Self {
        // Nobody else holds it before it is used.
        if let Some(states) = Arc::get_mut(&mut self.states) {
            states.insert(state);
        }
        self
    }

    /// How the values of the history were sealed. Plain JSON when nothing is said.
    pub fn codec(mut self, codec: impl Codec + 'static) -> Self {
        self.codec = Arc::new(codec);
        self
    }

    /// Replays a history against the code, up to where the code would do something new. No step is run, and no time passes.
    ///
    /// The history of a run that has ended is replayed, too: the code has to come to an end, too, and to the same kind of end. What
    /// it ends with is given, and not compared: compare it where it matters. A run that was cancelled may stand anywhere.
    ///
    /// # Errors
    /// [`ReplayError`]: the run would not go on with this code, or a state is missing.
    pub fn over(self, history: &History) -> Result<Replayed<Output<W>>, ReplayError> {
        if history.workflow() != W::NAME {
            return Err(ReplayError::OtherWorkflow {
                recorded: history.workflow().to_owned(),
                given: W::NAME,
            });
        }
        if let Some(state) = (W::states().into_iter()).find(|state| !self.states.has(state)) {
            return Err(ReplayError::MissingState {
                workflow: W::NAME,
                parameter: state.parameter,
                type_name: state.type_name,
            });
        }
        let mut waiting = Vec::new();
        let gate = caught(|| self.rehearse(history, &mut waiting));
        let ended = match gate {
            Gate::Diverged(divergence) => return Err(ReplayError::Diverged(Box::new(divergence))),
            Gate::Parks(Park { reason, detail, .. }) => {
                return Err(ReplayError::Parked { reason, detail });
            }
            Gate::Ended(finished) => Some(finished),
            Gate::Open => None,
        };
        let recorded = End::of(history.records());
        match (recorded, &ended) {
            (End::Completed, Some(Finished::Completed(_)))
            | (End::Failed, Some(Finished::Failed(_)))
            // One that was cancelled was on its way there, perhaps.
            | (End::Open | End::Cancelled, _) => {}
            (End::Completed | End::Failed, None) => return Err(more(waiting)),
            (recorded, Some(found)) => {
                return Err(ReplayError::OtherEnd {
                    recorded: recorded.word(),
                    found: found.clone(),
                });
            }
        }
        let unwinds = Ledger::of(history.records());
        if unwinds.unwinds().is_some()
            && history.finished().is_none()
            && let Some(park) = undo_missing(&unwinds, W::UNDOS)
        {
            let Park { reason, detail, .. } = park;
            return Err(ReplayError::Parked { reason, detail });
        }
        self.replayed(ended, waiting)
    }

    fn rehearse(&self, history: &History, waiting: &mut Vec<Frontier>) -> Gate {
        let records = history.records();
        let now = records.last().map(|last| last.at).unwrap_or_default();
        let row = Standing {
            state: RunState::Running,
            ..Standing::default()
        };
        let parks = |reason, detail| {
            Gate::Parks(Park {
                reason,
                detail,
                location: None,
            })
        };
        // What follows the code's end is not the code's.
        let of_code = records.iter().take_while(|record| !ends(record)).cloned();
        let machine = match Machine::load(of_code.collect(), CodeId::default(), row) {
            Ok(machine) => machine,
            Err(error) => return parks(ParkReason::NewerFormat, error.to_string()),
        };
        let run = Run::new(
            history.id().clone(),
            machine,
            Arc::new(Silent { now }),
            Arc::clone(&self.codec),
            usize::MAX,
        );
        let states = Arc::clone(&self.states);
        let args = Args::new(Arc::clone(&run), history.input(), states);
        match args.and_then(W::run) {
            Ok(body) => {
                let gate = rehearse(&run, body, Some(waiting));
                // What became of one that has ended is known.
                match End::of(records) {
                    End::Open => undone_after(gate, &run, W::UNDOS),
                    _ => gate,
                }
            }
            Err(error) => Gate::Parks(error.park()),
        }
    }

    fn replayed(
        &self,
        ended: Option<Finished>,
        waiting: Vec<Frontier>,
    ) -> Result<Replayed<Output<W>>, ReplayError> {
        match ended {
            None | Some(Finished::Cancelled) => Ok(Replayed::Waits(waiting)),
            Some(Finished::Failed(failure)) => {
                Ok(Replayed::Failed(codec::open_failure(&*self.codec, failure)))
            }
            Some(Finished::Completed(payload)) => {
                let value = codec::open(&*self.codec, &payload)
                    .and_then(|json| Ok(serde_json::from_slice(&json)?));
                value
                    .map(Replayed::Completed)
                    .map_err(|error| ReplayError::Parked {
                        reason: ParkReason::Encode,
                        detail: format!("the workflow's result does not read back: {error}"),
                    })
            }
        }
    }
}

impl<W: Workflow> fmt::Debug for Replay<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Replay").field(&W::NAME).finish()
    }
}

/// What a replay came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replayed<T> {
    /// Everything recorded fits, and the code is at these operations, which are not recorded to have ended.
    Waits(Vec<Frontier>),
    /// Everything recorded fits, and the code came to its end with this value.
    Completed(T),
    /// Everything recorded fits, and the code came to its end with this failure.
    Failed(Failure),
}

impl<T> Replayed<T> {
    /// Whether the code is at the operation of this location, as text: `settle/window`, `items[3]/ship`.
    pub fn waits_at(&self, location: &str) -> bool {
        match self {
            Self::Waits(at) => at.iter().any(|at| at.location.to_string() == location),
            Self::Completed(_) | Self::Failed(_) => false,
        }
    }

    /// The value that the code came to.
    pub fn completed(self) -> Option<T> {
        match self {
            Self::Completed(value) => Some(value),
            Self::Waits(_) | Self::Failed(_) => None,
        }
    }

    /// The failure that the code came to.
    pub fn failed(self) -> Option<Failure> {
        match self {
            Self::Failed(failure) => Some(failure),
            Self::Waits(_) | Self::Completed(_) => None,
        }
    }
}

/// Why a run with this history would not go on with this code.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// It is the history of a run of another workflow.
    #[error("the history is one of workflow `{recorded}`, not of `{given}`")]
    OtherWorkflow {
        /// The history's workflow.
        recorded: String,
        /// The workflow given.
        given: &'static str,
    },
    /// The workflow needs a state that was not given.
    #[error("workflow `{workflow}` needs `{parameter}: {type_name}`: give it with `.state(..)`")]
    MissingState {
        /// The workflow.
        workflow: &'static str,
        /// Its parameter.
        parameter: &'static str,
        /// The parameter's type.
        type_name: &'static str,
    },
    /// The code does not fit the history.
    #[error("{0}")]
    Diverged(Box<Divergence>),
    /// The run would be parked: a value does not decode, a version is not known, the code panicked.
    #[error("it would be parked ({reason}): {detail}")]
    Parked {
        /// Why.
        reason: ParkReason,
        /// The whole report.
        detail: String,
    },
    /// The code came to another kind of end than the run did.
    #[error(
        "the run {recorded}, and with this code it would end otherwise: {}",
        told(found)
    )]
    OtherEnd {
        /// How it ended: `completed` or `failed`.
        recorded: &'static str,
        /// How it ends now.
        found: Finished,
    },
}

impl ReplayError {
    /// Where the code and the history part, if that is what it is.
    pub fn divergence(&self) -> Option<&Divergence> {
        match self {
            Self::Diverged(divergence) => Some(divergence),
            _ => None,
        }
    }
}

fn told(finished: &Finished) -> String {
    match finished {
        Finished::Completed(_) => "it completes".to_owned(),
        Finished::Failed(failure) => format!("it fails: {failure}"),
        Finished::Cancelled => "it is cancelled".to_owned(),
    }
}

/// How the code of a recorded run ended, whatever became of the run then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Completed,
    Failed,
    Cancelled,
}

impl End {
    fn of(records: &[Record]) -> Self {
        let end = records.iter().find(|record| ends(record));
        match end.map(|end| &end.body) {
            Some(Body::Finished(Finished::Completed(_))) => Self::Completed,
            Some(Body::Finished(Finished::Failed(_)) | Body::Unwinding { cause: Some(_) }) => {
                Self::Failed
            }
            Some(_) => Self::Cancelled,
            None => Self::Open,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Open => "went on",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "was cancelled",
        }
    }
}

fn ends(record: &Record) -> bool {
    matches!(record.body, Body::Finished(_) | Body::Unwinding { .. })
}

/// The run had ended where the code goes on: the first thing that is too many is what is told.
fn more(waiting: Vec<Frontier>) -> ReplayError {
    match waiting.into_iter().next() {
        Some(first) => ReplayError::Diverged(Box::new(Divergence {
            location: first.location,
            recorded: Recorded::End,
            issued: crate::replay::Issued::Site(first.site),
            now: Now::At(first.site),
            standing: Vec::new(),
        })),
        // Only the end of an iteration is no operation.
        None => ReplayError::Parked {
            reason: ParkReason::Diverged,
            detail: "the run had ended, and the code goes on with another iteration".to_owned(),
        },
    }
}
