//! What the tables and rows of a statement that changes them are called in its plan.

/// The database under which tables that change are bound, by [`target_name`].
pub const TARGETS: &str = "\u{1}changed";
/// The column that holds the id of a row.
pub const ROW_ID: &str = "\u{1}row";

/// The name that the n-th table that changes is bound to.
pub fn target_name(number: usize) -> String {
    format!("\u{1}table {number}")
}
