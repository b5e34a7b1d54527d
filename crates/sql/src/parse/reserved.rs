//! Words that cannot be names without quotes, and INTO where it cannot be.
//!
//! sqlparser takes most of MySQL's reserved words as names, so that `SELECT NOT` would ask for a
//! column. The list holds what MySQL and MariaDB both reserve: a column called `rank` is welcome.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, Ident, ObjectNamePart, Query, Select, SelectItem, Spanned,
    TableFactor, Visitor,
};
use datafusion::sql::sqlparser::tokenizer::Location;

use crate::functions::own::MARK;
use crate::statement::{InsertSource, RowChoice, SetColumn, Statement};
use crate::walk;

/// Where a statement uses a reserved word as a name.
pub(super) fn find(statement: &Statement) -> Option<Location> {
    let mut names = Names { found: None };
    match statement {
        Statement::Query(query) | Statement::QueryInto(query, _) => names.read(query),
        Statement::Explain(explain) => return find(&explain.statement),
        Statement::CreateTable(table) => table.query.iter().for_each(|query| names.read(query)),
        Statement::Insert(insert) => {
            if let InsertSource::Query(query) = &insert.source {
                names.read(query);
            }
            names.read_values(&insert.on_duplicate);
        }
        Statement::Update(update) => {
            names.read_choice(&update.choice);
            names.read_values(&update.assignments);
        }
        Statement::Delete(delete) => names.read_choice(&delete.choice),
        _ => {}
    }
    names.found
}

/// Whether a name can be that of a function: some constructs look like one, and have a syntax of
/// their own.
fn is_function(name: &Ident) -> bool {
    let is_construct = ["extract", "like", "position"]
        .iter()
        .any(|construct| name.value.eq_ignore_ascii_case(construct));
    !(name.value.starts_with(MARK) || is_construct && name.quote_style.is_none())
}

/// Whether a word is reserved.
pub(crate) fn is_reserved(word: &str) -> bool {
    let upper = word.to_ascii_uppercase();
    WORDS.binary_search(&upper.as_str()).is_ok()
}

struct Names {
    found: Option<Location>,
}

impl Names {
    fn read(&mut self, query: &Query) {
        let _ = walk::read(query, self);
    }

    fn read_values(&mut self, assignments: &[SetColumn]) {
        for value in assignments.iter().filter_map(|set| set.value.as_ref()) {
            let _ = walk::read(value, self);
        }
    }

    fn read_choice(&mut self, choice: &RowChoice) {
        let _ = walk::read(&choice.from, self);
        let _ = walk::read(&choice.condition, self);
        let _ = walk::read(&choice.order_by, self);
    }

