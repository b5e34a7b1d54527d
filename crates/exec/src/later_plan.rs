//! Plans whose operators are kept from one run to the next.
//!
//! Owns: [`LaterPlan`], a plan that holds no rows of its tables and does not keep them alive, and
//! the node that stands for a scan of one. Never: decides that a query asks the same as another
//! one; who keeps the plan does.
//!
//! To plan a query over many rows takes milliseconds, as long as some of them run. The operators
//! that planning ends with are good for the next run too, as long as the tables have the rows that
//! they were planned over: rules may have counted those, or chosen by them. So each scan knows the
//! version of its table, and where one has another version by then, the plan is none.
//!
//! **Cost**: each operator is made anew twice for each run, some tenths of a millisecond for twenty
//! of them.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::plan_node::leaf_that_never_runs;
use crate::table_scan::TableScan;
use crate::unbound::UnboundRows;

/// Operators that hold nothing of a table or of a run but in their inputs, or lose it when their
/// state is reset; in order.
const RUN_AGAIN: [&str; 21] = [
    "AggregateExec",
    "AggregateOperator",
    "CoalescePartitionsExec",
    "CooperativeExec",
    "EmptyExec",
    "ExchangeOperator",
    "FilterExec",
    "FilterOperator",
    "GlobalLimitExec",
    "HashJoinExec",
    "JoinOperator",
    "LocalLimitExec",
    "MergeOperator",
    "NestedLoopOperator",
    "PlaceholderRowExec",
    "ProjectionExec",
    "ScalarSubqueryExec",
    "SidewaysOperator",
    "SortOperator",
    "UnionExec",
    "WindowOperator",
];

/// Plans that are higher are not kept: a run goes through them on any thread.
const HEIGHT_MAX: usize = 64;

/// A plan that can be made again while its tables have the same rows.
#[derive(Debug)]
pub struct LaterPlan {
    plan: Arc<dyn ExecutionPlan>,
    operators: usize,
}

impl LaterPlan {
    /// What is kept of a plan that has not run; `None` where an operator holds more than rows of
    /// its inputs.
    ///
    /// # Errors
    /// What an operator says of another input.
    pub fn of(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<LaterPlan>> {
        let mut operators = 0;
        let plan = without_tables(plan, HEIGHT_MAX, &mut operators)?;
        Ok(plan.map(|plan| LaterPlan { plan, operators }))
    }

    /// The number of its operators.
    pub fn operators(&self) -> usize {
        self.operators
    }

    /// The plan, which can run once; `None` where a table has other rows by now, or is gone. The
    /// plan of the run before is to have ended: two of them share the values of subqueries.
    ///
    /// # Errors
    /// What an operator says of another input.
    pub fn now(&self) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        with_tables(&self.plan)
    }
}

/// A plan with nodes in the place of its scans.
fn without_tables(
    node: &Arc<dyn ExecutionPlan>,
    height_max: usize,
    operators: &mut usize,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    *operators += 1;
    if let Some(scan) = node.downcast_ref::<TableScan>() {
        return Ok(Some(Arc::new(LaterScan::of(scan))));
    }
    if height_max == 0 || RUN_AGAIN.binary_search(&node.name()).is_err() {
        return Ok(None);
    }
    over(node, |input| {
        without_tables(input, height_max - 1, operators)
    })
}

/// A plan with scans again, and without the state of a run.
fn with_tables(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = node.downcast_ref::<LaterScan>() {
        return scan.now();
    }
    let made = over(node, with_tables)?;
    made.map(ExecutionPlan::reset_state).transpose()
}

/// A node over other inputs that are alike.
fn over(
    node: &Arc<dyn ExecutionPlan>,
    mut input: impl FnMut(&Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let mut inputs = Vec::with_capacity(node.children().len());
    for child in node.children() {
        let Some(child) = input(child)? else {
            return Ok(None);
        };
        inputs.push(child);
    }
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    Arc::clone(node).replace_children(inputs, options).map(Some)
}

/// Stands for a scan of a table that has the rows of one version.
struct LaterScan {
    rows: UnboundRows,
    version: u64,
    copies: bool,
    properties: Arc<PlanProperties>,
}

impl LaterScan {
    fn of(scan: &TableScan) -> LaterScan {
        let (source, limit) = scan.source_and_limit();
        LaterScan {
            rows: UnboundRows::of_table(source, limit),
            version: source.snapshot.version(),
            copies: scan.copies(),
            properties: Arc::clone(scan.properties()),
        }
    }

    /// The scan, if the table has the same rows.
    fn now(&self) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let source = self.rows.source()?;
        let Some(source) = source.filter(|source| source.snapshot.version() == self.version) else {
            return Ok(None);
        };
        let partitions = self.properties.output_partitioning().partition_count();
        let scan = TableScan::new(source, self.rows.limit(), partitions);
        if scan.properties().output_partitioning().partition_count() != partitions {
            // Pages were merged.
            return Ok(None);
        }
        Ok(Some(match self.copies {
            true => Arc::new(scan.copying()),
            false => Arc::new(scan),
        }))
    }
}

