//! Batches that statements make, with MySQL's errors.

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use mayfly_types::MySqlError;

use crate::errors;

/// A batch of `rows` rows, of no columns too.
///
/// # Errors
/// If the columns are not those of the schema.
pub(crate) fn batch_of(
    schema: &SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, MySqlError> {
    mayfly_exec::batch_of(schema, columns, rows).map_err(|error| errors::from_plan(&error))
}
