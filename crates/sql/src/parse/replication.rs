//! START, STOP and RESET of replication and of the binary log, of which there is neither.
//!
//! Answers are those of a MySQL that is no replica. SLAVE and MASTER are the words of MariaDB and
//! of MySQL before 8.4.

use datafusion::sql::sqlparser::tokenizer::Token;
use mayfly_types::{ErrorCode, MySqlError};

use super::cursor::Cursor;
use super::refusal::{Result, unsupported};
use super::show_server::channel;
use crate::statement::{Flush, Statement};

/// What may follow the threads that START REPLICA names.
const OPTIONS: [&str; 6] = [
    "UNTIL",
    "USER",
    "PASSWORD",
    "DEFAULT_AUTH",
    "PLUGIN_DIR",
    "FOR",
];

pub(super) fn start(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("START")?;
    replica(cursor)?;
    channel(cursor)?;
    if !cursor.is_over() && !OPTIONS.iter().any(|word| cursor.peek_word(word)) {
        return cursor.fail("UNTIL");
    }
    Err(MySqlError::new(ErrorCode::NotReplica, &[]).into())
}

pub(super) fn stop(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("STOP")?;
    replica(cursor)?;
    channel(cursor)?;
    Ok(Statement::StopReplica)
}

/// RESET: also of the query cache, of which there is none, and of what SET PERSIST has kept, which
/// is nothing.
pub(super) fn reset(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("RESET")?;
    let mut flush = Flush::default();
    if cursor.words(&["QUERY", "CACHE"]) {
        return Ok(Statement::Flush(flush));
    }
    if cursor.word("PERSIST") {
        return match cursor.is_over() {
            true => Ok(Statement::Flush(flush)),
            false => unsupported("RESET PERSIST of one variable"),
        };
    }
    cursor.list(|cursor| {
        if cursor.words(&["BINARY", "LOGS", "AND", "GTIDS"]) || cursor.word("MASTER") {
            flush.gtids = true;
            if cursor.word("TO") {
                cursor.parser.parse_literal_uint()?;
            }
            return Ok(());
        }
        if !cursor.word("REPLICA") {
            cursor.expect("SLAVE")?;
        }
        cursor.word("ALL");
        channel(cursor)
    })?;
    Ok(Statement::Flush(flush))
}

/// REPLICA, and its threads if they are named.
fn replica(cursor: &mut Cursor<'_>) -> Result<()> {
    if cursor.peek_word("GROUP_REPLICATION") {
        return unsupported("GROUP_REPLICATION");
    }
    if !cursor.word("REPLICA") {
        cursor.expect("SLAVE")?;
    }
    const THREADS: [&str; 2] = ["IO_THREAD", "SQL_THREAD"];
    while THREADS.iter().any(|thread| cursor.word(thread)) {
        cursor.token(&Token::Comma);
    }
    Ok(())
}
