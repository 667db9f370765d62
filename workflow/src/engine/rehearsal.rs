//! A run's code over its history, up to the gate and no further: what a drive does first, with nothing after it.
//!
//! Nothing is live before the gate: no body, no timer, no message, no child, and no batch. So whoever stops there has done
//! nothing, and knows what the next drive will find.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::driver::{not_durable, panic_message};
use crate::context::{Body, Host, Park, Run, undo_missing};
use crate::replay::{Divergence, Finished, Frontier, ParkReason, Timestamp};
use crate::store::BoxFuture;

/// What a rehearsal came to.
#[derive(Debug)]
pub(crate) enum Gate {
    /// The gate is open: every record is consumed, and the code is at the operations that `rehearse` gave.
    Open,
    /// The code came to its end, and nothing recorded is left.
    Ended(Finished),
    /// The code does not fit the history.
    Diverged(Divergence),
    /// The run cannot go on.
    Parks(Park),
}

/// Replays a run up to the gate. `frontier` becomes what the code is at when the gate opens.
pub(crate) fn rehearse(
    run: &Run,
    mut body: Body,
    mut frontier: Option<&mut Vec<Frontier>>,
) -> Gate {
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&woken));
    let gate = loop {
        if woken.0.swap(false, Ordering::AcqRel) {
            match Pin::new(&mut body).poll(&mut Context::from_waker(&waker)) {
                Poll::Pending => continue,
                Poll::Ready(Err(park)) => break Gate::Parks(park),
                Poll::Ready(Ok(finished)) => {
                    let mut replay = run.replay();
                    let passed = replay.finish(finished.clone());
                    break match replay.divergence() {
                        Some(divergence) => Gate::Diverged(divergence.clone()),
                        None if passed => Gate::Ended(finished),
                        None => Gate::Parks(impossible()),
                    };
                }
            }
        }
        let mut replay = run.replay();
        if replay.poll_handout() {
            continue;
        }
        if let Some(frontier) = &mut frontier {
            **frontier = replay.frontier();
        }
        let undoes = replay.undoes_first();
        let missing = undoes.filter(|entry| !run.has_undo(&entry.undo)).cloned();
        let open = replay.handle_quiet();
        if let Some(divergence) = replay.divergence() {
            break Gate::Diverged(divergence.clone());
        }
        if open && replay.pending() == 0 {
            break Gate::Parks(not_durable());
        }
        if open && let Some(entry) = missing {
            // A rollback is what the code is at, and the first thing it does is to park.
            break Gate::Parks(undo_missing(&entry));
        }
        if open {
            break Gate::Open;
        }
        if !woken.0.load(Ordering::Acquire) {
            // Neither a turn nor a gate nor a divergence: the history is not one that a run wrote.
            break Gate::Parks(impossible());
        }
    };
    // What the code holds may be anything, and may panic when it is dropped.
    if catch_unwind(AssertUnwindSafe(|| drop(body))).is_err() {
        tracing::warn!(run = %run.id(), "the workflow's own code panicked while it was dropped");
    }
    gate
}

/// What a panic outside of the code's own polls comes to: in a `Deserialize` of an argument, say.
pub(crate) fn caught(rehearsal: impl FnOnce() -> Gate) -> Gate {
    match catch_unwind(AssertUnwindSafe(rehearsal)) {
        Ok(gate) => gate,
        Err(panic) => Gate::Parks(Park {
            reason: ParkReason::Panicked,
            detail: format!(
                "the workflow's own code panicked: {}",
                panic_message(&*panic)
            ),
            location: None,
        }),
    }
}

fn impossible() -> Park {
    Park {
        reason: ParkReason::NewerFormat,
        detail: "the history is not one that a run could have written".to_owned(),
        location: None,
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// The host of a rehearsal: it has the time, and nothing else is asked of it before the gate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Silent {
    pub(crate) now: Timestamp,
}

impl Host for Silent {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn run_blocking(&self, _: Box<dyn FnOnce() + Send>) {
        debug_assert!(false, "no body begins before the gate");
    }

    fn random_unit(&self) -> f64 {
        0.0
    }
}
