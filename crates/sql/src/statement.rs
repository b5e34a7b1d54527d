//! The statements that Mayfly knows, as values.
//!
//! Owns the shapes only; `parse` fills them and `session` runs them.

mod show;

use std::collections::BTreeMap;
use std::fmt;

use datafusion::sql::sqlparser::ast;
use mayfly_table::{KeyKind, TableOption, Using};
use mayfly_types::{CharacterSet, ColumnType};

pub use show::{Filter, Nothing, ProfileKind, ProfileQuery, Show};

/// A table as a statement names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableName {
    /// The database, when the name is qualified.
    pub database: Option<String>,
    /// The table, in the case in which it was written.
    pub table: String,
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(database) = &self.database {
            write!(f, "{database}.")?;
        }
        f.write_str(&self.table)
    }
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
    /// CREATE [TEMPORARY] TABLE.
    CreateTable(Box<CreateTable>),
    /// DROP [TEMPORARY] TABLE.
    DropTable(DropTable),
    /// DROP VIEW, PROCEDURE, FUNCTION, TRIGGER and EVENT.
    DropAbsent(DropAbsent),
    /// ALTER TABLE, CREATE INDEX and DROP INDEX.
    AlterTable(Box<AlterTable>),
    /// RENAME TABLE: old and new names.
    RenameTable(Vec<(TableName, TableName)>),
    /// TRUNCATE [TABLE].
    Truncate(TableName),
    /// CREATE DATABASE.
    CreateDatabase { name: String, if_not_exists: bool },
    /// DROP DATABASE.
    DropDatabase { name: String, if_exists: bool },
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
    /// FLUSH STATUS.
    FlushStatus,
    /// FLUSH [SLOW] LOGS.
    FlushSlowLog,
    /// FLUSH of what is not there.
    Flush,
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
    /// Statements that have nothing to do here: LOCK TABLES, FLUSH TABLES.
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
}

/// EXPLAIN.
#[derive(Debug, Clone)]
pub struct Explain {
    /// Runs the statement and reports what happened.
    pub analyze: bool,
    /// Shape of the answer.
    pub format: ExplainFormat,
    /// What is explained.
    pub statement: Box<Statement>,
}

/// A column of CREATE TABLE.
#[derive(Debug, Clone)]
pub struct ColumnDefinition {
    /// Its name, in the case in which it was written.
    pub name: String,
    /// Its type.
    pub column_type: ColumnType,
    /// CHARACTER SET, or the set of COLLATE, if one was written.
    pub character_set: Option<CharacterSet>,
    /// Whether NULL is refused.
    pub not_null: bool,
    /// Whether NULL was written, which a primary key does not allow.
    pub null: bool,
    /// The DEFAULT clause.
    pub default: Option<ast::Expr>,
    /// ON UPDATE CURRENT_TIMESTAMP.
    pub on_update: Option<ast::Expr>,
    /// GENERATED ALWAYS AS.
    pub generated: Option<GeneratedColumn>,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// INVISIBLE.
    pub invisible: bool,
    /// PRIMARY KEY or UNIQUE behind the column.
    pub key: Option<KeyKind>,
    /// CHECK behind the column.
    pub checks: Vec<CheckDefinition>,
    /// The COMMENT clause.
    pub comment: Option<String>,
}

/// The expression of a generated column.
#[derive(Debug, Clone)]
pub struct GeneratedColumn {
    /// The expression.
    pub expression: ast::Expr,
    /// STORED or PERSISTENT.
    pub stored: bool,
}

/// A key of CREATE TABLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyDefinition {
    /// Its name, if one was written.
    pub name: Option<String>,
    /// What it forbids.
    pub kind: KeyKind,
    /// Its columns.
    pub parts: Vec<KeyColumn>,
    /// The COMMENT clause.
    pub comment: Option<String>,
    /// The USING clause.
    pub using: Option<Using>,
    /// IF NOT EXISTS (MariaDB).
    pub if_not_exists: bool,
}

/// A column of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyColumn {
    /// The column.
    pub column: String,
    /// Only so much of its beginning.
    pub length: Option<u32>,
    /// DESC.
    pub descending: bool,
}

/// A CHECK constraint.
#[derive(Debug, Clone)]
pub struct CheckDefinition {
    /// Its name, if one was written.
    pub name: Option<String>,
    /// The condition.
    pub expression: ast::Expr,
    /// Whether it is not NOT ENFORCED.
    pub enforced: bool,
    /// The column behind which it stands, the only one that it may mention.
    pub column: Option<String>,
}

/// ALTER TABLE.
#[derive(Debug, Clone)]
pub struct AlterTable {
    /// The table.
    pub table: TableName,
    /// IF EXISTS (MariaDB).
    pub if_exists: bool,
    /// IGNORE (MariaDB): rows that break a new key go.
    pub ignore: bool,
    /// What is changed, in its order.
    pub actions: Vec<AlterAction>,
}

/// Where a column goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// FIRST.
    First,
    /// AFTER a column.
    After(String),
}

