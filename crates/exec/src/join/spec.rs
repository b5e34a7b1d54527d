//! What a join is to compute, read out of the stock node.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use datafusion::common::{JoinSide, JoinType, NullEquality, Result, internal_err};
use datafusion::physical_expr::{LexOrdering, PhysicalExprRef};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::joins::utils::ColumnIndex;
use mayfly_table::rows::{JoinTables, RowRef};

use super::columns::{SideColumns, columns_of_side, key_columns, result_columns};
use super::dynamic_filter;
use super::stock::without_inputs;
use crate::batches::batch_of;
use crate::error::rows_error;
use crate::filter::true_rows;

/// Where a column of a result comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A needed column of the left side.
    Left(usize),
    /// A needed column of the right side.
    Right(usize),
    /// Whether the row has a partner.
    Mark,
}

/// A condition beside the equality of keys, over columns of both sides.
#[derive(Clone, Debug)]
pub(super) struct Residual {
    pub(super) condition: PhysicalExprRef,
    schema: SchemaRef,
    sources: Vec<Source>,
}

/// A join.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) kind: JoinType,
    pub(super) null_equality: NullEquality,
    /// Whether it is `NOT IN`: a NULL on the right side leaves no row, and a row whose key is NULL
    /// is only returned where the right side is empty.
    pub(super) is_null_aware: bool,
    pub(super) left: SideColumns,
    pub(super) right: SideColumns,
    pub(super) residual: Option<Residual>,
    pub(super) schema: SchemaRef,
    sources: Vec<Source>,
    /// The order in which the nodes above expect the rows of each partition.
    pub(super) ordering: Option<LexOrdering>,
    /// What a scan on the right side may leave out, to be filled in when the left side is known.
    pub(super) dynamic_filter: Option<PhysicalExprRef>,
    /// The most rows that are wanted of each partition.
    pub(super) fetch: Option<usize>,
    /// The stock join without its inputs, for left sides that turn out to be small.
    pub(super) stock: Arc<HashJoinExec>,
}

/// The rows of one result: pairs, or rows of one side alone.
pub(super) struct ResultRows<'a> {
    pub(super) count: usize,
    /// The side that is in the table, and rows of it.
    pub(super) table: (JoinSide, Option<(&'a JoinTables, &'a [RowRef])>),
    /// Needed columns of the side that streams, and rows of them.
    pub(super) stream: Option<(&'a [ArrayRef], &'a [u32])>,
    pub(super) marks: Option<BooleanArray>,
}

impl Spec {
    /// What a stock join computes; `None` where rows cannot hold what it needs.
    pub(super) fn try_from_stock(stock: &HashJoinExec) -> Result<Option<Spec>> {
        let (left, right) = (stock.left().schema(), stock.right().schema());
        let kind = *stock.join_type();
        let output = result_columns([&left, &right], kind, stock.projection.as_deref());
        let compared = { stock.filter() }.map_or(&[][..], |filter| filter.column_indices());
        let needed = |side| columns_of_side(side, output.iter().chain(compared));
        let Some([left_keys, right_keys]) = key_columns(stock.on(), &left, &right)? else {
            return Ok(None);
        };
        let (on_left, on_right) = { stock.on().iter().cloned() }.unzip();
        let nulls = stock.null_equality() == NullEquality::NullEqualsNull;
        let sides = (
            SideColumns::try_new(&left, on_left, &left_keys, needed(JoinSide::Left), nulls),
            SideColumns::try_new(
                &right,
                on_right,
                &right_keys,
                needed(JoinSide::Right),
                nulls,
            ),
        );
        let (Some(left), Some(right)) = sides else {
            return Ok(None);
        };
        let source = |column: &ColumnIndex| match column.side {
            JoinSide::Left => Source::Left(left.position(column.index)),
            JoinSide::Right => Source::Right(right.position(column.index)),
            JoinSide::None => Source::Mark,
        };
        let residual = stock.filter().map(|filter| Residual {
            condition: Arc::clone(filter.expression()),
            schema: Arc::clone(filter.schema()),
            sources: filter.column_indices().iter().map(source).collect(),
        });
        Ok(Some(Spec {
            kind,
            null_equality: stock.null_equality(),
            is_null_aware: stock.null_aware,
            residual,
            schema: stock.schema(),
            sources: output.iter().map(source).collect(),
            ordering: stock.properties().output_ordering().cloned(),
            dynamic_filter: dynamic_filter::awaited(stock)?,
            fetch: stock.fetch(),
            stock: Arc::new(without_inputs(stock)?),
            left,
            right,
        }))
    }

    /// Whether keys that are NULL in part find each other.
    pub(super) fn null_keys_match(&self) -> bool {
        self.null_equality == NullEquality::NullEqualsNull
    }

    /// The columns of a side.
    pub(super) fn side(&self, side: JoinSide) -> &SideColumns {
        match side {
            JoinSide::Left => &self.left,
            _ => &self.right,
        }
    }

    /// The batch of some result rows.
    pub(super) fn result(&self, rows: ResultRows<'_>) -> Result<RecordBatch> {
        let columns = self.columns(&self.sources, &rows)?;
        batch_of(&self.schema, columns, rows.count)
    }

    /// Which pairs the condition beside the keys keeps.
    pub(super) fn kept_pairs(
        &self,
        residual: &Residual,
        rows: ResultRows<'_>,
    ) -> Result<BooleanBuffer> {
        let columns = self.columns(&residual.sources, &rows)?;
        let batch = batch_of(&residual.schema, columns, rows.count)?;
        true_rows(&residual.condition, &batch)
    }

    fn columns(&self, sources: &[Source], rows: &ResultRows<'_>) -> Result<Vec<ArrayRef>> {
        let (table_side, table) = rows.table;
        let place = |source: &Source| match source {
            Source::Left(position) => Some((JoinSide::Left, *position)),
            Source::Right(position) => Some((JoinSide::Right, *position)),
            Source::Mark => None,
        };
        let places = sources.iter().filter_map(place);
        let of_table = places.filter(|(side, _)| *side == table_side);
        let positions: Vec<usize> = of_table.map(|(_, position)| position).collect();
        let mut decoded = match table {
            Some((tables, found)) => {
                let side = self.side(table_side);
                let decode = |stored: &[_]| tables.decode(found, stored).map_err(rows_error);
                side.restore(&positions, rows.count, decode)?
            }
            None => Vec::new(),
        }
        .into_iter();
        let indices = match rows.stream {
            Some((_, picked)) if !is_run(picked) => Some(UInt32Array::from(picked.to_vec())),
            _ => None,
        };
        let column = |source: &Source| -> Result<ArrayRef> {
            let Some((side, position)) = place(source) else {
                return match &rows.marks {
                    Some(marks) => Ok(Arc::new(marks.clone())),
                    None => internal_err!("a join that marks rows has marks"),
                };
            };
            if side == table_side && table.is_some() {
                return Ok(decoded.next().expect("as many as there are positions"));
            }
            match rows.stream {
                Some((columns, picked)) if side != table_side => {
                    let column = &columns[position];
                    match &indices {
                        Some(indices) => Ok(take(column, indices, None)?),
                        None => {
                            let first = picked.first().map_or(0, |row| *row as usize);
                            Ok(column.slice(first, picked.len()))
                        }
                    }
                }
                _ => Ok(new_null_array(
                    self.side(side).type_of(position),
                    rows.count,
                )),
            }
        };
        sources.iter().map(column).collect()
    }
}

/// Whether rows follow one another without a gap.
fn is_run(rows: &[u32]) -> bool {
    rows.array_windows().all(|[row, next]| row + 1 == *next)
}
