//! What a client is told of its session with its answers: `session_track_*`.
//!
//! Owns what has changed since the client was last told, and what is known of its transaction. What
//! changes says so where it changes; of transactions a statement is looked at when it has ended,
//! and only for clients that ask for it.
//!
//! ```text
//!   T or I    a transaction that was begun, or one without autocommit that has met a table
//!   r R       has read shared tables, temporary ones (only these can be rolled back)
//!   w W       has written them
//!   s         unsafe statements for replication, which there is not: never
//!   S         has sent rows
//!   L         LOCK TABLES
//! ```
//!
//! **Source**: `sql/session_tracker.cc` of MySQL and MariaDB.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mayfly_sql::parse;
use mayfly_sql::references::References;
use mayfly_sql::statement::{
    Access, Assignment, CreateTable, InsertSource, RowChoice, Statement, TableName,
};

use crate::connection::Connection;
use crate::local::Local;
use crate::outcome::Outcome;
use crate::tracks::{TRANSACTION, TransactionInfo};
use crate::variables::stored_name;

const VARIABLES: &str = "session_track_system_variables";

/// A change of a session that its client wants to know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChange {
    /// A system variable has this value: `session_track_system_variables`.
    Variable {
        /// Its name.
        name: &'static str,
        /// Its value, as SHOW VARIABLES spells it.
        value: String,
    },
    /// The current database, empty if there is none: `session_track_schema`.
    Schema(String),
    /// Something that another connection would not have: `session_track_state_change`.
    State,
    /// The transaction's state in eight characters: `session_track_transaction_info`.
    TransactionState(String),
    /// Statements that would begin the same transaction: `session_track_transaction_info`.
    TransactionCharacteristics(String),
}

/// What has changed since the client was told.
#[derive(Default)]
pub(crate) struct Tracker {
    /// With their values, where these are kept elsewhere.
    variables: Vec<(&'static str, Option<String>)>,
    schema: bool,
    state: bool,
    transaction: Followed,
}

/// What is known of the transaction.
#[derive(Default)]
struct Followed {
    now: Facts,
    /// What the client knows.
    told: Facts,
    /// The characteristics that the client knows, and whether they are told even so.
    told_characteristics: String,
    has_new_characteristics: bool,
    /// Whether they may be others.
    has_run: bool,
    /// Whether all is to be told, since it was just asked for.
    is_asked: bool,
    /// What SET TRANSACTION said of the transaction that is open, or of the next one.
    isolation: Option<&'static str>,
    has_snapshot: bool,
}

/// What a transaction has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Facts {
    is_begun: bool,
    is_implicit: bool,
    has_read_shared: bool,
    has_read_own: bool,
    has_written_shared: bool,
    has_written_own: bool,
    has_sent: bool,
    has_locked: bool,
}

impl Tracker {
    fn is_empty(&self) -> bool {
        !self.schema
            && !self.state
            && self.variables.is_empty()
            && !self.transaction.is_asked
            && !self.transaction.has_run
            && self.transaction.now == self.transaction.told
    }
}

impl Local {
    /// Whether there is something to tell the client.
    pub(crate) fn has_changes(&self) -> bool {
        !self.tracker.is_empty()
    }

    /// A variable of the session was assigned; `value` is its text if it is kept elsewhere.
    pub(crate) fn variable_changed(&mut self, name: &'static str, value: Option<String>) {
        self.session_state_changed();
        let name = stored_name(name);
        let listed = self.variables.text(VARIABLES);
        let mut listed = listed.split(',').map(str::trim);
        let is_listed =
            listed.any(|word| word == "*" || stored_name(&word.to_ascii_lowercase()) == name);
        if is_listed {
            let variables = &mut self.tracker.variables;
            variables.retain(|(other, _)| *other != name);
            variables.push((name, value));
        }
        if name == TRANSACTION {
            let is_begun = self.transaction.is_begun();
            let followed = &mut self.tracker.transaction;
            followed.is_asked = true;
            if !followed.now.is_begun && is_begun {
                followed.now.is_begun = true;
            }
        }
    }

    /// The current database was set, be it to what it was before.
    pub(crate) fn database_changed(&mut self) {
        self.tracker.schema |= self.settings().tracks.schema;
    }

    /// Something changed that another connection would not have: a variable, the database, a
    /// temporary table.
    pub(crate) fn session_state_changed(&mut self) {
        self.tracker.state |= self.settings().tracks.state;
    }

