//! Floor 1: where runs are kept.
//!
//! A [`Store`] answers few questions: append this batch durably, read this run, what is due. Everything a transition
//! implies is in one [`Append`], and so in one transaction.

#![deny(clippy::indexing_slicing)]

mod census;
#[cfg(feature = "conformance")]
pub mod conformance;
mod delete;
pub mod encoding;
mod error;
mod mail;
mod memory;
#[cfg(feature = "redb")]
pub mod redb;
mod rewrite;
mod run;
mod transition;

#[cfg(feature = "redb")]
pub use self::redb::{RedbStore, RedbStoreBuilder, StoreFile};
pub use census::{Census, RunCount};
pub use delete::{Deleted, Deletion};
pub use error::StoreError;
pub use memory::MemoryStore;
pub use rewrite::Rewrite;
pub use run::{NewRun, Page, Parked, RunFilter, RunPatch, RunRow};

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use self::census::Tally;
use crate::replay::{Location, Message, NewMessage, Payload, Record, RunId, RunKey, Timestamp};

pub use crate::replay::CHILD_ENDED;

/// A boxed future, so that stores can be used as `dyn Store`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where runs are kept.
///
/// # What an implementer owes
///
/// 1. `append` resolves with `Ok` only when the whole batch is durable: a power cut after that loses nothing of it.
/// 2. A batch is seen whole or not at all, by every reader and after every crash.
/// 3. An append is refused, and nothing of it written, when the run's epoch is newer than the batch's (`Lost`), when
///    the run is final (`Final`), or when it creates a run whose id is taken (`Exists`).
/// 4. A batch whose (epoch, number) equals the run's last append is not written again: `AlreadyApplied`.
/// 5. A batch whose `expected_seq` is not the run's last record is refused with `StoreError::Conflict`.
/// 6. Dropping the future of an append does not cancel it: the batch is written or it is not, whole.
/// 7. Appends of one run are applied in the order in which their futures were first polled.
/// 8. Reads see every append that has resolved.
/// 9. `due` is exactly the rows' wake times; `active` is exactly the rows in an active state.
/// 10. When a run whose `parent` is set and that is not detached becomes final (by `append` or `cancel`), a message on channel
///     [`CHILD_ENDED`] is put into the inbox of its parent in the same transaction: `reply_to` holds the child's id, the payload
///     its end as [`encoding::encode_finished`] writes it. Not when the parent is final, or is not there.
/// 11. An inbox is in arrival order, arrivals are never given twice, and a message that was taken is not in it. A batch that
///     takes what is not there, or gives back what is, or never was, is refused with `StoreError::Conflict`.
/// 12. Of a run that was deleted nothing is left: no read finds it, its id is free, and its number is never given again.
/// 13. A run that is created not to begin before a time is `Waiting`, with that as its wake time.
/// 14. No transaction is open, and no lock held, while user code runs.
pub trait Store: Send + Sync + fmt::Debug + 'static {
    /// Who this store is.
    fn identity(&self) -> Identity;

    /// The next run number. Never given twice, also not after a crash.
    fn allocate(&self) -> RunKey;

    /// Writes one transition durably.
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>>;

    /// Cancels a run that is not final: one compare-and-set against its completion. Its epoch is bumped, so that a later append of
    /// its owner is refused; its wake time and waits are gone, and its last record is `Finished(Cancelled)`.
    /// `Final` when the run is final, or does not exist.
    fn cancel(&self, run: RunKey, at: Timestamp) -> BoxFuture<'_, Result<Appended, StoreError>>;

    /// Changes what runs have behind them, which no owner does: all of these in one transaction, or none. A run that has ended
    /// may go on by it. `Lost` when one of the runs is no longer as the writer saw it, `Final` when one does not exist; then
    /// nothing is written. Whoever drives such a run is refused from then on, for its batches build on a record that is no
    /// longer the last.
    fn rewrite(&self, rewrites: Vec<Rewrite>) -> BoxFuture<'_, Result<Appended, StoreError>>;

    /// Deletes runs that have ended: their rows, ids, records, inboxes, dead letters and dedup keys, and the answers to the
    /// requests that are named. One transaction; each run is judged by itself, and what became of each is answered in their
    /// order. One that has not ended stays, and so does a child that is not detached while its parent has not.
    fn delete(&self, deletions: Vec<Deletion>) -> BoxFuture<'_, Result<Vec<Deleted>, StoreError>>;

    /// The row of the run with this id.
    fn find<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRow>, StoreError>>;

    /// The row of the run with this number.
    fn row(&self, run: RunKey) -> BoxFuture<'_, Result<Option<RunRow>, StoreError>>;

    /// A run's row and its whole kept history, in `seq` order, as of one instant.
    fn load(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Loaded>, StoreError>>;

    /// A run's first record, as [`load`](Store::load) would give it. A start that is made again compares its input
    /// with it, so a store reads it without the rest where it can.
    fn first(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            let loaded = self.load(run).await?;
            Ok(loaded.and_then(|loaded| loaded.history.into_iter().next()))
        })
    }

    /// Up to `limit` runs whose wake time is not after `until`, in order of (wake time, number), from the one after
    /// `after` on.
    fn due(
        &self,
        after: Option<(Timestamp, RunKey)>,
        until: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(Timestamp, RunKey)>, StoreError>>;

    /// Up to `limit` runs after `after` whose row is in an active state (`Pending`, `Running`, `RollingBack`), in
    /// number order. What an engine recovers when it opens the store.
    fn active(
        &self,
        after: Option<RunKey>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>>;

    /// Puts a message into the inbox of the run with this id, durably: in one transaction the message is there, the run's
    /// `inbox_seq` counts it, and a run that waits for its channel is due at once. For an id that no run has it is kept,
    /// and goes into the inbox of the run that is created with that id before `keep_until`.
    ///
    /// It is stamped with `at`, or later: the stamps of an inbox never decrease. A dedup key holds as long as the run's row
    /// is there, also when the message was taken and when the run has ended; it goes with the run.
    fn deliver<'a>(
        &'a self,
        to: &'a RunId,
        message: NewMessage,
        at: Timestamp,
        keep_until: Timestamp,
    ) -> BoxFuture<'a, Result<Delivery, StoreError>>;

    /// Up to `limit` messages of a run's inbox, from the one after arrival `after` on, in arrival order.
    fn inbox(
        &self,
        run: RunKey,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Message>, StoreError>>;

    /// Up to `limit` messages that a run could not read, from the one after arrival `after` on, in arrival order.
    fn dead_letters(
        &self,
        run: RunKey,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<DeadLetter>, StoreError>>;

    /// The answer to a request, once there is one.
    fn answer(&self, request: u128) -> BoxFuture<'_, Result<Option<Answer>, StoreError>>;

    /// The value that the application keeps under this key.
    fn value<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Payload>, StoreError>>;

    /// Up to `limit` values whose keys begin with `prefix`, from the one after the key `after` on, in the order of their keys'
    /// bytes.
    fn values<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, Payload)>, StoreError>>;

    /// Writes values that are kept, or removes them, durably: all of these in one transaction, in their order. What a run writes goes
    /// with its batch instead, as a [`Post`]. Of a key the last word stays, whoever had it.
    fn put(&self, values: Vec<(String, Option<Payload>)>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Rows that fit the filter, in number order, or in falling order of numbers when it asks for that.
    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Page, StoreError>>;

    /// How many runs there are. Reads every row, a page after the other, unless a store knows better: one that does not says in
    /// [`Census::commit`] that it does not, and is asked less often.
    fn census(&self) -> BoxFuture<'_, Result<Census, StoreError>> {
        Box::pin(async move {
            let mut tally = Tally::default();
            let mut filter = RunFilter {
                limit: 1000,
                ..RunFilter::default()
            };
            loop {
                let page = self.list(&filter).await?;
                for row in &page.rows {
                    tally.add(&row.workflow, row.state);
                }
                if page.next.is_none() {
                    return Ok(tally.census(None));
                }
                filter.after = page.next;
            }
        })
    }

    /// Has `told` hear of every commit from now on, on the thread that commits, after those who waited for it were told. Whoever
    /// was given first goes on hearing it. What is told must not block. Nobody hears of anything from a store that does not group
    /// commits: so it is unless a store says otherwise; a store that wraps another passes this on.
    fn tell_commits(&self, told: Arc<dyn Fn(Committed) + Send + Sync>) {
        drop(told);
    }

    /// Brings everything to rest: waits for commits under way, folds, lets go of the file. Later calls fail with
    /// `StoreError::Closed`.
    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// A commit of a store: what one write made durable, for all who waited for it. Told by [`Store::tell_commits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Committed {
    /// How many batches it was of: the transitions of runs, and messages that were delivered.
    pub batches: usize,
    /// How long it took to write and, unless the store lets that wait, to sync.
    pub took: Duration,
}

/// Who a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Chosen at random when the store was created.
    pub id: u128,
    /// How many times it was opened: the epoch of every claim made through this opening.
    pub boot: u64,
}

