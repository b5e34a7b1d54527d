//! SHOW and what it asks for.

use datafusion::sql::sqlparser::ast;

use super::Absent;
use super::name::{Scope, TableName};

/// The filter at the end of SHOW.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// LIKE.
    pub like: Option<String>,
    /// WHERE.
    pub condition: Option<ast::Expr>,
}

/// SHOW and DESCRIBE.
#[derive(Debug, Clone)]
pub enum Show {
    /// SHOW \[FULL\] TABLES.
    Tables {
        /// Whether FULL was written.
        full: bool,
        /// The database after FROM.
        database: Option<String>,
        /// LIKE or WHERE.
        filter: Filter,
    },
    /// SHOW TABLE STATUS.
    TableStatus {
        /// The database after FROM.
        database: Option<String>,
        /// LIKE or WHERE.
        filter: Filter,
    },
    /// SHOW \[FULL\] COLUMNS, DESCRIBE.
    Columns {
        /// Whether FULL was written.
        full: bool,
        /// The table.
        table: TableName,
        /// LIKE or WHERE.
        filter: Filter,
    },
    /// DESCRIBE 'file': a word for [`FileName::of`](crate::file_name::FileName::of).
    FileColumns(String),
    /// SHOW CREATE TABLE.
    CreateTable(TableName),
    /// SHOW CREATE VIEW.
    CreateView(TableName),
    /// SHOW CREATE DATABASE.
    CreateDatabase {
        /// Its name.
        name: String,
        /// Whether the text is to say IF NOT EXISTS.
        if_not_exists: bool,
    },
    /// SHOW INDEX, with its WHERE.
    Index {
        /// The table.
        table: TableName,
        /// WHERE.
        condition: Option<ast::Expr>,
    },
    /// SHOW DATABASES.
    Databases(Filter),
    /// SHOW [GLOBAL | SESSION] VARIABLES.
    Variables {
        /// Whose values.
        scope: Scope,
        /// LIKE or WHERE.
        filter: Filter,
    },
    /// SHOW [GLOBAL | SESSION] STATUS.
    Status {
        /// Whose values.
        scope: Scope,
        /// LIKE or WHERE.
        filter: Filter,
    },
    /// SHOW WARNINGS, SHOW ERRORS.
    Warnings {
        /// Whether it is of errors alone.
        errors_only: bool,
        /// Rows to leave out.
        offset: u64,
        /// Rows at most.
        limit: Option<u64>,
    },
    /// SHOW COUNT(*) WARNINGS, SHOW COUNT(*) ERRORS.
    WarningCount {
        /// Whether it is of errors alone.
        errors_only: bool,
    },
    /// SHOW ENGINES.
    Engines,
    /// SHOW CHARACTER SET.
    CharacterSets(Filter),
    /// SHOW COLLATION.
    Collations(Filter),
    /// SHOW \[FULL\] PROCESSLIST.
    ProcessList,
    /// SHOW PROFILES.
    Profiles,
    /// SHOW PROFILE.
    Profile(ProfileQuery),
    /// SHOW PLUGINS.
    Plugins,
    /// SHOW PRIVILEGES.
    Privileges,
    /// SHOW GRANTS, of another account than the one that asks if it is named.
    Grants(Option<Account>),
    /// SHOW ENGINE: the status, mutexes or logs of an engine; ALL is a name.
    EngineStatus(String),
    /// SHOW BINARY LOGS: there is no binary log.
    BinaryLogs,
    /// SHOW CREATE of what there is none of.
    CreateAbsent(Absent, TableName),
    /// SHOW of what there is none of.
    Nothing(Nothing),
}

/// An account as a statement names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The name of the user.
    pub user: String,
    /// Where it comes from; `%` is anywhere.
    pub host: String,
}

/// How columns of replication are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terms {
    /// Master and slave.
    Old,
    /// Source and replica.
    New,
}

/// What SHOW PROFILE asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfileQuery {
    /// The kinds of resources, beside the time.
    pub kinds: Vec<ProfileKind>,
    /// The number of a statement; the last one if none is given.
    pub query: Option<u64>,
    /// Stages that are left out before the first one.
    pub offset: u64,
    /// Most stages.
    pub limit: Option<u64>,
}

/// A kind of resources in SHOW PROFILE, in the order of its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileKind {
    /// CPU.
    Cpu,
    /// CONTEXT SWITCHES.
    ContextSwitches,
    /// BLOCK IO.
    BlockIo,
    /// IPC.
    Messages,
    /// PAGE FAULTS.
    PageFaults,
    /// SWAPS.
    Swaps,
    /// SOURCE.
    Source,
    /// MEMORY, which MySQL parses and does not have.
    Memory,
}

/// What there is none of here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nothing {
    /// SHOW ALL REPLICAS STATUS of MariaDB.
    AllReplicasStatus,
    /// The status of the binary log.
    BinaryLogStatus,
    /// EVENTS.
    Events,
    /// Topics of HELP.
    HelpTopics,
    /// Events of the binary log and of relay logs.
    LogEvents,
    /// OPEN TABLES: tables are not opened and closed.
    OpenTables,
    /// Replicas of this server.
    Replicas(Terms),
    /// SHOW REPLICA STATUS.
    ReplicaStatus(Terms),
    /// Functions and procedures.
    Routines,
    /// TRIGGERS.
    Triggers,
}
