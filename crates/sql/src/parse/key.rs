//! Keys and constraints, of CREATE TABLE, ALTER TABLE and CREATE INDEX.

use datafusion::sql::sqlparser::tokenizer::Token;
use mayfly_table::{KeyKind, Using};
use mayfly_types::{ErrorCode, MySqlError};

use super::cursor::Cursor;
use super::refusal::{Result, unsupported};
use crate::statement::{
    AlterAction, AlterTable, CheckDefinition, KeyColumn, KeyDefinition, Statement,
};

/// What is not a column.
pub(super) enum Constraint {
    Key(KeyDefinition),
    Check(Box<CheckDefinition>),
}

/// Reads a key or a constraint if one is next. Whether the table is temporary decides how a
/// foreign key is refused.
pub(super) fn constraint(cursor: &mut Cursor<'_>, temporary: bool) -> Result<Option<Constraint>> {
    let named = cursor.word("CONSTRAINT");
    let starts = ["PRIMARY", "UNIQUE", "FOREIGN", "CHECK"];
    let symbol = match named && !starts.iter().any(|word| cursor.peek_word(word)) {
        true => Some(cursor.name()?),
        false => None,
    };
    if cursor.word("PRIMARY") {
        cursor.expect("KEY")?;
        let mut key = key(cursor, KeyKind::Primary)?;
        // It is only told that it is not taken.
        key.name = key.name.or(symbol);
        return Ok(Some(Constraint::Key(key)));
    }
    if cursor.word("UNIQUE") {
        let _ = cursor.word("KEY") || cursor.word("INDEX");
        let mut key = key(cursor, KeyKind::Unique)?;
        key.name = key.name.or(symbol);
        return Ok(Some(Constraint::Key(key)));
    }
    if cursor.peek_word("CHECK") {
        let check = Box::new(check(cursor, symbol)?);
        return Ok(Some(Constraint::Check(check)));
    }
    if cursor.word("FOREIGN") {
        if temporary {
            return Err(MySqlError::new(ErrorCode::CannotAddForeignKey, &[]).into());
        }
        return Ok(Some(Constraint::Key(foreign_key(cursor, symbol)?)));
    }
    if named {
        return cursor.fail("a constraint");
    }
    if cursor.word("KEY") || cursor.word("INDEX") {
        return Ok(Some(Constraint::Key(key(cursor, KeyKind::Plain)?)));
    }
    for what in ["FULLTEXT", "SPATIAL"] {
        if cursor.peek_word(what) {
            return unsupported(&format!("{what} KEY"));
        }
    }
    if cursor.peek_words(&["PERIOD", "FOR"]) {
        return unsupported("PERIOD");
    }
    Ok(None)
}

/// `[IF NOT EXISTS] [name] [USING type] (parts) [options]`.
fn key(cursor: &mut Cursor<'_>, kind: KeyKind) -> Result<KeyDefinition> {
    let if_not_exists = cursor.words(&["IF", "NOT", "EXISTS"]);
    let is_named = cursor.peek() != Token::LParen
        && !cursor.peek_word("USING")
        && !(cursor.peek_word("TYPE") && is_type(cursor));
    let name = match is_named {
        true => Some(cursor.name()?),
        false => None,
    };
    let using = using(cursor)?;
    let mut key = KeyDefinition {
        name,
        kind,
        parts: parts(cursor)?,
        comment: None,
        using,
        if_not_exists,
        for_foreign_key: false,
    };
    while option(cursor, &mut key)? {}
    Ok(key)
}