impl Identity {
    /// An id for a new store: 128 bits of the randomness that the standard library seeds its hash maps with.
    pub(crate) fn random() -> u128 {
        use std::hash::{BuildHasher, RandomState};
        let half = || u128::from(RandomState::new().hash_one(std::process::id()));
        half() << 64 | half()
    }
}

/// One transition of one run, and everything it implies.
#[derive(Debug, Clone)]
pub struct Append {
    /// The run.
    pub run: RunKey,
    /// The epoch of the writer's claim.
    pub epoch: u64,
    /// The number of this batch within the claim, from 1.
    pub number: u64,
    /// The run's last record before this batch; 0 when there is none.
    pub expected_seq: u64,
    /// The new run, when this batch creates it.
    pub create: Option<NewRun>,
    /// New records, in `seq` order without a gap.
    pub records: Vec<Record>,
    /// Scopes whose records so far (those before this batch) are deleted, each with everything under it.
    pub deletes: Vec<Location>,
    /// What changes in the run's row.
    pub patch: RunPatch,
    /// What changes in the run's inbox.
    pub inbox: InboxChange,
    /// What it does to others, in the same transaction.
    pub posts: Vec<Post>,
}

/// What a batch changes in its run's inbox: first messages are given back, then messages are taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InboxChange {
    /// Messages given back at their old place: the branch that had taken them lost its race.
    pub returns: Vec<Message>,
    /// The arrivals of messages that are taken: they are in the batch's records now, or of no more use.
    pub takes: Vec<u64>,
    /// Messages that do not decode, by arrival, and why: moved to the run's dead letters.
    pub dead: Vec<(u64, String)>,
    /// The newest arrival that the writer had seen. When the run waits for channels after this batch (because it says so,
    /// or did before) and a newer message on one of them is in the inbox, or one that this batch gives back, it is due at
    /// once: a sender never loses a wake-up.
    pub seen: u64,
}

