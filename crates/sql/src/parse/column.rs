//! The definition of a column: its type and what may be written behind it.
//!
//! Column types are read by `mayfly_types`.

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::tokenizer::Token;
use mayfly_table::KeyKind;
use mayfly_types::{BlobSize, CharacterSet, ColumnType, ErrorCode, MySqlError, NoCollation};

use super::cursor::Cursor;
use super::key;
use super::refusal::{Result, unsupported};
use crate::statement::{ColumnDefinition, GeneratedColumn};

/// Character sets that are stored as UTF-8 without loss.
const SPATIAL: [&str; 9] = [
    "GEOMETRY",
    "POINT",
    "LINESTRING",
    "POLYGON",
    "MULTIPOINT",
    "MULTILINESTRING",
    "MULTIPOLYGON",
    "GEOMETRYCOLLECTION",
    "GEOMCOLLECTION",
];

/// Above every infix operator, so that `DEFAULT 1 NOT NULL` stops after the literal, and so does
/// `DEFAULT 'x' COLLATE utf8mb4_bin`, whose collation is the column's.
const PREFIX_ONLY: u8 = 90;

/// A name and the definition behind it.
pub(super) fn column(cursor: &mut Cursor<'_>) -> Result<ColumnDefinition> {
    let name = cursor.name()?;
    if name.is_empty() || name.ends_with(' ') {
        return Err(MySqlError::new(ErrorCode::WrongColumnName, &[&name]).into());
    }
    let mut definition = ColumnDefinition {
        name,
        column_type: ColumnType::Null,
        character_set: None,
        not_null: false,
        null: false,
        default: None,
        on_update: None,
        generated: None,
        auto_increment: false,
        invisible: false,
        key: None,
        checks: Vec::new(),
        references: false,
        comment: None,
    };
    if cursor.word("SERIAL") {
        definition.column_type = ColumnType::BigInt { unsigned: true };
        serial(&mut definition);
    } else {
        definition.column_type = column_type(cursor, &definition.name)?;
    }
    while attribute(cursor, &mut definition)? {}
    if definition.character_set == Some(CharacterSet::Binary) {
        definition.column_type = as_binary(&definition.column_type);
    }
    if matches!(
        definition.column_type,
        ColumnType::Text(_) | ColumnType::Blob(_) | ColumnType::Json
    ) && matches!(&definition.default, Some(default) if is_literal(default))
    {
        return Err(MySqlError::new(ErrorCode::BlobDefault, &[&definition.name]).into());
    }
    Ok(definition)
}

/// What SERIAL stands for.
fn serial(definition: &mut ColumnDefinition) {
    definition.not_null = true;
    definition.auto_increment = true;
    definition.key = Some(KeyKind::Unique);
}

fn is_literal(expression: &ast::Expr) -> bool {
    matches!(expression, ast::Expr::Value(value) if value.value != ast::Value::Null)
}

