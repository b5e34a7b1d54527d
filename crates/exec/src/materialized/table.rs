//! A table that a query computes once: who it is, and what computes it.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use arrow::datatypes::SchemaRef;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::physical_plan::ExecutionPlan;

use crate::lock::lock;
use crate::report::next_temp_table_id;

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

    /// All of its columns, kept or not.
    pub(super) fn columns(&self) -> &SchemaRef {
        &self.0.schema
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
        let mut place = lock(&self.0.plan);
        *place = Some(Arc::clone(plan));
    }

    pub(super) fn plan(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let place = lock(&self.0.plan);
        place
            .clone()
            .ok_or_else(|| internal_datafusion_err!("{} has no plan", self.name()))
    }

    /// Where columns are among those that are kept.
    pub(super) fn places(&self, columns: impl Iterator<Item = usize>) -> Result<Vec<usize>> {
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
