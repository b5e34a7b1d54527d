//! SET in all its forms, and what is said of transactions.

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::refusal::{Result, unsupported, unsupported_account};
use crate::statement::{Access, Assignment, Completion, Scope, SetValue, Statement};

pub(super) fn set(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("SET")?;
    if cursor.peek_word("PASSWORD") {
        return unsupported_account("SET PASSWORD");
    }
    for what in ["ROLE", "RESOURCE", "STATEMENT"] {
        if cursor.peek_word(what) {
            return unsupported(&format!("SET {what}"));
        }
    }
    if cursor.words(&["DEFAULT", "ROLE"]) {
        return unsupported("SET DEFAULT ROLE");
    }
    let mut assignments = Vec::new();
    let mut scope = None;
    loop {
        let is_first = assignments.is_empty();
        assignments.push(assignment(cursor, &mut scope, is_first)?);
        // What is said of transactions stands alone.
        let is_last = matches!(assignments.last(), Some(Assignment::Transaction { .. }));
        if is_last || !cursor.token(&Token::Comma) {
            return Ok(Statement::Set(assignments));
        }
    }
}

fn assignment(
    cursor: &mut Cursor<'_>,
    scope: &mut Option<Scope>,
    is_first: bool,
) -> Result<Assignment> {
    if cursor.word("NAMES") {
        if cursor.word("DEFAULT") {
            return Ok(Assignment::Names {
                character_set: None,
                collation: None,
            });
        }
        let character_set = Some(cursor.value_word()?);
        let collation = if cursor.word("COLLATE") {
            Some(cursor.value_word()?)
        } else {
            None
        };
        return Ok(Assignment::Names {
            character_set,
            collation,
        });
    }
    if cursor.words(&["CHARACTER", "SET"]) || cursor.word("CHARSET") {
        if cursor.word("DEFAULT") {
            return Ok(Assignment::CharacterSet(None));
        }
        return Ok(Assignment::CharacterSet(Some(cursor.value_word()?)));
    }
    for (word, meaning) in [
        ("GLOBAL", Scope::Global),
        ("SESSION", Scope::Session),
        ("LOCAL", Scope::Session),
        ("PERSIST", Scope::Persist),
        ("PERSIST_ONLY", Scope::Persist),
    ] {
        let next = &cursor.parser.peek_nth_token_ref(1).token;
        if cursor.peek_word(word) && matches!(next, Token::Word(_)) {
            cursor.skip();
            *scope = Some(meaning);
            break;
        }
    }
    if is_first && cursor.word("TRANSACTION") {
        let (access, isolation) = set_characteristics(cursor)?;
        return Ok(Assignment::Transaction {
            scope: *scope,
            access,
            isolation,
        });
    }
    let name = cursor.name()?;
    if let Some(rest) = name.strip_prefix("@@") {
        return system(cursor, rest);
    }
    if let Some(user) = name.strip_prefix('@') {
        let name = if user.is_empty() {
            cursor.value_word()?
        } else {
            user.to_owned()
        };
        equals(cursor)?;
        let value = cursor.parser.parse_expr()?;
        return Ok(Assignment::User {
            name: name.to_ascii_lowercase(),
            value,
        });
    }
    equals(cursor)?;
    let name = name.to_ascii_lowercase();
    Ok(Assignment::System {
        scope: *scope,
        name,
        value: value(cursor)?,
    })
}

/// Reads what START TRANSACTION says of it.
pub(super) fn start_characteristics(cursor: &mut Cursor<'_>) -> Result<Option<Access>> {
    let mut access = None;
    if matches!(cursor.peek(), Token::EOF | Token::SemiColon) {
        return Ok(access);
    }
    loop {
        if !cursor.words(&["WITH", "CONSISTENT", "SNAPSHOT"]) {
            let said = access_mode(cursor)?;
            if access.is_some_and(|before| before != said) {
                return cursor.fail("one access mode");
            }
            access = Some(said);
        }
        if !cursor.token(&Token::Comma) {
            return Ok(access);
        }
    }
}

