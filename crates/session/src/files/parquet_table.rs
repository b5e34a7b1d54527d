//! Parquet files with columns that have one value for all rows of a file.
//!
//! The files are those of a [`ListingTable`], which knows how many rows they have. Of a file that a
//! condition on such a column rules out no rows are read.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{ColumnStatistics, Statistics};
use datafusion::datasource::listing::{ListingTable, ListingTableUrl, PartitionedFile};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::object_store::path::Path;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::scalar::ScalarValue;

/// Parquet files, and what is known of each beside its rows.
#[derive(Debug)]
pub(super) struct ParquetTable {
    files: ListingTable,
    schema: SchemaRef,
    constants: Vec<FieldRef>,
    /// The values of the constants, by the files.
    values: HashMap<Path, Vec<ScalarValue>>,
}

impl ParquetTable {
    pub(super) fn new(
        files: ListingTable,
        constants: Vec<FieldRef>,
        values: HashMap<Path, Vec<ScalarValue>>,
    ) -> ParquetTable {
        let own = files.schema();
        let fields = own.fields().iter().chain(&constants).cloned();
        let fields: Vec<FieldRef> = fields.collect();
        ParquetTable {
            schema: Arc::new(Schema::new(fields)),
            files,
            constants,
            values,
        }
    }

    /// The files without what is known beside their rows.
    pub(super) fn files(&self) -> &ListingTable {
        &self.files
    }

    fn with_constants(&self, mut file: PartitionedFile) -> Result<PartitionedFile> {
        let values = self.values.get(&file.object_meta.location);
        let values = values.ok_or_else(|| {
            let text = format!("no constants of file {}", file.object_meta.location);
            DataFusionError::Internal(text)
        })?;
        file.partition_values.clone_from(values);
        let statistics = file.statistics.take();
        // Statistics say that a constant is never NULL.
        Ok(
            match statistics.filter(|_| !values.iter().any(ScalarValue::is_null)) {
                Some(statistics) => file.with_statistics(statistics),
                None => file,
            },
        )
    }

    /// What is known of all rows: nothing of the constants.
    fn with_unknown(&self, mut statistics: Statistics) -> Statistics {
        let unknown = self
            .constants
            .iter()
            .map(|_| ColumnStatistics::new_unknown());
        statistics.column_statistics.extend(unknown);
        statistics
    }
}

#[async_trait::async_trait]
impl TableProvider for ParquetTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let listed = self.files.list_files_for_scan(state, &[], None).await?;
        let groups = listed.file_groups.into_iter().map(|group| {
            let files = group.into_inner().into_iter();
            let files = files.map(|file| self.with_constants(file));
            Ok(FileGroup::new(files.collect::<Result<Vec<_>>>()?))
        });
        let groups = groups.collect::<Result<Vec<_>>>()?;
        let format = &self.files.options().format;
        let columns = TableSchema::builder(self.files.schema());
        let columns = columns
            .with_table_partition_cols(self.constants.clone())
            .build();
        let urls = self.files.table_paths().first();
        let store = urls.map(ListingTableUrl::object_store);
        let store = store.ok_or_else(|| DataFusionError::Internal("no files".to_owned()))?;
        let config = FileScanConfigBuilder::new(store, format.file_source(columns))
            .with_file_groups(groups)
            .with_statistics(self.with_unknown(listed.statistics))
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        format.create_physical_plan(state, config).await
    }
}
