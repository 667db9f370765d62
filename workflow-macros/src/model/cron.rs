//! Cron expressions, as `cron!` checks them: five fields, or six with the seconds before them.
//!
//! It is read here and nowhere else: the expansion holds the fields as bits, and what runs has nothing left to read.

use std::ops::Range;

use crate::messages::{self, Text};

/// What an expression says, a bit for each value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Fields {
    pub(crate) seconds: u64,
    pub(crate) minutes: u64,
    pub(crate) hours: u64,
    /// Of the month, from bit 1 on. Bit 0 is its last, whichever that is.
    pub(crate) days: u64,
    /// From bit 1 on.
    pub(crate) months: u64,
    /// Sunday is bit 0.
    pub(crate) weekdays: u64,
    /// `MON#2`: bit 8 is the first Monday, bit 15 the second.
    pub(crate) nth: u64,
    /// `FRIL`: the last Friday of the month.
    pub(crate) last: u64,
    /// A day must be one by its number and by its weekday. Else one of the two is enough.
    pub(crate) both: bool,
}

/// What is wrong, and with which part of the text.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) at: Range<usize>,
    pub(crate) text: Text,
}

/// One of the fields.
struct Field {
    name: &'static str,
    least: u64,
    most: u64,
    /// Words for its values, from `least` on.
    words: &'static [&'static str],
    takes: &'static str,
}

const SECOND: Field = Field {
    name: "second",
    least: 0,
    most: 59,
    words: &[],
    takes: "0 to 59",
};
const FIELDS: [Field; 5] = [
    Field {
        name: "minute",
        ..SECOND
    },
    Field {
        name: "hour",
        most: 23,
        takes: "0 to 23",
        ..SECOND
    },
    Field {
        name: "day-of-month",
        least: 1,
        most: 31,
        words: &[],
        takes: "1 to 31, or `L` for the month's last day",
    },
    Field {
        name: "month",
        least: 1,
        most: 12,
        words: &[
            "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
        ],
        takes: "1 to 12, or JAN to DEC",
    },
    Field {
        name: "day-of-week",
        least: 0,
        most: 7,
        words: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
        takes: "0 to 7 (0 and 7 are Sunday) or SUN to SAT; `MON#2` is the month's second Monday, `FRIL` its last Friday",
    },
];

/// What other crons have words for.
const ALIASES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * SUN"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// Reads an expression.
pub(crate) fn parse(text: &str) -> Result<Fields, Wrong> {
    let words = words(text);
    let all = 0..text.len();
    let refused = |at, text| Err(Wrong { at, text });
    if let Some((alias, meant)) = ALIASES.iter().find(|(alias, _)| *alias == text.trim()) {
        return refused(all, messages::CRON_ALIAS.with(&[alias, meant]));
    }
    let (seconds, rest) = match words.len() {
        5 => (1, &words[..]),
        6 => {
            let read = read(text, words[0].clone(), &SECOND)?;
            (read.values, &words[1..])
        }
        found => {
            let found = found.to_string();
            return refused(all, messages::CRON_FIELDS.with(&[text, &found]));
        }
    };
    let field = |index: usize| read(text, rest[index].clone(), &FIELDS[index]);
    let starry = |index: usize| text[rest[index].clone()].starts_with('*');
    let (minutes, hours, days, months) = (field(0)?, field(1)?, field(2)?, field(3)?);
    let weekdays = field(4)?;
    let fields = Fields {
        seconds,
        minutes: minutes.values,
        hours: hours.values,
        days: days.values,
        months: months.values,
        weekdays: weekdays.values,
        nth: weekdays.nth,
        last: weekdays.last,
        both: starry(2) || starry(4),
    };
    if !fields.fires() {
        let at = rest[2].start..rest[4].end;
        return refused(at, messages::CRON_NEVER.with(&[text]));
    }
    Ok(fields)
}

/// Where the words of a text stand.
fn words(text: &str) -> Vec<Range<usize>> {
    let begin = text.as_ptr() as usize;
    text.split_whitespace()
        .map(|word| {
            let start = word.as_ptr() as usize - begin;
            start..start + word.len()
        })
        .collect()
}

#[derive(Default)]
struct Found {
    values: u64,
    nth: u64,
    last: u64,
}

fn read(text: &str, at: Range<usize>, field: &Field) -> Result<Found, Wrong> {
    let mut found = Found::default();
    let mut start = at.start;
    for item in text[at.clone()].split(',') {
        let place = start..start + item.len();
        start = place.end + 1;
        field.item(item, &mut found).map_err(|text| Wrong {
            // An empty one has no place of its own.
            at: if place.is_empty() { at.clone() } else { place },
            text,
        })?;
    }
    Ok(found)
}

