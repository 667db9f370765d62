//! What the file holds, and single rows of it.
//!
//! | table | key | value |
//! |---|---|---|
//! | meta | name | number |
//! | journal | number of the commit | its batches (format 1 only: then the log) |
//! | runs | run | its row |
//! | records | run, first `seq` | that record and those after it |
//! | ids | hash of the id, run | – |
//! | due | wake time, run | – |
//! | inbox | run, arrival | message |
//! | dead | run, arrival | dead letter |
//! | delivered | run, channel and dedup key | id of the message |
//! | strays | id, arrival | when it lapses, message |
//! | lapses | when, id, arrival | – |
//! | answers | request | answer |
//! | values | key | value of the application |
//! | states | state, run | – (not of waiting and completed runs: they are the many) |

use bytes::Bytes;
use redb::{Key, ReadTransaction, ReadableTable, TableDefinition, Value, WriteTransaction};
use siphasher::sip::SipHasher13;

use super::entry::first_framed;
use crate::replay::{RunId, RunKey, RunState, Timestamp};
use crate::store::encoding::{decode_row, encode_row};
use crate::store::{RunRow, StoreError};

pub(super) const META: TableDefinition<'_, &str, u128> = TableDefinition::new("workflow.meta");
pub(super) const JOURNAL: TableDefinition<'_, u64, &[u8]> =
    TableDefinition::new("workflow.journal");
pub(super) const RUNS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("workflow.runs");
pub(super) const RECORDS: TableDefinition<'_, (u64, u64), &[u8]> =
    TableDefinition::new("workflow.records");
pub(super) const IDS: TableDefinition<'_, (u64, u64), ()> = TableDefinition::new("workflow.ids");
pub(super) const DUE: TableDefinition<'_, (i64, u64), ()> = TableDefinition::new("workflow.due");
pub(super) const STATES: TableDefinition<'_, (u8, u64), ()> =
    TableDefinition::new("workflow.states");

pub(super) const INBOX: TableDefinition<'_, (u64, u64), &[u8]> =
    TableDefinition::new("workflow.inbox");
pub(super) const DEAD: TableDefinition<'_, (u64, u64), &[u8]> =
    TableDefinition::new("workflow.dead");
pub(super) const DELIVERED: TableDefinition<'_, (u64, &[u8]), u128> =
    TableDefinition::new("workflow.delivered");
pub(super) const STRAYS: TableDefinition<'_, (&str, u64), (i64, &[u8])> =
    TableDefinition::new("workflow.strays");
pub(super) const LAPSES: TableDefinition<'_, (i64, &str, u64), ()> =
    TableDefinition::new("workflow.lapses");
pub(super) const ANSWERS: TableDefinition<'_, u128, &[u8]> =
    TableDefinition::new("workflow.answers");

pub(super) const VALUES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("workflow.values");

/// Names in the meta table.
pub(super) mod meta {
    /// The format of the file.
    pub(crate) const FORMAT: &str = "format";
    /// The store's id.
    pub(crate) const ID: &str = "id";
    /// How many times it was opened.
    pub(crate) const BOOT: &str = "boot";
    /// The first commit that is not in the tables yet.
    pub(crate) const FOLDED: &str = "folded";
    /// Whether there is a log: 1 while the store is open, and after a crash.
    pub(crate) const LOGGED: &str = "logged";
    /// Where in the log the first commit that is not in the tables yet would be.
    pub(crate) const LOG_AT: &str = "log at";
    /// The hash of the frame before it.
    pub(crate) const LOG_AFTER: &str = "log after";
}

/// The format that this program writes, and the newest it reads.
pub(super) const FORMAT: u32 = 2;

/// What is done with one table after another.
pub(super) trait Visit {
    type Error;

    fn table<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
    ) -> Result<(), Self::Error>;
}

