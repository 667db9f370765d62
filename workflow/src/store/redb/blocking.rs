//! Where work that waits for the disk is done.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use tokio::runtime::{Handle, RuntimeFlavor};

/// Where the calling thread may wait for the disk.
#[derive(Debug)]
pub(super) enum Place {
    /// Right here: no runtime's thread.
    Here,
    /// Right here, when the runtime is told: it moves the worker's other tasks away.
    Worker(Handle),
    /// On the runtime's blocking threads: this one is all it has.
    Aside(Handle),
}

impl Place {
    pub(super) fn now() -> Self {
        match Handle::try_current() {
            Err(_) => Self::Here,
            Ok(handle) => match handle.runtime_flavor() {
                RuntimeFlavor::MultiThread => Self::Worker(handle),
                _ => Self::Aside(handle),
            },
        }
    }
}

/// Waits here, after telling the runtime.
pub(super) fn in_place<T>(work: impl FnOnce() -> T) -> T {
    let mut work = Some(work);
    let run = || work.take().map(|work| work());
    match catch_unwind(AssertUnwindSafe(|| tokio::task::block_in_place(run))) {
        Ok(Some(done)) => done,
        Ok(None) => unreachable!("the work is there until it is taken"),
        // Inside a `LocalSet` the runtime cannot move the other tasks away and refuses by panicking.
        Err(panic) => match work {
            Some(work) => work(),
            None => resume_unwind(panic),
        },
    }
}

/// Does work that waits for the disk, without holding up other tasks.
pub(super) async fn offload<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match Place::now() {
        Place::Here => work(),
        Place::Worker(_) => in_place(work),
        Place::Aside(runtime) => match runtime.spawn_blocking(work).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime is being shut down, and this task with it.
                Err(_) => std::future::pending().await,
            },
        },
    }
}
