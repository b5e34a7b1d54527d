//! Which tables the names in the values that rows get mean, and in what chooses these rows.
//!
//! `mayfly_sql` settles them; here it is given the tables, where there is something to settle.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast;
use mayfly_sql::change::{self, Mention};
use mayfly_sql::names_of_changes;
use mayfly_sql::references::References;
use mayfly_sql::source::Source;
use mayfly_sql::statement::{RowChoice, SetColumn};
use mayfly_table::Table;
use mayfly_types::{ErrorCode, MySqlError};

use crate::statement::Job;

/// The place of the column of a table that an assignment names.
///
/// # Errors
/// 1054 where it has none of that name.
pub(crate) fn assigned_place(
    set: &SetColumn,
    (table, mention): (&Table, &Mention),
    database: Option<&str>,
) -> Result<usize, MySqlError> {
    let unknown = || MySqlError::new(ErrorCode::UnknownColumn, &[&set.name(), &"field list"]);
    if { set.table.as_ref() }.is_some_and(|named| !mention.owns(named, database)) {
        return Err(unknown());
    }
    table.definition().column(&set.column).ok_or_else(unknown)
}

impl Job {
    /// Settles which tables the names of a change mean, in the rows that it chooses and in the
    /// values that these get. Returns the text to plan it with.
    pub(crate) async fn settle_names(
        &self,
        choice: &mut RowChoice,
        values: Vec<&mut ast::Expr>,
    ) -> Result<Arc<Source>, MySqlError> {
        if !names_of_changes::is_needed_in_change(choice, values.iter().map(|value| &**value)) {
            return Ok(Arc::clone(&self.source));
        }
        let list = values.iter().map(|value| (**value).clone()).collect();
        let query = change::query(choice.clone(), list)?;
        let bindings = self.bindings(&References::of_query(&query)).await?;
        let written =
            names_of_changes::in_change(choice, values.into_iter(), &self.source, &bindings)?;
        Ok(written.map_or_else(|| Arc::clone(&self.source), Arc::new))
    }

    /// Settles which tables the names of a value mean that a row of a table gets. `new_row` is what
    /// the row that would have come is called.
    pub(crate) async fn settle_names_of(
        &self,
        value: &mut ast::Expr,
        (table, mention): (&Table, &Mention),
        new_row: Option<&str>,
    ) -> Result<(), MySqlError> {
        if !names_of_changes::is_needed_in_value(value, mention, new_row) {
            return Ok(());
        }
        let bindings = self.bindings(&References::of_expression(value)).await?;
        let columns = table.columns().iter().map(|column| &column.name);
        names_of_changes::in_value(value, mention, columns, new_row, &bindings)
    }
}
