//! A table whose columns have names in lower case.
//!
//! MySQL compares column names without regard to case; the planner compares bytes. Every table is
//! therefore shown to the planner in lower case, and the spelling is kept beside the plan.
//! Cost: one renaming projection above the scan, only for tables that need it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use mayfly_sql::bindings::BoundTable;
use mayfly_types::{ErrorCode, MySqlError};

use crate::errors;

/// Binds a batch as a table.
///
/// # Errors
/// As [`bind`].
pub(crate) fn bind_batch(batch: RecordBatch) -> Result<BoundTable, MySqlError> {
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]]);
    bind(Arc::new(table.map_err(|error| errors::from_plan(&error))?))
}

/// Binds a table under lower-case names.
///
/// # Errors
/// 1060 when two names differ in case only.
pub(crate) fn bind(inner: Arc<dyn TableProvider>) -> Result<BoundTable, MySqlError> {
    let schema = inner.schema();
    let columns: Vec<String> = schema
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    let mut originals = HashMap::new();
    for column in &columns {
        if originals
            .insert(column.to_lowercase(), column.clone())
            .is_some()
        {
            return Err(MySqlError::new(ErrorCode::DuplicateColumn, &[column]));
        }
    }
    if originals.iter().all(|(lower, original)| lower == original) {
        return Ok(BoundTable {
            provider: inner,
            columns,
            unique: Vec::new(),
            invisible: Vec::new(),
            view: None,
        });
    }
    let fields: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| {
            field
                .as_ref()
                .clone()
                .with_name(field.name().to_lowercase())
        })
        .collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    Ok(BoundTable {
        provider: Arc::new(Lowered {
            inner,
            schema,
            originals,
        }),
        columns,
        unique: Vec::new(),
        invisible: Vec::new(),
        view: None,
    })
}

/// The table whose names are written in small letters here, or the table itself.
pub(crate) fn original(table: &Arc<dyn TableProvider>) -> &Arc<dyn TableProvider> {
    match table.downcast_ref::<Lowered>() {
        Some(lowered) => &lowered.inner,
        None => table,
    }
}

struct Lowered {
    inner: Arc<dyn TableProvider>,
    schema: SchemaRef,
    originals: HashMap<String, String>,
}

impl fmt::Debug for Lowered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lowered")
            .field("inner", &self.inner)
            .finish()
    }
}

impl Lowered {
    fn original(&self, filter: &Expr) -> Result<Expr> {
        let renamed = filter.clone().transform(|expr| {
            Ok(match expr {
                Expr::Column(column) => match self.originals.get(&column.name) {
                    Some(name) => {
                        Transformed::yes(Expr::Column(Column::new(column.relation, name)))
                    }
                    None => Transformed::no(Expr::Column(column)),
                },
                other => Transformed::no(other),
            })
        })?;
        Ok(renamed.data)
    }
}

#[async_trait::async_trait]
impl TableProvider for Lowered {
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
        let filters: Vec<Expr> = filters
            .iter()
            .map(|filter| self.original(filter))
            .collect::<Result<_>>()?;
        let scan = self
            .inner
            .scan(session, projection, &filters, limit)
            .await?;
        if scan.schema().fields().is_empty() {
            return Ok(scan);
        }
        let columns: Vec<(Arc<dyn PhysicalExpr>, String)> = scan
            .schema()
            .fields()
            .iter()
            .enumerate()
            .map(|(index, field)| {
                let column: Arc<dyn PhysicalExpr> =
                    Arc::new(PhysicalColumn::new(field.name(), index));
                (column, field.name().to_lowercase())
            })
            .collect();
        Ok(Arc::new(ProjectionExec::try_new(columns, scan)?))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let filters: Vec<Expr> = filters
            .iter()
            .map(|filter| self.original(filter))
            .collect::<Result<_>>()?;
        let references: Vec<&Expr> = filters.iter().collect();
        self.inner.supports_filters_pushdown(&references)
    }
}
