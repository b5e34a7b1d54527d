//! Batches made of batches: the kernels that several operators call.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;

/// A batch of `rows` rows, of no columns too.
///
/// # Errors
/// If the columns are not those of the schema.
pub fn batch_of(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let schema = Arc::clone(schema);
    Ok(RecordBatch::try_new_with_options(
        schema, columns, &options,
    )?)
}

/// A column for each expression over the rows.
///
/// # Errors
/// If an expression fails.
pub(crate) fn projected(
    exprs: &[Arc<dyn PhysicalExpr>],
    schema: &SchemaRef,
    rows: &RecordBatch,
) -> Result<RecordBatch> {
    let count = rows.num_rows();
    let columns = exprs
        .iter()
        .map(|expr| expr.evaluate(rows)?.into_array(count));
    batch_of(schema, columns.collect::<Result<_>>()?, count)
}
