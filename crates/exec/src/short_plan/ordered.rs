//! The first rows in the order of a key, in the place of a sort with a limit; the rows that MIN and
//! MAX are found in; and some rows, where any of them will do.
//!
//! Owns the decision between the walk along a key and the steps that it stands for, made anew in
//! each run. Never: keeps an expression of its own: what is done to the rows of the table on their
//! way is read off these steps.

use arrow::array::RecordBatch;
use arrow::compute::{SortOptions, concat_batches};
use arrow::datatypes::SchemaRef;
use datafusion::common::{Result, internal_err};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::aggregates::AggregateExec;

use super::run::Run;
use super::step::{Step, filtered};
use crate::batches::projected;
use crate::by_key::{
    Ordered, OrderedKey, Source, Walk, Walked, extremes, is_worth, is_worth_a_key, rows_by_key,
};
use crate::provider::{RowsNow, bytes_of, searchable_rows};
use crate::reads::TableReads;
use crate::unbound::UnboundRows;

/// Steps that may be run along a key.
pub(super) struct FirstRows {
    /// A sort with a limit, or what returns all rows.
    pub(super) steps: Box<Step>,
    wanted: Wanted,
    schema: SchemaRef,
}

/// Which rows are wanted.
enum Wanted {
    /// So many of an order.
    First(usize, Vec<Ordered>),
    /// The first row of each order, and no other one, unless they are few.
    Ends(Vec<Ordered>),
    /// So many, of any order.
    Any(usize),
}

/// What came of a walk.
enum Found {
    Rows(RecordBatch),
    /// The steps are to be run.
    NotWorth,
    TooMany,
}

impl FirstRows {
    /// A sort that may be such a walk; any other step as it is.
    pub(super) fn of_sort(sort: Step, schema: &SchemaRef) -> Step {
        let Step::Sort {
            by,
            fetch: Some(fetch),
            input,
            ..
        } = &sort
        else {
            return sort;
        };
        let ordered = by
            .iter()
            .map(|by| ordered(input, by.expr.as_ref(), by.options));
        match ordered.collect() {
            Some(ordered) => Step::FirstRows(FirstRows {
                wanted: Wanted::First(*fetch, ordered),
                schema: SchemaRef::clone(schema),
                steps: Box::new(sort),
            }),
            None => sort,
        }
    }

    /// The rows that an aggregate wants of its input.
    pub(super) fn of_input(aggregate: &AggregateExec, input: Step) -> Step {
        let ordered = extremes(aggregate).and_then(|extremes| {
            let extremes = extremes.iter();
            let ordered = extremes.map(|(of, options)| ordered(&input, of.as_ref(), *options));
            ordered.collect()
        });
        match ordered {
            Some(ordered) => Step::FirstRows(FirstRows {
                wanted: Wanted::Ends(ordered),
                schema: aggregate.input_schema(),
                steps: Box::new(input),
            }),
            None => input,
        }
    }

    /// The rows of a step of which so many are enough.
    pub(super) fn of_limit(fetch: usize, schema: &SchemaRef, input: Step) -> Step {
        match table_below(&input) {
            Some(_) => Step::FirstRows(FirstRows {
                wanted: Wanted::Any(fetch),
                schema: SchemaRef::clone(schema),
                steps: Box::new(input),
            }),
            None => input,
        }
    }

    /// The rows; `None` if they are too many.
    pub(super) fn rows(&self, run: &mut Run) -> Result<Option<RecordBatch>> {
        match self.by_key(run)? {
            Found::Rows(rows) => Ok(Some(rows)),
            Found::NotWorth => self.steps.rows(run),
            Found::TooMany => Ok(None),
        }
    }

    fn by_key(&self, run: &mut Run) -> Result<Found> {
        let way = match self.steps.as_ref() {
            Step::Sort { input, .. } => input,
            steps => steps,
        };
        let Some(rows) = table_below(way) else {
            return Ok(Found::NotWorth);
        };
        let Some(source) = rows.source()? else {
            return Ok(Found::TooMany);
        };
        let found = searchable_rows(&source)?;
        let is_worth = match &self.wanted {
            Wanted::First(fetch, _) => is_worth(&source, *fetch, found),
            Wanted::Ends(_) => is_worth_a_key(&source, found),
            Wanted::Any(fetch) => {
                let all = found.unwrap_or(source.snapshot.row_count());
                *fetch > 0 && all > run.most.rows
            }
        };
        if !is_worth {
            return Ok(Found::NotWorth);
        }
        let key = |ordered: &[Ordered]| OrderedKey::best(&source.table, &source.filters, ordered);
        let keys = match &self.wanted {
            Wanted::First(fetch, ordered) => key(ordered).map(|key| vec![(key, *fetch)]),
            Wanted::Ends(ordered) => {
                let keys = ordered.iter().map(|ordered| {
                    let key = key(std::slice::from_ref(ordered))?;
                    Some((key.without_null(&source.table, *ordered)?, 1))
                });
                keys.collect()
            }
            Wanted::Any(fetch) => match key(&[]).filter(OrderedKey::is_narrowed) {
                Some(key) => Some(vec![(key, *fetch)]),
                None => return scanned(way, &source, *fetch, run),
            },
        };
        let Some(keys) = keys else {
            return Ok(Found::NotWorth);
        };
        let mut parts = Vec::new();
        for (key, fetch) in keys {
            match walked(way, &source, &key, fetch, run)? {
                Found::Rows(rows) => parts.push(rows),
                other => return Ok(other),
            }
        }
        Ok(Found::Rows(match parts.as_slice() {
            [rows] => rows.clone(),
            parts => concat_batches(&self.schema, parts)?,
        }))
    }
}

