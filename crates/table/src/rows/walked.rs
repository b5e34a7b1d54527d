//! The living rows of a page, as those who put them elsewhere want them.

use super::encode::RowsView;
use super::layout::RowLayout;
use super::segment::{OpenSegment, walk};

/// Where the living rows of a page lie, and their hashes; its buffers are kept from page to page.
#[derive(Default)]
pub(crate) struct Walked {
    offsets: Vec<u32>,
    hashes: Vec<u64>,
}

impl Walked {
    /// The living rows of a page, in page order.
    pub(crate) fn rows<'a>(
        &'a mut self,
        layout: &RowLayout,
        page: &'a OpenSegment,
    ) -> RowsView<'a> {
        let Walked { offsets, hashes } = self;
        walk(layout, &page.guard, page.used, offsets, hashes);
        RowsView {
            bytes: &page.guard,
            offsets,
            hashes,
        }
    }

    /// Where the rows of the last page lay.
    pub(crate) fn offsets(&self) -> &[u32] {
        &self.offsets
    }
}
