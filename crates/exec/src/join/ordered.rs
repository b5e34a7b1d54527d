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

use super::build::Left;
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
        let left = run.left().await?;
        let (schema, fetch) = (Arc::clone(&run.spec.schema), run.spec.fetch);
        let is_late = matches!(&left, Left::Paged(built) if built.is_late);
        // The first rows in order may be the last that are found.
        let rows = results(run, partition, metrics, fetch.filter(|_| !is_late));
        let rows: SendableRecordBatchStream = Box::pin(RecordBatchStreamAdapter::new(schema, rows));
        match is_late {
            true => sorted(rows, ordering, fetch, context),
            false => Ok(rows),
        }
    };
    let rows = stream::once(begun).try_flatten();
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

fn sorted(
    rows: SendableRecordBatchStream,
    ordering: LexOrdering,
    fetch: Option<usize>,
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
    let stock = SortExec::new(ordering, input).with_fetch(fetch);
    match SortOperator::try_from_stock(&stock)? {
        Some(sort) => sort.execute(0, context),
        None => stock.execute(0, context),
    }
}