/// The first rows in the order in which they were written, behind the steps on their way.
fn scanned(way: &Step, source: &Source, fetch: usize, run: &mut Run) -> Result<Found> {
    let mut left = fetch;
    let mut parts = Vec::new();
    for batch in 0..source.snapshot.batch_count() {
        let count = source.snapshot.rows_of(batch);
        let bytes_read = bytes_of(&source.table, count as u64);
        if bytes_read > run.most.bytes_read {
            return Ok(Found::TooMany);
        }
        let read = RowsNow {
            rows: source.batches(batch..batch + 1)?,
            bytes_read,
            reads: TableReads::of_scan(count),
            is_by_key: false,
        };
        run.has_read(&read);
        let rows = through(way, read.rows)?;
        let rows = rows.slice(0, rows.num_rows().min(left));
        left -= rows.num_rows();
        parts.push(rows);
        if left == 0 {
            break;
        }
    }
    joined(way, source, &parts).map(Found::Rows)
}

/// The rows of the steps on a way, one behind the other.
fn joined(way: &Step, source: &Source, parts: &[RecordBatch]) -> Result<RecordBatch> {
    match parts {
        [rows] => Ok(rows.clone()),
        [] => through(way, RecordBatch::new_empty(source.schema())),
        [first, ..] => Ok(concat_batches(&first.schema(), parts)?),
    }
}

/// The first rows along a key, behind the steps on their way.
fn walked(
    way: &Step,
    source: &Source,
    key: &OrderedKey,
    fetch: usize,
    run: &mut Run,
) -> Result<Found> {
    // The long way reads so many before it sorts.
    let sorted_from = rows_by_key(source.snapshot.row_count());
    let most = run.most.rows.min(run.most.bytes_read / source.row_bytes());
    let limit = usize::try_from(sorted_from.min(most)).unwrap_or(usize::MAX);
    let mut walk = Walk::begin(source, key, fetch, has_filter(way), limit);
    let mut left = fetch;
    let mut parts: Vec<RecordBatch> = Vec::new();
    while left > 0 {
        let rows = match walk.next()? {
            Walked::Rows(rows, count, reads) => {
                run.has_walked(reads, bytes_of(&source.table, count as u64));
                rows
            }
            Walked::End => break,
            Walked::GivenUp if sorted_from <= most => return Ok(Found::NotWorth),
            Walked::GivenUp => return Ok(Found::TooMany),
        };
        if let Some(rows) = rows {
            let rows = through(way, rows)?;
            let rows = rows.slice(0, rows.num_rows().min(left));
            left -= rows.num_rows();
            parts.push(rows);
        }
    }
    joined(way, source, &parts).map(Found::Rows)
}

/// The order by a column of the table below a step; `None` where it is none, or rows do not only
/// pass filters and projections on their way.
fn ordered(way: &Step, by: &dyn PhysicalExpr, options: SortOptions) -> Option<Ordered> {
    let table = table_below(way)?.table()?;
    let column = column(way, by.downcast_ref::<Column>()?.index())?;
    Ordered::by(&table, column, options)
}

/// The table that all rows of a step come from, one by one and without a limit.
fn table_below(way: &Step) -> Option<&UnboundRows> {
    match way {
        Step::Table(rows) => (!rows.has_limit()).then_some(rows),
        Step::Filter { input, .. } | Step::Project { input, .. } => table_below(input),
        _ => None,
    }
}

/// The column of the table below a step that is a column of the step.
fn column(way: &Step, index: usize) -> Option<usize> {
    match way {
        Step::Table(rows) => rows.column(index),
        Step::Filter {
            projection, input, ..
        } => match projection {
            Some(columns) => column(input, *columns.get(index)?),
            None => column(input, index),
        },
        Step::Project { exprs, input, .. } => {
            let below = exprs.get(index)?.downcast_ref::<Column>()?;
            column(input, below.index())
        }
        _ => None,
    }
}

/// Whether a step leaves rows of its table out.
fn has_filter(way: &Step) -> bool {
    match way {
        Step::Filter { .. } => true,
        Step::Project { input, .. } => has_filter(input),
        _ => false,
    }
}

/// What a step makes of some rows of its table.
fn through(way: &Step, rows: RecordBatch) -> Result<RecordBatch> {
    match way {
        Step::Table(_) => Ok(rows),
        Step::Filter {
            condition,
            projection,
            input,
        } => filtered(condition, projection.as_deref(), through(input, rows)?),
        Step::Project {
            exprs,
            schema,
            input,
        } => projected(exprs, schema, &through(input, rows)?),
        _ => internal_err!("a way to a table through other steps"),
    }
}
