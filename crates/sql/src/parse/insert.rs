//! INSERT and REPLACE.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::{Result, unsupported};
use crate::statement::{Insert, InsertSource, Statement};

pub(super) fn insert(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.skip();
    while cursor.word("LOW_PRIORITY") || cursor.word("DELAYED") || cursor.word("HIGH_PRIORITY") {}
    let ignore = cursor.word("IGNORE");
    let _ = cursor.word("INTO");
    let table = cursor.table_name()?;
    if cursor.peek_word("PARTITION") {
        return unsupported("PARTITION");
    }
    let mut columns = Vec::new();
    if cursor.word("SET") {
        let mut row = Vec::new();
        loop {
            columns.push(column(cursor)?);
            cursor.parser.expect_token(&Token::Eq)?;
            row.push(value(cursor)?);
            if !cursor.token(&Token::Comma) {
                break;
            }
        }
        refuse_update(cursor)?;
        let source = InsertSource::Values(vec![row]);
        return Ok(Statement::Insert(Box::new(Insert {
            table,
            columns,
            source,
            ignore,
            replace: false,
            alias: None,
            on_duplicate: Vec::new(),
        })));
    }
    if cursor.peek() == Token::LParen && !starts_query(cursor) {
        cursor.skip();
        while !cursor.token(&Token::RParen) {
            columns.push(column(cursor)?);
            if !cursor.token(&Token::Comma) {
                cursor.parser.expect_token(&Token::RParen)?;
                break;
            }
        }
    }
    let source = if cursor.word("VALUES") || cursor.word("VALUE") {
        InsertSource::Values(rows(cursor)?)
    } else {
        InsertSource::Query(cursor.query()?)
    };
    refuse_update(cursor)?;
    Ok(Statement::Insert(Box::new(Insert {
        table,
        columns,
        source,
        ignore,
        replace: false,
        alias: None,
        on_duplicate: Vec::new(),
    })))
}

fn refuse_update(cursor: &Cursor<'_>) -> Result<()> {
    if cursor.peek_word("ON") {
        return unsupported("ON DUPLICATE KEY UPDATE");
    }
    if cursor.peek_word("RETURNING") {
        return unsupported("RETURNING");
    }
    Ok(())
}

fn starts_query(cursor: &Cursor<'_>) -> bool {
    match &cursor.parser.peek_nth_token_ref(1).token {
        Token::LParen => true,
        Token::Word(word) if word.quote_style.is_none() => {
            ["SELECT", "WITH", "TABLE"].contains(&word.value.to_ascii_uppercase().as_str())
        }
        _ => false,
    }
}

/// A column, whose table may be named before it.
fn column(cursor: &mut Cursor<'_>) -> Result<String> {
    let mut name = cursor.name()?;
    while cursor.token(&Token::Period) {
        name = cursor.name()?;
    }
    Ok(name)
}

fn rows(cursor: &mut Cursor<'_>) -> Result<Vec<Vec<Option<super::Expr>>>> {
    let mut rows = Vec::new();
    loop {
        let _ = cursor.word("ROW");
        cursor.parser.expect_token(&Token::LParen)?;
        let mut row = Vec::with_capacity(rows.last().map_or(4, Vec::len));
        if !cursor.token(&Token::RParen) {
            loop {
                row.push(value(cursor)?);
                if !cursor.token(&Token::Comma) {
                    break;
                }
            }
            cursor.parser.expect_token(&Token::RParen)?;
        }
        rows.push(row);
        if !cursor.token(&Token::Comma) {
            return Ok(rows);
        }
    }
}

fn value(cursor: &mut Cursor<'_>) -> Result<Option<super::Expr>> {
    let next = &cursor.parser.peek_nth_token_ref(1).token;
    if cursor.peek_word("DEFAULT") && !matches!(next, Token::LParen) {
        cursor.skip();
        return Ok(None);
    }
    Ok(Some(cursor.parser.parse_expr()?))
}
