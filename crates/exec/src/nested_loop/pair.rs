//! A batch of each side: all rows of one are compared with all of the other.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{FilterBuilder, take};
use arrow::datatypes::DataType;
use datafusion::common::{JoinSide, Result, ScalarValue, internal_err};
use datafusion::physical_plan::joins::utils::ColumnIndex;
use mayfly_table::owned::own_bytes;

use super::partners::Partners;
use super::spec::Spec;
use crate::join::Emit;

/// Beside so many rows a condition is evaluated at full speed.
const ROWS_ENOUGH: usize = 1024;
/// The fewest rows that one is compared with that needs a single partner.
const ROWS_FEWEST: usize = 64;

/// Rows of a side, and which of them have found a partner.
pub(super) struct Rows {
    pub(super) batch: RecordBatch,
    pub(super) partners: Partners,
}

impl Rows {
    pub(super) fn new(batch: RecordBatch) -> Rows {
        let partners = Partners::none(batch.num_rows());
        Rows { batch, partners }
    }

    fn count(&self) -> usize {
        self.batch.num_rows()
    }
}

/// What is compared at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Rows beside a single one.
    pub(super) rows: usize,
    /// Bytes of the single one beside each of them: who computes with long texts copies them.
    pub(super) bytes: usize,
}

/// How far a comparison is.
pub(super) struct Progress {
    limits: Limits,
    /// The side whose rows are taken one by one.
    single: JoinSide,
    /// The row that is next, and the first one of the other side that it is compared with.
    row: usize,
    from: usize,
    /// How many rows a row that needs a single partner is compared with at first: more where it is
    /// hard to find.
    first_rows: usize,
}

impl Progress {
    /// Begins to compare so many rows of the left side with so many of the right one.
    pub(super) fn begin(spec: &Spec, limits: Limits, left: usize, right: usize) -> Progress {
        let is_fast = |single: usize, others: usize| others >= ROWS_ENOUGH.min(single);
        let single = if spec.is_done_when_found(JoinSide::Left) && is_fast(left, right) {
            JoinSide::Left
        } else if spec.is_done_when_found(JoinSide::Right) && is_fast(right, left) {
            JoinSide::Right
        } else if left <= right {
            JoinSide::Left
        } else {
            JoinSide::Right
        };
        Progress {
            limits,
            single,
            row: 0,
            from: 0,
            first_rows: ROWS_ENOUGH,
        }
    }

    /// Compares one row with those of the other side; `None` when all are compared. Of the results
    /// there are some or none.
    pub(super) fn step(
        &mut self,
        spec: &Spec,
        left: &mut Rows,
        right: &mut Rows,
    ) -> Result<Option<Option<RecordBatch>>> {
        let (single, others) = match self.single {
            JoinSide::Left => (left, right),
            _ => (right, left),
        };
        let needs_one = spec.is_done_when_found(self.single);
        while needs_one && self.row < single.count() && single.partners.has(self.row) {
            (self.row, self.from) = (self.row + 1, 0);
        }
        if self.row >= single.count() {
            return Ok(None);
        }
        let beside = self.beside(spec, &single.batch, others.count(), needs_one);
        let results = self.compare(spec, single, others, beside.clone())?;
        let is_found = needs_one && single.partners.has(self.row);
        if needs_one && self.from == 0 {
            self.first_rows = match is_found {
                true => (self.first_rows / 2).max(ROWS_FEWEST),
                false => self.first_rows.saturating_mul(2).min(others.count()),
            };
        }
        match beside.end < others.count() && !is_found {
            true => self.from = beside.end,
            false => (self.row, self.from) = (self.row + 1, 0),
        }
        Ok(Some(results))
    }

    /// The rows of the other side that the next row is compared with: all that are left, unless
    /// these are too many, the row is too long to be copied for each of them, or some of them are
    /// likely to be enough.
    fn beside(
        &self,
        spec: &Spec,
        single: &RecordBatch,
        others: usize,
        needs_one: bool,
    ) -> Range<usize> {
        let used = spec.used(self.single).iter();
        let bytes = used.map(|column| long_bytes(single.column(*column), self.row));
        let mut rows = match bytes.sum::<usize>() {
            0 => self.limits.rows,
            bytes => self.limits.rows.min(self.limits.bytes / bytes),
        };
        if needs_one && self.from == 0 {
            rows = rows.min(self.first_rows);
        }
        self.from..others.min(self.from + rows.max(1))
    }

    fn compare(
        &self,
        spec: &Spec,
        single: &mut Rows,
        others: &mut Rows,
        beside: Range<usize>,
    ) -> Result<Option<RecordBatch>> {
        let rows = beside.len();
        let batch = others.batch.slice(beside.start, rows);
        let other_side = self.single.negate();
        // The column of so many pairs, where the other side's is made by a function.
        let column = |of: &ColumnIndex, count, other: &dyn Fn(&ArrayRef) -> Result<ArrayRef>| {
            match of.side {
                JoinSide::None => internal_err!("pairs have no marks"),
                side if side == other_side => other(batch.column(of.index)),
                _ => repeated(single.batch.column(of.index), self.row, count),
            }
        };
        let whole = |other: &ArrayRef| Ok(Arc::clone(other));
        let kept = match &spec.condition {
            Some(condition) => Spec::kept(condition, rows, |of| column(of, rows, &whole))?,
            None => BooleanBuffer::new_set(rows),
        };
        let count = kept.count_set_bits();
        if count == 0 {
            return Ok(None);
        }
        let results = match spec.roles.has_pairs {
            true if count == rows => Some(spec.pairs(count, |of| column(of, count, &whole))?),
            true => {
                let kept = FilterBuilder::new(&BooleanArray::from(kept.clone()));
                let kept = kept.optimize().build();
                let some = |other: &ArrayRef| Ok(kept.filter(other)?);
                Some(spec.pairs(count, |of| column(of, count, &some))?)
            }
            false => None,
        };
        if spec.emit(self.single) != Emit::Nothing {
            single.partners.add(self.row);
        }
        if spec.emit(other_side) != Emit::Nothing {
            others.partners.add_all(beside.start, &kept);
        }
        Ok(results)
    }
}

/// The bytes of a value that may be long; none of one of a fixed width, or of a dictionary, which
/// is not copied with its keys.
fn long_bytes(column: &ArrayRef, row: usize) -> usize {
    let of = column.data_type();
    match of.is_primitive() || matches!(of, DataType::Boolean | DataType::Dictionary(..)) {
        true => 0,
        false => own_bytes(column.slice(row, 1).as_ref()),
    }
}

/// The value of a row, for so many rows.
fn repeated(column: &ArrayRef, row: usize, count: usize) -> Result<ArrayRef> {
    if column.data_type().is_primitive() {
        return ScalarValue::try_from_array(column, row)?.to_array_of_size(count);
    }
    let rows = UInt32Array::from_value(row as u32, count);
    Ok(take(column, &rows, None)?)
}
