//! Intervals: the units of MySQL, and moments moved by an amount of one.

use arrow::datatypes::i256;
use datafusion::error::Result;
use mayfly_types::{ErrorCode, MySqlError};

use crate::functions::calendar::{self, DAY_MICROS, MICROS, Parts};
use crate::functions::number;
use crate::functions::raise::raise;

/// An interval of months and microseconds, from a unit's name and a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) months: i64,
    pub(crate) micros: i64,
}

/// A unit of an interval: its parts, the last of them the smallest.
pub(super) struct Unit {
    name: &'static str,
    /// The parts that a value has, each as months or microseconds.
    pub(super) parts: &'static [Interval],
}

const fn months(months: i64) -> Interval {
    Interval { months, micros: 0 }
}

const fn micros(micros: i64) -> Interval {
    Interval { months: 0, micros }
}

/// Digits behind the point of a second that are read.
const SECOND_DIGITS: i8 = 12;
/// Those of them that are cut off.
const BEYOND_MICROS: i128 = 1_000_000;

const HOUR: Interval = micros(3600 * MICROS);
const MINUTE: Interval = micros(60 * MICROS);
const SECOND: Interval = micros(MICROS);
const MICROSECOND: Interval = micros(1);
const DAY: Interval = micros(DAY_MICROS);

static UNITS: &[Unit] = &[
    Unit {
        name: "YEAR",
        parts: &[months(12)],
    },
    Unit {
        name: "QUARTER",
        parts: &[months(3)],
    },
    Unit {
        name: "MONTH",
        parts: &[months(1)],
    },
    Unit {
        name: "WEEK",
        parts: &[micros(7 * DAY_MICROS)],
    },
    Unit {
        name: "DAY",
        parts: &[DAY],
    },
    Unit {
        name: "HOUR",
        parts: &[HOUR],
    },
    Unit {
        name: "MINUTE",
        parts: &[MINUTE],
    },
    Unit {
        name: "SECOND",
        parts: &[SECOND],
    },
    Unit {
        name: "MICROSECOND",
        parts: &[MICROSECOND],
    },
    Unit {
        name: "YEAR_MONTH",
        parts: &[months(12), months(1)],
    },
    Unit {
        name: "DAY_HOUR",
        parts: &[DAY, HOUR],
    },
    Unit {
        name: "DAY_MINUTE",
        parts: &[DAY, HOUR, MINUTE],
    },
    Unit {
        name: "DAY_SECOND",
        parts: &[DAY, HOUR, MINUTE, SECOND],
    },
    Unit {
        name: "DAY_MICROSECOND",
        parts: &[DAY, HOUR, MINUTE, SECOND, MICROSECOND],
    },
    Unit {
        name: "HOUR_MINUTE",
        parts: &[HOUR, MINUTE],
    },
    Unit {
        name: "HOUR_SECOND",
        parts: &[HOUR, MINUTE, SECOND],
    },
    Unit {
        name: "HOUR_MICROSECOND",
        parts: &[HOUR, MINUTE, SECOND, MICROSECOND],
    },
    Unit {
        name: "MINUTE_SECOND",
        parts: &[MINUTE, SECOND],
    },
    Unit {
        name: "MINUTE_MICROSECOND",
        parts: &[MINUTE, SECOND, MICROSECOND],
    },
    Unit {
        name: "SECOND_MICROSECOND",
        parts: &[SECOND, MICROSECOND],
    },
];

pub(super) fn unit(name: &str) -> Result<&'static Unit> {
    let bare = name.trim();
    let bare = bare.strip_prefix("SQL_TSI_").unwrap_or(bare);
    UNITS
        .iter()
        .find(|unit| unit.name.eq_ignore_ascii_case(bare))
        .ok_or_else(|| raise(MySqlError::new(ErrorCode::Syntax, &[&name, &1])))
}

/// The interval of an amount and the name of its unit; `None` if that is no unit, or nothing can be
/// so long.
pub(crate) fn of_text(amount: &str, name: &str) -> Option<Interval> {
    unit(name).ok()?.interval(amount).0
}

impl Unit {
    /// Whether the unit leaves the time of day alone.
    pub(super) fn is_date(&self) -> bool {
        self.parts
            .iter()
            .all(|part| part.months > 0 || part.micros % DAY_MICROS == 0)
    }

    pub(super) fn has_micros(&self) -> bool {
        self.parts.last() == Some(&MICROSECOND)
    }

    /// Whether an amount is a number of seconds, which may have a fraction.
    pub(super) fn is_second(&self) -> bool {
        self.parts == [SECOND]
    }

