use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::Int64Type;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow::util::pretty::pretty_format_batches;
use datafusion::catalog::MemTable;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use mayfly_space::{AccountOptions, Faults, Operation, Space, SpaceOptions};
use mayfly_table::{Column, Table};
use mayfly_types::{BlobSize, ColumnType};

use crate::{StatementContext, TableSource, collect_into, find_space_error, install, unspillable};

/// All kinds of join.
pub(crate) const JOIN_KINDS: [JoinType; 10] = [
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

pub(crate) fn open(memory_bytes: u64) -> Space {
    Space::open(SpaceOptions {
        memory_bytes,
        ..SpaceOptions::default()
    })
    .unwrap()
}

/// How many nodes of a plan are of a kind.
pub(crate) fn count_nodes(
    plan: &Arc<dyn ExecutionPlan>,
    is_one: impl Fn(&Arc<dyn ExecutionPlan>) -> bool,
) -> usize {
    let mut count = 0;
    let counted = plan.apply(|node| {
        count += usize::from(is_one(node));
        Ok(TreeNodeRecursion::Continue)
    });
    counted.unwrap();
    count
}

/// The seed of random tests: `MAYFLY_RANDOM_SEED`, or this one.
pub(crate) fn seed_or(seed: u64) -> u64 {
    let given = std::env::var("MAYFLY_RANDOM_SEED").ok();
    given.and_then(|given| given.parse().ok()).unwrap_or(seed)
}

pub(crate) fn session(space: &Space, config: SessionConfig) -> SessionContext {
    let builder = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config);
    SessionContext::new_with_state(install(builder, space).unwrap().build())
}

pub(crate) fn config() -> SessionConfig {
    SessionConfig::new().with_target_partitions(2)
}

/// Two partitions of rows `(k, v, s)` with `k` in a scattered order.
fn rows(count: i64) -> MemTable {
    let batch = |range: std::ops::Range<i64>| {
        let scattered = |i: i64| i.wrapping_mul(7_919) % count;
        let columns: Vec<(&str, ArrayRef)> = vec![
            (
                "k",
                Arc::new(Int64Array::from_iter_values(range.clone().map(scattered))),
            ),
            (
                "v",
                Arc::new(Int64Array::from_iter_values(range.clone().map(|i| i % 100))),
            ),
            (
                "s",
                Arc::new(StringViewArray::from_iter_values(
                    range.map(|i| format!("a text that is not inline, number {i}")),
                )),
            ),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let half = count / 2;
    let partition = |from: i64, to: i64| -> Vec<RecordBatch> {
        (from..to)
            .step_by(1000)
            .map(|start| batch(start..to.min(start + 1000)))
            .collect()
    };
    let partitions = vec![partition(0, half), partition(half, count)];
    MemTable::try_new(partitions[0][0].schema(), partitions).unwrap()
}

/// Fails the n-th operation of one kind.
struct FailNth {
    operation: Operation,
    left: AtomicU64,
}

impl FailNth {
    /// Fails none yet.
    fn new(operation: Operation) -> Self {
        Self {
            operation,
            left: AtomicU64::new(0),
        }
    }

    /// Lets the n-th operation from now on fail.
    fn fail(&self, n: u64) {
        self.left.store(n, Ordering::Relaxed);
    }

    /// Fails no other; tells whether there was an n-th one.
    fn end(&self) -> bool {
        self.left.swap(0, Ordering::Relaxed) as i64 <= 0
    }
}

impl Faults for FailNth {
    fn before(&self, operation: Operation) -> std::io::Result<()> {
        if operation == self.operation && self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            return Err(std::io::Error::other("injected"));
        }
        Ok(())
    }
}

/// Arms the fault of a run, once what it needs is made.
pub(crate) struct Fault<'a> {
    faults: &'a FailNth,
    n: u64,
}

impl Fault<'_> {
    pub(crate) fn arm(&self) {
        self.faults.fail(self.n);
    }
}

