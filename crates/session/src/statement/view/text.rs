//! The query of a view, from its text.

use datafusion::sql::sqlparser::ast::Query;
use mayfly_sql::parse;
use mayfly_sql::source::Source;
use mayfly_sql::statement::Statement;
use mayfly_types::{ErrorCode, MySqlError};

/// Reads the query of a view.
pub(super) fn read(text: &str) -> Result<(Query, Source), MySqlError> {
    match parse::parse(text)? {
        (Statement::Query(query), source) => Ok((*query, source)),
        _ => Err(MySqlError::new(ErrorCode::Syntax, &[&text, &1])),
    }
}
