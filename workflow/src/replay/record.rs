//! What a history is made of: the grammar of records (the table in `SEMANTICS`, part 3).
//!
//! Every kind the language will ever need in its first format is here, also those that no code writes yet, so that
//! files written today open tomorrow.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{CodeId, Failure, Kind, Location, Payload, RunId, Timestamp, json};

/// One entry of a run's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Its place in the run's one order, from 1. Given when its batch closes.
    pub seq: u64,
    /// When its batch closed, by the engine's clock.
    pub at: Timestamp,
    /// The code that wrote it.
    pub code: CodeId,
    /// Where in the run.
    #[serde(default, skip_serializing_if = "Location::is_root")]
    pub location: Location,
    /// What happened there.
    pub body: Body,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Body {
    /// The run came to be. First in every history, at the root.
    Begun(Box<Begun>),
    /// A container was entered. Rides with the first record below it.
    Opened(Opened),
    /// A site is waiting.
    Waiting(Waiting),
    /// An attempt of a step began or failed; nothing is handed out.
    Attempt {
        /// Which attempt, from 1.
        number: u32,
        /// What became of it.
        state: AttemptState,
    },
    /// An operation ended: an outcome, handed out in order.
    Ended(Ended),
    /// Messages were taken from the inbox: an outcome.
    Taken(Vec<Message>),
    /// A race was won.
    Decided {
        /// The winning branch.
        branch: String,
    },
    /// An iteration of a carried loop ended: an outcome.
    Carried {
        /// The next iteration.
        next: u64,
        /// The carried locals.
        state: Payload,
    },
    /// A container's value (reserved for compaction).
    Closed(Payload),
    /// A version of the code was chosen.
    Pin {
        /// The version this run goes on with.
        value: u32,
        /// The newest version the code knew then.
        latest: u32,
    },
    /// The code no longer has a site that may be recorded here.
    Removed {
        /// The kind it had.
        kind: Kind,
    },
    /// A region in which failing rolls back begins.
    Checkpoint,
    /// An effect that is to be undone if the run fails: an entry of its ledger.
    Armed {
        /// The entry's number, from 1.
        number: u64,
        /// Where the effect is had.
        location: Location,
        /// The path of the site whose undo it is.
        undo: String,
        /// What the step gave; absent while that is unknown.
        output: Option<Payload>,
        /// Where what names the effect is derived, if that is somewhere else: in a visit of a guided flow that goes on from an earlier
        /// one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Location>,
    },
    /// The run's code is over; its ledger is undone.
    Unwinding {
        /// How it failed; absent when it was cancelled.
        cause: Option<Failure>,
    },
    /// The undo entries so far are final.
    Settled {
        /// The last of them.
        up_to: u64,
    },
    /// A guided flow's state was edited.
    State {
        /// Its revision.
        revision: u64,
        /// The new state.
        payload: Payload,
        /// The idempotency key of the command that did it.
        command: Option<String>,
    },
    /// An undo was attempted.
    Undone {
        /// The number of the ledger's entry that it undoes.
        undoes: u64,
        /// Which attempt, from 1.
        attempt: u32,
        /// Whether it succeeded.
        #[serde(with = "json::outcome")]
        outcome: Result<(), Failure>,
        /// Why it was skipped, when an operator did that.
        skipped: Option<String>,
    },
    /// Somebody outside the workflow's code did something to the run.
    Control(Control),
    /// The run came to its end. Last in every history.
    Finished(Finished),
}

impl Body {
    /// True for what user code waits for: handed out in `seq` order, one per pass.
    pub fn is_outcome(&self) -> bool {
        matches!(self, Self::Ended(_) | Self::Taken(_) | Self::Carried { .. })
    }

    /// True for what a cursor does not see: it is looked up by name, or concerns no site at all.
    pub fn is_fact(&self) -> bool {
        matches!(
            self,
            Self::Begun(_)
                | Self::Pin { .. }
                | Self::Removed { .. }
                | Self::Checkpoint
                | Self::Armed { .. }
                | Self::Unwinding { .. }
                | Self::Settled { .. }
                | Self::State { .. }
                | Self::Undone { .. }
                | Self::Control(_)
                | Self::Finished(_)
        )
    }
}

