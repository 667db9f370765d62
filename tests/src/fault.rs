//! A store whose appends fail, before or after they were written.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use workflow::MemoryStore;
use workflow::store::{Append, Appended, BoxFuture, Store, StoreError};

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

    crate::pass_on! {
        0: identity allocate cancel rewrite delete find row load first due active deliver inbox dead_letters answer value values put list close
    }
}
