//! What a row of a table is called.

/// A row of a table: the number of the table, and the reference of the row in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowRef(u64);

impl RowRef {
    /// No row.
    pub const NONE: RowRef = RowRef(u64::MAX);

    pub(crate) fn new(table: usize, reference: u32) -> RowRef {
        RowRef((table as u64) << 32 | u64::from(reference))
    }

    pub(crate) fn table(self) -> usize {
        (self.0 >> 32) as usize
    }

    pub(crate) fn reference(self) -> u32 {
        self.0 as u32
    }

    /// Whether it is a row.
    pub fn is_some(self) -> bool {
        self != RowRef::NONE
    }
}
