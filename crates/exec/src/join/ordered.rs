//! Joins whose rows must come in the order of the right side.
//!
//! Plans leave a sort out where the right side of a stock join is sorted: it returns rows as they
//! stream. So does ours while the whole left side is in memory. Where it is not, rows of some
//! partitions come later than their turn, and a sort puts them where they belong.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::BaselineMetrics;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{TryStreamExt, stream};

use super::run::Run;
use super::stream::results;
use crate::replay::{Replay, Rest};
use crate::sort::SortOperator;

/// The results of one partition in an order that its partition of the right side has.
pub(super) fn in_order(
    run: Arc<Run>,
    partition: usize,
    metrics: BaselineMetrics,
    ordering: LexOrdering,
    context: Arc<TaskContext>,
) -> SendableRecordBatchStream {
    let schema = Arc::clone(&run.spec.schema);
    let begun = async move {
        let built = run.built().await?;
        let schema = Arc::clone(&run.spec.schema);
        let rows = results(run, partition, metrics);
        let rows: SendableRecordBatchStream =
            Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), rows));
        match built.partner {
            None => Ok(rows),
            Some(_) => sorted(rows, ordering, context),
        }
    };
    let rows = stream::once(begun).try_flatten();
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

fn sorted(
    rows: SendableRecordBatchStream,
    ordering: LexOrdering,
    context: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let schema = rows.schema();
    let input = Arc::new(Replay::new(
        schema,
        Rest {
            read: Default::default(),
            stream: rows,
        },
    ));
    let stock = SortExec::new(ordering, input);
    match SortOperator::try_from_stock(&stock)? {
        Some(sort) => sort.execute(0, context),
        None => stock.execute(0, context),
    }
}
