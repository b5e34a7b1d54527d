use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use datafusion::catalog::MemTable;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec};
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use mayfly_space::Space;
use mayfly_table::{Column, Table};
use mayfly_types::ColumnType;

use crate::aggregate::AggregateOperator;
use crate::tests::{
    Fault, check_nothing_left, config, count_nodes, open, seed_or, session, with_every_fault,
};
use crate::window::tests::{Random, count_of, differ, plan, rows, run};
use crate::{JoinOperator, TableSource, collect_into};

/// Nodes of a plan that join rows with groups.
fn joins_of(plan: &Arc<dyn ExecutionPlan>) -> usize {
    count_nodes(plan, |node| {
        node.is::<JoinOperator>() || node.is::<HashJoinExec>() || node.is::<CrossJoinExec>()
    })
}

/// Those that group.
fn groups_of(plan: &Arc<dyn ExecutionPlan>) -> usize {
    count_nodes(plan, |node| {
        let stock = node.downcast_ref::<AggregateExec>();
        let is_first = stock.is_some_and(|it| it.mode().input_mode() == AggregateInputMode::Raw);
        is_first || node.is::<AggregateOperator>()
    })
}

/// Whole partitions as windows, their keys among NULLs, texts, decimals and days.
const WINDOWS: &[&str] = &[
    "COUNT(*) OVER ()",
    "MAX(s) OVER ()",
    "SUM(d) OVER (PARTITION BY g)",
    "COUNT(s) OVER (PARTITION BY g)",
    "MIN(s) OVER (PARTITION BY s)",
    "AVG(d) OVER (PARTITION BY d)",
    "MAX(t) OVER (PARTITION BY t, o)",
    "BIT_XOR(i) OVER (PARTITION BY o % 7)",
    "SUM(i + 1) OVER (PARTITION BY g, s)",
    "MIN(i) OVER (PARTITION BY CASE WHEN o > 30 THEN s END)",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_are_those_of_datafusion() {
    let seed = seed_or(0x5EED_0024);
    let cases = if std::env::var("MAYFLY_FULL").is_ok() {
        300
    } else {
        12
    };
    let mut joins = 0;
    for case in 0..cases {
        let random = &mut Random(seed + case * 0x9E37_79B9);
        random.below(2);
        let count = [12_000, 30_000][usize::try_from(random.below(2)).unwrap()];
        let groups = [1, 40, 3000, 1_000_000][usize::try_from(random.below(4)).unwrap()];
        let table = Arc::new(rows(random, count, groups, 1000));
        let windows = 1 + random.below(3);
        let windows: Vec<&str> = (0..windows).map(|_| random.pick(WINDOWS)).collect();
        let columns = windows.iter().enumerate();
        let columns = columns.map(|(number, window)| format!("{window} AS r{number}"));
        let columns = columns.collect::<Vec<_>>().join(", ");
        let condition = random.pick(&["", " WHERE i % 3 > 0", " WHERE s IS NULL OR o < 50"]);
        let sql = format!("SELECT id, {columns} FROM r{condition} ORDER BY id");
        let label = format!("seed {seed}, case {case}, {count} rows, {groups} groups: {sql}");
        let stock = SessionConfig::new().with_target_partitions(1);
        let stock = SessionContext::new_with_config(stock);
        stock.register_table("r", table.clone()).unwrap();
        let expected = run(&stock, &sql).await.unwrap();
        for memory_bytes in [1 << 30, 4 << 20] {
            let space = open(memory_bytes);
            let ours = session(&space, config().with_batch_size(1000));
            ours.register_table("r", table.clone()).unwrap();
            joins += joins_of(&plan(&ours, &sql).await);
            let got = run(&ours, &sql).await;
            let got = got.unwrap_or_else(|error| panic!("{label} at {memory_bytes}: {error}"));
            let differences = differ(&expected, &got);
            assert!(
                got == expected,
                "{label}\nat {memory_bytes}:\n{differences}"
            );
            drop(ours);
            check_nothing_left(&space, &label).await;
        }
    }
    assert!(joins as u64 > cases, "only {joins} joins in {cases} cases");
}

/// Rows `(id, g, v, f)`: 40,000 of them, in 100 groups of `g`.
fn numbers() -> RecordBatch {
    let column = |of: fn(i64) -> i64| Int64Array::from_iter_values((0..40_000).map(of));
    let floats = Float64Array::from_iter_values((0..40_000).map(|id| f64::from(id % 50)));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(column(|id| id * 7919 % 40_000))),
        ("g", Arc::new(column(|id| id % 100))),
        ("v", Arc::new(column(|id| id * 31 % 1009))),
        ("f", Arc::new(floats)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

async fn with_numbers(space: &Space) -> SessionContext {
    let context = session(space, config());
    let batch = numbers();
    let (one, two) = (batch.slice(0, 15_000), batch.slice(15_000, 25_000));
    let table = MemTable::try_new(batch.schema(), vec![vec![one], vec![two]]).unwrap();
    context.register_table("n", Arc::new(table)).unwrap();
    context
}

#[tokio::test]
async fn rows_are_joined_with_groups_where_that_saves_a_sort() {
    let space = open(64 << 20);
    let context = with_numbers(&space).await;
    // Joins, nodes that group, windows.
    for (sql, expected) in [
        ("SELECT id, SUM(v) OVER (PARTITION BY g) FROM n", [1, 1, 0]),
        ("SELECT id, SUM(v) OVER () FROM n", [1, 1, 0]),
        // Each partitions in its own way, and none reads the other's result.
        (
            "SELECT id, SUM(v) OVER (PARTITION BY g), MIN(f) OVER (PARTITION BY v % 5), \
             COUNT(*) OVER () FROM n",
            [3, 3, 0],
        ),
        // All that is asked of one partition is one group.
        (
            "SELECT id, SUM(v) OVER (PARTITION BY g), MIN(f) OVER (PARTITION BY g) FROM n",
            [1, 1, 0],
        ),
        (
            "SELECT * FROM (SELECT id, g, SUM(v) OVER (PARTITION BY g) AS s FROM n) WHERE s > 10",
            [1, 1, 0],
        ),
        (
            "SELECT id, SUM(w) OVER (PARTITION BY g) FROM (SELECT id, g, v * 2 AS w FROM n)",
            [1, 1, 0],
        ),
        (
            "SELECT id, SUM(v) OVER (PARTITION BY g ROWS BETWEEN UNBOUNDED PRECEDING AND \
             UNBOUNDED FOLLOWING) FROM n",
            [1, 1, 0],
        ),
        // Rows are sorted by g for the rank, but not for the whole.
        (
            "SELECT id, SUM(v) OVER (PARTITION BY g), RANK() OVER (PARTITION BY g ORDER BY v), \
             MAX(v) OVER () FROM n",
            [1, 1, 1],
        ),
        // A sort above is no help.
        (
            "SELECT id, s, RANK() OVER (PARTITION BY g ORDER BY v) FROM \
             (SELECT id, g, v, SUM(v) OVER (PARTITION BY g) AS s FROM n)",
            [1, 1, 1],
        ),
        // Functions may warn, and would for one reading or for both.
        (
            "SELECT id, SUM(v) OVER (PARTITION BY ABS(g)) FROM n",
            [0, 0, 1],
        ),
        (
            "SELECT id, SUM(v) OVER (PARTITION BY g) FROM n WHERE ABS(v) > 5",
            [0, 0, 1],
        ),
        (
            "SELECT id, SUM(ABS(v)) OVER (PARTITION BY g) FROM n",
            [1, 1, 0],
        ),
        // Lists do not fit into rows of a join.
        (
            "SELECT id, ARRAY_AGG(v) OVER (PARTITION BY g) FROM n",
            [0, 0, 1],
        ),
        // Frames of their own, and what reads another window's result.
        (
            "SELECT id, SUM(v) OVER (PARTITION BY g ORDER BY id) FROM n",
            [0, 0, 1],
        ),
        (
            "SELECT id, MAX(s) OVER (PARTITION BY v % 5) FROM \
             (SELECT id, v, SUM(v) OVER (PARTITION BY g) AS s FROM n)",
            [1, 1, 1],
        ),
        // Each reading would have other rows.
        (
            "SELECT id, SUM(RANDOM()) OVER (PARTITION BY g) FROM n",
            [0, 0, 1],
        ),
        (
            "SELECT id, SUM(v) OVER (PARTITION BY g) FROM n WHERE RANDOM() < 0.5",
            [0, 0, 1],
        ),
        (
            "SELECT id, SUM(v) OVER (PARTITION BY g) FROM (SELECT * FROM n LIMIT 20000)",
            [0, 0, 1],
        ),
        // What is grouped or joined below would be computed twice.
        (
            "SELECT g, SUM(v) OVER (PARTITION BY g) FROM (SELECT DISTINCT g, v FROM n)",
            [0, 1, 1],
        ),
        // Minus zero is the same partition as zero.
        ("SELECT id, SUM(v) OVER (PARTITION BY f) FROM n", [0, 0, 1]),
        // Nearly as many rows as are read are dropped.
        (
            "SELECT id, SUM(v) OVER (PARTITION BY g) FROM n WHERE id = 17",
            [0, 0, 1],
        ),
    ] {
        let plan = plan(&context, sql).await;
        let shown = displayable(plan.as_ref()).indent(false);
        let found = [joins_of(&plan), groups_of(&plan), count_of(&plan)];
        assert_eq!(found, expected, "{sql}\n{shown}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_and_tables_are_read_twice_as_far_as_they_must() {
    let space = open(64 << 20);
    let context = with_numbers(&space).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("n.parquet");
    let file = file.to_str().unwrap();
    let all = context.table("n").await.unwrap();
    all.write_parquet(file, Default::default(), None)
        .await
        .unwrap();
    let options = ParquetReadOptions::default();
    context
        .register_parquet("file", file, options)
        .await
        .unwrap();
    let source = table_of_numbers(&space, &context).await;
    context.register_table("own", Arc::new(source)).unwrap();
    for table in ["n", "file", "own"] {
        let sql = format!(
            "SELECT SUM(s), COUNT(*) FROM (SELECT id, SUM(v) OVER (PARTITION BY g) AS s FROM {table})"
        );
        let plan = plan(&context, &sql).await;
        assert_eq!([joins_of(&plan), count_of(&plan)], [1, 0], "{sql}");
        let got = datafusion::physical_plan::collect(Arc::clone(&plan), context.task_ctx());
        let got = got.await.unwrap();
        let sum: i64 = numbers()["v"]
            .as_primitive::<Int64Type>()
            .values()
            .iter()
            .sum();
        // Each of the 100 groups has 400 rows.
        let expected = [sum * 400, 40_000];
        let value = |column: usize| got[0].column(column).as_primitive::<Int64Type>().value(0);
        assert_eq!([value(0), value(1)], expected, "{sql}");
        let mut scans = Vec::new();
        leaves(&plan, &mut scans);
        let columns: Vec<usize> = { scans.iter() }
            .map(|scan| scan.schema().fields().len())
            .collect();
        assert_eq!(columns, [2, 2], "{sql}");
        if table != "n" {
            let counted = scans.iter().map(|scan| scan.metrics()?.output_rows());
            let counted: Vec<Option<usize>> = counted.collect();
            assert_eq!(counted, [Some(40_000), Some(40_000)], "{sql}");
        }
    }
}

/// The same rows in a table of the space.
async fn table_of_numbers(space: &Space, context: &SessionContext) -> TableSource {
    let column = |name: &str, column_type| Column::new(name, column_type, true);
    let columns = vec![
        column("id", ColumnType::BigInt { unsigned: false }),
        column("g", ColumnType::BigInt { unsigned: false }),
        column("v", ColumnType::BigInt { unsigned: false }),
        column("f", ColumnType::DOUBLE),
    ];
    let table = Arc::new(Table::new("own", columns, space.root()));
    let rows = context.table("n").await.unwrap();
    let rows = rows.execute_stream().await.unwrap();
    collect_into(&table, rows).await.unwrap();
    TableSource::new(table)
}

fn leaves(plan: &Arc<dyn ExecutionPlan>, found: &mut Vec<Arc<dyn ExecutionPlan>>) {
    if plan.children().is_empty() {
        found.push(Arc::clone(plan));
    }
    for child in plan.children() {
        leaves(child, found);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_are_typed_and_leave_nothing() {
    let sql = "SELECT COUNT(*), SUM(c), MAX(m) FROM (SELECT COUNT(*) OVER (PARTITION BY s, o) AS c, \
               MAX(s) OVER (PARTITION BY g) AS m FROM r)";
    let table = Arc::new(rows(&mut Random(5), 24_000, 1_000_000, 500));
    let stock = SessionContext::new();
    stock.register_table("r", table.clone()).unwrap();
    let expected = run(&stock, sql).await.unwrap();
    let body = async |space: &Space, fault: Fault<'_>| {
        let context = session(space, config().with_batch_size(500));
        context.register_table("r", table.clone()).unwrap();
        let plan = plan(&context, sql).await;
        assert_eq!([joins_of(&plan), count_of(&plan)], [2, 0]);
        fault.arm();
        run(&context, sql).await
    };
    let check = |got, label: &str| assert_eq!(got, expected, "{label}");
    let failures = with_every_fault(2 << 20, |n| 2 * n + 1, body, check).await;
    assert!(failures > 0, "no fault has failed the statement");
}
