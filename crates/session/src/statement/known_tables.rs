//! Temporary tables that a connection has made before, and makes again.
//!
//! Owns definitions by the text that made them, without the name of the table
//! (see [`mayfly_sql::table_text`]). A CREATE TEMPORARY TABLE whose text is known is neither read
//! nor checked again; a DROP TABLE of a temporary table needs no look at its text but for the name.
//!
//! **Never** warns and never fails for a reason that a user could have given: where a table of the
//! name is there, or is not, or variables are others, nothing is done, and the statement goes the
//! long way.
//!
//! **Cost**: some microseconds for both, most of them for the table; reading a definition of 16
//! columns and 16 keys takes a hundred thousand instructions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use mayfly_sql::digest::Tail;
use mayfly_sql::statement::CreateTable;
use mayfly_sql::table_text::TableText;
use mayfly_table::Definition;
use mayfly_types::MySqlError;

use super::Job;
use super::table_digests::{KnownTable, TEXT_BYTES_MAX};
use crate::connection::Connection;
use crate::crash::{crashed, panic_text};
use crate::digests::DigestCell;
use crate::gone_tables;
use crate::outcome::Outcome;

/// Runs a statement that makes a temporary table as before, or drops one; `None` for any other one,
/// of which nothing was done.
pub(crate) fn run_known_table(
    connection: &Arc<Connection>,
    text: &str,
) -> Option<Result<Outcome, MySqlError>> {
    let started = Instant::now();
    let whole = text;
    let text = TableText::read(whole)?;
    let run = || connection.run_table_text(text);
    let (ended, digest) = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(None) => return None,
        Ok(Some(ended)) => ended,
        Err(panic) => (Err(crashed(&panic_text(panic))), DigestCell::new()),
    };
    connection.count(|status| match text {
        TableText::Create { .. } => status.temporary_creates += 1,
        TableText::Drop { .. } => status.drops += 1,
    });
    connection.told_at_once(whole, &digest, started, ended.as_ref().err());
    Some(ended.map(|()| Outcome::done(0)))
}

impl Connection {
    /// How a statement ended, and its digest.
    fn run_table_text(&self, text: TableText<'_>) -> Option<(Result<(), MySqlError>, DigestCell)> {
        let mut local = self.local();
        if local.only_reads() {
            return None;
        }
        let database = local.database.clone()?;
        match text {
            TableText::Create { name, rest } => {
                let is_free = local.temporary.table(&database, name).is_none();
                let version = local.variables.version();
                let known = local.known_tables.get(rest, version)?;
                let definition = Arc::clone(&known.definition);
                let next_number = known.next_number;
                let digest = known.digest(name);
                drop(local);
                let dictionary = &self.engine.shared().dictionary;
                if !is_free || !dictionary.has_database(&database) {
                    return None;
                }
                let table = Arc::new(self.new_table(name, definition, true));
                table.raise_auto_increment(next_number);
                let published = self.publish(&database, table, true);
                self.local().session_state_changed();
                Some((published, digest))
            }
            TableText::Drop { temporary, name } => {
                // A large one is freed elsewhere, which is waited for.
                let table = local.temporary.table(&database, name)?;
                if gone_tables::is_large(&table) {
                    return None;
                }
                local.temporary.drop_table(&database, name).ok()?;
                if temporary {
                    local.session_state_changed();
                } else {
                    local.transaction.commit();
                    local.next_access = None;
                }
                Some((Ok(()), local.known_tables.drop_digest(temporary, name)))
            }
        }
    }
}

impl Job {
    /// Keeps what a statement has made for others of its text.
    pub(crate) fn keep_table(&self, create: &CreateTable, definition: &Arc<Definition>) {
        let is_plain = create.temporary && create.like.is_none() && create.query.is_none();
        // Checks are called after their table, and expressions may name it.
        let is_computed = definition
            .columns
            .iter()
            .any(|column| column.generated.is_some());
        let has_rules = is_computed || !definition.checks.is_empty();
        if !is_plain || has_rules || self.connection.take_warnings() > 0 {
            return;
        }
        let Some(TableText::Create { name, rest }) = TableText::read(&self.running.text) else {
            return;
        };
        let is_it = create.name.database.is_none() && create.name.table == name;
        if !is_it || rest.len() > TEXT_BYTES_MAX {
            return;
        }
        let mut local = self.connection.local();
        let ansi_quotes = local.settings().has_ansi_quotes;
        let known = KnownTable {
            text: rest.to_owned(),
            variables: local.variables.version(),
            definition: Arc::clone(definition),
            next_number: create.auto_increment.unwrap_or(1),
            tail: Tail::of(rest, ansi_quotes),
            last: None,
        };
        local.known_tables.keep(known);
    }
}
