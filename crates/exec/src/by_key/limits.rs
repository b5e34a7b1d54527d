//! How many rows a key may be asked for.

/// A row that a condition finds, among many that are read page by page or off the key, costs as
/// much as so many rows in a scan.
pub(crate) const ROWS_PER_SEARCHED: u64 = 32;

/// The same for a row that is looked up for another one or read in the order of a key: few of
/// those that are read together lie in one page.
pub(super) const ROWS_PER_LOOKED_UP: u64 = 128;

/// So few rows are always read by key.
pub(crate) const ROWS_FEW: u64 = 64;
/// The rows that are read by key at most.
pub(crate) const ROWS_MAX: u64 = 1 << 20;

/// How many rows of a table are looked up before a scan is cheaper.
pub(crate) fn rows_by_key(row_count: u64) -> u64 {
    (row_count / ROWS_PER_LOOKED_UP).clamp(ROWS_FEW, ROWS_MAX)
}
