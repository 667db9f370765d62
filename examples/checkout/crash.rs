//! For the crash test: a store that has the process killed with SIGKILL right after its n-th append became durable, before
//! anyone learns of it. A shop has no use for it.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use workflow::replay::{Message, NewMessage, RunKey};
use workflow::store::{
    Answer, Append, Appended, BoxFuture, DeadLetter, Deleted, Deletion, Delivery, Identity, Loaded,
    Page, Rewrite, RunFilter, RunRow, Store, StoreError,
};
use workflow::{Payload, RedbStore, RunId, Timestamp};

#[derive(Debug)]
pub(crate) struct Crashing {
    pub(crate) store: RedbStore,
    pub(crate) left: AtomicU64,
}

impl Store for Crashing {
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(async move {
            let appended = self.store.append(append).await;
            if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
                let pid = std::process::id().to_string();
                let killed = Command::new("kill").args(["-9", &pid]).status();
                unreachable!("killed: {killed:?}");
            }
            appended
        })
    }

    fn identity(&self) -> Identity {
        self.store.identity()
    }

    fn allocate(&self) -> RunKey {
        self.store.allocate()
    }

    fn cancel(&self, run: RunKey, at: Timestamp) -> BoxFuture<'_, Result<Appended, StoreError>> {
        self.store.cancel(run, at)
    }

    fn rewrite(&self, rewrites: Vec<Rewrite>) -> BoxFuture<'_, Result<Appended, StoreError>> {
        self.store.rewrite(rewrites)
    }

    fn delete(&self, deletions: Vec<Deletion>) -> BoxFuture<'_, Result<Vec<Deleted>, StoreError>> {
        self.store.delete(deletions)
    }

    fn find<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRow>, StoreError>> {
        self.store.find(id)
    }

    fn row(&self, run: RunKey) -> BoxFuture<'_, Result<Option<RunRow>, StoreError>> {
        self.store.row(run)
    }

    fn load(&self, run: RunKey) -> BoxFuture<'_, Result<Option<Loaded>, StoreError>> {
        self.store.load(run)
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

    fn value<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Payload>, StoreError>> {
        self.store.value(key)
    }

    fn values<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, Payload)>, StoreError>> {
        self.store.values(prefix, after, limit)
    }

    fn put(&self, values: Vec<(String, Option<Payload>)>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.put(values)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.store.list(filter)
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.close()
    }
}
