//! ANALYZE, CHECK, CHECKSUM, OPTIMIZE and REPAIR TABLE.
//!
//! Options that only say how thoroughly an engine works, or what a binary log is told, are read and
//! have no effect.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::refusal::{Result, unsupported};
use crate::statement::{Maintenance, MaintenanceKind, Statement, TableName};

/// Options of CHECK TABLE but for FOR UPGRADE.
const CHECK_OPTIONS: [&str; 5] = ["CHANGED", "EXTENDED", "FAST", "MEDIUM", "QUICK"];
/// Options of REPAIR TABLE.
const REPAIR_OPTIONS: [&str; 3] = ["EXTENDED", "QUICK", "USE_FRM"];

/// Reads a statement that begins with one of these words; `verb` is that word in upper case.
pub(super) fn maintenance(cursor: &mut Cursor<'_>, verb: &str) -> Result<Statement> {
    cursor.skip();
    if !matches!(verb, "CHECK" | "CHECKSUM") {
        let _ = cursor.word("LOCAL") || cursor.word("NO_WRITE_TO_BINLOG");
    }
    if !cursor.word("TABLE") && !cursor.word("TABLES") {
        return match cursor.peek() {
            // ANALYZE SELECT, CHECK VIEW: MariaDB has them.
            Token::Word(_) => unsupported(verb),
            _ => cursor.fail("TABLE"),
        };
    }
    let mut tables = Vec::new();
    cursor.list(|cursor| {
        tables.push(cursor.table_name()?);
        Ok(())
    })?;
    let kind = match verb {
        "ANALYZE" => analyze(cursor, &tables)?,
        "CHECK" => {
            while CHECK_OPTIONS.iter().any(|option| cursor.word(option))
                || cursor.words(&["FOR", "UPGRADE"])
            {}
            MaintenanceKind::Check
        }
        "CHECKSUM" => {
            let quick = cursor.word("QUICK");
            if !quick {
                cursor.word("EXTENDED");
            }
            MaintenanceKind::Checksum { quick }
        }
        "OPTIMIZE" => MaintenanceKind::Optimize,
        _ => {
            while REPAIR_OPTIONS.iter().any(|option| cursor.word(option)) {}
            MaintenanceKind::Repair
        }
    };
    Ok(Statement::Maintain(Maintenance { kind, tables }))
}

/// What may follow the tables of ANALYZE: MariaDB's PERSISTENT asks for statistics of columns and
/// keys, which are always up to date.
fn analyze(cursor: &mut Cursor<'_>, tables: &[TableName]) -> Result<MaintenanceKind> {
    if tables.len() == 1 && (cursor.peek_word("UPDATE") || cursor.peek_word("DROP")) {
        return unsupported("ANALYZE TABLE ... HISTOGRAM");
    }
    if cursor.words(&["PERSISTENT", "FOR"]) && !cursor.word("ALL") {
        for what in ["COLUMNS", "INDEXES"] {
            cursor.expect(what)?;
            if !cursor.word("ALL") {
                cursor.parser.expect_token(&Token::LParen)?;
                if !cursor.token(&Token::RParen) {
                    cursor.list(|cursor| cursor.any_word().map(drop))?;
                    cursor.parser.expect_token(&Token::RParen)?;
                }
            }
        }
    }
    Ok(MaintenanceKind::Analyze)
}
