//! Text files of one pattern whose headers name the same columns in different orders.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::union::UnionExec;

/// Files with the same order of columns.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) table: Arc<dyn TableProvider>,
    /// For each column of the whole, its place in this part.
    pub(super) places: Vec<usize>,
}

/// The rows of all parts, columns matched by name.
#[derive(Debug)]
pub(super) struct Together {
    pub(super) schema: SchemaRef,
    pub(super) parts: Vec<Part>,
}

#[async_trait::async_trait]
impl TableProvider for Together {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut plans = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let columns: Vec<usize> = match projection {
                Some(wanted) => wanted.iter().map(|index| part.places[*index]).collect(),
                None => part.places.clone(),
            };
            plans.push(part.table.scan(session, Some(&columns), &[], limit).await?);
        }
        UnionExec::try_new(plans)
    }
}
