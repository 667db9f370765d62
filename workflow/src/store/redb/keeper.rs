//! The keeper: a thread that folds when much is unfolded, or when nothing else happens. Steps never wait for it to wake.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::core::Core;
use crate::store::StoreError;

/// How the keeper is told that there is something to do.
#[derive(Debug, Default)]
pub(super) struct Signal {
    /// Whether it looks after the store every [`TICK`] by itself.
    awake: AtomicBool,
    call: Mutex<Call>,
    called: Condvar,
}

#[derive(Debug, Default)]
struct Call {
    now: bool,
    stop: bool,
}

/// The store is idle when nothing was committed between two ticks: then it is folded, and so a kill finds it at rest.
const TICK: Duration = Duration::from_millis(250);

/// It does not look more often than that, however short commits may wait.
const SHORTEST: Duration = Duration::from_millis(1);

impl Signal {
    /// Something was committed; `full` when the tail should be folded now.
    pub(super) fn committed(&self, full: bool) {
        if full || !self.awake.load(Ordering::Relaxed) {
            self.nudge();
        }
    }

    /// Wakes the keeper.
    pub(super) fn nudge(&self) {
        self.awake.store(true, Ordering::Relaxed);
        let mut call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        if !call.now {
            call.now = true;
            self.called.notify_one();
        }
    }

    fn stop(&self) {
        self.call
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .stop = true;
        self.called.notify_one();
    }

    /// Waits for a call, or so long. `None` when it is to stop; else whether it was called.
    fn wait(&self, tick: Duration) -> Option<bool> {
        let call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = |call: &mut Call| !call.now && !call.stop;
        let mut call = if self.awake.load(Ordering::Relaxed) {
            let waited = self.called.wait_timeout_while(call, tick, idle);
            waited.unwrap_or_else(PoisonError::into_inner).0
        } else {
            self.called
                .wait_while(call, idle)
                .unwrap_or_else(PoisonError::into_inner)
        };
        let called = std::mem::take(&mut call.now);
        if call.stop { None } else { Some(called) }
    }
}

/// The keeper's thread.
#[derive(Debug)]
pub(super) struct Keeper(JoinHandle<()>);

impl Keeper {
    pub(super) fn start(core: Arc<Core>) -> Result<Self, StoreError> {
        let thread = thread::Builder::new()
            .name("workflow-store".to_owned())
            .spawn(move || watch(&core));
        thread.map(Self).map_err(|error| StoreError::Io {
            operation: "starting the store's thread",
            retryable: true,
            source: Box::new(error),
        })
    }

    pub(super) fn stop(self, core: &Core) {
        core.signal.stop();
        // Its panics are caught where they happen.
        drop(self.0.join());
    }
}

fn watch(core: &Arc<Core>) {
    // Half of it: what was written just after one look is due at the next.
    let tick = core
        .options
        .relaxed
        .map_or(TICK, |wait| (wait / 2).clamp(SHORTEST, TICK));
    let mut seen = 0;
    let mut looked = Instant::now();
    while let Some(called) = core.signal.wait(tick) {
        core.sync_if_due();
        // A store that is to be synced more often is not idle sooner.
        if !called && looked.elapsed() < TICK {
            continue;
        }
        looked = Instant::now();
        let (next, entries, full) = {
            let tail = core.tail();
            (tail.next, tail.batches, tail.is_full(&core.options))
        };
        // Called, or a tick without a commit: an offered role that nobody takes must not strand what is queued.
        if (called || next == seen) && !core.queue.is_empty() {
            core.lead_if_offered();
        }
        let idle = !called && next == seen;
        if full || (idle && entries > 0) {
            // What fails is tried again at the next tick; the log keeps everything meanwhile.
            let folded = core.fold_all();
            drop(folded);
        }
        if idle && entries == 0 && core.queue.is_empty() {
            core.signal.awake.store(false, Ordering::Relaxed);
            // Whoever committed before this store saw it awake and did not call.
            if core.tail().next != next {
                core.signal.awake.store(true, Ordering::Relaxed);
            }
        }
        seen = next;
    }
}
