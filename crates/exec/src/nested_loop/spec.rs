//! What a join is to compute, read out of the stock node.

use std::sync::{Arc, OnceLock};

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;
use datafusion::common::{JoinSide, JoinType, Result, internal_err};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};

use super::bounds::Bounds;
use crate::batches::batch_of;
use crate::filter::true_rows;
use crate::join::{Emit, Roles, columns_of_side, result_columns};

/// A join.
pub(super) struct Spec {
    pub(super) kind: JoinType,
    pub(super) roles: Roles,
    /// What keeps pairs; `None` for all of them.
    pub(super) condition: Option<JoinFilter>,
    /// What of it is asked of the order of left rows; known when the first rows come.
    bounds: OnceLock<Option<Bounds>>,
    pub(super) schema: SchemaRef,
    columns: Vec<ColumnIndex>,
    /// The columns of the left side that are read while it is compared, and those that are read
    /// when its rows are returned for themselves. Columns above are places among these.
    pub(super) left_compared: Vec<usize>,
    pub(super) left_alone: Vec<usize>,
    /// The columns of both sides that pairs are made of.
    paired: [Vec<usize>; 2],
    /// Of the left side, with the columns of rows for themselves.
    left: SchemaRef,
    right: SchemaRef,
}

impl Spec {
    pub(super) fn of(stock: &NestedLoopJoinExec) -> Result<Spec> {
        let (left, right) = (stock.left().schema(), stock.right().schema());
        let kind = *stock.join_type();
        let roles = Roles::new(kind, JoinSide::Left);
        let columns = result_columns([&left, &right], kind, stock.projection().as_deref());
        let of_condition = { stock.filter() }.map_or(&[][..], JoinFilter::column_indices);
        let of_pairs = |side| match roles.has_pairs {
            true => columns_of_side(side, columns.iter().chain(of_condition)),
            false => columns_of_side(side, of_condition),
        };
        let left_compared = of_pairs(JoinSide::Left);
        let left_alone = match roles.has_pairs {
            true => left_compared.clone(),
            false => columns_of_side(JoinSide::Left, &columns),
        };
        let condition = stock.filter().map(|condition| {
            let columns = among(&left_compared, condition.column_indices());
            let expression = Arc::clone(condition.expression());
            JoinFilter::new(expression, columns, Arc::clone(condition.schema()))
        });
        Ok(Spec {
            kind,
            roles,
            condition,
            bounds: OnceLock::new(),
            schema: stock.schema(),
            columns: among(&left_alone, &columns),
            paired: [
                (0..left_compared.len()).collect(),
                of_pairs(JoinSide::Right),
            ],
            left: Arc::new(left.project(&left_alone)?),
            left_compared,
            left_alone,
            right,
        })
    }

    /// What is made of the rows of a side alone.
    pub(super) fn emit(&self, side: JoinSide) -> Emit {
        match side == self.roles.table {
            true => self.roles.of_table,
            false => self.roles.of_stream,
        }
    }

    /// Whether a row of a side is done with as soon as it has a partner.
    pub(super) fn is_done_when_found(&self, side: JoinSide) -> bool {
        !self.roles.has_pairs && self.emit(side) != Emit::Nothing
    }

    /// What the order of left rows tells of the condition, where that is worth a sort.
    pub(super) fn bounds(&self) -> Result<Option<&Bounds>> {
        if let Some(bounds) = self.bounds.get() {
            return Ok(bounds.as_ref());
        }
        let bounds = match &self.condition {
            Some(condition) => Bounds::of(condition)?,
            None => None,
        };
        // A left row that needs a single partner finds it sooner by itself, unless every candidate
        // is one.
        let needs_one = self.is_done_when_found(JoinSide::Left);
        let bounds = bounds.filter(|bounds| !needs_one || bounds.rest.is_none());
        Ok(self.bounds.get_or_init(|| bounds).as_ref())
    }

    /// The columns of a side that pairs are made of, for the condition or as results.
    pub(super) fn paired(&self, side: JoinSide) -> &[usize] {
        let [left, right] = &self.paired;
        match side {
            JoinSide::Left => left,
            _ => right,
        }
    }

    /// Which of so many pairs a condition keeps, where `column` makes the columns of a side.
    pub(super) fn kept(
        condition: &JoinFilter,
        pairs: usize,
        column: impl FnMut(&ColumnIndex) -> Result<ArrayRef>,
    ) -> Result<BooleanBuffer> {
        let columns = condition.column_indices().iter().map(column);
        let batch = batch_of(condition.schema(), columns.collect::<Result<_>>()?, pairs)?;
        true_rows(condition.expression(), &batch)
    }

    /// The results of so many pairs.
    pub(super) fn pairs(
        &self,
        pairs: usize,
        column: impl FnMut(&ColumnIndex) -> Result<ArrayRef>,
    ) -> Result<RecordBatch> {
        let columns = self.columns.iter().map(column);
        batch_of(&self.schema, columns.collect::<Result<_>>()?, pairs)
    }

    /// The results of the rows of a side alone, of those that have a partner and those that have
    /// none as the kind of join wants them.
    pub(super) fn alone(
        &self,
        side: JoinSide,
        rows: &RecordBatch,
        partners: BooleanBuffer,
    ) -> Result<Option<RecordBatch>> {
        let emit = self.emit(side);
        let wanted = match emit {
            Emit::Nothing => return Ok(None),
            Emit::Matched => Some(partners.clone()),
            Emit::Unmatched | Emit::Padded => Some(!&partners),
            Emit::Marked => None,
        };
        let rows = match wanted {
            Some(wanted) => {
                let wanted = BooleanArray::from(wanted);
                arrow::compute::filter_record_batch(rows, &wanted)?
            }
            None => rows.clone(),
        };
        let count = rows.num_rows();
        let marks: ArrayRef = Arc::new(BooleanArray::from(partners));
        let results = self.pairs(count, |column| match column.side {
            JoinSide::None if emit == Emit::Marked => Ok(Arc::clone(&marks)),
            JoinSide::None => internal_err!("only a join that marks rows has marks"),
            found if found == side => Ok(Arc::clone(rows.column(column.index))),
            JoinSide::Left => Ok(nulls(&self.left, column.index, count)),
            JoinSide::Right => Ok(nulls(&self.right, column.index, count)),
        });
        results.map(Some)
    }
}

/// Columns with those of the left side as places among `read`.
fn among(read: &[usize], columns: &[ColumnIndex]) -> Vec<ColumnIndex> {
    let columns = columns.iter().map(|column| match column.side {
        JoinSide::Left => {
            let place = read.binary_search(&column.index);
            ColumnIndex {
                index: place.expect("every column that is used is read"),
                side: JoinSide::Left,
            }
        }
        _ => column.clone(),
    });
    columns.collect()
}

fn nulls(schema: &SchemaRef, column: usize, count: usize) -> ArrayRef {
    new_null_array(schema.field(column).data_type(), count)
}