/// Visits every table but that which says whose they are.
pub(super) fn every<T: Visit>(visit: &mut T) -> Result<(), T::Error> {
    visit.table(RUNS)?;
    visit.table(RECORDS)?;
    visit.table(IDS)?;
    visit.table(DUE)?;
    visit.table(STATES)?;
    visit.table(INBOX)?;
    visit.table(DEAD)?;
    visit.table(DELIVERED)?;
    visit.table(STRAYS)?;
    visit.table(LAPSES)?;
    visit.table(ANSWERS)?;
    visit.table(VALUES)
}

/// Makes every table there, so that no reader finds one missing.
pub(super) fn create(txn: &WriteTransaction) -> Result<(), redb::Error> {
    every(&mut Creating(txn))
}

struct Creating<'a>(&'a WriteTransaction);

impl Visit for Creating<'_> {
    type Error = redb::Error;

    fn table<K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, V>,
    ) -> Result<(), redb::Error> {
        self.0.open_table(table)?;
        Ok(())
    }
}

/// The row of a run as of a snapshot.
pub(super) fn row(
    runs: &impl ReadableTable<u64, &'static [u8]>,
    run: RunKey,
) -> Result<Option<RunRow>, Failed> {
    match runs.get(run.0)? {
        Some(value) => Ok(Some(decode_row(
            run,
            &Bytes::copy_from_slice(value.value()),
        )?)),
        None => Ok(None),
    }
}

pub(super) fn encoded(row: &RunRow) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    encode_row(row, &mut out);
    out.shrink_to_fit();
    out
}

/// The chunks of a run's records, in order.
pub(super) fn chunks(txn: &ReadTransaction, run: RunKey) -> Result<Vec<(u64, Bytes)>, Failed> {
    let table = txn.open_table(RECORDS)?;
    let mut chunks = Vec::new();
    for entry in table.range((run.0, 0)..=(run.0, u64::MAX))? {
        let (key, value) = entry?;
        chunks.push((key.value().1, Bytes::copy_from_slice(value.value())));
    }
    Ok(chunks)
}

/// The keys of the chunks of a run's records.
pub(super) fn chunk_keys(txn: &ReadTransaction, run: RunKey) -> Result<Vec<u64>, Failed> {
    let table = txn.open_table(RECORDS)?;
    let chunks = table.range((run.0, 0)..=(run.0, u64::MAX))?;
    chunks.map(|entry| Ok(entry?.0.value().1)).collect()
}

/// The first of a run's records.
pub(super) fn first_record(txn: &ReadTransaction, run: RunKey) -> Result<Option<Bytes>, Failed> {
    let table = txn.open_table(RECORDS)?;
    match table.range((run.0, 0)..=(run.0, u64::MAX))?.next() {
        Some(entry) => Ok(first_framed(entry?.1.value())?),
        None => Ok(None),
    }
}

/// The hash under which an id is found. Two ids may share one: the row tells.
pub(super) fn id_hash(store: u128, id: &RunId) -> u64 {
    SipHasher13::new_with_key(&store.to_le_bytes()).hash(id.as_str().as_bytes())
}

/// The number under which a state's runs are listed, for the states that are.
pub(super) fn listed(state: RunState) -> Option<u8> {
    match state {
        RunState::Pending => Some(1),
        RunState::Running => Some(2),
        RunState::RollingBack => Some(4),
        RunState::Parked => Some(5),
        RunState::Failed => Some(7),
        RunState::Cancelled => Some(8),
        RunState::Waiting | RunState::Completed => None,
    }
}

pub(super) fn due_key(at: Timestamp, run: RunKey) -> (i64, u64) {
    (at.as_millis(), run.0)
}

/// What can fail below: the database, or what is in it.
#[derive(Debug)]
pub(super) enum Failed {
    Database(redb::Error),
    Store(StoreError),
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

macro_rules! from_database {
    ($($error:ty),+) => {
        $(impl From<$error> for Failed {
            fn from(error: $error) -> Self {
                Self::Database(error.into())
            }
        })+
    };
}

from_database!(
    redb::Error,
    redb::StorageError,
    redb::TableError,
    redb::TransactionError,
    redb::CommitError,
    redb::DatabaseError,
    redb::SetDurabilityError
);
