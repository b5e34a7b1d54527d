//! The statements that Mayfly knows, as values.
//!
//! Owns the shapes only; `parse` fills them and `session` runs them.

mod change;
mod maintenance;
mod name;
mod out_file;
mod show;
mod table;
mod view;

pub use change::{
    Delete, FileFormat, Insert, InsertSource, LoadData, LoadTarget, RowChoice, SetColumn, Update,
};
use datafusion::sql::sqlparser::ast;
pub use maintenance::{Maintenance, MaintenanceKind};
pub use name::{Scope, TableName};
pub use out_file::{CsvOptions, OutFileFormat, ParquetCompression, ParquetOptions, RowFormat};
pub use show::{Account, Filter, Nothing, ProfileKind, ProfileQuery, Show, Terms};
pub use table::{
    Absent, AlterAction, AlterTable, CheckDefinition, ColumnDefinition, CreateTable, DropAbsent,
    DropTable, GeneratedColumn, KeyColumn, KeyDefinition, Placement,
};
pub use view::{CreateView, DropView, OldView};

/// What a FLUSH has to do; all else that it names is not there or needs nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flush {
    /// STATUS: the counters of the session begin anew.
    pub status: bool,
    /// LOGS: the slow log is opened again.
    pub slow_log: bool,
    /// PRIVILEGES: who may come in is read again.
    pub accounts: bool,
    /// RESET BINARY LOGS AND GTIDS: the transactions that a dump says are in it are forgotten.
    pub gtids: bool,
}

/// One statement.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "one is alive at a time: a box would save nothing"
)]
pub enum Statement {
    /// SELECT, WITH, VALUES, TABLE and their combinations.
    Query(Box<ast::Query>),
    /// SELECT ... INTO.
    QueryInto(Box<ast::Query>, Into),
    /// EXPLAIN and EXPLAIN ANALYZE.
    Explain(Explain),
    /// CREATE \[TEMPORARY\] TABLE.
    CreateTable(Box<CreateTable>),
    /// DROP \[TEMPORARY\] TABLE.
    DropTable(DropTable),
    /// CREATE VIEW and ALTER VIEW.
    CreateView(Box<CreateView>),
    /// DROP VIEW.
    DropView(DropView),
    /// DROP PROCEDURE, FUNCTION, TRIGGER and EVENT.
    DropAbsent(DropAbsent),
    /// ALTER TABLE, CREATE INDEX and DROP INDEX.
    AlterTable(Box<AlterTable>),
    /// RENAME TABLE: old and new names.
    RenameTable(Vec<(TableName, TableName)>),
    /// TRUNCATE \[TABLE\].
    Truncate(TableName),
    /// CREATE DATABASE.
    CreateDatabase {
        /// Its name.
        name: String,
        /// Whether it may be there already.
        if_not_exists: bool,
    },
    /// DROP DATABASE.
    DropDatabase {
        /// Its name.
        name: String,
        /// Whether it may be missing.
        if_exists: bool,
    },
    /// USE.
    Use(String),
    /// INSERT and REPLACE.
    Insert(Box<Insert>),
    /// UPDATE.
    Update(Box<Update>),
    /// DELETE.
    Delete(Box<Delete>),
    /// LOAD DATA.
    LoadData(Box<LoadData>),
    /// SET in all its forms.
    Set(Vec<Assignment>),
    /// SHOW and DESCRIBE.
    Show(Show),
    /// FLUSH, and RESET of what is not there.
    Flush(Flush),
    /// STOP REPLICA, where there is none.
    StopReplica,
    /// ANALYZE, CHECK, CHECKSUM, OPTIMIZE and REPAIR TABLE.
    Maintain(Maintenance),
    /// LOCK TABLES, or UNLOCK TABLES: nothing is locked.
    LockTables(bool),
    /// PREPARE, EXECUTE and DEALLOCATE PREPARE.
    OnPrepared(OnPrepared),
    /// DO.
    Do(Vec<ast::Expr>),
    /// KILL [CONNECTION | QUERY].
    Kill {
        /// The number of a connection.
        id: Box<ast::Expr>,
        /// QUERY: the connection stays.
        only_query: bool,
    },
    /// BEGIN and START TRANSACTION.
    Begin(Option<Access>),
    /// COMMIT.
    Commit(Completion),
    /// ROLLBACK.
    Rollback(Completion),
    /// SAVEPOINT.
    Savepoint(String),
    /// ROLLBACK TO SAVEPOINT.
    RollbackTo(String),
    /// RELEASE SAVEPOINT.
    ReleaseSavepoint(String),
    /// A text that is only a comment.
    Nothing,
}

