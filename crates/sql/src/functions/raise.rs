//! MySQL's errors on their way through DataFusion.

use datafusion::error::DataFusionError;
use mayfly_types::MySqlError;

/// Wraps an error of MySQL so that it passes through DataFusion whole.
pub fn raise(error: MySqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
