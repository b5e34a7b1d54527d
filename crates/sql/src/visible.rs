//! A table without its invisible columns.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

/// Shows some columns of a table as all of them.
#[derive(Debug)]
pub(crate) struct Visible {
    inner: Arc<dyn TableProvider>,
    /// The places of the columns that are shown.
    places: Vec<usize>,
    schema: SchemaRef,
}

impl Visible {
    /// The table with the columns at these places only.
    pub(crate) fn new(inner: Arc<dyn TableProvider>, places: Vec<usize>) -> Result<Visible> {
        Ok(Visible {
            schema: Arc::new(inner.schema().project(&places)?),
            inner,
            places,
        })
    }
}

#[async_trait]
impl TableProvider for Visible {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        self.inner.table_type()
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let places = match projection {
            Some(asked) => asked.iter().map(|place| self.places[*place]).collect(),
            None => self.places.clone(),
        };
        self.inner
            .scan(session, Some(&places), filters, limit)
            .await
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.inner.supports_filters_pushdown(filters)
    }
}
