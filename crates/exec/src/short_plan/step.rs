//! The steps of a short plan, as functions from batches to a batch.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion::common::{JoinSide, Result, internal_datafusion_err};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::sorts::sort::sort_batch;

use super::first_rows::FirstRows;
use super::run::Run;
use super::stock::Stock;
use super::subquery::{NarrowedTable, WithValues};
use crate::batches::{batch_of, projected};
use crate::by_key::LookUp;
use crate::filter::{Condition, chosen};
use crate::report::Why;
use crate::unbound::UnboundRows;

/// A step, above those that its rows come from.
pub(super) enum Step {
    Table(UnboundRows),
    Given,
    Filter {
        condition: Condition,
        projection: Option<Vec<usize>>,
        input: Box<Step>,
    },
    Project {
        exprs: Vec<Arc<dyn PhysicalExpr>>,
        schema: SchemaRef,
        input: Box<Step>,
    },
    Sort {
        by: LexOrdering,
        fetch: Option<usize>,
        /// Whether it is a temporary table, and not the end of one.
        why: Option<Why>,
        input: Box<Step>,
    },
    Limit {
        skip: usize,
        fetch: Option<usize>,
        input: Box<Step>,
    },
    /// The rows of several inputs, one behind the other.
    Append {
        inputs: Vec<Step>,
        schema: SchemaRef,
    },
    Join(Join),
    FirstRows(FirstRows),
    WithValues(WithValues),
    NarrowedTable(NarrowedTable),
    Stock {
        stock: Stock,
        inputs: Vec<Step>,
    },
}

/// A join that looks rows up while they are few.
pub(super) struct Join {
    pub(super) look_ups: Vec<LookUp>,
    /// Left and right.
    pub(super) inputs: [Box<Step>; 2],
    pub(super) stock: Stock,
}

impl Step {
    /// Whether its rows are those of a table that values of subqueries narrow.
    pub(super) fn is_narrowed(&self) -> bool {
        match self {
            Step::NarrowedTable(_) => true,
            Step::Filter { input, .. } | Step::Project { input, .. } => input.is_narrowed(),
            _ => false,
        }
    }

    /// The rows; `None` if they are too many.
    pub(super) fn rows(&self, run: &mut Run) -> Result<Option<RecordBatch>> {
        let rows = self.all_rows(run)?;
        Ok(rows.filter(|rows| rows.num_rows() as u64 <= run.most.rows))
    }

    fn all_rows(&self, run: &mut Run) -> Result<Option<RecordBatch>> {
        Ok(Some(match self {
            Step::Table(table) => {
                let Some(read) = table.rows_now(run.most)? else {
                    return Ok(None);
                };
                run.has_read(&read);
                read.rows
            }
            Step::Given => {
                let rows = run.given.take();
                let rows = rows.ok_or_else(|| internal_datafusion_err!("no rows were given"))?;
                run.was_given(&rows);
                rows
            }
            Step::Filter {
                condition,
                projection,
                input,
            } => {
                let Some(rows) = input.rows(run)? else {
                    return Ok(None);
                };
                let schema = rows.schema();
                match condition.terms().filtered(rows, projection.as_deref())? {
                    Some(rows) => rows,
                    None => chosen(RecordBatch::new_empty(schema), projection.as_deref())?,
                }
            }
            Step::Project {
                exprs,
                schema,
                input,
            } => {
                let Some(rows) = input.rows(run)? else {
                    return Ok(None);
                };
                projected(exprs, schema, &rows)?
            }
            Step::Sort {
                by,
                fetch,
                why,
                input,
            } => {
                let table = why.map(|why| run.begin_temp_table(why));
                let Some(rows) = input.rows(run)? else {
                    return Ok(None);
                };
                if let Some(table) = table {
                    run.end_temp_table(table, &rows);
                }
                match rows.num_rows() {
                    0 | 1 => limited(&rows, 0, *fetch),
                    _ => sort_batch(&rows, by, *fetch)?,
                }
            }
            Step::Limit { skip, fetch, input } => {
                let Some(rows) = input.rows(run)? else {
                    return Ok(None);
                };
                limited(&rows, *skip, *fetch)
            }
            Step::Append { inputs, schema } => {
                let Some(parts) = all(inputs, run)? else {
                    return Ok(None);
                };
                // Their columns are the same but for names and whether they may be NULL.
                let parts = parts.into_iter().map(|rows| {
                    let count = rows.num_rows();
                    batch_of(schema, rows.columns().to_vec(), count)
                });
                concat_batches(schema, &parts.collect::<Result<Vec<_>>>()?)?
            }
            Step::Join(join) => return join.rows(run),
            Step::FirstRows(first) => return first.rows(run),
            Step::WithValues(values) => return values.rows(run),
            Step::NarrowedTable(table) => return table.rows(run),
            Step::Stock { stock, inputs } => {
                let table = stock.why().map(|why| run.begin_temp_table(why));
                let Some(inputs) = all(inputs, run)? else {
                    return Ok(None);
                };
                let Some(rows) = stock.rows(inputs, run)? else {
                    return Ok(None);
                };
                if let Some(table) = table {
                    run.end_temp_table(table, &rows);
                }
                rows
            }
        }))
    }
}

impl Join {
    fn rows(&self, run: &mut Run) -> Result<Option<RecordBatch>> {
        let mut inputs: [Option<RecordBatch>; 2] = [None, None];
        for look_up in &self.look_ups {
            let place = usize::from(look_up.outer() != JoinSide::Left);
            let Some(outer) = self.input(&mut inputs, place, run)? else {
                return Ok(None);
            };
            if let Some((rows, reads)) = look_up.rows(&outer)? {
                run.has_looked_up(reads);
                return Ok(Some(rows));
            }
        }
        let left = self.input(&mut inputs, 0, run)?;
        let right = self.input(&mut inputs, 1, run)?;
        let (Some(left), Some(right)) = (left, right) else {
            return Ok(None);
        };
        self.stock.rows(vec![left, right], run)
    }

    /// The rows of a side, which are asked for once.
    fn input(
        &self,
        inputs: &mut [Option<RecordBatch>; 2],
        place: usize,
        run: &mut Run,
    ) -> Result<Option<RecordBatch>> {
        if inputs[place].is_none() {
            inputs[place] = self.inputs[place].rows(run)?;
        }
        Ok(inputs[place].clone())
    }
}

fn all(inputs: &[Step], run: &mut Run) -> Result<Option<Vec<RecordBatch>>> {
    let rows = inputs.iter().map(|input| input.rows(run).transpose());
    // The first that has too many rows ends the run.
    let mut all = Vec::with_capacity(inputs.len());
    for rows in rows {
        match rows {
            Some(rows) => all.push(rows?),
            None => return Ok(None),
        }
    }
    Ok(Some(all))
}

fn limited(rows: &RecordBatch, skip: usize, fetch: Option<usize>) -> RecordBatch {
    let skip = skip.min(rows.num_rows());
    let left = rows.num_rows() - skip;
    rows.slice(skip, fetch.unwrap_or(left).min(left))
}
