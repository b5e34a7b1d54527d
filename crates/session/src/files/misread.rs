//! Values of a CSV or TSV file that are not of their column's type.
//!
//! Types are inferred from the first rows; what a later row holds is seen only while it is read.
//! The reader's errors know the number of a column and not the file; both names are put in here,
//! where each file is opened.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::error::ArrowError;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::{ListingTable, PartitionedFile};
use datafusion::datasource::physical_plan::{
    FileOpenFuture, FileOpener, FileScanConfig, FileScanConfigBuilder, FileSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::object_store::ObjectStore;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};
use futures::{StreamExt, TryStreamExt};
use mayfly_types::{ErrorCode, MySqlError};

/// A table of text files whose errors name file, line and column.
#[derive(Debug)]
pub(super) struct TextTable {
    pub(super) inner: ListingTable,
    /// Whether the first line of each file is no row.
    pub(super) has_header: bool,
}

#[async_trait::async_trait]
impl TableProvider for TextTable {
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
        let plan = self.inner.scan(session, projection, filters, limit).await?;
        let config = plan
            .downcast_ref::<DataSourceExec>()
            .and_then(|exec| exec.data_source().downcast_ref::<FileScanConfig>());
        let Some(config) = config else {
            return Ok(plan);
        };
        let source = TextSource {
            inner: Arc::clone(config.file_source()),
            has_header: self.has_header,
        };
        let config = FileScanConfigBuilder::from(config.clone())
            .with_source(Arc::new(source))
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.inner.supports_filters_pushdown(filters)
    }
}

/// A source of text that explains what it cannot read.
struct TextSource {
    inner: Arc<dyn FileSource>,
    has_header: bool,
}

impl TextSource {
    fn around(&self, inner: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        Arc::new(TextSource {
            inner,
            has_header: self.has_header,
        })
    }
}

impl FileSource for TextSource {
    fn create_file_opener(
        &self,
        object_store: Arc<dyn ObjectStore>,
        base_config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        Ok(Arc::new(TextOpener {
            inner: self
                .inner
                .create_file_opener(object_store, base_config, partition)?,
            schema: Arc::clone(self.inner.table_schema().file_schema()),
            has_header: self.has_header,
        }))
    }

    fn table_schema(&self) -> &TableSchema {
        self.inner.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        self.around(self.inner.with_batch_size(batch_size))
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.inner.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.inner.metrics()
    }

    fn file_type(&self) -> &str {
        self.inner.file_type()
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_extra(t, f)
    }

    fn supports_repartitioning(&self) -> bool {
        self.inner.supports_repartitioning()
    }

    fn try_pushdown_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn FileSource>>> {
        let inner = self.inner.try_pushdown_projection(projection)?;
        Ok(inner.map(|inner| self.around(inner)))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.inner.apply_expressions(f)
    }
}

struct TextOpener {
    inner: Arc<dyn FileOpener>,
    schema: SchemaRef,
    has_header: bool,
}

impl FileOpener for TextOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let place = Place {
            path: format!("/{}", file.object_meta.location),
            schema: Arc::clone(&self.schema),
            has_header: self.has_header,
        };
        let opened = self.inner.open(file)?;
        Ok(Box::pin(async move {
            let rows = opened.await?;
            Ok(rows.map_err(move |error| place.explain(error)).boxed())
        }))
    }
}

/// Where a value was read.
struct Place {
    path: String,
    schema: SchemaRef,
    has_header: bool,
}

impl Place {
    fn explain(&self, error: DataFusionError) -> DataFusionError {
        let text = match error.find_root() {
            DataFusionError::ArrowError(inner, _) => match inner.as_ref() {
                ArrowError::ParseError(text) => wrong_value(text, &self.schema),
                ArrowError::CsvError(text) => wrong_count(text),
                _ => None,
            },
            _ => None,
        };
        let Some((line, code, said)) = text else {
            return error;
        };
        let row = line.saturating_sub(u64::from(self.has_header));
        let path = &self.path;
        let message = match code {
            ErrorCode::TruncatedWrongValueForField => {
                format!("{said} at row {row} (line {line} of file '{path}')")
            }
            _ => format!(
                "{} (line {line} of file '{path}')",
                MySqlError::new(code, &[&row]).message
            ),
        };
        DataFusionError::External(Box::new(MySqlError::with_message(code, message)))
    }
}

/// The line, and what is wrong in it.
type Explained = (u64, ErrorCode, String);

fn wrong_value(text: &str, schema: &Schema) -> Option<Explained> {
    let (value, place) = match text.strip_prefix("Error while parsing value '") {
        Some(rest) => rest.split_once("' as type '")?,
        None => {
            let (place, reason) = text
                .strip_prefix("Error parsing column ")?
                .split_once(": ")?;
            let value = reason.split_once('\'').map_or("", |(_, rest)| rest);
            (value.split('\'').next().unwrap_or(value), place)
        }
    };
    let place = place.split_once("column ").map_or(place, |(_, rest)| rest);
    let (column, line) = place.split_once(" at line ")?;
    // The reader counts from zero here.
    let line = number(line)? + 1;
    let field = schema.fields().get(column.trim().parse::<usize>().ok()?)?;
    let kind = match field.data_type() {
        DataType::Int64 => "integer",
        DataType::Float64 => "double",
        DataType::Boolean => "boolean",
        DataType::Date32 | DataType::Date64 => "date",
        DataType::Time32(_) | DataType::Time64(_) => "time",
        DataType::Timestamp(_, _) => "datetime",
        _ => "field",
    };
    let name = field.name();
    let said = format!("Incorrect {kind} value: '{value}' for column '{name}'");
    Some((line, ErrorCode::TruncatedWrongValueForField, said))
}

fn wrong_count(text: &str) -> Option<Explained> {
    let rest = text.strip_prefix("incorrect number of fields for line ")?;
    let code = if rest.contains("more than") {
        ErrorCode::TooManyRecords
    } else {
        let (expected, found) = rest.split_once(" got ")?;
        let expected = expected.rsplit(' ').next()?.parse::<u64>().ok()?;
        match number(found)? < expected {
            true => ErrorCode::TooFewRecords,
            false => ErrorCode::TooManyRecords,
        }
    };
    Some((number(rest)?, code, String::new()))
}

/// The number that a text begins with.
fn number(text: &str) -> Option<u64> {
    let digits = text.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}
