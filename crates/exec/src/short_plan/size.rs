//! How much a short plan may have to do.

/// How much a plan may have to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The rows that go into or come out of any of its steps.
    pub rows: u64,
    /// The bytes that the rows of its tables take, about.
    pub bytes_read: u64,
}
