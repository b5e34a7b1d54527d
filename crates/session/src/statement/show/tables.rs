//! SHOW about databases and tables.

use std::sync::Arc;

use arrow::datatypes::Field;
use mayfly_sql::ansi;
use mayfly_sql::file_name::FileName;
use mayfly_sql::statement::TableName;
use mayfly_table::{Column, Definition, Table, View};
use mayfly_types::{Collation, ColumnType, ErrorCode, MySqlError};

use super::super::{Job, information};
use super::columns::{column_row, columns_listing, key_of};
use super::definition::{self, quoted};
use super::table_status::{next_number, status, status_of_log, status_of_view};
use crate::listing::{Listing, some};

impl Job {
    pub(super) fn list_databases(&self) -> Listing {
        let mut listing = Listing::new(&["Database"]);
        for name in self.databases() {
            listing.push(vec![Some(name)]);
        }
        listing
    }

    /// Temporary tables of this session first, then the shared ones, as MariaDB lists them.
    pub(super) fn list_tables(&self, database: &str, full: bool) -> Result<Listing, MySqlError> {
        let columns: &[&'static str] = if full {
            &["Tables_in", "Table_type"]
        } else {
            &["Tables_in"]
        };
        let mut listing = Listing::new(columns);
        for name in self.listed_system_names(database) {
            let kind = full.then(|| some(information::kind_of(database)));
            listing.push([Some(some(name)), kind].into_iter().flatten().collect());
        }
        let tables = self.tables_of(database);
        let (own, shared): (Vec<_>, Vec<_>) = tables
            .into_iter()
            .partition(|(_, is_temporary)| *is_temporary);
        let own = own
            .iter()
            .map(|(table, _)| (table.name(), "TEMPORARY TABLE"));
        let views = self.views_of(database);
        let tables = shared.iter().map(|(table, _)| (table.name(), "BASE TABLE"));
        let views = views.iter().map(|view| (view.name.as_str(), "VIEW"));
        let mut shared: Vec<(&str, &str)> = tables.chain(views).collect();
        shared.sort_unstable();
        for (name, kind) in own.chain(shared) {
            let mut row = vec![some(name)];
            if full {
                row.push(some(kind));
            }
            listing.push(row);
        }
        Ok(listing)
    }

    /// The views of a database in the order of their names.
    pub(crate) fn views_of(&self, database: &str) -> Vec<Arc<View>> {
        self.connection.engine.shared().dictionary.views(database)
    }

    pub(crate) fn tables_of(&self, database: &str) -> Vec<(Arc<Table>, bool)> {
        let temporary = self.connection.local().temporary.tables();
        let shared = self.connection.engine.shared().dictionary.tables(database);
        let mut tables: Vec<_> = temporary
            .into_iter()
            .filter(|(of, _)| of == database)
            .map(|(_, table)| (table, true))
            .collect();
        tables.extend(
            shared
                .unwrap_or_default()
                .into_iter()
                .map(|table| (table, false)),
        );
        tables
    }

    pub(super) fn list_table_status(&self, database: &str) -> Result<Listing, MySqlError> {
        let mut listing = Listing::new(&[
            "Name",
            "Engine",
            "Version",
            "Row_format",
            "Rows",
            "Avg_row_length",
            "Data_length",
            "Max_data_length",
            "Index_length",
            "Data_free",
            "Auto_increment",
            "Create_time",
            "Update_time",
            "Check_time",
            "Collation",
            "Checksum",
            "Create_options",
            "Comment",
            "Temporary",
        ])
        .with_numbers(&[
            "Version",
            "Rows",
            "Avg_row_length",
            "Data_length",
            "Index_length",
            "Auto_increment",
        ]);
        for (table, is_temporary) in self.tables_of(database) {
            let mut row = vec![some(table.name())];
            row.extend(status(&table));
            row.push(some(if is_temporary { "Y" } else { "N" }));
            listing.push(row);
        }
        for (name, definition) in self.logs(database) {
            let mut row = vec![some(name)];
            row.extend(status_of_log(&definition));
            row.push(some("N"));
            listing.push(row);
        }
        for view in self.views_of(database) {
            let mut row = vec![some(&view.name)];
            row.extend(status_of_view());
            row.push(None);
            listing.push(row);
        }
        listing.sort_behind(0, |row| {
            row.last().is_some_and(|own| own.as_deref() == Some("Y"))
        });
        Ok(listing)
    }

