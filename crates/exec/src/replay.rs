//! A stream that was begun, as the input of a plan.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

use crate::lock::lock;
use crate::plan_node::{leaf_node, leaf_properties};

/// Gives the rows that were read of a stream, and then its rest; once.
pub(crate) struct Replay {
    rest: Mutex<Option<Rest>>,
    properties: Arc<PlanProperties>,
}

/// What is left of a stream.
pub(crate) struct Rest {
    /// Batches that were read and have had no effect.
    pub(crate) read: VecDeque<RecordBatch>,
    pub(crate) stream: SendableRecordBatchStream,
}

impl Replay {
    pub(crate) fn new(schema: SchemaRef, rest: Rest) -> Self {
        let properties = leaf_properties(schema, 1);
        Self {
            rest: Mutex::new(Some(rest)),
            properties,
        }
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").finish_non_exhaustive()
    }
}

impl DisplayAs for Replay {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Replay")
    }
}

impl ExecutionPlan for Replay {
    leaf_node!("Replay");

    fn execute(
        &self,
        _partition: usize,
        _context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rest = lock(&self.rest).take();
        let Rest { read, stream } =
            rest.ok_or_else(|| internal_datafusion_err!("the rest of a stream is read once"))?;
        let read = futures::stream::iter(read.into_iter().map(Ok));
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            read.chain(stream),
        )))
    }
}
