//! A store whose answers take their time on the way: what it says was true when it was asked.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use workflow::MemoryStore;
use workflow::replay::{RunId, RunKey};
use workflow::store::{Append, Appended, BoxFuture, Loaded, RunRow, Store, StoreError};

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
    fn append(&self, append: Append) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(async move {
            let answer = self.store.append(append).await;
            wait(&self.appends).await;
            answer
        })
    }

    fn find<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRow>, StoreError>> {
        Box::pin(async move {
            let answer = self.store.find(id).await;
            wait(&self.finds).await;
            answer
        })
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

    crate::pass_on! {
        store: identity allocate cancel rewrite delete row due active deliver inbox dead_letters answer value values put list close
    }
}
