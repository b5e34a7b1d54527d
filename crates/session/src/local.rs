//! What the statements of a connection change: its database, variables, tables and warnings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use datafusion::execution::TaskContext;
use datafusion::scalar::ScalarValue;
use mayfly_exec::TempTable;
use mayfly_sql::statement::Access;
use mayfly_table::TemporaryTables;
use mayfly_types::{Level, Warning};

use crate::digests::Texts;
use crate::plan_owner::PlanOwner;
use crate::prepared::Prepared;
use crate::profile::Profiles;
use crate::settings::Settings;
use crate::slow_log::Unlogged;
use crate::statement::{Known, KnownTables, Lately, LaterPlans, Repeated};
use crate::stats::StatementStats;
use crate::status::Status;
use crate::tracking::Tracker;
use crate::transaction::Transaction;
use crate::variables::Variables;

/// The database that every engine has from its start.
pub const DEFAULT_DATABASE: &str = "test";

/// The database that a connection returns to, if it had one.
pub(crate) struct Home(pub(crate) Option<String>);

/// What a session may change.
pub(crate) struct Local {
    pub(crate) database: Option<String>,
    /// The database to return to, while a prepared statement runs in another one.
    pub(crate) home: Option<Home>,
    pub(crate) variables: Variables,
    pub(crate) user_variables: BTreeMap<String, ScalarValue>,
    pub(crate) temporary: TemporaryTables,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) warning_count: u64,
    /// Whether the statement shows the warnings of the one before, and has none.
    pub(crate) keeps_warnings: bool,
    pub(crate) status: Status,
    pub(crate) last: StatementStats,
    pub(crate) last_tables: Vec<TempTable>,
    pub(crate) row_count: i64,
    pub(crate) found_rows: u64,
    /// What SET TRANSACTION said of the next transaction.
    pub(crate) next_access: Option<Access>,
    /// What SQL_CALC_FOUND_ROWS counted for the statement that runs.
    pub(crate) calculated_rows: Option<u64>,
    pub(crate) transaction: Transaction,
    /// Whether LOCK TABLES was given: then UNLOCK TABLES commits.
    pub(crate) has_locked: bool,
    settings: Settings,
    /// Whether the rows that an UPDATE found count as affected, and not only those that changed.
    pub(crate) counts_found: bool,
    /// How the connection is encrypted: what `Ssl_version` and `Ssl_cipher` say.
    pub(crate) encryption: Option<(String, String)>,
    /// The version of the variables that functions were told of.
    pub(crate) told_version: Option<u64>,
    /// What NOW() says where `timestamp` is set.
    pub(crate) fixed_now_micros: Option<i64>,
    /// What was prepared under a name, by the name in lower case.
    pub(crate) named: BTreeMap<String, Arc<Prepared>>,
    /// The statements on few rows that came before.
    pub(crate) known: Known,
    /// The temporary tables that it made before.
    pub(crate) known_tables: KnownTables,
    /// The queries whose text came before.
    pub(crate) repeated: Repeated,
    /// Plans over many rows that are made again.
    pub(crate) later_plans: LaterPlans,
    /// The digests of its last texts.
    pub(crate) digests: Texts,
    /// Who owns the plans that it shares with others, as far as it knows.
    pub(crate) plan_owner: Option<Arc<PlanOwner>>,
    /// What plans over few rows run in, made for a version of the variables.
    pub(crate) few_rows: Option<(u64, Arc<TaskContext>)>,
    /// What tables make of their rows, ready for the next statement.
    pub(crate) rules: Lately,
    /// What SHOW PROFILES lists.
    pub(crate) profiles: Profiles,
    /// What the client is told of the session.
    pub(crate) tracker: Tracker,
    /// The port from which a client speaks over TCP.
    pub(crate) client_port: Option<u16>,
    /// Bytes that came from the client and went to it; `None` if nobody counts them.
    pub(crate) traffic: Option<(u64, u64)>,
    /// How long the statement waited for others that wrote its tables.
    pub(crate) waited: Duration,
    /// What EXPLAIN says of the statement that runs, where that is logged.
    pub(crate) explained: Option<String>,
    /// The entry of the log of a slow statement whose answer is still to be sent.
    pub(crate) unlogged: Option<Unlogged>,
}

impl Local {
    pub(crate) fn new(variables: Variables) -> Local {
        Local {
            database: Some(DEFAULT_DATABASE.to_owned()),
            home: None,
            variables,
            user_variables: BTreeMap::new(),
            named: BTreeMap::new(),
            temporary: TemporaryTables::new(),
            warnings: Vec::new(),
            warning_count: 0,
            keeps_warnings: false,
            status: Status::default(),
            last: StatementStats::default(),
            last_tables: Vec::new(),
            row_count: 0,
            found_rows: 0,
            next_access: None,
            calculated_rows: None,
            transaction: Transaction::default(),
            has_locked: false,
            settings: Settings::default(),
            counts_found: false,
            encryption: None,
            told_version: None,
            fixed_now_micros: None,
            known: Known::default(),
            known_tables: KnownTables::default(),
            repeated: Repeated::default(),
            later_plans: LaterPlans::default(),
            digests: Texts::default(),
            plan_owner: None,
            few_rows: None,
            rules: Lately::default(),
            profiles: Profiles::default(),
            tracker: Tracker::default(),
            client_port: None,
            traffic: None,
            waited: Duration::ZERO,
            explained: None,
            unlogged: None,
        }
    }

    /// Whether a change waits for COMMIT.
    pub(crate) fn is_in_transaction(&mut self) -> bool {
        self.transaction.is_begun() || !self.settings().autocommit
    }

    /// Ends the transaction that a statement is where none is open: what SET TRANSACTION said was
    /// for it.
    pub(crate) fn end_single(&mut self) {
        if self.next_access.is_some() && !self.is_in_transaction() {
            self.next_access = None;
        }
    }

    /// What was said of the transaction that is open, or of the one that a statement begins now.
    pub(crate) fn transaction_access(&self) -> Option<Access> {
        match self.transaction.is_begun() {
            true => self.transaction.access(),
            false => self.next_access,
        }
    }

    /// Whether shared tables may not be changed now.
    pub(crate) fn only_reads(&mut self) -> bool {
        match self.transaction_access() {
            Some(access) => access == Access::Read,
            None => self.settings().only_reads,
        }
    }

    /// The variables that statements ask for all the time, read anew if one has changed.
    pub(crate) fn settings(&mut self) -> Settings {
        if !self.settings.are_of(&self.variables) {
            self.settings = Settings::of(&self.variables);
        }
        self.settings
    }

    pub(crate) fn add_warning(&mut self, warning: Warning) {
        if warning.level == Level::Note && !self.variables.is_on("sql_notes") {
            return;
        }
        self.warning_count += 1;
        if (self.warnings.len() as u64) < self.variables.number("max_error_count") {
            self.warnings.push(warning);
        }
    }
}
