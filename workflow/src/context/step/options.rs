//! How a step is tried.

use std::time::Duration;

use crate::replay::{Backoff, Op, Site, Undoing};

/// How a step is tried, as far as it is said. What a site says goes before what the step's definition says.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StepOptions {
    retries: Option<u32>,
    backoff: Option<Backoff>,
    timeout: Option<Timeout>,
    retry_on_timeout: Option<bool>,
    ephemeral: Option<bool>,
    at_most_once: Option<bool>,
    undoing: Option<Undoing>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Timeout {
    After(Duration),
    Never,
}

/// A duration, from the milliseconds that the macros make of a literal such as `"15m"`.
pub const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl StepOptions {
    const RETRIES: u32 = 3;
    const TIMEOUT: Duration = Duration::from_secs(30);

    /// Nothing said.
    pub const fn new() -> Self {
        Self {
            retries: None,
            backoff: None,
            timeout: None,
            retry_on_timeout: None,
            ephemeral: None,
            at_most_once: None,
            undoing: None,
        }
    }

    /// The effect is undone by the undo of that site, also when it is `unknown` whether it was had.
    #[must_use]
    pub const fn undone_by(mut self, site: &'static Site, unknown: bool) -> Self {
        self.undoing = Some(Undoing {
            path: site.path,
            unknown,
        });
        self
    }

    /// How many attempts may follow the first. 3 when not said, 0 for `at_most_once`.
    #[must_use]
    pub const fn retries(mut self, retries: u32) -> Self {
        self.retries = Some(retries);
        self
    }

    /// How long to wait before another attempt.
    #[must_use]
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// How long an attempt may take. 30 seconds when not said.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(Timeout::After(timeout));
        self
    }

    /// An attempt may take as long as it likes.
    #[must_use]
    pub const fn no_timeout(mut self) -> Self {
        self.timeout = Some(Timeout::Never);
        self
    }

    /// Whether an attempt that timed out may be followed by another.
    #[must_use]
    pub const fn retry_on_timeout(mut self, retry: bool) -> Self {
        self.retry_on_timeout = Some(retry);
        self
    }

    /// Whether the outcome rides on the next commit: after a crash the body may run again and give another value.
    #[must_use]
    pub const fn ephemeral(mut self, ephemeral: bool) -> Self {
        self.ephemeral = Some(ephemeral);
        self
    }

    /// Whether it is recorded that an attempt begins, before it does: after a crash it is not made again.
    #[must_use]
    pub const fn at_most_once(mut self, at_most_once: bool) -> Self {
        self.at_most_once = Some(at_most_once);
        self
    }

    /// These options, and where they say nothing, `definition`'s.
    pub(super) fn over(self, definition: Self) -> Self {
        Self {
            retries: self.retries.or(definition.retries),
            backoff: self.backoff.or(definition.backoff),
            timeout: self.timeout.or(definition.timeout),
            retry_on_timeout: self.retry_on_timeout.or(definition.retry_on_timeout),
            ephemeral: self.ephemeral.or(definition.ephemeral),
            at_most_once: self.at_most_once.or(definition.at_most_once),
            undoing: self.undoing.or(definition.undoing),
        }
    }

    pub(super) fn op(&self) -> Op {
        let announced = self.is_at_most_once();
        Op::Step {
            attempts: self.attempts(),
            // What is undone is recorded for sure, whatever the step's definition says.
            ephemeral: self.ephemeral.unwrap_or(false) && self.undoing.is_none(),
            announced,
            undoing: self.undoing,
        }
    }

    /// How many attempts there may be in all.
    pub(super) fn attempts(&self) -> u32 {
        let retries = if self.is_at_most_once() {
            0
        } else {
            Self::RETRIES
        };
        self.retries.unwrap_or(retries).saturating_add(1)
    }

    pub(super) fn time(&self) -> Option<Duration> {
        match self.timeout {
            None => Some(Self::TIMEOUT),
            Some(Timeout::After(time)) => Some(time),
            Some(Timeout::Never) => None,
        }
    }

    pub(super) fn retries_timeouts(&self) -> bool {
        self.retry_on_timeout.unwrap_or(false)
    }

    pub(super) fn waits(&self) -> Backoff {
        self.backoff.unwrap_or(Backoff::DEFAULT)
    }

    fn is_at_most_once(&self) -> bool {
        self.at_most_once.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // RVT-STEP-22
    #[test]
    fn what_is_not_said_is_three_retries_and_thirty_seconds() {
        let options = StepOptions::new();
        assert_eq!(
            (options.attempts(), options.time()),
            (4, Some(Duration::from_secs(30)))
        );
        assert!(!options.retries_timeouts());
        // U18
        assert_eq!(options.at_most_once(true).attempts(), 1);
        assert_eq!(options.at_most_once(true).retries(2).attempts(), 3);
        assert_eq!(options.retries(u32::MAX).attempts(), u32::MAX);
    }

    #[test]
    fn a_site_goes_before_the_definition_and_only_where_it_says_something() {
        let definition = StepOptions::new().retries(9).no_timeout().ephemeral(true);
        let site = StepOptions::new()
            .retries(1)
            .timeout(millis(5))
            .ephemeral(false);
        assert_eq!(site.over(definition), site);
        assert_eq!(StepOptions::new().over(definition), definition);
        assert_eq!(
            StepOptions::new().retries(1).over(definition),
            definition.retries(1)
        );
    }
}