/// Reads a type by collecting its text; errors name the column.
pub(super) fn column_type(cursor: &mut Cursor<'_>, column: &str) -> Result<ColumnType> {
    let start = cursor.parser.peek_token_ref().clone();
    let mut text = cursor.any_word()?;
    let first = text.to_ascii_uppercase();
    if first == "LONG" {
        return Ok(long(cursor));
    }
    if ["DOUBLE", "CHARACTER", "CHAR", "NATIONAL", "NCHAR"].contains(&first.as_str()) {
        for _ in 0..2 {
            let more = ["PRECISION", "VARYING", "VARCHARACTER", "VARCHAR"];
            let also =
                first == "NATIONAL" && (cursor.peek_word("CHAR") || cursor.peek_word("CHARACTER"));
            if also || more.iter().any(|word| cursor.peek_word(word)) {
                text.push(' ');
                text.push_str(&cursor.any_word()?);
            }
        }
    }
    if SPATIAL.contains(&first.as_str()) {
        return unsupported(&format!("the type {first}"));
    }
    let lists = first == "ENUM" || first == "SET";
    if cursor.token(&Token::LParen) {
        text.push('(');
        loop {
            match cursor.peek() {
                Token::SingleQuotedString(word) | Token::DoubleQuotedString(word) => {
                    text.push_str(&format!(
                        "'{}'",
                        word.replace('\\', "\\\\").replace('\'', "''")
                    ));
                }
                Token::Number(number, _) if !lists => text.push_str(&number),
                Token::Comma => text.push(','),
                Token::RParen if !text.ends_with('(') => break,
                _ => return cursor.fail("a type"),
            }
            cursor.skip();
        }
        cursor.skip();
        text.push(')');
    } else if text.to_ascii_uppercase().contains("VAR") {
        return cursor.fail("a length");
    }
    loop {
        if cursor.word("UNSIGNED") {
            text.push_str(" unsigned");
        } else if cursor.word("ZEROFILL") {
            return Err(MySqlError::new(ErrorCode::NotSupportedYet, &[&"ZEROFILL"]).into());
        } else if !cursor.word("SIGNED") {
            break;
        }
    }
    text.parse::<ColumnType>().map_err(|mut error| {
        if error.is(ErrorCode::Syntax) {
            match cursor.parser.expected_ref::<()>("a type", &start) {
                Err(refused) => return refused.into(),
                Ok(()) => return error.into(),
            }
        }
        // The type's own text stands where MySQL names the column.
        let word = first.to_ascii_lowercase();
        error.message = error
            .message
            .replace(&format!("'{word}'"), &format!("'{column}'"));
        error.into()
    })
}

/// What follows LONG, which has no length.
fn long(cursor: &mut Cursor<'_>) -> ColumnType {
    if cursor.word("VARBINARY") || cursor.word("BYTE") {
        return ColumnType::Blob(BlobSize::Medium);
    }
    let _ = cursor.word("VARCHAR")
        || cursor.word("VARCHARACTER")
        || cursor.words(&["CHAR", "VARYING"])
        || cursor.words(&["CHARACTER", "VARYING"]);
    ColumnType::Text(BlobSize::Medium)
}

/// Reads what may follow a type; false where nothing of it does.
fn attribute(cursor: &mut Cursor<'_>, definition: &mut ColumnDefinition) -> Result<bool> {
    if cursor.words(&["NOT", "NULL"]) {
        definition.not_null = true;
    } else if cursor.word("NULL") {
        definition.not_null = false;
        definition.null = true;
    } else if cursor.word("DEFAULT") {
        definition.default = Some(default(cursor)?);
    } else if cursor.word("COMMENT") {
        definition.comment = Some(cursor.string()?);
    } else if cursor.words(&["CHARACTER", "SET"]) || cursor.word("CHARSET") {
        let set = character_set(&cursor.value_word()?)?;
        definition.character_set = set.or(definition.character_set);
    } else if cursor.word("BYTE") {
        definition.column_type = as_binary(&definition.column_type);
    } else if cursor.word("COLLATE") {
        let name = cursor.value_word()?;
        let set = collation(&name)?;
        if let (Some(written), Some(set)) = (definition.character_set, set)
            && written != set
        {
            let code = ErrorCode::CollationCharacterSet;
            return Err(MySqlError::new(code, &[&name, &written.name()]).into());
        }
        definition.character_set = set.or(definition.character_set);
    } else if cursor.word("VISIBLE") {
        definition.invisible = false;
    } else if cursor.word("INVISIBLE") {
        definition.invisible = true;
    } else if cursor.word("AUTO_INCREMENT") {
        definition.auto_increment = true;
    } else if cursor.words(&["SERIAL", "DEFAULT", "VALUE"]) {
        serial(definition);
    } else if cursor.word("UNIQUE") {
        let _ = cursor.word("KEY");
        definition.key = definition.key.or(Some(KeyKind::Unique));
    } else if cursor.word("PRIMARY") {
        let _ = cursor.word("KEY");
        definition.key = Some(KeyKind::Primary);
    } else if cursor.word("KEY") {
        definition.key = Some(KeyKind::Primary);
    } else if cursor.words(&["GENERATED", "ALWAYS", "AS"]) || cursor.word("AS") {
        definition.generated = Some(generated(cursor)?);
    } else if cursor.words(&["ON", "UPDATE"]) {
        definition.on_update = Some(now(cursor)?);
    } else if cursor.peek_word("CHECK") || cursor.peek_word("CONSTRAINT") {
        let name = match cursor.word("CONSTRAINT") {
            true if cursor.peek_word("CHECK") => None,
            true => Some(cursor.name()?),
            false => None,
        };
        let mut check = key::check(cursor, name)?;
        check.column = Some(definition.name.clone());
        definition.checks.push(check);
    } else if cursor.word("REFERENCES") {
        key::referenced(cursor)?;
        definition.references = true;
        // In MySQL it is the last of what a column has.
        return Ok(false);
    } else if cursor.word("COLUMN_FORMAT") {
        one_of(cursor, ["FIXED", "DYNAMIC", "DEFAULT"])?;
    } else if cursor.word("STORAGE") {
        one_of(cursor, ["DISK", "MEMORY", "DEFAULT"])?;
    } else {
        // Of no effect: the text is UTF-8 whatever they say.
        let words = ["BINARY", "ASCII", "UNICODE"];
        return Ok(words.iter().any(|word| cursor.word(word)));
    }
    Ok(true)
}

