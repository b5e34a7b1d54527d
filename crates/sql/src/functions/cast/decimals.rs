//! Values as exact numbers.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Decimal128Builder, Decimal256Builder,
    StringViewArray, downcast_integer,
};
use arrow::compute::cast as arrow_cast;
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type, DurationMicrosecondType,
    TimestampMicrosecondType, UInt64Type, i256,
};
use arrow::error::ArrowError;
use datafusion::error::Result;
use mayfly_types::ErrorCode;
use mayfly_types::spelling::write_digits;

use super::{Conversions, is_widening};
use crate::functions::{calendar, convert, number};

/// Numbers with so many digits after the point.
struct Exact {
    /// Those that are too large for 256 bits are the largest.
    values: Vec<Option<i256>>,
    /// The rows whose values had more digits than zeros behind these.
    rounded: Vec<usize>,
}

impl Conversions<'_> {
    /// DECIMAL. A column notes what it rounds.
    pub(super) fn decimal(
        &self,
        array: &ArrayRef,
        digits: (u8, i8),
        unsigned: bool,
    ) -> Result<ArrayRef> {
        let what = if self.is_cast() { "DECIMAL" } else { "decimal" };
        let (numbers, rounded) = self.exact_numbers(array, digits, unsigned, what)?;
        rounded.into_iter().for_each(|row| self.note_cut(row));
        Ok(numbers)
    }

    /// Exact numbers, and the rows of those that have been rounded and fit. `what` is the name that
    /// an error gives them.
    pub(super) fn exact_numbers(
        &self,
        array: &ArrayRef,
        (precision, scale): (u8, i8),
        unsigned: bool,
        what: &str,
    ) -> Result<(ArrayRef, Vec<usize>)> {
        let to = self.target.data_type();
        if is_widening(array.data_type(), self.target) && !unsigned {
            let wide: ArrayRef = match widened(array.as_ref(), precision, scale) {
                Some(wide) => Arc::new(wide?),
                None => arrow_cast(array, &to)?,
            };
            return Ok((wide, Vec::new()));
        }
        if let (DataType::Decimal128(_, from), DataType::Decimal256(_, _)) =
            (array.data_type(), &to)
            && *from == scale
            && precision > DECIMAL128_MAX_PRECISION
            && !unsigned
        {
            // Each number of 128 bits fits, whatever digits its type declares.
            let values = array.as_primitive::<Decimal128Type>();
            let wide = values.unary::<_, Decimal256Type>(i256::from_i128);
            let wide = wide.with_precision_and_scale(precision, scale)?;
            return Ok((Arc::new(wide), Vec::new()));
        }
        let mut exact = self.read_exact(array, scale, what)?;
        self.fit(array, &mut exact, (precision, scale), unsigned)?;
        let Exact { values, rounded } = exact;
        let numbers: ArrayRef = match to {
            DataType::Decimal256(_, _) => {
                let mut builder = Decimal256Builder::with_capacity(values.len());
                values
                    .into_iter()
                    .for_each(|value| builder.append_option(value));
                let numbers = builder.finish();
                Arc::new(numbers.with_precision_and_scale(precision, scale)?)
            }
            _ => {
                let mut builder = Decimal128Builder::with_capacity(values.len());
                for value in values {
                    builder.append_option(value.map(|value| value.as_i128()));
                }
                let numbers = builder.finish();
                Arc::new(numbers.with_precision_and_scale(precision, scale)?)
            }
        };
        Ok((numbers, rounded))
    }

    /// Clips numbers that do not fit.
    fn fit(
        &self,
        array: &ArrayRef,
        Exact { values, rounded }: &mut Exact,
        (precision, scale): (u8, i8),
        unsigned: bool,
    ) -> Result<()> {
        let limit = i256::from_i128(10)
            .checked_pow(u32::from(precision))
            .map_or(i256::MAX, |power| power.wrapping_sub(i256::ONE));
        let floor = if unsigned {
            i256::ZERO
        } else {
            limit.wrapping_neg()
        };
        let texts = match array.data_type() {
            DataType::Utf8View | DataType::BinaryView | DataType::Float32 | DataType::Float64
                if unsigned =>
            {
                Some(convert::to_readable(array, self.from)?)
            }
            _ => None,
        };
        // What lies below zero does not fit, though it be rounded to zero.
        let is_negative = |row: usize| match array.data_type() {
            DataType::Decimal128(_, _) => array.as_primitive::<Decimal128Type>().value(row) < 0,
            DataType::Decimal256(_, _) => {
                array.as_primitive::<Decimal256Type>().value(row) < i256::ZERO
            }
            _ => texts.as_ref().is_some_and(|texts| {
                let text = texts.value(row).trim_start();
                let number = text.strip_prefix('-').unwrap_or_default().bytes();
                let mut digits = number.take_while(|byte| byte.is_ascii_digit() || *byte == b'.');
                digits.any(|digit| (b'1'..=b'9').contains(&digit))
            }),
        };
        let mut misfits = Vec::new();
        for (row, value) in values.iter_mut().enumerate() {
            let Some(value) = value else { continue };
            if unsigned && *value == i256::ZERO && is_negative(row) {
                self.misfit(ErrorCode::OutOfRange, row, "DECIMAL", "0")?;
                misfits.push(row);
            }
            if *value > limit || *value < floor {
                let mut text = String::new();
                write_digits(&value.to_string(), scale, &mut text);
                self.misfit(ErrorCode::OutOfRange, row, "DECIMAL", &text)?;
                *value = (*value).clamp(floor, limit);
                misfits.push(row);
            }
        }
        if !misfits.is_empty() {
            rounded.retain(|row| misfits.binary_search(row).is_err());
        }
        Ok(())
    }

    fn read_exact(&self, array: &ArrayRef, scale: i8, what: &str) -> Result<Exact> {
        Ok(match array.data_type() {
            DataType::Decimal128(_, from) => {
                let values = array.as_primitive::<Decimal128Type>().iter();
                rescaled(
                    values.map(|value| Some(i256::from_i128(value?))),
                    *from,
                    scale,
                )
            }
            DataType::Decimal256(_, from) => {
                let values = array.as_primitive::<Decimal256Type>().iter();
                rescaled(values, *from, scale)
            }
            DataType::Timestamp(_, _) => {
                // Digits that a DOUBLE does not have.
                let moments = convert::plain(array)?;
                let moments = moments.as_primitive::<TimestampMicrosecondType>().iter();
                let numbers = moments.map(|moment| {
                    let moment = moment?;
                    let micros = i128::from(moment.rem_euclid(calendar::MICROS));
                    let whole = i128::from(calendar::number_of_moment(moment));
                    let number = whole * i128::from(calendar::MICROS) + micros;
                    Some(i256::from_i128(number))
                });
                rescaled(numbers, 6, scale)
            }
            DataType::Duration(_) => {
                let times = convert::plain(array)?;
                let times = times.as_primitive::<DurationMicrosecondType>().iter();
                let numbers = times.map(|time| {
                    let time = time?;
                    let micros = i128::from(time % calendar::MICROS);
                    let whole = i128::from(calendar::number_of_time(time));
                    let number = whole * i128::from(calendar::MICROS) + micros;
                    Some(i256::from_i128(number))
                });
                rescaled(numbers, 6, scale)
            }
            DataType::Utf8View | DataType::BinaryView => {
                let texts = convert::to_readable(array, self.from)?;
                read_texts(&texts, scale, |row, text| {
                    let code = ErrorCode::TruncatedWrongValueForField;
                    self.misfit(code, row, what, text)
                })?
            }
            DataType::Float32 | DataType::Float64 => {
                let texts = convert::to_readable(array, self.from)?;
                read_texts(&texts, scale, |_, _| Ok(()))?
            }
            DataType::UInt64 => {
                let values = array.as_primitive::<UInt64Type>().iter();
                rescaled(
                    values.map(|value| Some(i256::from_i128(value?.into()))),
                    0,
                    scale,
                )
            }
            _ => {
                let integers = convert::to_integer(array, self.session)?;
                let values = integers.iter();
                rescaled(
                    values.map(|value| Some(i256::from_i128(value?.into()))),
                    0,
                    scale,
                )
            }
        })
    }
}

