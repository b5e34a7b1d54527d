//! Comparisons of integers with constants, as ranges that a page can be asked for.
//!
//! Owns: [`IntegerRange`], and which terms of a condition are one. Never: reads a page.
//!
//! A decimal is the integer of its digits, a date that of its days: what a page holds as a distance
//! of one or two bytes is compared as such, and needs no 16 bytes.
//!
//! **Source**: Lang et al., "Data Blocks", SIGMOD 2016: predicates over compressed values.

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};

/// The rows whose integer in a column lies in a range.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IntegerRange {
    pub(super) column: usize,
    pub(super) range: RangeInclusive<i128>,
}

impl IntegerRange {
    /// What a term asks for; `None` where it is another one. `<>` is left to arrays.
    pub(super) fn of(term: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<IntegerRange> {
        let both = term.downcast_ref::<BinaryExpr>()?;
        let sides = (both.left(), both.right());
        let (column, literal, operator) = match sides.0.downcast_ref::<Column>() {
            Some(column) => (column, sides.1, *both.op()),
            None => (
                sides.1.downcast_ref::<Column>()?,
                sides.0,
                both.op().swap()?,
            ),
        };
        let literal = literal.downcast_ref::<Literal>()?.value();
        let field = schema.fields().get(column.index())?;
        if *field.data_type() != literal.data_type() {
            return None;
        }
        let integer = integer(literal)?;
        let (least, greatest) = (i128::MIN, i128::MAX);
        let range = match operator {
            Operator::Eq => integer..=integer,
            Operator::Lt => least..=integer.checked_sub(1)?,
            Operator::LtEq => least..=integer,
            Operator::Gt => integer.checked_add(1)?..=greatest,
            Operator::GtEq => integer..=greatest,
            _ => return None,
        };
        Some(IntegerRange {
            column: column.index(),
            range,
        })
    }
}

/// The integer that stands in an array for a value.
fn integer(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::Int8(value) => value.map(Into::into),
        ScalarValue::Int16(value) => value.map(Into::into),
        ScalarValue::Int32(value) | ScalarValue::Date32(value) => value.map(Into::into),
        ScalarValue::Int64(value)
        | ScalarValue::Date64(value)
        | ScalarValue::Time64Microsecond(value)
        | ScalarValue::TimestampMicrosecond(value, _)
        | ScalarValue::DurationMicrosecond(value) => value.map(Into::into),
        ScalarValue::UInt8(value) => value.map(Into::into),
        ScalarValue::UInt16(value) => value.map(Into::into),
        ScalarValue::UInt32(value) => value.map(Into::into),
        ScalarValue::UInt64(value) => value.map(Into::into),
        ScalarValue::Decimal128(value, _, _) => *value,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};
    use datafusion::physical_expr::expressions::{binary, col, lit};

    use super::*;

    fn range(operator: Operator, value: ScalarValue, swapped: bool) -> Option<IntegerRange> {
        let fields = vec![
            Field::new("t", DataType::Utf8, true),
            Field::new("d", DataType::Decimal128(15, 2), true),
        ];
        let schema = Schema::new(fields);
        let (column, literal) = (col("d", &schema).unwrap(), lit(value));
        let term = match swapped {
            false => binary(column, operator, literal, &schema),
            true => binary(literal, operator, column, &schema),
        };
        IntegerRange::of(&term.unwrap(), &schema)
    }

    #[test]
    fn comparisons_with_a_constant_of_the_same_type_are_ranges() {
        let price = |digits| ScalarValue::Decimal128(digits, 15, 2);
        let column = 1;
        let expected = |range| Some(IntegerRange { column, range });
        let (least, greatest) = (i128::MIN, i128::MAX);
        let cases = [
            (Operator::Eq, false, 500..=500),
            (Operator::Lt, false, least..=499),
            (Operator::Lt, true, 501..=greatest),
            (Operator::GtEq, false, 500..=greatest),
            (Operator::GtEq, true, least..=500),
        ];
        for (operator, swapped, found) in cases {
            assert_eq!(range(operator, price(Some(500)), swapped), expected(found));
        }
        assert_eq!(range(Operator::Eq, price(None), false), None);
        assert_eq!(range(Operator::NotEq, price(Some(500)), false), None);
        let other = ScalarValue::Decimal128(Some(500), 15, 3);
        assert_eq!(range(Operator::Eq, other, false), None);
    }
}
