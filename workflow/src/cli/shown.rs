//! Runs, failures and what was done to them, as JSON: the same shapes as those of the HTTP API.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use workflow::replay::Message;
use workflow::store::RunRow;
use workflow::{Failure, Payload, Record, Rewound, RunState, ScheduleStatus, Timestamp};

/// A run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) workflow: String,
    pub(crate) state: String,
    pub(crate) records: u64,
    pub(crate) generation: u32,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) finished_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wake_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) waits_for: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) not_before: Option<Timestamp>,
    #[serde(default)]
    pub(crate) priority: i32,
    /// Only a service knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) queued: Option<Queued>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parked: Option<Parked>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<Parent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<Box<RawValue>>,
}

/// What it waits for before it may go on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Queued {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<Rate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    pub(crate) ahead: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) not_before: Option<Timestamp>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Rate {
    pub(crate) begins: u64,
    /// In milliseconds.
    pub(crate) interval: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Parked {
    pub(crate) reason: String,
    pub(crate) detail: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Parent {
    pub(crate) id: String,
    pub(crate) location: String,
}

/// What a deletion of old runs did.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Swept {
    pub(crate) deleted: u64,
    /// Those that were left because a parent or a child has not ended.
    pub(crate) awaited: u64,
    /// How many would have been deleted: only of what was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) matching: Option<u64>,
}

impl From<RunRow> for Run {
    fn from(row: RunRow) -> Self {
        let waits = row.state == RunState::Waiting;
        Self {
            id: row.id.to_string(),
            workflow: row.workflow,
            state: row.state.word().to_owned(),
            records: row.last_seq,
            generation: row.generation,
            created_at: row.created_at,
            updated_at: row.updated_at,
            finished_at: row.finished_at,
            wake_at: row.wake_at.filter(|_| waits),
            waits_for: row
                .waits
                .filter(|_| waits)
                .unwrap_or_default()
                .into_iter()
                // Those of the engine's own begin with a NUL.
                .filter(|channel| !channel.starts_with('\0'))
                .collect(),
            not_before: row.not_before,
            priority: row.priority,
            queued: None,
            parked: row.parked.map(|parked| Parked {
                reason: parked.reason.word().to_owned(),
                detail: parked.detail,
            }),
            parent: row.parent.map(|(id, location)| Parent {
                id: id.to_string(),
                location: location.to_string(),
            }),
            // What `progress!` published is JSON.
            progress: row
                .progress
                .and_then(|json| RawValue::from_string(json).ok()),
        }
    }
}

/// Some runs, and where to go on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Runs {
    pub(crate) runs: Vec<Run>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// Some records of a run, in order.
#[derive(Debug, Serialize)]
pub(crate) struct Excerpt {
    pub(crate) id: String,
    pub(crate) records: Vec<Record>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<u64>,
}

/// What a rewind did, or would do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Back {
    pub(crate) dry_run: bool,
    pub(crate) to: String,
    pub(crate) generation: u32,
    pub(crate) removed: Vec<Record>,
    pub(crate) returned: Vec<Message>,
    pub(crate) cancelled: Vec<String>,
}

impl Back {
    pub(crate) fn of(rewound: Rewound, dry_run: bool) -> Self {
        Self {
            dry_run,
            to: rewound.to.to_string(),
            generation: rewound.generation,
            removed: rewound.removed,
            returned: rewound.returned,
            cancelled: rewound.cancelled.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Schedules.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Schedules {
    pub(crate) schedules: Vec<Schedule>,
}

/// A schedule.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Schedule {
    pub(crate) name: String,
    pub(crate) cron: String,
    pub(crate) zone: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) workflow: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<Last>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) paused: Option<Paused>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trouble: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Last {
    pub(crate) at: Timestamp,
    pub(crate) run: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Paused {
    pub(crate) at: Timestamp,
    pub(crate) reason: String,
}

impl From<ScheduleStatus> for Schedule {
    fn from(status: ScheduleStatus) -> Self {
        Self {
            name: status.name,
            cron: status.cron,
            zone: status.zone,
            workflow: status.workflow.map(str::to_owned),
            next: status.next,
            last: status.last.map(|(at, run)| Last {
                at,
                run: run.to_string(),
            }),
            paused: status.paused.map(|(at, reason)| Paused { at, reason }),
            trouble: status.trouble,
        }
    }
}

/// What a backfill did.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Backfilled {
    pub(crate) started: u64,
    pub(crate) existing: u64,
}

impl From<workflow::Backfilled> for Backfilled {
    fn from(done: workflow::Backfilled) -> Self {
        let (started, existing) = (done.started, done.existing);
        Self { started, existing }
    }
}

/// A failure, with its location as people write it.
#[derive(Debug, Serialize)]
pub(crate) struct Failed {
    pub(crate) kind: String,
    pub(crate) location: String,
    pub(crate) message: String,
    pub(crate) attempts: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) type_name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) chain: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) branches: Vec<Failed>,
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

/// The JSON of a payload, on one line; absent where a codec sealed it.
pub(crate) fn plain(payload: &Payload) -> Option<Box<RawValue>> {
    if payload.codec != 0 {
        return None;
    }
    let text = str::from_utf8(&payload.bytes).ok()?;
    // A line break in JSON is white space, and nothing else.
    RawValue::from_string(text.replace(['\n', '\r'], " ")).ok()
}

/// A payload as text.
pub(crate) fn payload(payload: &Payload) -> String {
    match plain(payload) {
        Some(json) => json.get().to_owned(),
        None => format!(
            "<{} bytes, sealed by codec {}>",
            payload.bytes.len(),
            payload.codec
        ),
    }
}

/// A failure as text: `step declined (exhausted after 4 attempts) at charge`.
pub(crate) fn failure(failure: &Failure) -> String {
    let mut text = format!("{} ({}", failure.message(), failure.kind());
    if failure.attempts() > 1 {
        // Writing to a string does not fail.
        let _ = write!(text, " after {} attempts", failure.attempts());
    }
    text.push(')');
    for cause in failure.chain() {
        text.push_str(": ");
        text.push_str(cause);
    }
    for branch in failure.branches() {
        text.push_str("; ");
        let _ = write!(text, "{}: {}", branch.location(), self::failure(branch));
    }
    text
}
