//! A table in several partitions, for plain DataFusion programs.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::catalog::MemTable;
use datafusion::prelude::SessionContext;

/// Rows in a batch of the input.
const BATCH_ROWS: usize = 1000;
pub const PARTITIONS: usize = 3;

/// Makes the rows known as the table `t`, batch after batch to the next partition.
pub fn register(context: &SessionContext, table: &RecordBatch) {
    let mut partitions = vec![Vec::new(); PARTITIONS];
    for (index, start) in (0..table.num_rows()).step_by(BATCH_ROWS).enumerate() {
        let rows = BATCH_ROWS.min(table.num_rows() - start);
        partitions[index % PARTITIONS].push(table.slice(start, rows));
    }
    let provider = MemTable::try_new(table.schema(), partitions).unwrap();
    context.register_table("t", Arc::new(provider)).unwrap();
}
