//! Tables of plans that are kept, without their rows.
//!
//! Owns: [`UnboundTable`], a table of a plan that holds no rows of it and does not keep it alive,
//! and the node that stands for a scan of it. Never: runs, which is for
//! [`ShortPlan`](crate::ShortPlan); lets a plan depend on how many rows there are: the number is
//! told as a guess.

use std::fmt;
use std::sync::{Arc, Weak};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{Result, Statistics, internal_datafusion_err};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use mayfly_table::{Table, TableSnapshot};

use crate::plan_node::{leaf_properties, leaf_that_never_runs, row_statistics};
use crate::provider::{RowsNow, TableSource};
use crate::scan_columns::ScanColumns;
use crate::short_plan::Size;
use crate::slots::{filled, with_examples};
use crate::source::Source;

/// A `TableProvider` over the rows that a table will have.
#[derive(Debug)]
pub struct UnboundTable {
    table: Weak<Table>,
    schema: SchemaRef,
}

impl UnboundTable {
    /// The provider of a table, which may go away.
    pub fn new(table: &Arc<Table>) -> Self {
        Self {
            table: Arc::downgrade(table),
            schema: Arc::clone(table.schema()),
        }
    }

    fn table(&self) -> Result<Arc<Table>> {
        let table = self.table.upgrade();
        table.ok_or_else(|| internal_datafusion_err!("a table went away while it was planned"))
    }
}

#[async_trait]
impl TableProvider for UnboundTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let examples = filters.iter().map(|filter| with_examples(filter));
        let examples = examples.collect::<Result<Vec<_>>>()?;
        let examples: Vec<&Expr> = examples.iter().collect();
        TableSource::new(self.table()?).supports_filters_pushdown(&examples)
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let table = self.table()?;
        let columns = TableSource::new(Arc::clone(&table)).columns(projection)?;
        let properties = leaf_properties(Arc::clone(&columns.schema), 1);
        Ok(Arc::new(UnboundScan {
            row_count: usize::try_from(table.row_count()).unwrap_or(usize::MAX),
            projection: projection.cloned(),
            rows: UnboundRows {
                table: Weak::clone(&self.table),
                seen: None,
                columns,
                filters: filters.into(),
                limit,
            },
            properties,
        }))
    }
}

/// Stands for a scan of a table.
pub(crate) struct UnboundScan {
    projection: Option<Vec<usize>>,
    rows: UnboundRows,
    /// The rows of the table when this was planned.
    row_count: usize,
    properties: Arc<PlanProperties>,
}

/// Rows of a table that are read later.
#[derive(Clone)]
pub(crate) struct UnboundRows {
    table: Weak<Table>,
    /// The rows that are read; those of the moment without one.
    seen: Option<Arc<TableSnapshot>>,
    columns: ScanColumns,
    filters: Arc<[Expr]>,
    limit: Option<usize>,
}

impl UnboundRows {
    /// The rows of a source; `limit` says that so many of them are enough.
    pub(crate) fn of_source(source: &Source, limit: Option<usize>) -> UnboundRows {
        UnboundRows {
            seen: Some(Arc::clone(&source.snapshot)),
            ..UnboundRows::of_table(source, limit)
        }
    }

    /// Those that the table of a source has when they are read.
    pub(crate) fn of_table(source: &Source, limit: Option<usize>) -> UnboundRows {
        UnboundRows {
            table: Arc::downgrade(&source.table),
            seen: None,
            columns: source.columns.clone(),
            filters: source.filters.as_slice().into(),
            limit,
        }
    }

    /// Its table, with the rows that are read; `None` if it is gone.
    fn table_source(&self) -> Option<TableSource> {
        let table = self.table.upgrade()?;
        Some(match &self.seen {
            Some(seen) => TableSource::of_snapshot(table, Arc::clone(seen)),
            None => TableSource::new(table),
        })
    }

    /// The rows, or those of them that a key finds; `None` if they are more than `most`, or the
    /// table is gone.
    ///
    /// # Errors
    /// If a page or an index cannot be read.
    pub(crate) fn rows_now(&self, most: Size) -> Result<Option<RowsNow>> {
        let Some(source) = self.table_source() else {
            return Ok(None);
        };
        let filters = filled(&self.filters)?;
        source.rows_now(&self.columns, &filters, self.limit, most)
    }

    /// The rows, and the conditions that may narrow a search; `None` if the table is gone.
    ///
    /// # Errors
    /// If a value of a condition is missing.
    pub(crate) fn source(&self) -> Result<Option<Source>> {
        let Some(source) = self.table_source() else {
            return Ok(None);
        };
        let filters = filled(&self.filters)?.into_owned();
        Ok(Some(source.source(self.columns.clone(), filters)))
    }

    /// The same rows, with more conditions that may narrow a search.
    pub(crate) fn narrowed_by(&self, more: Vec<Expr>) -> UnboundRows {
        let filters = self.filters.iter().cloned().chain(more);
        UnboundRows {
            filters: filters.collect(),
            ..self.clone()
        }
    }

    /// The columns of the rows.
    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.columns.schema)
    }

    /// The table; `None` if it is gone.
    pub(crate) fn table(&self) -> Option<Arc<Table>> {
        self.table.upgrade()
    }

    /// The column of the table that is shown at a place.
    pub(crate) fn column(&self, place: usize) -> Option<usize> {
        self.columns.of_table(place)
    }

    /// How many of its rows are enough.
    pub(crate) fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Whether some of its rows are enough.
    pub(crate) fn has_limit(&self) -> bool {
        self.limit.is_some()
    }
}

impl UnboundScan {
    /// What is read.
    pub(crate) fn rows(&self) -> &UnboundRows {
        &self.rows
    }

    /// The scan of the rows of now; `None` if the table is gone.
    ///
    /// # Errors
    /// If an index cannot be read.
    pub(crate) fn bound(&self) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(table) = self.rows.table.upgrade() else {
            return Ok(None);
        };
        let source = TableSource::new(table);
        let (filters, limit) = (&self.rows.filters, self.rows.limit);
        let scan = source.scan_now(1, self.projection.as_ref(), filters, limit)?;
        Ok(Some(scan))
    }
}

impl fmt::Debug for UnboundScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundScan")
            .field("projection", &self.projection)
            .field("filters", &self.rows.filters)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for UnboundScan {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnboundScan: projection={:?}", self.projection)
    }
}

impl ExecutionPlan for UnboundScan {
    leaf_that_never_runs!("UnboundScan", "a plan without rows runs");

    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        row_statistics(self, Precision::Inexact(self.row_count))
    }
}
