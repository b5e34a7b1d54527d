//! CREATE and DROP.
//!
//! Column types are read by `mayfly_types`; what an append-only table cannot keep (keys,
//! AUTO_INCREMENT, generated columns) is refused by name.

use datafusion::sql::sqlparser::tokenizer::Token;
use mayfly_types::{Collation, ColumnType, ErrorCode, MySqlError};

use super::cursor::Cursor;
use super::{Result, unsupported};
use crate::statement::{ColumnDefinition, CreateTable, DropTable, Statement, TableName};

/// Character sets that are stored as UTF-8 without loss.
const CHARACTER_SETS: [&str; 8] = [
    "utf8mb4", "utf8mb3", "utf8", "latin1", "ascii", "ucs2", "utf16", "binary",
];

pub(super) fn create(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("CREATE")?;
    let or_replace = cursor.words(&["OR", "REPLACE"]);
    if cursor.word("DATABASE") || cursor.word("SCHEMA") {
        let if_not_exists = cursor.words(&["IF", "NOT", "EXISTS"]);
        let name = cursor.name()?;
        cursor.skip_rest();
        return Ok(Statement::CreateDatabase {
            name,
            if_not_exists,
        });
    }
    let temporary = cursor.word("TEMPORARY");
    if cursor.word("TABLE") {
        return create_table(cursor, temporary, or_replace);
    }
    match cursor.peek() {
        Token::Word(word) if !temporary && word.quote_style.is_none() => {
            let mut what = word.value.to_ascii_uppercase();
            let rest = [
                "VIEW",
                "INDEX",
                "PROCEDURE",
                "FUNCTION",
                "TRIGGER",
                "EVENT",
                "USER",
            ];
            let more = [
                "UNIQUE",
                "FULLTEXT",
                "SPATIAL",
                "DEFINER",
                "ALGORITHM",
                "SQL",
                "ROLE",
            ];
            if more.contains(&what.as_str()) {
                what = "INDEX or VIEW".to_owned();
            } else if !rest.contains(&what.as_str())
                && !["SERVER", "TABLESPACE", "SEQUENCE"].contains(&what.as_str())
            {
                return cursor.fail("TABLE");
            }
            unsupported(&format!("CREATE {what}"))
        }
        _ => cursor.fail("TABLE"),
    }
}

pub(super) fn drop(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("DROP")?;
    if cursor.word("DATABASE") || cursor.word("SCHEMA") {
        let if_exists = cursor.words(&["IF", "EXISTS"]);
        return Ok(Statement::DropDatabase {
            name: cursor.name()?,
            if_exists,
        });
    }
    let temporary = cursor.word("TEMPORARY");
    if !cursor.word("TABLE") && !cursor.word("TABLES") {
        return match cursor.peek() {
            Token::Word(word) if !temporary && word.quote_style.is_none() => {
                let what = word.value.to_ascii_uppercase();
                let known = [
                    "VIEW",
                    "INDEX",
                    "PROCEDURE",
                    "FUNCTION",
                    "TRIGGER",
                    "EVENT",
                    "USER",
                    "ROLE",
                    "PREPARE",
                    "SERVER",
                    "TABLESPACE",
                    "SEQUENCE",
                ];
                if known.contains(&what.as_str()) {
                    unsupported(&format!("DROP {what}"))
                } else {
                    cursor.fail("TABLE")
                }
            }
            _ => cursor.fail("TABLE"),
        };
    }
    let if_exists = cursor.words(&["IF", "EXISTS"]);
    let mut names = vec![cursor.table_name()?];
    while cursor.token(&Token::Comma) {
        names.push(cursor.table_name()?);
    }
    let _ = cursor.word("RESTRICT") || cursor.word("CASCADE");
    Ok(Statement::DropTable(DropTable {
        temporary,
        if_exists,
        names,
    }))
}

fn create_table(cursor: &mut Cursor<'_>, temporary: bool, or_replace: bool) -> Result<Statement> {
    let if_not_exists = cursor.words(&["IF", "NOT", "EXISTS"]);
    let name = cursor.table_name()?;
    let mut table = CreateTable {
        temporary,
        or_replace,
        if_not_exists,
        name,
        columns: Vec::new(),
        keys: Vec::new(),
        checks: Vec::new(),
        auto_increment: None,
        like: None,
        engine: None,
        character_set: None,
        comment: None,
        query: None,
        ignore: false,
        replace: false,
    };
    if cursor.word("LIKE") {
        table.like = Some(cursor.table_name()?);
        return Ok(Statement::CreateTable(Box::new(table)));
    }
    let starts_query = cursor.parser.peek_nth_token_ref(1).token.clone();
    let is_query = matches!(&starts_query, Token::LParen)
        || matches!(&starts_query, Token::Word(word) if word.quote_style.is_none()
            && ["SELECT", "WITH", "VALUES"].contains(&word.value.to_ascii_uppercase().as_str()));
    if cursor.peek() == Token::LParen && !is_query {
        cursor.skip();
        if cursor.word("LIKE") {
            table.like = Some(cursor.table_name()?);
            cursor.parser.expect_token(&Token::RParen)?;
            return Ok(Statement::CreateTable(Box::new(table)));
        }
        loop {
            refuse_key(cursor, &table.name)?;
            table.columns.push(column(cursor)?);
            if !cursor.token(&Token::Comma) {
                break;
            }
        }
        cursor.parser.expect_token(&Token::RParen)?;
    }
    options(cursor, &mut table)?;
    if cursor.word("IGNORE") || cursor.word("REPLACE") {
        table.ignore = true;
    }
    let with_as = cursor.word("AS");
    match cursor.peek() {
        Token::EOF | Token::SemiColon if !with_as => {}
        _ => table.query = Some(cursor.query()?),
    }
    Ok(Statement::CreateTable(Box::new(table)))
}

