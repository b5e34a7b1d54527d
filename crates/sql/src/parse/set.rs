//! SET in all its forms, and what is said of transactions.

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::{Result, unsupported};
use crate::statement::{Access, Assignment, Completion, Scope, SetValue, Statement};

pub(super) fn set(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("SET")?;
    for what in ["PASSWORD", "ROLE", "RESOURCE", "STATEMENT"] {
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
        assignments.push(assignment(cursor, &mut scope)?);
        if !cursor.token(&Token::Comma) {
            return Ok(Statement::Set(assignments));
        }
    }
}

fn assignment(cursor: &mut Cursor<'_>, scope: &mut Option<Scope>) -> Result<Assignment> {
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
    if cursor.word("TRANSACTION") {
        let (access, isolation) = characteristics(cursor);
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
pub(super) fn access(cursor: &mut Cursor<'_>) -> Option<Access> {
    characteristics(cursor).0
}

/// Reads what a transaction is to be: its access, and its isolation as the variable spells it.
fn characteristics(cursor: &mut Cursor<'_>) -> (Option<Access>, Option<&'static str>) {
    let (mut access, mut isolation) = (None, None);
    while !matches!(cursor.peek(), Token::EOF | Token::SemiColon) {
        if cursor.words(&["READ", "ONLY"]) {
            access = Some(Access::Read);
        } else if cursor.words(&["READ", "WRITE"]) {
            access = Some(Access::Write);
        } else if cursor.words(&["READ", "COMMITTED"]) {
            isolation = Some("READ-COMMITTED");
        } else if cursor.words(&["READ", "UNCOMMITTED"]) {
            isolation = Some("READ-UNCOMMITTED");
        } else if cursor.words(&["REPEATABLE", "READ"]) {
            isolation = Some("REPEATABLE-READ");
        } else if cursor.word("SERIALIZABLE") {
            isolation = Some("SERIALIZABLE");
        } else {
            cursor.skip();
        }
    }
    (access, isolation)
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
        Token::Word(word)
            if alone && word.quote_style.is_none() && !word.value.starts_with('@') =>
        {
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