impl Field {
    /// `*`, `5`, `1-5`, each with a step; and what only days have.
    fn item(&self, item: &str, found: &mut Found) -> Result<(), Text> {
        if item.is_empty() {
            return Err(messages::CRON_EMPTY.with(&[self.name]));
        }
        if self.is("day-of-month") && item == "L" {
            found.values |= 1;
            return Ok(());
        }
        if self.is("day-of-week") {
            if let Some((day, week)) = item.split_once('#') {
                let week = week.parse().ok().filter(|week| (1..=5).contains(week));
                let week: u64 = week.ok_or_else(|| self.no_value(item))?;
                found.nth |= 1 << (week * 7 + self.value(day)? % 7);
                return Ok(());
            }
            if let Some(day) = item.strip_suffix('L')
                && !day.is_empty()
            {
                found.last |= 1 << (self.value(day)? % 7);
                return Ok(());
            }
        }
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (item, None),
        };
        let (first, last) = match range.split_once('-') {
            Some(("", _) | (_, "")) => return Err(self.no_value(item)),
            Some((first, last)) => {
                let sunday = |day: &str| self.is("day-of-week") && day.eq_ignore_ascii_case("SUN");
                let to = if sunday(last) { 7 } else { self.value(last)? };
                match self.value(first)? {
                    // From a Sunday to itself, and not around the week. `0-7` is all of it.
                    0 if sunday(first) && to == 7 => (7, 7),
                    from if to == 7 => (from, to),
                    from => (self.first_name(from), to),
                }
            }
            None if range == "*" => (self.least, self.top()),
            // Where it begins, and on to the end.
            None if step.is_some() => (self.first_name(self.value(range)?), self.top()),
            None => (self.value(range)?, self.value(range)?),
        };
        if first > last {
            let (least, most) = (self.least.to_string(), self.top().to_string());
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            return Err(messages::CRON_BACKWARDS.with(&[range, self.name, from, &most, &least, to]));
        }
        let most = self.top().max(1);
        let step = match step {
            None => 1,
            Some(step) => {
                let read = number(step).filter(|step| (1..=most).contains(step));
                read.ok_or_else(|| messages::CRON_STEP.with(&[step, self.name, &most.to_string()]))?
            }
        };
        let mut value = first;
        while value <= last {
            // The seventh day of the week is the first.
            let bit = if self.is("day-of-week") {
                value % 7
            } else {
                value
            };
            found.values |= 1 << bit;
            value += step;
        }
        Ok(())
    }

    fn value(&self, text: &str) -> Result<u64, Text> {
        let word = self
            .words
            .iter()
            .position(|word| text.eq_ignore_ascii_case(word));
        let value = match word {
            Some(index) => Some(self.least + index as u64),
            None => number(text),
        };
        value
            .filter(|value| (self.least..=self.most).contains(value))
            .ok_or_else(|| self.no_value(text))
    }

    fn no_value(&self, text: &str) -> Text {
        if text == "?" {
            return messages::CRON_QUESTION.with(&[self.name]);
        }
        messages::CRON_VALUE.with(&[text, self.name, self.takes])
    }

    /// The greatest value that is not another one's second name.
    fn top(&self) -> u64 {
        if self.is("day-of-week") { 6 } else { self.most }
    }

    /// A Sunday that something begins with is the week's first day, whatever it was called.
    fn first_name(&self, value: u64) -> u64 {
        if value > self.top() {
            self.least
        } else {
            value
        }
    }

    fn is(&self, name: &str) -> bool {
        self.name == name
    }
}