/// Refuses what is not a column: keys and constraints.
fn refuse_key(cursor: &Cursor<'_>, table: &TableName) -> Result<()> {
    let Token::Word(word) = cursor.peek() else {
        return Ok(());
    };
    if word.quote_style.is_some() {
        return Ok(());
    }
    let first = word.value.to_ascii_uppercase();
    let what = match first.as_str() {
        "PRIMARY" => "PRIMARY KEY",
        "UNIQUE" => "UNIQUE KEY",
        "KEY" | "INDEX" => "KEY",
        "FULLTEXT" | "SPATIAL" => "FULLTEXT or SPATIAL KEY",
        "FOREIGN" => "FOREIGN KEY",
        "CHECK" => "CHECK",
        "CONSTRAINT" => "CONSTRAINT",
        "PERIOD" => "PERIOD",
        _ => return Ok(()),
    };
    unsupported(&format!("{what} (in table '{}')", table.table))
}

fn column(cursor: &mut Cursor<'_>) -> Result<ColumnDefinition> {
    let name = cursor.name()?;
    if name.is_empty() || name.ends_with(' ') {
        return Err(MySqlError::new(ErrorCode::WrongColumnName, &[&name]).into());
    }
    let mut column_type = column_type(cursor, &name)?;
    let mut definition = ColumnDefinition {
        name,
        column_type: ColumnType::Null,
        not_null: false,
        default: None,
        on_update: None,
        generated: None,
        auto_increment: false,
        invisible: false,
        key: None,
        checks: Vec::new(),
        comment: None,
    };
    attributes(cursor, &mut definition, &mut column_type)?;
    if matches!(
        column_type,
        ColumnType::Text(_) | ColumnType::Blob(_) | ColumnType::Json
    ) && matches!(&definition.default, Some(default) if is_literal(default))
    {
        return Err(MySqlError::new(ErrorCode::BlobDefault, &[&definition.name]).into());
    }
    definition.column_type = column_type;
    Ok(definition)
}

fn is_literal(expression: &datafusion::sql::sqlparser::ast::Expr) -> bool {
    use datafusion::sql::sqlparser::ast::{Expr, Value};
    matches!(expression, Expr::Value(value) if value.value != Value::Null)
}