/// Runs `body` in a space of its own for each kind of fault and each `n`, whose n-th operation
/// fails, for growing `n` until none does. What ends well is given to `check`; an error must be
/// typed, and nothing may be left. The number of runs that failed.
pub(crate) async fn with_every_fault<T>(
    memory_bytes: u64,
    next: impl Fn(u64) -> u64,
    body: impl AsyncFn(&Space, Fault<'_>) -> Result<T>,
    check: impl Fn(T, &str),
) -> u64 {
    let mut failures = 0;
    for operation in [
        Operation::Grant,
        Operation::Write,
        Operation::Read,
        Operation::Extend,
    ] {
        let mut n = 1;
        loop {
            let faults = Arc::new(FailNth::new(operation));
            let space = Space::open(SpaceOptions {
                memory_bytes,
                faults: Some(Arc::clone(&faults) as Arc<dyn Faults>),
                ..SpaceOptions::default()
            })
            .unwrap();
            let fault = Fault { faults: &faults, n };
            let result = body(&space, fault).await;
            let has_fired = faults.end();
            let label = format!("{operation:?} {n}");
            match result {
                Ok(answer) => check(answer, &label),
                Err(error) => {
                    assert!(find_space_error(&error).is_some(), "{label}: {error}");
                    failures += 1;
                }
            }
            check_nothing_left(&space, &label).await;
            if !has_fired {
                break;
            }
            n = next(n);
        }
        println!("{operation:?}: up to the {n}-th, {failures} failures in all");
    }
    failures
}

async fn run(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    context.sql(sql).await?.collect().await
}

/// Waits for what tasks do that have been told to end; the time limit only keeps a defect from
/// hanging the tests.
pub(crate) async fn wait_until(label: &str, is_so: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed().as_secs() < 60, "not so: {label}");
        tokio::task::yield_now().await;
    }
}

/// Looks in a row at which nothing is in use: what is in use is a sum of parts that change one
/// after the other, and may seem to be nothing while a task that ends moves its last bytes.
const QUIET_LOOKS: u32 = 3;

/// Waits until nothing of a space is in use: tasks that were told to end do so in their own time.
pub(crate) async fn check_nothing_left(space: &Space, label: &str) {
    let is_used = || {
        let counters = space.counters();
        let held = [
            counters.pinned_bytes,
            counters.reserved_bytes,
            counters.resident_bytes,
        ];
        space.memory_used_bytes() > 0 || held != [0; 3]
    };
    for _ in 0..QUIET_LOOKS {
        wait_until(&format!("nothing left: {label}"), || !is_used()).await;
        tokio::task::yield_now().await;
    }
    space.verify();
}

/// The rows as texts, in order; of rows without columns their number.
pub(crate) fn sorted(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::new().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter();
        let texts = columns.map(|column| ArrayFormatter::try_new(column, &options).unwrap());
        let texts: Vec<_> = texts.collect();
        rows.extend((0..batch.num_rows()).map(|row| {
            let values = texts.iter().map(|column| column.value(row).to_string());
            values.collect::<Vec<_>>().join("|")
        }));
    }
    rows.sort_unstable();
    rows
}

/// Runs a query stock and in a space, and compares the rows in their order.
async fn check(memory_bytes: u64, config: SessionConfig, sql: &str) {
    let stock = SessionContext::new();
    let space = open(memory_bytes);
    let ours = session(&space, config);
    for context in [&stock, &ours] {
        context.register_table("t", Arc::new(rows(60_000))).unwrap();
        context.register_table("u", Arc::new(rows(3_000))).unwrap();
    }
    let expected = run(&stock, sql).await.unwrap();
    let got = run(&ours, sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let text = |batches: &[RecordBatch]| pretty_format_batches(batches).unwrap().to_string();
    assert!(
        text(&got) == text(&expected),
        "{sql} at {memory_bytes} bytes"
    );
    drop((got, ours));
    check_nothing_left(&space, sql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recursion_gives_the_rows_of_every_level() {
    for memory_bytes in [64 << 20, 4 << 20] {
        for sql in [
            // Levels of one row, of few, of as many as the table has.
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5000) \
             SELECT i FROM n ORDER BY i",
            "WITH RECURSIVE n AS (SELECT k AS i, s FROM u UNION ALL \
             SELECT i + 3000, s FROM n WHERE i < 9000) SELECT i, s FROM n ORDER BY i",
            "WITH RECURSIVE n AS (SELECT k AS i, s FROM t UNION ALL \
             SELECT i + 60000, s FROM n WHERE i < 120000) SELECT COUNT(*), SUM(i), MAX(s) FROM n",
            // Rows that come again; a term with a table; one of two recursions in the other.
            "WITH RECURSIVE n AS (SELECT k % 10 AS i FROM u UNION SELECT (i * 7 + 1) % 1000 FROM n) \
             SELECT i FROM n ORDER BY i",
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL \
             SELECT u.k + 1 FROM u JOIN n ON u.k = n.i WHERE u.k < 100) SELECT i FROM n ORDER BY i",
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 20), \
             m AS (SELECT i AS j FROM n UNION ALL SELECT j + 20 FROM m WHERE j < 100) \
             SELECT n.i, m.j FROM n JOIN m ON n.i = m.j - 60 ORDER BY n.i",
        ] {
            check(memory_bytes, config(), sql).await;
        }
    }
}

