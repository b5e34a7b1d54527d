//! Changes of rows: INSERT, UPDATE, DELETE and LOAD DATA.

use datafusion::sql::sqlparser::ast;
use mayfly_types::CharacterSet;

use super::name::TableName;

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

/// LOAD DATA \[LOCAL\] INFILE.
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
