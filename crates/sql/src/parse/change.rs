//! UPDATE and DELETE.

use datafusion::sql::sqlparser::ast::{Expr, TableWithJoins};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use mayfly_types::{ErrorCode, MySqlError};

use super::cursor::Cursor;
use super::refusal::{Result, unsupported};
use crate::statement::{Delete, RowChoice, SetColumn, Statement, TableName, Update};

pub(super) fn update(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.skip();
    let _ = cursor.word("LOW_PRIORITY");
    let ignore = cursor.word("IGNORE");
    let from = cursor
        .parser
        .parse_comma_separated(Parser::parse_table_and_joins)?;
    cursor.expect("SET")?;
    let mut assignments = Vec::new();
    cursor.list(|cursor| {
        assignments.push(assignment(cursor)?);
        Ok(())
    })?;
    let choice = choice(cursor, from, "UPDATE")?;
    Ok(Statement::Update(Box::new(Update {
        ignore,
        choice,
        assignments,
    })))
}

/// `column = value`, whose table may be named before it, and the database before that.
pub(super) fn assignment(cursor: &mut Cursor<'_>) -> Result<SetColumn> {
    let (table, column) = cursor.qualified_column()?;
    cursor.parser.expect_token(&Token::Eq)?;
    let next = &cursor.parser.peek_nth_token_ref(1).token;
    let value = if cursor.peek_word("DEFAULT") && !matches!(next, Token::LParen) {
        cursor.skip();
        None
    } else {
        Some(cursor.parser.parse_expr()?)
    };
    Ok(SetColumn {
        table,
        column,
        value,
    })
}

pub(super) fn delete(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.skip();
    let mut ignore = false;
    while cursor.word("LOW_PRIORITY") || cursor.word("QUICK") || cursor.peek_word("IGNORE") {
        ignore |= cursor.word("IGNORE");
    }
    let mut targets = Vec::new();
    let is_from = cursor.word("FROM");
    let from = if is_from && names_targets(cursor) {
        // DELETE FROM a, d.b.* USING a JOIN b.
        read_targets(cursor, &mut targets)?;
        cursor.expect("USING")?;
        cursor
            .parser
            .parse_comma_separated(Parser::parse_table_and_joins)?
    } else if is_from {
        cursor
            .parser
            .parse_comma_separated(Parser::parse_table_and_joins)?
    } else {
        read_targets(cursor, &mut targets)?;
        cursor.expect("FROM")?;
        cursor
            .parser
            .parse_comma_separated(Parser::parse_table_and_joins)?
    };
    let choice = match targets.is_empty() {
        true => choice(cursor, from, "DELETE")?,
        // No ORDER BY and no LIMIT there.
        false => RowChoice {
            from,
            condition: condition(cursor)?,
            order_by: Vec::new(),
            limit: None,
        },
    };
    if cursor.peek_word("RETURNING") {
        return unsupported("RETURNING");
    }
    Ok(Statement::Delete(Box::new(Delete {
        ignore,
        targets,
        choice,
    })))
}

/// Whether names of tables follow, and then USING.
fn names_targets(cursor: &Cursor<'_>) -> bool {
    let mut place = 0;
    loop {
        match &cursor.parser.peek_nth_token_ref(place).token {
            Token::Word(word) if word.quote_style.is_none() && word.keyword == Keyword::USING => {
                return place > 0;
            }
            Token::Word(_) | Token::Period | Token::Mul | Token::Comma => place += 1,
            _ => return false,
        }
    }
}

fn read_targets(cursor: &mut Cursor<'_>, targets: &mut Vec<TableName>) -> Result<()> {
    cursor.list(|cursor| {
        targets.push(target(cursor)?);
        Ok(())
    })
}

/// `t`, `d.t`, or either with `.*` behind it.
fn target(cursor: &mut Cursor<'_>) -> Result<TableName> {
    let mut database = None;
    let mut table = cursor.name()?;
    if cursor.token(&Token::Period) && !cursor.token(&Token::Mul) {
        database = Some(table);
        table = cursor.name()?;
        if cursor.token(&Token::Period) {
            cursor.parser.expect_token(&Token::Mul)?;
        }
    }
    Ok(TableName { database, table })
}

fn condition(cursor: &mut Cursor<'_>) -> Result<Option<Expr>> {
    Ok(match cursor.word("WHERE") {
        true => Some(cursor.parser.parse_expr()?),
        false => None,
    })
}

fn choice(cursor: &mut Cursor<'_>, from: Vec<TableWithJoins>, what: &str) -> Result<RowChoice> {
    let condition = condition(cursor)?;
    let order_by = match cursor.parser.parse_keywords(&[Keyword::ORDER, Keyword::BY]) {
        true => cursor
            .parser
            .parse_comma_separated(Parser::parse_order_by_expr)?,
        false => Vec::new(),
    };
    let limit = match cursor.word("LIMIT") {
        true => Some(cursor.parser.parse_expr()?),
        false => None,
    };
    let is_one = from.len() == 1 && from[0].joins.is_empty();
    for (is_there, clause) in [
        (!order_by.is_empty(), "ORDER BY"),
        (limit.is_some(), "LIMIT"),
    ] {
        if is_there && !is_one {
            return Err(MySqlError::new(ErrorCode::WrongUsage, &[&what, &clause]).into());
        }
    }
    Ok(RowChoice {
        from,
        condition,
        order_by,
        limit,
    })
}
