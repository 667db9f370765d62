//! A store whose appends fail, before or after they were written.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use workflow::MemoryStore;
use workflow::replay::{Message, NewMessage, RunId, RunKey, Timestamp};
use workflow::store::{
    Answer, Append, Appended, BoxFuture, DeadLetter, Delivery, Identity, Loaded, Page, Rewrite,
    RunFilter, RunRow, Store, StoreError,
};

/// What happens to one append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is written, and says so.
    None,
    /// It fails, and nothing was written.
    Before,
    /// It was written, and fails all the same.
    After,
}

/// A [`MemoryStore`] with faults.
#[derive(Debug, Clone, Default)]
pub struct FaultStore(Arc<MemoryStore>, Arc<Mutex<VecDeque<Fault>>>);

impl FaultStore {
    /// The store with these faults, one for each append from now on; then none.
    #[must_use]
    pub fn over(store: &Arc<MemoryStore>, faults: impl IntoIterator<Item = Fault>) -> Self {
        let faults = faults.into_iter().collect();
        Self(Arc::clone(store), Arc::new(Mutex::new(faults)))
    }

    /// How many faults are still to come.
    #[must_use]
    pub fn left(&self) -> usize {
        self.faults().len()
    }

    fn faults(&self) -> MutexGuard<'_, VecDeque<Fault>> {
        self.1.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed() -> StoreError {
    StoreError::Io {
        operation: "writing",
        retryable: true,
        source: "the disk says no".into(),
    }
}

impl Store for FaultStore {
    fn identity(&self) -> Identity {
        self.0.identity()
    }
    fn allocate(&self) -> RunKey {
        self.0.allocate()
    }
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(async move {
            let fault = self.faults().pop_front().unwrap_or(Fault::None);
            if fault == Fault::Before {
                return Err(failed());
            }
            let appended = self.0.append(append).await?;
            if fault == Fault::After {
                return Err(failed());
            }
            Ok(appended)
        })
    }
    fn cancel(&self, run: RunKey, at: Timestamp) -> BoxFuture<'_, Result<Appended, StoreError>> {
        self.0.cancel(run, at)
    }
    fn rewrite(&self, rewrites: Vec<Rewrite>) -> BoxFuture<'_, Result<Appended, StoreError>> {
        self.0.rewrite(rewrites)
    }
    fn find<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRow>, StoreError>> {
        self.0.find(id)
    }
    fn row(&self, run: RunKey) -> BoxFuture<'_, Result<Option<RunRow>, StoreError>> {
        self.0.row(run)
    }
    fn load(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Loaded>, StoreError>> {
        self.0.load(run)
    }
    fn due(
        &self,
        after: Option<(Timestamp, RunKey)>,
        until: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(Timestamp, RunKey)>, StoreError>> {
        self.0.due(after, until, limit)
    }
    fn active(
        &self,
        after: Option<RunKey>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>> {
        self.0.active(after, limit)
    }
    fn deliver<'a>(
        &'a self,
        to: &'a RunId,
        message: NewMessage,
        at: Timestamp,
        keep_until: Timestamp,
    ) -> BoxFuture<'a, Result<Delivery, StoreError>> {
        self.0.deliver(to, message, at, keep_until)
    }
    fn inbox(
        &self,
        run: RunKey,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Message>, StoreError>> {
        self.0.inbox(run, after, limit)
    }
    fn dead_letters(
        &self,
        run: RunKey,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<DeadLetter>, StoreError>> {
        self.0.dead_letters(run, after, limit)
    }
    fn answer(&self, request: u128) -> BoxFuture<'_, Result<Option<Answer>, StoreError>> {
        self.0.answer(request)
    }
    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.0.list(filter)
    }
    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.close()
    }
}
