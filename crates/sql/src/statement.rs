//! The statements that Mayfly knows, as values.
//!
//! Owns the shapes only; `parse` fills them and `session` runs them.

use datafusion::sql::sqlparser::ast;
use mayfly_types::ColumnType;

/// A table as a statement names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableName {
    /// The database, when the name is qualified.
    pub database: Option<String>,
    /// The table, in the case in which it was written.
    pub table: String,
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
    /// EXPLAIN and EXPLAIN ANALYZE.
    Explain(Explain),
    /// CREATE [TEMPORARY] TABLE.
    CreateTable(Box<CreateTable>),
    /// DROP [TEMPORARY] TABLE.
    DropTable(DropTable),
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
    /// DO.
    Do(Vec<ast::Expr>),
    /// KILL [CONNECTION | QUERY].
    Kill(u64),
    /// BEGIN and START TRANSACTION.
    Begin,
    /// COMMIT.
    Commit,
    /// ROLLBACK.
    Rollback,
    /// SAVEPOINT.
    Savepoint(String),
    /// ROLLBACK TO SAVEPOINT.
    RollbackTo(String),
    /// RELEASE SAVEPOINT.
    ReleaseSavepoint(String),
    /// Statements that have nothing to do here: LOCK TABLES, FLUSH TABLES.
    Nothing,
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
    /// Whether NULL is refused.
    pub not_null: bool,
    /// The DEFAULT clause.
    pub default: Option<ast::Expr>,
    /// The COMMENT clause.
    pub comment: Option<String>,
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
    /// LIKE another table.
    pub like: Option<TableName>,
    /// ENGINE option.
    pub engine: Option<String>,
    /// Character set option.
    pub character_set: Option<String>,
    /// COMMENT option.
    pub comment: Option<String>,
    /// The query that fills it.
    pub query: Option<Box<ast::Query>>,
    /// IGNORE before the query: bad values are adjusted.
    pub ignore: bool,
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
    /// The rows.
    pub source: InsertSource,
    /// IGNORE: bad values are adjusted.
    pub ignore: bool,
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
    /// The name or the alias of its table, if it was written.
    pub table: Option<String>,
    /// The column.
    pub column: String,
    /// The value; `None` stands for DEFAULT.
    pub value: Option<ast::Expr>,
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
    /// The file.
    pub path: String,
    /// The table.
    pub table: TableName,
    /// CHARACTER SET.
    pub character_set: Option<String>,
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
    /// IGNORE n LINES.
    pub skip_lines: u64,
    /// Where the fields go; empty: to all columns in order.
    pub targets: Vec<LoadTarget>,
    /// SET column = expression.
    pub assignments: Vec<(String, ast::Expr)>,
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
    /// SET TRANSACTION.
    Transaction,
}

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
    /// SHOW [FULL] TABLES.
    Tables {
        full: bool,
        database: Option<String>,
        filter: Filter,
    },
    /// SHOW TABLE STATUS.
    TableStatus {
        database: Option<String>,
        filter: Filter,
    },
    /// SHOW [FULL] COLUMNS, DESCRIBE.
    Columns {
        full: bool,
        table: TableName,
        filter: Filter,
    },
    /// DESCRIBE 'file'.
    FileColumns(String),
    /// SHOW CREATE TABLE.
    CreateTable(TableName),
    /// SHOW CREATE DATABASE.
    CreateDatabase(String),
    /// SHOW INDEX.
    Index(TableName),
    /// SHOW DATABASES.
    Databases(Filter),
    /// SHOW [GLOBAL | SESSION] VARIABLES.
    Variables { scope: Scope, filter: Filter },
    /// SHOW [GLOBAL | SESSION] STATUS.
    Status { scope: Scope, filter: Filter },
    /// SHOW WARNINGS, SHOW ERRORS.
    Warnings {
        errors_only: bool,
        offset: u64,
        limit: Option<u64>,
    },
    /// SHOW COUNT(*) WARNINGS, SHOW COUNT(*) ERRORS.
    WarningCount { errors_only: bool },
    /// SHOW ENGINES.
    Engines,
    /// SHOW CHARACTER SET.
    CharacterSets(Filter),
    /// SHOW COLLATION.
    Collations(Filter),
    /// SHOW [FULL] PROCESSLIST.
    ProcessList,
}
