//! The keys of a batch that looks for partners, and the columns of rows that found some.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};
use arrow_schema::ArrowError;
use arrow_select::nullif::nullif;

use super::super::Error;
use super::super::decode::decode_columns;
use super::super::encode::{GroupInput, KeysView, RowBlock};
use super::super::layout::RowLayout;
use super::super::segment::Shape;
use super::super::slices::cut;
use super::side::SideRows;

/// Where a column of a row is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stored {
    /// It is this column of the key.
    Key(usize),
    /// It is this column of the payload.
    Payload(usize),
}

/// The encoded keys of a batch; its buffers are used again for the next one.
pub struct JoinKeys {
    shape: Arc<Shape>,
    block: RowBlock,
}

impl JoinKeys {
    /// For batches whose keys have the types of this side's.
    pub fn new(side: &SideRows) -> JoinKeys {
        JoinKeys {
            shape: Arc::clone(side.shape()),
            block: RowBlock::default(),
        }
    }

    /// Cuts a batch into ranges of rows whose encoded keys are short enough to be at hand at once.
    ///
    /// # Errors
    /// `BudgetExceeded` where the key of a row is too long for any page.
    pub fn cut(&self, rows: usize, key: &[ArrayRef]) -> Result<Vec<Range<usize>>, Error> {
        let input = GroupInput {
            rows,
            key,
            payload: &[],
            states: &[],
        };
        let cuts = cut(&self.shape.layout, &input);
        Ok(cuts.map_err(|row_bytes| self.shape.short_of(row_bytes))?)
    }

    /// Encodes the keys of all rows of a batch, or of what it was cut into.
    ///
    /// # Errors
    /// Where nobody wants their partners any more.
    pub fn encode(&mut self, rows: usize, key: &[ArrayRef]) -> Result<(), Error> {
        self.shape.stop.check()?;
        let input = GroupInput {
            rows,
            key,
            payload: &[],
            states: &[],
        };
        let shape = Arc::clone(&self.shape);
        self.block.encode_keys(&shape.layout, &shape.hasher, &input);
        Ok(())
    }

    /// Gives the memory of unusually long keys back.
    pub fn shrink(&mut self) {
        self.block.shrink();
    }

    pub(crate) fn view(&self) -> KeysView<'_> {
        self.block.keys_view()
    }
}

/// Decodes columns of rows, in the order of `columns`; where `is_absent`, a row is NULL throughout.
pub(crate) fn decode_stored(
    layout: &RowLayout,
    rows: &[&[u8]],
    is_absent: Option<&BooleanArray>,
    columns: &[Stored],
) -> Result<Vec<ArrayRef>, ArrowError> {
    let wants_key = |at: usize| columns.contains(&Stored::Key(at));
    let wants_payload = |at: usize| columns.contains(&Stored::Payload(at));
    let mut found: Vec<(Stored, ArrayRef)> = Vec::with_capacity(columns.len());
    if columns
        .iter()
        .any(|column| matches!(column, Stored::Key(_)))
    {
        let starts = vec![layout.key_start(); rows.len()];
        let arrays = decode_columns(&layout.key, rows, &starts, wants_key)?;
        let places = (0..layout.key.columns.len()).filter(|at| wants_key(*at));
        found.extend(places.map(Stored::Key).zip(arrays));
    }
    if columns
        .iter()
        .any(|column| matches!(column, Stored::Payload(_)))
    {
        let starts: Vec<usize> = rows.iter().map(|row| layout.payload_start(row)).collect();
        let arrays = decode_columns(&layout.payload, rows, &starts, wants_payload)?;
        let places = (0..layout.payload.columns.len()).filter(|at| wants_payload(*at));
        found.extend(places.map(Stored::Payload).zip(arrays));
    }
    let array_of = |column: &Stored| {
        let array = found.iter().find(|(place, _)| place == column);
        let (_, array) = array.expect("every column that is wanted was decoded");
        match is_absent {
            Some(is_absent) => nullif(array, is_absent),
            None => Ok(Arc::clone(array)),
        }
    };
    columns.iter().map(array_of).collect()
}