/// `KEY [IF NOT EXISTS] [name] (parts) REFERENCES ...`, behind FOREIGN: the key that an engine
/// without foreign keys makes of it. The name of the constraint goes before that of the key.
///
/// # Errors
/// 1239 if it has not as many columns as it references.
fn foreign_key(cursor: &mut Cursor<'_>, symbol: Option<String>) -> Result<KeyDefinition> {
    cursor.expect("KEY")?;
    let if_not_exists = cursor.words(&["IF", "NOT", "EXISTS"]);
    let name = match cursor.peek() {
        Token::LParen => None,
        _ => Some(cursor.name()?),
    };
    let name = symbol.or(name);
    let parts = parts(cursor)?;
    cursor.expect("REFERENCES")?;
    let count = referenced(cursor)?;
    if count.is_some_and(|count| count != parts.len()) {
        let name = name.as_deref().unwrap_or("foreign key without name");
        let why = "Key reference and table reference don't match";
        let code = ErrorCode::WrongForeignKey;
        return Err(MySqlError::new(code, &[&name, &why]).into());
    }
    Ok(KeyDefinition {
        name,
        kind: KeyKind::Plain,
        parts,
        comment: None,
        using: None,
        if_not_exists,
        for_foreign_key: true,
    })
}

/// `table [(columns)] [MATCH ...] [ON DELETE ...] [ON UPDATE ...]`, behind REFERENCES: how many
/// columns are listed, if any are.
pub(super) fn referenced(cursor: &mut Cursor<'_>) -> Result<Option<usize>> {
    cursor.table_name()?;
    let count = match cursor.peek() {
        Token::LParen => Some(parts(cursor)?.len()),
        _ => None,
    };
    if cursor.word("MATCH") {
        one_of(cursor, &[&["FULL"], &["PARTIAL"], &["SIMPLE"]])?;
    }
    let mut events = vec!["DELETE", "UPDATE"];
    while cursor.peek_word("ON") {
        cursor.skip();
        let Some(place) = events.iter().position(|event| cursor.word(event)) else {
            return cursor.fail("DELETE");
        };
        events.remove(place);
        let actions: [&[&str]; 5] = [
            &["RESTRICT"],
            &["CASCADE"],
            &["SET", "NULL"],
            &["SET", "DEFAULT"],
            &["NO", "ACTION"],
        ];
        one_of(cursor, &actions)?;
    }
    Ok(count)
}

/// Reads one of some phrases.
fn one_of(cursor: &mut Cursor<'_>, phrases: &[&[&str]]) -> Result<()> {
    match phrases.iter().any(|phrase| cursor.words(phrase)) {
        true => Ok(()),
        false => cursor.fail(&phrases[0].join(" ")),
    }
}

/// Whether `TYPE` begins `TYPE BTREE`, and is not the name of the key.
fn is_type(cursor: &Cursor<'_>) -> bool {
    ["BTREE", "HASH", "RTREE"]
        .iter()
        .any(|kind| cursor.peek_words(&["TYPE", kind]))
}

/// `USING BTREE`, if it is there: of no effect, every key is a tree.
fn using(cursor: &mut Cursor<'_>) -> Result<Option<Using>> {
    if !cursor.word("USING") && !cursor.word("TYPE") {
        return Ok(None);
    }
    if cursor.word("BTREE") {
        return Ok(Some(Using::BTree));
    }
    if cursor.word("HASH") {
        return Ok(Some(Using::Hash));
    }
    if cursor.peek_word("RTREE") {
        return unsupported("USING RTREE");
    }
    cursor.fail("BTREE")
}

fn parts(cursor: &mut Cursor<'_>) -> Result<Vec<KeyColumn>> {
    cursor.parser.expect_token(&Token::LParen)?;
    let mut parts = Vec::new();
    loop {
        if cursor.peek() == Token::LParen {
            return unsupported("functional key");
        }
        let column = cursor.name()?;
        let length = match cursor.token(&Token::LParen) {
            true => {
                let length = cursor.parser.parse_literal_uint()?;
                cursor.parser.expect_token(&Token::RParen)?;
                // Longer than any column: refused with its name when the columns are known.
                Some(u32::try_from(length).unwrap_or(u32::MAX))
            }
            false => None,
        };
        let descending = cursor.word("DESC");
        if !descending {
            let _ = cursor.word("ASC");
        }
        parts.push(KeyColumn {
            column,
            length,
            descending,
        });
        if !cursor.token(&Token::Comma) {
            break;
        }
    }
    cursor.parser.expect_token(&Token::RParen)?;
    Ok(parts)
}

