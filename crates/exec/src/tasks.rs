//! Tasks that read the partitions of an input.

use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, Result};

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
