use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray};
use datafusion::catalog::MemTable;
use datafusion::common::{JoinType, NullEquality, Result};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect, displayable};
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use mayfly_space::Space;

use super::SidewaysOperator;
use crate::aggregate::AggregateOperator;
use crate::tests::{
    Fault, check_nothing_left, config, count_nodes, open, session, sorted, with_every_fault,
};
use crate::window::tests::plan;
use crate::{JoinOperator, SwapOperators};

mod scans;

/// Rows of `items`, in groups of ten by `k`.
const ITEMS: i64 = 40_000;
const GROUPS: i64 = 4_000;
/// Rows of `parts`, whose `p` are twice as many values as `k` has.
const PARTS: i64 = 8_000;

fn table(columns: Vec<(&str, ArrayRef)>, cut: usize) -> Arc<MemTable> {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, column)| (name, column, true)),
    );
    let batch = batch.unwrap();
    let cuts = [(0, cut), (cut, batch.num_rows() - cut)];
    let partitions = cuts.map(|(from, rows)| {
        let pieces = (0..rows).step_by(1000);
        pieces
            .map(|at| batch.slice(from + at, (rows - at).min(1000)))
            .collect()
    });
    Arc::new(MemTable::try_new(batch.schema(), partitions.to_vec()).unwrap())
}

fn numbers(count: i64, of: impl Fn(i64) -> Option<i64>) -> ArrayRef {
    Arc::new((0..count).map(of).collect::<Int64Array>())
}

fn texts(count: i64, of: impl Fn(i64) -> String) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values((0..count).map(of)))
}

/// `items (k, v, f, s, z)` and `parts (p, c, f, s, t)`: `c` has 20 values, `t` is long, `z` zero.
fn register(context: &SessionContext) {
    let key = |row: i64| row % GROUPS;
    let floats = |count: i64, of: fn(i64) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values((0..count).map(of)))
    };
    let items: Vec<(&str, ArrayRef)> = vec![
        ("k", numbers(ITEMS, |row| (key(row) > 0).then(|| key(row)))),
        ("v", numbers(ITEMS, |row| Some(row * 31 % 1009))),
        ("f", floats(ITEMS, |row| (row % GROUPS) as f64)),
        (
            "s",
            texts(ITEMS, |row| format!("the text of part {}", key(row))),
        ),
        ("z", numbers(ITEMS, |_| Some(0))),
    ];
    context
        .register_table("items", table(items, 15_000))
        .unwrap();
    let parts: Vec<(&str, ArrayRef)> = vec![
        ("p", numbers(PARTS, |row| (row % 40 != 7).then_some(row))),
        ("c", numbers(PARTS, |row| Some(row % 20))),
        ("f", floats(PARTS, |row| row as f64)),
        ("s", texts(PARTS, |row| format!("the text of part {row}"))),
        ("t", texts(PARTS, |row| format!("{row:->200}"))),
    ];
    context
        .register_table("parts", table(parts, 3_000))
        .unwrap();
}

fn ours(space: &Space) -> SessionContext {
    let context = session(space, config());
    register(&context);
    context
}

/// The left side of a join is what the text has there, whatever is known of the rows.
fn ours_as_written(space: &Space) -> SessionContext {
    let mut config = config();
    config.options_mut().optimizer.join_reordering = false;
    let context = session(space, config);
    register(&context);
    context
}

async fn rows_of(context: &SessionContext, sql: &str) -> Result<Vec<String>> {
    let found = context.sql(sql).await?.collect().await?;
    Ok(sorted(&found))
}

/// The rows that the operators of a plan have dropped.
fn dropped(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let here = { plan.downcast_ref() }.and_then(SidewaysOperator::rows_dropped);
    here.unwrap_or_default() + plan.children().into_iter().map(dropped).sum::<usize>()
}