/// Reads one of some words.
fn one_of(cursor: &mut Cursor<'_>, words: [&str; 3]) -> Result<()> {
    match words.iter().any(|word| cursor.word(word)) {
        true => Ok(()),
        false => cursor.fail("DEFAULT"),
    }
}

/// The value behind DEFAULT.
pub(super) fn default(cursor: &mut Cursor<'_>) -> Result<ast::Expr> {
    let dialect = cursor.dialect;
    Ok(dialect.alone(&mut cursor.parser, PREFIX_ONLY)?)
}

/// The expression in parentheses behind AS.
fn generated(cursor: &mut Cursor<'_>) -> Result<GeneratedColumn> {
    cursor.parser.expect_token(&Token::LParen)?;
    let expression = cursor.parser.parse_expr()?;
    cursor.parser.expect_token(&Token::RParen)?;
    let stored = cursor.word("STORED") || cursor.word("PERSISTENT");
    if !stored {
        let _ = cursor.word("VIRTUAL");
    }
    Ok(GeneratedColumn { expression, stored })
}

/// CURRENT_TIMESTAMP in its spellings: all that ON UPDATE takes.
fn now(cursor: &mut Cursor<'_>) -> Result<ast::Expr> {
    let names = ["CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"];
    if !names.iter().any(|name| cursor.peek_word(name)) {
        return cursor.fail("CURRENT_TIMESTAMP");
    }
    default(cursor)
}

pub(super) fn as_binary(column_type: &ColumnType) -> ColumnType {
    match column_type {
        ColumnType::Char { length } => ColumnType::Binary { length: *length },
        ColumnType::VarChar { length } => ColumnType::VarBinary { length: *length },
        ColumnType::Text(size) => ColumnType::Blob(*size),
        other => other.clone(),
    }
}

/// The character set of a name; `None` for DEFAULT.
pub(super) fn character_set(name: &str) -> Result<Option<CharacterSet>> {
    match name.eq_ignore_ascii_case("default") {
        true => Ok(None),
        false => Ok(Some(CharacterSet::parse(name)?)),
    }
}

/// The character set of a collation that a column can have; `None` for DEFAULT.
pub(super) fn collation(name: &str) -> Result<Option<CharacterSet>> {
    if name.eq_ignore_ascii_case("default") {
        return Ok(None);
    }
    let set = CharacterSet::of_usable_collation(name).map_err(|no| match no {
        NoCollation::OfSet(set) => MySqlError::new(ErrorCode::UnknownCharacterSet, &[&set]),
        no => no.error(name),
    });
    Ok(Some(set?))
}
