//! When a failed attempt is followed by another: arithmetic only.

use std::time::Duration;

/// How long to wait before the next attempt.
///
/// The wait before attempt `n + 1` is `initial * factor^(n - 1)`, at most `max`, plus up to `jitter` of itself. The
/// chosen instant is recorded, so neither a replay nor a changed policy alters it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// The wait after the first failed attempt.
    pub initial: Duration,
    /// What each further wait is multiplied by; 1 for a fixed wait.
    pub factor: f64,
    /// The longest wait.
    pub max: Duration,
    /// How much of the wait may be added at random: 0 for none, 0.5 for up to half of it.
    pub jitter: f64,
}

impl Backoff {
    /// 200 ms, doubled each time, at most 30 s, no jitter.
    pub const DEFAULT: Self =
        Self::exponential(Duration::from_millis(200), 2.0, Duration::from_secs(30));

    /// The same wait every time.
    pub const fn fixed(wait: Duration) -> Self {
        Self {
            initial: wait,
            factor: 1.0,
            max: wait,
            jitter: 0.0,
        }
    }

    /// A wait that grows by `factor`.
    pub const fn exponential(initial: Duration, factor: f64, max: Duration) -> Self {
        Self {
            initial,
            factor,
            max,
            jitter: 0.0,
        }
    }

    /// The wait after failed attempt `attempt` (from 1). `random` is in `0.0..1.0`; it matters only with jitter.
    pub fn wait(&self, attempt: u32, random: f64) -> Duration {
        let doublings = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let grown = self.initial.as_secs_f64() * self.factor.powi(doublings);
        let capped = if grown.is_finite() {
            grown.min(self.max.as_secs_f64())
        } else {
            self.max.as_secs_f64()
        };
        let wait = capped * (1.0 + self.jitter.max(0.0) * random);
        Duration::try_from_secs_f64(wait.max(0.0)).unwrap_or(Duration::MAX)
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // RVT-STEP-22
    #[test]
    fn the_default_waits_are_200_400_800_ms_and_never_over_30_s() {
        let waits: Vec<_> = (1..=3)
            .map(|n| Backoff::DEFAULT.wait(n, 0.0).as_millis())
            .collect();
        assert_eq!(waits, [200, 400, 800]);
        assert_eq!(Backoff::DEFAULT.wait(9, 0.0), Duration::from_secs(30));
        assert_eq!(
            Backoff::DEFAULT.wait(u32::MAX, 0.0),
            Duration::from_secs(30)
        );
    }

    #[test]
    fn odd_policies_give_a_wait_and_not_a_panic() {
        let zero = Backoff::exponential(Duration::ZERO, f64::INFINITY, Duration::MAX);
        assert_eq!(zero.wait(1, 0.0), Duration::ZERO);
        let _ = zero.wait(u32::MAX, 0.9);
        let endless = Backoff {
            jitter: f64::MAX,
            ..Backoff::fixed(Duration::MAX)
        };
        assert_eq!(endless.wait(5, 0.9), Duration::MAX);
        let backwards = Backoff {
            factor: -3.0,
            ..Backoff::DEFAULT
        };
        assert_eq!(backwards.wait(2, 0.0), Duration::ZERO);
    }

    #[test]
    fn jitter_adds_at_most_its_share() {
        let policy = Backoff {
            jitter: 0.5,
            ..Backoff::fixed(Duration::from_secs(2))
        };
        assert_eq!(policy.wait(1, 0.0), Duration::from_secs(2));
        assert_eq!(policy.wait(1, 1.0), Duration::from_secs(3));
    }
}
