//! The text of a definition, as SHOW CREATE TABLE prints it.

use mayfly_table::{Check, Column, Definition, Key, KeyKind, Using};
use mayfly_types::ColumnType;

use super::super::evaluate::{is_bits, is_constant, literal};

/// The lines between the parentheses: columns, keys, constraints.
pub(crate) fn lines(definition: &Definition) -> Vec<String> {
    let columns = definition.columns.iter().map(column);
    let keys = definition.keys.iter().map(|one| key(definition, one));
    let checks = definition.checks.iter().map(check);
    columns.chain(keys).chain(checks).collect()
}

fn key(definition: &Definition, key: &Key) -> String {
    let parts: Vec<String> = key
        .parts
        .iter()
        .map(|part| {
            let mut text = quoted(&definition.columns[part.column].name);
            if let Some(length) = part.prefix {
                text.push_str(&format!("({length})"));
            }
            if part.is_descending {
                text.push_str(" DESC");
            }
            text
        })
        .collect();
    let name = match key.kind {
        KeyKind::Primary => "PRIMARY KEY".to_owned(),
        KeyKind::Unique => format!("UNIQUE KEY {}", quoted(&key.name)),
        KeyKind::Plain => format!("KEY {}", quoted(&key.name)),
    };
    let comment = match key.comment.as_str() {
        "" => String::new(),
        comment => format!(" COMMENT {}", string(comment)),
    };
    let using = match key.using {
        Some(Using::BTree) => " USING BTREE",
        Some(Using::Hash) => " USING HASH",
        None => "",
    };
    format!("  {name} ({}){using}{comment}", parts.join(","))
}

fn check(check: &Check) -> String {
    let enforced = match check.is_enforced {
        true => "",
        false => " /*!80016 NOT ENFORCED */",
    };
    let name = quoted(&check.name);
    format!("  CONSTRAINT {name} CHECK ({}){enforced}", check.expression)
}

fn column(column: &Column) -> String {
    let mut text = format!("  {} {}", quoted(&column.name), column.column_type);
    if let Some(generated) = &column.generated {
        let kind = if generated.is_stored {
            "STORED"
        } else {
            "VIRTUAL"
        };
        text.push_str(&format!(
            " GENERATED ALWAYS AS ({}) {kind}",
            generated.expression
        ));
    }
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
        Some(bits) if is_bits_text(bits) => text.push_str(&format!(" DEFAULT {bits}")),
        Some(default) => match default_value(default) {
            Some(value) => text.push_str(&format!(" DEFAULT {}", string(&value))),
            None => text.push_str(" DEFAULT NULL"),
        },
        None if column.is_nullable && !never_prints_null && column.generated.is_none() => {
            text.push_str(" DEFAULT NULL")
        }
        None => {}
    }
    if let Some(now) = &column.on_update {
        text.push_str(&format!(" ON UPDATE {}", now.to_ascii_uppercase()));
    }
    if column.is_auto_increment {
        text.push_str(" AUTO_INCREMENT");
    }
    if column.is_invisible {
        text.push_str(" /*!80023 INVISIBLE */");
    }
    if !column.comment.is_empty() {
        text.push_str(&format!(" COMMENT {}", string(&column.comment)));
    }
    text
}

/// The text of a constant default; `None` for NULL.
pub(crate) fn default_value(text: &str) -> Option<String> {
    let expression = mayfly_sql::parse::parse_expression(text).ok()?;
    match literal(&expression) {
        Some(value) if value.is_null() => None,
        Some(value) => Some(value.to_string()),
        None => Some(bare(text).to_owned()),
    }
}

pub(crate) fn is_expression(text: &str) -> bool {
    mayfly_sql::parse::parse_expression(text).is_ok_and(|expression| !is_constant(&expression))
}

/// Whether a default is `b'101'`, which is shown as it stands.
fn is_bits_text(text: &str) -> bool {
    mayfly_sql::parse::parse_expression(text).is_ok_and(|expression| is_bits(&expression))
}

fn bare(text: &str) -> &str {
    text.strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
        .unwrap_or(text)
}

pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A string as a literal.
pub(crate) fn string(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('\'', "''");
    format!("'{}'", text.replace('\n', "\\n").replace('\r', "\\r"))
}
