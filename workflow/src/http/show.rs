//! Runs, as the API shows them.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{AnyWorkflow, Error, Failure, Payload, RunHandle, Status, Timestamp};

/// A run.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    id: String,
    workflow: String,
    state: &'static str,
    records: u64,
    generation: u32,
    created_at: Timestamp,
    updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wake_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits_for: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<Timestamp>,
    priority: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    queued: Option<Queued>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parked: Option<Parked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<Parent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Box<RawValue>>,
}

/// What it waits for before it may go on.
#[derive(Debug, Serialize)]
struct Queued {
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    ahead: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
struct Rate {
    begins: usize,
    /// In milliseconds.
    interval: u64,
}

impl From<crate::Queued> for Queued {
    fn from(queued: crate::Queued) -> Self {
        Self {
            limit: queued.limit,
            rate: queued.rate.map(|rate| Rate {
                begins: rate.begins(),
                interval: u64::try_from(rate.interval().as_millis()).unwrap_or(u64::MAX),
            }),
            key: queued.key,
            ahead: queued.ahead,
            not_before: queued.not_before,
        }
    }
}

#[derive(Debug, Serialize)]
struct Parked {
    reason: &'static str,
    detail: String,
}

#[derive(Debug, Serialize)]
struct Parent {
    id: String,
    location: String,
}

impl From<Status> for Run {
    fn from(status: Status) -> Self {
        Self {
            id: status.id.to_string(),
            workflow: status.workflow,
            state: status.state.word(),
            records: status.records,
            generation: status.generation,
            created_at: status.created_at,
            updated_at: status.updated_at,
            finished_at: status.finished_at,
            wake_at: status.wake_at,
            waits_for: status.waits_for,
            not_before: status.not_before,
            priority: status.priority,
            queued: status.queued.map(Queued::from),
            parked: status.parked.map(|parked| Parked {
                reason: parked.reason.word(),
                detail: parked.detail,
            }),
            parent: status.parent.map(|(id, location)| Parent {
                id: id.to_string(),
                location: location.to_string(),
            }),
            // What `progress!` published is JSON.
            progress: status
                .progress
                .and_then(|json| RawValue::from_string(json).ok()),
        }
    }
}

/// How a run ended.
#[derive(Debug, Serialize)]
pub(super) struct Ended {
    id: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failed>,
}

impl Ended {
    /// How it ended, if it did; whatever else came of waiting for it otherwise.
    pub(super) fn of(
        run: &RunHandle<AnyWorkflow>,
        result: Result<Box<RawValue>, Error>,
    ) -> Result<Self, Error> {
        let ended = |state| Self {
            id: run.id().to_string(),
            state,
            value: None,
            failure: None,
        };
        match result {
            Ok(value) => Ok(Self {
                value: Some(value),
                ..ended("completed")
            }),
            Err(Error::Failed(failure)) => Ok(Self {
                failure: Some(Failed::from(&failure)),
                ..ended("failed")
            }),
            Err(Error::Cancelled(_)) => Ok(ended("cancelled")),
            Err(error) => Err(error),
        }
    }
}

/// A failure, with its location as people write it.
#[derive(Debug, Serialize)]
pub(super) struct Failed {
    kind: String,
    location: String,
    message: String,
    attempts: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    type_name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    chain: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    branches: Vec<Failed>,
}

impl From<&Failure> for Failed {
    fn from(failure: &Failure) -> Self {
        Self {
            kind: failure.kind().to_string(),
            location: failure.location().to_string(),
            message: failure.message().to_owned(),
            attempts: failure.attempts(),
            type_name: failure.type_name().to_owned(),
            chain: failure.chain().to_vec(),
            value: failure.value().and_then(plain),
            branches: failure.branches().iter().map(Self::from).collect(),
        }
    }
}

/// The JSON of a payload, unless a codec sealed it.
fn plain(payload: &Payload) -> Option<Box<RawValue>> {
    if payload.codec != 0 {
        return None;
    }
    serde_json::from_slice(&payload.bytes).ok()
}

/// Some records of a run, in order.
#[derive(Debug, Serialize)]
pub(super) struct Excerpt {
    pub(super) id: String,
    pub(super) records: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<u64>,
}

/// JSON on one line: a line of its own ends an event of a stream. A line break in JSON is white space, and nothing else.
pub(super) fn one_line(json: String) -> String {
    if json.bytes().any(|byte| matches!(byte, b'\n' | b'\r')) {
        return json.replace(['\n', '\r'], " ");
    }
    json
}
