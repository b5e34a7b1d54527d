//! Rows that are handed to a plan when it runs.
//!
//! Owns: [`GivenRows`], a table without rows of its own, and the node that stands for them. A
//! plan over it is made once, and its steps are given other rows each time. Never: says how
//! many rows there are, so that no plan depends on it.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::plan_node::{leaf_properties, leaf_that_never_runs};

/// A `TableProvider` whose rows come later.
#[derive(Debug)]
pub struct GivenRows {
    schema: SchemaRef,
}

impl GivenRows {
    /// A table of these columns.
    pub fn new(schema: SchemaRef) -> GivenRows {
        GivenRows { schema }
    }
}

#[async_trait]
impl TableProvider for GivenRows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = match projection {
            Some(columns) => columns.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let schema = Arc::new(self.schema.project(&columns)?);
        Ok(Arc::new(GivenRowsScan::of(schema, &columns)))
    }
}

/// Stands for rows that a [`ShortPlan`](crate::ShortPlan) is given for a run.
pub struct GivenRowsScan {
    columns: Vec<usize>,
    properties: Arc<PlanProperties>,
}

impl GivenRowsScan {
    /// A node of these columns of a table; `schema` has them only.
    pub(crate) fn of(schema: SchemaRef, columns: &[usize]) -> GivenRowsScan {
        GivenRowsScan {
            columns: columns.to_vec(),
            properties: leaf_properties(schema, 1),
        }
    }

    /// The node of a plan over one [`GivenRows`].
    pub fn find(plan: &Arc<dyn ExecutionPlan>) -> Option<&GivenRowsScan> {
        match plan.downcast_ref::<GivenRowsScan>() {
            Some(scan) => Some(scan),
            None => plan.children().into_iter().find_map(GivenRowsScan::find),
        }
    }

    /// The columns of the table that are read, in the order in which rows must have them.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }
}

impl fmt::Debug for GivenRowsScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GivenRowsScan")
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for GivenRowsScan {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GivenRowsScan: columns={:?}", self.columns)
    }
}

impl ExecutionPlan for GivenRowsScan {
    leaf_that_never_runs!("GivenRowsScan", "a plan without rows runs");
}
