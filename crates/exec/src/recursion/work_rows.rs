//! The table that a recursive term names, before its recursion is known.
//!
//! Owns: [`WorkRows`] and the node that reads it. DataFusion's own pair may stand in a recursive
//! term once only; a term of several parts names its table in each of them.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::plan_node::{leaf_properties, leaf_that_never_runs};

/// The rows of the level before, to the planner of a recursive term.
#[derive(Debug)]
pub struct WorkRows {
    recursion: String,
    schema: SchemaRef,
}

impl WorkRows {
    /// The rows of a recursion of this name.
    pub fn new(recursion: &str, schema: SchemaRef) -> WorkRows {
        WorkRows {
            recursion: recursion.to_owned(),
            schema,
        }
    }
}

#[async_trait]
impl TableProvider for WorkRows {
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
        let schema = match projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => Arc::clone(&self.schema),
        };
        Ok(Arc::new(UnboundRowsScan {
            recursion: self.recursion.clone(),
            properties: leaf_properties(schema, 1),
        }))
    }
}

/// Stands where the rows of a recursion are read until its operator is made.
pub(super) struct UnboundRowsScan {
    recursion: String,
    properties: Arc<PlanProperties>,
}

impl UnboundRowsScan {
    /// The name of the recursion.
    pub(super) fn recursion(&self) -> &str {
        &self.recursion
    }
}

impl fmt::Debug for UnboundRowsScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundRowsScan")
            .field("recursion", &self.recursion)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for UnboundRowsScan {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnboundRowsScan: recursion={}", self.recursion)
    }
}

impl ExecutionPlan for UnboundRowsScan {
    leaf_that_never_runs!(
        "UnboundRowsScan",
        "a recursive term runs outside of its recursion"
    );
}