impl InboxChange {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.returns.is_empty() && self.takes.is_empty() && self.dead.is_empty()
    }
}

/// What a batch does to others than its run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Post {
    /// Puts a message into the inbox of a run, as [`Store::deliver`] does. One that cannot be delivered, because the run
    /// is final, goes to the dead letters of the sender, under a number of the sender's own inbox.
    Message {
        /// The run.
        to: RunId,
        /// The message.
        message: NewMessage,
        /// How long it is kept when there is no run of that id yet.
        keep_until: Timestamp,
    },
    /// Creates another run, in state `Pending`, with its first records and the batch's epoch. Nothing when there is one of
    /// that id already.
    Run {
        /// Its number.
        run: RunKey,
        /// What its row says.
        new: NewRun,
        /// Its first records, from `seq` 1.
        records: Vec<Record>,
    },
    /// Cancels a run, as [`Store::cancel`] does, if it is not final, and not being undone.
    Cancel(RunId),
    /// Writes values that the application keeps in this store; `None` removes one.
    Values(Vec<(String, Option<Payload>)>),
    /// Answers a request. The first answer stays.
    Answer {
        /// The id of the message that was the request.
        request: u128,
        /// What its sender gets.
        answer: Answer,
    },
}

/// What the sender of a request gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The receiver's reply.
    Reply(Payload),
    /// The receiver is done with the request, and did not reply.
    NoReply,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It is in the inbox, durably.
    Queued {
        /// The run; absent while none has that id.
        run: Option<RunKey>,
        /// Its place among the messages of that id.
        arrival: u64,
        /// True when the run is due now because of it.
        wakes: bool,
    },
    /// One with the same dedup key was delivered to that run and channel before; it had this id. Nothing was written.
    Duplicate {
        /// The id of the first one.
        id: u128,
    },
    /// The run is final. Nothing was written.
    Final(RunKey),
}

/// A message that its run could not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The message.
    pub message: Message,
    /// Why not.
    pub reason: String,
    /// When that was found.
    pub at: Timestamp,
}

/// What became of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    /// It is durable.
    Applied,
    /// It was durable already.
    AlreadyApplied,
    /// The run belongs to a newer claim. Nothing was written.
    Lost,
    /// The run is final, or does not exist. Nothing was written.
    Final,
    /// A run with that id exists. Nothing was written.
    Exists(RunKey),
}

/// A run as one instant saw it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Its row.
    pub row: RunRow,
    /// Its kept records, in `seq` order.
    pub history: Vec<Record>,
}
