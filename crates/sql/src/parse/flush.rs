//! FLUSH, LOCK and UNLOCK.
//!
//! There is little to flush and nothing to lock, but what MySQL does not read is refused.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::refusal::Result;
use crate::statement::{Flush, Statement};

/// What an item of FLUSH does.
#[derive(Clone, Copy)]
enum Effect {
    Nothing,
    Status,
    SlowLog,
    Accounts,
}

/// Items of FLUSH but for TABLES. QUERY CACHE, SSL, THREADS and the statistics are MariaDB's.
const ITEMS: [(&[&str], Effect); 18] = [
    (&["STATUS"], Effect::Status),
    (&["LOGS"], Effect::SlowLog),
    (&["SLOW", "LOGS"], Effect::SlowLog),
    (&["BINARY", "LOGS"], Effect::Nothing),
    (&["ENGINE", "LOGS"], Effect::Nothing),
    (&["ERROR", "LOGS"], Effect::Nothing),
    (&["GENERAL", "LOGS"], Effect::Nothing),
    (&["HOSTS"], Effect::Nothing),
    (&["OPTIMIZER_COSTS"], Effect::Nothing),
    (&["PRIVILEGES"], Effect::Accounts),
    (&["QUERY", "CACHE"], Effect::Nothing),
    (&["USER_RESOURCES"], Effect::Nothing),
    (&["SSL"], Effect::Nothing),
    (&["THREADS"], Effect::Nothing),
    (&["CLIENT_STATISTICS"], Effect::Nothing),
    (&["INDEX_STATISTICS"], Effect::Nothing),
    (&["TABLE_STATISTICS"], Effect::Nothing),
    (&["USER_STATISTICS"], Effect::Nothing),
];

pub(super) fn flush(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("FLUSH")?;
    let _ = cursor.word("LOCAL") || cursor.word("NO_WRITE_TO_BINLOG");
    if cursor.word("TABLES") || cursor.word("TABLE") {
        tables(cursor)?;
        return Ok(Statement::Flush(Flush::default()));
    }
    let mut flush = Flush::default();
    cursor.list(|cursor| {
        match item(cursor)? {
            Effect::Nothing => {}
            Effect::Status => flush.status = true,
            Effect::SlowLog => flush.slow_log = true,
            Effect::Accounts => flush.accounts = true,
        }
        Ok(())
    })?;
    Ok(Statement::Flush(flush))
}

fn item(cursor: &mut Cursor<'_>) -> Result<Effect> {
    if cursor.words(&["RELAY", "LOGS"]) {
        if cursor.words(&["FOR", "CHANNEL"]) {
            cursor.string()?;
        }
        return Ok(Effect::Nothing);
    }
    match ITEMS.iter().find(|(words, _)| cursor.words(words)) {
        Some((_, effect)) => Ok(*effect),
        None => cursor.fail("what is to be flushed"),
    }
}

/// `[a, b] [WITH READ LOCK | FOR EXPORT]`.
fn tables(cursor: &mut Cursor<'_>) -> Result<()> {
    let is_named = matches!(cursor.peek(), Token::Word(_))
        && !cursor.peek_word("WITH")
        && !cursor.peek_word("FOR");
    if is_named {
        cursor.list(|cursor| cursor.table_name().map(drop))?;
    }
    let _ = cursor.words(&["WITH", "READ", "LOCK"]) || is_named && cursor.words(&["FOR", "EXPORT"]);
    Ok(())
}

pub(super) fn lock(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("LOCK")?;
    if cursor.words(&["INSTANCE", "FOR", "BACKUP"]) {
        return Ok(Statement::LockTables(true));
    }
    if !cursor.word("TABLES") {
        cursor.expect("TABLE")?;
    }
    cursor.list(|cursor| {
        cursor.table_name()?;
        let kinds = ["READ", "WRITE", "LOW_PRIORITY"];
        if cursor.word("AS") || !kinds.iter().any(|kind| cursor.peek_word(kind)) {
            cursor.name()?;
        }
        if cursor.word("READ") {
            let _ = cursor.word("LOCAL");
        } else {
            let _ = cursor.word("LOW_PRIORITY");
            cursor.expect("WRITE")?;
        }
        Ok(())
    })?;
    Ok(Statement::LockTables(true))
}

pub(super) fn unlock(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("UNLOCK")?;
    if !cursor.word("TABLES") && !cursor.word("INSTANCE") {
        cursor.expect("TABLE")?;
    }
    Ok(Statement::LockTables(false))
}
