//! A batch of each side: all rows of one are compared with all of the other.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{FilterBuilder, take};
use arrow::datatypes::DataType;
use datafusion::common::{JoinSide, Result, ScalarValue, internal_err};
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use mayfly_table::owned::own_bytes;

use super::partners::Partners;
use super::spec::Spec;
use crate::join::Emit;

/// Beside so many rows a condition is evaluated at full speed.
const ROWS_ENOUGH: usize = 1024;
/// The fewest rows that one is compared with that needs a single partner.
const ROWS_FEWEST: usize = 64;
/// A row with more candidates is compared with them by itself: they are not copied, and the costs
/// of a step are shared by enough pairs.
const ROWS_FEW: usize = 256;

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
    /// The row that is next, and how many of its candidates it was compared with.
    row: usize,
    compared: usize,
    /// How many rows a row that needs a single partner is compared with at first: more where it is
    /// hard to find.
    first_rows: usize,
    /// The rows of the left side that each row of the right one may be a pair with; all of them
    /// where nothing is known.
    candidates: Option<Vec<Range<usize>>>,
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
        Progress::over(limits, single, None)
    }

    /// Begins to compare each row of the right side with its candidates, for which the bounds of
    /// the condition hold.
    pub(super) fn within(limits: Limits, candidates: Vec<Range<usize>>) -> Progress {
        Progress::over(limits, JoinSide::Right, Some(candidates))
    }

    fn over(limits: Limits, single: JoinSide, candidates: Option<Vec<Range<usize>>>) -> Progress {
        Progress {
            limits,
            single,
            row: 0,
            compared: 0,
            first_rows: ROWS_ENOUGH,
            candidates,
        }
    }

    /// Compares one row with those of the other side, or some rows with their few candidates;
    /// `None` when all are compared. Of the results there are some or none.
    pub(super) fn step(
        &mut self,
        spec: &Spec,
        left: &mut Rows,
        right: &mut Rows,
    ) -> Result<Option<Option<RecordBatch>>> {
        if let Some(gathered) = self.gather(spec, &left.batch, right) {
            return self.compare_gathered(spec, left, right, gathered).map(Some);
        }
        let (single, others) = match self.single {
            JoinSide::Left => (left, right),
            _ => (right, left),
        };
        let needs_one = spec.is_done_when_found(self.single);
        let is_done = |row: usize| {
            (needs_one && single.partners.has(row)) || self.candidates(row, others).is_empty()
        };
        let rows = self.row..single.count();
        let Some(row) = { rows }.find(|row| !is_done(*row)) else {
            return Ok(None);
        };
        if row != self.row {
            (self.row, self.compared) = (row, 0);
        }
        let candidates = self.candidates(row, others);
        let beside = self.beside(spec, &single.batch, candidates.clone(), needs_one);
        let results = self.compare(spec, single, others, beside.clone())?;
        let is_found = needs_one && single.partners.has(row);
        if needs_one && self.compared == 0 {
            self.first_rows = match is_found {
                true => (self.first_rows / 2).max(ROWS_FEWEST),
                false => self.first_rows.saturating_mul(2).min(others.count()),
            };
        }
        match beside.end < candidates.end && !is_found {
            true => self.compared = beside.end - candidates.start,
            false => (self.row, self.compared) = (row + 1, 0),
        }
        Ok(Some(results))
    }

    /// The rows of the other side that a row is to be compared with.
    fn candidates(&self, row: usize, others: &Rows) -> Range<usize> {
        match &self.candidates {
            Some(candidates) => candidates[row].clone(),
            None => 0..others.count(),
        }
    }

    /// The rows of the other side that the next row is compared with: all candidates that are left,
    /// unless these are too many, the row is too long to be copied for each of them, or some of
    /// them are likely to be enough.
    fn beside(
        &self,
        spec: &Spec,
        single: &RecordBatch,
        candidates: Range<usize>,
        needs_one: bool,
    ) -> Range<usize> {
        let mut rows = match row_bytes(single, spec.paired(self.single), self.row) {
            0 => self.limits.rows,
            bytes => self.limits.rows.min(self.limits.bytes / bytes),
        };
        if needs_one && self.compared == 0 {
            rows = rows.min(self.first_rows);
        }
        let from = candidates.start + self.compared;
        from..candidates.end.min(from + rows.max(1))
    }

    /// What is to be true of the pairs that are compared.
    fn condition<'a>(&self, spec: &'a Spec) -> Result<Option<&'a JoinFilter>> {
        Ok(match (&self.candidates, spec.bounds()?) {
            (Some(_), Some(bounds)) => bounds.rest.as_ref(),
            _ => spec.condition.as_ref(),
        })
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
        let kept = match self.condition(spec)? {
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

    /// The next rows of the right side that have few candidates each, in all no more than are
    /// compared at a time; `None` where those are not several rows.
    fn gather(&self, spec: &Spec, left: &RecordBatch, right: &Rows) -> Option<PairsOfFew> {
        let candidates = self.candidates.as_ref().filter(|_| self.compared == 0)?;
        let needs_one = spec.is_done_when_found(JoinSide::Right);
        let (of_left, of_right) = (spec.paired(JoinSide::Left), spec.paired(JoinSide::Right));
        let mut gathered = PairsOfFew {
            end: self.row,
            left: Vec::new(),
            right: Vec::new(),
        };
        let (mut rows, mut bytes) = (0, 0);
        while let Some(beside) = candidates.get(gathered.end) {
            let row = gathered.end;
            let count = beside.len();
            if count > 0 && !(needs_one && right.partners.has(row)) {
                if count > ROWS_FEW || gathered.left.len() + count > self.limits.rows {
                    break;
                }
                bytes += long_bytes(left, of_left, beside.clone())
                    + row_bytes(&right.batch, of_right, row).saturating_mul(count);
                if bytes > self.limits.bytes {
                    break;
                }
                rows += 1;
                gathered.left.extend(beside.start as u32..beside.end as u32);
                gathered.right.resize(gathered.left.len(), row as u32);
            }
            gathered.end += 1;
        }
        (rows > 1).then_some(gathered)
    }

    /// Compares rows of the right side with their candidates.
    fn compare_gathered(
        &mut self,
        spec: &Spec,
        left: &mut Rows,
        right: &mut Rows,
        gathered: PairsOfFew,
    ) -> Result<Option<RecordBatch>> {
        self.row = gathered.end;
        let mut places = [gathered.left, gathered.right].map(UInt32Array::from);
        let column = |of: &ColumnIndex, [of_left, of_right]: &[UInt32Array; 2]| match of.side {
            JoinSide::None => internal_err!("pairs have no marks"),
            JoinSide::Left => Ok(take(left.batch.column(of.index), of_left, None)?),
            JoinSide::Right => Ok(take(right.batch.column(of.index), of_right, None)?),
        };
        if let Some(condition) = self.condition(spec)? {
            let pairs = places[0].len();
            let kept = Spec::kept(condition, pairs, |of| column(of, &places))?;
            let kept = FilterBuilder::new(&BooleanArray::from(kept)).build();
            for places in &mut places {
                *places = kept.filter(&*places)?.as_primitive().clone();
            }
        }
        let pairs = places[0].len();
        if pairs == 0 {
            return Ok(None);
        }
        let results = match spec.roles.has_pairs {
            true => Some(spec.pairs(pairs, |of| column(of, &places))?),
            false => None,
        };
        let sides = [(JoinSide::Left, left), (JoinSide::Right, right)];
        for ((side, rows), places) in sides.into_iter().zip(&places) {
            if spec.emit(side) != Emit::Nothing {
                let places = places.values().iter();
                places.for_each(|place| rows.partners.add(*place as usize));
            }
        }
        Ok(results)
    }
}

