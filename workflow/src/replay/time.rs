//! Instants as the history knows them.

use std::fmt;
use std::time::Duration;

/// An instant: milliseconds since the Unix epoch, set by the engine from its clock.
///
/// Arithmetic saturates: a deadline too far away to be written is [`Timestamp::MAX`], never a wrapped one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Later than every instant that will come.
    pub const MAX: Self = Self(i64::MAX);
    /// Earlier than every instant that was.
    pub const MIN: Self = Self(i64::MIN);

    /// The instant so many milliseconds after (or before) the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The instant `duration` later. Parts of a millisecond are rounded up; overflow gives [`Timestamp::MAX`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use workflow::Timestamp;
    ///
    /// let start = Timestamp::from_millis(1_000);
    /// assert_eq!(start.after(Duration::from_micros(500)), Timestamp::from_millis(1_001));
    /// assert_eq!(start.after(Duration::MAX), Timestamp::MAX);
    /// ```
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        let millis = duration.as_nanos().div_ceil(1_000_000);
        Self(
            self.0
                .saturating_add(i64::try_from(millis).unwrap_or(i64::MAX)),
        )
    }

    /// How long it is from `earlier` to here; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl From<std::time::SystemTime> for Timestamp {
    fn from(time: std::time::SystemTime) -> Self {
        match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => Self(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
            Err(before) => {
                Self(i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms))
            }
        }
    }
}

/// Milliseconds since the epoch, as in `@1764475944123`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.0)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        i64::deserialize(deserializer).map(Self)
    }
}
