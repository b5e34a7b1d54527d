use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, DictionaryArray, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray, StringViewArray,
};
use arrow::util::pretty::pretty_format_batches;
use datafusion::catalog::MemTable;
use datafusion::common::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use mayfly_space::{AccountOptions, Space};

use super::WindowOperator;
use crate::sort::SortOperator;
use crate::tests::{
    self, Fault, check_nothing_left, config, count_nodes, open, seed_or, with_every_fault,
};
use crate::{StatementContext, TempTable, Why, install, planned_temp_tables};

/// A generator with a seed that every failing test prints.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        let place = self.below(list.len() as u64);
        list[usize::try_from(place).unwrap()]
    }

    fn value(&mut self, limit: u64, nulls: u64) -> Option<i64> {
        let value = i64::try_from(self.below(limit)).unwrap();
        (self.below(100) >= nulls).then_some(value)
    }
}

/// Rows `(id, g, o, i, d, f, s, t)`: `id` is unique, `g` has few values or as many as rows, `o`,
/// the days `t` and all others have NULLs and values that come again.
pub(crate) fn rows(random: &mut Random, count: usize, groups: u64, batch_rows: usize) -> MemTable {
    let nulls = [0, 10, 60][usize::try_from(random.below(3)).unwrap()];
    let mut each = |limit: u64, nulls: u64| -> Vec<Option<i64>> {
        (0..count).map(|_| random.value(limit, nulls)).collect()
    };
    let ids = Int64Array::from_iter_values((0..count as i64).map(|id| (id * 7919) % 1_000_003));
    let texts = each(50, nulls);
    let texts = texts.iter().map(|text| {
        let text = (*text)?;
        Some(match text % 3 {
            0 => format!("{text}"),
            _ => format!("a text that does not lie in its view, {text:04}"),
        })
    });
    let floats = each(1000, nulls);
    let decimals = each(100_000, nulls);
    let decimals = decimals.into_iter().map(|value| value.map(i128::from));
    let decimals = Decimal128Array::from_iter(decimals).with_precision_and_scale(12, 2);
    let days = each(400, nulls / 3);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(ids)),
        ("g", Arc::new(Int64Array::from(each(groups, 5)))),
        ("o", Arc::new(Int64Array::from(each(60, 5)))),
        ("i", Arc::new(Int64Array::from(each(1_000_000, nulls)))),
        ("d", Arc::new(decimals.unwrap())),
        (
            "f",
            Arc::new(Float64Array::from_iter(
                floats
                    .into_iter()
                    .map(|value| value.map(|value| value as f64)),
            )),
        ),
        ("s", Arc::new(StringViewArray::from_iter(texts))),
        (
            "t",
            Arc::new(Date32Array::from_iter(
                days.into_iter()
                    .map(|day| day.map(|day| i32::try_from(day).unwrap())),
            )),
        ),
    ];
    let all = RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, column)| (name, column, true)),
    )
    .unwrap();
    let batches = (0..count).step_by(batch_rows);
    let batches = batches.map(|from| all.slice(from, batch_rows.min(count - from)));
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for batch in batches {
        match random.below(2) {
            0 => one.push(batch),
            _ => other.push(batch),
        }
    }
    MemTable::try_new(all.schema(), vec![one, other]).unwrap()
}

fn session(space: &Space, batch_rows: usize) -> SessionContext {
    tests::session(space, config().with_batch_size(batch_rows))
}

pub(crate) async fn run(context: &SessionContext, sql: &str) -> Result<String> {
    let batches = context.sql(sql).await?.collect().await?;
    Ok(pretty_format_batches(&batches)?.to_string())
}

pub(crate) fn count_of(plan: &Arc<dyn ExecutionPlan>) -> usize {
    count_nodes(plan, |node| node.is::<WindowOperator>())
}

pub(crate) async fn plan(context: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    let frame = context.sql(sql).await.unwrap();
    frame.create_physical_plan().await.unwrap()
}

/// Functions of the place of a row, and of other rows: the order has to be that of the rows.
const PLACES: &[&str] = &[
    "ROW_NUMBER()",
    "LAG(i)",
    "LAG(s, 3, 'none')",
    "LEAD(d, 2)",
    "LEAD(s, 1)",
    "LAG(f, 0)",
    "LEAD(i, 100, -1)",
    "LAG(t, 1000)",
    "NTILE(7)",
    "NTILE(1000)",
];

/// Functions of peers: the same for all of them.
const RANKS: &[&str] = &["RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()"];

