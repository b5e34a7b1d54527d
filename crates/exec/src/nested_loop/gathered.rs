//! Rows of the right side, put together until they are worth a pass over the left one.

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use futures::TryStreamExt;
use mayfly_table::owned::own_bytes;

use super::pair::Limits;
use crate::join::Output;

/// The rows of one partition, in batches that are not small.
pub(super) struct Gathered {
    rows: SendableRecordBatchStream,
    output: Output,
    limits: Limits,
    /// Bytes of the rows that wait for others.
    bytes: usize,
    has_ended: bool,
}

impl Gathered {
    pub(super) fn new(rows: SendableRecordBatchStream, limits: Limits) -> Gathered {
        Gathered {
            output: Output::new(&rows.schema(), limits.rows, None),
            rows,
            limits,
            bytes: 0,
            has_ended: false,
        }
    }

    /// The next batch, which has rows; `None` at the end of the partition.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.output.next()? {
                return Ok(Some(batch));
            }
            if self.has_ended {
                return Ok(None);
            }
            let Some(batch) = self.rows.try_next().await? else {
                self.has_ended = true;
                self.output.finish()?;
                continue;
            };
            if batch.num_rows() == 0 {
                continue;
            }
            let columns = batch.columns().iter();
            self.bytes += columns.map(|column| own_bytes(column)).sum::<usize>();
            self.output.push(batch)?;
            if self.bytes >= self.limits.bytes {
                self.output.finish()?;
                self.bytes = 0;
            }
        }
    }
}