#[tokio::test]
async fn a_recursion_ends_where_its_statement_says() {
    let space = open(16 << 20);
    let account = space.root().child("statement", AccountOptions::default());
    let context = StatementContext {
        recursion_depth_max: Some(10),
        ..StatementContext::new(account)
    };
    let ours = session(&space, config().with_extension(Arc::new(context)));
    let levels = |last: u32| {
        format!(
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < {last}) \
             SELECT MAX(i) FROM n"
        )
    };
    run(&ours, &levels(10)).await.unwrap();
    let error = run(&ours, &levels(11)).await.unwrap_err();
    assert!(error.to_string().contains("after 11 runs"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stock_operators_share_the_budget() {
    for memory_bytes in [1 << 30, 64 << 20, 16 << 20] {
        for sql in [
            "SELECT t.k, u.s FROM t JOIN u ON t.k = u.k ORDER BY t.k, u.s",
            "SELECT k, row_number() OVER (PARTITION BY v ORDER BY k) AS n FROM t ORDER BY k",
            "SELECT v, sum(k) AS n FROM t GROUP BY v ORDER BY v",
            "SELECT DISTINCT v FROM t UNION SELECT k FROM u ORDER BY 1",
            "SELECT k, s FROM t ORDER BY s DESC LIMIT 7",
            "SELECT k FROM t ORDER BY v, k LIMIT 5 OFFSET 20000",
            "SELECT count(*) FROM t CROSS JOIN (SELECT * FROM u LIMIT 10)",
        ] {
            check(memory_bytes, config(), sql).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sort_merge_join_reads_our_sorts() {
    let mut config = config();
    config.options_mut().optimizer.prefer_hash_join = false;
    let sql = "SELECT t.k, u.v FROM t JOIN u ON t.k = u.k ORDER BY t.k, u.v";
    for memory_bytes in [1 << 30, 16 << 20] {
        check(memory_bytes, config.clone(), sql).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_constant_of_one_side_is_none_behind_an_outer_join() {
    let space = open(64 << 20);
    let context = session(&space, config());
    let all = "(VALUES (1), (2), (3), (2)) x(a)";
    let two = "(SELECT 2 AS b) y";
    for (from, expect) in [
        (
            format!("{all} LEFT JOIN {two} ON a = b"),
            [None, None, Some(2), Some(2)],
        ),
        (
            format!("{two} RIGHT JOIN {all} ON a = b"),
            [None, None, Some(2), Some(2)],
        ),
        (
            format!("{two} FULL JOIN {all} ON a = b"),
            [None, None, Some(2), Some(2)],
        ),
        (
            format!("{all} LEFT JOIN {two} ON a < b"),
            [None, None, None, Some(2)],
        ),
    ] {
        let sql = format!("SELECT b FROM {from} ORDER BY b NULLS FIRST");
        let sorted = run(&context, &sql).await.unwrap();
        let values = sorted.iter().flat_map(|batch| {
            let values = batch.column(0).as_primitive::<Int64Type>();
            values.iter().collect::<Vec<_>>()
        });
        assert_eq!(values.collect::<Vec<_>>(), expect, "{sql}");
        let sql = format!("SELECT b, COUNT(*) FROM {from} GROUP BY b");
        let groups = run(&context, &sql).await.unwrap();
        let groups: usize = groups.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(groups, 2, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_larger_than_memory_is_answered() {
    for sql in [
        "SELECT count(*), max(a.s) FROM t AS a JOIN t AS b ON a.k = b.k AND a.s <= b.s",
        "SELECT a.v, count(b.k) FROM t AS a LEFT JOIN u AS b ON a.k = b.k GROUP BY a.v ORDER BY 1",
        "SELECT count(*) FROM t WHERE k NOT IN (SELECT k FROM t WHERE v < 50)",
    ] {
        check(4 << 20, config(), sql).await;
    }
    let space = open(4 << 20);
    let context = session(&space, config());
    context.register_table("t", Arc::new(rows(1_000))).unwrap();
    let sql = "SELECT count(*) FROM t AS a JOIN t AS b ON a.k = b.k";
    let plan = context.sql(sql).await.unwrap();
    let plan = plan.create_physical_plan().await.unwrap();
    assert!(unspillable(&plan).is_empty());
}

// A join keeps the order of its right side, which a plan has left a sort out for: in memory as the
// rows stream, and short of it too. Two sorts and a join find no room for all of them in 4 MiB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_keeps_the_order_that_a_plan_counts_on() {
    let sql = "SELECT b.k, b.s, a.s FROM t AS a \
               JOIN (SELECT k, s FROM t ORDER BY k LIMIT 30000) AS b ON a.k = b.k ORDER BY b.k";
    for memory_bytes in [256 << 20, 16 << 20, 8 << 20, 6 << 20] {
        check(memory_bytes, config(), sql).await;
    }
}

fn table(space: &Space) -> Arc<Table> {
    let column = |name: &str, column_type| Column::new(name, column_type, true);
    let columns = vec![
        column("k", ColumnType::BigInt { unsigned: false }),
        column("v", ColumnType::BigInt { unsigned: false }),
        column("s", ColumnType::Text(BlobSize::Normal)),
    ];
    Arc::new(Table::new("t", columns, space.root()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_is_filled_by_a_query_and_read_by_another() {
    let space = open(16 << 20);
    let context = session(&space, config());
    context
        .register_table("source", Arc::new(rows(300_000)))
        .unwrap();
    let table = table(&space);
    let stream = context.sql("SELECT k, v, s FROM source").await.unwrap();
    let stream = stream.execute_stream().await.unwrap();
    assert_eq!(collect_into(&table, stream).await.unwrap(), 300_000);

    context
        .register_table("t", Arc::new(TableSource::new(Arc::clone(&table))))
        .unwrap();
    let number = async |sql: &str| {
        let batches = run(&context, sql).await.unwrap();
        assert_eq!(
            batches.iter().map(RecordBatch::num_rows).sum::<usize>(),
            1,
            "{sql}"
        );
        let batch = batches
            .into_iter()
            .find(|batch| batch.num_rows() == 1)
            .unwrap();
        batch.column(0).as_primitive::<Int64Type>().value(0)
    };
    assert_eq!(number("SELECT count(*) FROM t").await, 300_000);
    assert_eq!(number("SELECT sum(v) FROM t").await, 14_850_000);
    assert_eq!(
        number("SELECT count(*) FROM (SELECT k FROM t LIMIT 1234)").await,
        1234
    );
    assert_eq!(
        number("SELECT k FROM t ORDER BY k DESC LIMIT 1").await,
        299_999
    );
    assert_eq!(
        number("SELECT count(DISTINCT s) FROM t WHERE v = 7").await,
        3_000
    );

    let before = context.sql("SELECT count(v) FROM t").await.unwrap();
    let before = before.create_physical_plan().await.unwrap();
    table.truncate().unwrap();
    assert_eq!(number("SELECT count(*) FROM t").await, 0);
    let task = context.task_ctx();
    let seen = datafusion::physical_plan::collect(before, task)
        .await
        .unwrap();
    assert_eq!(
        seen[0].column(0).as_primitive::<Int64Type>().value(0),
        300_000
    );
    drop((seen, context, table));
    check_nothing_left(&space, "a snapshot").await;
}
