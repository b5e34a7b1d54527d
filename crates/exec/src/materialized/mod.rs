//! Tables that a query names more than once, and that are computed once.
//!
//! Owns: [`Materialized`], such a table to the planner; [`MaterializedScan`], which reads its rows;
//! [`WithMaterialized`], the root of a plan that has such tables. Never: decides which tables they
//! are, which is for the maker of the plan.
//!
//! ```text
//!   WithMaterialized
//!     |-- plan of the query ... MaterializedScan --+
//!     |                     ... MaterializedScan --+--> rows in pages (computed)
//!     `-- plan of the table ------------------------^   written by the first scan that is asked
//! ```
//!
//! Whichever scan is asked first starts the plan of the table, one task for each of its partitions;
//! all scans wait for it, since none of them may be left waiting for another one that its operator
//! does not ask. Rows belong to one run of a plan: they lie in the [`StatementContext`], and a plan
//! may run again.
//!
//! **Cost**: rows are copied into pages once, and read off them without a copy.

mod computed;
mod operator;
mod scan;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use crate::report::next_temp_table_id;

#[cfg(doc)]
use crate::context::StatementContext;

pub use computed::Computed;
pub use operator::WithMaterialized;
pub use scan::MaterializedScan;

/// A table that a query computes once, to those who plan it. Clones are the same table.
#[derive(Clone)]
pub struct Materialized(Arc<Inner>);

struct Inner {
    id: u64,
    name: String,
    schema: SchemaRef,
    /// The places of the columns that are kept, in their order; all until it is known.
    kept: OnceLock<Vec<usize>>,
    /// What computes the rows, as the last rule left it.
    plan: Mutex<Option<Arc<dyn ExecutionPlan>>>,
}

impl Materialized {
    /// A table with these columns; the name is for EXPLAIN.
    pub fn new(name: String, schema: SchemaRef) -> Materialized {
        Materialized(Arc::new(Inner {
            id: next_temp_table_id(),
            name,
            schema,
            kept: OnceLock::new(),
            plan: Mutex::new(None),
        }))
    }

    /// Its identity in the report.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// What EXPLAIN calls it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Says which columns its plan will have, by their places in rising order. Only the first call
    /// counts.
    pub fn keep(&self, columns: Vec<usize>) {
        let _ = self.0.kept.set(columns);
    }

    /// Says what computes its rows.
    pub fn set_plan(&self, plan: &Arc<dyn ExecutionPlan>) {
        let mut place = self.0.plan.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(Arc::clone(plan));
    }

    fn plan(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let place = self.0.plan.lock().unwrap_or_else(PoisonError::into_inner);
        place
            .clone()
            .ok_or_else(|| internal_datafusion_err!("{} has no plan", self.name()))
    }

    /// Where columns are among those that are kept.
    fn places(&self, columns: impl Iterator<Item = usize>) -> Result<Vec<usize>> {
        let Some(kept) = self.0.kept.get() else {
            return Ok(columns.collect());
        };
        columns
            .map(|column| {
                kept.binary_search(&column).map_err(|_| {
                    internal_datafusion_err!("{} does not keep column {column}", self.name())
                })
            })
            .collect()
    }
}

impl fmt::Debug for Materialized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Materialized")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for Materialized {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    /// Conditions are told to who makes its plan, and asked above the scan.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (schema, columns) = match projection {
            Some(columns) => {
                let schema = Arc::new(self.0.schema.project(columns)?);
                (schema, self.places(columns.iter().copied())?)
            }
            None => {
                let all = 0..self.0.schema.fields().len();
                (Arc::clone(&self.0.schema), self.places(all)?)
            }
        };
        let partitions = session.config_options().execution.target_partitions.max(1);
        Ok(Arc::new(MaterializedScan::new(
            self.clone(),
            schema,
            columns,
            partitions,
        )))
    }
}