    /// What an amount that is one number is called in warnings.
    pub(super) fn kind_of_number(&self) -> &'static str {
        if self.is_second() {
            "DECIMAL"
        } else {
            "INTEGER"
        }
    }

    /// Whether an amount is one whole number.
    pub(super) fn is_whole(&self) -> bool {
        self.parts.len() == 1 && !self.is_second()
    }

    /// So many times the unit, if it is one of whole numbers.
    pub(super) fn times(&self, count: i64) -> Option<Interval> {
        let part = self.parts[0];
        Some(Interval {
            months: part.months.checked_mul(count)?,
            micros: part.micros.checked_mul(count)?,
        })
    }

    /// The interval of a text: a number, or numbers with anything between them; and whether
    /// nothing stands behind the one number.
    pub(super) fn interval(&self, value: &str) -> (Option<Interval>, bool) {
        if self.is_whole() {
            // What stands behind the digits, a fraction as well, does not count.
            let (count, is_whole) = number::read_integer(value);
            let count = i64::try_from(count).ok();
            return (count.and_then(|count| self.times(count)), is_whole);
        }
        if self.is_second() {
            let (seconds, is_whole) = read_seconds(value);
            return (Some(micros(seconds)), is_whole);
        }
        (self.interval_of_parts(value), true)
    }

    fn interval_of_parts(&self, value: &str) -> Option<Interval> {
        let negative = value.trim_start().starts_with('-');
        let numbers: Vec<&str> = value
            .split(|c: char| !c.is_ascii_digit())
            .filter(|part| !part.is_empty())
            .collect();
        if numbers.len() > self.parts.len() {
            return None;
        }
        // Missing numbers are the leading ones.
        let parts = &self.parts[self.parts.len() - numbers.len()..];
        let mut sum = Interval::default();
        for (part, text) in parts.iter().zip(numbers) {
            let mut count: i64 = text.parse().ok()?;
            if *part == MICROSECOND {
                // The digits of a fraction.
                let missing = u32::try_from(6_usize.saturating_sub(text.len())).unwrap_or(0);
                count = count.checked_mul(10_i64.pow(missing))?;
            }
            sum.months = sum.months.checked_add(part.months.checked_mul(count)?)?;
            sum.micros = sum.micros.checked_add(part.micros.checked_mul(count)?)?;
        }
        let sign = if negative { -1 } else { 1 };
        Some(Interval {
            months: sum.months * sign,
            micros: sum.micros * sign,
        })
    }
}

/// The microseconds of the number of seconds that a text begins with, without the digits behind
/// them, and whether the text is nothing else. As many as 64 bits hold.
pub(super) fn read_seconds(text: &str) -> (i64, bool) {
    let (seconds, is_whole) = number::read_decimal(text, SECOND_DIGITS);
    let cut = seconds.map(|seconds| seconds.wrapping_div(i256::from_i128(BEYOND_MICROS)));
    let micros = cut
        .and_then(i256::to_i128)
        .and_then(|micros| i64::try_from(micros).ok());
    let beyond = if text.trim_start().starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    (micros.unwrap_or(beyond), is_whole)
}

/// A moment moved by an interval; the last day of a shorter month rather than the next month.
pub(super) fn add(moment: i64, interval: Interval) -> Option<i64> {
    let mut moved = moment;
    if interval.months != 0 {
        let mut parts = calendar::split(moment);
        let month = (parts.year * 12 + parts.month - 1).checked_add(interval.months)?;
        parts.year = month.div_euclid(12);
        parts.month = month.rem_euclid(12) + 1;
        if !(0..=9999).contains(&parts.year) {
            return None;
        }
        parts.day = parts
            .day
            .min(calendar::days_in_month(parts.year, parts.month));
        moved = parts.moment()?;
    }
    let moved = moved.checked_add(interval.micros)?;
    let day = moved.div_euclid(DAY_MICROS);
    // Days are not counted before the year 1, which months lead to.
    let has_day = interval.micros == 0 || day >= calendar::day_of(1, 1, 1);
    (has_day && calendar::in_range(day)).then_some(moved)
}

/// Whole months from one moment to a later one.
pub(super) fn months_between(from: i64, to: i64) -> i64 {
    if to < from {
        return -months_between(to, from);
    }
    let (a, b) = (calendar::split(from), calendar::split(to));
    let months = (b.year - a.year) * 12 + b.month - a.month;
    let rest = |p: &Parts, moment: i64| (p.day, moment.rem_euclid(DAY_MICROS));
    months - i64::from(rest(&b, to) < rest(&a, from))
}
