//! Statements that are hard to plan: they end, they can be stopped, and nobody else waits for them.

use std::path::Path;
use std::time::{Duration, Instant};

use mayfly_session::{Engine, EngineOptions, Session};
use mayfly_types::MySqlError;

use crate::engine::{check_nothing_left, open, open_with, rows, run};

const MEMORY: u64 = 64 << 20;
/// A watchdog: what takes longer than this has hung.
const PATIENCE: Duration = Duration::from_secs(120);

async fn engine_with_table(directory: &Path) -> (Engine, Session) {
    engine_with(MEMORY, directory).await
}

async fn engine_with(memory_bytes: u64, directory: &Path) -> (Engine, Session) {
    let engine = open_with(
        EngineOptions {
            memory_bytes,
            threads: 2,
            ..EngineOptions::default()
        },
        directory,
    );
    let mut session = engine.connect();
    rows(&mut session, "CREATE TABLE t1 (a INT, b INT)").await;
    rows(&mut session, "INSERT INTO t1 VALUES (1, 2), (2, 3)").await;
    (engine, session)
}

async fn end(engine: &Engine, mut session: Session, what: &str) {
    rows(&mut session, "DROP TABLE t1").await;
    drop(session);
    check_nothing_left(engine, what).await;
}

/// `open` and `close` so many times, and `inner` in the middle.
fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

/// A statement that is planned for as long as a test looks: each item is as long as it may be.
fn long_to_plan() -> String {
    let items = (0..24).map(|item| format!("a{} AS c{item}", " + b".repeat(480)));
    format!("SELECT {} FROM t1", items.collect::<Vec<_>>().join(", "))
}

