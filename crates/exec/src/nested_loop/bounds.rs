//! Comparisons by which a row of the right side has its candidates side by side among the sorted
//! rows of the left one.
//!
//! ```text
//!   a.n < b.n AND a.s <> b.s     key:    a.n
//!                                bounds: key < b.n
//!                                rest:   a.s <> b.s
//!
//!   left rows, sorted by a.n:  1 2 2 5 7 9
//!   a right row with b.n = 5:  ^^^^^        its candidates; the rest is asked for them only
//! ```
//!
//! **Owns** which comparisons are bounds, and the ranges. **Never** takes a comparison out of a
//! condition behind a term that may warn or fail, since that term is to be asked for all pairs that
//! come to it; nor one of numbers with a point, which are compared by other rules than sorted.

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, RecordBatch, UInt32Array,
    downcast_primitive,
};
use arrow::compute::take_record_batch;
use arrow::datatypes::DataType;
use datafusion::common::{JoinSide, Result, internal_err};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::joins::utils::JoinFilter;
use std::ops::Range;

use crate::filter::{all_of, silent_terms};
use crate::other_columns::with_columns;

/// Bounds of the values of the left side.
pub(super) struct Bounds {
    /// What rows of the left side are sorted by.
    key: PhysicalExprRef,
    /// `key operator value`, with values of the right side. All are to be true.
    bounds: Vec<(Operator, PhysicalExprRef)>,
    /// What else is to be true of a pair.
    pub(super) rest: Option<JoinFilter>,
}

/// Rows of the left side in the order of a key that is not NULL.
pub(super) struct SortedRows {
    pub(super) batch: RecordBatch,
    /// Where each of them came from.
    pub(super) places: UInt32Array,
    /// The candidates of each row of the right side.
    pub(super) candidates: Vec<Range<usize>>,
}

impl Bounds {
    /// Those of a condition, if it has any.
    pub(super) fn of(condition: &JoinFilter) -> Result<Option<Bounds>> {
        let (silent, others) = silent_terms(condition);
        let mut key: Option<PhysicalExprRef> = None;
        let (mut bounds, mut rest) = (Vec::new(), Vec::new());
        for term in silent {
            match bound(&term, condition)? {
                Some((left, operator, right)) if key.as_ref().is_none_or(|key| **key == *left) => {
                    key = Some(left);
                    bounds.push((operator, right));
                }
                _ => rest.push(term),
            }
        }
        rest.extend(others);
        Ok(match key {
            Some(key) => Some(Bounds {
                key,
                bounds,
                rest: all_of(rest, condition)?,
            }),
            None => None,
        })
    }

    /// Sorts rows of the left side, and finds the candidates of rows of the right one.
    pub(super) fn sort(&self, left: &RecordBatch, right: &RecordBatch) -> Result<SortedRows> {
        let values = |expr: &PhysicalExprRef, rows: &RecordBatch| {
            expr.evaluate(rows)?.into_array(rows.num_rows())
        };
        let key = values(&self.key, left)?;
        let bounds = self.bounds.iter();
        let bounds = bounds.map(|(operator, value)| Ok((*operator, values(value, right)?)));
        let bounds: Vec<(Operator, ArrayRef)> = bounds.collect::<Result<_>>()?;
        let rows = right.num_rows();
        macro_rules! of_type {
            ($type:ty) => {
                candidates::<$type>(&key, &bounds, rows)
            };
        }
        let found = downcast_primitive! {
            key.data_type() => (of_type),
            _ => None
        };
        let Some((places, candidates)) = found else {
            return internal_err!("bounds of {} are of its type", key.data_type());
        };
        Ok(SortedRows {
            batch: take_record_batch(left, &places)?,
            places,
            candidates,
        })
    }
}

/// The places of the keys that are not NULL in their order, and among them the range that bounds
/// leave to each of so many rows; `None` where the types differ.
fn candidates<T: ArrowPrimitiveType>(
    keys: &ArrayRef,
    bounds: &[(Operator, ArrayRef)],
    rows: usize,
) -> Option<(UInt32Array, Vec<Range<usize>>)> {
    let keys = keys.as_primitive_opt::<T>()?;
    let valid = (0..keys.len()).filter(|place| keys.is_valid(*place));
    let mut placed: Vec<(T::Native, u32)> = valid
        .map(|place| (keys.value(place), place as u32))
        .collect();
    placed.sort_unstable_by(|(key, place), (other, other_place)| {
        key.compare(*other).then(place.cmp(other_place))
    });
    let (keys, places): (Vec<T::Native>, Vec<u32>) = placed.into_iter().unzip();
    let mut ranges = vec![0..keys.len(); rows];
    for (operator, values) in bounds {
        let values = values.as_primitive_opt::<T>()?;
        for (row, range) in ranges.iter_mut().enumerate() {
            if values.is_null(row) {
                *range = 0..0;
                continue;
            }
            let value = values.value(row);
            let place = match operator {
                Operator::Lt | Operator::GtEq => keys.partition_point(|key| key.is_lt(value)),
                _ => keys.partition_point(|key| key.is_le(value)),
            };
            match operator {
                Operator::Lt | Operator::LtEq => range.end = range.end.min(place),
                _ => range.start = range.start.max(place),
            }
        }
    }
    for range in &mut ranges {
        // Bounds that exclude each other leave nothing.
        range.end = range.end.max(range.start);
    }
    Some((places.into(), ranges))
}

/// A term as `left operator right`, each over the columns of its own side; `None` where it is no
/// such comparison.
fn bound(
    term: &PhysicalExprRef,
    condition: &JoinFilter,
) -> Result<Option<(PhysicalExprRef, Operator, PhysicalExprRef)>> {
    let Some(both) = term.downcast_ref::<BinaryExpr>() else {
        return Ok(None);
    };
    let operator = match both.op() {
        Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => *both.op(),
        _ => return Ok(None),
    };
    let schema = condition.schema();
    let compared = both.left().data_type(schema)?;
    if compared != both.right().data_type(schema)? || !is_sorted_as_compared(&compared) {
        return Ok(None);
    }
    for (left, operator, right) in [
        (both.left(), Some(operator), both.right()),
        (both.right(), operator.swap(), both.left()),
    ] {
        let left = of_side(left, JoinSide::Left, condition)?;
        let right = of_side(right, JoinSide::Right, condition)?;
        if let (Some(left), Some(operator), Some(right)) = (left, operator, right) {
            return Ok(Some((left, operator, right)));
        }
    }
    Ok(None)
}

/// Whether the order of values of a type is that of its comparisons.
fn is_sorted_as_compared(of: &DataType) -> bool {
    use DataType::*;
    of.is_integer()
        || matches!(
            of,
            Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) | Duration(_) | Decimal128(..)
        )
}

/// An expression over the columns of one side, in their places there; `None` where it has columns
/// of the other side or none.
fn of_side(
    expr: &PhysicalExprRef,
    side: JoinSide,
    condition: &JoinFilter,
) -> Result<Option<PhysicalExprRef>> {
    let columns = condition.column_indices();
    let used = collect_columns(expr);
    let is_of_side = |column: &Column| columns[column.index()].side == side;
    if used.is_empty() || !used.iter().all(is_of_side) {
        return Ok(None);
    }
    let place = |column: &Column| Column::new(column.name(), columns[column.index()].index);
    with_columns(expr, place).map(Some)
}
