//! The rows of a table that are changed in place.

use super::super::segment::{OpenSegment, Shape};
use super::place_of;

/// The rows of a table, to be changed one by one.
pub(crate) struct Targets<'a> {
    pub(super) shape: &'a Shape,
    pub(super) segments: &'a mut [OpenSegment],
}

impl Targets<'_> {
    #[inline]
    pub(crate) fn row(&mut self, reference: u32) -> &mut [u8] {
        let (segment, offset) = place_of(self.shape, reference);
        &mut self.segments[segment].guard[offset..]
    }
}
