//! SHOW about databases and tables.

use arrow::datatypes::Field;
use mayfly_sql::statement::TableName;
use mayfly_table::{Column, Table};
use mayfly_types::{Collation, ColumnType, ErrorCode, MySqlError};

use super::super::Job;
use super::super::evaluate::literal;
use crate::files;
use crate::listing::{Listing, some};

impl Job {
    pub(super) fn list_databases(&self) -> Listing {
        let mut listing = Listing::new(&["Database"]);
        for name in self.connection.engine.shared().dictionary.databases() {
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
        for (table, is_temporary) in self.tables_of(database) {
            let kind = if is_temporary {
                "TEMPORARY TABLE"
            } else {
                "BASE TABLE"
            };
            let mut row = vec![some(table.name())];
            if full {
                row.push(some(kind));
            }
            listing.push(row);
        }
        Ok(listing)
    }

    fn tables_of(&self, database: &str) -> Vec<(std::sync::Arc<Table>, bool)> {
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
        .with_numbers(&["Version", "Rows", "Avg_row_length", "Data_length"]);
        for (table, is_temporary) in self.tables_of(database) {
            let rows = table.row_count();
            let bytes = table.bytes();
            listing.push(vec![
                some(table.name()),
                some("Mayfly"),
                some(10),
                some("Dynamic"),
                some(rows),
                some(bytes.checked_div(rows).unwrap_or(0)),
                some(bytes),
                some(0),
                some(0),
                some(0),
                None,
                None,
                None,
                None,
                some(Collation::default()),
                None,
                some(""),
                some(""),
                some(if is_temporary { "Y" } else { "N" }),
            ]);
        }
        Ok(listing)
    }

    pub(super) fn list_columns(&self, name: &TableName, full: bool) -> Result<Listing, MySqlError> {
        let table = self.table(name)?;
        let mut listing = columns_listing(full);
        for column in table.columns() {
            listing.push(column_row(column, full));
        }
        Ok(listing)
    }

    pub(super) async fn list_file_columns(&self, path: &str) -> Result<Listing, MySqlError> {
        let table = files::open(self.connection.state()?, path).await?;
        let mut listing = columns_listing(false);
        for field in table.schema().fields() {
            let field: &Field = field;
            let column = Column::new(
                field.name(),
                ColumnType::from_arrow(field),
                field.is_nullable(),
            );
            listing.push(column_row(&column, false));
        }
        Ok(listing)
    }

    pub(super) fn show_create_database(&self, name: &str) -> Result<Listing, MySqlError> {
        if !self
            .connection
            .engine
            .shared()
            .dictionary
            .has_database(name)
        {
            return Err(MySqlError::new(ErrorCode::UnknownDatabase, &[&name]));
        }
        let mut listing = Listing::new(&["Database", "Create Database"]);
        let text = format!(
            "CREATE DATABASE {} /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE {} */",
            quoted(name),
            Collation::default()
        );
        listing.push(vec![some(name), Some(text)]);
        Ok(listing)
    }

    pub(super) fn show_create_table(&self, name: &TableName) -> Result<Listing, MySqlError> {
        let table = self.table(name)?;
        let database = self.database_of(name)?;
        let is_temporary = self
            .connection
            .local()
            .temporary
            .table(&database, &name.table)
            .is_some();
        let lines: Vec<String> = table.columns().iter().map(definition).collect();
        let text = format!(
            "CREATE {}TABLE {} (\n{}\n) ENGINE=Mayfly DEFAULT CHARSET=utf8mb4 COLLATE={}",
            if is_temporary { "TEMPORARY " } else { "" },
            quoted(table.name()),
            lines.join(",\n"),
            Collation::default()
        );
        let mut listing = Listing::new(&["Table", "Create Table"]);
        listing.push(vec![some(table.name()), Some(text)]);
        Ok(listing)
    }
}

fn columns_listing(full: bool) -> Listing {
    if full {
        Listing::new(&[
            "Field",
            "Type",
            "Collation",
            "Null",
            "Key",
            "Default",
            "Extra",
            "Privileges",
            "Comment",
        ])
    } else {
        Listing::new(&["Field", "Type", "Null", "Key", "Default", "Extra"])
    }
}

fn column_row(column: &Column, full: bool) -> Vec<Option<String>> {
    let null = some(if column.is_nullable { "YES" } else { "NO" });
    let default = column.default.as_deref().and_then(default_value);
    let generated = column.default.as_deref().is_some_and(is_expression);
    let extra = some(if generated { "DEFAULT_GENERATED" } else { "" });
    let kind = some(&column.column_type);
    if !full {
        return vec![some(&column.name), kind, null, some(""), default, extra];
    }
    let collation = column
        .column_type
        .is_text()
        .then(|| column.collation.unwrap_or_default().to_string());
    vec![
        some(&column.name),
        kind,
        collation,
        null,
        some(""),
        default,
        extra,
        some("select,insert,update,references"),
        some(&column.comment),
    ]
}

fn definition(column: &Column) -> String {
    let mut text = format!("  {} {}", quoted(&column.name), column.column_type);
    if !column.is_nullable {
        text.push_str(" NOT NULL");
    } else if matches!(column.column_type, ColumnType::Timestamp { .. }) {
        text.push_str(" NULL");
    }
    let never_prints_null = matches!(
        column.column_type,
        ColumnType::Text(_) | ColumnType::Blob(_) | ColumnType::Json
    );
    match column.default.as_deref() {
        Some(default) if is_expression(default) => {
            let is_now = default
                .to_ascii_uppercase()
                .starts_with("CURRENT_TIMESTAMP");
            let expression = if is_now {
                default.to_ascii_uppercase()
            } else {
                format!("({})", bare(default))
            };
            text.push_str(&format!(" DEFAULT {expression}"));
        }
        Some(default) => match default_value(default) {
            Some(value) => text.push_str(&format!(" DEFAULT '{}'", value.replace('\'', "''"))),
            None => text.push_str(" DEFAULT NULL"),
        },
        None if column.is_nullable && !never_prints_null => text.push_str(" DEFAULT NULL"),
        None => {}
    }
    if !column.comment.is_empty() {
        text.push_str(&format!(
            " COMMENT '{}'",
            column.comment.replace('\'', "''")
        ));
    }
    text
}

/// The text of a constant default; `None` for NULL.
fn default_value(text: &str) -> Option<String> {
    let expression = mayfly_sql::parse::parse_expression(text).ok()?;
    match literal(&expression) {
        Some(value) if value.is_null() => None,
        Some(value) => Some(value.to_string()),
        None => Some(bare(text).to_owned()),
    }
}

fn is_expression(text: &str) -> bool {
    mayfly_sql::parse::parse_expression(text).is_ok_and(|expression| literal(&expression).is_none())
}

fn bare(text: &str) -> &str {
    text.strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
        .unwrap_or(text)
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
