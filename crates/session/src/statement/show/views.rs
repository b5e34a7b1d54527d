//! SHOW about views.

use mayfly_sql::statement::TableName;
use mayfly_table::View;
use mayfly_types::{ErrorCode, MySqlError};

use super::super::Job;
use super::definition::quoted;
use crate::errors;
use crate::listing::{Listing, some};

impl Job {
    /// SHOW CREATE VIEW. A temporary table of the name does not hide the view.
    pub(super) fn show_create_view(&self, name: &TableName) -> Result<Listing, MySqlError> {
        let database = self.database_of(name)?;
        let table = &name.table;
        if let Some(view) = self.connection.view(&database, table) {
            return self.definition_of_view(&view);
        }
        let is_table = [true, false]
            .iter()
            .any(|temporary| self.connection.exists(&database, table, *temporary));
        Err(match is_table {
            true => MySqlError::new(ErrorCode::ViewNotObject, &[&database, table, &"VIEW"]),
            false => MySqlError::no_such_table(&database, table),
        })
    }

    /// What SHOW CREATE VIEW and SHOW CREATE TABLE show of a view.
    ///
    /// # Errors
    /// 1235 where its text would make another view.
    pub(super) fn definition_of_view(&self, view: &View) -> Result<Listing, MySqlError> {
        if !self.reads_as_written(view) {
            let what = "SHOW CREATE of a view with || where sql_mode gives it another meaning";
            return Err(errors::not_supported(what));
        }
        let mut listing = Listing::new(&[
            "View",
            "Create View",
            "character_set_client",
            "collation_connection",
        ]);
        listing.push(vec![
            some(&view.name),
            Some(self.in_own_quotes(definition(view))),
            some(&view.character_set_client),
            some(&view.collation_connection),
        ]);
        Ok(listing)
    }
}

/// The statement that makes a view.
fn definition(view: &View) -> String {
    let (user, host) = &view.definer;
    let mut text = format!(
        "CREATE ALGORITHM={} DEFINER={}@{} SQL SECURITY {} VIEW {}",
        view.algorithm,
        quoted(user),
        quoted(host),
        view.security,
        quoted(&view.name)
    );
    if view.names_columns {
        let columns: Vec<String> = view.columns.iter().map(|name| quoted(name)).collect();
        text.push_str(&format!(" ({})", columns.join(",")));
    }
    text.push_str(&format!(" AS {}", view.query));
    if let Some(check) = view.check {
        text.push_str(&format!(" WITH {check} CHECK OPTION"));
    }
    text
}
