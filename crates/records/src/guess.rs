//! Which type holds all values of a column.
//!
//! A guess only ever widens: from nothing over numbers, moments and truth values to text, which
//! holds everything. It loses nothing: a type is guessed only if it spells each value back, as
//! [`value`] has it. Numbers are whole ones, then DOUBLE, DECIMAL where DOUBLE would lose digits,
//! and text where DECIMAL has no room for them.

use crate::cells::Kind;
use crate::value;

/// The type of a column of a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextType {
    /// Any text; also a column without values.
    Text,
    /// `true` and `false`.
    Boolean,
    /// Whole numbers of 64 bits.
    Integer,
    /// The same without a sign, where some need the last bit.
    Unsigned,
    /// Exact numbers, where others would lose digits.
    Decimal {
        /// Digits in all: 38 or 65.
        precision: u8,
        /// Digits behind the point.
        scale: u8,
    },
    /// Floating-point numbers.
    Double,
    /// Days.
    Date,
    /// Days with a time.
    DateTime {
        /// Digits of a second: 0, 3, 6 or 9.
        digits: u8,
    },
    /// JSON documents.
    Json,
}

/// The largest digits that DECIMAL has, and those behind the point.
const DECIMAL_DIGITS: usize = 65;
const SCALE_MAX: usize = 30;
/// Digits that are held in 128 bits.
const SHORT_DECIMAL_DIGITS: usize = 38;
/// Whole numbers up to here are floating-point numbers without loss.
const EXACT_IN_DOUBLE: u64 = 1 << 53;

/// What the values of a column are, so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guess {
    has_text: bool,
    has_nested: bool,
    has_boolean: bool,
    has_integer: bool,
    has_fraction: bool,
    has_exponent: bool,
    has_date: bool,
    has_moment: bool,
    /// Numbers that a floating-point number does not hold, and zeros that only one holds.
    has_inexact: bool,
    has_negative_zero: bool,
    /// Whole numbers below zero, beyond `i64` and beyond `u64`.
    has_negative: bool,
    has_unsigned: bool,
    has_long: bool,
    whole_digits: usize,
    fraction_digits: usize,
    second_digits: u8,
    /// Moments that 64 bits of nanoseconds do not hold.
    has_distant: bool,
}

impl Guess {
    /// Widens the guess so that it holds one more value.
    pub fn add(&mut self, text: &str, kind: Kind) {
        match kind {
            Kind::Null => {}
            Kind::Text => self.has_text = true,
            Kind::Nested => self.has_nested = true,
            Kind::Plain if self.has_text => {}
            Kind::Plain => self.add_plain(text),
        }
    }

    fn add_plain(&mut self, text: &str) {
        if let Some(number) = value::number(text) {
            self.add_number(text, number);
        } else if value::boolean(text).is_some() {
            self.has_boolean = true;
        } else if value::date(text).is_some() {
            self.has_date = true;
        } else if let Some(moment) = value::moment(text) {
            self.has_moment = true;
            self.second_digits = self.second_digits.max(moment.digits);
        } else {
            self.has_text = true;
        }
        if (self.has_date || self.has_moment) && !self.has_distant {
            let moment = value::moment(text);
            self.has_distant = moment.is_some_and(|moment| moment.in_unit(9).is_none());
        }
    }

    fn add_number(&mut self, text: &str, number: value::Number) {
        self.whole_digits = self.whole_digits.max(number.whole_digits);
        self.fraction_digits = self.fraction_digits.max(number.fraction_digits);
        self.has_exponent |= number.has_exponent;
        self.has_negative_zero |= number.is_negative && number.is_zero;
        if number.has_point || number.has_exponent {
            self.has_fraction = true;
            self.has_inexact = self.has_inexact || value::double(text).is_none();
            return;
        }
        self.has_integer = true;
        self.has_negative |= number.is_negative;
        let magnitude = text.trim_start_matches('-').parse::<u64>();
        self.has_inexact |= magnitude.as_ref().map_or(true, |it| *it > EXACT_IN_DOUBLE);
        if value::integer(text).is_none() {
            self.has_unsigned = true;
            self.has_long |= value::unsigned(text).is_none();
        }
    }

    /// Widens the guess so that it holds the values of another one too.
    pub fn join(&mut self, other: &Guess) {
        let Guess {
            has_text,
            has_nested,
            has_boolean,
            has_integer,
            has_fraction,
            has_exponent,
            has_date,
            has_moment,
            has_inexact,
            has_negative_zero,
            has_negative,
            has_unsigned,
            has_long,
            whole_digits,
            fraction_digits,
            second_digits,
            has_distant,
        } = *other;
        self.has_text |= has_text;
        self.has_nested |= has_nested;
        self.has_boolean |= has_boolean;
        self.has_integer |= has_integer;
        self.has_fraction |= has_fraction;
        self.has_exponent |= has_exponent;
        self.has_date |= has_date;
        self.has_moment |= has_moment;
        self.has_inexact |= has_inexact;
        self.has_negative_zero |= has_negative_zero;
        self.has_negative |= has_negative;
        self.has_unsigned |= has_unsigned;
        self.has_long |= has_long;
        self.whole_digits = self.whole_digits.max(whole_digits);
        self.fraction_digits = self.fraction_digits.max(fraction_digits);
        self.second_digits = self.second_digits.max(second_digits);
        self.has_distant |= has_distant;
    }

