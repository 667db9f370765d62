//! An operation in flight: from its place in the queue to how it ended.

use std::convert::Infallible;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::Attempt;
use super::error::{Refused, RunError};
use super::failing::{Meaning, meaning};
use super::shared::{Shared, derive};
use super::snapshot::{Status, Undo};
use super::work::{BoxFuture, Ended};
use crate::context::Blocked;
use crate::context::Cancellation;
use crate::replay::{Failure, FailureKind};

/// Whoever has this drives the operation. Dropping it cancels the operation, if it has not ended.
pub(super) struct Flight {
    pub(super) shared: Arc<Shared>,
    pub(super) token: Cancellation,
}

/// How an attempt ended.
enum Attempted {
    /// By itself.
    Ended(Ended),
    /// It took too long. Whether it goes on all the same.
    TimedOut { goes_on: bool },
    /// The operation was cancelled.
    Cancelled,
}

impl Flight {
    /// Starts the operation over, and queues it.
    pub(super) fn queue(shared: &Arc<Shared>, reason: Option<String>) -> Result<Self, Refused> {
        let name = shared.name();
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(Refused::NoRuntime { name });
        }
        let token = Cancellation::default();
        shared.change(|state| {
            shared.refuse_in_flight(state)?;
            match state.record.status {
                Status::Skipped => return Err(Refused::Skipped { name }),
                Status::RollbackFailed => return Err(Refused::RollbackUnfinished { name }),
                _ => {}
            }
            state.start_over();
            state.record.reason = reason;
            state.flight = Some(token.clone());
            state.set(Status::Queued);
            Ok(())
        })?;
        Ok(Self {
            shared: Arc::clone(shared),
            token,
        })
    }

    /// Drives it to its end. The signal cancels it.
    pub(super) async fn run<T: DeserializeOwned>(
        self,
        signal: Option<BoxFuture<()>>,
    ) -> Result<T, RunError> {
        let name = self.shared.name();
        let location = self.shared.location.clone();
        let json = self.run_untyped(signal).await?;
        // It was read back before it was shown as a success.
        serde_json::from_str(&json).map_err(|error| {
            let message = format!("the result of operation `{name}` cannot be read back: {error}");
            RunError::Failed(Failure::new(FailureKind::Decode, location, message))
        })
    }

    /// Drives it to its end; gives its result as JSON.
    pub(super) async fn run_untyped(
        self,
        signal: Option<BoxFuture<()>>,
    ) -> Result<String, RunError> {
        let flight = self;
        let shared = &*flight.shared;
        let aside = async {
            let signalled = async {
                match signal {
                    Some(signal) => signal.await,
                    None => std::future::pending().await,
                }
                shared.cancel("its caller's signal");
                std::future::pending::<Infallible>().await
            };
            tokio::select! {
                biased;
                never = signalled => match never {},
                () = shared.show_in_time() => std::future::pending::<Infallible>().await,
            }
        };
        tokio::select! {
            biased;
            result = flight.attempts() => result,
            never = aside => match never {},
        }
    }

    async fn attempts(&self) -> Result<String, RunError> {
        let shared = &self.shared;
        while let Some(attempt) = self.begin_attempt() {
            let attempted = self.attempt(&attempt).await;
            shared.end_attempt(&attempt, "the attempt that ran it has ended");
            let failure = match attempted {
                Attempted::Cancelled => break,
                Attempted::Ended(Ended::Value(json)) => {
                    if shared.succeed(&json) {
                        return Ok(json);
                    }
                    break;
                }
                Attempted::Ended(Ended::Error(error)) => match meaning(&error, &shared.location) {
                    Meaning::Blocked(reason) => {
                        if shared.block(&reason) {
                            return Err(RunError::Blocked(super::blocked(reason)));
                        }
                        break;
                    }
                    Meaning::Failed(failure, true) if shared.may_mend(&error) => {
                        Again::Maybe(failure)
                    }
                    Meaning::Failed(failure, true) => {
                        Again::No(failure.with_kind(FailureKind::Critical))
                    }
                    Meaning::Failed(failure, false) => Again::No(failure),
                },
                Attempted::Ended(Ended::Encode(reason)) => Again::No(shared.failure(
                    FailureKind::Encode,
                    format!("its result cannot be recorded: {reason}"),
                )),
                Attempted::Ended(Ended::Panicked(said)) => {
                    Again::Maybe(shared.failure(FailureKind::Panicked, said))
                }
                Attempted::TimedOut { goes_on } => shared.timed_out(goes_on),
            };
            let failure = match failure {
                Again::Maybe(failure) if attempt.number() <= shared.core.retries => {
                    let failure = failure.with_attempts(attempt.number());
                    if self.wait_after(&attempt, failure).await {
                        continue;
                    }
                    break;
                }
                Again::Maybe(failure) | Again::No(failure) => failure,
            };
            let failure = failure.with_attempts(attempt.number());
            if shared.fail(&failure) {
                return Err(RunError::Failed(failure));
            }
            break;
        }
        Err(shared.stopped_by())
    }

    /// Begins the next attempt; nothing when the operation was cancelled meanwhile.
    fn begin_attempt(&self) -> Option<Attempt> {
        let shared = &self.shared;
        let now = shared.now();
        shared.change(|state| {
            if !state.record.status.is_running() {
                return None;
            }
            state.put_children_aside();
            let last = state.record.failure.take();
            state.record.attempt = state.record.attempt.saturating_add(1);
            state.record.started_at.get_or_insert(now);
            state.record.retry_at = None;
            state.record.reason = None;
            if shared.core.undo.is_some() {
                state.record.undo = Undo::Owed;
            }
            let attempt = Attempt::new(shared, state, last);
            state.set(match attempt.number() {
                1 => Status::Running,
                _ => Status::Retrying,
            });
            Some(attempt)
        })
    }

    /// One attempt. When this has returned, async work is gone.
    async fn attempt(&self, attempt: &Attempt) -> Attempted {
        let core = &self.shared.core;
        let mut body = core.work.begin(attempt.clone());
        let limit = async {
            match core.timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        // The body first: what has ended in time has, and who looks at its token may still act on it.
        tokio::select! {
            biased;
            ended = &mut body => return Attempted::Ended(ended),
            () = self.token.cancelled() => return Attempted::Cancelled,
            () = limit => {}
        }
        self.shared
            .end_attempt(attempt, "the attempt that ran it has timed out");
        tokio::select! {
            biased;
            _ = &mut body => {}
            () = self.token.cancelled() => return Attempted::Cancelled,
            () = tokio::time::sleep(core.grace()) => {}
        }
        drop(body);
        let goes_on = self.shared.lock().threads > 0;
        Attempted::TimedOut { goes_on }
    }

    /// Waits until the next attempt is due; false when the operation was cancelled.
    async fn wait_after(&self, attempt: &Attempt, failure: Failure) -> bool {
        let shared = &self.shared;
        let now = shared.now();
        let wait = shared.change(|state| {
            let random = unit(derive(
                state.record.seed,
                "jitter",
                u64::from(state.record.generation) << 32 | u64::from(attempt.number()),
            ));
            let wait = shared.core.backoff.wait(attempt.number(), random);
            if !state.record.status.is_running() {
                return None;
            }
            state.record.failure = Some(failure);
            if !wait.is_zero() {
                state.record.retry_at = Some(now.after(wait));
                state.record.reason = Some("its next attempt".to_owned());
                state.set(Status::Waiting);
            }
            Some(wait)
        });
        match wait {
            None => false,
            Some(wait) if wait.is_zero() => true,
            Some(wait) => tokio::select! {
                biased;
                () = self.token.cancelled() => false,
                () = tokio::time::sleep(wait) => true,
            },
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.shared
            .cancel_running("the future that ran it was dropped");
        self.shared.change(|state| state.flight = None);
        self.shared.let_go.notify_waiters();
    }
}

/// Whether a failure may be followed by another attempt.
enum Again {
    Maybe(Failure),
    No(Failure),
}

/// From `0.0` to below `1.0`.
fn unit(bits: u128) -> f64 {
    let mantissa = u32::try_from(bits >> 104).unwrap_or_default();
    f64::from(mantissa) / f64::from(1u32 << 24)
}

/// How an operation goes on after an attempt. Each says whether it did: not when the operation was cancelled before.
impl Shared {
    /// Ends what the attempt may write, and what it left behind.
    fn end_attempt(&self, attempt: &Attempt, reason: &str) {
        let children = self.change(|state| {
            if state.writer != Some(attempt.epoch()) {
                return Vec::new();
            }
            state.fence();
            state.children.clone()
        });
        for child in children {
            child.cancel_running(reason);
        }
        attempt.cancellation().cancel();
    }

    fn cancel_running(&self, reason: &str) {
        if self.lock().record.status.is_running() {
            self.cancel(reason);
        }
    }

    fn succeed(&self, json: &str) -> bool {
        let now = self.now();
        self.conclude(|state| {
            state.record.reason = None;
            state.record.result = Some(json.to_owned());
            state.complete(Status::Succeeded, now);
        })
    }

    fn fail(&self, failure: &Failure) -> bool {
        let now = self.now();
        self.conclude(|state| {
            state.failed(failure);
            state.complete(Status::Failed, now);
        })
    }

    fn block(&self, reason: &str) -> bool {
        self.conclude(|state| {
            state.record.reason = Some(reason.to_owned());
            state.set(Status::Blocked);
        })
    }

    fn conclude(&self, conclude: impl FnOnce(&mut super::state::State)) -> bool {
        self.change(|state| {
            let goes_on = state.record.status.is_running();
            if goes_on {
                conclude(state);
            }
            goes_on
        })
    }

    fn may_mend(&self, error: &crate::codec::BoxError) -> bool {
        let Some(retry_if) = &self.core.retry_if else {
            return true;
        };
        // One that panics does not say that another attempt would help.
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| retry_if(&**error)))
            .unwrap_or(false)
    }

    fn timed_out(&self, goes_on: bool) -> Again {
        let limit = self.core.timeout.unwrap_or_default();
        let failure = |text| self.failure(FailureKind::TimedOut, text);
        if goes_on {
            return Again::No(failure(format!(
                "it took longer than {limit:?} and did not stop when told to, so it is not tried again"
            )));
        }
        Again::Maybe(failure(format!("it took longer than {limit:?}")))
    }

    pub(super) fn failure(&self, kind: FailureKind, message: String) -> Failure {
        Failure::new(kind, self.location.clone(), message)
    }

    /// Why it gives no result though its work did not fail.
    pub(super) fn stopped_by(&self) -> RunError {
        let state = self.lock();
        let (name, reason) = (self.name(), state.record.reason.clone().unwrap_or_default());
        match state.record.status {
            Status::Skipped => RunError::Skipped { name, reason },
            _ => RunError::Cancelled { name, reason },
        }
    }
}

impl From<Blocked> for RunError {
    fn from(blocked: Blocked) -> Self {
        Self::Blocked(blocked)
    }
}
