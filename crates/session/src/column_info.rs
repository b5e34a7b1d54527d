//! What is told of the columns of a result.

use std::sync::Arc;

use arrow::datatypes::Schema;
use mayfly_sql::select_list::shown;
use mayfly_types::ColumnType;

/// A column of a result as MySQL describes it to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnInfo {
    /// The label: alias, or the text of the expression as it was written.
    pub name: String,
    /// The MySQL type.
    pub column_type: ColumnType,
    /// Whether NULL can occur.
    pub nullable: bool,
    /// The column of a table that it shows, if it does.
    pub origin: Option<Arc<ColumnOrigin>>,
}

/// The column of a table that a column of a result shows, for drivers that write results back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnOrigin {
    /// The database of the table; empty for a derived table.
    pub database: Arc<str>,
    /// The name of the table; of a derived one its alias.
    pub table: Arc<str>,
    /// What the statement calls the table.
    pub alias: Arc<str>,
    /// The name of the column as it was declared.
    pub column: Arc<str>,
    /// What the keys of the table say of it.
    pub key: KeyRole,
    /// Whether it is in any key.
    pub is_in_key: bool,
    /// Whether it was declared AUTO_INCREMENT.
    pub is_auto_increment: bool,
    /// Whether INSERT must give a value.
    pub needs_value: bool,
    /// Whether an UPDATE of other columns sets it.
    pub sets_itself: bool,
}

/// What a column is in the keys of its table, the strongest role that it has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeyRole {
    /// None, or not the first column of a key.
    #[default]
    None,
    /// Of the primary key.
    Primary,
    /// A unique key by itself.
    Unique,
    /// The first of a key in which it may repeat.
    Repeated,
}

/// Describes the fields of a schema; labels replace the names where given.
pub(crate) fn columns_of(schema: &Schema, labels: Option<&[String]>) -> Vec<ColumnInfo> {
    schema
        .fields()
        .iter()
        .enumerate()
        .map(|(index, field)| ColumnInfo {
            name: shown(
                labels
                    .and_then(|labels| labels.get(index))
                    .unwrap_or(field.name()),
            )
            .to_owned(),
            column_type: ColumnType::from_arrow(field),
            nullable: field.is_nullable(),
            origin: None,
        })
        .collect()
}
