//! The rows of a subquery beside the outer row that they were found for.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use futures::{Stream, StreamExt, stream};

use super::runs::{RunRows, Runs};

/// The outer rows, each with the rows that the subquery has for it.
pub(super) struct Lateral {
    pub(super) outer: SendableRecordBatchStream,
    pub(super) runs: Runs,
    pub(super) schema: SchemaRef,
    /// Whether an outer row for which there is none stands beside NULL.
    pub(super) keeps_outer: bool,
    pub(super) at: Option<At>,
}

/// An outer row.
pub(super) struct At {
    batch: RecordBatch,
    columns: Vec<ArrayRef>,
    row: usize,
    /// What the subquery still has for it.
    rows: Option<RunRows>,
    has_rows: bool,
}

impl Lateral {
    pub(super) fn stream(self) -> impl Stream<Item = Result<RecordBatch>> + Send {
        stream::try_unfold(self, async |mut lateral| {
            let next = lateral.next().await?;
            Ok(next.map(|rows| (rows, lateral)))
        })
    }

    /// The next rows; `None` after the last.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Some(at) = &mut self.at else {
                let Some(batch) = self.outer.next().await.transpose()? else {
                    return Ok(None);
                };
                self.at = Some(At {
                    columns: self.runs.outer_columns(&batch),
                    batch,
                    row: 0,
                    rows: None,
                    has_rows: false,
                });
                continue;
            };
            if at.row == at.batch.num_rows() {
                self.at = None;
                continue;
            }
            let mut rows = match at.rows.take() {
                Some(rows) => rows,
                None => self.runs.begin_run(&at.columns, at.row)?,
            };
            match rows.next().await? {
                Some(found) => {
                    at.rows = Some(rows);
                    if found.num_rows() > 0 {
                        at.has_rows = true;
                        let count = found.num_rows();
                        return beside(at, found.columns(), count, &self.schema).map(Some);
                    }
                }
                None => {
                    self.runs.end_run(rows).await;
                    let is_alone = !std::mem::take(&mut at.has_rows);
                    let padded = (is_alone && self.keeps_outer).then(|| {
                        let fields = self.schema.fields().iter();
                        let fields = fields.skip(at.batch.num_columns());
                        let nulls = fields.map(|field| new_null_array(field.data_type(), 1));
                        beside(at, &nulls.collect::<Vec<_>>(), 1, &self.schema)
                    });
                    at.row += 1;
                    if let Some(padded) = padded {
                        return padded.map(Some);
                    }
                }
            }
        }
    }
}

/// The outer row as often as there are rows beside it.
fn beside(at: &At, rows: &[ArrayRef], count: usize, schema: &SchemaRef) -> Result<RecordBatch> {
    let place = u32::try_from(at.row).unwrap_or(u32::MAX);
    let places = UInt32Array::from_value(place, count);
    let outer = at.batch.columns().iter();
    let mut columns = outer
        .map(|column| Ok(take(column, &places, None)?))
        .collect::<Result<Vec<_>>>()?;
    columns.extend(rows.iter().cloned());
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
