//! A scan that learns when it runs which rows are wanted.
//!
//! Owns: the plan node in the place of a scan, and the choice between the rows that a key finds and
//! the scan. Never: answers a condition; whoever is above checks all rows again, and a scan of the
//! whole table is always right.
//!
//! ```text
//!   subquery --value--> condition --+
//!                                   +--> LateScan --> rows by key, or the scan
//!   outer rows of a join --keys-----+
//! ```

use std::fmt;
use std::sync::{Arc, Mutex};

use arrow::array::ArrayRef;
use arrow::datatypes::Schema;
use datafusion::common::{Column, Result, ScalarValue, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, lit};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use mayfly_table::{ByKey, Search, TableSnapshot};

use super::choice::{Access, choose};
use super::found_memory::{KEY_SCAN_ROW_BYTES, reserved};
use super::scan::{Found, FoundRows, KeyScan};
use crate::batches::batch_of;
use crate::error::table_error;
use crate::lock::lock;
use crate::plan_node::{leaf_node, stream_of};
use crate::reads::Searched;
use crate::source::Source;
use crate::table_scan::TableScan;

/// Rows of a table by a key that is asked when the plan runs.
pub struct LateScan {
    /// The key as it is thought to be used.
    found: Found,
    /// How many rows a search finds, about.
    rows_each: u64,
    source: Source,
    asked: Asked,
    scan: Arc<TableScan>,
    properties: Arc<PlanProperties>,
}

/// Who says which rows are wanted.
enum Asked {
    /// Values that are known before the scan begins, each compared with a column.
    Values {
        conditions: Arc<Vec<Condition>>,
        /// What came of it, for all partitions.
        answer: Mutex<Option<Answer>>,
    },
    /// A join that has read its other side. All copies of the node hear the same.
    Told(Arc<Mutex<Answer>>),
}

/// The rows that a key found; the whole table without them.
type Answer = Option<Arc<KeyScan>>;

/// A comparison of a column with what is a constant once the plan runs.
pub(crate) struct Condition {
    /// The column of the table.
    pub(crate) column: usize,
    pub(crate) operator: Operator,
    pub(crate) value: Arc<dyn PhysicalExpr>,
}

impl LateScan {
    /// A scan of rows for which conditions hold.
    pub(super) fn of_values(
        found: Found,
        rows_each: u64,
        conditions: Vec<Condition>,
        scan: &TableScan,
        source: Source,
    ) -> Self {
        let asked = Asked::Values {
            conditions: Arc::new(conditions),
            answer: Mutex::new(None),
        };
        Self::new(found, rows_each, asked, scan, source)
    }

    /// A scan of the rows that a join wants.
    pub(super) fn of_join(found: Found, rows_each: u64, scan: &TableScan, source: Source) -> Self {
        Self::new(found, rows_each, Asked::Told(Arc::default()), scan, source)
    }

    fn new(found: Found, rows_each: u64, asked: Asked, scan: &TableScan, source: Source) -> Self {
        Self {
            found,
            rows_each,
            source,
            asked,
            properties: Arc::clone(scan.properties()),
            scan: Arc::new(scan.again()),
        }
    }

    /// The key that is thought to be used.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// How many rows a search finds, about.
    pub fn rows_each(&self) -> u64 {
        self.rows_each
    }

    /// What is scanned if no key is used.
    pub(crate) fn scan(&self) -> &TableScan {
        &self.scan
    }

    /// The same, whose scan is another one of the same rows.
    pub(crate) fn with_scan(&self, scan: TableScan) -> Self {
        Self {
            found: self.found.clone(),
            rows_each: self.rows_each,
            source: self.source.clone(),
            asked: self.asked.again(),
            scan: Arc::new(scan),
            properties: Arc::clone(&self.properties),
        }
    }

    /// Says which values the parts of its key are wanted to have, one row of values for each row
    /// that is joined; or that all rows are wanted.
    pub(super) fn tell(&self, values: Option<&[ArrayRef]>, limit: usize) -> Result<()> {
        let Asked::Told(told) = &self.asked else {
            return Ok(());
        };
        let found = match values {
            Some(values) => self.looked_up(values, limit)?,
            None => None,
        };
        *lock(told) = found;
        Ok(())
    }

    fn looked_up(&self, values: &[ArrayRef], limit: usize) -> Result<Answer> {
        let (table, seen) = (&self.source.table, &self.source.snapshot);
        let numbers = table.lookup_any(seen, self.found.key, values, limit);
        match numbers.map_err(table_error)? {
            ByKey::Found(numbers) => {
                let count = values.first().map_or(0, |values| values.len());
                let is_unique = self.found.access == Access::EqRef;
                self.by_numbers(numbers, Searched::for_each(count, is_unique))
            }
            ByKey::TooMany | ByKey::Changed => Ok(None),
        }
    }

