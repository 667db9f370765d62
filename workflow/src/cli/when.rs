//! Instants and spans of time, as people write and read them.

use std::str::FromStr;
use std::time::Duration;

use jiff::civil::Date;
use jiff::{Span, SpanRelativeTo};
use workflow::{Clock, SystemClock, Timestamp};

/// An instant that was, or so long ago.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Since(pub(crate) Timestamp);

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(at) = text.parse::<jiff::Timestamp>() {
            return Ok(Self(Timestamp::from_millis(at.as_millisecond())));
        }
        if let Ok(date) = text.parse::<Date>()
            && let Ok(at) = format!("{date}T00:00:00Z").parse::<jiff::Timestamp>()
        {
            return Ok(Self(Timestamp::from_millis(at.as_millisecond())));
        }
        let span = text.parse::<Span>().ok();
        let ago = span
            .and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok())
            .filter(|ago| !ago.is_negative())
            .and_then(|ago| i64::try_from(ago.as_millis()).ok())
            .ok_or("it is neither an instant (2026-11-30, 2026-11-30T16:00:00Z) nor so long ago (15m, 2h, 3d)")?;
        let now = SystemClock.now().as_millis();
        Ok(Self(Timestamp::from_millis(now.saturating_sub(ago))))
    }
}

/// An instant as text, in UTC: `2026-11-30T16:00:00.123Z`.
pub(crate) fn instant(at: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.as_millis()) {
        Ok(instant) => format!("{instant:.3}"),
        // Beyond what calendars have: a deadline that saturated.
        Err(_) if at.as_millis() > 0 => "never".to_owned(),
        Err(_) => "before all time".to_owned(),
    }
}

/// A span of time in its two largest units: `2m 3s`, `1.234s`.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    if days > 0 {
        format!("{days}d {hours}h")
    } else if hours > 0 {
        format!("{hours}h {minutes}m")
    } else if minutes > 0 {
        format!("{minutes}m {}s", seconds % 60)
    } else {
        let millis = span.subsec_millis();
        format!("{seconds}.{millis:03}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_an_instant_a_day_or_so_long_ago() {
        let millis = |text: &str| text.parse::<Since>().map(|since| since.0.as_millis());
        assert_eq!(millis("1970-01-02T00:00:01Z"), Ok(86_401_000));
        assert_eq!(millis("1970-01-02"), Ok(86_400_000));
        let (ago, now) = (millis("3d").unwrap(), SystemClock.now().as_millis());
        assert!((now - ago - 3 * 86_400_000).abs() < 60_000);
        for wrong in ["yesterday", "", "1mo", "-2h", "16:00"] {
            assert!(millis(wrong).unwrap_err().contains("2h"), "{wrong}");
        }
    }

    #[test]
    fn instants_and_spans_of_any_size_are_text() {
        assert_eq!(
            instant(Timestamp::from_millis(1_764_475_944_120)),
            "2025-11-30T04:12:24.120Z"
        );
        assert_eq!(instant(Timestamp::MAX), "never");
        assert_eq!(instant(Timestamp::MIN), "before all time");
        let spans = [
            (0, "0.000s"),
            (1_234, "1.234s"),
            (123_000, "2m 3s"),
            (3_723_000, "1h 2m"),
            (90_000_000, "1d 1h"),
        ];
        for (millis, text) in spans {
            assert_eq!(span(Duration::from_millis(millis)), text);
        }
    }
}
