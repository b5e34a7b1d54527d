//! Texts of our own as tokens, expressions and queries.

use datafusion::sql::sqlparser::ast::{Expr, Query};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use mayfly_types::{ErrorCode, MySqlError};

use super::{grammar, tokens};
use crate::dialect::MayflyDialect;
use crate::text_places::syntax_error;

pub(crate) fn tokenize(text: &str) -> std::result::Result<Vec<TokenWithSpan>, MySqlError> {
    // It reads no operands.
    let dialect = MayflyDialect::for_text(0, 0);
    let mut tokens = Tokenizer::new(&dialect, tokens::without_last_comment(text))
        .tokenize_with_location()
        .map_err(|error| syntax_error(text, error.location.line, error.location.column))?;
    tokens::names_beside_points(&mut tokens);
    Ok(tokens)
}

/// Reads a text that no client has written.
fn read_own<T>(
    text: &str,
    read: impl FnOnce(&mut Parser<'_>) -> T,
) -> std::result::Result<T, MySqlError> {
    let mut tokens = tokenize(text)?;
    grammar::read_as_mysql(&mut tokens);
    let dialect = MayflyDialect::for_text(tokens.len(), text.len());
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens);
    Ok(read(&mut parser))
}

/// Reads one expression, as it stands in `text` alone.
pub fn parse_expression(text: &str) -> std::result::Result<Expr, MySqlError> {
    let whole = read_own(text, |parser| {
        let expression = parser.parse_expr().ok()?;
        (parser.peek_token_ref().token == Token::EOF).then_some(expression)
    })?;
    whole.ok_or_else(|| MySqlError::new(ErrorCode::Syntax, &[&text, &1]))
}

/// `SELECT 1`, to be filled with other items.
///
/// # Errors
/// None but for a bug in the parser.
pub fn select_one() -> std::result::Result<Query, MySqlError> {
    skeleton("SELECT 1")
}

/// A query of our own, to be filled with parts of others.
///
/// # Errors
/// None but for a bug in the parser.
pub(crate) fn skeleton(text: &str) -> std::result::Result<Query, MySqlError> {
    let query = read_own(text, |parser| parser.parse_query())?;
    query
        .map(|query| *query)
        .map_err(|_| syntax_error(text, 1, 1))
}
