use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Float64Array, Int8Array,
    Int64Array, RecordBatch, StringArray, StringViewArray, UInt64Array,
};
use arrow::compute::{SortOptions, concat_batches};
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::row::{RowConverter, SortField};
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, lit};
use datafusion::physical_expr::{LexOrdering, PhysicalExprRef, PhysicalSortExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use mayfly_space::Space;

use super::{MergeOperator, SortOperator};
use crate::context::StatementContext;
use crate::tests::{Fault, check_nothing_left, open, wait_until, with_every_fault};
use crate::{find_space_error, runtime};

/// A generator with a seed that is printed by every failing test.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn text(&mut self, distinct: u64) -> String {
        let value = self.below(distinct);
        match self.below(6) {
            0 => String::new(),
            1 => format!("{value}"),
            2 => format!("a common beginning that is long, {value:05}"),
            3 => "x".repeat(usize::try_from(value % 200).unwrap()),
            _ => format!("{value:016x}{:016x}", value.wrapping_mul(0x9E37_79B9)),
        }
    }

    fn column(&mut self, kind: u64, rows: usize, distinct: u64) -> ArrayRef {
        let nulls = [0, 0, 10, 50][usize::try_from(self.below(4)).unwrap()];
        let mut each = |f: &mut dyn FnMut(&mut Self) -> u64| -> Vec<Option<u64>> {
            (0..rows)
                .map(|_| (self.below(100) >= nulls).then(|| f(self)))
                .collect()
        };
        let number = |v: u64| i64::try_from(v).unwrap() - i64::try_from(distinct / 2).unwrap();
        match kind {
            0 => {
                let values = each(&mut |r| r.below(distinct));
                Arc::new(values.iter().map(|v| v.map(number)).collect::<Int64Array>())
            }
            1 => {
                let values = each(&mut |r| r.below(200));
                let bytes = values
                    .iter()
                    .map(|v| v.map(|v| i8::try_from(v as i64 - 100).unwrap()));
                Arc::new(bytes.collect::<Int8Array>())
            }
            2 => {
                let values = each(&mut |r| r.below(distinct));
                let floats = values.iter().map(|v| v.map(|v| number(v) as f64 / 7.0));
                Arc::new(floats.collect::<Float64Array>())
            }
            3 => {
                let values = each(&mut |r| r.below(2));
                Arc::new(
                    values
                        .iter()
                        .map(|v| v.map(|v| v == 1))
                        .collect::<BooleanArray>(),
                )
            }
            4 => {
                let values = each(&mut |r| r.below(distinct));
                let decimals = values.iter().map(|v| v.map(|v| i128::from(number(v))));
                Arc::new(decimals.collect::<Decimal128Array>())
            }
            kind => {
                let mut texts: Vec<Option<String>> = Vec::with_capacity(rows);
                for _ in 0..rows {
                    texts.push((self.below(100) >= nulls).then(|| self.text(distinct)));
                }
                match kind {
                    5 => Arc::new(StringViewArray::from_iter(texts)),
                    6 => Arc::new(StringArray::from_iter(texts)),
                    _ => {
                        let bytes = texts.iter().map(|t| t.as_ref().map(|t| t.as_bytes()));
                        Arc::new(BinaryArray::from_iter(bytes))
                    }
                }
            }
        }
    }
}

/// Partitions of batches whose last column numbers all rows.
struct Data {
    schema: SchemaRef,
    partitions: Vec<Vec<RecordBatch>>,
}

impl Data {
    fn random(random: &mut Random, kinds: &[u64], rows: usize, partitions: usize) -> Self {
        let distinct = [5, 300, 1 << 40][usize::try_from(random.below(3)).unwrap()];
        let mut next_id = 0_u64;
        let mut schema = None;
        let partitions = (0..partitions)
            .map(|_| {
                let mut left = rows;
                let mut batches = Vec::new();
                while left > 0 {
                    let len = left.min(1 + usize::try_from(random.below(5000)).unwrap());
                    left -= len;
                    let mut columns: Vec<ArrayRef> = kinds
                        .iter()
                        .map(|&kind| random.column(kind, len, distinct))
                        .collect();
                    columns.push(Arc::new(UInt64Array::from_iter_values(
                        next_id..next_id + len as u64,
                    )));
                    next_id += len as u64;
                    let schema = schema.get_or_insert_with(|| {
                        let fields = columns.iter().enumerate().map(|(index, column)| {
                            Field::new(format!("c{index}"), column.data_type().clone(), true)
                        });
                        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
                    });
                    batches.push(RecordBatch::try_new(Arc::clone(schema), columns).unwrap());
                }
                batches
            })
            .collect();
        Self {
            schema: schema.unwrap_or_else(|| Arc::new(Schema::empty())),
            partitions,
        }
    }

