//! Which tables the names in the values that rows get mean, and in what chooses these rows.
//!
//! `mayfly_sql` settles them; here it is given the tables, where there is something to settle.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast;
use mayfly_sql::change::{self, Mention};
use mayfly_sql::names_of_changes::{self, RowColumns};
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

/// The columns that assignments behind others read as these have made them.
pub(crate) fn assigned_before(assignments: &[SetColumn]) -> RowColumns {
    let before = assignments
        .split_last()
        .map_or(&[][..], |(_, before)| before);
    RowColumns::of(before.iter().map(|set| &set.column))
}

impl Job {
    /// Settles which tables the names of a change mean, in the rows that it chooses and in the
    /// values that these get. Returns the text to plan it with.
    pub(crate) async fn settle_names(
        &self,
        choice: &mut RowChoice,
        assignments: &mut [SetColumn],
    ) -> Result<Arc<Source>, MySqlError> {
        let columns = match change::only_table(&choice.from) {
            Some(_) => assigned_before(assignments),
            None => RowColumns::default(),
        };
        let values = assignments.iter().filter_map(|set| set.value.as_ref());
        if !names_of_changes::is_needed_in_change(choice, values.clone(), &columns) {
            return Ok(Arc::clone(&self.source));
        }
        let query = change::query(choice.clone(), values.cloned().collect())?;
        let bindings = self.bindings(&References::of_query(&query)).await?;
        let values = assignments.iter_mut().filter_map(|set| set.value.as_mut());
        let (source, bindings) = (&self.source, &bindings);
        let written = names_of_changes::in_change(choice, values, columns, source, bindings)?;
        Ok(written.map_or_else(|| Arc::clone(&self.source), Arc::new))
    }

    /// Settles which tables the names of a value mean that a row of a table gets, into which some
    /// columns are put. `new_row` is what the row that would have come is called.
    pub(crate) async fn settle_names_of(
        &self,
        value: &mut ast::Expr,
        (table, mention): (&Table, &Mention),
        new_row: Option<&str>,
        put_in: &RowColumns,
    ) -> Result<(), MySqlError> {
        if !names_of_changes::is_needed_in_value(value, mention, new_row, put_in) {
            return Ok(());
        }
        let bindings = self.bindings(&References::of_expression(value)).await?;
        let columns = table.columns().iter().map(|column| &column.name);
        let put_in = put_in.clone();
        names_of_changes::in_value(value, mention, columns, new_row, put_in, &bindings)
    }
}
