//! Materialises a stream into a table.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use mayfly_table::Table;

use crate::error::table_error;
use crate::time_slice::TimeSlice;

/// Appends all rows of a stream to a table and answers with their number. Readers see all rows of
/// the stream or, when it fails or the future is dropped, none.
///
/// # Errors
/// Those of the stream, and those of the temp space.
pub async fn collect_into(
    table: &Arc<Table>,
    mut stream: SendableRecordBatchStream,
) -> Result<u64> {
    let mut slice = TimeSlice::begin();
    let mut appender = table.begin_append();
    while let Some(batch) = stream.next().await {
        appender.append(&batch?).map_err(table_error)?;
        slice.share().await;
    }
    appender.commit().map_err(table_error)
}
