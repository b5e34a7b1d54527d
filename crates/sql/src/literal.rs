//! Constants as a statement spells them, and what they are in a column.
//!
//! Owns the values that need no conversion: those that fit a column exactly, as they stand. A
//! value that would be rounded, cut, padded or refused is left to the functions of `cast`, which
//! warn, fail and count rows; for those that fit, both give the same.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BinaryViewBuilder, PrimitiveArray, StringViewBuilder,
};
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{Expr, UnaryOperator, Value};
use mayfly_types::ColumnType;

use crate::functions::calendar::{DAY_MICROS, read_moment};
use crate::functions::convert::nearest_double;

/// Digits of a number that are computed with here: those of Arrow's decimal of 128 bits.
const DIGITS_MAX: usize = 38;

/// A number or a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Literal<'a> {
    /// The digits of a number, or what stands between the quotes of a text.
    pub spelled: Cow<'a, str>,
    /// Whether it stands in quotes.
    pub is_text: bool,
    /// Whether a minus stands in front of it.
    pub is_negative: bool,
}

/// A number without an exponent, in units of its last digit.
struct Digits {
    value: i128,
    /// Digits from the first one that is not zero.
    count: usize,
    /// Digits behind the point; `None` if there is no point.
    fraction: Option<usize>,
}

impl Digits {
    /// Reads digits, with a point among them or not.
    fn read(text: &str) -> Option<Digits> {
        let mut found = Digits {
            value: 0,
            count: 0,
            fraction: None,
        };
        let mut is_empty = true;
        for byte in text.bytes() {
            match byte {
                b'.' if found.fraction.is_none() => found.fraction = Some(0),
                b'0'..=b'9' => {
                    is_empty = false;
                    found.count += usize::from(found.count > 0 || byte != b'0');
                    if found.count > DIGITS_MAX {
                        return None;
                    }
                    found.value = found.value * 10 + i128::from(byte - b'0');
                    found.fraction = found.fraction.map(|count| count + 1);
                }
                _ => return None,
            }
        }
        (!is_empty && found.scale() <= DIGITS_MAX).then_some(found)
    }

    fn negated(self, is_negative: bool) -> Digits {
        let value = if is_negative { -self.value } else { self.value };
        Digits { value, ..self }
    }

    fn scale(&self) -> usize {
        self.fraction.unwrap_or(0)
    }

    /// The number as a DECIMAL of just so many digits.
    fn decimal(&self) -> Option<ScalarValue> {
        let scale = self.scale();
        let precision = u8::try_from(self.count.max(scale).max(1)).ok()?;
        let scale = i8::try_from(scale).ok()?;
        Some(ScalarValue::Decimal128(Some(self.value), precision, scale))
    }
}

/// The DECIMAL that a text spells, without an exponent.
pub(crate) fn decimal_of(text: &str) -> Option<ScalarValue> {
    let digits = text.strip_prefix('-');
    let is_negative = digits.is_some();
    let digits = Digits::read(digits.unwrap_or(text))?;
    digits.negated(is_negative).decimal()
}

impl<'a> Literal<'a> {
    /// A number without a sign.
    pub fn number(digits: impl Into<Cow<'a, str>>) -> Self {
        Self {
            spelled: digits.into(),
            is_text: false,
            is_negative: false,
        }
    }