/// Numbers that have `from` digits after the point.
fn rescaled(numbers: impl Iterator<Item = Option<i256>>, from: i8, scale: i8) -> Exact {
    let mut rounded = Vec::new();
    let values = numbers.enumerate().map(|(row, number)| {
        let number = number?;
        let value = convert::rescale(number, from, scale);
        if from > scale && convert::rescale(value, scale, from) != number {
            rounded.push(row);
        }
        Some(value)
    });
    let values = values.collect();
    Exact { values, rounded }
}

/// The numbers that texts begin with; `cut` is told those that have something else behind them.
fn read_texts(
    texts: &StringViewArray,
    scale: i8,
    mut cut: impl FnMut(usize, &str) -> Result<()>,
) -> Result<Exact> {
    let mut values = Vec::with_capacity(texts.len());
    let mut rounded = Vec::new();
    for (row, text) in texts.iter().enumerate() {
        let Some(text) = text else {
            values.push(None);
            continue;
        };
        let read = number::read_rounded(text, scale);
        if !read.is_whole {
            cut(row, text)?;
        }
        if read.is_rounded {
            rounded.push(row);
        }
        let most = match text.trim_start().starts_with('-') {
            true => i256::MIN,
            false => i256::MAX,
        };
        values.push(Some(read.value.unwrap_or(most)));
    }
    Ok(Exact { values, rounded })
}

