//! Parquet files for tests.

use std::fs::File;
use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;

/// Writes batches of one schema, of which there is at least one.
pub fn write_parquet(path: &Path, properties: WriterProperties, rows: &[RecordBatch]) {
    let file = File::create(path).unwrap();
    let schema = rows[0].schema();
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).unwrap();
    for batch in rows {
        writer.write(batch).unwrap();
    }
    writer.close().unwrap();
}
