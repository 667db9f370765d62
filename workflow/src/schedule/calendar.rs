//! A cron expression in a time zone: the instants at which it fires.
//!
//! Between two changes of a zone's offset its clock runs like any other, so one stretch is looked through after the other. What a
//! clock that jumps does to a time is decided at the edges of a stretch: a time that is left out belongs to the stretch after it, one
//! that comes twice to both.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp as Instant};

use super::{Cron, Fold, Gap};
use crate::replay::Timestamp;

const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// When something fires.
#[derive(Debug, Clone)]
pub(super) struct Calendar {
    pub(super) cron: Cron,
    pub(super) zone: TimeZone,
    pub(super) gap: Gap,
    pub(super) fold: Fold,
}

/// A time during which a zone has one offset.
struct Stretch {
    start: Option<Change>,
    end: Option<Change>,
    /// Seconds east of Greenwich.
    offset: SignedDuration,
}

/// A change of a zone's offset.
struct Change {
    at: Instant,
    before: SignedDuration,
    after: SignedDuration,
}

impl Change {
    /// What the clock says when it jumps, and what it says then.
    fn jump(&self) -> Option<(DateTime, DateTime)> {
        Some((local(self.at, self.before)?, local(self.at, self.after)?))
    }
}

impl Calendar {
    /// The first instant after this one.
    pub(super) fn after(&self, at: Timestamp) -> Option<Timestamp> {
        let second = at.as_millis().div_euclid(1_000).checked_add(1)?;
        // Before the beginning of the calendar comes all of it.
        let begins = if second < 0 { Some(Instant::MIN) } else { None };
        let mut from = Instant::from_second(second).ok().or(begins)?;
        loop {
            let stretch = self.stretch(from)?;
            let regular = self.regular(&stretch, from);
            let moved = self.moved(&stretch, from);
            let found = match (regular, moved) {
                (Some(regular), Some(moved)) => Some(regular.min(moved)),
                (found, None) | (None, found) => found,
            };
            if let Some(found) = found {
                return Some(Timestamp::from_millis(found.as_millisecond()));
            }
            from = stretch.end?.at;
        }
    }

    fn offset(&self, at: Instant) -> SignedDuration {
        SignedDuration::from_secs(self.zone.to_offset(at).seconds().into())
    }

    /// The stretch that an instant lies in.
    fn stretch(&self, at: Instant) -> Option<Stretch> {
        let change = |at: Instant| {
            let before = at.checked_sub(SECOND).ok()?;
            Some(Change {
                at,
                before: self.offset(before),
                after: self.offset(at),
            })
        };
        let started = self.zone.preceding(at.checked_add(SECOND).ok()?).next();
        let ends = self.zone.following(at).next();
        Some(Stretch {
            start: started.and_then(|it| change(it.timestamp())),
            end: ends.and_then(|it| change(it.timestamp())),
            offset: self.offset(at),
        })
    }

    /// The first time of the stretch that the clock shows, from this instant on.
    fn regular(&self, stretch: &Stretch, from: Instant) -> Option<Instant> {
        let mut time = local(from, stretch.offset)?.checked_sub(SECOND).ok()?;
        let last = stretch.end.as_ref().and_then(Change::jump);
        if let Some((again, until)) = stretch.start.as_ref().and_then(Change::jump).map(swap)
            && self.fold == Fold::First
        {
            // The clock was put back, and shows these for the second time.
            if again <= time.checked_add(SECOND).ok()? && time < until {
                time = until.checked_sub(SECOND).ok()?;
            }
        }
        let found = self.cron.after(time)?;
        if let Some((jumps, to)) = last {
            let shown = found < jumps;
            // It is put back then, and shows these once more.
            let comes_again = self.fold == Fold::Second && to <= found;
            if !shown || comes_again {
                return None;
            }
        }
        instant(found, stretch.offset)
    }

    /// The first, from this instant on, of those that the clock left out when the stretch began.
    fn moved(&self, stretch: &Stretch, from: Instant) -> Option<Instant> {
        let start = stretch.start.as_ref()?;
        let (jumped, to) = start.jump()?;
        let mut time = jumped.checked_sub(SECOND).ok()?;
        loop {
            time = self.cron.after(time).filter(|time| *time < to)?;
            let at = match self.gap {
                Gap::Skip => return None,
                Gap::AtJump => start.at,
                Gap::Later => instant(time, start.before)?,
            };
            if at >= from {
                return Some(at);
            }
            if self.gap == Gap::AtJump {
                return None;
            }
        }
    }
}

fn swap((jumps, to): (DateTime, DateTime)) -> (DateTime, DateTime) {
    (to, jumps)
}

fn local(at: Instant, offset: SignedDuration) -> Option<DateTime> {
    let shifted = at.checked_add(offset).ok()?;
    Some(TimeZone::UTC.to_datetime(shifted))
}

fn instant(time: DateTime, offset: SignedDuration) -> Option<Instant> {
    let shifted = TimeZone::UTC.to_timestamp(time).ok()?;
    shifted.checked_sub(offset).ok()
}