    fn scan(&self) -> Arc<dyn ExecutionPlan> {
        MemorySourceConfig::try_new_exec(&self.partitions, Arc::clone(&self.schema), None).unwrap()
    }

    fn rows(&self) -> usize {
        self.partitions
            .iter()
            .flatten()
            .map(RecordBatch::num_rows)
            .sum()
    }
}

fn ordering(random: &mut Random, data: &Data) -> LexOrdering {
    let columns = data.schema.fields().len() as u64 - 1;
    let count = 1 + random.below(columns.min(3));
    let mut exprs: Vec<PhysicalSortExpr> = Vec::new();
    for _ in 0..count {
        let index = usize::try_from(random.below(columns)).unwrap();
        let field = data.schema.field(index);
        let mut expr: PhysicalExprRef = Arc::new(Column::new(field.name(), index));
        if field.data_type() == &arrow::datatypes::DataType::Int64 && random.below(3) == 0 {
            let op = datafusion::logical_expr::Operator::Modulo;
            expr = Arc::new(BinaryExpr::new(expr, op, lit(1000_i64)));
        }
        let options = SortOptions {
            descending: random.below(2) == 0,
            nulls_first: random.below(2) == 0,
        };
        exprs.push(PhysicalSortExpr::new(expr, options));
    }
    LexOrdering::new(exprs).unwrap()
}

fn context(space: &Space, batch_rows: usize) -> (Arc<TaskContext>, Arc<StatementContext>) {
    let statement = Arc::new(StatementContext::new(
        space
            .root()
            .child("statement", mayfly_space::AccountOptions::default()),
    ));
    let config = SessionConfig::new()
        .with_batch_size(batch_rows)
        .with_extension(Arc::clone(&statement));
    let task = TaskContext::default()
        .with_session_config(config)
        .with_runtime(runtime(space.root(), None).unwrap());
    (Arc::new(task), statement)
}

fn stock(data: &Data, ordering: &LexOrdering, fetch: Option<usize>) -> SortExec {
    let partitioned = data.partitions.len() > 1;
    SortExec::new(ordering.clone(), data.scan())
        .with_preserve_partitioning(partitioned)
        .with_fetch(fetch)
}

fn merged(
    sort: Arc<dyn ExecutionPlan>,
    ordering: &LexOrdering,
    fetch: Option<usize>,
) -> Arc<dyn ExecutionPlan> {
    if sort.properties().output_partitioning().partition_count() == 1 {
        return sort;
    }
    Arc::new(SortPreservingMergeExec::new(ordering.clone(), sort).with_fetch(fetch))
}

fn ours(data: &Data, ordering: &LexOrdering, fetch: Option<usize>) -> Arc<dyn ExecutionPlan> {
    let operator = SortOperator::try_from_stock(&stock(data, ordering, fetch)).unwrap();
    let sort = Arc::new(operator.expect("every key has a normal form"));
    let merged = merged(sort, ordering, fetch);
    match merged.downcast_ref::<SortPreservingMergeExec>() {
        None => merged,
        Some(stock) => {
            let operator = MergeOperator::try_from_stock(stock).unwrap();
            Arc::new(operator.expect("every key has a normal form"))
        }
    }
}

/// The keys of a result, in its order, and the ids of its rows.
fn keys_and_ids(
    ordering: &LexOrdering,
    schema: &SchemaRef,
    batches: &[RecordBatch],
) -> (Vec<Vec<u8>>, Vec<u64>) {
    let all = concat_batches(schema, batches).unwrap();
    let fields = ordering
        .iter()
        .map(|sort| {
            let data_type = sort.expr.data_type(schema).unwrap();
            SortField::new_with_options(data_type, sort.options)
        })
        .collect();
    let columns: Vec<ArrayRef> = ordering
        .iter()
        .map(|sort| {
            sort.expr
                .evaluate(&all)
                .unwrap()
                .into_array(all.num_rows())
                .unwrap()
        })
        .collect();
    let rows = RowConverter::new(fields)
        .unwrap()
        .convert_columns(&columns)
        .unwrap();
    let ids = all.columns().last().unwrap();
    let ids = ids.as_any().downcast_ref::<UInt64Array>().unwrap();
    (
        rows.iter().map(|row| row.data().to_vec()).collect(),
        ids.values().to_vec(),
    )
}

