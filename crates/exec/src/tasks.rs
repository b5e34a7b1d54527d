//! Tasks of operators: those that read an input, and steps of those that read groups.

use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, Result};
use mayfly_table::rows::{GroupColumns, GroupReader, ReadStep};

use crate::error::rows_error;
use crate::time_slice::TimeSlice;

/// What all tasks return; the first failure ends the others.
pub(crate) async fn join_all<T: Send + 'static>(
    tasks: Vec<SpawnedTask<Result<T>>>,
) -> Result<Vec<T>> {
    let joined = tasks.into_iter().map(|task| async {
        let joined = task.join_unwind().await;
        joined
            .map_err(|error| DataFusionError::Execution(format!("input task ended: {error}")))
            .and_then(|result| result)
    });
    futures::future::try_join_all(joined).await
}

/// Up to `rows_max` finished groups, `None` at the end; others run between two steps.
pub(crate) async fn next_groups(
    reader: &mut GroupReader,
    rows_max: usize,
    slice: &mut TimeSlice,
) -> Result<Option<GroupColumns>> {
    loop {
        slice.share().await;
        match reader.step(rows_max).map_err(rows_error)? {
            ReadStep::Groups(groups) => return Ok(Some(groups)),
            ReadStep::Working => {}
            ReadStep::End => return Ok(None),
        }
    }
}