/// Rows of the right side with all their candidates, as pairs.
struct PairsOfFew {
    /// The row behind them.
    end: usize,
    left: Vec<u32>,
    right: Vec<u32>,
}

/// The bytes of a row that may be long.
fn row_bytes(rows: &RecordBatch, columns: &[usize], row: usize) -> usize {
    long_bytes(rows, columns, row..row + 1)
}

/// The bytes of values that may be long; none of those of a fixed width, or of a dictionary, which
/// is not copied with its keys.
fn long_bytes(rows: &RecordBatch, columns: &[usize], range: Range<usize>) -> usize {
    let bytes = columns.iter().map(|column| {
        let column = rows.column(*column);
        let of = column.data_type();
        match of.is_primitive() || matches!(of, DataType::Boolean | DataType::Dictionary(..)) {
            true => 0,
            false => own_bytes(column.slice(range.start, range.len()).as_ref()),
        }
    });
    bytes.sum()
}

/// The value of a row, for so many rows.
fn repeated(column: &ArrayRef, row: usize, count: usize) -> Result<ArrayRef> {
    if column.data_type().is_primitive() {
        return ScalarValue::try_from_array(column, row)?.to_array_of_size(count);
    }
    let rows = UInt32Array::from_value(row as u32, count);
    Ok(take(column, &rows, None)?)
}