    /// A text.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            spelled: text.into(),
            is_text: true,
            is_negative: false,
        }
    }

    /// The same without the text that it stands in.
    pub fn into_owned(self) -> Literal<'static> {
        Literal {
            spelled: Cow::Owned(self.spelled.into_owned()),
            is_text: self.is_text,
            is_negative: self.is_negative,
        }
    }

    /// A whole number.
    pub fn integral(value: i128) -> Literal<'static> {
        Literal {
            spelled: Cow::Owned(value.unsigned_abs().to_string()),
            is_text: false,
            is_negative: value < 0,
        }
    }

    /// The literal that an expression is: `Some(None)` for NULL, `None` for anything else.
    pub fn of(expression: &Expr) -> Option<Option<Literal<'static>>> {
        match expression {
            Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr,
            } => {
                let number = Literal::of(expr)?.filter(|number| !number.is_text)?;
                let is_negative = !number.is_negative;
                // Two signs are an expression.
                is_negative.then_some(Some(Literal {
                    is_negative,
                    ..number
                }))
            }
            Expr::Value(value) => match &value.value {
                Value::Null => Some(None),
                Value::Number(digits, _) => Some(Some(Literal::number(digits.clone()))),
                Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => {
                    Some(Some(Literal::text(text.clone())))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The value of the literal by itself: a number as BIGINT, DECIMAL or DOUBLE, whichever is the
    /// first to hold it. `None` where none does.
    pub fn value(&self) -> Option<ScalarValue> {
        if self.is_text {
            return Some(ScalarValue::Utf8(Some(self.spelled.to_string())));
        }
        if self.spelled.contains(['e', 'E']) {
            let value: f64 = self.spelled.parse().ok()?;
            if value.is_infinite() {
                return None;
            }
            let value = if self.is_negative { -value } else { value };
            return Some(ScalarValue::Float64(Some(value)));
        }
        let digits = self.digits()?;
        if digits.fraction.is_none() {
            if let Ok(value) = i64::try_from(digits.value) {
                return Some(ScalarValue::Int64(Some(value)));
            }
            if let Ok(value) = u64::try_from(digits.value) {
                return Some(ScalarValue::UInt64(Some(value)));
            }
        }
        digits.decimal()
    }

    /// The whole number that this is, without a point.
    pub fn integer(&self) -> Option<i128> {
        let bytes = self.spelled.as_bytes();
        if self.is_text || bytes.len() > DIGITS_MAX || !bytes.iter().all(u8::is_ascii_digit) {
            return None;
        }
        // Eighteen digits do not overflow 64 bits, which are quicker to compute with.
        let value = match bytes.len() {
            0..=18 => i128::from(
                bytes
                    .iter()
                    .fold(0_i64, |value, digit| value * 10 + i64::from(digit - b'0')),
            ),
            _ => self.spelled.parse().ok()?,
        };
        Some(if self.is_negative { -value } else { value })
    }

    /// The digits of a number without an exponent.
    fn digits(&self) -> Option<Digits> {
        if self.is_text {
            return None;
        }
        Some(Digits::read(&self.spelled)?.negated(self.is_negative))
    }

    /// The nearest DOUBLE.
    fn double(&self) -> Option<f64> {
        let digits = self.digits()?;
        // A negative zero is another value.
        if digits.value == 0 && self.is_negative {
            return None;
        }
        let scale = i8::try_from(digits.scale()).ok()?;
        Some(nearest_double(digits.value, scale))
    }

    /// The number of units in the last place of a DECIMAL.
    fn decimal(&self, precision: u8, scale: u8) -> Option<i128> {
        let digits = self.digits()?;
        let missing = usize::from(scale).checked_sub(digits.scale())?;
        if digits.count + missing > usize::from(precision) {
            return None;
        }
        Some(digits.value * 10_i128.pow(u32::try_from(missing).ok()?))
    }

    /// Microseconds since 1970 of `2026-11-22` or `2026-11-22 05:30:00.25`, written in full.
    fn moment(&self, digits: u8, has_time: bool) -> Option<i64> {
        let bytes = self.spelled.as_bytes();
        let pattern: &[u8] = match has_time {
            true => b"0000-00-00 00:00:00",
            false => b"0000-00-00",
        };
        let (written, fraction) = bytes.split_at_checked(pattern.len())?;
        let matches = written
            .iter()
            .zip(pattern)
            .all(|(found, wanted)| found == wanted || (*wanted == b'0' && found.is_ascii_digit()));
        let is_fraction = match fraction {
            [] => true,
            [b'.', rest @ ..] => {
                has_time
                    && (1..=usize::from(digits)).contains(&rest.len())
                    && rest.iter().all(u8::is_ascii_digit)
            }
            _ => false,
        };
        if !self.is_text || !matches || !is_fraction {
            return None;
        }
        let read = read_moment(&self.spelled)?;
        (!read.has_rest).then_some(read.moment)
    }

    fn characters(&self, most: u32) -> Option<&str> {
        let most = usize::try_from(most).ok()?;
        let fits = self.spelled.len() <= most || self.spelled.chars().count() <= most;
        (self.is_text && fits).then_some(&self.spelled)
    }

    fn bytes(&self, most: u64) -> Option<&str> {
        let fits = self.spelled.len() as u64 <= most;
        (self.is_text && fits).then_some(&self.spelled)
    }
}

/// Values as a column of a type, NULL as it is; `None` where one of them does not fit as it stands.
pub fn column_of(values: &[Option<&Literal<'_>>], column_type: &ColumnType) -> Option<ArrayRef> {
    const MEDIUM: i128 = 1 << 23;
    match *column_type {
        ColumnType::Bool | ColumnType::TinyInt { unsigned: false } => {
            integers::<Int8Type>(values, |_| true)
        }
        ColumnType::TinyInt { unsigned: true } => integers::<UInt8Type>(values, |_| true),
        ColumnType::SmallInt { unsigned: false } => integers::<Int16Type>(values, |_| true),
        ColumnType::SmallInt { unsigned: true } => integers::<UInt16Type>(values, |_| true),
        ColumnType::MediumInt { unsigned: false } => {
            integers::<Int32Type>(values, |value| (-MEDIUM..MEDIUM).contains(&value))
        }
        ColumnType::MediumInt { unsigned: true } => {
            integers::<UInt32Type>(values, |value| value < 2 * MEDIUM)
        }
        ColumnType::Int { unsigned: false } => integers::<Int32Type>(values, |_| true),
        ColumnType::Int { unsigned: true } => integers::<UInt32Type>(values, |_| true),
        ColumnType::BigInt { unsigned: false } => integers::<Int64Type>(values, |_| true),
        ColumnType::BigInt { unsigned: true } => integers::<UInt64Type>(values, |_| true),
        ColumnType::Double {
            unsigned,
            digits: None,
        } => {
            let signed = |value: &f64| !unsigned || *value >= 0.0;
            let double = |value: &Literal<'_>| value.double().filter(signed);
            Some(Arc::new(primitives::<Float64Type>(values, double)?))
        }
        ColumnType::Decimal {
            precision,
            scale,
            unsigned,
        } if precision <= 38 => {
            let signed = |value: &i128| !unsigned || *value >= 0;
            let of = |value: &Literal<'_>| value.decimal(precision, scale).filter(signed);
            let decimals = primitives::<Decimal128Type>(values, of)?;
            let decimals = decimals.with_precision_and_scale(precision, scale.cast_signed());
            Some(Arc::new(decimals.ok()?))
        }
        ColumnType::Char { length } => texts(values, |value| {
            let text = value.characters(length)?;
            Some(text.trim_end_matches(' '))
        }),
        ColumnType::VarChar { length } => texts(values, |value| value.characters(length)),
        ColumnType::Text(size) => texts(values, |value| value.bytes(size.max_bytes())),
        ColumnType::VarBinary { length } => bytes(values, length.into()),
        ColumnType::Blob(size) => bytes(values, size.max_bytes()),
        ColumnType::Date => {
            let day = |value: &Literal<'_>| {
                let moment = value.moment(0, false)?;
                i32::try_from(moment.div_euclid(DAY_MICROS)).ok()
            };
            Some(Arc::new(primitives::<Date32Type>(values, day)?))
        }
        ColumnType::DateTime { digits } => {
            let moment = |value: &Literal<'_>| value.moment(digits, true);
            let moments = primitives::<TimestampMicrosecondType>(values, moment)?;
            Some(Arc::new(moments))
        }
        _ => None,
    }
}

/// What each literal is, NULL as it is.
fn primitives<T: ArrowPrimitiveType>(
    values: &[Option<&Literal<'_>>],
    of: impl Fn(&Literal<'_>) -> Option<T::Native>,
) -> Option<PrimitiveArray<T>> {
    let mut found = Vec::with_capacity(values.len());
    for value in values {
        found.push(match value {
            Some(literal) => of(literal)?,
            None => T::Native::default(),
        });
    }
    let has_nulls = values.iter().any(Option::is_none);
    let nulls = has_nulls.then(|| values.iter().map(Option::is_some).collect());
    Some(PrimitiveArray::new(found.into(), nulls))
}

fn integers<T: ArrowPrimitiveType>(
    values: &[Option<&Literal<'_>>],
    fits: impl Fn(i128) -> bool,
) -> Option<ArrayRef>
where
    T::Native: TryFrom<i128>,
{
    let number = |value: &Literal<'_>| {
        let value = value.integer().filter(|value| fits(*value))?;
        T::Native::try_from(value).ok()
    };
    Some(Arc::new(primitives::<T>(values, number)?))
}

fn texts<'v>(
    values: &[Option<&'v Literal<'_>>],
    of: impl Fn(&'v Literal<'_>) -> Option<&'v str>,
) -> Option<ArrayRef> {
    let mut builder = StringViewBuilder::with_capacity(values.len());
    for value in values {
        match value {
            Some(literal) => builder.append_value(of(literal)?),
            None => builder.append_null(),
        }
    }
    Some(Arc::new(builder.finish()))
}

fn bytes(values: &[Option<&Literal<'_>>], most: u64) -> Option<ArrayRef> {
    let mut builder = BinaryViewBuilder::with_capacity(values.len());
    for value in values {
        match value {
            Some(literal) => builder.append_value(literal.bytes(most)?),
            None => builder.append_null(),
        }
    }
    Some(Arc::new(builder.finish()))
}
