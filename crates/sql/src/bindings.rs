//! What the outside gives a planner: tables, files, values of variables, modes.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use datafusion::datasource::TableProvider;
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{Expr, Query, UnaryOperator, Value};

use crate::functions::LongTexts;
use crate::source::Source;
use crate::visible::Visible;

/// The database name under which the planner finds files.
pub(crate) const FILES: &str = "mayfly files";

/// Databases of the system that nobody may create. Their names have no case.
pub const SYSTEM_DATABASES: [&str; 2] = ["information_schema", "performance_schema"];

/// A table that a statement can read.
#[derive(Clone)]
pub struct BoundTable {
    /// The table; the names of its fields are in lower case.
    pub provider: Arc<dyn TableProvider>,
    /// The names of its columns as they were declared, one for each field.
    pub columns: Vec<String>,
    /// Sets of columns, in lower case, that no two rows have in common: its unique keys without
    /// columns that take NULL.
    pub unique: Vec<Vec<String>>,
    /// The columns, in lower case, that `*` and NATURAL JOIN leave out.
    pub invisible: Vec<String>,
    /// The view that it is; its provider knows nothing then.
    pub view: Option<Arc<BoundView>>,
}

impl BoundTable {
    /// Whether `*` shows a column.
    pub(crate) fn shows(&self, column: &str) -> bool {
        !self.invisible.contains(&column.to_lowercase())
    }

    /// Makes it a table that has none of the invisible columns.
    pub(crate) fn leave_out_invisible(&mut self) -> Result<()> {
        if self.invisible.is_empty() {
            return Ok(());
        }
        let places = (0..self.columns.len()).filter(|place| self.shows(&self.columns[*place]));
        let places: Vec<usize> = places.collect();
        let columns = places.iter().map(|place| self.columns[*place].clone());
        let columns = columns.collect();
        self.provider = Arc::new(Visible::new(Arc::clone(&self.provider), places)?);
        self.columns = columns;
        self.invisible.clear();
        Ok(())
    }
}

/// A view that a statement names, with all that its query names.
pub struct BoundView {
    /// Its database and its name.
    pub(crate) name: (String, String),
    pub(crate) query: Query,
    pub(crate) source: Source,
    pub(crate) bindings: Bindings,
    /// How many tables it reads, and how deep its plan is.
    pub(crate) tables: u64,
    pub(crate) depth: u64,
    /// Whether it is a part of the query that names it.
    pub(crate) is_merged: bool,
}

impl fmt::Debug for BoundView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BoundView").field(&self.name).finish()
    }
}

/// What one statement may use.
#[derive(Clone, Default)]
pub struct Bindings {
    /// The current database.
    pub database: Option<String>,
    /// Tables by database and name.
    pub tables: HashMap<(String, String), BoundTable>,
    /// Files by the path that was written.
    pub files: HashMap<String, BoundTable>,
    /// Values of user variables, in lower case, without `@`.
    pub user_variables: HashMap<String, ScalarValue>,
    /// Values of system variables, keyed as [`crate::references::References`] lists them.
    pub system_variables: HashMap<String, ScalarValue>,
    /// Literals of many bytes, as far as the statement has been rewritten.
    pub long_texts: LongTexts,
    /// Names of aggregate functions, in lower case.
    pub aggregates: Arc<HashSet<String>>,
    /// Whether `sql_mode` has ONLY_FULL_GROUP_BY.
    pub only_full_group_by: bool,
    /// Whether `sql_mode` has PIPES_AS_CONCAT.
    pub pipes_as_concat: bool,
}

impl Bindings {
    /// A table of a database; without one, of the current database.
    pub(crate) fn table(&self, database: Option<&str>, table: &str) -> Option<&BoundTable> {
        let database = database.or(self.database.as_deref())?;
        self.tables.get(&(database.to_owned(), table.to_owned()))
    }

    /// The same for a name as the planner reads it, under which files have a database of their own.
    pub(crate) fn table_or_file(&self, database: Option<&str>, name: &str) -> Option<&BoundTable> {
        match database {
            Some(FILES) => self.files.get(name),
            database => self.table(database, name),
        }
    }
}

/// The literal that stands for a value in a syntax tree.
pub fn literal(value: &ScalarValue) -> Expr {
    fn number(text: String) -> Expr {
        match text.strip_prefix('-') {
            Some(digits) => Expr::Nested(Box::new(Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr: Box::new(Expr::Value(Value::Number(digits.to_owned(), false).into())),
            })),
            None => Expr::Value(Value::Number(text, false).into()),
        }
    }
    let value = match value {
        ScalarValue::Null => Value::Null,
        value if value.is_null() => Value::Null,
        ScalarValue::Boolean(Some(truth)) => return number(u8::from(*truth).to_string()),
        ScalarValue::Utf8(Some(text))
        | ScalarValue::Utf8View(Some(text))
        | ScalarValue::LargeUtf8(Some(text)) => Value::SingleQuotedString(text.clone()),
        ScalarValue::Float64(Some(number_value)) => return number(format!("{number_value:e}")),
        ScalarValue::Float32(Some(number_value)) => return number(format!("{number_value:e}")),
        ScalarValue::Binary(Some(bytes))
        | ScalarValue::BinaryView(Some(bytes))
        | ScalarValue::LargeBinary(Some(bytes)) => {
            Value::HexStringLiteral(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
        }
        ScalarValue::Decimal128(Some(unscaled), precision, scale) => {
            use datafusion::arrow::datatypes::{Decimal128Type, DecimalType};
            return number(Decimal128Type::format_decimal(
                *unscaled, *precision, *scale,
            ));
        }
        other => {
            let text = other.to_string();
            if text
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'-')
            {
                return number(text);
            }
            Value::SingleQuotedString(text)
        }
    };
    Expr::Value(value.into())
}