/// Whole numbers as decimals of 128 bits that have room for all of their type: no value is looked
/// at, which Arrow's cast does (three times the time of the sum that they are for). `None` for
/// other arrays, and decimals of more digits.
fn widened(
    numbers: &dyn Array,
    precision: u8,
    scale: i8,
) -> Option<Result<Decimal128Array, ArrowError>> {
    let power = 10_i128.checked_pow(u32::try_from(scale).ok()?)?;
    if precision > DECIMAL128_MAX_PRECISION {
        return None;
    }
    macro_rules! widen {
        ($kind:ty) => {{
            let numbers = numbers.as_primitive::<$kind>();
            Some(numbers.unary::<_, Decimal128Type>(|number| i128::from(number) * power))
        }};
    }
    let wide = downcast_integer! {
        numbers.data_type() => (widen),
        _ => None
    };
    Some(wide?.with_precision_and_scale(precision, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_numbers_are_told() {
        let texts = [
            "1.235",
            "1.230",
            "1.2300001",
            "12.3e-1",
            "123456e-3",
            "1e-5",
            "7",
            "x",
        ];
        let texts = StringViewArray::from_iter_values(texts);
        let mut cut = Vec::new();
        let read = read_texts(&texts, 2, |row, _| {
            cut.push(row);
            Ok(())
        });
        let read = read.unwrap();
        assert_eq!(read.rounded, [0, 2, 4, 5]);
        assert_eq!(cut, [7]);
        let numbers: Vec<Option<i128>> = { read.values.iter() }
            .map(|value| value.and_then(i256::to_i128))
            .collect();
        let expected = [124, 123, 123, 123, 12346, 0, 700, 0];
        assert_eq!(numbers, expected.map(Some));
    }

    #[test]
    fn numbers_of_more_digits_are_rounded_unless_these_are_zeros() {
        let numbers = [Some(1235), None, Some(-1230), Some(-1235), Some(4)];
        let numbers = numbers.map(|number| number.map(i256::from_i128));
        let narrow = rescaled(numbers.into_iter(), 3, 2);
        assert_eq!(narrow.rounded, [0, 3, 4]);
        let expected = [Some(124), None, Some(-123), Some(-124), Some(0)];
        assert_eq!(
            narrow.values,
            expected.map(|number| number.map(i256::from_i128))
        );
        assert!(rescaled(numbers.into_iter(), 3, 5).rounded.is_empty());
    }
}
