//! Exact numbers with a fraction: on 128 bits as long as the values fit (a batch at a time where
//! they prove it, see `batch`), otherwise on 256.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Decimal128Builder, Decimal256Array,
    Decimal256Builder,
};
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, UInt64Type, i256};
use datafusion::error::Result;
use mayfly_types::ColumnType;

use super::exact_values::{Exact, Scales, Step, narrow, wide};
use super::operator::Operator;
use super::{Arithmetic, batch, kept_digits};
use crate::functions::call::Call;
use crate::functions::cast;
use crate::functions::convert;
use crate::functions::unify::decimal;

impl Arithmetic {
    /// The numbers of an argument in 128 bits, with their scale.
    pub(super) fn exact(call: &Call<'_>, index: usize) -> Result<(Exact, i8)> {
        let array = convert::plain(call.array(index))?;
        let constant = call.is_constant(index);
        Ok(match array.data_type() {
            DataType::Decimal128(_, scale) => {
                let scale = *scale;
                (
                    Exact::Narrow(array.as_primitive::<Decimal128Type>().clone(), constant),
                    scale,
                )
            }
            DataType::Decimal256(_, scale) => {
                let scale = *scale;
                (
                    Exact::Wide(array.as_primitive::<Decimal256Type>().clone(), constant),
                    scale,
                )
            }
            DataType::UInt64 => {
                let values = array.as_primitive::<UInt64Type>();
                (
                    Exact::Narrow(values.unary::<_, Decimal128Type>(i128::from), constant),
                    0,
                )
            }
            DataType::Timestamp(_, _) | DataType::Duration(_)
                if call.column_type(index).second_digits() > 0 =>
            {
                let digits = call.column_type(index).second_digits();
                let of = decimal(14, digits);
                let values = if matches!(array.data_type(), DataType::Timestamp(_, _)) {
                    let from = call.column_type(index);
                    cast::convert_array(&array, &from, &of, call.session)?
                } else {
                    // A time has few enough digits for a DOUBLE.
                    let doubles: ArrayRef = Arc::new(convert::to_double(&array, call.session)?);
                    cast::convert_array(&doubles, &ColumnType::DOUBLE, &of, call.session)?
                };
                let scale = digits.cast_signed();
                (
                    Exact::Narrow(values.as_primitive::<Decimal128Type>().clone(), constant),
                    scale,
                )
            }
            _ => {
                let values = convert::to_integer(&array, call.session)?;
                (
                    Exact::Narrow(values.unary::<_, Decimal128Type>(i128::from), constant),
                    0,
                )
            }
        })
    }

    pub(super) fn decimals(&self, call: &Call<'_>, precision: u8, scale: i8) -> Result<ArrayRef> {
        let (left, left_scale) = Self::exact(call, 0)?;
        let (right, right_scale) = if call.count() > 1 {
            Self::exact(call, 1)?
        } else {
            (Exact::Narrow(Decimal128Array::from(vec![0_i128]), true), 0)
        };
        let scales = Scales {
            left: left_scale,
            right: right_scale,
            result: scale,
            cut: self.intermediate || self.cuts_at(left_scale, right_scale, scale),
        };
        let narrow_result = matches!(call.result_type().data_type(), DataType::Decimal128(_, _));
        let sides = (&left, &right);
        if narrow_result {
            let whole = batch::compute(self.operator, sides, scales, |value| value);
            if let Some((values, nulls)) = whole {
                let array = Decimal128Array::new(values.into(), nulls);
                return Ok(Arc::new(array.with_precision_and_scale(precision, scale)?));
            }
        } else if let Some((values, nulls)) =
            batch::compute(self.operator, sides, scales, i256::from_i128)
        {
            let array = Decimal256Array::new(values.into(), nulls);
            return Ok(Arc::new(array.with_precision_and_scale(precision, scale)?));
        }
        if let (true, Exact::Narrow(..), Exact::Narrow(..)) = (narrow_result, &left, &right) {
            let mut builder = Decimal128Builder::with_capacity(call.rows);
            for row in 0..call.rows {
                let (Some(left), Some(right)) = (left.narrow(row), right.narrow(row)) else {
                    builder.append_null();
                    continue;
                };
                match narrow(self.operator, left, right, scales) {
                    Step::Value(value) => builder.append_value(value),
                    Step::Null => {
                        call.division_by_zero()?;
                        builder.append_null();
                    }
                    Step::Overflow => {
                        // An intermediate step may need more bits than the result.
                        let (left, right) = (i256::from_i128(left), i256::from_i128(right));
                        match wide(self.operator, left, right, scales).and_then(i256::to_i128) {
                            Some(value) => builder.append_value(value),
                            None => return Err(self.out_of_range(call)),
                        }
                    }
                }
            }
            return Ok(Arc::new(
                builder
                    .finish()
                    .with_precision_and_scale(precision, scale)?,
            ));
        }
        let mut values = Vec::with_capacity(call.rows);
        for row in 0..call.rows {
            let (Some(left), Some(right)) = (left.wide(row), right.wide(row)) else {
                values.push(None);
                continue;
            };
            let divides = matches!(self.operator, Operator::Divide | Operator::Modulo);
            if divides && right == i256::ZERO {
                call.division_by_zero()?;
                values.push(None);
                continue;
            }
            let value = wide(self.operator, left, right, scales);
            values.push(Some(value.ok_or_else(|| self.out_of_range(call))?));
        }
        if narrow_result {
            let mut builder = Decimal128Builder::with_capacity(call.rows);
            for value in values {
                let value = value.map(|value| value.to_i128());
                match value {
                    Some(None) => return Err(self.out_of_range(call)),
                    Some(Some(value)) => builder.append_value(value),
                    None => builder.append_null(),
                }
            }
            return Ok(Arc::new(
                builder
                    .finish()
                    .with_precision_and_scale(precision, scale)?,
            ));
        }
        let mut builder = Decimal256Builder::with_capacity(call.rows);
        values
            .into_iter()
            .for_each(|value| builder.append_option(value));
        Ok(Arc::new(
            builder
                .finish()
                .with_precision_and_scale(precision, scale)?,
        ))
    }
}

impl Arithmetic {
    /// Whether a quotient has no digits behind those of the result, by which it would be rounded.
    fn cuts_at(&self, left: i8, right: i8, result: i8) -> bool {
        let scales = (left.unsigned_abs(), right.unsigned_abs());
        self.operator == Operator::Divide
            && kept_digits(scales, self.more_digits) <= result.unsigned_abs()
    }
}