    /// The rows for which conditions hold, if they are few.
    fn searched(&self, conditions: &[Condition]) -> Result<Answer> {
        let mut filters = self.source.filters.clone();
        match known(conditions, self.source.table.schema()) {
            Known::Filters(known) if known.len() == conditions.len() => filters.extend(known),
            Known::Filters(_) => return Ok(None),
            Known::NoRow => return self.by_numbers(Vec::new(), Searched::for_each(0, true)),
        }
        let Some(choice) = choose(&self.source.table, &filters, |_| false)? else {
            return Ok(None);
        };
        let limit = usize::try_from(choice.rows.saturating_mul(2).saturating_add(64));
        self.by_searches(&choice.searches, limit.unwrap_or(usize::MAX))
    }

    fn by_searches(&self, searches: &[Search], limit: usize) -> Result<Answer> {
        let (table, seen) = (&self.source.table, &self.source.snapshot);
        let numbers = table.search_seen(seen, searches, limit);
        match numbers.map_err(table_error)? {
            ByKey::Found(numbers) => self.by_numbers(numbers, Searched::of(table, searches)),
            ByKey::TooMany | ByKey::Changed => Ok(None),
        }
    }

    /// The rows with some numbers; `None` where there is no room for their ids.
    fn by_numbers(&self, numbers: Vec<u64>, searched: Searched) -> Result<Answer> {
        let snapshot: &TableSnapshot = &self.source.snapshot;
        let bytes = numbers.len() as u64 * KEY_SCAN_ROW_BYTES;
        let Some(reservation) = reserved(snapshot.account(), bytes) else {
            return Ok(None);
        };
        let ids = snapshot.locate(numbers).map_err(table_error)?;
        let rows = FoundRows::by_ids(self.source.clone(), ids);
        let scan = KeyScan::new(self.found.clone(), rows, searched).holding(reservation);
        Ok(Some(Arc::new(scan)))
    }

    fn answer(&self) -> Result<Answer> {
        match &self.asked {
            Asked::Told(told) => Ok(lock(told).clone()),
            Asked::Values { conditions, answer } => {
                let mut answer = lock(answer);
                if let Some(answer) = answer.as_ref() {
                    return Ok(answer.clone());
                }
                let found = self.searched(conditions)?;
                Ok(answer.insert(found).clone())
            }
        }
    }
}

impl Asked {
    fn again(&self) -> Asked {
        match self {
            Asked::Values { conditions, .. } => Asked::Values {
                conditions: Arc::clone(conditions),
                answer: Mutex::new(None),
            },
            Asked::Told(told) => Asked::Told(Arc::clone(told)),
        }
    }
}

/// Comparisons of columns with values that are known by now.
pub(crate) enum Known {
    /// Those whose value is known, as conditions of a scan.
    Filters(Vec<Expr>),
    /// One of them holds for no row.
    NoRow,
}

/// What conditions ask of columns of a schema.
pub(crate) fn known(conditions: &[Condition], schema: &Schema) -> Known {
    let mut filters = Vec::with_capacity(conditions.len());
    for condition in conditions {
        let Some(value) = value_of(&condition.value) else {
            continue;
        };
        if value.is_null() && condition.operator != Operator::IsNotDistinctFrom {
            return Known::NoRow;
        }
        let column = schema.field(condition.column).name();
        filters.push(Expr::BinaryExpr(BinaryExpr::new(
            Box::new(Expr::Column(Column::new_unqualified(column))),
            condition.operator,
            Box::new(lit(value)),
        )));
    }
    Known::Filters(filters)
}

/// The value of an expression without columns; `None` if it has none yet, or fails.
fn value_of(expr: &Arc<dyn PhysicalExpr>) -> Option<ScalarValue> {
    let row = batch_of(&Arc::new(Schema::empty()), Vec::new(), 1).ok()?;
    let value = expr.evaluate(&row).ok()?.into_array(1).ok()?;
    ScalarValue::try_from_array(&value, 0).ok()
}

impl fmt::Debug for LateScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LateScan")
            .field("found", &self.found)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for LateScan {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.found.table.name();
        let key = &self.found.key().name;
        if matches!(t, DisplayFormatType::TreeRender) {
            return writeln!(f, "table={table}\nkey={key}");
        }
        write!(f, "LateScan: table={table}, key={key}")?;
        let Asked::Values { conditions, .. } = &self.asked else {
            return Ok(());
        };
        let schema = self.source.table.schema();
        let conditions: Vec<String> = conditions
            .iter()
            .map(|condition| {
                let column = schema.field(condition.column).name();
                format!("{column} {} {}", condition.operator, condition.value)
            })
            .collect();
        write!(f, ", values=[{}]", conditions.join(", "))
    }
}

impl ExecutionPlan for LateScan {
    leaf_node!("LateScan");

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.with_scan(self.scan.again())))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        match self.answer()? {
            None => self.scan.execute(partition, context),
            Some(found) if partition == 0 => found.execute(0, context),
            Some(_) => Ok(stream_of(self, std::iter::empty())),
        }
    }

    fn metrics(&self) -> Option<MetricsSet> {
        let answer = match &self.asked {
            Asked::Values { answer, .. } => {
                let answer = lock(answer);
                answer.clone().flatten()
            }
            Asked::Told(told) => lock(told).clone(),
        };
        match answer {
            Some(found) => found.metrics(),
            None => self.scan.metrics(),
        }
    }

    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.scan.statistics_from_inputs(&[], args)
    }
}
