//! SHOW in the forms that have an answer here.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::refusal::{Result, unsupported};
use super::show_rest::{database, filter, limit, nothing};
use super::show_server;
use crate::statement::{Nothing, ProfileKind, ProfileQuery, Scope, Show, Statement, TableName};

pub(super) fn show(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("SHOW")?;
    let extended = cursor.word("EXTENDED");
    let full = cursor.word("FULL");
    let is_plain = !extended && !full;
    let scope = if !is_plain {
        None
    } else if cursor.word("GLOBAL") {
        Some(Scope::Global)
    } else if cursor.word("SESSION") || cursor.word("LOCAL") {
        Some(Scope::Session)
    } else {
        None
    };
    let default_scope = scope.unwrap_or(Scope::Session);
    let show = if is_plain && cursor.word("VARIABLES") {
        Show::Variables {
            scope: default_scope,
            filter: filter(cursor)?,
        }
    } else if is_plain && cursor.word("STATUS") {
        Show::Status {
            scope: default_scope,
            filter: filter(cursor)?,
        }
    } else if scope.is_some() {
        return cursor.fail("VARIABLES");
    } else if cursor.word("TABLES") {
        Show::Tables {
            full,
            database: database(cursor)?,
            filter: filter(cursor)?,
        }
    } else if cursor.word("COLUMNS") || cursor.word("FIELDS") {
        let table = from_table(cursor)?;
        Show::Columns {
            full,
            table,
            filter: filter(cursor)?,
        }
    } else if !extended && cursor.word("PROCESSLIST") {
        Show::ProcessList
    } else if !extended && cursor.word("TRIGGERS") {
        nothing(cursor, Nothing::Triggers)?
    } else if !full && (cursor.word("INDEX") || cursor.word("INDEXES") || cursor.word("KEYS")) {
        index(cursor)?
    } else if !is_plain {
        return cursor.fail("TABLES");
    } else if cursor.words(&["TABLE", "STATUS"]) {
        Show::TableStatus {
            database: database(cursor)?,
            filter: filter(cursor)?,
        }
    } else if cursor.words(&["CREATE", "TABLE"]) {
        Show::CreateTable(cursor.table_name()?)
    } else if cursor.words(&["CREATE", "DATABASE"]) || cursor.words(&["CREATE", "SCHEMA"]) {
        let if_not_exists = cursor.words(&["IF", "NOT", "EXISTS"]);
        let name = cursor.name()?;
        Show::CreateDatabase {
            name,
            if_not_exists,
        }
    } else if cursor.word("DATABASES") || cursor.word("SCHEMAS") {
        Show::Databases(filter(cursor)?)
    } else if cursor.word("WARNINGS") {
        warnings(cursor, false)?
    } else if cursor.word("ERRORS") {
        warnings(cursor, true)?
    } else if cursor.word("COUNT") {
        cursor.parser.expect_token(&Token::LParen)?;
        cursor.parser.expect_token(&Token::Mul)?;
        cursor.parser.expect_token(&Token::RParen)?;
        let errors_only = cursor.word("ERRORS");
        if !errors_only {
            cursor.expect("WARNINGS")?;
        }
        Show::WarningCount { errors_only }
    } else if cursor.word("ENGINES") || cursor.words(&["STORAGE", "ENGINES"]) {
        Show::Engines
    } else if cursor.words(&["CHARACTER", "SET"]) || cursor.word("CHARSET") {
        Show::CharacterSets(filter(cursor)?)
    } else if cursor.word("COLLATION") {
        Show::Collations(filter(cursor)?)
    } else if cursor.word("PROFILES") {
        Show::Profiles
    } else if cursor.word("PROFILE") {
        profile(cursor)?
    } else if cursor.word("EVENTS") {
        nothing(cursor, Nothing::Events)?
    } else if cursor.words(&["FUNCTION", "STATUS"]) || cursor.words(&["PROCEDURE", "STATUS"]) {
        filter(cursor)?;
        Show::Nothing(Nothing::Routines)
    } else if let Some(show) = show_server::show(cursor)? {
        show
    } else {
        for what in ["FUNCTION", "PROCEDURE"] {
            if cursor.peek_word(what) {
                return unsupported(&format!("SHOW {what}"));
            }
        }
        return cursor.fail("a SHOW statement");
    };
    Ok(Statement::Show(show))
}

fn index(cursor: &mut Cursor<'_>) -> Result<Show> {
    let table = from_table(cursor)?;
    let condition = match cursor.word("WHERE") {
        true => Some(cursor.parser.parse_expr()?),
        false => None,
    };
    Ok(Show::Index { table, condition })
}

fn from_table(cursor: &mut Cursor<'_>) -> Result<TableName> {
    if !cursor.word("FROM") {
        cursor.expect("IN")?;
    }
    let mut table = cursor.table_name()?;
    if let Some(name) = database(cursor)? {
        table.database = Some(name);
    }
    Ok(table)
}

fn profile(cursor: &mut Cursor<'_>) -> Result<Show> {
    const KINDS: [(&[&str], &[ProfileKind]); 9] = [
        (
            &["ALL"],
            &[
                ProfileKind::Cpu,
                ProfileKind::ContextSwitches,
                ProfileKind::BlockIo,
                ProfileKind::Messages,
                ProfileKind::PageFaults,
                ProfileKind::Swaps,
                ProfileKind::Source,
            ],
        ),
        (&["BLOCK", "IO"], &[ProfileKind::BlockIo]),
        (&["CONTEXT", "SWITCHES"], &[ProfileKind::ContextSwitches]),
        (&["CPU"], &[ProfileKind::Cpu]),
        (&["IPC"], &[ProfileKind::Messages]),
        (&["MEMORY"], &[ProfileKind::Memory]),
        (&["PAGE", "FAULTS"], &[ProfileKind::PageFaults]),
        (&["SOURCE"], &[ProfileKind::Source]),
        (&["SWAPS"], &[ProfileKind::Swaps]),
    ];
    let mut asked = ProfileQuery::default();
    loop {
        let found = KINDS.iter().find(|(words, _)| cursor.words(words));
        match found {
            Some((_, kinds)) => asked.kinds.extend(*kinds),
            None if asked.kinds.is_empty() => break,
            None => return cursor.fail("a kind of resources"),
        }
        if !cursor.token(&Token::Comma) {
            break;
        }
    }
    if cursor.words(&["FOR", "QUERY"]) {
        asked.query = Some(cursor.parser.parse_literal_uint()?);
    }
    (asked.offset, asked.limit) = limit(cursor)?;
    Ok(Show::Profile(asked))
}

fn warnings(cursor: &mut Cursor<'_>, errors_only: bool) -> Result<Show> {
    let (offset, limit) = limit(cursor)?;
    Ok(Show::Warnings {
        errors_only,
        offset,
        limit,
    })
}