/// Waits until so many statements are being planned.
async fn until_planned(watcher: &mut Session, count: usize) {
    let started = Instant::now();
    loop {
        let list = rows(watcher, "SHOW PROCESSLIST").await;
        let is_planned = |row: &&Vec<String>| row[6] == "Optimizing" || row[6] == "Preparing";
        if list.iter().filter(is_planned).count() >= count {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{list:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn start(mut session: Session, sql: String) -> tokio::task::JoinHandle<Option<MySqlError>> {
    tokio::spawn(async move { run(&mut session, &sql).await.err() })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn selects_are_nested_as_deeply_as_in_mysql() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(directory.path()).await;
    let both = vec![vec!["1".to_owned()], vec!["2".to_owned()]];
    let largest = vec![vec!["2".to_owned()]];
    for (around, inner, expected) in [
        ("SELECT a FROM t1 WHERE a IN (", "SELECT a FROM t1", &both),
        ("SELECT a FROM t1 WHERE EXISTS (", "SELECT a FROM t1", &both),
        (
            "SELECT MAX(a) FROM t1 WHERE a = (",
            "SELECT MAX(a) FROM t1",
            &largest,
        ),
        ("SELECT (", "SELECT MAX(a) FROM t1", &largest),
    ] {
        let sql = nested(around, inner, ")", 63);
        let mut answer = rows(&mut session, &sql).await;
        answer.sort();
        assert_eq!(answer, *expected, "{around}");
        let error = run(&mut session, &nested(around, inner, ")", 64))
            .await
            .unwrap_err();
        assert_eq!(error.code, 1473, "{around}: {error}");
    }
    end(&engine, session, "nested").await;
}

/// Each level asks what the columns of the one below are called: twice would be 2^63 times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_of_nested_tables_are_looked_up_once() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(directory.path()).await;
    for list in ["*", "x.*", "a, b", "x.b, A"] {
        let open = format!("SELECT {list} FROM (");
        let sql = nested(&open, "SELECT * FROM t1", ") x", 63);
        assert_eq!(rows(&mut session, &sql).await.len(), 2, "{list}");
    }
    end(&engine, session, "nested").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_larger_than_memory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(directory.path()).await;
    // Each table expression is twice in the next one.
    let doubled = |count: usize| {
        let tables: String = (1..=count)
            .map(|at| {
                let before = at - 1;
                format!(", w{at} AS (SELECT x.a FROM w{before} x JOIN w{before} y ON x.a = y.a)")
            })
            .collect();
        format!("WITH w0 AS (SELECT a FROM t1){tables} SELECT COUNT(*) FROM w{count}")
    };
    assert_eq!(rows(&mut session, &doubled(3)).await, [["2"]]);
    for (count, codes) in [
        (13, &[1038, 1041][..]),
        (16, &[1116]),
        (30, &[1116]),
        (100, &[1116]),
    ] {
        let error = run(&mut session, &doubled(count)).await.unwrap_err();
        assert!(codes.contains(&error.code), "{count}: {error}");
        // EXPLAIN looks at the expanded statement in more ways, and has the same bounds.
        let explained = format!("EXPLAIN {}", doubled(count));
        let error = run(&mut session, &explained).await.unwrap_err();
        assert!(codes.contains(&error.code), "EXPLAIN {count}: {error}");
    }
    // A list that is short as a plan, but not as a text.
    let items = "1,".repeat(1_000_000);
    let list = format!("SELECT 1 FROM t1 WHERE a IN ({items}1)");
    let error = run(&mut session, &list).await.unwrap_err();
    assert!([1038, 1041].contains(&error.code), "{error}");
    assert_eq!(rows(&mut session, "SELECT COUNT(*) FROM t1").await, [["2"]]);
    end(&engine, session, "doubled").await;
}

/// A dump is read also where its text takes more than the budget, which has a right of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_text_is_read_beyond_the_budget() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(16 << 20, directory.path());
    let mut session = engine.connect();
    rows(&mut session, "CREATE TABLE t1 (a INT, b INT)").await;
    // The expression keeps them from the path of plain values.
    let values: Vec<String> = (0..60_000).map(|row| format!("({row}, {row})")).collect();
    let insert = format!("INSERT INTO t1 VALUES {}, (1 + 1, 2)", values.join(", "));
    assert_eq!(run(&mut session, &insert).await.map(|_| ()), Ok(()));
    assert_eq!(
        rows(&mut session, "SELECT COUNT(*) FROM t1").await,
        [["60001"]]
    );
    end(&engine, session, "large text").await;
}

/// What DataFusion takes for a plan while it makes it, which shows neither in the text nor in the
/// plan that comes of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_libraries_take_for_a_plan_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(directory.path()).await;
    let all = |depth| {
        nested(
            "SELECT a FROM t1 WHERE a >= ALL (",
            "SELECT a FROM t1",
            ")",
            depth,
        )
    };
    assert_eq!(rows(&mut session, &all(2)).await, [["2"]]);
    for sql in [all(20), format!("EXPLAIN {}", all(20))] {
        let error = run(&mut session, &sql).await.unwrap_err();
        assert!([1038, 1041].contains(&error.code), "{sql}: {error}");
        assert!(!error.message.contains("The server has"), "{error}");
    }
    end(&engine, session, "libraries").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planning_ends_when_its_time_is_over() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(directory.path()).await;
    rows(&mut session, "SET mayfly_max_planning_time = 100").await;
    let error = run(&mut session, &long_to_plan()).await.unwrap_err();
    assert_eq!(error.code, 3024, "{error}");
    assert!(
        error.message.contains("mayfly_max_planning_time = 100 ms"),
        "{error}"
    );
    rows(&mut session, "SET mayfly_max_planning_time = DEFAULT").await;
    rows(&mut session, "SET max_execution_time = 100").await;
    let error = run(&mut session, &long_to_plan()).await.unwrap_err();
    assert_eq!(error.code, 3024, "{error}");
    rows(&mut session, "SET max_execution_time = 0").await;
    end(&engine, session, "time").await;
}

/// The error of a statement when it is prepared, which must be the same in both ways.
async fn prepare_both(session: &mut Session, sql: &str) -> MySqlError {
    let by_text = run(session, &format!("PREPARE p FROM '{sql}'")).await;
    let by_text = by_text.expect_err("PREPARE ... FROM");
    let by_command = session.prepare(sql).await.expect_err("COM_STMT_PREPARE");
    assert_eq!(by_text.code, by_command.code, "{by_text}, {by_command}");
    let error = run(session, "EXECUTE p").await.expect_err("EXECUTE");
    assert_eq!(error.code, 1243, "{error}");
    by_command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stops_planning_is_the_answer_of_prepare() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(directory.path()).await;
    let queries = [long_to_plan(), format!("EXPLAIN {}", long_to_plan())];
    rows(&mut session, "SET mayfly_max_planning_time = 100").await;
    for sql in &queries {
        let error = prepare_both(&mut session, sql).await;
        assert_eq!(error.code, 3024, "{error}");
        let limit = "mayfly_max_planning_time = 100 ms";
        assert!(error.message.contains(limit), "{error}");
    }
    let change = format!("CREATE TABLE t2 AS {}", long_to_plan());
    let error = prepare_both(&mut session, &change).await;
    assert_eq!(error.code, 3024, "{error}");
    rows(&mut session, "SET mayfly_max_planning_time = 0").await;
    rows(&mut session, "SET max_execution_time = 100").await;
    let error = prepare_both(&mut session, &long_to_plan()).await;
    assert_eq!(error.code, 3024, "{error}");
    rows(&mut session, "SET max_execution_time = 0").await;
    let mut watcher = engine.connect();
    for sql in [
        long_to_plan(),
        format!("PREPARE p FROM '{}'", long_to_plan()),
    ] {
        let id = session.id();
        let prepared = tokio::spawn(async move {
            let error = match sql.starts_with("PREPARE") {
                true => run(&mut session, &sql).await.err(),
                false => session.prepare(&sql).await.err(),
            };
            (session, error)
        });
        until_planned(&mut watcher, 1).await;
        rows(&mut watcher, &format!("KILL QUERY {id}")).await;
        let (back, error) = prepared.await.unwrap();
        session = back;
        let error = error.expect("it was killed");
        assert_eq!(error.code, 1317, "{error}");
    }
    // The session goes on.
    let prepared = session.prepare("SELECT a FROM t1 WHERE b = ?").await;
    assert_eq!(prepared.unwrap().columns().len(), 1);
    drop(watcher);
    end(&engine, session, "prepared").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_are_served_while_statements_are_planned_which_can_be_killed() {
    let directory = tempfile::tempdir().unwrap();
    // Each of the plans takes a hundred megabytes before it is made.
    let (engine, mut session) = engine_with(1 << 30, directory.path()).await;
    rows(&mut session, "SET GLOBAL mayfly_max_planning_time = 0").await;
    // More than the workers, and more than may be planned at a time for long.
    let planned: Vec<_> = (0..6)
        .map(|_| {
            let session = engine.connect();
            let id = session.id();
            (id, start(session, long_to_plan()))
        })
        .collect();
    until_planned(&mut session, planned.len()).await;
    let mut newcomer = engine.connect();
    assert_eq!(
        rows(&mut newcomer, "SELECT COUNT(*) FROM t1 WHERE b > 1").await,
        [["2"]]
    );
    for (id, planned) in planned {
        assert!(!planned.is_finished());
        rows(&mut newcomer, &format!("KILL QUERY {id}")).await;
        let error = planned.await.unwrap().expect("it was killed");
        assert_eq!(error.code, 1317, "{error}");
    }
    rows(
        &mut session,
        "SET GLOBAL mayfly_max_planning_time = DEFAULT",
    )
    .await;
    drop(newcomer);
    end(&engine, session, "killed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_statement_is_planned_no_further() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(directory.path()).await;
    let planned = start(engine.connect(), long_to_plan());
    until_planned(&mut session, 1).await;
    planned.abort();
    assert!(planned.await.unwrap_err().is_cancelled());
    // What it held is given back when its thread has noticed.
    end(&engine, session, "dropped").await;
}

/// What the parser could read in two ways it reads once, or a few times: these end at once when
/// that is so, and never when it is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_nested_is_read_once() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(directory.path()).await;
    for (open, close) in [
        ("1 IN (", ")"),
        ("1 IN ((", "))"),
        ("1 IN ((1), ", ")"),
        ("CAST(", " AS CHAR)"),
        ("CHAR(", ")"),
        ("INTERVAL(1, ", ")"),
        ("DATE_ADD('2020-01-01', INTERVAL ", " DAY)"),
        ("DATE_ADD('2020-01-01', INTERVAL (", ") DAY)"),
        ("POSITION('1' IN ", ")"),
        ("SUBSTRING(", ", 1)"),
        ("CASE (", ") WHEN 1 THEN 1 END"),
        ("NOT (", ")"),
        ("a.", ""),
    ] {
        // The second one has an error in the middle.
        for (inner, depth) in [
            ("1", 24),
            ("1 + )", 24),
            ("1", 40),
            ("1 + )", 40),
            ("1", 200),
        ] {
            let sql = format!("SELECT {}", nested(open, inner, close, depth));
            if let Err(error) = run(&mut session, &sql).await {
                let codes = [1038, 1041, 1064, 1436];
                assert!(codes.contains(&error.code), "{sql}: {error}");
            } else {
                assert_eq!(inner, "1", "{sql}");
            }
        }
    }
    let tables = |depth: usize| nested("SELECT 1 FROM ((", "SELECT 1", ") x JOIN t1)", depth);
    assert_eq!(rows(&mut session, &tables(3)).await.len(), 8);
    for depth in [24, 40, 200] {
        let error = run(&mut session, &tables(depth)).await.unwrap_err();
        assert_eq!(error.code, 1436, "{depth}: {error}");
        let joins = nested("(", "(SELECT 1) x JOIN t1", ")", depth);
        match run(&mut session, &format!("SELECT a FROM {joins}")).await {
            Ok(_) => assert!(depth < 200),
            Err(error) => assert_eq!((depth, error.code), (200, 1064), "{error}"),
        }
    }
    end(&engine, session, "nested").await;
}

/// Everything is refused or answered: no statement of these shapes keeps the planner for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wide_statements_are_planned() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(256 << 20, directory.path());
    let mut session = engine.connect();
    rows(&mut session, "CREATE TABLE t1 (a INT, b INT)").await;
    rows(&mut session, "INSERT INTO t1 VALUES (1, 2), (2, 3)").await;
    let list = |count: usize, between: &str, item: &dyn Fn(usize) -> String| {
        let items: Vec<String> = (0..count).map(item).collect();
        items.join(between)
    };
    let items = list(5000, ", ", &|item| item.to_string());
    let terms = list(2000, " OR ", &|term| format!("a = {term} AND b > {term}"));
    let joins = list(20, "", &|at| format!(" JOIN t1 x{at} ON x{at}.a = t1.a"));
    let unions = " UNION ALL SELECT a FROM t1".repeat(300);
    let unequal = list(5000, " AND ", &|term| format!("a <> {}", term + 10));
    let keys = list(500, ", ", &|key| format!("a + b + {key}"));
    let windows = list(100, ", ", &|key| {
        format!("RANK() OVER (ORDER BY a * {key}, b) AS w{key}")
    });
    let computed = list(100, ", ", &|key| {
        format!("RANK() OVER (ORDER BY (a > {key}) = 1, b) AS w{key}")
    });
    for (sql, expected) in [
        (format!("SELECT COUNT(*) FROM t1 WHERE a IN ({items})"), "2"),
        (format!("SELECT COUNT(*) FROM t1 WHERE {terms}"), "2"),
        (format!("SELECT COUNT(*) FROM t1 WHERE {unequal}"), "2"),
        (format!("SELECT COUNT(*) FROM t1{joins}"), "2"),
        (format!("SELECT a FROM t1 ORDER BY {keys} LIMIT 1"), "1"),
        (
            format!("SELECT COUNT(*) FROM (SELECT {windows} FROM t1) w WHERE w99 = 2"),
            "1",
        ),
        (
            format!("SELECT SUM(w99) FROM (SELECT {computed} FROM t1) w"),
            "3",
        ),
        (
            format!("SELECT SUM(n) FROM (SELECT COUNT(*) OVER (PARTITION BY {keys}) n FROM t1) w"),
            "2",
        ),
        (
            format!("SELECT COUNT(*) FROM (SELECT a FROM t1{unions}) u"),
            "602",
        ),
    ] {
        assert_eq!(
            rows(&mut session, &sql).await,
            [[expected]],
            "{}",
            &sql[..40]
        );
    }
    // One with more windows of different keys is refused before it is planned.
    let windows = |orders: usize| {
        let list = list(1000, ", ", &|key| {
            format!("SUM(a) OVER (ORDER BY b + {}) AS w{key}", key % orders)
        });
        format!("EXPLAIN SELECT {list} FROM t1")
    };
    let error = run(&mut session, &windows(1000)).await.unwrap_err();
    assert_eq!(error.code, 1436, "{error}");
    assert!(run(&mut session, &windows(3)).await.is_ok());
    end(&engine, session, "wide").await;
}

/// Parts of a statement that rules copy, or ask for their types twice, at each level.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_doubles_at_each_level_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(directory.path()).await;
    // What the value is for the rows (1, 2) and (2, 3) at depth 5.
    for (open, close, expected) in [
        ("NULLIF(", ", 7)", ["1", "2"]),
        ("(", " BETWEEN 0 AND 1)", ["1", "1"]),
        (
            "CASE ",
            " WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE 0 END",
            ["2", "1"],
        ),
        ("(", " IN (0, 1))", ["1", "1"]),
        ("(", " IN (0, 1.5, '1', NULL))", ["1", "NULL"]),
        ("1 + CASE WHEN b > 0 THEN ", " END", ["6", "7"]),
        ("1 + IF(b > 0, ", ", 0)", ["6", "7"]),
        ("((", ", b) < (a, b))", ["0", "1"]),
        ("((", ", b) IN ((0, 2), (1, 2)))", ["1", "0"]),
    ] {
        let value = |depth: usize| nested(open, "a", close, depth);
        let few = format!("SELECT {} FROM t1 ORDER BY a", value(5));
        let few = rows(&mut session, &few).await;
        assert_eq!(few, expected.map(|value| vec![value.to_owned()]), "{open}");
        for depth in [20, 40] {
            let value = value(depth);
            let qualified = nested(open, "t1.a", close, depth)
                .replace("b > 0", "t1.b > 0")
                .replace(", b)", ", t1.b)")
                .replace("(a, ", "(t1.a, ");
            for sql in [
                format!("SELECT {value} FROM t1"),
                format!("SELECT a FROM t1 WHERE {value}"),
                format!("SELECT COUNT(*) FROM t1 GROUP BY {value}"),
                format!("SELECT a FROM t1 ORDER BY {value}"),
                format!("SELECT t1.a FROM t1 JOIN t1 u ON u.a = t1.a AND {qualified}"),
                format!("UPDATE t1 SET a = {value}"),
                format!("CREATE TABLE t2 (a INT, b INT, CHECK ({value} IS NULL))"),
                format!("CREATE TABLE t2 (a INT, b INT, c INT AS ({value}))"),
            ] {
                let answer = run(&mut session, &sql).await;
                let error = answer.err();
                // A table is refused when it is made, or with its first row.
                let error = match (error, sql.starts_with("CREATE")) {
                    (None, true) => {
                        let row = "INSERT INTO t2 (a, b) VALUES (1, 2)";
                        let error = run(&mut session, row).await.err();
                        rows(&mut session, "DROP TABLE t2").await;
                        error
                    }
                    (error, _) => error,
                };
                // The parser has a bound of its own, and so have the texts that definitions keep.
                let is_refused = |error: &MySqlError| {
                    [1038, 1041, 1436].contains(&error.code)
                        || error.message.contains("nested too deeply")
                        || sql.starts_with("CREATE") && error.code == 1235
                };
                let what = &sql[..sql.len().min(200)];
                assert!(error.as_ref().is_some_and(is_refused), "{error:?}: {what}");
            }
        }
    }
    assert_eq!(rows(&mut session, "SELECT SUM(a) FROM t1").await, [["3"]]);
    end(&engine, session, "copies").await;
}

