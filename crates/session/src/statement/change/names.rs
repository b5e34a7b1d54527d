//! Which tables the names in the values that rows get mean, and in what chooses these rows.
//!
//! `mayfly_sql` settles them; here it is given the tables, where there is something to settle.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast;
use mayfly_sql::change::{self, Mention};
use mayfly_sql::references::References;
use mayfly_sql::source::Source;
use mayfly_sql::statement::RowChoice;
use mayfly_table::Table;
use mayfly_types::MySqlError;

use crate::statement::Job;

impl Job {
    /// Settles which tables the names of a change mean, in the rows that it chooses and in the
    /// values that these get. Returns the text to plan it with.
    pub(crate) async fn settle_names(
        &self,
        choice: &mut RowChoice,
        values: Vec<&mut ast::Expr>,
    ) -> Result<Arc<Source>, MySqlError> {
        if !change::is_needed_in_change(choice, values.iter().map(|value| &**value)) {
            return Ok(Arc::clone(&self.source));
        }
        let list = values.iter().map(|value| (**value).clone()).collect();
        let query = change::query(choice.clone(), list)?;
        let bindings = self.bindings(&References::of_query(&query)).await?;
        let written = change::settle_names(choice, values.into_iter(), &self.source, &bindings)?;
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
        if !change::is_needed_in_value(value, mention, new_row) {
            return Ok(());
        }
        let bindings = self.bindings(&References::of_expression(value)).await?;
        let columns = table.columns().iter().map(|column| &column.name);
        change::settle_names_of(value, mention, columns, new_row, &bindings)
    }
}
