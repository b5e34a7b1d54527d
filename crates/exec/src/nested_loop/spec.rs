//! What a join is to compute, read out of the stock node.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;
use datafusion::common::cast::as_boolean_array;
use datafusion::common::{JoinSide, JoinType, Result, internal_err};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter, build_join_schema};

use crate::batches::batch_of;
use crate::join::{Emit, Roles};

/// A join.
pub(super) struct Spec {
    pub(super) kind: JoinType,
    pub(super) roles: Roles,
    /// What keeps pairs; `None` for all of them.
    pub(super) condition: Option<JoinFilter>,
    pub(super) schema: SchemaRef,
    columns: Vec<ColumnIndex>,
    /// The columns of both sides that the condition or a result has.
    used: [Vec<usize>; 2],
    left: SchemaRef,
    right: SchemaRef,
}

impl Spec {
    pub(super) fn of(stock: &NestedLoopJoinExec) -> Spec {
        let (left, right) = (stock.left().schema(), stock.right().schema());
        let kind = *stock.join_type();
        let (_, columns) = build_join_schema(&left, &right, &kind);
        let columns: Vec<ColumnIndex> = match stock.projection() {
            Some(chosen) => chosen.iter().map(|at| columns[*at].clone()).collect(),
            None => columns,
        };
        let of_condition = { stock.filter() }.map_or(&[][..], JoinFilter::column_indices);
        let used = [JoinSide::Left, JoinSide::Right].map(|side| {
            let all = columns.iter().chain(of_condition);
            let used = all.filter(|column| column.side == side);
            let mut used: Vec<usize> = used.map(|column| column.index).collect();
            used.sort_unstable();
            used.dedup();
            used
        });
        Spec {
            kind,
            used,
            roles: Roles::new(kind, JoinSide::Left),
            condition: stock.filter().cloned(),
            schema: stock.schema(),
            columns,
            left,
            right,
        }
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

    /// The columns of a side that the condition or a result has.
    pub(super) fn used(&self, side: JoinSide) -> &[usize] {
        let [left, right] = &self.used;
        match side {
            JoinSide::Left => left,
            _ => right,
        }
    }

    /// Which of so many pairs the condition keeps, where `column` makes the columns of a side.
    pub(super) fn kept(
        condition: &JoinFilter,
        pairs: usize,
        column: impl FnMut(&ColumnIndex) -> Result<ArrayRef>,
    ) -> Result<BooleanBuffer> {
        let columns = condition.column_indices().iter().map(column);
        let batch = batch_of(condition.schema(), columns.collect::<Result<_>>()?, pairs)?;
        let kept = condition.expression().evaluate(&batch)?.into_array(pairs)?;
        let (kept, nulls) = as_boolean_array(&kept)?.clone().into_parts();
        Ok(match nulls {
            Some(known) => &kept & known.inner(),
            None => kept,
        })
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

fn nulls(schema: &SchemaRef, column: usize, count: usize) -> ArrayRef {
    new_null_array(schema.field(column).data_type(), count)
}
