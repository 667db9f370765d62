//! What the tests share: a world with a clock and a store that outlive engines, and a store with faults.

pub mod disk;
mod fault;
pub mod fuzz;
pub mod mortal;
mod pass_on;
pub mod program;
pub mod scene;
mod slow;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use workflow::{Engine, EngineBuilder, MemoryStore, Timestamp, TokioClock};

pub use fault::{Fault, FaultStore};
pub use slow::{SlowStore, late};

/// A clock and a store. Engines come and go over them.
#[derive(Debug, Clone)]
pub struct World {
    /// What the store holds.
    pub store: Arc<MemoryStore>,
    clock: TokioClock,
}

impl World {
    /// An empty store, at one million milliseconds past the epoch.
    #[must_use]
    pub fn new() -> Self {
        Self {
            store: Arc::new(MemoryStore::new()),
            clock: TokioClock::starting_at(Timestamp::from_millis(1_000_000)),
        }
    }

    /// An engine over this store and clock, to be given workflows.
    pub fn engine(&self) -> EngineBuilder {
        Engine::builder()
            .shared_store(Arc::<MemoryStore>::clone(&self.store))
            .clock(self.clock)
            .code_id(1)
    }

    /// What a restart would find if the process were killed now.
    #[must_use]
    pub fn crash(&self) -> Self {
        Self {
            store: Arc::new(self.store.crash()),
            clock: self.clock,
        }
    }

    /// The world's clock.
    #[must_use]
    pub fn clock(&self) -> TokioClock {
        self.clock
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

/// Counts calls; a state for workflows.
#[derive(Debug, Clone, Default)]
pub struct Counter(Arc<AtomicUsize>);

impl Counter {
    /// Counts one more, and says which it is, from 1.
    pub fn hit(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Lets paused time pass.
pub async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}