/// One change of ALTER TABLE.
#[derive(Debug, Clone)]
pub enum AlterAction {
    /// ADD COLUMN.
    AddColumn {
        definition: Box<ColumnDefinition>,
        placement: Option<Placement>,
        if_not_exists: bool,
    },
    /// DROP COLUMN.
    DropColumn { name: String, if_exists: bool },
    /// CHANGE COLUMN, and MODIFY COLUMN, where the old name is the new one.
    ChangeColumn {
        old: String,
        definition: Box<ColumnDefinition>,
        placement: Option<Placement>,
        if_exists: bool,
    },
    /// RENAME COLUMN.
    RenameColumn { old: String, new: String },
    /// ALTER COLUMN SET DEFAULT, or DROP DEFAULT.
    SetDefault {
        column: String,
        default: Option<ast::Expr>,
    },
    /// ALTER COLUMN SET VISIBLE or INVISIBLE.
    SetInvisible { column: String, invisible: bool },
    /// ADD KEY in all its forms.
    AddKey(KeyDefinition),
    /// DROP KEY; the primary key is called `PRIMARY`.
    DropKey { name: String, if_exists: bool },
    /// RENAME KEY.
    RenameKey {
        old: String,
        new: String,
        if_exists: bool,
    },
    /// ADD CHECK.
    AddCheck(CheckDefinition),
    /// DROP CHECK.
    DropCheck { name: String, if_exists: bool },
    /// ALTER CHECK, and ALTER CONSTRAINT, which has its own error.
    EnforceCheck {
        name: String,
        enforced: bool,
        as_constraint: bool,
    },
    /// DROP CONSTRAINT: a check or a key.
    DropConstraint { name: String, if_exists: bool },
    /// RENAME TO.
    Rename(TableName),
    /// ENGINE.
    Engine(String),
    /// AUTO_INCREMENT.
    AutoIncrement(u64),
    /// COMMENT.
    Comment(String),
    /// An option that is shown, and its value if it has one.
    Option(TableOption, Option<String>),
    /// What changes no answer: ORDER BY, FORCE, other options.
    Nothing,
}

/// CREATE [TEMPORARY] TABLE.
#[derive(Debug, Clone)]
pub struct CreateTable {
    /// TEMPORARY.
    pub temporary: bool,
    /// OR REPLACE (MariaDB).
    pub or_replace: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// The table.
    pub name: TableName,
    /// Declared columns.
    pub columns: Vec<ColumnDefinition>,
    /// Declared keys, but for those behind a column.
    pub keys: Vec<KeyDefinition>,
    /// CHECK constraints, but for those behind a column.
    pub checks: Vec<CheckDefinition>,
    /// AUTO_INCREMENT option.
    pub auto_increment: Option<u64>,
    /// LIKE another table.
    pub like: Option<TableName>,
    /// ENGINE option.
    pub engine: Option<String>,
    /// COMMENT option.
    pub comment: Option<String>,
    /// Options that are shown.
    pub options: BTreeMap<TableOption, String>,
    /// The query that fills it.
    pub query: Option<Box<ast::Query>>,
    /// IGNORE before the query: bad values are adjusted, rows that break a key are left out.
    pub ignore: bool,
    /// REPLACE before the query: a row that breaks a key takes the place of the other.
    pub replace: bool,
}

/// DROP [TEMPORARY] TABLE.
#[derive(Debug, Clone)]
pub struct DropTable {
    /// TEMPORARY.
    pub temporary: bool,
    /// IF EXISTS.
    pub if_exists: bool,
    /// The tables.
    pub names: Vec<TableName>,
}

/// What there is none of here and DROP may name all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// VIEW.
    View,
    /// PROCEDURE.
    Procedure,
    /// FUNCTION.
    Function,
    /// TRIGGER.
    Trigger,
    /// EVENT.
    Event,
}

/// DROP VIEW, PROCEDURE, FUNCTION, TRIGGER and EVENT.
#[derive(Debug, Clone)]
pub struct DropAbsent {
    /// What it names.
    pub kind: Absent,
    /// IF EXISTS.
    pub if_exists: bool,
    /// The names: several of views, else one.
    pub names: Vec<TableName>,
}

/// Where INSERT takes its rows from.
#[derive(Debug, Clone)]
pub enum InsertSource {
    /// VALUES; `None` stands for DEFAULT.
    Values(Vec<Vec<Option<ast::Expr>>>),
    /// A query.
    Query(Box<ast::Query>),
}

/// INSERT.
#[derive(Debug, Clone)]
pub struct Insert {
    /// The table.
    pub table: TableName,
    /// Columns named; empty: all.
    pub columns: Vec<String>,
    /// Those among them whose table is named too, with that.
    pub qualified: Vec<(TableName, String)>,
    /// The rows.
    pub source: InsertSource,
    /// IGNORE: bad values are adjusted, rows that break a key are left out.
    pub ignore: bool,
    /// REPLACE: a row that breaks a key takes the place of the others.
    pub replace: bool,
    /// `AS new (a, b)` behind the rows: what ON DUPLICATE KEY UPDATE calls the row, and its columns
    /// where they get names.
    pub alias: Option<(String, Vec<String>)>,
    /// ON DUPLICATE KEY UPDATE; empty: an error.
    pub on_duplicate: Vec<SetColumn>,
}