/// Reads a type by collecting its text; errors name the column.
fn column_type(cursor: &mut Cursor<'_>, column: &str) -> Result<ColumnType> {
    let start = cursor.parser.peek_token_ref().clone();
    let mut text = cursor.any_word()?;
    let first = text.to_ascii_uppercase();
    if ["DOUBLE", "CHARACTER", "CHAR", "NATIONAL", "NCHAR", "LONG"].contains(&first.as_str()) {
        for _ in 0..2 {
            let more = [
                "PRECISION",
                "VARYING",
                "VARCHARACTER",
                "VARCHAR",
                "VARBINARY",
            ];
            let also =
                first == "NATIONAL" && (cursor.peek_word("CHAR") || cursor.peek_word("CHARACTER"));
            if also || more.iter().any(|word| cursor.peek_word(word)) {
                text.push(' ');
                text.push_str(&cursor.any_word()?);
            }
        }
    }
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
                Token::Number(number, _) => text.push_str(&number),
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
        if cursor.word("UNSIGNED") || cursor.word("ZEROFILL") {
            text.push_str(" unsigned");
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

fn attributes(
    cursor: &mut Cursor<'_>,
    definition: &mut ColumnDefinition,
    column_type: &mut ColumnType,
) -> Result<()> {
    let name = definition.name.clone();
    loop {
        if cursor.words(&["NOT", "NULL"]) {
            definition.not_null = true;
        } else if cursor.word("NULL") {
            definition.not_null = false;
        } else if cursor.word("DEFAULT") {
            definition.default = Some(default(cursor)?);
        } else if cursor.word("COMMENT") {
            definition.comment = Some(cursor.string()?);
        } else if cursor.words(&["CHARACTER", "SET"]) || cursor.word("CHARSET") {
            if character_set(&cursor.value_word()?)? == "binary" {
                *column_type = as_binary(column_type);
            }
        } else if cursor.word("COLLATE") {
            collation(&cursor.value_word()?)?;
        } else if cursor.word("BINARY")
            || cursor.word("VISIBLE")
            || cursor.word("ASCII")
            || cursor.word("UNICODE")
        {
        } else if cursor.word("COLUMN_FORMAT") || cursor.word("STORAGE") {
            cursor.skip();
        } else if cursor.word("AUTO_INCREMENT") {
            return unsupported(&format!("AUTO_INCREMENT (column '{name}')"));
        } else if cursor.word("UNIQUE") || cursor.word("PRIMARY") || cursor.word("KEY") {
            return unsupported(&format!("PRIMARY KEY or UNIQUE KEY (column '{name}')"));
        } else if cursor.word("GENERATED") || cursor.peek_word("AS") {
            return unsupported(&format!("generated column '{name}'"));
        } else if cursor.words(&["ON", "UPDATE"]) {
            return unsupported(&format!("ON UPDATE (column '{name}')"));
        } else if cursor.word("REFERENCES") {
            return unsupported(&format!("FOREIGN KEY (column '{name}')"));
        } else if cursor.word("CHECK") || cursor.word("CONSTRAINT") {
            return unsupported(&format!("CHECK (column '{name}')"));
        } else if cursor.word("INVISIBLE") {
            return unsupported(&format!("INVISIBLE (column '{name}')"));
        } else {
            return Ok(());
        }
    }
}

fn default(cursor: &mut Cursor<'_>) -> Result<datafusion::sql::sqlparser::ast::Expr> {
    Ok(cursor.parser.parse_subexpr(PREFIX_ONLY)?)
}

/// Above every infix operator, so that `DEFAULT 1 NOT NULL` stops after the literal.
const PREFIX_ONLY: u8 = 90;

fn as_binary(column_type: &ColumnType) -> ColumnType {
    match column_type {
        ColumnType::Char { length } => ColumnType::Binary { length: *length },
        ColumnType::VarChar { length } => ColumnType::VarBinary { length: *length },
        ColumnType::Text(size) => ColumnType::Blob(*size),
        other => other.clone(),
    }
}

fn character_set(name: &str) -> Result<String> {
    let lower = name.to_ascii_lowercase();
    if lower == "default" || CHARACTER_SETS.contains(&lower.as_str()) {
        return Ok(lower);
    }
    Err(MySqlError::new(ErrorCode::UnknownCharacterSet, &[&name]).into())
}

fn collation(name: &str) -> Result<()> {
    let lower = name.to_ascii_lowercase();
    if lower == "default" || lower.ends_with("_bin") || Collation::parse(&lower).is_some() {
        return Ok(());
    }
    if lower.ends_with("_ci") || lower.ends_with("_cs") {
        return unsupported(&format!("COLLATE {lower}"));
    }
    Err(MySqlError::new(ErrorCode::UnknownCollation, &[&name]).into())
}

fn options(cursor: &mut Cursor<'_>, table: &mut CreateTable) -> Result<()> {
    loop {
        cursor.token(&Token::Comma);
        let _ = cursor.word("DEFAULT");
        if cursor.word("ENGINE") || cursor.word("TYPE") {
            cursor.token(&Token::Eq);
            table.engine = Some(cursor.value_word()?);
        } else if cursor.words(&["CHARACTER", "SET"]) || cursor.word("CHARSET") {
            cursor.token(&Token::Eq);
            table.character_set = Some(character_set(&cursor.value_word()?)?);
        } else if cursor.word("COLLATE") {
            cursor.token(&Token::Eq);
            collation(&cursor.value_word()?)?;
        } else if cursor.word("COMMENT") {
            cursor.token(&Token::Eq);
            table.comment = Some(cursor.string()?);
        } else if cursor.words(&["PARTITION", "BY"]) {
            let code = ErrorCode::PartitionTemporary;
            if table.temporary {
                return Err(MySqlError::new(code, &[]).into());
            }
            return unsupported("PARTITION BY");
        } else if is_other_option(cursor) {
            cursor.skip();
            let _ = cursor.words(&["DIRECTORY"]);
            cursor.token(&Token::Eq);
            cursor.value_word()?;
        } else {
            return Ok(());
        }
    }
}

/// Options that say how another engine stores a table; they change no answer.
fn is_other_option(cursor: &Cursor<'_>) -> bool {
    [
        "AUTO_INCREMENT",
        "AVG_ROW_LENGTH",
        "CHECKSUM",
        "COMPRESSION",
        "DATA",
        "DELAY_KEY_WRITE",
        "ENCRYPTION",
        "INSERT_METHOD",
        "KEY_BLOCK_SIZE",
        "MAX_ROWS",
        "MIN_ROWS",
        "PACK_KEYS",
        "PAGE_CHECKSUM",
        "ROW_FORMAT",
        "STATS_AUTO_RECALC",
        "STATS_PERSISTENT",
        "STATS_SAMPLE_PAGES",
        "TABLESPACE",
        "TRANSACTIONAL",
    ]
    .iter()
    .any(|option| cursor.peek_word(option))
}
