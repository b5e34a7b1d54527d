//! Text to statement.
//!
//! Owns the dispatch on the first words and the parsers of what sqlparser refuses or reads in
//! another sense. Queries and expressions are sqlparser's, under our dialect. Never resolves a
//! name.

mod absent;
mod alter;
mod chains;
mod change;
mod column;
mod create;
mod cursor;
mod file_options;
mod flush;
mod grammar;
mod insert;
mod into;
mod key;
mod load;
mod maintenance;
mod out_file;
mod own_text;
mod prepare;
mod refusal;
mod replication;
pub(crate) mod reserved;
mod set;
mod show;
mod show_rest;
mod show_server;
#[cfg(test)]
mod tests;
mod tokens;
mod view;

use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use mayfly_types::{ErrorCode, MySqlError};

use crate::dialect::MayflyDialect;
use crate::source::Source;
use crate::statement::{Explain, ExplainFormat, Nothing, Show, Statement};
use crate::text_places::syntax_error;
pub(crate) use chains::{DEPTH_MAX as CHAIN_DEPTH_MAX, OPERATORS_MAX};
use cursor::Cursor;
pub(crate) use file_options::file_options;
pub(crate) use own_text::skeleton;
use own_text::tokenize;
pub use own_text::{parse_expression, select_one};
pub use prepare::is_on_prepared;
pub(crate) use refusal::RECURSION_LIMIT;
use refusal::{Refusal, Result, nested_too_deeply, place, unsupported};
pub(crate) use reserved::is_reserved;
pub use reserved::keywords;
pub(crate) use tokens::without_version_comments;

/// Reads one statement. A `;` at its end is allowed.
pub fn parse(text: &str) -> std::result::Result<(Statement, Source), MySqlError> {
    let written = text;
    let read = tokens::without_version_comments(written);
    let text = read.as_deref().unwrap_or(written);
    let mut tokens = tokenize(text)?;
    chains::check(&tokens)?;
    if let Some(at) = tokens::misplaced_behind_point(&tokens) {
        return Err(syntax_error(text, at.line, at.column));
    }
    let source = Source::new(text, &tokens);
    let refused = tokens::check(text, &tokens).err();
    grammar::read_as_mysql(&mut tokens);
    tokens::join_variables(&mut tokens);
    tokens::share_as_now(&mut tokens);
    file_options::join(text, &mut tokens).map_err(|refusal| refusal.of_text(text))?;
    let into = into::cut(&mut tokens).map_err(|refusal| refusal.of_text(text))?;
    let dialect = MayflyDialect::for_text(tokens.len(), text.len());
    let mut cursor = Cursor::new(&dialect, tokens);
    let parsed = statement(&mut cursor).and_then(|statement| {
        cursor.end()?;
        Ok(match (statement, into) {
            (Statement::Query(query), Some(into)) => Statement::QueryInto(query, into),
            (statement, _) => statement,
        })
    });
    if let Some(error) = dialect.ended() {
        return Err(error);
    }
    match parsed {
        Ok(statement) => {
            let again = || tokenize(text).unwrap_or_default();
            match grammar::check(&statement, again) {
                Ok(()) => {}
                Err(grammar::Refused::Syntax(at)) => {
                    return Err(syntax_error(text, at.line, at.column));
                }
                Err(grammar::Refused::Known(error)) => return Err(error),
            }
            match refused {
                None => Ok((statement, source)),
                Some(refused) => Err(refused
                    .error
                    .unwrap_or_else(|| syntax_error(text, refused.at.line, refused.at.column))),
            }
        }
        // Dumps and clients send comments alone.
        Err(Refusal::Known(error))
            if error.code == ErrorCode::EmptyQuery.number() && tokens::has_comment(written) =>
        {
            Ok((Statement::Nothing, source))
        }
        Err(Refusal::Known(error)) => Err(error),
        Err(Refusal::Syntax(error)) => Err(translate(text, &cursor, &error)),
    }
}

fn translate(text: &str, cursor: &Cursor<'_>, error: &ParserError) -> MySqlError {
    if let ParserError::RecursionLimitExceeded = error {
        return nested_too_deeply();
    }
    if let Some((line, column)) = place(&error.to_string()) {
        return syntax_error(text, line, column);
    }
    let start = cursor.parser.peek_token_ref().span.start;
    syntax_error(text, start.line, start.column)
}