/// ELT is asked for its number in each of the conditions of a CASE, unless the number is long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_elt_chooses_by_elt_does_not_grow() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(directory.path()).await;
    let words: String = (0..99).map(|word| format!(", {word}")).collect();
    let close = format!(", UPPER('x'){words})");
    for depth in [2, 6] {
        let inner = format!("ELT(a{close}");
        let value = nested("ELT(LENGTH(", &inner, &format!("){close}"), depth - 1);
        let started = Instant::now();
        let sql = format!("SELECT {value} FROM t1 ORDER BY a");
        assert_eq!(rows(&mut session, &sql).await, [["X"], ["X"]], "{depth}");
        assert!(started.elapsed() < PATIENCE, "{depth}");
    }
    end(&engine, session, "chosen").await;
}

/// The value of IN is made of three subqueries, each of which has those that are inside of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subqueries_whose_values_are_asked_for_triple_at_each_level() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(directory.path()).await;
    let listed = |depth: usize| nested("SELECT a IN (", "SELECT a FROM t1", ") FROM t1", depth);
    let few = format!("{} ORDER BY a", listed(2));
    assert_eq!(rows(&mut session, &few).await, [["1"], ["0"]]);
    for depth in [20, 40, 63] {
        for sql in [listed(depth), format!("EXPLAIN {}", listed(depth))] {
            let error = run(&mut session, &sql).await.unwrap_err();
            assert_eq!(error.code, 1436, "{depth}: {error}");
        }
    }
    // Conditions only ask whether it is true.
    let condition = nested("SELECT a FROM t1 WHERE a IN (", "SELECT a FROM t1", ")", 40);
    assert_eq!(rows(&mut session, &condition).await.len(), 2);
    end(&engine, session, "tripled").await;
}

