//! Values as numbers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Builder, Decimal256Builder, Float64Array};
use arrow::compute::cast as arrow_cast;
use arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, DurationMicrosecondType, Float64Type, Int64Type,
    TimestampMicrosecondType, UInt64Type, i256,
};
use datafusion::error::Result;
use mayfly_types::spelling::write_digits;
use mayfly_types::{ColumnType, Digits, ErrorCode};

use super::{Conversions, is_widening};
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
                let texts = convert::to_text(array, self.from)?;
                let mut builder = arrow::array::UInt64Builder::with_capacity(texts.len());
                for (row, text) in texts.iter().enumerate() {
                    match text.map(|text| (text, number::read_integer(text))) {
                        None => builder.append_null(),
                        Some((text, (value, whole))) => {
                            if !whole {
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
            ColumnType::Year => (0, 2155),
            _ => of(8, false),
        }
    }

    pub(super) fn integer(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let to = self.target.data_type();
        let (least, greatest) = self.bounds();
        // Exact numbers of 38 digits hold every integer; fractions are rounded on the way.
        let exact = Conversions {
            target: &unify::decimal(38, 0),
            ..*self
        };
        let values = match array.data_type() {
            DataType::Float32 | DataType::Float64 => {
                let doubles = convert::to_double(array, self.session)?;
                #[expect(clippy::cast_possible_truncation, reason = "clipping is meant")]
                let rounded =
                    doubles.unary::<_, Decimal128Type>(|value| value.round_ties_even() as i128);
                Arc::new(rounded) as ArrayRef
            }
            _ => exact.decimal(array, 38, 0, false)?,
        };
        let values = values.as_primitive::<Decimal128Type>();
        let mut adjusted: Option<Vec<Option<i128>>> = None;
        for (row, value) in values.iter().enumerate() {
            let Some(mut value) = value else { continue };
            if *self.target == ColumnType::Year && (1..100).contains(&value) {
                value += if value < 70 { 2000 } else { 1900 };
                adjusted.get_or_insert_with(|| values.iter().collect())[row] = Some(value);
            }
            if value < least || value > greatest {
                self.misfit(ErrorCode::OutOfRange, row, "INTEGER", &value.to_string())?;
                let clipped = value.clamp(least, greatest);
                adjusted.get_or_insert_with(|| values.iter().collect())[row] = Some(clipped);
            }
        }
        let adjusted = match adjusted {
            Some(values) => values
                .into_iter()
                .collect::<arrow::array::Decimal128Array>()
                .with_precision_and_scale(38, 0)?,
            None => values.clone().with_precision_and_scale(38, 0)?,
        };
        // An unsigned BIGINT beyond the signed range still fits: it was clipped to its own bounds.
        Ok(arrow_cast(&adjusted, &to)?)
    }

    pub(super) fn decimal(
        &self,
        array: &ArrayRef,
        precision: u8,
        scale: i8,
        unsigned: bool,
    ) -> Result<ArrayRef> {
        let to = self.target.data_type();
        if is_widening(array.data_type(), self.target) && !unsigned {
            return Ok(arrow_cast(array, &to)?);
        }
        let limit = i256::from_i128(10)
            .checked_pow(u32::from(precision))
            .map_or(i256::MAX, |power| power.wrapping_sub(i256::ONE));
        let floor = if unsigned {
            i256::ZERO
        } else {
            limit.wrapping_neg()
        };
        let rows = array.len();
        let mut values: Vec<Option<i256>> = Vec::with_capacity(rows);
        match array.data_type() {
            DataType::Decimal128(_, from) => {
                values.extend(array.as_primitive::<Decimal128Type>().iter().map(|value| {
                    value.map(|value| convert::rescale(i256::from_i128(value), *from, scale))
                }))
            }
            DataType::Decimal256(_, from) => values.extend(
                array
                    .as_primitive::<Decimal256Type>()
                    .iter()
                    .map(|value| value.map(|value| convert::rescale(value, *from, scale))),
            ),
            DataType::Timestamp(_, _) => {
                // Digits that a DOUBLE does not have.
                let moments = convert::plain(array)?;
                let moments = moments.as_primitive::<TimestampMicrosecondType>();
                values.extend(moments.iter().map(|moment| {
                    let moment = moment?;
                    let micros = i128::from(moment.rem_euclid(calendar::MICROS));
                    let whole = i128::from(calendar::number_of_moment(moment));
                    let number = i256::from_i128(whole * i128::from(calendar::MICROS) + micros);
                    Some(convert::rescale(number, 6, scale))
                }));
            }
            DataType::Duration(_) => {
                let times = convert::plain(array)?;
                let times = times.as_primitive::<DurationMicrosecondType>();
                values.extend(times.iter().map(|time| {
                    let time = time?;
                    let micros = i128::from(time % calendar::MICROS);
                    let whole = i128::from(calendar::number_of_time(time));
                    let number = i256::from_i128(whole * i128::from(calendar::MICROS) + micros);
                    Some(convert::rescale(number, 6, scale))
                }));
            }
            DataType::Utf8View | DataType::BinaryView => {
                let texts = convert::to_text(array, self.from)?;
                for (row, text) in texts.iter().enumerate() {
                    let Some(text) = text else {
                        values.push(None);
                        continue;
                    };
                    let (value, whole) = number::read_decimal(text, scale);
                    if !whole {
                        let code = ErrorCode::TruncatedWrongValueForField;
                        let what = if scale == 0 && !self.is_cast() {
                            "integer"
                        } else {
                            "DECIMAL"
                        };
                        self.misfit(code, row, what, text)?;
                    }
                    let negative = text.trim_start().starts_with('-');
                    values.push(Some(value.unwrap_or(if negative {
                        i256::MIN
                    } else {
                        i256::MAX
                    })));
                }
            }
            DataType::Float32 | DataType::Float64 => {
                let texts = convert::to_text(array, self.from)?;
                values.extend(texts.iter().map(|text| {
                    text.map(|text| {
                        number::read_decimal(text, scale)
                            .0
                            .unwrap_or(if text.starts_with('-') {
                                i256::MIN
                            } else {
                                i256::MAX
                            })
                    })
                }));
            }
            DataType::UInt64 => {
                values.extend(array.as_primitive::<UInt64Type>().iter().map(|value| {
                    value.map(|v| convert::rescale(i256::from_i128(v.into()), 0, scale))
                }));
            }
            _ => {
                let integers = convert::to_integer(array, self.session)?;
                values.extend(integers.iter().map(|value| {
                    value.map(|v| convert::rescale(i256::from_i128(v.into()), 0, scale))
                }));
            }
        }
        for (row, value) in values.iter_mut().enumerate() {
            let Some(value) = value else { continue };
            if *value > limit || *value < floor {
                let mut text = String::new();
                write_digits(&value.to_string(), scale, &mut text);
                self.misfit(ErrorCode::OutOfRange, row, "DECIMAL", &text)?;
                *value = (*value).clamp(floor, limit);
            }
        }
        if let DataType::Decimal256(_, _) = to {
            let mut builder = Decimal256Builder::with_capacity(rows);
            values
                .into_iter()
                .for_each(|value| builder.append_option(value));
            return Ok(Arc::new(
                builder
                    .finish()
                    .with_precision_and_scale(precision, scale)?,
            ));
        }
        let mut builder = Decimal128Builder::with_capacity(rows);
        for value in values {
            builder.append_option(value.map(|value| value.as_i128()));
        }
        Ok(Arc::new(
            builder
                .finish()
                .with_precision_and_scale(precision, scale)?,
        ))
    }

    pub(super) fn double(
        &self,
        array: &ArrayRef,
        unsigned: bool,
        digits: Option<Digits>,
    ) -> Result<ArrayRef> {
        let is_text = matches!(array.data_type(), DataType::Utf8View | DataType::BinaryView);
        if is_text && !self.is_cast() {
            for (row, text) in convert::to_text(array, self.from)?.iter().enumerate() {
                if let Some(text) = text
                    && !number::read_double(text).1
                {
                    let code = ErrorCode::TruncatedWrongValueForField;
                    self.misfit(code, row, "double", text)?;
                }
            }
        }
        let session = if self.is_cast() { self.session } else { None };
        let mut doubles = convert::to_double(array, session)?;
        if unsigned && doubles.iter().flatten().any(|value| value < 0.0) {
            let negative = doubles
                .iter()
                .position(|v| v.is_some_and(|v| v < 0.0))
                .unwrap_or(0);
            self.misfit(ErrorCode::OutOfRange, negative, "DOUBLE", "negative")?;
            doubles = doubles.unary::<_, Float64Type>(|value| value.max(0.0));
        }
        if let Some(digits) = digits.filter(|_| !self.is_cast()) {
            doubles = self.rounded(&doubles, digits)?;
        }
        Ok(arrow_cast(&doubles, &self.target.data_type())?)
    }

    /// Numbers for a column that has so many digits: rounded, and clipped to the greatest.
    fn rounded(&self, doubles: &Float64Array, digits: Digits) -> Result<Float64Array> {
        let Digits { total, fraction } = digits;
        let unit = 10_f64.powi(i32::from(fraction));
        let greatest = 10_f64.powi(i32::from(total - fraction)) - 1.0 / unit;
        for (row, value) in doubles.iter().enumerate() {
            if let Some(value) = value.filter(|value| value.abs() > greatest) {
                self.misfit(ErrorCode::OutOfRange, row, "DOUBLE", &value.to_string())?;
            }
        }
        Ok(doubles.unary(|value| {
            // From the floor, as MySQL does: which way half of a last digit goes depends on it.
            let whole = value.floor();
            let rounded = whole + ((value - whole) * unit).round_ties_even() / unit;
            rounded.clamp(-greatest, greatest)
        }))
    }
}
