//! A store whose answers take their time on the way: what it says was true when it was asked.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use workflow::MemoryStore;
use workflow::replay::{Message, NewMessage, RunId, RunKey, Timestamp};
use workflow::store::{
    Answer, Append, Appended, BoxFuture, DeadLetter, Delivery, Identity, Loaded, Page, Rewrite,
    RunFilter, RunRow, Store, StoreError,
};

use crate::pass;

type Delays = Arc<Mutex<VecDeque<u64>>>;

/// A [`MemoryStore`] whose next answers come so many milliseconds late.
#[derive(Debug, Clone, Default)]
pub struct SlowStore {
    store: Arc<MemoryStore>,
    /// Of `append`.
    pub appends: Delays,
    /// Of `find`.
    pub finds: Delays,
    /// Of `load`.
    pub loads: Delays,
    /// While set, `load` finds records that a newer version wrote.
    pub newer: Arc<AtomicBool>,
}

impl SlowStore {
    /// The store, as fast as ever until told otherwise.
    #[must_use]
    pub fn over(store: &Arc<MemoryStore>) -> Self {
        Self {
            store: Arc::clone(store),
            ..Self::default()
        }
    }
}

/// Makes the next answers late.
pub fn late(delays: &Delays, millis: impl IntoIterator<Item = u64>) {
    let mut delays = delays.lock().unwrap_or_else(PoisonError::into_inner);
    delays.extend(millis);
}

async fn wait(delays: &Delays) {
    let next = delays
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .pop_front();
    if let Some(millis) = next.filter(|millis| *millis > 0) {
        pass(millis).await;
    }
}

impl Store for SlowStore {
    fn identity(&self) -> Identity {
        self.store.identity()
    }
    fn allocate(&self) -> RunKey {
        self.store.allocate()
    }
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(async move {
            let answer = self.store.append(append).await;
            wait(&self.appends).await;
            answer
        })
    }
    fn cancel(&self, run: RunKey, at: Timestamp) -> BoxFuture<'_, Result<Appended, StoreError>> {
        self.store.cancel(run, at)
    }
    fn rewrite(&self, rewrites: Vec<Rewrite>) -> BoxFuture<'_, Result<Appended, StoreError>> {
        self.store.rewrite(rewrites)
    }
    fn find<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRow>, StoreError>> {
        Box::pin(async move {
            let answer = self.store.find(id).await;
            wait(&self.finds).await;
            answer
        })
    }
    fn row(&self, run: RunKey) -> BoxFuture<'_, Result<Option<RunRow>, StoreError>> {
        self.store.row(run)
    }
    fn load(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Loaded>, StoreError>> {
        Box::pin(async move {
            let answer = self.store.load(run).await;
            wait(&self.loads).await;
            if self.newer.load(Ordering::SeqCst) {
                let (what, detail) = ("record", "kind 77".to_owned());
                return Err(StoreError::Newer { what, detail });
            }
            answer
        })
    }
    fn due(
        &self,
        after: Option<(Timestamp, RunKey)>,
        until: Timestamp,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(Timestamp, RunKey)>, StoreError>> {
        self.store.due(after, until, limit)
    }
    fn active(
        &self,
        after: Option<RunKey>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunKey>, StoreError>> {
        self.store.active(after, limit)
    }
    fn deliver<'a>(
        &'a self,
        to: &'a RunId,
        message: NewMessage,
        at: Timestamp,
        keep_until: Timestamp,
    ) -> BoxFuture<'a, Result<Delivery, StoreError>> {
        self.store.deliver(to, message, at, keep_until)
    }
    fn inbox(
        &self,
        run: RunKey,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Message>, StoreError>> {
        self.store.inbox(run, after, limit)
    }
    fn dead_letters(
        &self,
        run: RunKey,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<DeadLetter>, StoreError>> {
        self.store.dead_letters(run, after, limit)
    }
    fn answer(&self, request: u128) -> BoxFuture<'_, Result<Option<Answer>, StoreError>> {
        self.store.answer(request)
    }
    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.store.list(filter)
    }
    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.close()
    }
}