/// Assignments and derived tables that name what was computed before twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_computed_from_what_was_computed_may_be_long() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(directory.path()).await;
    let set = |count: usize| "a = b + b, b = a - a + 1, ".repeat(count) + "a = a, b = b";
    let error = run(&mut session, &format!("UPDATE t1 SET {}", set(40)))
        .await
        .unwrap_err();
    assert_eq!(error.code, 1436, "{error}");
    rows(&mut session, &format!("UPDATE t1 SET {}", set(2))).await;
    let both = "SELECT a, b FROM t1";
    assert_eq!(rows(&mut session, both).await, [["2", "1"], ["2", "1"]]);
    // Each assignment sees what those before it gave, and these what was there before.
    rows(&mut session, "UPDATE t1 SET a = 5, b = 7").await;
    rows(&mut session, "CREATE TABLE t3 (a INT, b INT, c INT)").await;
    rows(&mut session, "INSERT INTO t3 VALUES (1, 2, 3)").await;
    rows(&mut session, "UPDATE t3 SET a = b, b = 9, c = a").await;
    assert_eq!(
        rows(&mut session, "SELECT * FROM t3").await,
        [["2", "9", "2"]]
    );
    rows(&mut session, "DROP TABLE t3").await;
    // Sums modulo 8 stay small, where their plans double.
    let derived = |depth: usize| {
        let open = "SELECT (a + a) % 8 AS a FROM (".repeat(depth);
        let close = (0..depth).map(|at| format!(") d{at}"));
        format!("{open}SELECT a FROM t1{}", close.collect::<String>())
    };
    for depth in [2, 30] {
        let sum = if depth == 2 { "4" } else { "0" };
        for condition in ["", " WHERE a >= 0", " WHERE a + a < 100 ORDER BY a"] {
            let sql = format!("SELECT a FROM ({}) d{condition}", derived(depth));
            assert_eq!(rows(&mut session, &sql).await, [[sum], [sum]], "{sql}");
        }
        let sql = format!(
            "SELECT COUNT(*) FROM ({}) d JOIN t1 ON t1.a > d.a",
            derived(depth)
        );
        assert_eq!(rows(&mut session, &sql).await, [["4"]], "{sql}");
    }
    // A value of the outer row below them is told by an expression that doubles, too: it is a
    // placeholder there.
    let open = "SELECT v + v AS v FROM (".repeat(40);
    let close: String = (0..40).map(|at| format!(") d{at}")).collect();
    let sql = format!("SELECT ({open}SELECT MAX(a + o.b) AS v FROM t1{close}) FROM t1 o");
    let doubled = (12_u64 << 40).to_string();
    assert_eq!(rows(&mut session, &sql).await, [[doubled.as_str()]; 2]);
    end(&engine, session, "derived").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn views_in_views_end_at_some_depth() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(directory.path()).await;
    rows(&mut session, "CREATE VIEW w0 AS SELECT a FROM t1").await;
    let mut depth = 0;
    let refused = loop {
        let sql = format!("CREATE VIEW w{} AS SELECT a FROM w{depth}", depth + 1);
        match run(&mut session, &sql).await {
            Ok(_) => depth += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((refused.code, depth), (1436, 59), "{refused}");
    let sum = rows(&mut session, &format!("SELECT SUM(a) FROM w{depth}")).await;
    assert_eq!(sum, [["3"]]);
    let sql = format!("UPDATE w{depth} SET a = a + 1");
    rows(&mut session, &sql).await;
    assert_eq!(rows(&mut session, "SELECT SUM(a) FROM t1").await, [["5"]]);
    // One that is made while the views below it are small.
    let of = |name: usize| format!("SELECT x.a FROM d{name} AS x, d{name} AS y");
    for name in (0..30).rev() {
        let small = format!("CREATE OR REPLACE VIEW d{name} AS SELECT 1 AS a");
        rows(&mut session, &small).await;
        let sql = format!("CREATE OR REPLACE VIEW d{} AS {}", name + 1, of(name));
        rows(&mut session, &sql).await;
    }
    let error = run(&mut session, &of(30)).await.unwrap_err();
    assert_eq!(error.code, 1116, "{error}");
    let sql = "CREATE OR REPLACE VIEW d0 AS SELECT a FROM d4";
    let error = run(&mut session, sql).await.unwrap_err();
    assert_eq!(error.code, 1462, "{error}");
    end(&engine, session, "views").await;
}
