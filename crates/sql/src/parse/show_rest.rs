//! What several forms of SHOW end with.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::refusal::Result;
use crate::statement::{Filter, Nothing, Show};

/// SHOW of what there is none of: what it is asked for does not matter.
pub(super) fn nothing(cursor: &mut Cursor<'_>, what: Nothing) -> Result<Show> {
    database(cursor)?;
    filter(cursor)?;
    Ok(Show::Nothing(what))
}

pub(super) fn database(cursor: &mut Cursor<'_>) -> Result<Option<String>> {
    if cursor.word("FROM") || cursor.word("IN") {
        return Ok(Some(cursor.name()?));
    }
    Ok(None)
}

pub(super) fn filter(cursor: &mut Cursor<'_>) -> Result<Filter> {
    if cursor.word("LIKE") {
        return Ok(Filter {
            like: Some(cursor.string()?),
            condition: None,
        });
    }
    if cursor.word("WHERE") {
        return Ok(Filter {
            like: None,
            condition: Some(cursor.parser.parse_expr()?),
        });
    }
    Ok(Filter::default())
}

/// LIMIT: the rows to leave out, and the most rows.
pub(super) fn limit(cursor: &mut Cursor<'_>) -> Result<(u64, Option<u64>)> {
    let mut offset = 0;
    let mut limit = None;
    if cursor.word("LIMIT") {
        let first = cursor.parser.parse_literal_uint()?;
        limit = Some(first);
        if cursor.token(&Token::Comma) {
            offset = first;
            limit = Some(cursor.parser.parse_literal_uint()?);
        } else if cursor.word("OFFSET") {
            offset = cursor.parser.parse_literal_uint()?;
        }
    }
    Ok((offset, limit))
}
