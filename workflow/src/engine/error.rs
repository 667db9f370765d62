//! What can go wrong when an engine is built, a run is started, or a run is asked for.

use crate::replay::{InvalidRunId, ParkReason, RunId, RunState};
use crate::store::StoreError;

/// Why an engine could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No store was given.
    #[error("the engine has no store: give it one with `.store(..)`, or a file with `.open(..)`")]
    NoStore,
    /// Two workflows have one name.
    #[error(
        "two workflows are called `{name}`: {first} and {second}; give one another name: `#[workflow(name = \"..\")]`"
    )]
    SameName {
        /// The name.
        name: &'static str,
        /// The path of the one registered first.
        first: &'static str,
        /// The path of the other.
        second: &'static str,
    },
    /// A workflow needs a state that was not given.
    #[error("workflow `{workflow}` needs `{parameter}: {type_name}`: give it with `.state(..)`")]
    MissingState {
        /// The workflow.
        workflow: &'static str,
        /// Its parameter.
        parameter: &'static str,
        /// The parameter's type.
        type_name: &'static str,
    },
    /// Something was said of a workflow that the engine does not have.
    #[error(
        "the engine was given a {what} of workflow `{workflow}`, and not the workflow: add `.workflow({workflow})`"
    )]
    NotRegistered {
        /// The workflow.
        workflow: &'static str,
        /// What was said of it.
        what: &'static str,
    },
    /// Two schedules have one name.
    #[cfg(feature = "schedules")]
    #[error(
        "two schedules are called `{name}`: give one of them another name, for their runs are called by it"
    )]
    SameSchedule {
        /// The name.
        name: String,
    },
    /// A schedule cannot be kept.
    #[cfg(feature = "schedules")]
    #[error(transparent)]
    Schedule(#[from] crate::schedule::ScheduleFault),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a run could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The id cannot be one.
    #[error(transparent)]
    InvalidId(#[from] InvalidRunId),
    /// The workflow was not given to the engine.
    #[error(
        "workflow `{workflow}` is not registered with this engine: add `.workflow({workflow})` to its builder"
    )]
    NotRegistered {
        /// The workflow.
        workflow: &'static str,
    },
    /// No workflow of that name was given to the engine.
    #[error("there is no workflow `{workflow}` here; {}", known_ones(known))]
    UnknownWorkflow {
        /// The name.
        workflow: String,
        /// Those that there are.
        known: Vec<&'static str>,
    },
    /// The id belongs to a run of another workflow.
    #[error("run `{id}` is one of workflow `{existing}`, not of `{requested}`: use another id")]
    OtherWorkflow {
        /// The id.
        id: RunId,
        /// The workflow of the run that has it.
        existing: String,
        /// The workflow asked for.
        requested: &'static str,
    },
    /// The id belongs to a run with another input.
    #[error("run `{id}` was started with another input: use another id, or attach to it")]
    OtherInput {
        /// The id.
        id: RunId,
    },
    /// The input cannot be encoded, or is over the limit.
    #[error("the input of workflow `{workflow}` cannot be stored: {detail}")]
    Input {
        /// The workflow.
        workflow: &'static str,
        /// Why not.
        detail: String,
    },
    /// The engine is shutting down.
    #[error("the engine is shutting down")]
    ShuttingDown,
    /// The store failed. Whether the run was started is unknown; starting it again with the same id is safe.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn known_ones(known: &[&'static str]) -> String {
    match known {
        [] => "the engine has none".to_owned(),
        known => format!("there are `{}`", known.join("`, `")),
    }
}

/// Why a run could not be found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// There is none.
    #[error("there is no run `{id}`")]
    NotFound {
        /// The id.
        id: String,
    },
    /// It is a run of another workflow.
    #[error("run `{id}` is one of workflow `{existing}`, not of `{requested}`")]
    OtherWorkflow {
        /// The id.
        id: RunId,
        /// The workflow of the run.
        existing: String,
        /// The workflow asked for.
        requested: &'static str,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a run could not be cancelled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CancelError {
    /// There is none.
    #[error("there is no run `{id}`")]
    NotFound {
        /// The id.
        id: String,
    },
    /// It has ended already.
    #[error("run `{id}` is {state} and cannot be cancelled any more")]
    Ended {
        /// The id.
        id: RunId,
        /// How it ended.
        state: RunState,
    },
    /// The store failed. Cancelling again is safe.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a run stands still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedRun {
    /// The run.
    pub id: RunId,
    /// Why.
    pub reason: ParkReason,
    /// The whole report.
    pub detail: String,
}