fn number(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

impl Fields {
    /// Whether there is a day on which it fires. Every date falls on every weekday, sooner or later.
    fn fires(&self) -> bool {
        const LENGTHS: [(u64, u64); 13] = [
            (1, 31),
            (2, 28),
            (2, 29),
            (3, 31),
            (4, 30),
            (5, 31),
            (6, 30),
            (7, 31),
            (8, 31),
            (9, 30),
            (10, 31),
            (11, 30),
            (12, 31),
        ];
        let months = LENGTHS
            .iter()
            .filter(|(month, _)| self.months >> month & 1 == 1);
        months
            .flat_map(|&(_, length)| (1..=length).map(move |day| (day, length)))
            .any(|(day, length)| self.fires_on(day, length))
    }

    fn fires_on(&self, day: u64, length: u64) -> bool {
        let by_day = self.days >> day & 1 == 1 || (day == length && self.days & 1 == 1);
        let week = self.nth >> (day.div_ceil(7) * 7) & 0x7f;
        let by_weekday = self.weekdays | week != 0 || (self.last != 0 && day + 7 > length);
        if self.both {
            by_day && by_weekday
        } else {
            by_day || by_weekday
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(values: impl IntoIterator<Item = u32>) -> u64 {
        values.into_iter().map(|value| 1 << value).sum()
    }

    fn parsed(text: &str) -> Fields {
        parse(text).unwrap_or_else(|wrong| panic!("{text}: {}", wrong.text.into_string()))
    }

    fn refused(text: &str) -> (&str, String) {
        let wrong = parse(text).expect_err(text);
        (&text[wrong.at], wrong.text.into_string())
    }

    #[test]
    fn five_fields_are_read_as_cron_reads_them() {
        let fields = parsed("*/20 1-5,22 1,L JAN-MAR/2 MON-FRI");
        assert_eq!(fields.seconds, 1);
        assert_eq!(fields.minutes, bits([0, 20, 40]));
        assert_eq!(fields.hours, bits([1, 2, 3, 4, 5, 22]));
        assert_eq!(fields.days, bits([0, 1]));
        assert_eq!(fields.months, bits([1, 3]));
        assert_eq!(fields.weekdays, bits(1..=5));
        assert!(!fields.both);
    }

    #[test]
    fn six_fields_begin_with_the_seconds() {
        assert_eq!(parsed("*/15 * * * * *").seconds, bits([0, 15, 30, 45]));
        assert_eq!(parsed("5/20 0 0 * * *").seconds, bits([5, 25, 45]));
    }

    #[test]
    fn sunday_is_0_and_7_and_may_end_a_range() {
        for text in ["0", "7", "SUN", "sun", "7-7", "SUN-SUN", "sun-7"] {
            assert_eq!(parsed(&format!("0 0 * * {text}")).weekdays, 1, "{text}");
        }
        for text in ["FRI-SUN", "5-7", "fri,sat,sun"] {
            let weekdays = parsed(&format!("0 0 * * {text}")).weekdays;
            assert_eq!(weekdays, bits([0, 5, 6]), "{text}");
        }
        for text in ["SUN-TUE", "7-2", "0-2", "0,mon-tue"] {
            let weekdays = parsed(&format!("0 0 * * {text}")).weekdays;
            assert_eq!(weekdays, bits([0, 1, 2]), "{text}");
        }
        for text in ["*/2", "7/2", "SUN/2", "0-7/2"] {
            let weekdays = parsed(&format!("0 0 * * {text}")).weekdays;
            assert_eq!(weekdays, bits([0, 2, 4, 6]), "{text}");
        }
        for text in ["*", "0-7", "0-6", "1-7"] {
            let weekdays = parsed(&format!("0 0 * * {text}")).weekdays;
            assert_eq!(weekdays, bits(0..=6), "{text}");
        }
    }

    #[test]
    fn weekdays_of_the_month_are_counted() {
        let fields = parsed("0 0 * * MON#2,5#1,FRIL,7L");
        assert_eq!(fields.nth, bits([15, 12]));
        assert_eq!(fields.last, bits([5, 0]));
        assert_eq!(fields.weekdays, 0);
        assert!(fields.both);
    }

    #[test]
    fn a_day_is_one_by_either_field_only_when_both_say_something() {
        assert!(!parsed("0 0 13 * FRI").both);
        assert!(parsed("0 0 */2 * FRI").both);
        assert!(parsed("0 0 13 * *").both);
    }

    #[test]
    fn the_part_that_is_wrong_is_told_with_what_it_takes() {
        for (text, at, says) in [
            ("30 25 * * *", "25", "the hour field"),
            ("30 1,2,x * * *", "x", "the hour field"),
            ("60 * * * *", "60", "0 to 59"),
            ("0 0 0 * *", "0", "1 to 31"),
            ("0 0 * 13 *", "13", "JAN to DEC"),
            ("0 0 * * MON#6", "MON#6", "MON#2"),
            ("0 0 * * FOOL", "FOOL", "day-of-week"),
            ("0 22-4 * * *", "22-4", "22-23,0-4"),
            ("*/0 * * * *", "*/0", "from 1 to 59"),
            ("*/70 * * * *", "*/70", "from 1 to 59"),
            ("0 0 ? * MON", "?", "`*`"),
            ("1,,2 * * * *", "1,,2", "two commas"),
            ("-5 * * * *", "-5", "minute"),
            ("0 0 +1 * *", "+1", "day-of-month"),
            ("0 0 31 2 *", "31 2 *", "never"),
            ("0 0 30,31 FEB *", "30,31 FEB *", "never"),
            ("0 0 31 4,6,9,11 *", "31 4,6,9,11 *", "never"),
            ("0 0 */31 2 MON#5", "*/31 2 MON#5", "never"),
            ("* * * *", "* * * *", "five fields"),
            ("", "", "five fields"),
            ("@daily", "@daily", "`0 0 * * *`"),
        ] {
            let (part, said) = refused(text);
            assert_eq!(part, at, "{text}: {said}");
            assert!(said.contains(says), "{text}: {said}");
        }
    }

    #[test]
    fn what_fires_seldom_fires() {
        for text in ["0 0 29 2 *", "0 0 * 2 MON#5", "0 0 31 2 MON", "0 0 L 2 *"] {
            parsed(text);
        }
    }
}
