//! Days and times, as numbers and in their parts, without a calendar library.
//!
//! A day is a number counted from 1970-01-01, a moment microseconds since then, a time signed
//! microseconds. The Gregorian calendar is extended backwards, as MySQL does.
//!
//! Source of the day arithmetic: H. Hinnant, "chrono-compatible low-level date algorithms".

mod read;

pub(crate) use mayfly_types::spelling::{DAY_MICROS, SECOND_MICROS as MICROS, date_of};
pub(crate) use read::{
    ReadTime, read_moment, read_whole_time, time_of_number, whole_time_of_number,
};

pub(crate) const DAY_SECONDS: i64 = 86_400;
/// TIME ends here: 838:59:59.
pub(crate) const TIME_MAX_MICROS: i64 = (838 * 3600 + 59 * 60 + 59) * MICROS;
/// TO_DAYS('1970-01-01').
pub(crate) const EPOCH_DAYS: i64 = 719_528;
/// Two-digit years below this belong to this century, the others to the last.
const CENTURY_TURN: i64 = 70;
const YEAR_MAX: i64 = 9999;
/// More hours than TIME has, and few enough to compute with.
const HOURS_MAX: i64 = 1_000_000;

pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(crate) const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// A moment in its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) micro: i64,
}

/// The day of a date of the calendar.
pub(crate) fn day_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = (month + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

pub(crate) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The days of a year before this date.
pub(crate) fn day_of_year(day: i64) -> i64 {
    day - day_of(date_of(day).0, 1, 1) + 1
}

/// Monday is 0.
pub(crate) fn weekday(day: i64) -> i64 {
    (day + 3).rem_euclid(7)
}

pub(crate) fn split(moment: i64) -> Parts {
    let (year, month, day) = date_of(moment.div_euclid(DAY_MICROS));
    let rest = moment.rem_euclid(DAY_MICROS);
    let seconds = rest / MICROS;
    Parts {
        year,
        month,
        day,
        hour: seconds / 3600,
        minute: seconds / 60 % 60,
        second: seconds % 60,
        micro: rest % MICROS,
    }
}

impl Parts {
    /// The moment, if the parts are within their ranges.
    pub(crate) fn moment(self) -> Option<i64> {
        let valid = (0..=YEAR_MAX).contains(&self.year)
            && (1..=12).contains(&self.month)
            && self.day >= 1
            && self.day <= days_in_month(self.year, self.month)
            && (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..60).contains(&self.second)
            && (0..MICROS).contains(&self.micro);
        let seconds = (self.hour * 60 + self.minute) * 60 + self.second;
        valid.then(|| {
            day_of(self.year, self.month, self.day) * DAY_MICROS + seconds * MICROS + self.micro
        })
    }
}

/// TO_DAYS: MySQL counts the first two months of the year 0 as if it had no leap day.
pub(crate) fn to_days(day: i64) -> i64 {
    let days = day + EPOCH_DAYS;
    days + i64::from((0..60).contains(&days))
}

/// Whether a day lies in MySQL's years.
pub(crate) fn in_range(day: i64) -> bool {
    (day_of(0, 1, 1)..=day_of(YEAR_MAX, 12, 31)).contains(&day)
}

/// Whether a moment lies in MySQL's years.
pub(crate) fn is_moment(moment: i64) -> bool {
    in_range(moment.div_euclid(DAY_MICROS))
}

/// The week of a day and the year that the week belongs to, by MySQL's mode (0 to 7).
///
/// Source: `calc_week` of MySQL's `sql-common/my_time.cc`.
pub(crate) fn week(day: i64, mode: u8) -> (i64, i64) {
    let monday_first = mode & 1 != 0;
    // Week 1 is the first that holds the first weekday, or else the first with four days.
    let by_weekday = (mode & 4 != 0) == monday_first;
    let mut within_years = mode & 2 != 0;
    let (mut year, month, day_of_month) = date_of(day);
    let mut first_day = day_of(year, 1, 1);
    let mut first = (weekday(first_day) + i64::from(!monday_first)) % 7;
    let begins_later = |first: i64| if by_weekday { first != 0 } else { first >= 4 };
    let mut days_in_year = 365 + i64::from(is_leap(year));
    if month == 1 && day_of_month <= 7 - first {
        if !within_years && begins_later(first) {
            return (0, year);
        }
        if begins_later(first) {
            within_years = true;
            year -= 1;
            days_in_year = 365 + i64::from(is_leap(year));
            first_day -= days_in_year;
            first = (first + 53 * 7 - days_in_year) % 7;
        }
    }
    let start = if begins_later(first) {
        first_day + 7 - first
    } else {
        first_day - first
    };
    let days = day - start;
    if within_years && days >= 52 * 7 {
        let next = (first + days_in_year) % 7;
        if if by_weekday { next == 0 } else { next < 4 } {
            return (1, year + 1);
        }
    }
    (days / 7 + 1, year)
}

fn full_year(year: i64, digits: usize) -> i64 {
    if digits > 2 {
        year
    } else if year < CENTURY_TURN {
        year + 2000
    } else {
        year + 1900
    }
}

/// The year that a number stands for in a YEAR: two digits are a year near the turn of the
/// century. `None` where it is none.
pub(crate) fn year_of_number(number: i128) -> Option<i128> {
    match number {
        0 | 1901..=2155 => Some(number),
        1..70 => Some(number + 2000),
        70..100 => Some(number + 1900),
        _ => None,
    }
}

/// Reads a moment from a number such as 20240131 or 20240131120000.
pub(crate) fn moment_of_number(value: i64) -> Option<i64> {
    if value <= 0 {
        return None;
    }
    let (date, time) = if value > 99_991_231 {
        (value / 1_000_000, value % 1_000_000)
    } else {
        (value, 0)
    };
    let (year, rest) = (date / 10_000, date % 10_000);
    let year = if date < 1_000_000 {
        full_year(year, 2)
    } else {
        year
    };
    Parts {
        year,
        month: rest / 100,
        day: rest % 100,
        hour: time / 10_000,
        minute: time / 100 % 100,
        second: time % 100,
        micro: 0,
    }
    .moment()
}

/// 20240131120000.
pub(crate) fn number_of_moment(moment: i64) -> i64 {
    let parts = split(moment);
    number_of_day(moment.div_euclid(DAY_MICROS)) * 1_000_000
        + parts.hour * 10_000
        + parts.minute * 100
        + parts.second
}

/// 20240131.
pub(crate) fn number_of_day(day: i64) -> i64 {
    let (year, month, day) = date_of(day);
    year * 10_000 + month * 100 + day
}

/// 123000, with the sign of the time.
pub(crate) fn number_of_time(micros: i64) -> i64 {
    let seconds = micros.abs() / MICROS;
    let value = seconds / 3600 * 10_000 + seconds / 60 % 60 * 100 + seconds % 60;
    if micros < 0 { -value } else { value }
}

/// The nearest time that TIME can hold.
pub(crate) fn clip_time(micros: i64) -> i64 {
    micros.clamp(-TIME_MAX_MICROS, TIME_MAX_MICROS)
}
