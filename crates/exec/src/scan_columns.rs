//! What a scan of a table shows.

use std::sync::Arc;

use arrow::array::UInt64Array;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;

/// Some columns of a table, and among them the ids of its rows if they are asked for.
#[derive(Debug, Clone)]
pub(crate) struct ScanColumns {
    /// The columns of the table that are read; all where there is none.
    pub(crate) projection: Option<Vec<usize>>,
    /// Where the ids of the rows stand among them.
    row_ids: Option<usize>,
    /// What is shown.
    pub(crate) schema: SchemaRef,
}

impl ScanColumns {
    /// Columns of a schema: the `width` ones of the table, and behind them the ids where it has one
    /// more.
    pub(crate) fn new(
        schema: &SchemaRef,
        width: usize,
        projection: Option<&Vec<usize>>,
    ) -> Result<Self> {
        let shown = match projection {
            Some(columns) => Arc::new(schema.project(columns)?),
            None => Arc::clone(schema),
        };
        let has_ids = schema.fields().len() > width;
        let mut projection = match projection {
            None if has_ids => Some((0..=width).collect()),
            projection => projection.cloned(),
        };
        Ok(Self {
            row_ids: projection
                .as_mut()
                .and_then(|columns| take_out(columns, width)),
            projection,
            schema: shown,
        })
    }

    /// Some of them, by their places in rising order; `None` if the ids of rows are among them all.
    pub(crate) fn chosen(&self, places: &[usize]) -> Result<Option<Self>> {
        if self.row_ids.is_some() {
            return Ok(None);
        }
        let columns = places.iter().filter_map(|place| self.of_table(*place));
        Ok(Some(Self {
            projection: Some(columns.collect()),
            row_ids: None,
            schema: Arc::new(self.schema.project(places)?),
        }))
    }

    /// The column of the table that is shown at a place; `None` for the ids of rows.
    pub(crate) fn of_table(&self, place: usize) -> Option<usize> {
        let before = match self.row_ids {
            Some(row_ids) if row_ids == place => return None,
            Some(row_ids) => usize::from(row_ids < place),
            None => 0,
        };
        match &self.projection {
            Some(columns) => columns.get(place - before).copied(),
            None => Some(place - before),
        }
    }

    /// The rows of a batch as they are shown.
    pub(crate) fn show(
        &self,
        rows: RecordBatch,
        ids: impl FnOnce() -> UInt64Array,
    ) -> Result<RecordBatch> {
        let Some(place) = self.row_ids else {
            return Ok(rows);
        };
        let mut columns = rows.columns().to_vec();
        columns.insert(place, Arc::new(ids()));
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

/// Removes the column of the row ids from a projection, and tells where it stood.
fn take_out(columns: &mut Vec<usize>, row_ids: usize) -> Option<usize> {
    let place = columns.iter().position(|column| *column == row_ids)?;
    columns.remove(place);
    Some(place)
}