/// How a run came to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Begun {
    /// The workflow's name.
    pub workflow: String,
    /// The input: a JSON object with a field per parameter, sealed by the codec.
    pub input: Payload,
    /// A hash of the input's canonical JSON, taken before it was sealed.
    #[serde(with = "json::hex_u64")]
    pub input_hash: u64,
    /// What `uuid!`, `random!` and idempotency keys are derived from.
    #[serde(with = "json::hex_u128")]
    pub seed: u128,
    /// How many times the run was rewound or compensated and recovered.
    pub generation: u32,
    /// The run that started this one, and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<(RunId, Location)>,
    /// The run this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<RunId>,
}

impl Begun {
    /// How the run of this history began.
    pub(crate) fn of(history: &[Record]) -> Option<&Self> {
        match &history.first()?.body {
            Body::Begun(begun) => Some(begun),
            _ => None,
        }
    }
}

/// Which container was entered, and what it looked like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Opened {
    /// A join with these branches, in declared order.
    Join(Vec<String>),
    /// A race with these branches, in declared order.
    Race(Vec<String>),
    /// A `join_all!` of so many items.
    JoinAll(u64),
    /// A carried loop with these locals.
    Carry(Vec<String>),
    /// A stage of a guided flow, at its so-manieth visit, and whether it keeps what an earlier visit left.
    Stage {
        /// Which visit, from 1.
        visit: u32,
        /// The visit whose results it keeps.
        keeps: Option<u32>,
    },
}

/// What a site waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Waiting {
    /// A deadline.
    Sleep {
        /// When it ends.
        until: Timestamp,
    },
    /// A message.
    Recv {
        /// From these channels; any when absent.
        channels: Option<Vec<String>>,
        /// At the latest.
        until: Option<Timestamp>,
        /// How many.
        want: u32,
    },
    /// A child run.
    Child {
        /// Its id.
        id: RunId,
        /// True when the parent does not wait for its result.
        detached: bool,
    },
    /// Its own body, which was running when the run was evicted, or had not begun.
    Body,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AttemptState {
    /// Its body is about to run (written only where a crash must be told from never having begun).
    Started,
    /// It failed, and another one follows.
    Failed {
        /// How.
        failure: Failure,
        /// When the next attempt may begin: chosen once, never recomputed.
        wake_at: Timestamp,
    },
}

/// An operation that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// Which operation: a step, now, sleep, child, send or reply.
    pub kind: Kind,
    /// Its value or its failure.
    #[serde(with = "json::outcome")]
    pub outcome: Result<Payload, Failure>,
    /// How many times a body was entered for it.
    pub attempts: u32,
    /// When the last attempt began.
    pub started_at: Timestamp,
    /// A hash of what the user's code passed in, where the site records one.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "json::maybe_hex_u64"
    )]
    pub input_hash: Option<u64>,
}

/// A message as it lies in a run's inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Its id, chosen by the sender.
    #[serde(with = "json::hex_u128")]
    pub id: u128,
    /// The channel it was sent on.
    pub channel: String,
    /// Its place in the run's inbox, from 1: given by the store, in the order of commits.
    pub arrival: u64,
    /// When it arrived. Never earlier than that of a message before it.
    pub at: Timestamp,
    /// The sender's own key against duplicates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup: Option<String>,
    /// The request to answer, when the sender waits for one.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "json::maybe_hex_bytes"
    )]
    pub reply_to: Option<Bytes>,
    /// The value.
    pub payload: Payload,
}

/// A message on its way into an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Its id, chosen by the sender.
    pub id: u128,
    /// The channel it is sent on.
    pub channel: String,
    /// The sender's own key against duplicates: a second message to the same run and channel with it is not delivered.
    pub dedup: Option<String>,
    /// The request to answer, when the sender waits for one.
    pub reply_to: Option<Bytes>,
    /// The value.
    pub payload: Payload,
}

/// What was done to a run from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Control {
    /// It was asked to stop; with `undo`, to roll back first.
    Cancel {
        /// Whether to roll back first.
        undo: bool,
    },
    /// It was taken out of memory.
    Evicted,
    /// It was made to retry what had failed.
    Recovered,
    /// Everything sequentially after a location was removed.
    Rewound {
        /// The location.
        to: Location,
        /// The run's generation from then on.
        generation: u32,
        /// How many records were removed.
        removed: u64,
    },
    /// The run was forked from another one: everything before this is a copy. What is derived from then on has a seed of its
    /// own.
    Forked {
        /// The seed.
        #[serde(with = "json::hex_u128")]
        seed: u128,
    },
    /// A stage or an undo was skipped.
    Skipped {
        /// Why.
        reason: String,
    },
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Finished {
    /// With this value.
    Completed(Payload),
    /// With this failure.
    Failed(Failure),
    /// By being cancelled.
    Cancelled,
}
