//! Cron expressions over the calendar: which times of which days, in no time zone.

use std::fmt;

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::{SignedDuration, Span};

/// How far ahead the calendar is searched: it begins anew after so many years.
const CYCLE: i16 = 400;

/// When something is to happen, as cron says it. Made by [`cron!`](crate::cron), which reads the expression when the program is
/// compiled.
///
/// It may be a constant: `const NIGHTLY: Cron = cron!("30 2 * * *");`
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cron {
    text: &'static str,
    seconds: u64,
    minutes: u64,
    hours: u64,
    /// Bit 0 is the month's last day.
    days: u64,
    months: u64,
    /// Sunday is bit 0.
    weekdays: u64,
    /// Seven bits for each week, from bit 7 on.
    nth: u64,
    last: u64,
    /// A day has to be one by its number and by its weekday.
    both: bool,
}

impl Cron {
    /// What an expression says that `cron!` has read.
    pub(crate) const fn of(text: &'static str, fields: [u64; 8], both: bool) -> Self {
        let [seconds, minutes, hours, days, months, weekdays, nth, last] = fields;
        Self {
            text,
            seconds,
            minutes,
            hours,
            days,
            months,
            weekdays,
            nth,
            last,
            both,
        }
    }

    /// The expression as it was written.
    pub const fn as_str(&self) -> &'static str {
        self.text
    }

    /// Whether it names all hours of the day, and so says how often rather than when.
    pub(super) fn is_hourly(&self) -> bool {
        self.hours == (1 << 24) - 1
    }

    /// The first time after this one, in whole seconds.
    pub(super) fn after(&self, time: DateTime) -> Option<DateTime> {
        let next = time.checked_add(SignedDuration::from_secs(1)).ok()?;
        let mut date = next.date();
        let mut from = next.time();
        let end = date
            .checked_add(Span::new().years(CYCLE))
            .unwrap_or(Date::MAX);
        while date <= end {
            if !holds(self.months, date.month()) {
                date = date.last_of_month().tomorrow().ok()?;
                from = Time::MIN;
                continue;
            }
            if self.is_on(date)
                && let Some(time) = self.time_from(from)
            {
                return Some(date.to_datetime(time));
            }
            date = date.tomorrow().ok()?;
            from = Time::MIN;
        }
        None
    }

    fn is_on(&self, date: Date) -> bool {
        let (day, length) = (date.day(), date.days_in_month());
        let weekday = match date.weekday() {
            Weekday::Sunday => 0,
            Weekday::Monday => 1,
            Weekday::Tuesday => 2,
            Weekday::Wednesday => 3,
            Weekday::Thursday => 4,
            Weekday::Friday => 5,
            Weekday::Saturday => 6,
        };
        let by_day = holds(self.days, day) || (day == length && holds(self.days, 0));
        let by_weekday = holds(self.weekdays, weekday)
            || holds(self.nth, (day + 6) / 7 * 7 + weekday)
            || (day + 7 > length && holds(self.last, weekday));
        if self.both {
            by_day && by_weekday
        } else {
            by_day || by_weekday
        }
    }

    /// The first time of a day that is not before this one.
    fn time_from(&self, from: Time) -> Option<Time> {
        let (hour, minute, second) = (from.hour(), from.minute(), from.second());
        let at = |hour, minute, second| Time::new(hour, minute, second, 0).ok();
        if holds(self.hours, hour) {
            if holds(self.minutes, minute)
                && let Some(second) = first(self.seconds, second)
            {
                return at(hour, minute, second);
            }
            if let Some(minute) = first(self.minutes, minute + 1) {
                return at(hour, minute, first(self.seconds, 0)?);
            }
        }
        let hour = first(self.hours, hour + 1)?;
        at(hour, first(self.minutes, 0)?, first(self.seconds, 0)?)
    }
}

/// Whether a bit is set.
fn holds(bits: u64, bit: i8) -> bool {
    bits >> bit & 1 == 1
}

/// The first bit that is set, from this one on.
fn first(bits: u64, from: i8) -> Option<i8> {
    (from..60).find(|bit| holds(bits, *bit))
}

/// The expression as it was written.
impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cron").field(&self.text).finish()
    }
}
