//! The table to those who plan its query.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::scan::MaterializedScan;
use super::table::Materialized;

#[async_trait]
impl TableProvider for Materialized {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.columns())
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
                let schema = Arc::new(self.columns().project(columns)?);
                (schema, self.places(columns.iter().copied())?)
            }
            None => {
                let all = 0..self.columns().fields().len();
                (Arc::clone(self.columns()), self.places(all)?)
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