fn operators(plan: &Arc<dyn ExecutionPlan>) -> usize {
    count_nodes(plan, |node| node.is::<SidewaysOperator>())
}

const GROUPED: &str = "(SELECT k, AVG(v) AS a, COUNT(*) AS n FROM items GROUP BY k) g";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_those_of_datafusion() {
    let stock = SessionContext::new();
    register(&stock);
    // With the operators that are expected, where DataFusion leaves no choice.
    for (sql, expected) in [
        (
            format!("SELECT p, a, n FROM parts JOIN {GROUPED} ON p = k WHERE c = 3"),
            Some(1),
        ),
        (
            format!("SELECT p, a, n FROM parts LEFT JOIN {GROUPED} ON p = k WHERE c = 3"),
            Some(1),
        ),
        // Some, all and no keys of the left side are NULL.
        (
            format!("SELECT p, a FROM parts JOIN {GROUPED} ON p = k WHERE c = 7"),
            Some(1),
        ),
        (
            format!("SELECT p, a FROM parts LEFT JOIN {GROUPED} ON p = k WHERE c = 7"),
            Some(1),
        ),
        (
            format!("SELECT p, a FROM parts JOIN {GROUPED} ON p = k WHERE c = 99"),
            Some(1),
        ),
        (
            format!("SELECT p, a FROM parts LEFT JOIN {GROUPED} ON p = k WHERE c = 99"),
            Some(1),
        ),
        (
            format!(
                "SELECT p, a FROM parts JOIN {GROUPED} ON p IS NOT DISTINCT FROM k WHERE c = 7"
            ),
            None,
        ),
        // A key beside one that is no column below the groups.
        (
            format!("SELECT p, a FROM parts JOIN {GROUPED} ON p = k AND c + 7 = n WHERE c = 3"),
            Some(1),
        ),
        (
            format!("SELECT p, a FROM parts JOIN {GROUPED} ON c = n WHERE c = 10"),
            Some(0),
        ),
        (
            "SELECT p, a FROM parts JOIN (SELECT s, MAX(v) AS a FROM items GROUP BY s) g \
             ON parts.s = g.s WHERE c = 3"
                .to_owned(),
            Some(1),
        ),
        (
            "SELECT p, a FROM parts JOIN (SELECT k, s, SUM(v) AS a FROM items GROUP BY s, k) g \
             ON p = k AND parts.s = g.s WHERE c = 3"
                .to_owned(),
            Some(1),
        ),
        (
            "SELECT p FROM parts WHERE c = 3 AND p IN \
             (SELECT k FROM items GROUP BY k HAVING SUM(v) > 5000)"
                .to_owned(),
            Some(1),
        ),
        (
            format!(
                "SELECT p FROM parts WHERE c = 3 AND NOT EXISTS \
                 (SELECT 1 FROM {GROUPED} WHERE k = p AND a > 500)"
            ),
            Some(1),
        ),
        // Columns that are renamed and rows that are dropped on the way.
        (
            format!(
                "SELECT p, h FROM parts JOIN \
                 (SELECT a * 2 AS h, k AS q FROM {GROUPED} WHERE a > 400) x ON p = q WHERE c = 3"
            ),
            Some(1),
        ),
        // Groups of groups: the lower ones have fewer rows.
        (
            "SELECT p, m FROM parts JOIN (SELECT k, MAX(a) AS m FROM \
             (SELECT k, s, AVG(v) AS a FROM items GROUP BY k, s) x GROUP BY k) y ON p = k \
             WHERE c = 3"
                .to_owned(),
            Some(1),
        ),
        // A NULL is in both.
        (
            format!(
                "SELECT p FROM parts WHERE c = 7 INTERSECT SELECT k FROM {GROUPED} WHERE n > 5"
            ),
            Some(1),
        ),
        (
            format!("SELECT p FROM parts WHERE c = 7 EXCEPT SELECT k FROM {GROUPED} WHERE n > 5"),
            Some(1),
        ),
        // Nothing is grouped of which little is wanted.
        (
            "SELECT p FROM parts WHERE c = 3 INTERSECT SELECT k FROM items".to_owned(),
            Some(0),
        ),
        (
            "SELECT p FROM parts WHERE c = 3 EXCEPT SELECT k FROM items".to_owned(),
            Some(0),
        ),
        // The parts are the left side all the same, since they are fewer.
        (
            format!("SELECT k, a FROM {GROUPED} WHERE k IN (SELECT p FROM parts WHERE c = 3)"),
            Some(1),
        ),
        // Groups that no part has are returned.
        (
            format!(
                "SELECT c, k, a FROM (SELECT * FROM parts WHERE c = 3) x RIGHT JOIN {GROUPED} ON p = k"
            ),
            Some(0),
        ),
        (
            format!(
                "SELECT c, k, a FROM (SELECT * FROM parts WHERE c = 3) x FULL JOIN {GROUPED} ON p = k"
            ),
            Some(0),
        ),
        // A NULL among the groups leaves no part.
        (
            format!("SELECT p FROM parts WHERE c = 3 AND p NOT IN (SELECT k FROM {GROUPED})"),
            Some(0),
        ),
        (
            "SELECT p, a FROM parts JOIN (SELECT f, AVG(v) AS a FROM items GROUP BY f) g \
             ON parts.f = g.f WHERE c = 3"
                .to_owned(),
            Some(0),
        ),
        (
            format!(
                "SELECT p, r FROM parts JOIN \
                 (SELECT k, RANK() OVER (ORDER BY a, k) AS r FROM {GROUPED}) x ON p = k WHERE c = 3"
            ),
            Some(0),
        ),
        (
            format!(
                "SELECT p, a FROM parts JOIN (SELECT k, a FROM {GROUPED} ORDER BY a, k LIMIT 900) x \
                 ON p = k WHERE c = 3"
            ),
            Some(0),
        ),
        (
            "SELECT p, n FROM parts JOIN \
             (SELECT k, s, COUNT(*) AS n FROM items GROUP BY ROLLUP (k, s)) g ON p = k WHERE c = 3"
                .to_owned(),
            Some(0),
        ),
        // All parts may have all groups.
        (
            format!("SELECT p, a, n FROM parts JOIN {GROUPED} ON p = k"),
            Some(0),
        ),
    ] {
        let expected_rows = rows_of(&stock, &sql).await.unwrap();
        for memory_bytes in [64 << 20, 4 << 20] {
            let space = open(memory_bytes);
            let context = ours(&space);
            let plan = plan(&context, &sql).await;
            let shown = displayable(plan.as_ref()).indent(false).to_string();
            let label = format!("{sql} at {memory_bytes}\n{shown}");
            if let Some(expected) = expected {
                assert_eq!(operators(&plan), expected, "{label}");
            }
            let found = collect(Arc::clone(&plan), context.task_ctx()).await;
            let found = found.unwrap_or_else(|error| panic!("{label}: {error}"));
            assert!(sorted(&found) == expected_rows, "{label}");
            drop((plan, found, context));
            check_nothing_left(&space, &label).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn volatile_expressions_see_all_groups() {
    let space = open(64 << 20);
    let context = ours(&space);
    for (above, expected) in [("a > 1", 1), ("a > RANDOM()", 0)] {
        let sql = format!(
            "SELECT p, a FROM parts JOIN (SELECT k, a FROM {GROUPED} WHERE {above}) x ON p = k \
             WHERE c = 3"
        );
        assert_eq!(operators(&plan(&context, &sql).await), expected, "{above}");
    }
    let sql = "SELECT p, a FROM parts JOIN \
               (SELECT k, SUM(v * RANDOM()) AS a FROM items GROUP BY k) x ON p = k WHERE c = 3";
    assert_eq!(operators(&plan(&context, sql).await), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_other_groups_are_dropped_below_the_lowest_aggregate() {
    // The left side stays in batches, or goes into pages.
    for (condition, colors, memory_bytes, stock_joins) in
        [("c = 3", 1, 64 << 20, 1), ("c < 5", 5, 2 << 20, 0)]
    {
        let space = open(memory_bytes);
        let context = ours_as_written(&space);
        let sql = format!(
            "SELECT COUNT(*), MAX(t), SUM(m) FROM parts JOIN (SELECT k, MAX(a) AS m FROM \
             (SELECT k, s, AVG(v) AS a FROM items GROUP BY k, s) x GROUP BY k) y ON p = k \
             WHERE {condition}"
        );
        let plan = plan(&context, &sql).await;
        let shown = displayable(plan.as_ref()).indent(false).to_string();
        let is_lowest = |node: &Arc<dyn ExecutionPlan>| {
            let below = count_nodes(node, |below| below.is::<AggregateOperator>());
            node.is::<SidewaysOperator>() && below == 0
        };
        assert_eq!(count_nodes(&plan, is_lowest), 1, "{shown}");
        collect(Arc::clone(&plan), context.task_ctx())
            .await
            .unwrap();
        let joins = count_nodes(&plan, |node| {
            let join = node.downcast_ref::<JoinOperator>();
            let is_so = |(name, count)| name == "stock_joins" && count == stock_joins;
            join.is_some_and(|join| join.counted().any(is_so))
        });
        assert_eq!(joins, 1, "{shown}");
        // Half of the wanted keys have a group, of ten rows; few others pass by their hash.
        let dropped = dropped(&plan);
        let wanted = PARTS as usize / 20 * colors / 2 * 10;
        let least = (ITEMS as usize - wanted) / 10 * 9;
        assert!(dropped > least, "only {dropped} of {least} rows: {shown}");
        drop((plan, context));
        check_nothing_left(&space, &sql).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_expression_sees_a_part_of_a_group() {
    let cases = [
        ("c = 3", 3..4, 64 << 20, true),
        ("c < 5", 0..5, 2 << 20, true),
        // Too many keys to be told.
        ("c < 19", 0..19, 2 << 20, false),
    ];
    for (condition, colors, memory_bytes, drops) in cases {
        let space = open(memory_bytes);
        let context = ours(&space);
        // Fails where a group has fewer rows than all.
        let sql = format!(
            "SELECT COUNT(*) FROM parts JOIN (SELECT k FROM items GROUP BY k \
             HAVING CASE WHEN COUNT(*) = 10 THEN 1 ELSE 1 / MIN(z) END = 1) g ON p = k \
             WHERE {condition}"
        );
        let plan = plan(&context, &sql).await;
        assert_eq!(operators(&plan), 1, "{sql}");
        let found = collect(Arc::clone(&plan), context.task_ctx())
            .await
            .unwrap();
        let parts = (1..GROUPS).filter(|p| p % 40 != 7 && colors.contains(&(p % 20)));
        assert_eq!(sorted(&found), [parts.count().to_string()], "{sql}");
        assert_eq!(dropped(&plan) > 0, drops, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_read_for_a_left_side_without_rows() {
    let space = open(64 << 20);
    let context = ours(&space);
    // The condition on the items fails at the first row that it sees.
    let sql = |color: i64| {
        format!(
            "SELECT p, a FROM parts LEFT JOIN \
             (SELECT k, AVG(v) AS a FROM items WHERE 10 / z > 3 GROUP BY k) g ON p = k \
             WHERE c = {color}"
        )
    };
    let empty = plan(&context, &sql(99)).await;
    assert_eq!(operators(&empty), 1);
    let found = collect(Arc::clone(&empty), context.task_ctx()).await;
    assert_eq!(sorted(&found.unwrap()), [""; 0]);
    assert_eq!(dropped(&empty), 0);
    let read = count_nodes(&empty, |node| {
        let rows = node.metrics().and_then(|metrics| metrics.output_rows());
        node.is::<SidewaysOperator>() && rows.unwrap_or_default() > 0
    });
    assert_eq!(read, 0);
    let wanted = plan(&context, &sql(3)).await;
    assert_eq!(operators(&wanted), 1);
    let error = collect(wanted, context.task_ctx()).await.unwrap_err();
    assert!(error.to_string().contains("zero"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_that_fails_or_is_stopped_leaves_nothing() {
    for memory_bytes in [64 << 20, 2 << 20] {
        let space = open(memory_bytes);
        let context = ours_as_written(&space);
        // Some parts have no color.
        let sql = format!("SELECT p, t, a FROM parts JOIN {GROUPED} ON p = k WHERE 20 / c = 6");
        let refused = plan(&context, &sql).await;
        assert_eq!(operators(&refused), 1);
        let error = collect(refused, context.task_ctx()).await.unwrap_err();
        assert!(error.to_string().contains("zero"), "{error}");
        check_nothing_left(&space, "a left side that failed").await;

        let sql = format!("SELECT p, t, a FROM parts JOIN {GROUPED} ON p = k WHERE c < 5");
        for polls in 0..4 {
            let plan = plan(&context, &sql).await;
            assert_eq!(operators(&plan), 1);
            let partitions = 0..plan.output_partitioning().partition_count();
            let streams = partitions.map(|place| plan.execute(place, context.task_ctx()).unwrap());
            let mut streams: Vec<_> = streams.collect();
            // Some of the partitions are never asked for a row.
            for stream in streams.iter_mut().take(polls) {
                let _ = stream.next().await;
            }
            drop((streams, plan));
            check_nothing_left(&space, "a join that was stopped").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_runs_again_with_other_keys() {
    let space = open(64 << 20);
    let context = ours(&space);
    let stock = SessionContext::new();
    register(&stock);
    // The term is reset for each level, whose rows are what its left side has.
    let sql = format!(
        "WITH RECURSIVE n AS (SELECT 5 AS i, 0 AS d UNION ALL \
         SELECT k + 11, d + 1 FROM n JOIN {GROUPED} ON i = k WHERE d < 30) \
         SELECT COUNT(*), SUM(i) FROM n"
    );
    let expected = rows_of(&stock, &sql).await.unwrap();
    assert_eq!(expected, ["31|5270"]);
    let recursion = plan(&context, &sql).await;
    assert_eq!(operators(&recursion), 1);
    let found = collect(Arc::clone(&recursion), context.task_ctx()).await;
    assert_eq!(sorted(&found.unwrap()), expected);
    // Copies have run, and not the node that is shown.
    assert_eq!(dropped(&recursion), 0);
    let sql = format!("SELECT p, a FROM parts JOIN {GROUPED} ON p = k WHERE c = 3");
    let plan = plan(&context, &sql).await;
    let expected = rows_of(&stock, &sql).await.unwrap();
    for _ in 0..3 {
        let again = reset_plan_states(Arc::clone(&plan)).unwrap();
        assert_eq!(operators(&again), 1);
        let found = collect(Arc::clone(&again), context.task_ctx()).await;
        assert_eq!(sorted(&found.unwrap()), expected);
        assert!(dropped(&again) > 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_are_typed_and_leave_nothing() {
    let sql =
        format!("SELECT COUNT(*), MAX(t), SUM(n) FROM parts JOIN {GROUPED} ON p = k WHERE c < 5");
    let stock = SessionContext::new();
    register(&stock);
    let expected = rows_of(&stock, &sql).await.unwrap();
    let body = async |space: &Space, fault: Fault<'_>| {
        let context = ours_as_written(space);
        let plan = plan(&context, &sql).await;
        assert_eq!(operators(&plan), 1);
        fault.arm();
        let found = collect(plan, context.task_ctx()).await?;
        Ok(sorted(&found))
    };
    let check = |got: Vec<String>, label: &str| assert_eq!(got, expected, "{label}");
    // A grant that fails may be done without, that of the keys among them: none need fail the
    // statement, and each must leave the rows and the accounts as they are.
    with_every_fault(2 << 20, |n| 2 * n + 1, body, check).await;
}

/// All kinds of joins, and how many operators drop rows of the right side.
const KINDS: [(JoinType, usize); 10] = [
    (JoinType::Inner, 1),
    (JoinType::Left, 1),
    (JoinType::LeftSemi, 1),
    (JoinType::LeftAnti, 1),
    (JoinType::LeftMark, 1),
    (JoinType::RightSemi, 1),
    (JoinType::Right, 0),
    (JoinType::Full, 0),
    (JoinType::RightAnti, 0),
    (JoinType::RightMark, 0),
];
const NULL_EQUALITIES: [NullEquality; 2] = [
    NullEquality::NullEqualsNothing,
    NullEquality::NullEqualsNull,
];

/// A stock join of parts with other rows, by `p` and `k`.
fn stock_join(
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    kind: JoinType,
    null_equality: NullEquality,
) -> Arc<dyn ExecutionPlan> {
    let key = |plan: &Arc<dyn ExecutionPlan>, name| -> PhysicalExprRef {
        Arc::new(Column::new_with_schema(name, &plan.schema()).unwrap())
    };
    let on = vec![(key(&left, "p"), key(&right, "k"))];
    let join = HashJoinExec::try_new(
        Arc::new(CoalescePartitionsExec::new(left)),
        right,
        on,
        None,
        &kind,
        None,
        PartitionMode::CollectLeft,
        null_equality,
        false,
    );
    Arc::new(join.unwrap())
}

/// A stock join of some parts with groups of the items.
async fn join_with_groups(
    stock: &SessionContext,
    kind: JoinType,
    null_equality: NullEquality,
) -> Arc<dyn ExecutionPlan> {
    // Some have a NULL as their key, and so has a group.
    let left = plan(stock, "SELECT p, c, t FROM parts WHERE c < 5 OR c = 7").await;
    let right = plan(stock, &format!("SELECT k, a, n FROM {GROUPED}")).await;
    stock_join(left, right, kind, null_equality)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_join_returns_what_the_stock_one_does() {
    // The left side stays in batches, or goes into pages.
    let budgets = [(64 << 20, 2), (4 << 20, 1)].map(|(memory_bytes, partitions)| {
        let config = config().with_target_partitions(partitions);
        let stock = SessionContext::new_with_config(config);
        register(&stock);
        (memory_bytes, stock)
    });
    for (kind, expected_operators) in KINDS {
        for null_equality in NULL_EQUALITIES {
            for (memory_bytes, stock) in &budgets {
                let label = format!("{kind}, {null_equality:?}, {memory_bytes}");
                let join = join_with_groups(stock, kind, null_equality).await;
                let expected = sorted(&collect(join, stock.task_ctx()).await.unwrap());
                assert!(!expected.is_empty(), "{label}");
                let space = open(*memory_bytes);
                let context = ours(&space);
                let task = context.task_ctx();
                let join = join_with_groups(stock, kind, null_equality).await;
                let rule = SwapOperators::for_budget(*memory_bytes);
                let plan = rule.optimize(join, task.session_config().options());
                let plan = plan.unwrap();
                assert_eq!(operators(&plan), expected_operators, "{label}");
                let found = collect(Arc::clone(&plan), task).await;
                let found = found.unwrap_or_else(|error| panic!("{label}: {error}"));
                assert!(sorted(&found) == expected, "{label}");
                assert_eq!(dropped(&plan) > 0, expected_operators > 0, "{label}");
                drop((plan, found, context));
                check_nothing_left(&space, &label).await;
            }
        }
    }
}
