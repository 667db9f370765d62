//! What an attempt's end means: the step's value, its failure, or another attempt.

use std::any::type_name;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::body::panic_message;
use super::super::{BlockedMark, Instead, Run, thrown};
use super::attempt::Ended;
use super::{Critical, RetryIf, StepOptions, Typing};
use crate::codec::{self, BoxError, Encoded};
use crate::replay::{Failure, FailureKind, Location, Payload};

/// What an attempt's end means.
pub(super) enum Verdict<T> {
    /// The step succeeded: what to record, and what that reads back as.
    Value(Payload, T),
    /// The step failed for good.
    Failed(Failure),
    /// The attempt failed, and another one follows.
    Again(Failure),
}

/// Who judges: the step's types and options, and where it is.
pub(super) struct Judge<'j, 's, R, T> {
    pub(super) run: &'j Run,
    pub(super) location: &'j Location,
    pub(super) options: &'j StepOptions,
    pub(super) typing: &'j Typing<R, T>,
    pub(super) retry_if: Option<&'j RetryIf<'s, R>>,
    pub(super) number: u32,
}

impl<R, T> Judge<'_, '_, R, T> {
    pub(super) fn judge(&self, ended: Ended<R>) -> Verdict<T> {
        match ended {
            Ended::TimedOut => self.timed_out(),
            Ended::Panicked(message) => self.panicked(message),
            Ended::Instead(instead) => {
                match catch_unwind(AssertUnwindSafe(|| self.instead(instead))) {
                    Ok(verdict) => verdict,
                    Err(panic) => self.panicked(panic_message(&*panic)),
                }
            }
            // Serde and `retry_if` are user code, too.
            Ended::Returned(returned) => {
                match catch_unwind(AssertUnwindSafe(|| self.returned(returned))) {
                    Ok(verdict) => verdict,
                    Err(panic) => self.panicked(panic_message(&*panic)),
                }
            }
        }
    }

    fn returned(&self, returned: R) -> Verdict<T> {
        let Typing { split, via, .. } = self.typing;
        let name = via.error_name();
        // All that is to be known of an error must be asked before it is boxed.
        let typed = via.value(&returned);
        let shown = via.view(&returned).map(|error| self.describe(error, name));
        let wanted = self.retry_if.is_none_or(|retry_if| retry_if(&returned));
        let error = match split(returned) {
            Ok(value) => return self.value(&value),
            Err(error) => error,
        };
        let (failure, ends) = shown.unwrap_or_else(|| self.describe(&*error, name));
        let typed = typed.and_then(|json| self.run.seal(json).ok());
        let failure = failure.with_value(typed);
        match ends {
            Some(kind) => self.fail(failure.with_kind(kind)),
            None if wanted => self.again(failure),
            None => self.fail(failure.with_kind(FailureKind::Critical)),
        }
    }

    /// As `returned`, of what no body gave. `retry_if` is not asked: it takes what a body returns.
    fn instead(&self, instead: Instead) -> Verdict<T> {
        let (error, typed) = match instead {
            Instead::Value(json) => match (self.typing.decode)(&json) {
                Ok(value) => return self.value(&value),
                Err(error) => {
                    let json = String::from_utf8_lossy(&json);
                    let message = format!(
                        "`{json}` was given in place of its value, and is no `{}`: {error}",
                        type_name::<T>()
                    );
                    return self.fail(self.failure(FailureKind::Encode, message));
                }
            },
            Instead::Error { error, typed } => (error, typed),
        };
        let name = typed.as_ref().map_or("", |(name, _)| name);
        let (failure, ends) = self.describe(&*error, name);
        let value = typed.and_then(|(_, json)| self.run.seal(json).ok());
        let failure = failure.with_value(value);
        match ends {
            Some(kind) => self.fail(failure.with_kind(kind)),
            None => self.again(failure),
        }
    }

    fn value(&self, value: &T) -> Verdict<T> {
        let encoded: Result<_, BoxError> = match (self.typing.encode)(value) {
            Ok(Encoded { json, value }) => self.run.seal(json).map(|payload| (payload, value)),
            Err(error) => Err(error.into()),
        };
        match encoded {
            Ok((payload, decoded)) => Verdict::Value(payload, decoded),
            Err(error) => {
                let message = format!(
                    "its value, a `{}`, cannot be recorded: {error}",
                    type_name::<T>()
                );
                self.fail(self.failure(FailureKind::Encode, message))
            }
        }
    }

    /// What the step put cannot be written.
    pub(super) fn unwritten(&self, error: &BoxError) -> Verdict<T> {
        let message = format!("what it put cannot be recorded: {error}");
        self.fail(self.failure(FailureKind::Encode, message))
    }

    fn timed_out(&self) -> Verdict<T> {
        let time = self.options.time().unwrap_or_default();
        let failure = self.failure(
            FailureKind::TimedOut,
            format!("it took longer than {time:?}"),
        );
        if self.options.retries_timeouts() {
            return self.again(failure);
        }
        self.fail(failure)
    }

    fn panicked(&self, message: String) -> Verdict<T> {
        self.again(self.failure(FailureKind::Panicked, message))
    }

    fn again(&self, failure: Failure) -> Verdict<T> {
        if self.number < self.options.attempts() {
            return Verdict::Again(failure.with_attempts(self.number));
        }
        self.fail(failure)
    }

    fn fail(&self, failure: Failure) -> Verdict<T> {
        Verdict::Failed(failure.with_attempts(self.number))
    }

    fn failure(&self, kind: FailureKind, message: String) -> Failure {
        Failure::new(kind, self.location.clone(), message)
    }

    /// The failure that an error makes, and the kind of it if it is marked as one that another attempt does not mend.
    fn describe(
        &self,
        error: &(dyn Error + 'static),
        name: &str,
    ) -> (Failure, Option<FailureKind>) {
        if let Some(blocked) = thrown::find::<BlockedMark>(error) {
            let (kind, at) = (FailureKind::Blocked, self.location.clone());
            let failure = Failure::new(kind, at, blocked.reason()).with_type_name(name);
            return (failure, Some(kind));
        }
        let ends = thrown::find::<Critical>(error).map(|_| FailureKind::Critical);
        let failure =
            Failure::from_error(FailureKind::Exhausted, self.location.clone(), name, error);
        (failure, ends)
    }
}

/// A failure as it was recorded, as the workflow sees it.
pub(super) fn seen(run: &Run, failure: Failure) -> Failure {
    codec::open_failure(run.codec(), failure)
}
