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

use mayfly_sql::statement::CreateTable;
use mayfly_sql::table_text::TableText;
use mayfly_table::Definition;
use mayfly_types::MySqlError;

use super::Job;
use crate::connection::Connection;
use crate::gone_tables;
use crate::outcome::{Outcome, crashed, panic_text};

/// Definitions that are kept, and the bytes of the longest text.
const TABLES_MAX: usize = 16;
const TEXT_BYTES_MAX: usize = 4 << 10;

/// The definitions that a connection has seen, the latest last.
#[derive(Default)]
pub(crate) struct KnownTables(Vec<KnownTable>);

struct KnownTable {
    /// What stood behind the name.
    text: String,
    /// The version of the variables, which a definition may depend on.
    variables: u64,
    made: Made,
}

/// What a text makes.
#[derive(Clone)]
struct Made {
    definition: Arc<Definition>,
    /// The AUTO_INCREMENT option.
    next_number: u64,
}

impl KnownTables {
    fn get(&self, text: &str, variables: u64) -> Option<&Made> {
        let mut known = self.0.iter().rev();
        let found = known.find(|known| known.variables == variables && known.text == text)?;
        Some(&found.made)
    }

    fn keep(&mut self, known: KnownTable) {
        self.0.retain(|other| other.text != known.text);
        if self.0.len() >= TABLES_MAX {
            self.0.remove(0);
        }
        self.0.push(known);
    }
}

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
    let ended = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(None) => return None,
        Ok(Some(ended)) => ended,
        Err(panic) => Err(crashed(&panic_text(panic))),
    };
    connection.count(|status| match text {
        TableText::Create { .. } => status.temporary_creates += 1,
        TableText::Drop { .. } => status.drops += 1,
    });
    connection.told_at_once(whole, started, ended.as_ref().err());
    Some(ended.map(|()| Outcome::done(0)))
}

impl Connection {
    fn run_table_text(&self, text: TableText<'_>) -> Option<Result<(), MySqlError>> {
        let mut local = self.local();
        if local.only_reads() {
            return None;
        }
        let database = local.database.clone()?;
        match text {
            TableText::Create { name, rest } => {
                let made = local
                    .known_tables
                    .get(rest, local.variables.version())?
                    .clone();
                let is_free = local.temporary.table(&database, name).is_none();
                drop(local);
                let dictionary = &self.engine.shared().dictionary;
                if !is_free || !dictionary.has_database(&database) {
                    return None;
                }
                let table = Arc::new(self.new_table(name, made.definition, true));
                table.raise_auto_increment(made.next_number);
                let published = self.publish(&database, table, true);
                self.local().session_state_changed();
                Some(published)
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
                Some(Ok(()))
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
        let known = KnownTable {
            text: rest.to_owned(),
            variables: local.variables.version(),
            made: Made {
                definition: Arc::clone(definition),
                next_number: create.auto_increment.unwrap_or(1),
            },
        };
        local.known_tables.keep(known);
    }
}