/// Reads what SET TRANSACTION says: an access mode, an isolation level as the variable spells it,
/// or both in any order.
fn set_characteristics(cursor: &mut Cursor<'_>) -> Result<(Option<Access>, Option<&'static str>)> {
    if cursor.peek_word("ISOLATION") {
        let isolation = Some(isolation_level(cursor)?);
        let access = match cursor.token(&Token::Comma) {
            true => Some(access_mode(cursor)?),
            false => None,
        };
        return Ok((access, isolation));
    }
    let access = Some(access_mode(cursor)?);
    let isolation = match cursor.token(&Token::Comma) {
        true => Some(isolation_level(cursor)?),
        false => None,
    };
    Ok((access, isolation))
}

fn access_mode(cursor: &mut Cursor<'_>) -> Result<Access> {
    cursor.expect("READ")?;
    if cursor.word("ONLY") {
        return Ok(Access::Read);
    }
    cursor.expect("WRITE")?;
    Ok(Access::Write)
}

fn isolation_level(cursor: &mut Cursor<'_>) -> Result<&'static str> {
    cursor.expect("ISOLATION")?;
    cursor.expect("LEVEL")?;
    if cursor.word("SERIALIZABLE") {
        return Ok("SERIALIZABLE");
    }
    if cursor.word("REPEATABLE") {
        cursor.expect("READ")?;
        return Ok("REPEATABLE-READ");
    }
    cursor.expect("READ")?;
    if cursor.word("UNCOMMITTED") {
        return Ok("READ-UNCOMMITTED");
    }
    cursor.expect("COMMITTED")?;
    Ok("READ-COMMITTED")
}

/// Reads what is to follow the end of a transaction.
pub(super) fn completion(cursor: &mut Cursor<'_>) -> Result<Completion> {
    let mut completion = Completion::Nothing;
    if cursor.word("AND") {
        if !cursor.word("NO") {
            completion = Completion::Chain;
        }
        cursor.expect("CHAIN")?;
    }
    if cursor.word("NO") {
        cursor.expect("RELEASE")?;
    } else if completion != Completion::Chain && cursor.word("RELEASE") {
        completion = Completion::Release;
    }
    Ok(completion)
}

/// The rest of `@@scope.name = value`.
fn system(cursor: &mut Cursor<'_>, first: &str) -> Result<Assignment> {
    let mut name = first.to_ascii_lowercase();
    let mut scope = None;
    if cursor.token(&Token::Period) {
        scope = match name.as_str() {
            "global" => Some(Scope::Global),
            "session" | "local" => Some(Scope::Session),
            "persist" | "persist_only" => Some(Scope::Persist),
            _ => return cursor.fail("a variable"),
        };
        name = cursor.name()?.to_ascii_lowercase();
    }
    equals(cursor)?;
    Ok(Assignment::System {
        scope,
        name,
        value: value(cursor)?,
    })
}

fn equals(cursor: &mut Cursor<'_>) -> Result<()> {
    if cursor.token(&Token::Eq) || cursor.token(&Token::Assignment) {
        return Ok(());
    }
    cursor.fail("=")
}

fn value(cursor: &mut Cursor<'_>) -> Result<SetValue> {
    let after = &cursor.parser.peek_nth_token_ref(1).token;
    let alone = matches!(after, Token::Comma | Token::EOF | Token::SemiColon);
    match cursor.peek() {
        // A name is its text, in quotes too: so texts in double quotes stand under ANSI_QUOTES.
        Token::Word(word) if alone && word.quote_style.is_some() => {
            cursor.skip();
            Ok(SetValue::Word(word.value))
        }
        Token::Word(word) if alone && !word.value.starts_with('@') => {
            cursor.skip();
            let upper = word.value.to_ascii_uppercase();
            Ok(match upper.as_str() {
                "DEFAULT" => SetValue::Default,
                "NULL" | "TRUE" | "FALSE" => {
                    let literal = match upper.as_str() {
                        "NULL" => datafusion::sql::sqlparser::ast::Value::Null,
                        other => datafusion::sql::sqlparser::ast::Value::Boolean(other == "TRUE"),
                    };
                    SetValue::Expression(Expr::Value(literal.into()))
                }
                _ => SetValue::Word(word.value),
            })
        }
        _ => Ok(SetValue::Expression(cursor.parser.parse_expr()?)),
    }
}
