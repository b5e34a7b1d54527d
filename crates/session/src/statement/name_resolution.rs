//! What the names of a statement meant.

use std::sync::Weak;

use mayfly_sql::statement::TableName;
use mayfly_table::Table;

/// The tables of a statement, its database, and the version of the variables. No table is kept
/// alive.
pub(super) struct Meanings {
    pub(super) database: Option<String>,
    pub(super) tables: Vec<(TableName, Weak<Table>)>,
    pub(super) variables: u64,
}
