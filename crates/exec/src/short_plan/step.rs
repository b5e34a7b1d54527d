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
use super::size::Size;
use super::stock::Stock;
use super::subquery::{NarrowedTable, WithValues};
use super::totals::Totals;
use crate::batches::{batch_of, projected};
use crate::by_key::{KeyScan, LookUp};
use crate::filter::{Condition, Terms, chosen};
use crate::provider::RowsNow;
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
    /// The rows that a key has found already.
    Found(Arc<KeyScan>),
    Totals {
        totals: Totals,
        input: Box<Step>,
    },
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
        match self {
            Step::Table(_) | Step::NarrowedTable(_) => {
                let read = self.table_rows(run.most).transpose()?.flatten();
                read.map(|read| run.read(read)).transpose()
            }
            Step::Found(scan) => found(scan, run),
            Step::Given => {
                let rows = run.given.take();
                let rows = rows.ok_or_else(|| internal_datafusion_err!("no rows were given"))?;
                run.was_given(&rows);
                Ok(Some(rows))
            }
            Step::Filter {
                condition,
                projection,
                input,
            } => input.filtered(condition.terms(), projection.as_deref(), run),
            Step::Project {
                exprs,
                schema,
                input,
            } => {
                let rows = input.rows(run)?;
                rows.map(|rows| projected(exprs, schema, &rows)).transpose()
            }
            Step::Sort {
                by,
                fetch,
                why,
                input,
            } => sorted(input, by, *fetch, *why, run),
            Step::Limit { skip, fetch, input } => {
                let rows = input.rows(run)?;
                Ok(rows.map(|rows| limited(&rows, *skip, *fetch)))
            }
            Step::Append { inputs, schema } => appended(inputs, schema, run),
            Step::Join(join) => join.rows(run),
            Step::FirstRows(first) => first.rows(run),
            Step::WithValues(values) => values.rows(run),
            Step::Totals { totals, input } => {
                let rows = input.rows(run)?;
                rows.map(|rows| totals.row(&rows)).transpose()
            }
            Step::Stock { stock, inputs } => {
                let table = stock.why().map(|why| run.begin_temp_table(why));
                let Some(inputs) = all(inputs, run)? else {
                    return Ok(None);
                };
                let rows = stock.rows(inputs, run)?;
                if let (Some(table), Some(rows)) = (table, &rows) {
                    run.end_temp_table(table, rows);
                }
                Ok(rows)
            }
        }
    }

    /// The rows of a table, which are not read yet, or that they are too many; `None` for any other
    /// step.
    fn table_rows(&self, most: Size) -> Option<Result<Option<RowsNow>>> {
        match self {
            Step::Table(table) => Some(table.rows_now(most)),
            Step::NarrowedTable(table) => Some(table.rows_now(most)),
            _ => None,
        }
    }

    /// Its rows for which a condition is true; those of a table are read page by page.
    fn filtered(
        &self,
        terms: &Terms,
        columns: Option<&[usize]>,
        run: &mut Run,
    ) -> Result<Option<RecordBatch>> {
        let Some(read) = self.table_rows(run.most_filtered()) else {
            let rows = self.rows(run)?;
            return rows.map(|rows| passing(rows, terms, columns)).transpose();
        };
        let Some(mut read) = read? else {
            return Ok(None);
        };
        run.filters(&read);
        let mut parts: Vec<RecordBatch> = Vec::new();
        let mut count = 0;
        while let Some(page) = read.next()? {
            if let Some(rows) = terms.filtered(page, columns)? {
                count += rows.num_rows() as u64;
                parts.push(rows);
            }
            if count > run.most.rows {
                return Ok(None);
            }
        }
        Ok(Some(match parts.as_slice() {
            [rows] => rows.clone(),
            [first, ..] => concat_batches(&first.schema(), &parts)?,
            [] => chosen(RecordBatch::new_empty(read.schema()), columns)?,
        }))
    }
}

/// The rows for which a condition is true.
fn passing(rows: RecordBatch, terms: &Terms, columns: Option<&[usize]>) -> Result<RecordBatch> {
    let schema = rows.schema();
    match terms.filtered(rows, columns)? {
        Some(rows) => Ok(rows),
        None => chosen(RecordBatch::new_empty(schema), columns),
    }
}

/// The rows that a key has found when the plan was made.
fn found(scan: &KeyScan, run: &mut Run) -> Result<Option<RecordBatch>> {
    if scan.row_count() as u64 > run.most.rows {
        return Ok(None);
    }
    let (rows, reads) = scan.rows()?;
    run.has_looked_up(reads);
    Ok(Some(rows))
}

fn sorted(
    input: &Step,
    by: &LexOrdering,
    fetch: Option<usize>,
    why: Option<Why>,
    run: &mut Run,
) -> Result<Option<RecordBatch>> {
    let table = why.map(|why| run.begin_temp_table(why));
    let Some(rows) = input.rows(run)? else {
        return Ok(None);
    };
    if let Some(table) = table {
        run.end_temp_table(table, &rows);
    }
    Ok(Some(match rows.num_rows() {
        0 | 1 => limited(&rows, 0, fetch),
        _ => sort_batch(&rows, by, fetch)?,
    }))
}

/// The rows of several inputs, one behind the other.
fn appended(inputs: &[Step], schema: &SchemaRef, run: &mut Run) -> Result<Option<RecordBatch>> {
    let Some(parts) = all(inputs, run)? else {
        return Ok(None);
    };
    // Their columns are the same but for names and whether they may be NULL.
    let parts = parts.into_iter().map(|rows| {
        let count = rows.num_rows();
        batch_of(schema, rows.columns().to_vec(), count)
    });
    let parts = parts.collect::<Result<Vec<_>>>()?;
    Ok(Some(concat_batches(schema, &parts)?))
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
