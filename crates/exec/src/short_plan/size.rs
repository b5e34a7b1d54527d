//! How much a short plan may have to do.

/// How much a plan may have to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The rows that go into or come out of any of its steps.
    pub rows: u64,
    /// The bytes that the rows of its tables take, about.
    pub bytes_read: u64,
    /// The same of rows that a filter sees page by page, of which few are to be left.
    pub filtered: Filtered,
}

/// How much of a table a filter may look through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filtered {
    /// Its rows.
    pub rows: u64,
    /// The bytes that they take, about.
    pub bytes: u64,
}

impl Size {
    /// So many rows and bytes, whatever is done with them.
    pub const fn of(rows: u64, bytes_read: u64) -> Size {
        let bytes = bytes_read;
        Size {
            rows,
            bytes_read,
            filtered: Filtered { rows, bytes },
        }
    }
}
