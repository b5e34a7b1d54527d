//! What is known of statements: their meaning for any constants, by their shape.
//!
//! Owns the memory for shapes, which is bounded, and the check that a name still means the table
//! that the meaning was made for. Tables are not kept alive here.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::ScalarUDF;
use mayfly_exec::ShortPlan;
use mayfly_sql::compute::Computed;
use mayfly_sql::functions::SessionValues;
use mayfly_sql::literal::Literal;
use mayfly_sql::statement::TableName;
use mayfly_table::{Definition, Table};
use mayfly_types::ColumnType;

use crate::column_info::ColumnInfo;
use crate::digests::DigestCell;
use crate::statement::apart::Given;

/// Shapes that are kept, and the bytes of the longest: a client has few, and the rows of VALUES
/// make none longer.
const SHAPES_MAX: usize = 128;
const SHAPE_BYTES_MAX: usize = 2 << 10;

/// The statements that a connection has seen.
#[derive(Default)]
pub(crate) struct Known {
    statements: HashMap<Vec<u8>, Arc<PointStatement>>,
    /// How often shapes came that may be worth a plan, by their hash.
    times: HashMap<u64, u32>,
}

impl Known {
    /// The statement of a shape.
    pub(super) fn get(&self, shape: &[u8]) -> Option<Arc<PointStatement>> {
        self.statements.get(shape).cloned()
    }

    /// Counts a shape of a query whose plan is not kept, or no longer means the same; tells whether
    /// it comes for the second time, or for the fourth, the eighth ...: what could not be planned
    /// once may be later. What is kept for another kind of statement stays.
    pub(super) fn is_worth_plan(&mut self, shape: &[u8]) -> bool {
        if shape.len() > SHAPE_BYTES_MAX {
            return false;
        }
        match self.statements.get(shape).map(|known| &known.action) {
            Some(Action::Compute { .. }) => return true,
            Some(_) => return false,
            None => {}
        }
        let times = self.count(shape);
        times > 1 && times.is_power_of_two()
    }

    /// Counts a shape of a change whose values are computed; tells whether to compute them without
    /// a plan: the first time, and the second, the fourth ... if each had to go the long way.
    pub(super) fn may_be_computed(&mut self, shape: &[u8]) -> bool {
        if shape.len() > SHAPE_BYTES_MAX {
            return false;
        }
        self.count(shape).is_power_of_two()
    }

    fn count(&mut self, shape: &[u8]) -> u32 {
        if self.times.len() >= SHAPES_MAX {
            self.times.clear();
        }
        let times = self.times.entry(hash_of(shape)).or_default();
        *times = times.saturating_add(1);
        *times
    }

    /// Keeps a statement for those of its shape.
    pub(super) fn keep(&mut self, shape: Vec<u8>, statement: Arc<PointStatement>) {
        if shape.len() > SHAPE_BYTES_MAX {
            return;
        }
        if self.statements.len() >= SHAPES_MAX && !self.statements.contains_key(&shape) {
            self.statements.clear();
        }
        self.times.remove(&hash_of(&shape));
        self.statements.insert(shape, statement);
    }
}

fn hash_of(shape: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    shape.hash(&mut hasher);
    hasher.finish()
}

/// A statement on rows of one table, for any constants.
pub(crate) struct PointStatement {
    pub(super) name: TableName,
    pub(super) meant: Meant,
    pub(super) action: Action,
    /// The columns of the result of a SELECT.
    pub(super) columns: Vec<ColumnInfo>,
    pub(super) digests: KnownDigests,
}

/// The digests of a shape: that of a statement with one row of VALUES or none, and that of one
/// with several rows.
#[derive(Default)]
pub(super) struct KnownDigests {
    one: DigestCell,
    several: DigestCell,
    /// How many rows the latter has been made for; 0 if it has not.
    several_rows: AtomicUsize,
}

impl KnownDigests {
    /// The digest of a statement that gives so many rows; `own` where it is not remembered. Rows
    /// with DEFAULT stand one by one in the digest, which is another for each number of them.
    pub(super) fn of<'a>(&'a self, given: &Given<'_>, own: &'a DigestCell) -> &'a DigestCell {
        if given.rows <= 1 {
            return &self.one;
        }
        let several = self.several.get();
        if several.is_some_and(|digest| digest.ends_in_rows()) {
            return &self.several;
        }
        let (order, rows) = (Ordering::Relaxed, given.rows);
        match self.several_rows.compare_exchange(0, rows, order, order) {
            Ok(_) => &self.several,
            Err(made_for) if made_for == rows => &self.several,
            Err(_) => own,
        }
    }
}

/// The table that the columns were looked up in: nothing of it but its definition, which a
/// temporary table that is made again shares with the one before.
pub(super) struct Meant {
    definition: Weak<Definition>,
    database: String,
}

impl Meant {
    /// A table of a database.
    pub(super) fn new(table: &Table, database: String) -> Meant {
        Meant {
            definition: Arc::downgrade(table.definition_handle()),
            database,
        }
    }

    /// Whether a statement means the same for another table of the name.
    pub(super) fn is(&self, table: &Table, database: &str) -> bool {
        // The memory of the definition is not used again as long as this points to it.
        let is_same = std::ptr::eq(self.definition.as_ptr(), table.definition());
        is_same && self.database == database
    }
}