    /// What has changed, in MySQL's order; the client is told then.
    pub(crate) fn take_changes(&mut self) -> Vec<SessionChange> {
        let mut changes = Vec::new();
        for (name, value) in std::mem::take(&mut self.tracker.variables) {
            let value = value.unwrap_or_else(|| self.variables.text(name));
            changes.push(SessionChange::Variable { name, value });
        }
        if std::mem::take(&mut self.tracker.schema) {
            let database = self.database.clone().unwrap_or_default();
            changes.push(SessionChange::Schema(database));
        }
        if std::mem::take(&mut self.tracker.state) {
            changes.push(SessionChange::State);
        }
        let info = self.settings().tracks.transaction;
        let access = self.transaction_access();
        let followed = &mut self.tracker.transaction;
        let is_asked = std::mem::take(&mut followed.is_asked);
        let has_new = std::mem::take(&mut followed.has_new_characteristics);
        let has_moved = followed.now != followed.told;
        followed.told = followed.now;
        if info != TransactionInfo::Off && (is_asked || has_moved) {
            changes.push(SessionChange::TransactionState(followed.now.spelled()));
        }
        if info == TransactionInfo::Characteristics {
            followed.has_run = false;
            let now = followed.characteristics(access);
            if is_asked || has_new || now != followed.told_characteristics {
                followed.told_characteristics.clone_from(&now);
                changes.push(SessionChange::TransactionCharacteristics(now));
            }
        }
        changes
    }
}

impl Facts {
    fn is_any(self) -> bool {
        self.is_begun || self.is_implicit
    }

    fn spelled(self) -> String {
        let flag = |is: bool, letter: char| if is { letter } else { '_' };
        let first = match (self.is_begun, self.is_implicit) {
            (true, _) => 'T',
            (false, true) => 'I',
            _ => '_',
        };
        let rest = [
            flag(self.has_read_shared, 'r'),
            flag(self.has_read_own, 'R'),
            flag(self.has_written_shared, 'w'),
            flag(self.has_written_own, 'W'),
            '_',
            flag(self.has_sent, 'S'),
            flag(self.has_locked, 'L'),
        ];
        std::iter::once(first).chain(rest).collect()
    }
}

impl Followed {
    /// The statements that would begin the same transaction.
    fn characteristics(&self, access: Option<Access>) -> String {
        let access = access.map(|access| match access {
            Access::Read => "READ ONLY",
            Access::Write => "READ WRITE",
        });
        let mut statements = Vec::new();
        if let Some(isolation) = self.isolation {
            let level = isolation.replace('-', " ");
            statements.push(format!("SET TRANSACTION ISOLATION LEVEL {level};"));
        }
        if self.now.is_begun {
            let snapshot = self.has_snapshot.then_some("WITH CONSISTENT SNAPSHOT");
            let words: Vec<&str> = snapshot.into_iter().chain(access).collect();
            let space = if words.is_empty() { "" } else { " " };
            statements.push(format!("START TRANSACTION{space}{};", words.join(", ")));
        } else if let Some(access) = access {
            statements.push(format!("SET TRANSACTION {access};"));
        }
        statements.join(" ")
    }

    fn end(&mut self, keeps_isolation: bool) {
        self.now = Facts::default();
        self.has_snapshot = false;
        if !keeps_isolation {
            self.isolation = None;
        }
    }
}