/// A statement on one that is prepared under a name.
#[derive(Debug, Clone, PartialEq)]
pub enum OnPrepared {
    /// PREPARE.
    Prepare {
        /// The name, which counts no case.
        name: String,
        /// The text.
        text: PreparedText,
    },
    /// EXECUTE.
    Execute {
        /// What is run.
        executed: Executed,
        /// USING: variables of the user, in lower case.
        variables: Vec<String>,
    },
    /// DEALLOCATE PREPARE and DROP PREPARE.
    Deallocate(String),
}

/// What EXECUTE runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Executed {
    /// The statement of a name.
    Named(String),
    /// IMMEDIATE, as in MariaDB: a text that is prepared for this once.
    Text(PreparedText),
}

/// Where the text of a prepared statement stands.
#[derive(Debug, Clone, PartialEq)]
pub enum PreparedText {
    /// In the statement.
    Literal(String),
    /// In a variable of the user, whose name is in lower case.
    Variable(String),
}

/// How EXPLAIN prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExplainFormat {
    /// One row for each table.
    Traditional,
    /// A tree of operators.
    Tree,
    /// A document of JSON.
    Json,
}

impl ExplainFormat {
    /// The format that a statement or `explain_format` names.
    pub fn named(name: &str) -> Option<ExplainFormat> {
        match name.to_ascii_uppercase().as_str() {
            "TRADITIONAL" | "TRADITIONAL_STRICT" => Some(ExplainFormat::Traditional),
            "TREE" => Some(ExplainFormat::Tree),
            "JSON" => Some(ExplainFormat::Json),
            _ => None,
        }
    }
}

/// EXPLAIN.
#[derive(Debug, Clone)]
pub struct Explain {
    /// Runs the statement and reports what happened.
    pub analyze: bool,
    /// Shape of the answer; `None` for the one that `explain_format` names.
    pub format: Option<ExplainFormat>,
    /// What is explained.
    pub statement: Box<Statement>,
}

/// Where the rows of SELECT ... INTO go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Into {
    /// INTO OUTFILE.
    OutFile {
        /// The file, which must not exist.
        path: String,
        /// How its rows are written.
        format: OutFileFormat,
    },
    /// INTO DUMPFILE: the cells of one row as they are.
    DumpFile(String),
    /// Variables of the user, in lower case, without `@`.
    Variables(Vec<String>),
}

/// The right side of an assignment of SET.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "one is alive at a time: a box would save nothing"
)]
pub enum SetValue {
    /// An expression.
    Expression(ast::Expr),
    /// A bare word: ON, OFF, utf8mb4.
    Word(String),
    /// DEFAULT.
    Default,
}

/// One assignment of SET.
#[derive(Debug, Clone)]
pub enum Assignment {
    /// A user variable, without `@`.
    User {
        /// Its name.
        name: String,
        /// What it becomes.
        value: ast::Expr,
    },
    /// A system variable; the scope is `None` when none was written.
    System {
        /// Whose it is.
        scope: Option<Scope>,
        /// Its name.
        name: String,
        /// What it becomes.
        value: SetValue,
    },
    /// SET NAMES; `None` is DEFAULT.
    Names {
        /// The character set.
        character_set: Option<String>,
        /// The collation after COLLATE.
        collation: Option<String>,
    },
    /// SET CHARACTER SET.
    CharacterSet(Option<String>),
    /// SET TRANSACTION; the scope is `None` where it is for the next transaction only.
    Transaction {
        /// Whose transactions.
        scope: Option<Scope>,
        /// READ ONLY or READ WRITE.
        access: Option<Access>,
        /// What `transaction_isolation` says of it; it has no other effect.
        isolation: Option<&'static str>,
    },
}

/// What a transaction may do to shared tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// READ ONLY.
    Read,
    /// READ WRITE.
    Write,
}

/// What follows the end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    /// NO CHAIN and NO RELEASE: nothing.
    Nothing,
    /// CHAIN: the next transaction begins at once, with the same access.
    Chain,
    /// RELEASE: the connection ends.
    Release,
}