    pub(super) async fn list_columns(
        &self,
        name: &TableName,
        full: bool,
    ) -> Result<Listing, MySqlError> {
        let mut listing = columns_listing(full);
        let database = self.database_of(name)?;
        let logs = self.logs(&database).into_iter();
        if let Some((_, log)) = { logs }.find(|(log, _)| log.eq_ignore_ascii_case(&name.table)) {
            for column in &log.columns {
                listing.push(column_row(column, "", full));
            }
            return Ok(listing);
        }
        if let Some(made) = self.system_table(&database, name) {
            for (name, column_type) in made.columns() {
                let column = Column::new(*name, column_type.clone(), true);
                listing.push(column_row(&column, "", full));
            }
            return Ok(listing);
        }
        if information::is_database(&database) {
            return Err(information::unknown_table(&name.table));
        }
        if let Some((database, view)) = self.view(name) {
            for column in self.view_columns(&database, &view).await? {
                listing.push(column_row(&column, "", full));
            }
            return Ok(listing);
        }
        let table = self.table(name)?;
        let definition = table.definition();
        for (index, column) in definition.columns.iter().enumerate() {
            listing.push(column_row(column, key_of(definition, index), full));
        }
        Ok(listing)
    }

    pub(super) async fn list_file_columns(&self, name: &str) -> Result<Listing, MySqlError> {
        let table = self.open_file(&FileName::of(name)?).await?;
        let mut listing = columns_listing(false);
        for field in table.schema().fields() {
            let field: &Field = field;
            let column = Column::new(
                field.name(),
                ColumnType::from_arrow(field),
                field.is_nullable(),
            );
            listing.push(column_row(&column, "", false));
        }
        Ok(listing)
    }

    pub(super) fn show_create_database(
        &self,
        name: &str,
        if_not_exists: bool,
    ) -> Result<Listing, MySqlError> {
        if !self.has_database(name) {
            return Err(MySqlError::new(ErrorCode::UnknownDatabase, &[&name]));
        }
        let mut listing = Listing::new(&["Database", "Create Database"]);
        let condition = match if_not_exists {
            true => "/*!32312 IF NOT EXISTS*/ ",
            false => "",
        };
        let text = format!(
            "CREATE DATABASE {condition}{} /*!40100 DEFAULT CHARACTER SET utf8mb4 */ {}",
            quoted(name),
            Collation::default().clause(" ")
        );
        listing.push(vec![some(name), Some(self.in_own_quotes(text))]);
        Ok(listing)
    }

    /// A definition with its names in the quotes that `sql_mode` wants.
    pub(super) fn in_own_quotes(&self, text: String) -> String {
        match self.connection.local().settings().has_ansi_quotes {
            true => ansi::shown(&text),
            false => text,
        }
    }

    pub(super) fn show_create_table(&self, name: &TableName) -> Result<Listing, MySqlError> {
        if let Some((_, view)) = self.view(name) {
            return self.definition_of_view(&view);
        }
        let database = self.database_of(name)?;
        let logs = self.logs(&database);
        if let Some((log, definition)) = logs.iter().find(|(log, _)| *log == name.table) {
            return Ok(self.definition_of_table("TABLE", log, definition, None));
        }
        let table = self.table(name)?;
        let is_temporary = self
            .connection
            .local()
            .temporary
            .table(&database, &name.table)
            .is_some();
        let kind = match is_temporary {
            true => "TEMPORARY TABLE",
            false => "TABLE",
        };
        let next = next_number(&table).filter(|next| *next > 1);
        Ok(self.definition_of_table(kind, table.name(), table.definition(), next))
    }

    /// The answer of SHOW CREATE TABLE, with the AUTO_INCREMENT value that is shown.
    fn definition_of_table(
        &self,
        kind: &str,
        name: &str,
        definition: &Definition,
        next: Option<u64>,
    ) -> Listing {
        let next = next.map_or(String::new(), |next| format!(" AUTO_INCREMENT={next}"));
        let lines = definition::lines(definition).join(",\n");
        let mut text = format!("CREATE {kind} {} (\n{lines}\n)", quoted(name));
        // Other systems, for which this mode is, have no such options.
        if !self.connection.local().variables.has_mode("ANSI") {
            text.push_str(&format!(
                " ENGINE=Mayfly{next} DEFAULT CHARSET=utf8mb4 {}",
                Collation::default().clause("=")
            ));
            for (option, value) in &definition.options {
                text.push_str(&format!(" {}={value}", option.name()));
            }
            let comment = &definition.comment;
            if !comment.is_empty() {
                text.push_str(&format!(" COMMENT={}", definition::string(comment)));
            }
        }
        let mut listing = Listing::new(&["Table", "Create Table"]);
        listing.push(vec![some(name), Some(self.in_own_quotes(text))]);
        listing
    }
}
