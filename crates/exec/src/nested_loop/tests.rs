use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{
    ArrayRef, Float64Array, Int64Array, ListBuilder, RecordBatch, StringArray, StringViewArray,
    StringViewBuilder, UInt64Array,
};
use arrow::buffer::BooleanBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::MemTable;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::common::{JoinSide, JoinType};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, lit};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use mayfly_space::Space;

use super::partners::Partners;
use super::spec::Spec;
use super::{NestedLoopOperator, replace};
use crate::StatementContext;
use crate::tests::{JOIN_KINDS, check_nothing_left, count_nodes, open, seed_or, session, sorted};
use crate::window::tests::{Random, plan};

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
    let bound = |at| both(column(0), at, column(1));
    let kept = [
        bound(Operator::Lt),
        both(column(1), Operator::LtEq, column(0)),
        // Few candidates, none, some of which the rest keeps, and a term that may fail before it.
        both(bound(Operator::GtEq), Operator::And, bound(Operator::LtEq)),
        both(bound(Operator::Gt), Operator::And, bound(Operator::Lt)),
        both(bound(Operator::Gt), Operator::And, sum(Operator::Lt)),
        both(
            both(column(0), Operator::Gt, lit(20_i64)),
            Operator::And,
            both(bound(Operator::GtEq), Operator::And, sum(Operator::Gt)),
        ),
        both(sum(Operator::Lt), Operator::And, bound(Operator::Lt)),
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
        (200, 300),
        (1100, 130),
    ];
    for (left_rows, right_rows) in sizes {
        let left = rows(&mut random, left_rows, 2);
        let right = rows(&mut random, right_rows, 3);
        for condition in conditions() {
            for kind in JOIN_KINDS {
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

/// A join of the first columns of two inputs by a comparison of their first columns.
fn compared(
    left: Arc<dyn ExecutionPlan>,
    operator: Operator,
    right: Arc<dyn ExecutionPlan>,
    kind: JoinType,
) -> NestedLoopJoinExec {
    let sides = [JoinSide::Left, JoinSide::Right];
    let columns = sides.map(|side| ColumnIndex { index: 0, side });
    let fields = [("l", &left), ("r", &right)];
    let fields = fields.map(|(name, plan)| {
        let schema = plan.schema();
        Field::new(name, schema.field(0).data_type().clone(), true)
    });
    let column = |name: &str, at| -> PhysicalExprRef { Arc::new(Column::new(name, at)) };
    let condition = BinaryExpr::new(column("l", 0), operator, column("r", 1));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let condition = JoinFilter::new(Arc::new(condition), columns.to_vec(), schema);
    NestedLoopJoinExec::try_new(left, right, Some(condition), &kind, None).unwrap()
}

fn one_batch(column: ArrayRef) -> Arc<dyn ExecutionPlan> {
    let batch = RecordBatch::try_from_iter_with_nullable([("v", column, true)]).unwrap();
    let schema = batch.schema();
    MemorySourceConfig::try_new_exec(&[vec![batch]], schema, None).unwrap()
}

/// Ranges of candidates that become shorter row by row leave the partners of longer ones alone.
#[tokio::test]
async fn partners_that_were_found_stay() {
    let stock = SessionContext::new();
    for kind in JOIN_KINDS {
        let join = || {
            let numbers = |numbers: Vec<i64>| one_batch(Arc::new(Int64Array::from(numbers)));
            let left = numbers((0..1000).collect());
            let right = numbers((501..=600).rev().collect());
            Arc::new(compared(left, Operator::Lt, right, kind)) as Arc<dyn ExecutionPlan>
        };
        let expect = collect(join(), stock.task_ctx()).await.unwrap();
        let context = session(&open(1 << 20), SessionConfig::new());
        let ours = replace(join()).unwrap().data;
        assert!(ours.is::<NestedLoopOperator>());
        let found = collect(ours, context.task_ctx()).await.unwrap();
        assert!(sorted(&found) == sorted(&expect), "{kind}");
    }
}

/// Comparisons of all types find the rows of the stock operator; those whose values are sorted by
/// other rules than they are compared by are no bounds.
#[tokio::test]
async fn bounds_are_of_types_that_are_sorted_as_they_are_compared() {
    let numbers = |from: i64| -> ArrayRef {
        let numbers = (0..150).map(|n| (n % 11 > 0).then(|| (n * 7 + from) % 40 - 20));
        Arc::new(Int64Array::from_iter(numbers))
    };
    let floats = |from: i64| -> ArrayRef {
        let special = [Some(f64::NAN), Some(-0.0), Some(0.0), None];
        let numbers = special
            .into_iter()
            .chain((0..120).map(|n| Some(((n + from) % 9) as f64)));
        Arc::new(Float64Array::from_iter(numbers))
    };
    let of_type = |of: &DataType, from| match of {
        DataType::Float64 => floats(from),
        DataType::UInt64 => {
            let numbers =
                (0..150).map(|n| (n % 11 > 0).then(|| u64::MAX - (n * 7 + from as u64) % 40));
            Arc::new(UInt64Array::from_iter(numbers)) as ArrayRef
        }
        of => cast(&cast(&numbers(from), &DataType::Int32).unwrap(), of).unwrap(),
    };
    let types = [
        (DataType::Int8, true),
        (DataType::Int64, true),
        (DataType::UInt64, true),
        (DataType::Date32, true),
        (DataType::Decimal128(12, 2), true),
        (DataType::Float64, false),
        (DataType::Utf8, false),
    ];
    let operators = [Operator::Lt, Operator::LtEq, Operator::Gt, Operator::GtEq];
    for (of, is_bound) in types {
        for operator in operators {
            for kind in JOIN_KINDS {
                let label = format!("{of} {operator} {kind}");
                let (left, right) = (one_batch(of_type(&of, 0)), one_batch(of_type(&of, 3)));
                let stock = compared(left, operator, right, kind);
                let spec = Spec::of(&stock).unwrap();
                assert_eq!(spec.bounds().unwrap().is_some(), is_bound, "{label}");
                let stock: Arc<dyn ExecutionPlan> = Arc::new(stock);
                let ours = replace(Arc::clone(&stock)).unwrap().data;
                let task = SessionContext::new().task_ctx();
                let expect = collect(stock, task).await.unwrap();
                let space = open(1 << 20);
                let context = session(&space, SessionConfig::new());
                let found = collect(ours, context.task_ctx()).await.unwrap();
                assert!(sorted(&found) == sorted(&expect), "{label}");
            }
        }
    }
}

/// A term that may fail is asked for all pairs that come to it: no bound behind it keeps pairs
/// from it. And a left row that needs one partner among candidates looks for it by itself.
#[test]
fn bounds_are_not_taken_from_behind_a_term_that_may_fail() {
    let (left, right) = (one_batch(numbers_of(3)), one_batch(numbers_of(3)));
    let of = |condition: &dyn Fn(PhysicalExprRef, PhysicalExprRef) -> PhysicalExprRef, kind| {
        let less = compared(Arc::clone(&left), Operator::Lt, Arc::clone(&right), kind);
        let less = less.filter().unwrap();
        let column = |name: &str, at| -> PhysicalExprRef { Arc::new(Column::new(name, at)) };
        let sum = BinaryExpr::new(column("l", 0), Operator::Plus, column("r", 1));
        let small = BinaryExpr::new(Arc::new(sum), Operator::Lt, lit(9_i64));
        let condition = condition(Arc::clone(less.expression()), Arc::new(small));
        let columns = less.column_indices().to_vec();
        let condition = JoinFilter::new(condition, columns, Arc::clone(less.schema()));
        let (left, right) = (Arc::clone(&left), Arc::clone(&right));
        let join = NestedLoopJoinExec::try_new(left, right, Some(condition), &kind, None);
        let spec = Spec::of(&join.unwrap()).unwrap();
        let bounds = spec.bounds().unwrap();
        bounds.map(|bounds| {
            let rest = bounds.rest.as_ref();
            rest.map(|rest| rest.expression().to_string())
        })
    };
    let and = |first, second| -> PhysicalExprRef {
        Arc::new(BinaryExpr::new(first, Operator::And, second))
    };
    assert_eq!(of(&|less, _| less, JoinType::Inner), Some(None));
    assert_eq!(of(&|_, small| small, JoinType::Inner), None);
    let behind = of(&|less, small| and(less, small), JoinType::Inner);
    assert_eq!(behind, Some(Some("l@0 + r@1 < 9".to_owned())));
    assert_eq!(of(&|less, small| and(small, less), JoinType::Inner), None);
    assert_eq!(
        of(&|less, small| and(less, small), JoinType::LeftSemi),
        None
    );
    assert_eq!(of(&|less, _| less, JoinType::LeftSemi), Some(None));
    let behind = of(&|less, small| and(less, small), JoinType::RightSemi);
    assert!(behind.is_some_and(|rest| rest.is_some()));
}

fn numbers_of(count: i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(0..count))
}

/// While rows are compared, the columns of the condition are read, and those of pairs.
#[tokio::test]
async fn pages_are_read_with_the_columns_that_are_needed() {
    let context = SessionContext::new();
    let table = rows(&mut Random(1), 10, 1);
    for (kind, compared_columns, alone) in [
        (JoinType::LeftSemi, vec![0], vec![0, 1, 2, 3]),
        (JoinType::LeftMark, vec![0], vec![0, 1, 2, 3]),
        (JoinType::RightAnti, vec![0], vec![]),
        (JoinType::Left, vec![0, 1, 2, 3], vec![0, 1, 2, 3]),
    ] {
        let sides = [scan(&context, &table).await, scan(&context, &table).await];
        let [left, right] = sides.map(one_partition);
        let spec = Spec::of(&compared(left, Operator::Lt, right, kind)).unwrap();
        assert_eq!(spec.left_compared, compared_columns, "{kind}");
        assert_eq!(spec.left_alone, alone, "{kind}");
    }
}

/// Batches of one column, which are counted as they are asked for.
#[derive(Debug)]
struct Counted {
    batch: RecordBatch,
    schema: SchemaRef,
    count: usize,
    asked: Arc<AtomicUsize>,
}

impl PartitionStream for Counted {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (batch, asked) = (self.batch.clone(), Arc::clone(&self.asked));
        let batches = (0..self.count).map(move |_| {
            asked.fetch_add(1, Ordering::Relaxed);
            Ok(batch.clone())
        });
        let schema = Arc::clone(&self.schema);
        let batches = futures::stream::iter(batches);
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }
}

/// Where a left row is returned once, the right side is read until all of them have a partner.
#[tokio::test]
async fn the_right_side_is_read_until_all_left_rows_have_partners() {
    const BATCHES: usize = 20;
    const BATCH_ROWS: usize = 100;
    for kind in JOIN_KINDS {
        let ends_early = matches!(
            kind,
            JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark
        );
        // A row with NULL has no partner, so all of the right side is read for it.
        for has_null in [false, true] {
            let label = format!("{kind} {has_null}");
            let left = (0..300).map(|n| (n > 0 || !has_null).then_some(n));
            let left = one_batch(Arc::new(Int64Array::from_iter(left)));
            let right: ArrayRef = Arc::new(Int64Array::from_value(1000, BATCH_ROWS));
            let batch = RecordBatch::try_from_iter_with_nullable([("v", right, true)]).unwrap();
            let asked = Arc::new(AtomicUsize::new(0));
            let schema = batch.schema();
            let right = Counted {
                batch,
                schema: Arc::clone(&schema),
                count: BATCHES,
                asked: Arc::clone(&asked),
            };
            let right: Arc<dyn PartitionStream> = Arc::new(right);
            let right =
                StreamingTableExec::try_new(schema, vec![right], None, None, false, None).unwrap();
            let join = compared(left, Operator::Lt, Arc::new(right), kind);
            let join = replace(Arc::new(join)).unwrap().data;
            let space = open(4 << 20);
            let config = SessionConfig::new().with_batch_size(BATCH_ROWS);
            let context = session(&space, config);
            let found = collect(join, context.task_ctx()).await.unwrap();
            let nulls = usize::from(has_null);
            let pairs = (300 - nulls) * BATCHES * BATCH_ROWS;
            let expect = match kind {
                JoinType::Inner | JoinType::Right => pairs,
                JoinType::Left | JoinType::Full => pairs + nulls,
                JoinType::LeftSemi => 300 - nulls,
                JoinType::LeftAnti => nulls,
                JoinType::LeftMark => 300,
                JoinType::RightSemi | JoinType::RightMark => BATCHES * BATCH_ROWS,
                JoinType::RightAnti => 0,
            };
            let rows: usize = found.iter().map(RecordBatch::num_rows).sum();
            assert_eq!(rows, expect, "{label}");
            let asked = asked.load(Ordering::Relaxed);
            match ends_early && !has_null {
                true => assert!(asked < 5, "{label}: {asked} batches"),
                false => assert_eq!(asked, BATCHES, "{label}"),
            }
        }
    }
}

/// Bits are added at any place.
#[test]
fn partners_are_added_where_they_belong() {
    let mut random = Random(7);
    for _ in 0..200 {
        let rows = 1 + random.below(200) as usize;
        let from = random.below(rows as u64) as usize;
        let skipped = random.below(9) as usize;
        let count = random.below((rows - from + 1) as u64) as usize;
        let found: BooleanBuffer = (0..skipped + count).map(|_| random.below(2) > 0).collect();
        let found = found.slice(skipped, count);
        let mut partners = Partners::none(rows);
        partners.add(rows - 1);
        partners.add_all(from, &found);
        for row in 0..rows {
            let is_found = (from..from + count).contains(&row) && found.value(row - from);
            assert_eq!(
                partners.has(row),
                is_found || row == rows - 1,
                "{row} of {rows}"
            );
        }
        let places: Vec<u32> = (0..rows as u32).rev().collect();
        let mut moved = partners.at(&places, rows);
        assert!((0..rows).all(|row| moved.has(rows - 1 - row) == partners.has(row)));
        moved.add_those_of(&partners);
        assert!(
            (0..rows).all(|row| {
                moved.has(row) == (partners.has(row) || partners.has(rows - 1 - row))
            })
        );
    }
}
