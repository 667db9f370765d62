//! Durations as people write them: `"200ms"`, `"15m"`, `"1h30m"`.

use crate::messages::{self, Message};

/// Why a text is no duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    Shape,
    TooLong,
}

impl Wrong {
    pub(crate) fn message(self) -> Message {
        match self {
            Self::Shape => messages::DURATION,
            Self::TooLong => messages::DURATION_TOO_LONG,
        }
    }
}

/// Milliseconds.
pub(crate) fn parse(text: &str) -> Result<u64, Wrong> {
    let mut rest = text.trim();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return Err(Wrong::Shape);
    }
    while !rest.is_empty() {
        let digits = rest
            .find(|char: char| !char.is_ascii_digit())
            .ok_or(Wrong::Shape)?;
        let (number, after) = rest.split_at(digits);
        let letters = after
            .find(|char: char| !char.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let unit: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(Wrong::Shape),
        };
        if number.is_empty() {
            return Err(Wrong::Shape);
        }
        let number: u64 = number.parse().map_err(|_| Wrong::TooLong)?;
        total = number
            .checked_mul(unit)
            .and_then(|part| total.checked_add(part))
            .ok_or(Wrong::TooLong)?;
        rest = after.trim_start();
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_write_them() {
        for (text, millis) in [
            ("0s", 0),
            ("200ms", 200),
            ("15m", 900_000),
            ("1h30m", 5_400_000),
            ("1d 2h", 93_600_000),
        ] {
            assert_eq!(parse(text), Ok(millis), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "15", "m", "15 minutes", "1.5h", "-1s", "15m!"] {
            assert_eq!(parse(text), Err(Wrong::Shape), "{text}");
        }
        for text in ["99999999999999999999s", "18446744073709551615d"] {
            assert_eq!(parse(text), Err(Wrong::TooLong), "{text}");
        }
    }
}