/// Values of rows of the frame: the order has to be that of the rows.
const VALUES: &[&str] = &[
    "FIRST_VALUE(s)",
    "FIRST_VALUE(i)",
    "LAST_VALUE(d)",
    "LAST_VALUE(s)",
    "NTH_VALUE(i, 3)",
    "NTH_VALUE(s, 40)",
];

const AGGREGATES: &[&str] = &[
    "COUNT(*)",
    "COUNT(s)",
    "SUM(i)",
    "SUM(d)",
    "SUM(f)",
    "AVG(d)",
    "AVG(f)",
    "MIN(i)",
    "MAX(s)",
    "MIN(s)",
    "MAX(t)",
    "BIT_XOR(i)",
];

/// Those of DataFusion that take no rows back, or round while they do.
const GROWING: &[&str] = &["BIT_AND(i)", "BIT_OR(i)", "STDDEV(f)", "VAR_POP(f)"];

const ENDS: &[(&str, &str)] = &[
    ("UNBOUNDED PRECEDING", "CURRENT ROW"),
    ("UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING"),
    ("UNBOUNDED PRECEDING", "{} PRECEDING"),
    ("UNBOUNDED PRECEDING", "{} FOLLOWING"),
    ("CURRENT ROW", "CURRENT ROW"),
    ("CURRENT ROW", "UNBOUNDED FOLLOWING"),
    ("CURRENT ROW", "{} FOLLOWING"),
    ("{} PRECEDING", "CURRENT ROW"),
    ("{} PRECEDING", "{} FOLLOWING"),
    ("{} PRECEDING", "UNBOUNDED FOLLOWING"),
    ("{} FOLLOWING", "UNBOUNDED FOLLOWING"),
    ("{+} PRECEDING", "{} PRECEDING"),
    ("{} FOLLOWING", "{+} FOLLOWING"),
];

/// A function over a window, as SQL. Variances depend on the order of rows, in their last digits.
fn window(random: &mut Random) -> String {
    let window = call(random);
    match window.starts_with("STDDEV") || window.starts_with("VAR") {
        true => format!("ROUND({window}, 6)"),
        false => window,
    }
}