/// What a statement does.
pub(super) enum Action {
    Insert {
        /// What each column of the table gets; the constants are those of the first row.
        columns: Vec<Cell>,
        /// Constants of each row.
        width: usize,
        on_duplicate: OnDuplicate,
    },
    /// An INSERT of one row that changes the row that it meets instead.
    Upsert {
        columns: Vec<Cell>,
        assignments: Assignments,
        /// What computes their values; there are no conditions.
        over: Option<OverRows>,
    },
    Update {
        rows: Chosen,
        assignments: Assignments,
    },
    Delete {
        rows: Chosen,
        /// Whether it names the table that it deletes from: it counts as one of several.
        is_multi: bool,
    },
    /// The places of the columns.
    Select { rows: Choice, columns: Vec<usize> },
    /// What a plan makes of the rows.
    Compute {
        rows: Choice,
        over: Remainder,
        /// The constants that the plan was made for, by their place.
        fixed: Vec<(usize, Literal<'static>)>,
    },
}

/// What becomes of a row of an INSERT or REPLACE that meets another one in a unique key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OnDuplicate {
    Fail,
    /// It is left out.
    Ignore,
    /// It takes the place of those that it meets.
    Replace,
}

/// Places of columns, with what they get.
pub(super) type Assignments = Vec<(usize, NewValue)>;

/// The rows that a statement changes.
pub(super) struct Chosen {
    pub(super) rows: Choice,
    /// The rest of the condition, and the values that depend on the rows.
    pub(super) over: Option<OverRows>,
    /// LIMIT: where it would leave rows out, the statement goes the long way.
    pub(super) limit: Option<Cell>,
}

impl Chosen {
    /// All rows that a key finds.
    pub(super) fn all(rows: Choice) -> Chosen {
        Chosen {
            rows,
            over: None,
            limit: None,
        }
    }
}

/// A constant or NULL.
pub(super) type Value<'a> = Option<&'a Literal<'a>>;

/// A value that stands in a statement.
#[derive(Clone)]
pub(super) enum Cell {
    Null,
    /// What DEFAULT stands for.
    Default(Literal<'static>),
    /// The n-th constant of the statement.
    Constant(usize),
}

/// What an assignment gives to a column.
pub(super) enum NewValue {
    Value(Cell),
    /// Its old value and a constant, which is subtracted or added.
    Sum {
        is_minus: bool,
        other: Cell,
    },
    /// The n-th value that is computed.
    Computed(usize),
}

impl PointStatement {
    /// Whether other sessions may run it: expressions over rows are those of one.
    pub(super) fn is_for_others(&self) -> bool {
        match &self.action {
            Action::Upsert { over, .. } => over.is_none(),
            Action::Update { rows, .. } | Action::Delete { rows, .. } => rows.over.is_none(),
            _ => true,
        }
    }

    pub(super) fn is_query(&self) -> bool {
        matches!(self.action, Action::Select { .. } | Action::Compute { .. })
    }
}

impl Cell {
    /// The value for some constants.
    pub(super) fn value<'a>(&'a self, constants: &'a [Option<Literal<'_>>]) -> Value<'a> {
        match self {
            Cell::Null => None,
            Cell::Default(value) => Some(value),
            Cell::Constant(place) => constants[*place].as_ref(),
        }
    }

    /// The values for several rows of constants, one behind the other.
    pub(super) fn values<'a>(
        &'a self,
        given: &'a Given<'_>,
        width: usize,
        values: &mut Vec<Value<'a>>,
    ) {
        values.clear();
        match self {
            Cell::Constant(place) if given.rows > 1 => {
                let rows = given.constants.chunks_exact(width);
                values.extend(rows.map(|row| row[*place].as_ref()));
            }
            other => values.resize(given.rows, other.value(&given.constants)),
        }
    }
}

/// Expressions over some columns of rows, and over constants of the statement.
pub(super) struct OverRows {
    /// The columns that they read, of the row and of the one that would have come.
    pub(super) columns: Vec<usize>,
    pub(super) new_columns: Vec<usize>,
    pub(super) slots: Vec<(usize, DataType)>,
    pub(super) fixed: Vec<(usize, Literal<'static>)>,
    pub(super) schema: SchemaRef,
    /// What is true for the rows that are meant; all are where there is none.
    pub(super) condition: Option<Computed>,
    pub(super) values: Vec<Assigned>,
    pub(super) options: Arc<ConfigOptions>,
    /// The version of the variables that they were made with.
    pub(super) variables: u64,
}

/// What a column gets.
pub(super) struct Assigned {
    pub(super) value: Computed,
    pub(super) field: FieldRef,
    pub(super) column_type: ColumnType,
    pub(super) is_nullable: bool,
    pub(super) convert: ScalarUDF,
}

/// A plan over rows that are given to it.
pub(crate) struct Remainder {
    pub(super) plan: ShortPlan,
    /// Where its functions warn.
    pub(super) values: SessionValues,
    /// The columns of the table that it reads.
    pub(super) columns: Vec<usize>,
    pub(super) wants_few: bool,
    /// The version of the variables that it was made with.
    pub(super) variables: u64,
}

/// The rows that a condition finds by one key: those of any of its branches.
pub(super) struct Choice {
    /// The place of the key in the table's definition.
    pub(super) key: usize,
    pub(super) branches: Vec<Branch>,
}

/// One side of an OR: the first columns of the key equal constants, and the next one lies among
/// others.
#[derive(Clone, Default)]
pub(super) struct Branch {
    /// Columns with what they equal.
    pub(super) parts: Vec<(usize, Cell)>,
    /// Another column, and what it may be; it has whole numbers.
    pub(super) among: Option<(usize, Among)>,
}

/// What a column is compared with.
#[derive(Clone)]
pub(super) enum Among {
    Between(Bound<Cell>, Bound<Cell>),
    In(Vec<Cell>),
}
