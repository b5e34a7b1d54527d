//! CREATE VIEW, ALTER VIEW and DROP VIEW.
//!
//! Owns the frame of a view; its query is sqlparser's.

use datafusion::sql::sqlparser::ast::{Query, SetExpr};
use datafusion::sql::sqlparser::tokenizer::Token;
use mayfly_table::{CheckOption, ViewAlgorithm, ViewSecurity};
use mayfly_types::{ErrorCode, MySqlError};

use super::cursor::Cursor;
use super::refusal::Result;
use super::show_server::account;
use crate::statement::{CreateView, DropView, OldView, Statement};

/// Kinds of objects that a statement may say DEFINER of.
const DEFINED: [&str; 5] = ["VIEW", "PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"];
/// The words that may stand in front of VIEW.
const MANNERS: [&str; 3] = ["ALGORITHM", "DEFINER", "SQL"];

/// Whether a view is what is defined next.
pub(super) fn is_next(cursor: &Cursor<'_>) -> bool {
    if !MANNERS.iter().any(|word| cursor.peek_word(word)) {
        return cursor.peek_word("VIEW");
    }
    let found = (0..).find_map(|ahead| match cursor.peek_ahead(ahead) {
        Token::EOF | Token::SemiColon => Some(false),
        Token::Word(word) if word.quote_style.is_none() => {
            let is_it = |kind: &&str| word.value.eq_ignore_ascii_case(kind);
            DEFINED
                .iter()
                .find(|kind| is_it(kind))
                .map(|kind| *kind == "VIEW")
        }
        _ => None,
    });
    found.unwrap_or_default()
}

/// Reads a view from its manners on.
pub(super) fn create(cursor: &mut Cursor<'_>, old: OldView) -> Result<Statement> {
    let algorithm = algorithm(cursor)?;
    let mut definer = None;
    if cursor.word("DEFINER") {
        cursor.parser.expect_token(&Token::Eq)?;
        definer = account(cursor)?;
    }
    let security = security(cursor)?;
    cursor.expect("VIEW")?;
    let if_not_exists = old != OldView::Needed && cursor.words(&["IF", "NOT", "EXISTS"]);
    if old == OldView::Replaced && if_not_exists {
        let (one, other) = ("OR REPLACE", "IF NOT EXISTS");
        return Err(MySqlError::new(ErrorCode::WrongUsage, &[&one, &other]).into());
    }
    let name = cursor.table_name()?;
    let columns = cursor.names_in_parentheses()?;
    cursor.expect("AS")?;
    let start = cursor.parser.peek_token_ref().span.start;
    let query = cursor.query()?;
    let end = cursor.parser.get_current_token().span.end;
    refuse_into(cursor, &query)?;
    Ok(Statement::CreateView(Box::new(CreateView {
        old,
        if_not_exists,
        algorithm,
        definer,
        security,
        name,
        columns,
        query,
        place: (start, end),
        check: check(cursor)?,
    })))
}

fn algorithm(cursor: &mut Cursor<'_>) -> Result<ViewAlgorithm> {
    if !cursor.word("ALGORITHM") {
        return Ok(ViewAlgorithm::Undefined);
    }
    cursor.parser.expect_token(&Token::Eq)?;
    if cursor.word("UNDEFINED") {
        Ok(ViewAlgorithm::Undefined)
    } else if cursor.word("MERGE") {
        Ok(ViewAlgorithm::Merge)
    } else if cursor.word("TEMPTABLE") {
        Ok(ViewAlgorithm::TempTable)
    } else {
        cursor.fail("an algorithm")
    }
}

fn security(cursor: &mut Cursor<'_>) -> Result<ViewSecurity> {
    if !cursor.words(&["SQL", "SECURITY"]) {
        return Ok(ViewSecurity::Definer);
    }
    if cursor.word("INVOKER") {
        return Ok(ViewSecurity::Invoker);
    }
    cursor.expect("DEFINER")?;
    Ok(ViewSecurity::Definer)
}

fn check(cursor: &mut Cursor<'_>) -> Result<Option<CheckOption>> {
    if !cursor.word("WITH") {
        return Ok(None);
    }
    let check = match cursor.word("LOCAL") {
        true => CheckOption::Local,
        false => {
            cursor.word("CASCADED");
            CheckOption::Cascaded
        }
    };
    cursor.expect("CHECK")?;
    cursor.expect("OPTION")?;
    Ok(Some(check))
}

/// The rows of a view go to nobody else.
fn refuse_into(cursor: &Cursor<'_>, query: &Query) -> Result<()> {
    let has_into = match query.body.as_ref() {
        SetExpr::Select(select) => select.into.is_some(),
        _ => false,
    };
    match has_into || cursor.peek_word("INTO") {
        true => Err(MySqlError::new(ErrorCode::ViewSelectClause, &[&"INTO"]).into()),
        false => Ok(()),
    }
}

/// Reads DROP VIEW behind its words.
pub(super) fn drop(cursor: &mut Cursor<'_>) -> Result<Statement> {
    let if_exists = cursor.words(&["IF", "EXISTS"]);
    let names = cursor.dropped()?;
    Ok(Statement::DropView(DropView { if_exists, names }))
}
