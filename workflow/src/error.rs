//! The one error for people who do not care which operation failed.

use crate::engine::{
    AttachError, BuildError, CancelError, ControlError, ParkedRun, RequestError, SendError,
    StartError,
};
use crate::replay::{Failure, InvalidRunId, RunId};
use crate::store::StoreError;

/// Whatever can come of starting, awaiting or asking for a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The workflow returned an error.
    #[error(transparent)]
    Failed(Failure),
    /// The run was cancelled.
    #[error("run `{0}` was cancelled")]
    Cancelled(RunId),
    /// The run stands still until other code is deployed or an operator acts.
    #[error("run `{}` is parked ({}): {}", .0.id, .0.reason, .0.detail)]
    Parked(ParkedRun),
    /// The run was not brought to its end before the engine was shut down. It goes on when one is started again.
    #[error("the engine was shut down; run `{0}` goes on when it is started again")]
    ShutDown(RunId),
    /// The run ended with a value that does not decode into the type asked for.
    #[error("the result of run `{id}` does not decode: {detail}")]
    Result {
        /// The run.
        id: RunId,
        /// Why not.
        detail: String,
    },
    /// What the run published of its progress is not of the type asked for.
    #[error("the progress of run `{id}` does not decode: {detail}")]
    Progress {
        /// The run.
        id: RunId,
        /// Why not.
        detail: String,
    },
    /// What a step put into the store is not of the type asked for.
    #[error("the value of `{key}` does not decode: {detail}")]
    Value {
        /// Its key.
        key: String,
        /// Why not.
        detail: String,
    },
    /// It could not be started.
    #[error(transparent)]
    Start(StartError),
    /// It could not be found.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// It could not be cancelled.
    #[error(transparent)]
    Cancel(#[from] CancelError),
    /// A message could not be sent to it.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A request to it got no answer.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// It could not be recovered, rewound or forked.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A schedule did not do what it was asked.
    #[cfg(feature = "schedules")]
    #[error(transparent)]
    Schedule(#[from] crate::engine::ScheduleError),
    /// The engine could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    /// Whether trying the same again may help. What has no dedup key may then be delivered a second time.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Store(error)
            | Self::Start(StartError::Store(error))
            | Self::Attach(AttachError::Store(error))
            | Self::Cancel(CancelError::Store(error))
            | Self::Send(SendError::Store(error))
            | Self::Request(RequestError::Send(SendError::Store(error)))
            | Self::Control(ControlError::Store(error))
            | Self::Build(BuildError::Store(error)) => error.is_retryable(),
            #[cfg(feature = "schedules")]
            Self::Schedule(crate::engine::ScheduleError::Store(error)) => error.is_retryable(),
            Self::ShutDown(_)
            | Self::Start(StartError::ShuttingDown)
            | Self::Send(SendError::ShuttingDown)
            | Self::Request(
                RequestError::Send(SendError::ShuttingDown) | RequestError::ShutDown { .. },
            ) => true,
            _ => false,
        }
    }

    /// The failure of the workflow, if that is what it is.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed(failure) => Some(failure),
            _ => None,
        }
    }
}

impl From<StartError> for Error {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

impl From<InvalidRunId> for Error {
    fn from(error: InvalidRunId) -> Self {
        Self::Start(StartError::InvalidId(error))
    }
}
