//! INSERT and REPLACE.

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::change::assignment;
use super::cursor::Cursor;
use super::refusal::{Result, unsupported};
use crate::statement::{Insert, InsertSource, Statement};

pub(super) fn insert(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let replace = cursor.word("REPLACE");
    if !replace {
        cursor.expect("INSERT")?;
    }
    let _ = cursor.word("LOW_PRIORITY")
        || cursor.word("DELAYED")
        || !replace && cursor.word("HIGH_PRIORITY");
    let ignore = !replace && cursor.word("IGNORE");
    let _ = cursor.word("INTO");
    let table = cursor.table_name()?;
    if cursor.peek_word("PARTITION") {
        return unsupported("PARTITION");
    }
    let mut insert = Insert {
        table,
        columns: Vec::new(),
        qualified: Vec::new(),
        source: InsertSource::Values(Vec::new()),
        ignore,
        replace,
        alias: None,
        on_duplicate: Vec::new(),
    };
    source(cursor, &mut insert)?;
    let is_query = matches!(insert.source, InsertSource::Query(_));
    if !replace && !is_query && cursor.word("AS") {
        insert.alias = Some(alias(cursor)?);
    }
    if !replace && cursor.words(&["ON", "DUPLICATE", "KEY", "UPDATE"]) {
        cursor.list(|cursor| {
            insert.on_duplicate.push(assignment(cursor)?);
            Ok(())
        })?;
    }
    if cursor.peek_word("RETURNING") {
        return unsupported("RETURNING");
    }
    Ok(Statement::Insert(Box::new(insert)))
}

/// The rows, with the columns that they fill.
fn source(cursor: &mut Cursor<'_>, insert: &mut Insert) -> Result<()> {
    if cursor.word("SET") {
        let mut row = Vec::new();
        cursor.list(|cursor| {
            column(cursor, insert)?;
            cursor.parser.expect_token(&Token::Eq)?;
            row.push(value(cursor)?);
            Ok(())
        })?;
        insert.source = InsertSource::Values(vec![row]);
        return Ok(());
    }
    if cursor.peek() == Token::LParen && !starts_query(cursor) {
        cursor.skip();
        if !cursor.token(&Token::RParen) {
            cursor.list(|cursor| column(cursor, insert))?;
            cursor.parser.expect_token(&Token::RParen)?;
        }
    }
    insert.source = if cursor.word("VALUES") || cursor.word("VALUE") {
        InsertSource::Values(rows(cursor)?)
    } else {
        InsertSource::Query(cursor.query()?)
    };
    Ok(())
}

/// `new` or `new (a, b)`, behind AS.
fn alias(cursor: &mut Cursor<'_>) -> Result<(String, Vec<String>)> {
    let name = cursor.name()?;
    Ok((name, cursor.names_in_parentheses()?))
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
fn column(cursor: &mut Cursor<'_>, insert: &mut Insert) -> Result<()> {
    let (table, column) = cursor.qualified_column()?;
    if let Some(table) = table {
        insert.qualified.push((table, column.clone()));
    }
    insert.columns.push(column);
    Ok(())
}

fn rows(cursor: &mut Cursor<'_>) -> Result<Vec<Vec<Option<Expr>>>> {
    let mut rows = Vec::new();
    cursor.list(|cursor| {
        let _ = cursor.word("ROW");
        cursor.parser.expect_token(&Token::LParen)?;
        let mut row = Vec::with_capacity(rows.last().map_or(4, Vec::len));
        if !cursor.token(&Token::RParen) {
            cursor.list(|cursor| {
                row.push(value(cursor)?);
                Ok(())
            })?;
            cursor.parser.expect_token(&Token::RParen)?;
        }
        rows.push(row);
        Ok(())
    })?;
    Ok(rows)
}

fn value(cursor: &mut Cursor<'_>) -> Result<Option<Expr>> {
    let next = &cursor.parser.peek_nth_token_ref(1).token;
    if cursor.peek_word("DEFAULT") && !matches!(next, Token::LParen) {
        cursor.skip();
        return Ok(None);
    }
    Ok(Some(cursor.parser.parse_expr()?))
}
