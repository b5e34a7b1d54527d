//! Materialises a stream into a table, or into pages.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;
use mayfly_space::{Account, NextUse};
use mayfly_table::{BatchRun, Table};

use crate::error::{space_error, table_error};
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

/// All rows of a partition of a plan, in pages that may leave memory between two reads of them.
///
/// # Errors
/// Those of the plan, and those of the temp space.
pub(crate) async fn collect_run(
    account: &Account,
    plan: Arc<dyn ExecutionPlan>,
    partition: usize,
    context: Arc<TaskContext>,
) -> Result<BatchRun> {
    let mut run = BatchRun::new(account, plan.schema(), NextUse::SecondChance);
    let _admission = account.admit(run.append_bytes()).map_err(space_error)?;
    let mut stream = plan.execute(partition, context)?;
    let mut slice = TimeSlice::begin();
    while let Some(batch) = stream.next().await {
        run.append(&batch?).map_err(table_error)?;
        slice.share().await;
    }
    run.finish().map_err(table_error)?;
    Ok(run)
}