/// Which rows of which tables a statement changes.
#[derive(Debug, Clone)]
pub struct RowChoice {
    /// The tables, joined.
    pub from: Vec<ast::TableWithJoins>,
    /// WHERE.
    pub condition: Option<ast::Expr>,
    /// ORDER BY, of one table.
    pub order_by: Vec<ast::OrderByExpr>,
    /// LIMIT, of one table.
    pub limit: Option<ast::Expr>,
}

/// An assignment of UPDATE.
#[derive(Debug, Clone)]
pub struct SetColumn {
    /// The name or the alias of its table, if it was written, with the database before that.
    pub table: Option<TableName>,
    /// The column.
    pub column: String,
    /// The value; `None` stands for DEFAULT.
    pub value: Option<ast::Expr>,
}

impl SetColumn {
    /// The column as it was written.
    pub fn name(&self) -> String {
        match &self.table {
            Some(table) => format!("{table}.{}", self.column),
            None => self.column.clone(),
        }
    }
}

/// UPDATE of one table or of several.
#[derive(Debug, Clone)]
pub struct Update {
    /// IGNORE: bad values are adjusted.
    pub ignore: bool,
    /// The rows.
    pub choice: RowChoice,
    /// The assignments in their order.
    pub assignments: Vec<SetColumn>,
}

/// DELETE from one table or from several.
#[derive(Debug, Clone)]
pub struct Delete {
    /// IGNORE.
    pub ignore: bool,
    /// The tables that lose rows, by name or alias; empty where there is but one table.
    pub targets: Vec<TableName>,
    /// The rows.
    pub choice: RowChoice,
}

/// A column or a user variable that takes a field of LOAD DATA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadTarget {
    /// A column.
    Column(String),
    /// A user variable, without `@`.
    Variable(String),
}

/// LOAD DATA [LOCAL] INFILE.
#[derive(Debug, Clone)]
pub struct LoadData {
    /// LOCAL: bad values are adjusted, as with IGNORE.
    pub local: bool,
    /// IGNORE.
    pub ignore: bool,
    /// REPLACE: a row that breaks a key takes the place of the others.
    pub replace: bool,
    /// The file.
    pub path: String,
    /// The table.
    pub table: TableName,
    /// CHARACTER SET.
    pub character_set: Option<CharacterSet>,
    /// FIELDS and LINES.
    pub format: FileFormat,
    /// IGNORE n LINES.
    pub skip_lines: u64,
    /// Where the fields go; empty: to all columns in order.
    pub targets: Vec<LoadTarget>,
    /// SET.
    pub assignments: Vec<SetColumn>,
}

/// FIELDS and LINES of LOAD DATA and SELECT ... INTO OUTFILE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFormat {
    /// FIELDS TERMINATED BY.
    pub field_terminator: String,
    /// FIELDS ENCLOSED BY.
    pub enclosure: Option<char>,
    /// OPTIONALLY ENCLOSED BY.
    pub optionally_enclosed: bool,
    /// FIELDS ESCAPED BY.
    pub escape: Option<char>,
    /// LINES STARTING BY.
    pub line_start: String,
    /// LINES TERMINATED BY.
    pub line_terminator: String,
}

impl Default for FileFormat {
    /// MySQL's: tab, no quotes, backslash, line feed.
    fn default() -> Self {
        FileFormat {
            field_terminator: "\t".to_owned(),
            enclosure: None,
            optionally_enclosed: false,
            escape: Some('\\'),
            line_start: String::new(),
            line_terminator: "\n".to_owned(),
        }
    }
}

/// Where the rows of SELECT ... INTO go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Into {
    /// INTO OUTFILE.
    OutFile {
        /// The file, which must not exist.
        path: String,
        /// CHARACTER SET.
        character_set: Option<CharacterSet>,
        /// FIELDS and LINES.
        format: FileFormat,
    },
    /// INTO DUMPFILE: the cells of one row as they are.
    DumpFile(String),
    /// Variables of the user, in lower case, without `@`.
    Variables(Vec<String>),
}

/// Which value of a variable is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The connection's.
    Session,
    /// The engine's, which later connections copy.
    Global,
    /// GLOBAL, to be kept over a restart.
    Persist,
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
    User { name: String, value: ast::Expr },
    /// A system variable; the scope is `None` when none was written.
    System {
        scope: Option<Scope>,
        name: String,
        value: SetValue,
    },
    /// SET NAMES; `None` is DEFAULT.
    Names {
        character_set: Option<String>,
        collation: Option<String>,
    },
    /// SET CHARACTER SET.
    CharacterSet(Option<String>),
    /// SET TRANSACTION; the scope is `None` where it is for the next transaction only.
    Transaction {
        scope: Option<Scope>,
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
