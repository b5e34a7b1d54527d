use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::Int64Type;
use datafusion::catalog::MemTable;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::col;
use datafusion::physical_expr::{Partitioning, PhysicalExpr};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::{StreamExt, TryStreamExt};
use mayfly_space::Space;

use super::{ExchangeOperator, replace_all};
use crate::tests::{Fault, check_nothing_left, config, open, session, sorted, with_every_fault};

/// Several times the budgets that are small.
const ROWS: i64 = 60_000;
const BATCH_ROWS: i64 = 1000;
const SMALL: u64 = 2 << 20;

/// Rows `(k, n, s)` of two inputs: `k` is one value in nine of ten rows, `n` numbers them.
fn batches(rows: std::ops::Range<i64>) -> Vec<RecordBatch> {
    let starts = rows.clone().step_by(BATCH_ROWS as usize);
    let batch = |start: i64| {
        let numbers = start..(start + BATCH_ROWS).min(rows.end);
        let key = |n: i64| if n % 10 == 0 { n } else { 7 };
        let columns: Vec<(&str, ArrayRef)> = vec![
            (
                "k",
                Arc::new(Int64Array::from_iter_values(numbers.clone().map(key))),
            ),
            ("n", Arc::new(Int64Array::from_iter_values(numbers.clone()))),
            (
                "s",
                Arc::new(StringViewArray::from_iter_values(
                    numbers.map(|n| format!("{n} is the number of a row with a long text")),
                )),
            ),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    starts.map(batch).collect()
}

async fn scan(context: &SessionContext, inputs: usize) -> Arc<dyn ExecutionPlan> {
    let half = ROWS / 2;
    let partitions = match inputs {
        1 => vec![batches(0..ROWS)],
        _ => vec![batches(0..half), batches(half..ROWS)],
    };
    let schema = partitions[0][0].schema();
    let table = MemTable::try_new(schema, partitions).unwrap();
    let plan = context.read_table(Arc::new(table)).unwrap();
    plan.create_physical_plan().await.unwrap()
}

fn exchange(
    input: Arc<dyn ExecutionPlan>,
    partitioning: Partitioning,
) -> Result<Arc<dyn ExecutionPlan>> {
    let stock = RepartitionExec::try_new(input, partitioning)?;
    let plan = replace_all(Arc::new(stock))?;
    assert!(plan.is::<ExchangeOperator>());
    Ok(plan)
}

fn by_key(input: &Arc<dyn ExecutionPlan>, outputs: usize) -> Partitioning {
    let key: Arc<dyn PhysicalExpr> = col("k", &input.schema()).unwrap();
    Partitioning::Hash(vec![key], outputs)
}

/// The rows of each output; all are read at a time, or one after the other.
async fn outputs(
    plan: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
    at_a_time: bool,
) -> Result<Vec<Vec<RecordBatch>>> {
    let partitions = plan.properties().partitioning.partition_count();
    let streams = (0..partitions).map(|index| plan.execute(index, Arc::clone(context)));
    let streams: Vec<SendableRecordBatchStream> = streams.collect::<Result<_>>()?;
    if at_a_time {
        let read = streams.into_iter().map(TryStreamExt::try_collect);
        return futures::future::try_join_all(read).await;
    }
    let mut outputs = Vec::new();
    for stream in streams {
        outputs.push(stream.try_collect().await?);
    }
    Ok(outputs)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outputs_have_the_rows_of_the_stock_exchange_at_every_budget() {
    for memory_bytes in [1 << 30, SMALL] {
        for (inputs, at_a_time) in [(1, true), (2, true), (2, false)] {
            let space = open(memory_bytes);
            let context = session(&space, config());
            let input = scan(&context, inputs).await;
            let turns = Partitioning::RoundRobinBatch(3);
            for partitioning in [by_key(&input, 2), by_key(&input, 5), turns] {
                let label = format!("{memory_bytes}, {inputs} inputs, {partitioning}");
                // Batches are as long as ours.
                let batch_rows = context.task_ctx().session_config().batch_size();
                let plain = SessionConfig::new().with_batch_size(batch_rows);
                let plain = SessionContext::new_with_config(plain).task_ctx();
                let stock = RepartitionExec::try_new(Arc::clone(&input), partitioning.clone());
                let stock: Arc<dyn ExecutionPlan> = Arc::new(stock.unwrap());
                let expected = outputs(&stock, &plain, true).await.unwrap();
                let ours = exchange(Arc::clone(&input), partitioning).unwrap();
                let got = outputs(&ours, &context.task_ctx(), at_a_time)
                    .await
                    .unwrap();
                assert_eq!(got.len(), expected.len());
                for (got, expected) in got.iter().zip(&expected) {
                    assert!(sorted(got) == sorted(expected), "{label}");
                }
                check_nothing_left(&space, &label).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_one_input_keep_their_order_through_pages() {
    let space = open(SMALL);
    let context = session(&space, config());
    let input = scan(&context, 1).await;
    let mut written = 0;
    for is_first in [true, false] {
        let plan = exchange(Arc::clone(&input), by_key(&input, 2)).unwrap();
        let streams = (0..2).map(|index| plan.execute(index, context.task_ctx()).unwrap());
        let mut streams = Vec::from_iter(streams);
        if is_first {
            streams.reverse();
        }
        // One output waits until the other one has ended. One of them has nearly all rows.
        for stream in streams {
            let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
            let numbers = batches.iter().flat_map(|batch| {
                let numbers = batch.column(1).as_primitive::<Int64Type>();
                numbers.values().to_vec()
            });
            assert!(numbers.is_sorted());
        }
        written += plan.metrics().unwrap().spilled_bytes().unwrap();
    }
    assert!(written > 0, "all rows found room");
    let counters = space.counters();
    assert!(counters.peak_bytes <= SMALL, "{}", counters.peak_bytes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_output_that_nobody_reads_holds_nothing() {
    let space = open(SMALL);
    let context = session(&space, config());
    let input = scan(&context, 2).await;
    let plan = exchange(Arc::clone(&input), by_key(&input, 2)).unwrap();
    let mut first = plan.execute(0, context.task_ctx()).unwrap();
    let second = plan.execute(1, context.task_ctx()).unwrap();
    assert!(first.next().await.unwrap().is_ok());
    drop(first);
    let rest: Vec<RecordBatch> = second.try_collect().await.unwrap();
    let rows: usize = rest.iter().map(RecordBatch::num_rows).sum();
    assert!(0 < rows && rows < ROWS as usize, "{rows}");
    drop(rest);
    check_nothing_left(&space, "one output was left").await;
    // The same node once more, and nobody reads to the end.
    let again = Arc::clone(&plan).reset_state().unwrap();
    let mut first = again.execute(0, context.task_ctx()).unwrap();
    assert!(first.next().await.unwrap().is_ok());
    drop((first, again));
    check_nothing_left(&space, "all outputs were left").await;
}

/// How an input ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Error,
    Panic,
}

/// An input of one batch and then an end.
#[derive(Debug)]
struct Ending(End, arrow::datatypes::SchemaRef);

impl PartitionStream for Ending {
    fn schema(&self) -> &arrow::datatypes::SchemaRef {
        &self.1
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let end = self.0;
        let rows = batches(0..BATCH_ROWS).into_iter().map(Ok);
        let rest = futures::stream::once(async move {
            match end {
                End::Error => Err(exec_datafusion_err!("the input ends here")),
                End::Panic => panic!("the input ends here"),
            }
        });
        let rows = futures::stream::iter(rows).chain(rest);
        let schema = Arc::clone(&self.1);
        Box::pin(datafusion::physical_plan::stream::RecordBatchStreamAdapter::new(schema, rows))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_output_is_told_how_an_input_ended() {
    let space = open(SMALL);
    let context = session(&space, config());
    let schema = batches(0..1)[0].schema();
    for end in [End::Error, End::Panic] {
        let input: Arc<dyn PartitionStream> = Arc::new(Ending(end, Arc::clone(&schema)));
        let input = StreamingTableExec::try_new(
            Arc::clone(&schema),
            vec![input],
            None,
            Vec::new(),
            false,
            None,
        );
        let input: Arc<dyn ExecutionPlan> = Arc::new(input.unwrap());
        let plan = exchange(Arc::clone(&input), by_key(&input, 2)).unwrap();
        let streams = (0..2).map(|index| plan.execute(index, context.task_ctx()).unwrap());
        for stream in Vec::from_iter(streams) {
            let error = stream.try_collect::<Vec<_>>().await.unwrap_err();
            let expected = match end {
                End::Error => "the input ends here",
                End::Panic => "a task of an exchange ended early",
            };
            assert!(error.to_string().contains(expected), "{end:?}: {error}");
        }
        drop(plan);
        check_nothing_left(&space, &format!("{end:?}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_are_typed_and_leave_nothing() {
    let body = async |space: &Space, fault: Fault<'_>| {
        let context = session(space, config());
        let input = scan(&context, 2).await;
        let plan = exchange(Arc::clone(&input), by_key(&input, 2)).unwrap();
        fault.arm();
        outputs(&plan, &context.task_ctx(), false).await
    };
    let check = |outputs: Vec<Vec<RecordBatch>>, label: &str| {
        let batches = outputs.iter().flatten();
        let rows: usize = batches.map(RecordBatch::num_rows).sum();
        assert_eq!(rows as i64, ROWS, "{label}");
    };
    let failures = with_every_fault(SMALL, |n| 2 * n + 1, body, check).await;
    assert!(failures > 0, "no fault has failed an exchange");
}

#[tokio::test]
async fn plans_have_ours_but_where_the_stock_one_merges() {
    let space = open(64 << 20);
    let context = session(&space, config());
    let half = ROWS / 2;
    let partitions = vec![batches(0..half), batches(half..ROWS)];
    let table = MemTable::try_new(partitions[0][0].schema(), partitions).unwrap();
    context.register_table("t", Arc::new(table)).unwrap();
    let sql = "SELECT k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY n) FROM t";
    let plan = context.sql(sql).await.unwrap();
    let plan = plan.create_physical_plan().await.unwrap();
    let shown = displayable(plan.as_ref()).indent(false).to_string();
    assert!(
        shown.contains("ExchangeOperator: partitioning=Hash"),
        "{shown}"
    );
    assert!(!shown.contains("RepartitionExec"), "{shown}");
    let input = scan(&context, 2).await;
    let stock = RepartitionExec::try_new(Arc::clone(&input), by_key(&input, 2)).unwrap();
    assert!(ExchangeOperator::of_stock(&stock).is_some());
    let unknown = Partitioning::UnknownPartitioning(2);
    if let Ok(stock) = RepartitionExec::try_new(input, unknown) {
        assert!(ExchangeOperator::of_stock(&stock).is_none());
    }
}
