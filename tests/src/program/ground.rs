//! What outlives a process: what its store has kept.

use std::fmt::Debug;
use std::panic::resume_unwind;
use std::thread;

use workflow::MemoryStore;
use workflow::replay::{Message, NewMessage, RunId, RunKey};
use workflow::store::{
    Answer, Append, Appended, BoxFuture, DeadLetter, Deleted, Deletion, Delivery, Identity, Loaded,
    Page, RedbStore, Rewrite, RunFilter, RunRow, Store, StoreError,
};
use workflow::{Payload, Record, Timestamp};

use crate::disk::{Disk, Fault, Left};
use crate::scene;

/// A store that processes come and go over. What it is asked is done at the first poll.
pub(super) trait Ground: Store + Debug + Sized + 'static {
    /// Whether the power may fail in the middle of something.
    const HAS_POWER: bool;

    /// With nothing in it.
    fn fresh() -> Self;

    /// What the next process finds.
    fn after(&self, end: Sudden) -> Self;

    /// Lets the power fail at the so-manieth operation of the disk from now.
    fn lose_power(&self, after: u64);

    /// Whether the power has failed.
    fn is_dark(&self) -> bool;
}

/// How a process ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sudden {
    /// It is killed: what it has written is there.
    Kill,
    /// With the power: of what was not synced yet there is what the seed says.
    PowerCut(u64),
}

impl Ground for MemoryStore {
    const HAS_POWER: bool = false;

    fn fresh() -> Self {
        Self::new()
    }

    fn after(&self, _end: Sudden) -> Self {
        self.crash()
    }

    fn lose_power(&self, _after: u64) {}

    fn is_dark(&self) -> bool {
        false
    }
}

/// A redb store on a disk in memory.
#[derive(Debug)]
pub(super) struct OnDisk {
    disk: Disk,
    store: Aside,
}

impl OnDisk {
    fn of(disk: Disk) -> Self {
        let store = scene::open(&disk).expect("what a process left can be opened");
        Self {
            disk,
            store: Aside(store),
        }
    }
}

impl Ground for OnDisk {
    const HAS_POWER: bool = true;

    fn fresh() -> Self {
        Self::of(Disk::default())
    }

    fn after(&self, end: Sudden) -> Self {
        let left = match end {
            Sudden::Kill => Left::All,
            Sudden::PowerCut(seed) => Left::Some(seed),
        };
        Self::of(self.disk.after_power_cut(left))
    }

    fn lose_power(&self, after: u64) {
        self.disk.fault(after, Fault::PowerCut);
    }

    fn is_dark(&self) -> bool {
        self.disk.failed() > 0
    }
}

impl Store for OnDisk {
    crate::pass_on! {
        store: identity allocate append cancel rewrite delete find row load first due active deliver inbox dead_letters answer
        value values put list close
    }
}

/// The store as one that waits for nothing: a runtime whose time is paused would let the time pass meanwhile, and a seed would
/// not say any more what happens.
#[derive(Debug)]
struct Aside(RedbStore);

/// Does it on a thread without a runtime, and waits for it.
fn aside<T: Send>(asked: BoxFuture<'_, T>) -> T {
    let done = thread::scope(|scope| scope.spawn(|| scene::block_on(asked)).join());
    done.unwrap_or_else(|panic| resume_unwind(panic))
}

macro_rules! aside {
    ($($method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        #[allow(clippy::elidable_lifetime_names, reason = "some of them borrow from their arguments, too")]
        fn $method<'a>(&'a self, $($argument: $type),*) -> BoxFuture<'a, Result<$answer, StoreError>> {
            let answer = aside(self.0.$method($($argument),*));
            Box::pin(std::future::ready(answer))
        }
    )*};
}

impl Store for Aside {
    fn identity(&self) -> Identity {
        self.0.identity()
    }

    fn allocate(&self) -> RunKey {
        self.0.allocate()
    }

    aside! {
        append(append: Append) -> Appended;
        cancel(run: RunKey, at: Timestamp) -> Appended;
        rewrite(rewrites: Vec<Rewrite>) -> Appended;
        delete(deletions: Vec<Deletion>) -> Vec<Deleted>;
        find(id: &'a RunId) -> Option<RunRow>;
        row(run: RunKey) -> Option<RunRow>;
        load(run: RunKey) -> Option<Loaded>;
        first(run: RunKey) -> Option<Record>;
        due(after: Option<(Timestamp, RunKey)>, until: Timestamp, limit: usize) -> Vec<(Timestamp, RunKey)>;
        active(after: Option<RunKey>, limit: usize) -> Vec<RunKey>;
        deliver(to: &'a RunId, message: NewMessage, at: Timestamp, keep_until: Timestamp) -> Delivery;
        inbox(run: RunKey, after: u64, limit: usize) -> Vec<Message>;
        dead_letters(run: RunKey, after: u64, limit: usize) -> Vec<DeadLetter>;
        answer(request: u128) -> Option<Answer>;
        value(key: &'a str) -> Option<Payload>;
        values(prefix: &'a str, after: Option<&'a str>, limit: usize) -> Vec<(String, Payload)>;
        put(values: Vec<(String, Option<Payload>)>) -> ();
        list(filter: &'a RunFilter) -> Page;
        close() -> ();
    }
}
