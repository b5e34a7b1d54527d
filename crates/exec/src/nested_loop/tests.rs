use std::sync::Arc;

use arrow::array::{
    ArrayRef, Int64Array, ListBuilder, RecordBatch, StringArray, StringViewArray, StringViewBuilder,
};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::MemTable;
use datafusion::common::{JoinSide, JoinType};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, lit};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use mayfly_space::Space;

use super::NestedLoopOperator;
use super::replace;
use crate::StatementContext;
use crate::tests::{check_nothing_left, count_nodes, open, seed_or, session, sorted};
use crate::window::tests::{Random, plan};

const KINDS: [JoinType; 10] = [
    JoinType::Inner,
    JoinType::Left,
    JoinType::Right,
    JoinType::Full,
    JoinType::LeftSemi,
    JoinType::RightSemi,
    JoinType::LeftAnti,
    JoinType::RightAnti,
    JoinType::LeftMark,
    JoinType::RightMark,
];

/// Rows `(n, view, text, list)`, with NULLs, in so many partitions of batches of many lengths.
fn rows(random: &mut Random, count: usize, partitions: usize) -> MemTable {
    let mut parts = vec![Vec::new(); partitions];
    let mut left = count;
    while left > 0 {
        let length = (1 + random.below(left as u64) as usize).min(700);
        left -= length;
        let numbers: Vec<Option<i64>> = (0..length)
            .map(|_| (random.below(9) > 0).then(|| random.below(60) as i64))
            .collect();
        let text = |number: &Option<i64>| {
            number.map(|number| format!("{number} {}", "long ".repeat(number as usize % 7)))
        };
        let mut lists = ListBuilder::new(StringViewBuilder::new());
        for number in &numbers {
            let texts = (0..number.unwrap_or(0) % 3).map(|_| text(number));
            lists.append_option(number.map(|_| texts.collect::<Vec<_>>()));
        }
        let columns: [(&str, ArrayRef); 4] = [
            ("n", Arc::new(Int64Array::from(numbers.clone()))),
            (
                "view",
                Arc::new(StringViewArray::from_iter(numbers.iter().map(text))),
            ),
            (
                "text",
                Arc::new(StringArray::from_iter(numbers.iter().map(text))),
            ),
            ("list", Arc::new(lists.finish())),
        ];
        let columns = columns.map(|(name, column)| (name, column, true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        parts[random.below(partitions as u64) as usize].push(batch);
    }
    let fields = ["n", "view", "text", "list"].map(|name| {
        let of = match name {
            "n" => DataType::Int64,
            "view" => DataType::Utf8View,
            "text" => DataType::Utf8,
            _ => DataType::new_list(DataType::Utf8View, true),
        };
        Field::new(name, of, true)
    });
    MemTable::try_new(Arc::new(Schema::new(fields.to_vec())), parts).unwrap()
}

async fn scan(context: &SessionContext, table: &MemTable) -> Arc<dyn ExecutionPlan> {
    use datafusion::catalog::TableProvider;
    table.scan(&context.state(), None, &[], None).await.unwrap()
}

fn one_partition(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.output_partitioning().partition_count() {
        1 => plan,
        _ => Arc::new(CoalescePartitionsExec::new(plan)),
    }
}

/// What keeps pairs, over the numbers and the texts of both sides.
fn conditions() -> Vec<Option<JoinFilter>> {
    let sides = [
        (JoinSide::Left, 0),
        (JoinSide::Right, 0),
        (JoinSide::Left, 2),
        (JoinSide::Right, 1),
    ];
    let columns: Vec<ColumnIndex> = { sides.into_iter() }
        .map(|(side, index)| ColumnIndex { index, side })
        .collect();
    let schema = Arc::new(Schema::new(vec![
        Field::new("left_n", DataType::Int64, true),
        Field::new("right_n", DataType::Int64, true),
        Field::new("left_text", DataType::Utf8, true),
        Field::new("right_view", DataType::Utf8View, true),
    ]));
    let column =
        |at: usize| -> PhysicalExprRef { Arc::new(Column::new(schema.field(at).name(), at)) };
    let both = |left, operator, right| -> PhysicalExprRef {
        Arc::new(BinaryExpr::new(left, operator, right))
    };
    let sum = |at| both(both(column(0), Operator::Plus, column(1)), at, lit(31_i64));
    let kept = [
        both(column(0), Operator::Lt, column(1)),
        both(column(0), Operator::IsNotDistinctFrom, column(1)),
        sum(Operator::Eq),
        sum(Operator::Lt),
        // Also where it is NULL.
        both(
            both(column(0), Operator::Gt, lit(50_i64)),
            Operator::Or,
            both(column(1), Operator::Gt, lit(50_i64)),
        ),
        lit(false),
        lit(true),
    ];
    let kept = kept.map(|expr| Some(JoinFilter::new(expr, columns.clone(), Arc::clone(&schema))));
    let all = [None];
    kept.into_iter().chain(all).collect()
}

/// The same rows as DataFusion's operator in memory finds, for all kinds of join, at budgets for
/// which the left side is too large too.
#[tokio::test]
async fn rows_are_those_of_the_stock_join() {
    let mut random = Random(seed_or(20_261_128));
    let stock = SessionContext::new();
    let sizes = [
        (0, 5),
        (5, 0),
        (1, 900),
        (900, 1),
        (60, 90),
        (30, 1100),
        (1100, 30),
    ];
    for (left_rows, right_rows) in sizes {
        let left = rows(&mut random, left_rows, 2);
        let right = rows(&mut random, right_rows, 3);
        for condition in conditions() {
            for kind in KINDS {
                let label = format!("{left_rows} {kind} {right_rows} ON {condition:?}");
                let join = |left, right, projection| {
                    let condition = condition.clone();
                    let join =
                        NestedLoopJoinExec::try_new(left, right, condition, &kind, projection);
                    Arc::new(join.unwrap()) as Arc<dyn ExecutionPlan>
                };
                let inputs = (
                    one_partition(scan(&stock, &left).await),
                    one_partition(scan(&stock, &right).await),
                );
                let whole = join(inputs.0, inputs.1, None);
                let columns = whole.schema().fields().len();
                let projection: Option<Vec<usize>> = match random.below(3) {
                    0 => None,
                    1 => Some(Vec::new()),
                    _ => Some((0..columns).rev().step_by(2).collect()),
                };
                let chosen = |plan: &Arc<dyn ExecutionPlan>| {
                    let inputs = plan.children().into_iter().cloned().collect::<Vec<_>>();
                    let [left, right] = inputs.try_into().unwrap();
                    join(left, right, projection.clone())
                };
                let expect = collect(chosen(&whole), stock.task_ctx()).await.unwrap();

                let space = open(1 << 20);
                let batch_rows = 1 + random.below(600) as usize;
                let config = SessionConfig::new().with_batch_size(batch_rows);
                let context = session(&space, config);
                let several = join(
                    one_partition(scan(&context, &left).await),
                    scan(&context, &right).await,
                    projection.clone(),
                );
                let ours = replace(several).unwrap().data;
                assert!(ours.is::<NestedLoopOperator>());
                let found = collect(ours, context.task_ctx()).await.unwrap();
                assert!(sorted(&found) == sorted(&expect), "{label}");
                check_nothing_left(&space, &label).await;
            }
        }
    }
}

fn numbers(count: i64, padding: usize) -> MemTable {
    let texts = (0..count).map(|n| format!("{n}{}", "x".repeat(padding)));
    let columns: [(&str, ArrayRef); 2] = [
        ("n", Arc::new(Int64Array::from_iter_values(0..count))),
        ("s", Arc::new(StringViewArray::from_iter_values(texts))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let batches = (0..batch.num_rows()).step_by(1000);
    let batches = batches.map(|from| batch.slice(from, 1000.min(batch.num_rows() - from)));
    MemTable::try_new(batch.schema(), vec![batches.collect()]).unwrap()
}

fn two_tables(space: &Space, (rows, padding): (i64, usize), partitions: usize) -> SessionContext {
    let context = session(
        space,
        SessionConfig::new().with_target_partitions(partitions),
    );
    for name in ["a", "b"] {
        let table = Arc::new(numbers(rows, padding));
        context.register_table(name, table).unwrap();
    }
    context
}

/// A left side larger than the budget is written once, and all partitions of the right side find
/// it.
#[tokio::test]
async fn a_left_side_that_has_no_room_is_read_from_the_disk() {
    for kind in ["LEFT", "FULL"] {
        let space = open(1 << 20);
        let context = two_tables(&space, (3000, 800), 2);
        let sql = format!(
            "SELECT COUNT(*), COUNT(b.n), SUM(length(a.s)) \
             FROM a {kind} JOIN b ON a.n + b.n = 2999 OR a.n + b.n = 6000 AND a.s < b.s"
        );
        let joined = plan(&context, &sql).await;
        let is_ours = |node: &Arc<dyn ExecutionPlan>| node.is::<NestedLoopOperator>();
        assert_eq!(count_nodes(&joined, is_ours), 1, "{sql}");
        let task = context.task_ctx();
        let statement = StatementContext::of(&task).unwrap();
        let found = collect(joined, task).await.unwrap();
        let stock = two_tables(&open(256 << 20), (3000, 800), 1);
        let expect = stock.sql(&sql).await.unwrap().collect().await.unwrap();
        assert_eq!(sorted(&found), sorted(&expect), "{sql}");
        drop(statement);
        check_nothing_left(&space, &sql).await;
    }
}
