//! SHOW of what tools ask any server for: plugins, grants, logs, replication, engines.

use datafusion::sql::sqlparser::tokenizer::Token;
use mayfly_types::{ErrorCode, MySqlError};

use super::absent;
use super::cursor::Cursor;
use super::refusal::{Result, unsupported};
use super::show_rest::{limit, nothing};
use crate::statement::{Absent, Account, Nothing, Show, Terms};

/// Reads one of these statements behind SHOW, if it is one.
pub(super) fn show(cursor: &mut Cursor<'_>) -> Result<Option<Show>> {
    Ok(Some(if cursor.word("PLUGINS") {
        Show::Plugins
    } else if cursor.word("PRIVILEGES") {
        Show::Privileges
    } else if cursor.word("GRANTS") {
        Show::Grants(grantee(cursor)?)
    } else if cursor.words(&["OPEN", "TABLES"]) {
        nothing(cursor, Nothing::OpenTables)?
    } else if cursor.word("ENGINE") {
        engine(cursor)?
    } else if cursor.word("CREATE") {
        create(cursor)?
    } else {
        return replication(cursor);
    }))
}

/// Reads what is asked of the binary log and of replication.
fn replication(cursor: &mut Cursor<'_>) -> Result<Option<Show>> {
    const STATUS_OF_LOG: [&[&str]; 3] = [
        &["BINARY", "LOG", "STATUS"],
        &["BINLOG", "STATUS"],
        &["MASTER", "STATUS"],
    ];
    const LOGS: [&[&str]; 2] = [&["BINARY", "LOGS"], &["MASTER", "LOGS"]];
    const EVENTS: [&[&str]; 2] = [&["BINLOG", "EVENTS"], &["RELAYLOG", "EVENTS"]];
    const REPLICAS: [(&[&str], Nothing); 7] = [
        (&["SLAVE", "STATUS"], Nothing::ReplicaStatus(Terms::Old)),
        (&["REPLICA", "STATUS"], Nothing::ReplicaStatus(Terms::New)),
        (&["ALL", "SLAVES", "STATUS"], Nothing::AllReplicasStatus),
        (&["ALL", "REPLICAS", "STATUS"], Nothing::AllReplicasStatus),
        (&["SLAVE", "HOSTS"], Nothing::Replicas(Terms::Old)),
        (&["REPLICA", "HOSTS"], Nothing::Replicas(Terms::Old)),
        (&["REPLICAS"], Nothing::Replicas(Terms::New)),
    ];
    let is_next =
        |forms: &[&[&str]], cursor: &mut Cursor<'_>| forms.iter().any(|words| cursor.words(words));
    if is_next(&STATUS_OF_LOG, cursor) {
        return Ok(Some(Show::Nothing(Nothing::BinaryLogStatus)));
    }
    if is_next(&LOGS, cursor) {
        return Ok(Some(Show::BinaryLogs));
    }
    if is_next(&EVENTS, cursor) {
        if cursor.word("IN") {
            cursor.string()?;
        }
        if cursor.word("FROM") {
            cursor.parser.parse_literal_uint()?;
        }
        limit(cursor)?;
        channel(cursor)?;
        return Ok(Some(Show::Nothing(Nothing::LogEvents)));
    }
    let found = REPLICAS.iter().find(|(words, _)| cursor.words(words));
    let Some((_, what)) = found else {
        return Ok(None);
    };
    channel(cursor)?;
    Ok(Some(Show::Nothing(*what)))
}

/// `FOR CHANNEL`: there is only the one without a name.
pub(super) fn channel(cursor: &mut Cursor<'_>) -> Result<()> {
    if cursor.words(&["FOR", "CHANNEL"]) {
        let name = cursor.string()?;
        if !name.is_empty() {
            let code = ErrorCode::NoSuchChannel;
            return Err(MySqlError::new(code, &[&name]).into());
        }
    }
    Ok(())
}

/// The account behind GRANTS; `None` is the one that asks.
fn grantee(cursor: &mut Cursor<'_>) -> Result<Option<Account>> {
    if !cursor.word("FOR") {
        return Ok(None);
    }
    let account = account(cursor)?;
    if cursor.word("USING") {
        return unsupported("SHOW GRANTS ... USING");
    }
    Ok(account)
}

/// `user`, `user@host` or CURRENT_USER, which is `None`.
pub(super) fn account(cursor: &mut Cursor<'_>) -> Result<Option<Account>> {
    if cursor.word("CURRENT_USER") {
        if cursor.token(&Token::LParen) {
            cursor.parser.expect_token(&Token::RParen)?;
        }
        return Ok(None);
    }
    let is_plain = matches!(cursor.peek(), Token::Word(word) if word.quote_style.is_none());
    let user = cursor.value_word()?;
    if is_plain && let Some((user, host)) = user.split_once('@') {
        let host = match host.is_empty() {
            true => cursor.value_word()?,
            false => host.to_owned(),
        };
        let user = user.to_owned();
        return Ok(Some(Account { user, host }));
    }
    let host = match cursor.peek() {
        Token::Word(word) if word.quote_style.is_none() && word.value.starts_with('@') => {
            cursor.skip();
            word.value.trim_start_matches('@').to_owned()
        }
        _ => "%".to_owned(),
    };
    Ok(Some(Account { user, host }))
}

/// `ENGINE name STATUS`, MUTEX or LOGS.
fn engine(cursor: &mut Cursor<'_>) -> Result<Show> {
    let name = cursor.value_word()?;
    if !["STATUS", "MUTEX", "LOGS"]
        .iter()
        .any(|what| cursor.word(what))
    {
        return cursor.fail("STATUS");
    }
    Ok(Show::EngineStatus(name))
}

/// SHOW CREATE of a view, and of what there is none of or no definition.
fn create(cursor: &mut Cursor<'_>) -> Result<Show> {
    if cursor.word("VIEW") {
        return Ok(Show::CreateView(cursor.table_name()?));
    }
    const KINDS: [(&str, Absent); 4] = [
        ("EVENT", Absent::Event),
        ("FUNCTION", Absent::Function),
        ("PROCEDURE", Absent::Procedure),
        ("TRIGGER", Absent::Trigger),
    ];
    match KINDS.iter().find(|(word, _)| cursor.word(word)) {
        Some((_, kind)) => Ok(Show::CreateAbsent(*kind, cursor.table_name()?)),
        None => match absent::kind(cursor) {
            Some(kind) => unsupported(&format!("SHOW CREATE {kind}")),
            None => cursor.fail("TABLE"),
        },
    }
}