fn statement(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let first = match cursor.peek() {
        Token::SemiColon if !cursor.is_over() => return cursor.fail("a statement"),
        Token::EOF | Token::SemiColon => {
            return Err(MySqlError::new(ErrorCode::EmptyQuery, &[]).into());
        }
        Token::LParen => "SELECT".to_owned(),
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
        _ => return cursor.fail("a statement"),
    };
    match first.as_str() {
        "SELECT" | "WITH" | "VALUES" | "TABLE" => {
            let query = cursor.query()?;
            Ok(Statement::Query(query))
        }
        "EXPLAIN" | "DESCRIBE" | "DESC" => explain(cursor),
        "CREATE" => create::create(cursor),
        "DROP" => create::drop(cursor),
        "TRUNCATE" => {
            cursor.skip();
            cursor.word("TABLE");
            Ok(Statement::Truncate(cursor.table_name()?))
        }
        "INSERT" | "REPLACE" => insert::insert(cursor),
        "LOAD" => load::load(cursor),
        "SET" => set::set(cursor),
        "SHOW" => show::show(cursor),
        "USE" => {
            cursor.skip();
            Ok(Statement::Use(cursor.name()?))
        }
        "DO" => {
            cursor.skip();
            let expressions = cursor.parser.parse_comma_separated(Parser::parse_expr)?;
            Ok(Statement::Do(expressions))
        }
        "BEGIN" => {
            cursor.skip();
            cursor.word("WORK");
            Ok(Statement::Begin(None))
        }
        "START" if cursor.words(&["START", "TRANSACTION"]) => {
            Ok(Statement::Begin(set::start_characteristics(cursor)?))
        }
        "COMMIT" => {
            cursor.skip();
            cursor.word("WORK");
            Ok(Statement::Commit(set::completion(cursor)?))
        }
        "ROLLBACK" => {
            cursor.skip();
            cursor.word("WORK");
            if cursor.word("TO") {
                cursor.word("SAVEPOINT");
                return Ok(Statement::RollbackTo(cursor.name()?));
            }
            Ok(Statement::Rollback(set::completion(cursor)?))
        }
        "SAVEPOINT" => {
            cursor.skip();
            Ok(Statement::Savepoint(cursor.name()?))
        }
        "FLUSH" => flush::flush(cursor),
        "LOCK" => flush::lock(cursor),
        "UNLOCK" => flush::unlock(cursor),
        "RELEASE" if cursor.words(&["RELEASE", "SAVEPOINT"]) => {
            Ok(Statement::ReleaseSavepoint(cursor.name()?))
        }
        "KILL" => {
            cursor.skip();
            let only_query = !cursor.word("CONNECTION") && cursor.word("QUERY");
            let id = Box::new(cursor.parser.parse_expr()?);
            Ok(Statement::Kill { id, only_query })
        }
        "UPDATE" => change::update(cursor),
        "DELETE" => change::delete(cursor),
        "ALTER" => alter::alter(cursor),
        "RENAME" => alter::rename(cursor),
        "PREPARE" => prepare::prepare(cursor),
        "EXECUTE" => prepare::execute(cursor),
        "DEALLOCATE" => {
            cursor.skip();
            prepare::deallocate(cursor)
        }
        "ANALYZE" | "CHECK" | "CHECKSUM" | "OPTIMIZE" | "REPAIR" => {
            maintenance::maintenance(cursor, &first)
        }
        "HELP" => {
            cursor.skip();
            cursor.value_word()?;
            Ok(Statement::Show(Show::Nothing(Nothing::HelpTopics)))
        }
        "START" => replication::start(cursor),
        "STOP" => replication::stop(cursor),
        "RESET" => replication::reset(cursor),
        "CALL" | "GRANT" | "REVOKE" | "HANDLER" | "XA" | "INSTALL" | "UNINSTALL" | "IMPORT"
        | "CHANGE" | "PURGE" | "BINLOG" | "CACHE" | "SIGNAL" | "RESIGNAL" | "GET" | "SHUTDOWN"
        | "RESTART" | "CLONE" => unsupported(&first),
        _ => cursor.fail("a statement"),
    }
}

fn explain(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.skip();
    let analyze = cursor.word("ANALYZE");
    let _ = cursor.word("EXTENDED") || cursor.word("PARTITIONS");
    let mut format = None;
    if cursor.word("FORMAT") {
        cursor.parser.expect_token(&Token::Eq)?;
        let name = cursor.value_word()?;
        format = match ExplainFormat::named(&name) {
            Some(format) => Some(format),
            None => {
                return Err(MySqlError::new(ErrorCode::UnknownExplainFormat, &[&name]).into());
            }
        };
    }
    if format.is_some() && cursor.peek_word("INTO") {
        return unsupported("EXPLAIN ... INTO");
    }
    let explained = [
        "SELECT", "WITH", "VALUES", "TABLE", "INSERT", "REPLACE", "UPDATE", "DELETE",
    ];
    let is_statement = matches!(cursor.peek(), Token::LParen)
        || explained.iter().any(|word| cursor.peek_word(word));
    let is_explain = |word: &&str| cursor.peek_word(word);
    if ["EXPLAIN", "DESCRIBE", "DESC"].iter().any(is_explain) {
        return cursor.fail("a statement that has a plan");
    }
    if (analyze || format.is_some()) && !is_statement {
        return cursor.fail("a statement that has a plan");
    }
    if is_statement {
        let statement = Box::new(statement(cursor)?);
        return Ok(Statement::Explain(Explain {
            analyze,
            format,
            statement,
        }));
    }
    if matches!(
        cursor.peek(),
        Token::SingleQuotedString(_) | Token::DoubleQuotedString(_)
    ) {
        return Ok(Statement::Show(Show::FileColumns(cursor.string()?)));
    }
    let table = cursor.table_name()?;
    let like = match cursor.peek() {
        Token::EOF | Token::SemiColon => None,
        Token::SingleQuotedString(_) => Some(cursor.string()?),
        _ => Some(cursor.name()?),
    };
    let filter = crate::statement::Filter {
        like,
        condition: None,
    };
    Ok(Statement::Show(Show::Columns {
        full: false,
        table,
        filter,
    }))
}
