//! Columns as SHOW COLUMNS and INFORMATION_SCHEMA show them.

use mayfly_table::{Column, Definition, Key};

use super::definition::{default_value, is_expression};
use crate::listing::{Listing, some};

pub(super) fn columns_listing(full: bool) -> Listing {
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

pub(super) fn column_row(column: &Column, key: &str, full: bool) -> Vec<Option<String>> {
    let null = some(if column.is_nullable { "YES" } else { "NO" });
    let default = column.default.as_deref().and_then(default_value);
    let kind = some(&column.column_type);
    if !full {
        return vec![
            some(&column.name),
            kind,
            null,
            some(key),
            default,
            some(extra(column)),
        ];
    }
    vec![
        some(&column.name),
        kind,
        collation(column),
        null,
        some(key),
        default,
        some(extra(column)),
        some(PRIVILEGES),
        some(&column.comment),
    ]
}

/// What everybody may do with a column.
pub(crate) const PRIVILEGES: &str = "select,insert,update,references";

/// The collation of a column of text.
pub(crate) fn collation(column: &Column) -> Option<String> {
    column
        .column_type
        .is_text()
        .then(|| column.collation.unwrap_or_default().to_string())
}

/// What else is to be said of a column.
pub(crate) fn extra(column: &Column) -> String {
    let mut words = Vec::new();
    if column.is_auto_increment {
        words.push("auto_increment".to_owned());
    }
    match &column.generated {
        Some(generated) if generated.is_stored => words.push("STORED GENERATED".to_owned()),
        Some(_) => words.push("VIRTUAL GENERATED".to_owned()),
        None => {}
    }
    if column.default.as_deref().is_some_and(is_expression) {
        words.push("DEFAULT_GENERATED".to_owned());
    }
    if let Some(now) = &column.on_update {
        words.push(format!("on update {}", now.to_ascii_uppercase()));
    }
    if column.is_invisible {
        words.push("INVISIBLE".to_owned());
    }
    words.join(" ")
}

/// How a column stands in keys: PRI, UNI, MUL or nothing.
pub(crate) fn key_of(definition: &Definition, column: usize) -> &'static str {
    let is_part = |key: &Key| key.parts.iter().any(|part| part.column == column);
    let begins = |key: &&Key| key.parts.first().is_some_and(|part| part.column == column);
    if primary(definition).is_some_and(is_part) {
        return "PRI";
    }
    let mut keys = definition.keys.iter().filter(begins).peekable();
    if keys.peek().is_none() {
        return "";
    }
    match keys.any(|key| key.is_unique() && key.parts.len() == 1) {
        true => "UNI",
        false => "MUL",
    }
}

/// The primary key, or the first key that could be it.
fn primary(definition: &Definition) -> Option<&Key> {
    let mut keys = definition.keys.iter();
    definition
        .primary_key()
        .or_else(|| keys.find(|key| definition.identifies(key)))
}
