//! Comparisons of integers with constants, as ranges that a page can be asked for.
//!
//! Owns: [`IntegerRanges`], and which terms of a condition are one. Never: reads a page.
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
use datafusion::physical_expr::expressions::{BinaryExpr, Column, InListExpr, Literal};

use super::terms::NESTING_MAX;

/// More ranges are left to arrays.
const RANGES_MAX: usize = 8;

type Range = RangeInclusive<i128>;

/// The rows whose integer in a column lies in one of some ranges.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IntegerRanges {
    pub(super) column: usize,
    /// In any order; some may overlap.
    pub(super) ranges: Vec<Range>,
}

impl IntegerRanges {
    /// What a term asks for: a comparison of a column with a constant, `IN`, and these under AND
    /// and OR; `None` where it is another one. A NULL is in no range, and makes none of these true.
    pub(super) fn of(term: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<IntegerRanges> {
        IntegerRanges::nested(term, schema, 0)
    }

    fn nested(
        term: &Arc<dyn PhysicalExpr>,
        schema: &Schema,
        nesting: usize,
    ) -> Option<IntegerRanges> {
        let found = if let Some(list) = term.downcast_ref::<InListExpr>() {
            IntegerRanges::of_list(list, schema)?
        } else {
            let both = term.downcast_ref::<BinaryExpr>()?;
            match both.op() {
                Operator::And | Operator::Or if nesting < NESTING_MAX => {
                    let left = IntegerRanges::nested(both.left(), schema, nesting + 1)?;
                    let right = IntegerRanges::nested(both.right(), schema, nesting + 1)?;
                    left.with(right, *both.op() == Operator::And)?
                }
                _ => IntegerRanges::of_comparison(both, schema)?,
            }
        };
        (found.ranges.len() <= RANGES_MAX).then_some(found)
    }

    fn of_list(list: &InListExpr, schema: &Schema) -> Option<IntegerRanges> {
        if list.negated() || list.len() > RANGES_MAX {
            return None;
        }
        let column = list.expr().downcast_ref::<Column>()?.index();
        let point = |literal| {
            let integer = constant(literal, column, schema)?;
            Some(integer..=integer)
        };
        let ranges: Option<Vec<Range>> = list.list().iter().map(point).collect();
        Some(IntegerRanges {
            column,
            ranges: ranges?,
        })
    }

    fn of_comparison(both: &BinaryExpr, schema: &Schema) -> Option<IntegerRanges> {
        let sides = (both.left(), both.right());
        let (column, literal, operator) = match sides.0.downcast_ref::<Column>() {
            Some(column) => (column, sides.1, *both.op()),
            None => (
                sides.1.downcast_ref::<Column>()?,
                sides.0,
                both.op().swap()?,
            ),
        };
        let column = column.index();
        let integer = constant(literal, column, schema)?;
        let below = || Some(i128::MIN..=integer.checked_sub(1)?);
        let above = || Some(integer.checked_add(1)?..=i128::MAX);
        let ranges = match operator {
            Operator::Eq => vec![integer..=integer],
            Operator::NotEq => vec![below()?, above()?],
            Operator::Lt => vec![below()?],
            Operator::LtEq => vec![i128::MIN..=integer],
            Operator::Gt => vec![above()?],
            Operator::GtEq => vec![integer..=i128::MAX],
            _ => return None,
        };
        Some(IntegerRanges { column, ranges })
    }

    /// What both ask for, or either.
    fn with(self, other: IntegerRanges, is_both: bool) -> Option<IntegerRanges> {
        let IntegerRanges { column, mut ranges } = self;
        if column != other.column {
            return None;
        }
        if is_both {
            let pairs = ranges.iter().flat_map(|left| {
                let others = other.ranges.iter();
                others.map(|right| *left.start().max(right.start())..=*left.end().min(right.end()))
            });
            ranges = pairs.filter(|range| !range.is_empty()).collect();
        } else {
            ranges.extend(other.ranges);
        }
        Some(IntegerRanges { column, ranges })
    }
}

/// The integer of a literal that has the type of a column.
fn constant(literal: &Arc<dyn PhysicalExpr>, column: usize, schema: &Schema) -> Option<i128> {
    let literal = literal.downcast_ref::<Literal>()?.value();
    let field = schema.fields().get(column)?;
    match *field.data_type() == literal.data_type() {
        true => integer(literal),
        false => None,
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
    use datafusion::physical_expr::expressions::{binary, col, in_list, lit};

    use super::*;

    fn schema() -> Schema {
        Schema::new(vec![
            Field::new("t", DataType::Utf8, true),
            Field::new("d", DataType::Decimal128(15, 2), true),
            Field::new("e", DataType::Decimal128(15, 2), true),
        ])
    }

    fn price(digits: impl Into<Option<i128>>) -> ScalarValue {
        ScalarValue::Decimal128(digits.into(), 15, 2)
    }

    fn compared(name: &str, operator: Operator, value: ScalarValue) -> Arc<dyn PhysicalExpr> {
        let column = col(name, &schema()).unwrap();
        binary(column, operator, lit(value), &schema()).unwrap()
    }

    fn both(
        left: Arc<dyn PhysicalExpr>,
        operator: Operator,
        right: Arc<dyn PhysicalExpr>,
    ) -> Arc<dyn PhysicalExpr> {
        binary(left, operator, right, &schema()).unwrap()
    }

    fn ranges(term: &Arc<dyn PhysicalExpr>) -> Option<Vec<Range>> {
        let found = IntegerRanges::of(term, &schema())?;
        assert_eq!(found.column, 1);
        Some(found.ranges)
    }

    const LEAST: i128 = i128::MIN;
    const GREATEST: i128 = i128::MAX;

    #[test]
    fn comparisons_with_a_constant_of_the_same_type_are_ranges() {
        let cases = [
            (Operator::Eq, vec![500..=500]),
            (Operator::NotEq, vec![LEAST..=499, 501..=GREATEST]),
            (Operator::Lt, vec![LEAST..=499]),
            (Operator::LtEq, vec![LEAST..=500]),
            (Operator::Gt, vec![501..=GREATEST]),
            (Operator::GtEq, vec![500..=GREATEST]),
        ];
        for (operator, found) in cases {
            assert_eq!(
                ranges(&compared("d", operator, price(500))),
                Some(found.clone())
            );
            let column = col("d", &schema()).unwrap();
            let swapped = operator.swap().unwrap();
            let term = both(lit(price(500)), swapped, column);
            assert_eq!(ranges(&term), Some(found));
        }
        assert_eq!(ranges(&compared("d", Operator::Eq, price(None))), None);
        let other = ScalarValue::Decimal128(Some(500), 15, 3);
        assert_eq!(ranges(&compared("d", Operator::Eq, other)), None);
    }

    #[test]
    fn lists_and_several_comparisons_of_a_column_are_several_ranges() {
        let list = |values: Vec<ScalarValue>, negated| {
            let literals = values.into_iter().map(lit).collect();
            in_list(col("d", &schema()).unwrap(), literals, &negated, &schema()).unwrap()
        };
        let two = list(vec![price(5), price(7)], false);
        assert_eq!(ranges(&two), Some(vec![5..=5, 7..=7]));
        assert_eq!(ranges(&list(vec![price(5), price(None)], false)), None);
        assert_eq!(ranges(&list(vec![price(5), price(7)], true)), None);
        let many = list((0..9).map(price).collect(), false);
        assert_eq!(ranges(&many), None);
        let at_least = |digits| compared("d", Operator::GtEq, price(digits));
        let at_most = |digits| compared("d", Operator::LtEq, price(digits));
        let between = both(at_least(1), Operator::And, at_most(11));
        assert_eq!(ranges(&between), Some(vec![1..=11]));
        let never = both(at_least(12), Operator::And, at_most(11));
        assert_eq!(ranges(&never), Some(vec![]));
        let either = both(between, Operator::Or, two);
        assert_eq!(ranges(&either), Some(vec![1..=11, 5..=5, 7..=7]));
        let of_two_columns = both(
            at_least(1),
            Operator::And,
            compared("e", Operator::Eq, price(1)),
        );
        assert_eq!(ranges(&of_two_columns), None);
    }
}
