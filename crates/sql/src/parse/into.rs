//! SELECT ... INTO: where the rows of a query go that no client sees.
//!
//! Owns the clause; it stands in front of FROM or at the end, so it is cut out of the tokens, and
//! what is left is a query like any other.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use mayfly_types::{ErrorCode, MySqlError};

use super::cursor::Cursor;
use super::out_file;
use super::refusal::Result;
use crate::dialect::MayflyDialect;
use crate::statement::Into;

/// Words that a query begins with.
const BEGINNINGS: [&str; 4] = ["SELECT", "WITH", "VALUES", "TABLE"];
/// Words before a query whose plan is asked for, and those that other statements begin with.
const EXPLAINS: [&str; 3] = ["EXPLAIN", "DESCRIBE", "DESC"];
const CHANGES: [&str; 4] = ["INSERT", "REPLACE", "UPDATE", "DELETE"];
/// Words that join queries: the clause may only stand in the last one.
const JOINTS: [&str; 3] = ["UNION", "EXCEPT", "INTERSECT"];

/// Takes the clause out of the tokens of a query; leaves those of any other statement as they are.
pub(super) fn cut(tokens: &mut Vec<TokenWithSpan>) -> Result<Option<Into>> {
    let Some(start) = find(tokens) else {
        return Ok(None);
    };
    let dialect = MayflyDialect::for_text(tokens.len(), 0);
    let mut cursor = Cursor::new(&dialect, from(tokens, start + 1).to_vec());
    let into = clause(&mut cursor)?;
    // The tokens that the cursor has passed, and INTO itself.
    let end = (start + 1 + cursor.parser.index()).min(tokens.len());
    let behind = at_top(from(tokens, end)).find(|(_, token)| is_any(token, &JOINTS));
    if let Some((at, _)) = behind {
        let behind = Cursor::new(&dialect, from(tokens, end + at).to_vec());
        return behind.fail("the end of the statement");
    }
    tokens.drain(start..end);
    Ok(Some(into))
}

fn from(tokens: &[TokenWithSpan], at: usize) -> &[TokenWithSpan] {
    tokens.get(at..).unwrap_or_default()
}

/// Where the word INTO stands that begins the clause of a query.
fn find(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut significant = tokens.iter().filter(|token| !is_space(token));
    let first = significant.next()?;
    let is_query =
        |token: &TokenWithSpan| token.token == Token::LParen || is_any(token, &BEGINNINGS);
    let is_explained = || {
        let is_start = |token: &&TokenWithSpan| is_query(token) || is_any(token, &CHANGES);
        { significant }.find(is_start).is_some_and(is_query)
    };
    let is_either = is_query(first) || is_any(first, &EXPLAINS) && is_explained();
    if !is_either {
        return None;
    }
    // One in front of the query is a clause of EXPLAIN.
    let begins = tokens.iter().position(is_query)?;
    let is_into = |(at, token): &(usize, &TokenWithSpan)| *at > begins && is_any(token, &["INTO"]);
    let found = at_top(tokens).find(is_into);
    found.map(|(at, _)| at)
}

/// The tokens outside of parentheses, with their places.
fn at_top(tokens: &[TokenWithSpan]) -> impl Iterator<Item = (usize, &TokenWithSpan)> {
    let mut depth = 0_usize;
    tokens.iter().enumerate().filter(move |(_, token)| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })
}

fn is_space(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

fn is_any(token: &TokenWithSpan, words: &[&str]) -> bool {
    matches!(&token.token, Token::Word(word) if word.quote_style.is_none()
        && words.iter().any(|known| word.value.eq_ignore_ascii_case(known)))
}

fn clause(cursor: &mut Cursor<'_>) -> Result<Into> {
    if cursor.word("OUTFILE") {
        let path = cursor.string()?;
        let format = out_file::format(cursor)?;
        return Ok(Into::OutFile { path, format });
    }
    if cursor.word("DUMPFILE") {
        return Ok(Into::DumpFile(cursor.string()?));
    }
    let mut variables = Vec::new();
    loop {
        let name = cursor.name()?;
        match name.strip_prefix('@') {
            Some(variable) if !variable.starts_with('@') => {
                variables.push(variable.to_ascii_lowercase());
            }
            Some(_) => return cursor.fail("a variable"),
            None => return Err(MySqlError::new(ErrorCode::UndeclaredVariable, &[&name]).into()),
        }
        if !cursor.token(&Token::Comma) {
            return Ok(Into::Variables(variables));
        }
    }
}