    /// The narrowest type that holds all values.
    pub fn text_type(&self) -> TextType {
        let is_number = self.has_integer || self.has_fraction;
        let is_time = self.has_date || self.has_moment;
        let families = [is_number, is_time, self.has_boolean, self.has_nested];
        let families = families.into_iter().filter(|has| *has).count();
        if self.has_text || families != 1 {
            return TextType::Text;
        }
        if self.has_nested {
            return TextType::Json;
        }
        if self.has_boolean {
            return TextType::Boolean;
        }
        if is_time {
            return self.time_type();
        }
        self.number_type()
    }

    fn time_type(&self) -> TextType {
        let digits = match self.second_digits {
            0 => 0,
            1..=3 => 3,
            4..=6 => 6,
            _ => 9,
        };
        match self.has_moment {
            false => TextType::Date,
            true if digits == 9 && self.has_distant => TextType::Text,
            true => TextType::DateTime { digits },
        }
    }

    fn number_type(&self) -> TextType {
        if !self.has_fraction && !self.has_negative_zero {
            return match (self.has_unsigned, self.has_long || self.has_negative) {
                (false, _) => TextType::Integer,
                (true, false) => TextType::Unsigned,
                (true, true) => self.decimal_type(),
            };
        }
        match self.has_inexact {
            false => TextType::Double,
            // Digits would be lost.
            true => self.decimal_type(),
        }
    }

    fn decimal_type(&self) -> TextType {
        let digits = self.whole_digits.saturating_add(self.fraction_digits);
        let has_room = digits <= DECIMAL_DIGITS && self.fraction_digits <= SCALE_MAX;
        if self.has_exponent || self.has_negative_zero || !has_room {
            return TextType::Text;
        }
        let precision = match digits <= SHORT_DECIMAL_DIGITS {
            true => SHORT_DECIMAL_DIGITS,
            false => DECIMAL_DIGITS,
        };
        TextType::Decimal {
            precision: u8::try_from(precision).unwrap_or(u8::MAX),
            scale: u8::try_from(self.fraction_digits).unwrap_or(u8::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[&str], expect: TextType) {
        let mut guess = Guess::default();
        for value in values {
            let kind = match value.is_empty() {
                true => Kind::Null,
                false => Kind::Plain,
            };
            guess.add(value, kind);
        }
        assert_eq!(guess.text_type(), expect, "{values:?}");
        // In two halves, in any order.
        let (mut right, mut left) = (Guess::default(), Guess::default());
        for (place, value) in values.iter().enumerate() {
            let kind = match value.is_empty() {
                true => Kind::Null,
                false => Kind::Plain,
            };
            match place % 2 {
                0 => left.add(value, kind),
                _ => right.add(value, kind),
            }
        }
        right.join(&left);
        assert_eq!(right.text_type(), expect, "{values:?} in halves");
    }

    #[test]
    fn types_widen() {
        check(&[], TextType::Text);
        check(&["", ""], TextType::Text);
        check(&["1", "", "-2"], TextType::Integer);
        check(&["", "1.5"], TextType::Double);
        check(&["1", "1.5"], TextType::Double);
        check(&["1", "1e5"], TextType::Double);
        check(&["1", "x"], TextType::Text);
        check(&["true", "FALSE"], TextType::Boolean);
        check(&["true", "1"], TextType::Text);
        check(&["2024-01-01"], TextType::Date);
        check(&["2024-01-01", "2024-13-01"], TextType::Text);
        check(&["2024-01-01", "1"], TextType::Text);
        check(
            &["2024-01-01", "2024-01-01 10:00:00"],
            TextType::DateTime { digits: 0 },
        );
        check(
            &["2024-01-01 10:00:00.1234", "2024-01-01T10:00:00Z"],
            TextType::DateTime { digits: 6 },
        );
        check(
            &["9999-01-01", "2024-01-01 10:00:00.123456789"],
            TextType::Text,
        );
    }

    #[test]
    fn digits_are_not_lost() {
        check(&["9223372036854775807"], TextType::Integer);
        check(&["9223372036854775808", "1"], TextType::Unsigned);
        let long = |precision, scale| TextType::Decimal { precision, scale };
        check(&["9223372036854775808", "-1"], long(38, 0));
        check(&["18446744073709551616"], long(38, 0));
        check(&["9007199254740993", "1.5"], long(38, 1));
        check(&["9007199254740993", "1e5"], TextType::Text);
        check(&[&"9".repeat(65)], long(65, 0));
        check(&[&"9".repeat(66)], TextType::Text);
        check(&["1e999"], TextType::Text);
        check(&["0.04", "17954.55", "-0.1"], TextType::Double);
        check(&["0.12345678901234568", "1e-20"], TextType::Double);
        check(&["12345678901234567.89", "1.10"], long(38, 2));
        check(&["0.1234567890123456789012345", "2"], long(38, 25));
        let digits = format!("{}.{}", "1".repeat(35), "2".repeat(30));
        check(&[&digits], long(65, 30));
        check(&[&digits, &"9".repeat(36)], TextType::Text);
        check(&[&format!("0.{}", "2".repeat(31))], TextType::Text);
        check(&["0.1234567890123456789012345", "1e5"], TextType::Text);
        check(&["1.234567890123456789e5"], TextType::Text);
    }

    #[test]
    fn codes_and_words_are_texts() {
        check(&["01234", "12345"], TextType::Text);
        check(&["1.5", "-01.5"], TextType::Text);
        check(&["1", "-0"], TextType::Double);
        check(&["-0.0", "1.5"], TextType::Double);
        check(&["-0", "9007199254740993"], TextType::Text);
        for word in ["NaN", "nan", "inf", "-inf", "Infinity"] {
            check(&[word, "1.5"], TextType::Text);
        }
    }
}