impl Connection {
    /// Follows the transaction of a client that wants to know of it.
    pub(crate) fn follow_transaction(self: &Arc<Self>, text: &str, outcome: &Outcome) {
        if !self.follows_transaction.load(Ordering::Relaxed) {
            return;
        }
        let Ok((statement, _)) = parse::parse(text) else {
            return;
        };
        let touched = Touched::of(&statement);
        let mut local = self.local();
        let (read, written) = (touched.facts(&local, false), touched.facts(&local, true));
        let meets_tables = read.is_any || written.is_any;
        let is_in_transaction = local.is_in_transaction();
        let autocommits = local.settings().autocommit;
        let is_begun = local.transaction.is_begun();
        let has_locked = local.has_locked;
        let info = local.settings().tracks.transaction;
        let followed = &mut local.tracker.transaction;
        followed.has_run = info == TransactionInfo::Characteristics;
        match &statement {
            Statement::Begin(_) => {
                // The isolation of the next transaction is that of this one.
                let keeps = !followed.now.is_any();
                followed.end(keeps);
                followed.now.is_begun = true;
                followed.has_new_characteristics = true;
                followed.has_snapshot = text.to_ascii_uppercase().contains("SNAPSHOT");
                followed.now.has_read_own = followed.has_snapshot;
                return;
            }
            Statement::Commit(_) | Statement::Rollback(_) => {
                followed.end(is_begun);
                followed.now.is_begun = is_begun;
                followed.has_new_characteristics |= is_begun;
                return;
            }
            Statement::LockTables(locks) => {
                if *locks || followed.now.has_locked {
                    followed.end(false);
                }
                followed.now.has_locked = *locks;
                return;
            }
            Statement::Set(assignments) => followed.was_said(assignments),
            // They commit.
            _ if touched.defines || followed.now.is_begun && !is_begun => {
                followed.end(false);
            }
            _ => {}
        }
        if followed.now.is_implicit && autocommits {
            followed.end(false);
        }
        if meets_tables && !followed.now.is_any() {
            match is_in_transaction {
                true => followed.now.is_implicit = true,
                // A transaction of its own, for which SET TRANSACTION was.
                false => followed.isolation = None,
            }
        }
        if !followed.now.is_any() {
            return;
        }
        let now = &mut followed.now;
        now.has_read_own |= read.has_own;
        now.has_read_shared |= read.has_shared;
        now.has_written_own |= written.has_own;
        now.has_written_shared |= written.has_shared;
        now.has_sent |= matches!(outcome, Outcome::Rows { .. });
        now.has_locked &= has_locked;
    }
}

impl Followed {
    /// Takes what SET TRANSACTION says of the next transaction.
    fn was_said(&mut self, assignments: &[Assignment]) {
        for assignment in assignments {
            if let Assignment::Transaction {
                scope: None,
                isolation,
                ..
            } = assignment
            {
                self.isolation = isolation.or(self.isolation);
            }
        }
    }
}

/// The tables that a statement names.
#[derive(Default)]
struct Touched {
    read: Vec<TableName>,
    written: Vec<TableName>,
    reads_files: bool,
    /// Whether it commits what was open.
    defines: bool,
}

/// Which kinds of tables are among some.
struct Kinds {
    has_own: bool,
    has_shared: bool,
    is_any: bool,
}

impl Touched {
    fn of(statement: &Statement) -> Touched {
        let mut touched = Touched::default();
        match statement {
            Statement::Query(query) | Statement::QueryInto(query, _) => {
                touched.read(References::of_query(query));
            }
            Statement::Insert(insert) => {
                touched.written.push(insert.table.clone());
                if let InsertSource::Query(query) = &insert.source {
                    touched.read(References::of_query(query));
                }
            }
            Statement::Update(update) => touched.choose(&update.choice),
            Statement::Delete(delete) => touched.choose(&delete.choice),
            Statement::LoadData(load) => touched.written.push(load.table.clone()),
            Statement::CreateTable(create) => touched.create(create),
            Statement::DropTable(drop) => touched.defines = !drop.temporary,
            Statement::AlterTable(_)
            | Statement::RenameTable(_)
            | Statement::CreateView(_)
            | Statement::DropView(_)
            | Statement::Truncate(_)
            | Statement::CreateDatabase { .. }
            | Statement::DropDatabase { .. }
            | Statement::Flush(_)
            | Statement::StopReplica => touched.defines = true,
            Statement::Maintain(asked) => touched.defines = asked.ends_transaction(),
            _ => {}
        }
        touched
    }

    fn read(&mut self, references: References) {
        self.reads_files |= !references.files.is_empty();
        self.read.extend(references.tables);
    }

    fn choose(&mut self, choice: &RowChoice) {
        let references = References::of_tables(&choice.from);
        self.written.extend(references.tables);
    }

    fn create(&mut self, create: &CreateTable) {
        self.defines = !create.temporary;
        if let Some(query) = &create.query {
            self.written.push(create.name.clone());
            self.read(References::of_query(query));
        }
    }

    fn facts(&self, local: &Local, written: bool) -> Kinds {
        let names = if written { &self.written } else { &self.read };
        let is_own = |name: &TableName| {
            let database = name.database.as_ref().or(local.database.as_ref());
            database.is_some_and(|database| local.temporary.table(database, &name.table).is_some())
        };
        let own = names.iter().filter(|name| is_own(name)).count();
        let reads_files = !written && self.reads_files;
        Kinds {
            has_own: own > 0,
            has_shared: own < names.len() || reads_files,
            is_any: !names.is_empty() || reads_files,
        }
    }
}
