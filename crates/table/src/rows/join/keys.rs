//! The keys of a batch that looks for partners.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;

use super::super::Error;
use super::super::encode::{GroupInput, KeysView, RowBlock};
use super::super::segment::Shape;
use super::super::slices::cut;
use super::side::SideRows;

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
