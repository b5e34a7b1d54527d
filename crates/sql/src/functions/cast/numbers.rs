//! Values as numbers.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float64Array, StringViewArray, UInt16Array,
    UInt64Array,
};
use arrow::compute::cast as arrow_cast;
use arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Float64Type, Int64Type, UInt64Type, i256,
};
use datafusion::error::Result;
use mayfly_types::{ColumnType, Digits, ErrorCode};

use super::{Conversions, Purpose};
use crate::functions::{calendar, convert, number, unify};

impl Conversions<'_> {
    /// CAST AS SIGNED: an unsigned number keeps its bits.
    pub(super) fn signed(&self, array: &ArrayRef) -> Result<ArrayRef> {
        Ok(match array.data_type() {
            DataType::UInt64 => Arc::new(
                array
                    .as_primitive::<UInt64Type>()
                    .unary::<_, Int64Type>(u64::cast_signed),
            ),
            _ => Arc::new(convert::to_integer(array, self.session)?),
        })
    }

    /// CAST AS UNSIGNED: a negative number keeps its bits.
    pub(super) fn unsigned(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let wrap = |value: i128| -> u64 {
            u64::try_from(value).unwrap_or_else(|_| {
                if value < 0 {
                    i64::try_from(value).unwrap_or(i64::MIN).cast_unsigned()
                } else {
                    u64::MAX
                }
            })
        };
        let exact = |value: i256| wrap(value.to_i128().unwrap_or(i128::MAX));
        Ok(match array.data_type() {
            DataType::UInt64 => Arc::clone(array),
            DataType::Utf8View | DataType::BinaryView => {
                let texts = convert::to_readable(array, self.from)?;
                let mut builder = arrow::array::UInt64Builder::with_capacity(texts.len());
                for (row, text) in texts.iter().enumerate() {
                    match text.map(|text| (text, number::read_integer(text))) {
                        None => builder.append_null(),
                        Some((text, (value, whole))) => {
                            if !whole || number::is_beyond_integers(value) {
                                self.misfit(ErrorCode::TruncatedValue, row, "INTEGER", text)?;
                            }
                            builder.append_value(wrap(value));
                        }
                    }
                }
                Arc::new(builder.finish())
            }
            DataType::Decimal128(_, scale) => {
                let scale = *scale;
                Arc::new(
                    array
                        .as_primitive::<Decimal128Type>()
                        .unary::<_, UInt64Type>(|value| {
                            exact(convert::rescale(i256::from_i128(value), scale, 0))
                        }),
                )
            }
            DataType::Decimal256(_, scale) => {
                let scale = *scale;
                Arc::new(
                    array
                        .as_primitive::<Decimal256Type>()
                        .unary::<_, UInt64Type>(|value| exact(convert::rescale(value, scale, 0))),
                )
            }
            #[expect(clippy::cast_possible_truncation, reason = "clipping is meant")]
            DataType::Float32 | DataType::Float64 => {
                let doubles = convert::to_double(array, self.session)?;
                Arc::new(
                    doubles.unary::<_, UInt64Type>(|value| wrap(value.round_ties_even() as i128)),
                )
            }
            _ => {
                let integers = convert::to_integer(array, self.session)?;
                Arc::new(integers.unary::<_, UInt64Type>(i64::cast_unsigned))
            }
        })
    }

    /// The least and the greatest number of an integer type.
    fn bounds(&self) -> (i128, i128) {
        let of = |bits: u32, unsigned: bool| {
            if unsigned {
                (0, (1_i128 << bits) - 1)
            } else {
                (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1)
            }
        };
        match self.target {
            ColumnType::TinyInt { unsigned } => of(8, *unsigned),
            ColumnType::SmallInt { unsigned } => of(16, *unsigned),
            ColumnType::MediumInt { unsigned } => of(24, *unsigned),
            ColumnType::Int { unsigned } => of(32, *unsigned),
            ColumnType::BigInt { unsigned } => of(64, *unsigned),
            ColumnType::Bit { length } => of(u32::from(*length), true),
            _ => of(8, false),
        }
    }

    pub(super) fn integer(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let (least, greatest) = self.bounds();
        let texts = match array.data_type() {
            DataType::Utf8View | DataType::BinaryView => {
                Some(convert::to_readable(array, self.from)?)
            }
            _ => None,
        };
        let values = match &texts {
            Some(texts) => self.integers_of_texts(texts, (least, greatest))?,
            None => self.whole_numbers(array)?,
        };
        let values = values.as_primitive::<Decimal128Type>();
        if least == 0 && !self.is_cast() {
            self.refuse_negative_fractions(array, values)?;
        }
        let mut adjusted: Option<Vec<Option<i128>>> = None;
        for (row, value) in values.iter().enumerate() {
            let Some(value) = value else { continue };
            if value < least || value > greatest {
                self.misfit(ErrorCode::OutOfRange, row, "INTEGER", &value.to_string())?;
                let clipped = value.clamp(least, greatest);
                adjusted.get_or_insert_with(|| values.iter().collect())[row] = Some(clipped);
            }
        }
        let adjusted = match adjusted {
            Some(values) => values
                .into_iter()
                .collect::<Decimal128Array>()
                .with_precision_and_scale(38, 0)?,
            None => values.clone().with_precision_and_scale(38, 0)?,
        };
        // An unsigned BIGINT beyond the signed range still fits: it was clipped to its own bounds.
        Ok(arrow_cast(&adjusted, &self.target.data_type())?)
    }

    /// Exact numbers below zero that an unsigned column would round to zero do not fit it.
    fn refuse_negative_fractions(&self, array: &ArrayRef, rounded: &Decimal128Array) -> Result<()> {
        let is_negative = |row: usize| match array.data_type() {
            DataType::Decimal128(_, _) => array.as_primitive::<Decimal128Type>().value(row) < 0,
            DataType::Decimal256(_, _) => {
                array.as_primitive::<Decimal256Type>().value(row) < i256::ZERO
            }
            _ => false,
        };
        for (row, value) in rounded.iter().enumerate() {
            if value == Some(0) && is_negative(row) {
                self.misfit(ErrorCode::OutOfRange, row, "INTEGER", "0")?;
            }
        }
        Ok(())
    }

    /// The whole numbers that texts begin with. What is out of bounds is not looked at further.
    fn integers_of_texts(
        &self,
        texts: &StringViewArray,
        (least, greatest): (i128, i128),
    ) -> Result<ArrayRef> {
        let mut builder = Decimal128Array::builder(texts.len());
        for (row, text) in texts.iter().enumerate() {
            let Some(text) = text else {
                builder.append_null();
                continue;
            };
            let (value, whole) = number::read_decimal(text, 0);
            let is_negative = text.trim_start().starts_with('-');
            let most = if is_negative { i128::MIN } else { i128::MAX };
            let value = value.and_then(i256::to_i128).unwrap_or(most);
            if !whole && (least..=greatest).contains(&value) {
                let code = ErrorCode::TruncatedWrongValueForField;
                let what = if self.is_cast() { "INTEGER" } else { "integer" };
                self.misfit(code, row, what, text)?;
            }
            builder.append_value(value);
        }
        Ok(Arc::new(builder.finish()))
    }

    /// Exact numbers of 38 digits, which hold every integer; fractions are rounded on the way.
    fn whole_numbers(&self, array: &ArrayRef) -> Result<ArrayRef> {
        if let DataType::Float32 | DataType::Float64 = array.data_type() {
            let doubles = convert::to_double(array, self.session)?;
            // **Source**: `Field_bit::store` and `Field_year::store` of MySQL's `sql/field.cc`.
            let is_cut = matches!(self.target, ColumnType::Bit { .. } | ColumnType::Year);
            let whole = |value: f64| match is_cut && !self.is_cast() {
                true => value.trunc(),
                false => value.round_ties_even(),
            };
            #[expect(clippy::cast_possible_truncation, reason = "clipping is meant")]
            let rounded = doubles.unary::<_, Decimal128Type>(|value| whole(value) as i128);
            return Ok(Arc::new(rounded));
        }
        let exact = Conversions {
            target: &unify::decimal(38, 0),
            ..*self
        };
        let what = if self.is_cast() { "INTEGER" } else { "integer" };
        let (rounded, _) = exact.exact_numbers(array, (38, 0), false, what)?;
        Ok(rounded)
    }

    /// YEAR: the numbers 1 to 99 and all texts of fewer than four digits stand for years of this
    /// century or the last. What is no year is the year zero.
    pub(super) fn year(&self, array: &ArrayRef) -> Result<ArrayRef> {
        if let DataType::Date32 | DataType::Timestamp(_, _) = array.data_type() {
            let moments = convert::to_moment(array, self.session)?;
            let years = moments.iter().map(|moment| {
                let year = calendar::split(moment?).year;
                Some(i128::from(year))
            });
            let years: Vec<_> = years.collect();
            return self.years(years, |_| false);
        }
        let numbers = self.whole_numbers(array)?;
        let numbers = numbers.as_primitive::<Decimal128Type>().iter().collect();
        let texts = match array.data_type() {
            DataType::Utf8View | DataType::BinaryView => {
                Some(convert::to_readable(array, self.from)?)
            }
            _ => None,
        };
        let is_short = |row: usize| {
            let text = texts.as_ref().map(|texts| texts.value(row));
            text.is_some_and(|text| text.len() != 4 && number::begins_with_number(text))
        };
        self.years(numbers, is_short)
    }

    /// Numbers as years; a zero stands for the year 2000 where it `is_short`.
    fn years(
        &self,
        mut numbers: Vec<Option<i128>>,
        is_short: impl Fn(usize) -> bool,
    ) -> Result<ArrayRef> {
        for (row, number) in numbers.iter_mut().enumerate() {
            let Some(number) = number else { continue };
            *number = match calendar::year_of_number(*number) {
                Some(0) if is_short(row) => 2000,
                Some(year) => year,
                None => {
                    self.misfit(ErrorCode::OutOfRange, row, "INTEGER", &number.to_string())?;
                    0
                }
            };
        }
        let years = numbers.into_iter().map(|year| {
            let year = u16::try_from(year?);
            Some(year.expect("a year has four digits"))
        });
        Ok(Arc::new(UInt16Array::from_iter(years)))
    }

    /// BIT: numbers by their bits, all others by the bytes of their texts.
    pub(super) fn bits(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let (_, greatest) = self.bounds();
        let greatest = u64::try_from(greatest).expect("a BIT has at most 64 bits");
        let values: Vec<Option<Option<u64>>> = match array.data_type() {
            of if of.is_numeric() || *of == DataType::Boolean => {
                let numbers = self.whole_numbers(array)?;
                let numbers = numbers.as_primitive::<Decimal128Type>().iter();
                let bits = |number: i128| match u64::try_from(number) {
                    Ok(bits) => Some(bits),
                    Err(_) => i64::try_from(number).ok().map(i64::cast_unsigned),
                };
                numbers.map(|number| number.map(bits)).collect()
            }
            _ => {
                let bytes = convert::to_bytes(array, self.from)?;
                let bits = |bytes: &[u8]| {
                    let first = bytes.iter().position(|byte| *byte != 0);
                    let bytes = &bytes[first.unwrap_or(bytes.len())..];
                    (bytes.len() <= 8).then(|| {
                        { bytes.iter() }.fold(0, |bits, byte| bits << 8 | u64::from(*byte))
                    })
                };
                bytes.iter().map(|bytes| bytes.map(bits)).collect()
            }
        };
        let mut builder = UInt64Array::builder(values.len());
        for (row, value) in values.into_iter().enumerate() {
            builder.append_option(match value {
                None => None,
                Some(Some(bits)) if bits <= greatest => Some(bits),
                Some(bits) => {
                    let is_number = array.data_type().is_numeric();
                    let code = match self.purpose {
                        // A number of more than 64 bits is no value of any BIT.
                        _ if is_number && bits.is_none() => ErrorCode::OutOfRange,
                        Purpose::Assign { strict: true, .. } => ErrorCode::DataTooLong,
                        _ => ErrorCode::OutOfRange,
                    };
                    self.misfit(code, row, "BIT", "")?;
                    Some(greatest)
                }
            });
        }
        Ok(arrow_cast(&builder.finish(), &self.target.data_type())?)
    }

    pub(super) fn double(
        &self,
        array: &ArrayRef,
        unsigned: bool,
        digits: Option<Digits>,
    ) -> Result<ArrayRef> {
        if self.is_cast() {
            let mut doubles = convert::to_double(array, self.session)?;
            let (least, greatest) = self.double_bounds(unsigned);
            for (row, value) in doubles.iter().enumerate() {
                if let Some(value) = value.filter(|value| !(least..=greatest).contains(value)) {
                    self.misfit(ErrorCode::OutOfRange, row, "DOUBLE", &value.to_string())?;
                }
            }
            doubles = doubles.unary::<_, Float64Type>(|value| value.clamp(least, greatest));
            return Ok(arrow_cast(&doubles, &self.target.data_type())?);
        }
        let doubles = self.read_doubles(array)?;
        let doubles = self.fitting(&doubles, unsigned, digits)?;
        Ok(arrow_cast(&doubles, &self.target.data_type())?)
    }

    /// The least and the greatest number of a floating-point type.
    fn double_bounds(&self, unsigned: bool) -> (f64, f64) {
        let greatest = match self.target {
            ColumnType::Float { .. } => f64::from(f32::MAX),
            _ => f64::MAX,
        };
        (if unsigned { 0.0 } else { -greatest }, greatest)
    }

    /// The numbers of an assignment, infinite where they are too large. What is too large is not
    /// looked at further.
    fn read_doubles(&self, array: &ArrayRef) -> Result<Float64Array> {
        if !matches!(array.data_type(), DataType::Utf8View | DataType::BinaryView) {
            return convert::to_double(array, None);
        }
        let texts = convert::to_readable(array, self.from)?;
        let mut builder = Float64Array::builder(texts.len());
        for (row, text) in texts.iter().enumerate() {
            let Some(text) = text else {
                builder.append_null();
                continue;
            };
            let (value, whole) = number::read_unbounded(text);
            if !whole && value.is_finite() {
                let code = ErrorCode::TruncatedWrongValueForField;
                self.misfit(code, row, "double", text)?;
            }
            builder.append_value(value);
        }
        Ok(builder.finish())
    }

    /// Numbers as a column holds them: rounded to its digits if it has any, and clipped.
    fn fitting(
        &self,
        doubles: &Float64Array,
        unsigned: bool,
        digits: Option<Digits>,
    ) -> Result<Float64Array> {
        let (mut least, mut greatest) = self.double_bounds(unsigned);
        let mut unit = None;
        if let Some(Digits { total, fraction }) = digits {
            let of_digits = 10_f64.powi(i32::from(fraction));
            greatest = 10_f64.powi(i32::from(total - fraction)) - 1.0 / of_digits;
            least = if unsigned { 0.0 } else { -greatest };
            unit = Some(of_digits);
        }
        let rounded = doubles.unary::<_, Float64Type>(|value| match unit {
            // From the floor, as MySQL does: which way half of a last digit goes depends on it.
            Some(unit) if value.is_finite() => {
                let whole = value.floor();
                whole + ((value - whole) * unit).round_ties_even() / unit
            }
            _ => value,
        });
        for (row, value) in rounded.iter().enumerate() {
            if let Some(value) = value.filter(|value| !(least..=greatest).contains(value)) {
                self.misfit(ErrorCode::OutOfRange, row, "DOUBLE", &value.to_string())?;
            }
        }
        Ok(rounded.unary(|value| value.clamp(least, greatest)))
    }
}