/// Reads an option behind the parts; false where there is none.
fn option(cursor: &mut Cursor<'_>, key: &mut KeyDefinition) -> Result<bool> {
    if cursor.word("COMMENT") {
        key.comment = Some(cursor.string()?);
    } else if let Some(using) = using(cursor)? {
        key.using = Some(using);
    } else if cursor.word("KEY_BLOCK_SIZE") {
        cursor.token(&Token::Eq);
        cursor.parser.parse_literal_uint()?;
    } else if cursor.peek_word("INVISIBLE") || cursor.peek_word("IGNORED") {
        return unsupported("invisible key");
    } else if cursor.words(&["WITH", "PARSER"]) {
        return unsupported("WITH PARSER");
    } else {
        return Ok(cursor.word("VISIBLE") || cursor.words(&["NOT", "IGNORED"]));
    }
    Ok(true)
}

/// `CHECK (condition) [[NOT] ENFORCED]`, whose name was read.
pub(super) fn check(cursor: &mut Cursor<'_>, name: Option<String>) -> Result<CheckDefinition> {
    cursor.expect("CHECK")?;
    cursor.parser.expect_token(&Token::LParen)?;
    let expression = cursor.parser.parse_expr()?;
    cursor.parser.expect_token(&Token::RParen)?;
    let enforced = enforced(cursor).unwrap_or(true);
    Ok(CheckDefinition {
        name,
        expression,
        enforced,
        column: None,
    })
}

/// `[NOT] ENFORCED`, if it is there.
pub(super) fn enforced(cursor: &mut Cursor<'_>) -> Option<bool> {
    if cursor.words(&["NOT", "ENFORCED"]) {
        return Some(false);
    }
    cursor.word("ENFORCED").then_some(true)
}

/// CREATE [UNIQUE] INDEX, behind CREATE [OR REPLACE].
pub(super) fn create_index(cursor: &mut Cursor<'_>, or_replace: bool) -> Result<Statement> {
    let kind = match cursor.word("UNIQUE") {
        true => KeyKind::Unique,
        false => KeyKind::Plain,
    };
    cursor.expect("INDEX")?;
    let if_not_exists = cursor.words(&["IF", "NOT", "EXISTS"]);
    let name = cursor.name()?;
    let using = using(cursor)?;
    cursor.expect("ON")?;
    let table = cursor.table_name()?;
    let mut key = KeyDefinition {
        name: Some(name.clone()),
        kind,
        parts: parts(cursor)?,
        comment: None,
        using,
        if_not_exists,
        for_foreign_key: false,
    };
    while option(cursor, &mut key)? || algorithm(cursor)? {}
    let mut actions = Vec::new();
    if or_replace {
        actions.push(AlterAction::DropKey {
            name,
            if_exists: true,
        });
    }
    actions.push(AlterAction::AddKey(key));
    Ok(Statement::AlterTable(Box::new(AlterTable {
        table,
        if_exists: false,
        ignore: false,
        actions,
    })))
}

/// DROP INDEX, behind DROP.
pub(super) fn drop_index(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("INDEX")?;
    let if_exists = cursor.words(&["IF", "EXISTS"]);
    let name = cursor.name()?;
    cursor.expect("ON")?;
    let table = cursor.table_name()?;
    while algorithm(cursor)? {}
    Ok(Statement::AlterTable(Box::new(AlterTable {
        table,
        if_exists: false,
        ignore: false,
        actions: vec![AlterAction::DropKey { name, if_exists }],
    })))
}

/// `ALGORITHM = ...` and `LOCK = ...`: how others may go on meanwhile, which is as they like.
pub(super) fn algorithm(cursor: &mut Cursor<'_>) -> Result<bool> {
    let words: &[&str] = if cursor.word("ALGORITHM") {
        &["DEFAULT", "INPLACE", "INSTANT", "COPY", "NOCOPY"]
    } else if cursor.word("LOCK") {
        &["DEFAULT", "NONE", "SHARED", "EXCLUSIVE"]
    } else {
        return Ok(false);
    };
    cursor.token(&Token::Eq);
    match words.iter().any(|word| cursor.word(word)) {
        true => Ok(true),
        false => cursor.fail("DEFAULT"),
    }
}