impl fmt::Debug for LaterScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaterScan")
            .field("version", &self.version)
            .field("schema", &self.rows.schema())
            .finish_non_exhaustive()
    }
}

impl DisplayAs for LaterScan {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LaterScan: version={}", self.version)
    }
}

impl ExecutionPlan for LaterScan {
    leaf_that_never_runs!("LaterScan", "a plan without rows runs");
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use datafusion::physical_plan::{collect, displayable};
    use datafusion::prelude::SessionContext;
    use mayfly_space::Space;
    use mayfly_table::{Column, Table};
    use mayfly_types::ColumnType;

    use super::*;
    use crate::TableSource;
    use crate::tests::{check_nothing_left, config, open, session, sorted};
    use crate::window::tests::plan;

    const ROWS: i64 = 50_000;

    /// `t (a, b)` with rows `(i, i % 100)`.
    fn table(space: &Space) -> Arc<Table> {
        let number = ColumnType::BigInt { unsigned: false };
        let columns = ["a", "b"].map(|name| Column::new(name, number.clone(), false));
        let table = Arc::new(Table::new("t", columns.to_vec(), space.root()));
        append(&table, 0..ROWS);
        table
    }

    fn append(table: &Arc<Table>, rows: std::ops::Range<i64>) {
        let of = |value: fn(i64) -> i64| -> ArrayRef {
            Arc::new(rows.clone().map(value).collect::<Int64Array>())
        };
        let columns = vec![of(|row| row), of(|row| row % 100)];
        let rows = RecordBatch::try_new(Arc::clone(table.schema()), columns).unwrap();
        table.append(&rows).unwrap();
    }

    fn context(space: &Space, table: &Arc<Table>) -> SessionContext {
        let context = session(space, config());
        let source = TableSource::new(Arc::clone(table));
        context.register_table("t", Arc::new(source)).unwrap();
        context
    }

    const SQL: &str = "SELECT x.b, COUNT(*), SUM(y.a) FROM t x JOIN t y ON x.b = y.a \
                       WHERE y.a < (SELECT AVG(b) FROM t) GROUP BY x.b";

    #[test]
    fn names_are_in_order() {
        assert!(RUN_AGAIN.is_sorted());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_plan_is_made_again_until_rows_change() {
        let space = open(64 << 20);
        let table = table(&space);
        let context = context(&space, &table);
        let later = LaterPlan::of(&plan(&context, SQL).await).unwrap().unwrap();
        let expected = collect(plan(&context, SQL).await, context.task_ctx()).await;
        let expected = sorted(&expected.unwrap());
        assert_eq!(expected.len(), 50);
        for _ in 0..3 {
            let again = later.now().unwrap().unwrap();
            let shown = displayable(again.as_ref()).indent(false).to_string();
            assert_eq!(shown.matches("TableScan").count(), 3, "{shown}");
            let found = collect(again, context.task_ctx()).await.unwrap();
            assert_eq!(sorted(&found), expected);
        }
        // A change that is taken back is one, too.
        let saved = table.save().unwrap();
        append(&table, 0..1);
        assert!(later.now().unwrap().is_none());
        saved.restore();
        assert!(later.now().unwrap().is_none());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_plan_keeps_no_table() {
        let space = open(64 << 20);
        let table = table(&space);
        let context = context(&space, &table);
        let later = LaterPlan::of(&plan(&context, SQL).await).unwrap().unwrap();
        let again = later.now().unwrap().unwrap();
        collect(again, context.task_ctx()).await.unwrap();
        drop((context, table));
        assert!(later.now().unwrap().is_none());
        check_nothing_left(&space, "a plan that is kept").await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_plan_with_rows_of_its_own_is_not_kept() {
        let space = open(64 << 20);
        let table = table(&space);
        let context = context(&space, &table);
        let sql = "SELECT COUNT(*) FROM t JOIN (VALUES (1), (2)) v (c) ON a = c";
        let kept = LaterPlan::of(&plan(&context, sql).await).unwrap();
        assert!(kept.is_none());
    }
}
