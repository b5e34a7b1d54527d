//! COLUMNS.

use mayfly_table::Column;
use mayfly_types::{ColumnType, ErrorCode, Level, MySqlError, Warning};

use super::super::Job;
use super::super::define::{CHARACTER_BYTES, declared_length};
use super::super::show::columns::{PRIVILEGES, collation, extra, key_of};
use super::super::show::definition::default_value;
use super::system::{CATALOG, MYSQL};
use super::views::all_views;
use crate::listing::{Listing, some};

pub(super) fn columns(job: &Job) -> Listing {
    let mut listing = Listing::new(&[
        "TABLE_CATALOG",
        "TABLE_SCHEMA",
        "TABLE_NAME",
        "COLUMN_NAME",
        "ORDINAL_POSITION",
        "COLUMN_DEFAULT",
        "IS_NULLABLE",
        "DATA_TYPE",
        "CHARACTER_MAXIMUM_LENGTH",
        "CHARACTER_OCTET_LENGTH",
        "NUMERIC_PRECISION",
        "NUMERIC_SCALE",
        "DATETIME_PRECISION",
        "CHARACTER_SET_NAME",
        "COLLATION_NAME",
        "COLUMN_TYPE",
        "COLUMN_KEY",
        "EXTRA",
        "PRIVILEGES",
        "COLUMN_COMMENT",
        "GENERATION_EXPRESSION",
        "SRS_ID",
    ])
    .with_numbers(&[
        "ORDINAL_POSITION",
        "CHARACTER_MAXIMUM_LENGTH",
        "CHARACTER_OCTET_LENGTH",
        "NUMERIC_PRECISION",
        "NUMERIC_SCALE",
        "DATETIME_PRECISION",
        "SRS_ID",
    ]);
    for (name, definition) in job.logs(MYSQL) {
        for (index, column) in definition.columns.iter().enumerate() {
            listing.push(row((MYSQL, name), index, column, ""));
        }
    }
    for (database, table, _) in job.all_tables() {
        let definition = table.definition();
        for (index, column) in definition.columns.iter().enumerate() {
            let key = key_of(definition, index);
            listing.push(row((&database, table.name()), index, column, key));
        }
    }
    listing
}

impl Job {
    /// Adds the columns of views, which are planned for it; one that is invalid has none, and a
    /// warning.
    pub(super) async fn add_columns_of_views(
        &self,
        listing: &mut Listing,
    ) -> Result<(), MySqlError> {
        for (database, view) in all_views(self) {
            match self.view_columns(&database, &view).await {
                Ok(columns) => {
                    for (index, column) in columns.iter().enumerate() {
                        listing.push(row((&database, &view.name), index, column, ""));
                    }
                }
                Err(error) if error.is(ErrorCode::ViewInvalid) => {
                    let level = Level::Warning;
                    self.connection.warn(Warning { level, error });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The row of a column at a place of a table.
fn row(
    (database, table): (&str, &str),
    index: usize,
    column: &Column,
    key: &str,
) -> Vec<Option<String>> {
    let mut row = vec![
        some(CATALOG),
        some(database),
        some(table),
        some(&column.name),
        some(index + 1),
        column.default.as_deref().and_then(default_value),
        some(if column.is_nullable { "YES" } else { "NO" }),
        some(data_type(&column.column_type)),
    ];
    row.extend(lengths(&column.column_type));
    row.extend(numbers(&column.column_type));
    let digits = match column.column_type {
        ColumnType::Date | ColumnType::Year => None,
        ref other => other.is_temporal().then(|| other.second_digits()),
    };
    row.extend([
        digits.map(|digits| digits.to_string()),
        character_set(column),
        collation(column),
        some(&column.column_type),
        some(key),
        some(extra(column)),
        some(PRIVILEGES),
        some(&column.comment),
        some(
            column
                .generated
                .as_ref()
                .map_or("", |generated| &generated.expression),
        ),
        None,
    ]);
    row
}

/// The name of a type alone: `decimal` of `decimal(10,2) unsigned`.
fn data_type(column_type: &ColumnType) -> String {
    let text = column_type.to_string();
    let name = text.split(['(', ' ']).next();
    name.unwrap_or_default().to_owned()
}

fn character_set(column: &Column) -> Option<String> {
    column.column_type.is_text().then(|| {
        column
            .collation
            .unwrap_or_default()
            .character_set()
            .to_string()
    })
}

/// The longest value, in characters and in bytes.
fn lengths(column_type: &ColumnType) -> [Option<String>; 2] {
    let characters = |word: &String| word.chars().count() as u64;
    let (length, bytes) = match column_type {
        ColumnType::Text(size) | ColumnType::Blob(size) => (size.max_bytes(), size.max_bytes()),
        ColumnType::Enum(words) => {
            let length = words.iter().map(characters).max().unwrap_or(0);
            (length, length * CHARACTER_BYTES)
        }
        ColumnType::Set(words) => {
            let commas = words.len().saturating_sub(1) as u64;
            let length = words.iter().map(characters).sum::<u64>() + commas;
            (length, length * CHARACTER_BYTES)
        }
        other => match declared_length(other) {
            Some(length) if other.is_text() => {
                (u64::from(length), u64::from(length) * CHARACTER_BYTES)
            }
            Some(length) => (u64::from(length), u64::from(length)),
            None => return [None, None],
        },
    };
    [some(length), some(bytes)]
}

/// The digits of a number, and those behind the point.
fn numbers(column_type: &ColumnType) -> [Option<String>; 2] {
    let whole = |digits: u8| [some(digits), some(0)];
    match column_type {
        ColumnType::Bool | ColumnType::TinyInt { .. } => whole(3),
        ColumnType::SmallInt { .. } => whole(5),
        ColumnType::MediumInt { .. } => whole(7),
        ColumnType::Int { .. } => whole(10),
        ColumnType::BigInt { unsigned: false } => whole(19),
        ColumnType::BigInt { unsigned: true } => whole(20),
        ColumnType::Bit { length } => [some(length), None],
        ColumnType::Decimal {
            precision, scale, ..
        } => [some(precision), some(scale)],
        ColumnType::Float { digits: None, .. } => [some(12), None],
        ColumnType::Double { digits: None, .. } => [some(22), None],
        ColumnType::Float {
            digits: Some(digits),
            ..
        }
        | ColumnType::Double {
            digits: Some(digits),
            ..
        } => [some(digits.total), some(digits.fraction)],
        _ => [None, None],
    }
}
