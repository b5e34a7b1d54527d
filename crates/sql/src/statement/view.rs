//! CREATE, ALTER and DROP VIEW.

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::tokenizer::Location;
use mayfly_table::{CheckOption, ViewAlgorithm, ViewSecurity};

use super::Account;
use super::name::TableName;

/// CREATE VIEW and ALTER VIEW.
#[derive(Debug, Clone)]
pub struct CreateView {
    /// What becomes of a view that has the name.
    pub old: OldView,
    /// IF NOT EXISTS (MariaDB).
    pub if_not_exists: bool,
    /// ALGORITHM.
    pub algorithm: ViewAlgorithm,
    /// DEFINER; `None` is who makes it.
    pub definer: Option<Account>,
    /// SQL SECURITY.
    pub security: ViewSecurity,
    /// The view.
    pub name: TableName,
    /// What its columns are called; empty: as those of the query.
    pub columns: Vec<String>,
    /// The query.
    pub query: Box<ast::Query>,
    /// Where the query stands in the statement.
    pub place: (Location, Location),
    /// WITH CHECK OPTION.
    pub check: Option<CheckOption>,
}

/// What becomes of a view whose name another one is to get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldView {
    /// It must not be there.
    Refused,
    /// OR REPLACE: it goes.
    Replaced,
    /// ALTER VIEW: it must be there, and goes.
    Needed,
}

/// DROP VIEW.
#[derive(Debug, Clone)]
pub struct DropView {
    /// IF EXISTS.
    pub if_exists: bool,
    /// The views.
    pub names: Vec<TableName>,
}