    fn check(&mut self, name: &Ident) -> ControlFlow<()> {
        if name.quote_style.is_none() && is_reserved(&name.value) {
            self.found = Some(name.span.start);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) => self.check(name),
            Expr::Function(function) => match function.name.0.as_slice() {
                [ObjectNamePart::Identifier(name)] if !is_function(name) => {
                    self.found = Some(name.span.start);
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            },
            // What other dialects have.
            Expr::Array(_)
            | Expr::AtTimeZone { .. }
            | Expr::CompoundFieldAccess { .. }
            | Expr::Dictionary(_)
            | Expr::ILike { .. }
            | Expr::IsDistinctFrom(..)
            | Expr::IsNotDistinctFrom(..)
            | Expr::Map(_)
            | Expr::Overlay { .. }
            | Expr::SimilarTo { .. }
            | Expr::Struct { .. }
            | Expr::Cast {
                kind: CastKind::DoubleColon | CastKind::SafeCast | CastKind::TryCast,
                ..
            }
            // No value is converted to a list: only columns are declared so.
            | Expr::Cast {
                data_type: DataType::Enum(..) | DataType::Set(_),
                ..
            }
            | Expr::Convert {
                data_type: Some(DataType::Enum(..) | DataType::Set(_)),
                ..
            } => {
                self.found = Some(expr.span().start);
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        // The one place of INTO was cut out before: this would make a table.
        if let Some(into) = &select.into {
            self.found = Some(into.name.span().start);
            return ControlFlow::Break(());
        }
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.check(alias)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        // Functions in the place of tables, of which MySQL has one: it is refused by its name.
        if let TableFactor::Table {
            args: Some(_),
            name,
            ..
        }
        | TableFactor::Function { name, .. } = factor
        {
            self.found = Some(name.span().start);
            return ControlFlow::Break(());
        }
        if let TableFactor::UNNEST { .. } | TableFactor::TableFunction { .. } = factor {
            self.found = Some(factor.span().start);
            return ControlFlow::Break(());
        }
        if let TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. } = factor
            && let Some(alias) = alias
        {
            self.check(&alias.name)?;
        }
        ControlFlow::Continue(())
    }
}

/// Sorted, in upper case. DUAL is one as well, but it names a table.
const WORDS: [&str; 224] = [
    "ACCESSIBLE",
    "ADD",
    "ALL",
    "ALTER",
    "ANALYZE",
    "AND",
    "AS",
    "ASC",
    "ASENSITIVE",
    "BEFORE",
    "BETWEEN",
    "BIGINT",
    "BINARY",
    "BLOB",
    "BOTH",
    "BY",
    "CALL",
    "CASCADE",
    "CASE",
    "CHANGE",
    "CHAR",
    "CHARACTER",
    "CHECK",
    "COLLATE",
    "COLUMN",
    "CONDITION",
    "CONSTRAINT",
    "CONTINUE",
    "CONVERT",
    "CREATE",
    "CROSS",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "CURRENT_USER",
    "CURSOR",
    "DATABASES",
    "DAY_HOUR",
    "DAY_MICROSECOND",
    "DAY_MINUTE",
    "DAY_SECOND",
    "DEC",
    "DECIMAL",
    "DECLARE",
    "DEFAULT",
    "DELAYED",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DETERMINISTIC",
    "DISTINCT",
    "DISTINCTROW",
    "DIV",
    "DOUBLE",
    "DROP",
    "EACH",
    "ELSE",
    "ELSEIF",
    "ENCLOSED",
    "ESCAPED",
    "EXCEPT",
    "EXISTS",
    "EXIT",
    "EXPLAIN",
    "FALSE",
    "FETCH",
    "FLOAT",
    "FLOAT4",
    "FLOAT8",
    "FOR",
    "FORCE",
    "FOREIGN",
    "FROM",
    "FULLTEXT",
    "GRANT",
    "GROUP",
    "HAVING",
    "HIGH_PRIORITY",
    "HOUR_MICROSECOND",
    "HOUR_MINUTE",
    "HOUR_SECOND",
    "IF",
    "IGNORE",
    "IN",
    "INDEX",
    "INFILE",
    "INNER",
    "INOUT",
    "INSENSITIVE",
    "INSERT",
    "INT",
    "INT1",
    "INT2",
    "INT3",
    "INT4",
    "INT8",
    "INTEGER",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "ITERATE",
    "JOIN",
    "KEY",
    "KEYS",
    "KILL",
    "LEADING",
    "LEAVE",
    "LEFT",
    "LIKE",
    "LIMIT",
    "LINEAR",
    "LINES",
    "LOAD",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "LOCK",
    "LONG",
    "LONGBLOB",
    "LONGTEXT",
    "LOOP",
    "LOW_PRIORITY",
    "MATCH",
    "MAXVALUE",
    "MEDIUMBLOB",
    "MEDIUMINT",
    "MEDIUMTEXT",
    "MIDDLEINT",
    "MINUTE_MICROSECOND",
    "MINUTE_SECOND",
    "MOD",
    "MODIFIES",
    "NATURAL",
    "NOT",
    "NO_WRITE_TO_BINLOG",
    "NULL",
    "NUMERIC",
    "ON",
    "OPTIMIZE",
    "OPTIONALLY",
    "OR",
    "ORDER",
    "OUT",
    "OUTER",
    "OUTFILE",
    "OVER",
    "PARTITION",
    "PRECISION",
    "PRIMARY",
    "PROCEDURE",
    "PURGE",
    "RANGE",
    "READ",
    "READS",
    "READ_WRITE",
    "REAL",
    "RECURSIVE",
    "REFERENCES",
    "REGEXP",
    "RELEASE",
    "RENAME",
    "REPEAT",
    "REPLACE",
    "REQUIRE",
    "RESIGNAL",
    "RESTRICT",
    "RETURN",
    "REVOKE",
    "RIGHT",
    "RLIKE",
    "ROWS",
    "SCHEMAS",
    "SECOND_MICROSECOND",
    "SELECT",
    "SENSITIVE",
    "SEPARATOR",
    "SET",
    "SHOW",
    "SIGNAL",
    "SMALLINT",
    "SPATIAL",
    "SPECIFIC",
    "SQL",
    "SQLEXCEPTION",
    "SQLSTATE",
    "SQLWARNING",
    "SQL_BIG_RESULT",
    "SQL_CALC_FOUND_ROWS",
    "SQL_SMALL_RESULT",
    "SSL",
    "STARTING",
    "STRAIGHT_JOIN",
    "TABLE",
    "TERMINATED",
    "THEN",
    "TINYBLOB",
    "TINYINT",
    "TINYTEXT",
    "TO",
    "TRAILING",
    "TRIGGER",
    "TRUE",
    "UNDO",
    "UNION",
    "UNIQUE",
    "UNLOCK",
    "UNSIGNED",
    "UPDATE",
    "USAGE",
    "USE",
    "USING",
    "VALUES",
    "VARBINARY",
    "VARCHAR",
    "VARCHARACTER",
    "VARYING",
    "WHEN",
    "WHERE",
    "WHILE",
    "WITH",
    "WRITE",
    "XOR",
    "YEAR_MONTH",
    "ZEROFILL",
];
