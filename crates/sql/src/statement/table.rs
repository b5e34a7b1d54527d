//! Definitions of tables: CREATE, ALTER and DROP TABLE, and their kin.

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::ast;
use mayfly_table::{KeyKind, TableOption, Using};
use mayfly_types::{CharacterSet, ColumnType};

use super::name::TableName;

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
    /// Whether REFERENCES was written, which MySQL reads and ignores.
    pub references: bool,
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
    /// Whether it stands for a FOREIGN KEY: another key that begins with its columns makes it
    /// needless.
    pub for_foreign_key: bool,
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
        /// The column.
        definition: Box<ColumnDefinition>,
        /// Where it goes; at the end where nothing is written.
        placement: Option<Placement>,
        /// Whether it may be there already.
        if_not_exists: bool,
    },
    /// DROP COLUMN.
    DropColumn {
        /// Its name.
        name: String,
        /// Whether it may be missing.
        if_exists: bool,
    },
    /// CHANGE COLUMN, and MODIFY COLUMN, where the old name is the new one.
    ChangeColumn {
        /// Its name so far.
        old: String,
        /// The column.
        definition: Box<ColumnDefinition>,
        /// Where it goes; it stays where nothing is written.
        placement: Option<Placement>,
        /// Whether it may be missing.
        if_exists: bool,
    },
    /// RENAME COLUMN.
    RenameColumn {
        /// Its name so far.
        old: String,
        /// Its new name.
        new: String,
    },
    /// ALTER COLUMN SET DEFAULT, or DROP DEFAULT.
    SetDefault {
        /// The column.
        column: String,
        /// The default; `None` is DROP DEFAULT.
        default: Option<ast::Expr>,
    },
    /// ALTER COLUMN SET VISIBLE or INVISIBLE.
    SetInvisible {
        /// The column.
        column: String,
        /// Whether it becomes invisible.
        invisible: bool,
    },
    /// ADD KEY in all its forms.
    AddKey(KeyDefinition),
    /// DROP KEY; the primary key is called `PRIMARY`.
    DropKey {
        /// Its name.
        name: String,
        /// Whether it may be missing.
        if_exists: bool,
    },
    /// DROP FOREIGN KEY; none is kept.
    DropForeignKey {
        /// Its name.
        name: String,
        /// Whether it may be missing.
        if_exists: bool,
    },
    /// RENAME KEY.
    RenameKey {
        /// Its name so far.
        old: String,
        /// Its new name.
        new: String,
        /// Whether it may be missing.
        if_exists: bool,
    },
    /// ADD CHECK.
    AddCheck(CheckDefinition),
    /// DROP CHECK.
    DropCheck {
        /// Its name.
        name: String,
        /// Whether it may be missing.
        if_exists: bool,
    },
    /// ALTER CHECK, and ALTER CONSTRAINT, which has its own error.
    EnforceCheck {
        /// Its name.
        name: String,
        /// Whether rows are checked.
        enforced: bool,
        /// Whether ALTER CONSTRAINT was written.
        as_constraint: bool,
    },
    /// DROP CONSTRAINT: a check or a key.
    DropConstraint {
        /// Its name.
        name: String,
        /// Whether it may be missing.
        if_exists: bool,
    },
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

/// CREATE \[TEMPORARY\] TABLE.
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

/// DROP \[TEMPORARY\] TABLE.
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
    /// PROCEDURE.
    Procedure,
    /// FUNCTION.
    Function,
    /// TRIGGER.
    Trigger,
    /// EVENT.
    Event,
}

/// DROP PROCEDURE, FUNCTION, TRIGGER and EVENT.
#[derive(Debug, Clone)]
pub struct DropAbsent {
    /// What it names.
    pub kind: Absent,
    /// IF EXISTS.
    pub if_exists: bool,
    /// Its name.
    pub name: TableName,
}