fn call(random: &mut Random) -> String {
    let parts = random.pick(&[
        "",
        "PARTITION BY g ",
        "PARTITION BY g, s ",
        "PARTITION BY o % 7 ",
    ]);
    let descends = random.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
    match random.below(6) {
        0 => {
            let function = random.pick(PLACES);
            format!("{function} OVER ({parts}ORDER BY o{descends}, id)")
        }
        1 => {
            let function = random.pick(RANKS);
            let order = random.pick(&["", "ORDER BY o", "ORDER BY s, o", "ORDER BY t DESC, i + o"]);
            format!("{function} OVER ({parts}{order})")
        }
        2 => {
            let function = match random.below(2) {
                0 => random.pick(AGGREGATES),
                _ => random.pick(GROWING),
            };
            format!("{function} OVER ({parts})")
        }
        3 | 4 => {
            let (start, end) = ENDS[usize::try_from(random.below(ENDS.len() as u64)).unwrap()];
            let function = match random.below(3) {
                0 => random.pick(VALUES),
                1 if start == "UNBOUNDED PRECEDING" => random.pick(GROWING),
                _ => random.pick(AGGREGATES),
            };
            let distance = random.pick(&["0", "1", "2", "30", "5000"]);
            let more = random.pick(&["5000", "6000"]);
            let start = start.replace("{}", distance).replace("{+}", more);
            let end = end.replace("{}", distance).replace("{+}", more);
            format!(
                "{function} OVER ({parts}ORDER BY o{descends}, id ROWS BETWEEN {start} AND {end})"
            )
        }
        _ => {
            let (start, end) = ENDS[usize::try_from(random.below(ENDS.len() as u64)).unwrap()];
            let function = match start {
                "UNBOUNDED PRECEDING" if random.below(3) == 0 => random.pick(GROWING),
                _ => random.pick(AGGREGATES),
            };
            let (key, distance, more) = match random.below(4) {
                0 => ("o", "0", "3"),
                1 => ("t", "INTERVAL '10' DAY", "INTERVAL '2' MONTH"),
                2 => ("d", "20.5", "100"),
                _ => ("o", "2", "40"),
            };
            let start = start.replace("{}", distance).replace("{+}", more);
            let end = end.replace("{}", distance).replace("{+}", more);
            format!(
                "{function} OVER ({parts}ORDER BY {key}{descends} RANGE BETWEEN {start} AND {end})"
            )
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_are_those_of_datafusion() {
    let seed = seed_or(0x5EED_0022);
    let cases = if std::env::var("MAYFLY_FULL").is_ok() {
        2000
    } else {
        60
    };
    for case in 0..cases {
        let random = &mut Random(seed + case * 0x9E37_79B9);
        random.below(2);
        let count = [1, 2, 100, 3000, 9000][usize::try_from(random.below(5)).unwrap()];
        let groups = [1, 3, 40, 1_000_000][usize::try_from(random.below(4)).unwrap()];
        let batch_rows = [1, 7, 100, 8192][usize::try_from(random.below(4)).unwrap()];
        let batch_rows = batch_rows.max(count / 500);
        let table = Arc::new(rows(random, count, groups, batch_rows));
        let functions = 1 + random.below(4);
        let functions: Vec<String> = (0..functions).map(|_| window(random)).collect();
        let sql = functions.iter().enumerate();
        let sql = sql.map(|(number, function)| format!("{function} AS r{number}"));
        let sql = sql.collect::<Vec<_>>().join(", ");
        let sql = format!("SELECT id, {sql} FROM r ORDER BY id");
        let label = format!("seed {seed}, case {case}, {count} rows, {groups} groups: {sql}");
        // In one batch: where the end of a RANGE frame precedes the row, DataFusion answers rows
        // with NULL keys before it has seen all of them.
        let config = SessionConfig::new().with_batch_size(1 << 20);
        let stock = SessionContext::new_with_config(config.with_target_partitions(1));
        stock.register_table("r", table.clone()).unwrap();
        let expected = run(&stock, &sql).await;
        for memory_bytes in [1 << 30, 4 << 20] {
            let space = open(memory_bytes);
            let ours = session(
                &space,
                [8192, 513, 61][usize::try_from(random.below(3)).unwrap()],
            );
            ours.register_table("r", table.clone()).unwrap();
            assert!(count_of(&plan(&ours, &sql).await) > 0, "{label}");
            let got = run(&ours, &sql).await;
            match (&expected, got) {
                (Ok(expected), Ok(got)) => {
                    assert!(
                        got == *expected,
                        "{label}\nat {memory_bytes}:\n{}",
                        differ(expected, &got)
                    );
                }
                (Err(_), Err(_)) => {}
                (Ok(_), Err(error)) => panic!("{label} at {memory_bytes}: {error}"),
                (Err(error), Ok(_)) => panic!("{label}: stock fails with {error}"),
            }
            drop(ours);
            check_nothing_left(&space, &label).await;
        }
    }
}

/// The first lines that differ.
pub(crate) fn differ(expected: &str, got: &str) -> String {
    let lines = expected.lines().zip(got.lines());
    let differ = lines.filter(|(expected, got)| expected != got).take(5);
    let differ = differ.map(|(expected, got)| format!("expected {expected}\n     got {got}"));
    differ.collect::<Vec<_>>().join("\n")
}

/// Rows `(id, g, v, s)` of some partitions, made as they are read.
const SERIES: &str = "(SELECT value AS id, value % 3 AS g, (value * 7919) % 100003 AS v, \
     'a text of some length, ' || ((value * 31) % 1009) AS s FROM range(300000))";

/// Windows over few long partitions, and over one; each as what can be told of all its results.
const LONG: &[&str] = &[
    "SELECT COUNT(*), MIN(a), MAX(s) FROM (SELECT s, AVG(v) OVER () AS a FROM {})",
    "SELECT MAX(m), MIN(m), SUM(LENGTH(s)) FROM \
     (SELECT s, MAX(s) OVER (PARTITION BY g) AS m FROM {})",
    "SELECT ROUND(SUM(c), 3), MAX(s) FROM (SELECT s, CUME_DIST() OVER (PARTITION BY g ORDER BY v) AS c FROM {})",
    "SELECT SUM(n), SUM(l), MAX(s) FROM (SELECT s, NTILE(1000) OVER (ORDER BY id) AS n, \
     LEAD(v, 70000) OVER (ORDER BY id) AS l FROM {})",
    "SELECT SUM(a), SUM(b), MAX(s) FROM (SELECT s, \
     SUM(v) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 40000 PRECEDING AND 40000 FOLLOWING) AS a, \
     COUNT(*) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 5 FOLLOWING AND UNBOUNDED FOLLOWING) AS b \
     FROM {})",
    "SELECT SUM(a), MAX(f), MAX(s) FROM (SELECT s, \
     SUM(v) OVER (ORDER BY id RANGE BETWEEN 100000 PRECEDING AND 1000 PRECEDING) AS a, \
     FIRST_VALUE(s) OVER (ORDER BY id RANGE BETWEEN 100000 PRECEDING AND CURRENT ROW) AS f FROM {})",
];

/// A session of a space whose statement has a report that can be read.
fn statement_in(space: &Space) -> (SessionContext, Arc<StatementContext>) {
    let account = space.root().child("statement", AccountOptions::default());
    let statement = Arc::new(StatementContext::new(account));
    let config = SessionConfig::new()
        .with_target_partitions(2)
        .with_extension(Arc::clone(&statement));
    let builder = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config);
    let session = SessionContext::new_with_state(install(builder, space).unwrap().build());
    (session, statement)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_larger_than_memory_are_pages() {
    let stock = SessionContext::new();
    for sql in LONG {
        let sql = sql.replace("{}", SERIES);
        let expected = run(&stock, &sql).await.unwrap();
        let space = open(4 << 20);
        let (ours, statement) = statement_in(&space);
        let got = run(&ours, &sql).await;
        assert_eq!(
            got.unwrap_or_else(|error| panic!("{sql}: {error}")),
            expected,
            "{sql}"
        );
        let tables = statement.report.tables();
        let is_window = |table: &&TempTable| table.why == Why::Window;
        let window = tables
            .iter()
            .find(is_window)
            .unwrap_or_else(|| panic!("none: {sql}"));
        assert!(window.on_disk && window.rows > 50_000, "{sql}: {window:?}");
        assert!(window.memory_bytes <= 4 << 20, "{sql}: {window:?}");
        drop((ours, statement));
        check_nothing_left(&space, &sql).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_looks_at_rows_before_keeps_few_rows() {
    for function in [
        "ROW_NUMBER() OVER (PARTITION BY g ORDER BY id)",
        "RANK() OVER (ORDER BY v)",
        "SUM(v) OVER (PARTITION BY g ORDER BY id)",
        "FIRST_VALUE(s) OVER (PARTITION BY g ORDER BY id)",
        "NTH_VALUE(s, 5) OVER (ORDER BY id)",
        "LAG(s, 100) OVER (PARTITION BY g ORDER BY id)",
        "MIN(v) OVER (ORDER BY id ROWS BETWEEN 300 PRECEDING AND 2 FOLLOWING)",
        // As many partitions as rows.
        "SUM(v) OVER (PARTITION BY id)",
        "LAST_VALUE(s) OVER (PARTITION BY id ORDER BY v)",
    ] {
        let sql = format!("SELECT COUNT(w), MAX(w) FROM (SELECT {function} AS w FROM {SERIES})");
        let space = open(4 << 20);
        let (ours, statement) = statement_in(&space);
        let got = run(&ours, &sql).await;
        let expected = run(&SessionContext::new(), &sql).await.unwrap();
        assert_eq!(
            got.unwrap_or_else(|error| panic!("{sql}: {error}")),
            expected,
            "{sql}"
        );
        let tables = statement.report.tables();
        let written = tables.iter().filter(|table| table.why == Why::Window);
        let written: u64 = written.map(|table| table.disk_bytes_written).sum();
        assert_eq!(written, 0, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_of_the_same_partitions_are_one_operator() {
    let space = open(64 << 20);
    let context = session(&space, 8192);
    let table = rows(&mut Random(1), 100, 3, 100);
    context.register_table("r", Arc::new(table)).unwrap();
    for (list, operators, tables) in [
        // Orders and frames may differ; the partitions may not, nor the order of their rows.
        (
            "*, RANK() OVER (PARTITION BY g ORDER BY o), SUM(i) OVER (PARTITION BY g)",
            1,
            1,
        ),
        (
            "*, SUM(i) OVER (ORDER BY o), ROW_NUMBER() OVER (ORDER BY o, id), MAX(s) OVER ()",
            1,
            1,
        ),
        (
            "SUM(i) OVER (PARTITION BY g, o), SUM(i) OVER (PARTITION BY g)",
            2,
            2,
        ),
        (
            "RANK() OVER (PARTITION BY g ORDER BY o), LAG(i) OVER (PARTITION BY g ORDER BY o)",
            1,
            0,
        ),
    ] {
        let sql = format!("SELECT {list} FROM r");
        let plan = plan(&context, &sql).await;
        let shown = displayable(plan.as_ref()).indent(false).to_string();
        assert_eq!(count_of(&plan), operators, "{sql}\n{shown}");
        let planned = planned_temp_tables(&plan);
        let windows = planned.iter().filter(|table| table.why == Why::Window);
        assert_eq!(windows.count(), tables, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_left_to_datafusion_still_runs() {
    let space = open(64 << 20);
    let (context, stock) = (session(&space, 8192), SessionContext::new());
    let table = Arc::new(rows(&mut Random(7), 500, 3, 100));
    for context in [&context, &stock] {
        context.register_table("r", table.clone()).unwrap();
    }
    for window in [
        "LAG(i) IGNORE NULLS OVER (ORDER BY id)",
        "SUM(i) FILTER (WHERE o > 5) OVER (ORDER BY id)",
        "COUNT(DISTINCT o) OVER (PARTITION BY g)",
        "SUM(i) OVER (ORDER BY o GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    ] {
        let sql = format!("SELECT id, {window} AS w FROM r ORDER BY id");
        assert_eq!(count_of(&plan(&context, &sql).await), 0, "{sql}");
        let expected = run(&stock, &sql).await.unwrap();
        assert_eq!(run(&context, &sql).await.unwrap(), expected, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reversed_window_looks_the_other_way() {
    // The second window is answered in the order of the first one, from its end.
    let sql = "SELECT id, ROW_NUMBER() OVER (ORDER BY id) AS n, LAG(id) OVER (ORDER BY id DESC) AS l, \
               NTH_VALUE(id, 2) OVER (ORDER BY id DESC) AS v, FIRST_VALUE(id) OVER (ORDER BY id DESC) AS f \
               FROM range_of_ids ORDER BY id";
    let space = open(64 << 20);
    let context = session(&space, 8192);
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5));
    let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
    context
        .register_table("range_of_ids", Arc::new(table))
        .unwrap();
    let got = run(&context, sql).await.unwrap();
    let cells: Vec<String> = { got.lines().skip(3).take(5) }
        .map(|line| {
            line.split('|')
                .map(str::trim)
                .collect::<Vec<_>>()
                .join(" ")
                .trim()
                .to_owned()
        })
        .collect();
    assert_eq!(
        cells,
        [
            "0 1 1 3 4",
            "1 2 2 3 4",
            "2 3 3 3 4",
            "3 4 4 3 4",
            "4 5   4"
        ]
    );
}

/// Whatever fails, and whenever, gives a typed error, and nothing is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_are_typed_and_leave_nothing() {
    let sql = format!(
        "SELECT COUNT(*), SUM(a), MAX(m), SUM(r) FROM (SELECT MAX(s) OVER (PARTITION BY g) AS m, \
         SUM(v) OVER (PARTITION BY g ORDER BY id ROWS BETWEEN 9000 PRECEDING AND CURRENT ROW) AS a, \
         RANK() OVER (PARTITION BY g ORDER BY id) AS r FROM {SERIES} WHERE id < 100000)"
    );
    let expected = run(&SessionContext::new(), &sql).await.unwrap();
    let body = async |space: &Space, fault: Fault<'_>| {
        let context = session(space, 8192);
        fault.arm();
        run(&context, &sql).await
    };
    let check = |got, label: &str| assert_eq!(got, expected, "{label}");
    let failures = with_every_fault(2 << 20, |n| 2 * n + 1, body, check).await;
    assert!(failures > 0, "no fault has failed the statement");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bits_leave_sliding_frames() {
    let space = open(64 << 20);
    let context = session(&space, 100);
    let table = rows(&mut Random(3), 700, 3, 60);
    context.register_table("r", Arc::new(table)).unwrap();
    for function in ["BIT_AND", "BIT_OR"] {
        let slides = format!(
            "SELECT n, {function}(i) OVER (ORDER BY n ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING) AS b \
             FROM (SELECT i, ROW_NUMBER() OVER (ORDER BY id) AS n FROM r) ORDER BY n"
        );
        let joined = format!(
            "WITH x AS (SELECT i, ROW_NUMBER() OVER (ORDER BY id) AS n FROM r) \
             SELECT x.n, {function}(y.i) AS b FROM x JOIN x y \
             ON CAST(y.n AS BIGINT) BETWEEN CAST(x.n AS BIGINT) - 3 AND CAST(x.n AS BIGINT) + 2 \
             GROUP BY x.n ORDER BY x.n"
        );
        let expected = run(&context, &joined).await.unwrap();
        assert_eq!(
            run(&context, &slides).await.unwrap(),
            expected,
            "{function}"
        );
    }
}

/// A statement that is dropped in the middle leaves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_window_leaves_nothing() {
    for sql in LONG {
        let inner = sql.split_once("FROM (").map_or(*sql, |(_, inner)| inner);
        let inner = inner
            .strip_suffix(')')
            .unwrap_or(inner)
            .replace("{}", SERIES);
        let space = open(4 << 20);
        let context = session(&space, 1024);
        let mut stream = context
            .sql(&inner)
            .await
            .unwrap()
            .execute_stream()
            .await
            .unwrap();
        for _ in 0..3 {
            stream.next().await.unwrap().unwrap();
        }
        drop((stream, context));
        check_nothing_left(&space, &inner).await;
    }
}

/// Sorts of a plan that sort more than one partition each.
fn shared_sorts(plan: &Arc<dyn ExecutionPlan>) -> usize {
    count_nodes(plan, |node| {
        node.is::<SortOperator>() && node.output_partitioning().partition_count() > 1
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_partition_is_sorted_by_all_tasks() {
    let space = open(64 << 20);
    let context = session(&space, 8192);
    let table = rows(&mut Random(9), 20_000, 40, 500);
    context.register_table("r", Arc::new(table)).unwrap();
    let stock = SessionContext::new();
    let table = context.table_provider("r").await.unwrap();
    stock.register_table("r", table).unwrap();
    for (columns, condition, exchanges) in [
        ("RANK() OVER (PARTITION BY g ORDER BY id) AS w", "", 1),
        (
            "RANK() OVER (PARTITION BY g ORDER BY id) AS w",
            "WHERE g = 5",
            0,
        ),
        (
            "SUM(o) OVER (PARTITION BY g ORDER BY id) AS w",
            "WHERE g = 5",
            0,
        ),
        (
            "RANK() OVER (PARTITION BY g, s ORDER BY id) AS w",
            "WHERE g = 5",
            1,
        ),
        // These need the end of the partition, and DataFusion hands them out by hash.
        (
            "NTILE(3) OVER (PARTITION BY g ORDER BY id) AS w",
            "WHERE g = 5",
            1,
        ),
        (
            "RANK() OVER (PARTITION BY g ORDER BY id) AS w, MAX(o) OVER (PARTITION BY g) AS m",
            "WHERE g = 5",
            1,
        ),
    ] {
        let sql = format!("SELECT id, {columns} FROM r {condition}");
        let plan = plan(&context, &sql).await;
        let shown = displayable(plan.as_ref()).indent(false).to_string();
        let found = shown.matches("ExchangeOperator: partitioning=Hash").count();
        assert_eq!(found, exchanges, "{sql}\n{shown}");
        assert_eq!(
            [shared_sorts(&plan), count_of(&plan)],
            [1, 1],
            "{sql}\n{shown}"
        );
        let sql = format!("SELECT COUNT(*), SUM(id), SUM(w), MAX(w) FROM ({sql})");
        let expected = run(&stock, &sql).await.unwrap();
        assert_eq!(run(&context, &sql).await.unwrap(), expected, "{sql}");
    }
}

/// NULLs among the keys of a dictionary and among its values are no values.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_dictionaries_are_counted() {
    let values = StringArray::from(vec![Some("a"), None]);
    let keys = Int32Array::from_iter((0..300).map(|row| (row % 3 < 2).then_some(row % 3)));
    let texts = DictionaryArray::new(keys, Arc::new(values));
    let ids = Int64Array::from_iter_values(0..300);
    let columns: Vec<(&str, ArrayRef)> = vec![("id", Arc::new(ids)), ("c", Arc::new(texts))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
    let space = open(64 << 20);
    let (ours, stock) = (session(&space, 100), SessionContext::new());
    let table = Arc::new(table);
    for context in [&ours, &stock] {
        context.register_table("d", table.clone()).unwrap();
    }
    for frame in ["", " ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING"] {
        let sql = format!(
            "SELECT id, COUNT(c) OVER (ORDER BY id{frame}) AS n, \
             COUNT(NULL) OVER (ORDER BY id{frame}) AS z, COUNT(id, c) OVER (ORDER BY id{frame}) AS b \
             FROM d ORDER BY id"
        );
        let expected = run(&stock, &sql).await.unwrap();
        assert_eq!(run(&ours, &sql).await.unwrap(), expected, "{sql}");
    }
}
