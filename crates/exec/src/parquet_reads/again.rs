//! The same files once more in one plan.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::TableParquetOptions;
use datafusion::datasource::physical_plan::{FileScanConfig, FileSource, ParquetSource};

/// A scan of the same files, which has counted nothing yet; `None` if it is no scan of Parquet
/// files, or one of encrypted ones, whose keys are not told.
///
/// A clone would count its rows where the first one does, and both would show the sum.
pub(crate) fn read_again(scan: &FileScanConfig) -> Result<Option<FileScanConfig>> {
    let Some(source) = scan.file_source().downcast_ref::<ParquetSource>() else {
        return Ok(None);
    };
    let options = source.table_parquet_options();
    if options.crypto != TableParquetOptions::default().crypto {
        return Ok(None);
    }
    let mut again = ParquetSource::new(source.table_schema().clone())
        .with_table_parquet_options(options.clone());
    if let Some(bytes) = options.global.metadata_size_hint {
        again = again.with_metadata_size_hint(bytes);
    }
    if let Some(predicate) = source.filter() {
        again = again.with_predicate(predicate);
    }
    if let Some(readers) = source.parquet_file_reader_factory() {
        again = again.with_parquet_file_reader_factory(Arc::clone(readers));
    }
    let again: Option<Arc<dyn FileSource>> = match source.projection() {
        Some(columns) => again.try_pushdown_projection(columns)?,
        None => Some(Arc::new(again)),
    };
    Ok(again.map(|again| {
        let mut scan = scan.clone();
        scan.file_source = again;
        scan
    }))
}