async fn check_against_stock(seed: u64, memory_bytes: u64, rows: usize, fetch: Option<usize>) {
    let mut random = Random(seed | 1);
    let kinds: Vec<u64> = (0..1 + random.below(4)).map(|_| random.below(8)).collect();
    let room = if memory_bytes < 8 << 20 { 1 } else { 2 };
    let partitions = 1 + usize::try_from(random.below(room)).unwrap();
    let data = Data::random(&mut random, &kinds, rows, partitions);
    let ordering = ordering(&mut random, &data);
    let plan = merged(Arc::new(stock(&data, &ordering, fetch)), &ordering, fetch);
    let expected = collect(plan, Arc::new(TaskContext::default()))
        .await
        .unwrap();

    let space = open(memory_bytes);
    let (task, statement) = context(&space, 1024);
    let got = collect(ours(&data, &ordering, fetch), task).await.unwrap();

    let label = format!("seed {seed}, {memory_bytes} bytes, {rows} rows, {kinds:?}, {ordering}");
    let (expected_keys, expected_ids) = keys_and_ids(&ordering, &data.schema, &expected);
    let (keys, ids) = keys_and_ids(&ordering, &data.schema, &got);
    assert!(keys == expected_keys, "keys differ: {label}");
    assert!(
        got.iter().all(|batch| batch.num_rows() > 0),
        "an empty batch: {label}"
    );
    if fetch.is_none() {
        let sorted = |ids: Vec<u64>| ids.into_iter().collect::<BTreeSet<u64>>();
        assert!(
            sorted(ids.clone()) == sorted(expected_ids),
            "rows differ: {label}"
        );
        if partitions == 1 {
            let stable = keys.windows(2).zip(ids.windows(2));
            assert!(
                stable
                    .clone()
                    .all(|(keys, ids)| keys[0] < keys[1] || ids[0] < ids[1]),
                "not stable: {label}"
            );
        }
    } else {
        assert_eq!(
            ids.iter().collect::<BTreeSet<_>>().len(),
            ids.len(),
            "{label}"
        );
    }
    drop(got);
    check_nothing_left(&space, &label).await;
    let tables = statement.report.tables();
    assert_eq!(tables.len(), 1, "{label}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agrees_with_stock_at_every_budget() {
    for seed in 1..40 {
        for memory_bytes in [1 << 30, 64 << 20, 8 << 20, 1 << 20] {
            check_against_stock(seed * 7919, memory_bytes, 12_000, None).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_agree_with_stock_at_every_budget() {
    for seed in 1..30 {
        for fetch in [1, 10, 3000, 11_000, 100_000] {
            for memory_bytes in [1 << 30, 8 << 20, 1 << 20] {
                check_against_stock(seed * 104_729, memory_bytes, 12_000, Some(fetch)).await;
            }
        }
    }
}

/// Rows of a long unique key of so many bytes, at least 48.
fn wide(rows: usize, partitions: usize, key_bytes: usize) -> (Data, LexOrdering) {
    let padding = "0".repeat(key_bytes - 32);
    let mut random = Random(42);
    let mut data = Data::random(&mut random, &[6, 0], 1, partitions);
    let schema = Arc::clone(&data.schema);
    for (index, partition) in data.partitions.iter_mut().enumerate() {
        partition.clear();
        for start in (0..rows).step_by(1000) {
            let len = 1000.min(rows - start);
            let texts: Vec<String> = (0..len)
                .map(|_| format!("{:016x}{:016x}{padding}", random.next(), random.next()))
                .collect();
            let base = (index * rows + start) as u64;
            partition.push(
                RecordBatch::try_new(
                    Arc::clone(&schema),
                    vec![
                        Arc::new(StringArray::from(texts)),
                        Arc::new(Int64Array::from_iter_values((0..len).map(|v| v as i64))),
                        Arc::new(UInt64Array::from_iter_values(base..base + len as u64)),
                    ],
                )
                .unwrap(),
            );
        }
    }
    let expr = Arc::new(Column::new("c0", 0)) as PhysicalExprRef;
    let ordering = LexOrdering::new([PhysicalSortExpr::new(expr, SortOptions::default())]).unwrap();
    (data, ordering)
}

async fn check_spills(memory_bytes: u64, rows: usize, fetch: Option<usize>) -> (u64, u64) {
    check_wide(memory_bytes, rows, fetch, 48).await
}

async fn check_wide(
    memory_bytes: u64,
    rows: usize,
    fetch: Option<usize>,
    key_bytes: usize,
) -> (u64, u64) {
    let partitions = if memory_bytes < 8 << 20 { 1 } else { 2 };
    let (data, ordering) = wide(rows / partitions, partitions, key_bytes);
    let space = open(memory_bytes);
    let (task, statement) = context(&space, 1024);
    let mut stream =
        datafusion::physical_plan::execute_stream(ours(&data, &ordering, fetch), task).unwrap();
    let mut count = 0;
    let mut last: Option<String> = None;
    while let Some(batch) = stream.next().await {
        let batch = batch.unwrap();
        count += batch.num_rows();
        let texts = batch
            .column(0)
            .as_any()
            .downcast_ref::<StringArray>()
            .unwrap();
        for text in texts.iter().flatten() {
            assert!(last.as_deref().is_none_or(|last| last <= text));
            last = Some(text.to_owned());
        }
    }
    drop(stream);
    assert_eq!(count, data.rows().min(fetch.unwrap_or(usize::MAX)));
    let peak = space.counters().peak_bytes;
    assert!(
        peak <= memory_bytes,
        "peak of {peak} bytes with {memory_bytes}"
    );
    check_nothing_left(&space, "wide").await;
    // A sort that a limit ends is dropped by its task, its account last of all; what the report
    // would hold on to would stay.
    wait_until("no account is held", || statement.account.holders() == 1).await;
    let table = statement.report.tables().remove(0);
    (table.disk_bytes_written, table.passes)
}

/// What such a sort without a limit writes at least, however fast the disk is: when the last merge
/// begins, all rows are in pages but for the few that a partition gave away early.
fn beyond_memory(memory_bytes: u64, rows: usize, key_bytes: usize) -> u64 {
    let row_bytes = key_bytes + size_of::<i64>() + size_of::<u64>();
    (rows * row_bytes) as u64 - memory_bytes - memory_bytes / 16
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sort_larger_than_memory_spills_and_stays_within_it() {
    let (written, _) = check_spills(8 << 20, 200_000, None).await;
    let least = beyond_memory(8 << 20, 200_000, 48);
    assert!(written >= least, "only {written} bytes written of {least}");
    let (written, passes) = check_spills(1 << 20, 100_000, None).await;
    let least = beyond_memory(1 << 20, 100_000, 48);
    assert!(written >= least, "only {written} bytes written of {least}");
    assert!(passes > 2, "one merge was enough");
    let (written, _) = check_spills(1 << 30, 100_000, None).await;
    assert_eq!(written, 0);
}

/// A merge of a whole batch of such rows would take more than there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_rows_sort_at_every_budget() {
    for (memory_bytes, rows) in [(64 << 20, 40_000), (20 << 20, 20_000), (8 << 20, 10_000)] {
        for fetch in [None, Some(rows * 3 / 4)] {
            let (written, _) = check_wide(memory_bytes, rows, fetch, 4096).await;
            // Partitions of half of the rows reach no limit of three quarters.
            let least = beyond_memory(memory_bytes, rows, 4096);
            assert!(written >= least, "only {written} bytes written of {least}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_pages_only_what_it_must() {
    let (written, _) = check_spills(8 << 20, 200_000, Some(100)).await;
    assert_eq!(written, 0, "a small limit needs no page");
    // Neither partition reaches the limit.
    let (written, _) = check_spills(8 << 20, 200_000, Some(150_000)).await;
    let least = beyond_memory(8 << 20, 200_000, 48);
    assert!(written >= least, "only {written} bytes written of {least}");
}

#[tokio::test]
async fn a_budget_below_the_minimum_is_refused_before_work_starts() {
    let (data, ordering) = wide(1000, 2, 48);
    let space = open(256 << 10);
    let (task, _) = context(&space, 1024);
    let error = ours(&data, &ordering, None)
        .execute(0, task)
        .err()
        .expect("must be refused");
    let found = find_space_error(&error).expect("a typed error");
    assert!(
        matches!(*found, mayfly_space::Error::MinimumNotMet { .. }),
        "{error}"
    );
}

/// As many as a server of 256 connections runs at a time.
#[tokio::test]
async fn many_sorts_share_a_budget_that_few_would_claim() {
    let (data, ordering) = wide(100, 1, 48);
    let space = open(1 << 30);
    let mut sorts = Vec::new();
    for _ in 0..512 {
        let (task, _) = context(&space, 1024);
        sorts.push(ours(&data, &ordering, None).execute(0, task).unwrap());
    }
    for mut sort in sorts {
        assert_eq!(sort.next().await.unwrap().unwrap().num_rows(), 100);
    }
    check_nothing_left(&space, "many").await;
}

#[tokio::test]
async fn dropping_the_stream_frees_everything() {
    let (data, ordering) = wide(50_000, 1, 48);
    let space = open(4 << 20);
    for taken in [0, 1, 3] {
        let (task, _) = context(&space, 1024);
        let mut stream = ours(&data, &ordering, None).execute(0, task).unwrap();
        for _ in 0..taken {
            stream.next().await.unwrap().unwrap();
        }
        drop(stream);
        check_nothing_left(&space, "dropped").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_is_typed_and_leaves_nothing() {
    let (data, ordering) = wide(20_000, 1, 48);
    let body = async |space: &Space, fault: Fault<'_>| {
        let (task, _) = context(space, 512);
        let plan = ours(&data, &ordering, None);
        fault.arm();
        collect(plan, task).await
    };
    let check = |batches: Vec<RecordBatch>, label: &str| {
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(rows, data.rows(), "{label}");
    };
    with_every_fault(1 << 20, |n| n + 1 + n / 8, body, check).await;
}
