//! What the store has of a schedule: two values, each with one writer. Who fires writes how far it has fired; who operates writes
//! whether it is paused. So neither undoes what the other wrote.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::replay::{Payload, RunId, Timestamp};
use crate::schedule::Plan;
use crate::store::{Store, StoreError};

/// Before the name of a schedule. Keys of applications do not begin so.
const PREFIX: &str = "\0schedule/";
/// After the name.
const FIRED: &str = "/fired";
const PAUSED: &str = "/paused";
/// So many are read at a time.
const PAGE: usize = 256;

/// How far a schedule has fired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fired {
    /// The expression and the zone, for those who do not have the schedule.
    pub(super) cron: String,
    pub(super) zone: String,
    /// All by which it says when.
    pub(super) says: String,
    /// Every firing up to here was started, or passed over.
    pub(super) through: Timestamp,
    /// The next one, as it was seen then.
    pub(super) next: Option<Timestamp>,
    /// The last that was started: its time and its run.
    pub(super) last: Option<(Timestamp, String)>,
}

/// Whether a schedule is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pause {
    pub(super) paused: bool,
    /// Since when that is so.
    pub(super) at: Timestamp,
    pub(super) reason: String,
}

/// Both.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows {
    pub(super) fired: Option<Fired>,
    pub(super) pause: Option<Pause>,
}

impl Rows {
    pub(super) async fn of(store: &dyn Store, name: &str) -> Result<Self, StoreError> {
        let fired = store.value(&key(name, FIRED)).await?;
        let pause = store.value(&key(name, PAUSED)).await?;
        Ok(Self {
            fired: fired.as_ref().map(read).transpose()?,
            pause: pause.as_ref().map(read).transpose()?,
        })
    }

    /// Those of all schedules that the store knows, by name.
    pub(super) async fn all(store: &dyn Store) -> Result<Vec<(String, Self)>, StoreError> {
        let mut all: Vec<(String, Self)> = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = store.values(PREFIX, after.as_deref(), PAGE).await?;
            let Some((last, _)) = page.last() else {
                return Ok(all);
            };
            after = Some(last.clone());
            for (key, value) in page {
                let rest = key.strip_prefix(PREFIX);
                let Some((name, of)) = rest.and_then(|rest| rest.split_once('/')) else {
                    continue;
                };
                if all.last().is_none_or(|(last, _)| last != name) {
                    all.push((name.to_owned(), Self::default()));
                }
                let Some((_, rows)) = all.last_mut() else {
                    continue;
                };
                match of {
                    "fired" => rows.fired = Some(read(&value)?),
                    "paused" => rows.pause = Some(read(&value)?),
                    _ => {}
                }
            }
        }
    }

    /// Whether there is anything of it.
    pub(super) fn is_known(&self) -> bool {
        self.fired.is_some() || self.pause.is_some()
    }

    /// The pause, if it is paused.
    pub(super) fn paused(&self) -> Option<&Pause> {
        self.pause.as_ref().filter(|pause| pause.paused)
    }

    /// Nothing up to here is started any more by itself: it was, or was passed over, or came due while it was paused.
    pub(super) fn through(&self, plan: &Plan) -> Timestamp {
        let fired = self.fired.as_ref().map(|fired| fired.through);
        // What is started later than its time came due later, too.
        let resumed = self.pause.as_ref().map(|pause| plan.due(pause.at));
        fired.max(resumed).unwrap_or(Timestamp::MIN)
    }
}

impl Fired {
    /// As a value that is written.
    pub(super) fn value(&self, name: &str) -> Result<Value, StoreError> {
        Ok((key(name, FIRED), Some(written(self)?)))
    }

    /// The run of the last firing.
    pub(super) fn last_run(&self) -> Option<RunId> {
        let last = self.last.as_ref();
        last.map(|(_, run)| RunId::from_stored(run))
    }
}

impl Pause {
    /// As a value that is written.
    pub(super) fn value(&self, name: &str) -> Result<Value, StoreError> {
        Ok((key(name, PAUSED), Some(written(self)?)))
    }
}

/// A key, and what stands under it.
type Value = (String, Option<Payload>);

fn key(name: &str, of: &str) -> String {
    format!("{PREFIX}{name}{of}")
}

fn read<T: DeserializeOwned>(value: &Payload) -> Result<T, StoreError> {
    serde_json::from_slice(&value.bytes).map_err(|error| StoreError::Corrupt {
        what: "schedule",
        detail: error.to_string(),
    })
}

fn written<T: Serialize>(row: &T) -> Result<Payload, StoreError> {
    match serde_json::to_vec(row) {
        Ok(json) => Ok(Payload::json(json)),
        // Texts and numbers: this does not happen.
        Err(error) => Err(StoreError::Corrupt {
            what: "schedule",
            detail: error.to_string(),
        }),
    }
}
