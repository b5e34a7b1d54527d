//! A table whose unique keys the rules of a plan know.
//!
//! Never: shown to the stock rules as constraints. They would add all columns that a key determines
//! to a GROUP BY of the key, and group by wide rows.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::DefaultTableSource;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableSource, TableType};
use datafusion::physical_plan::ExecutionPlan;

/// A table with sets of columns that no two rows have in common.
#[derive(Debug)]
pub(crate) struct Keyed {
    inner: Arc<dyn TableProvider>,
    unique: Vec<Vec<String>>,
}

impl Keyed {
    /// The table with its unique keys; their columns never are NULL.
    pub(crate) fn new(inner: Arc<dyn TableProvider>, unique: Vec<Vec<String>>) -> Keyed {
        Keyed { inner, unique }
    }

    /// The unique keys of a table of a plan.
    pub(crate) fn unique_of(source: &Arc<dyn TableSource>) -> &[Vec<String>] {
        let source = source.downcast_ref::<DefaultTableSource>();
        let keyed = source.and_then(|source| source.table_provider.downcast_ref::<Keyed>());
        keyed.map_or(&[], |keyed| &keyed.unique)
    }
}

#[async_trait]
impl TableProvider for Keyed {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
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
        self.inner.scan(session, projection, filters, limit).await
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.inner.supports_filters_pushdown(filters)
    }
}
