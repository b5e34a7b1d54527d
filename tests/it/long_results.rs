//! Texts that functions make: how long one may be, what pays for those of a batch, and how soon a
//! statement ends that makes them.

use std::time::{Duration, Instant};

use mayfly_session::Engine;

use crate::budgets::{SPILLING, UNLIMITED};
use crate::engine::{check_nothing_left, open, rows, run};

const PATIENCE: Duration = Duration::from_secs(60);

/// Expressions over `t.a`, a text of 60,000 characters, and their lengths at a `max_allowed_packet`
/// of 64 KiB: those of MariaDB, where NULL comes with warning 1301 of the function named.
const AT_64_KIB: [(&str, &str, &str); 22] = [
    ("REPEAT('x', 65536)", "65536", ""),
    ("REPEAT('x', 65537)", "NULL", "repeat"),
    ("REPEAT(a, 2)", "NULL", "repeat"),
    ("SPACE(65537)", "NULL", "space"),
    ("LPAD(a, 65537, 'y')", "NULL", "lpad"),
    ("RPAD('x', 65537, 'y')", "NULL", "rpad"),
    // Each character counts as the four bytes that it may take.
    ("LPAD('x', 16385, 'y')", "NULL", "lpad"),
    ("LPAD('x', 16384, 'yz')", "16384", ""),
    ("CONCAT(a, a)", "NULL", "concat"),
    ("CONCAT(a, 'y')", "60001", ""),
    ("CONCAT_WS(',', a, 'y', a)", "NULL", "concat_ws"),
    ("REPLACE(a, 'x', 'yy')", "NULL", "replace"),
    ("REPLACE(a, 'x', REPEAT('y', 50000))", "NULL", "replace"),
    ("REPLACE(a, 'xx', 'y')", "30000", ""),
    ("INSERT(a, 1, 0, a)", "NULL", "insert"),
    ("INSERT(a, 1, 60000, 'y')", "1", ""),
    ("HEX(a)", "NULL", "hex"),
    ("HEX(LEFT(a, 32768))", "65536", ""),
    // The longer text counts for each bit.
    (
        "EXPORT_SET(3, LEFT(a, 6000), 'y', ',', 64)",
        "NULL",
        "export_set",
    ),
    ("QUOTE(REPLACE(a, 'x', '\\''))", "NULL", "quote"),
    ("TO_BASE64(a)", "NULL", "to_base64"),
    ("CONCAT(a, CAST(a AS BINARY))", "NULL", "concat"),
];

/// What MariaDB returns however long it is.
const ALSO_AT_64_KIB: [(&str, &str); 2] = [
    ("MAKE_SET(3, a, a)", "make_set"),
    ("REGEXP_REPLACE(a, 'x', 'yy')", "regexp_replace"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_beyond_max_allowed_packet_is_null_with_warning_1301() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(UNLIMITED, directory.path());
    let mut first = engine.connect();
    rows(&mut first, "SET GLOBAL max_allowed_packet = 65536").await;
    let mut session = engine.connect();
    rows(&mut session, "CREATE TEMPORARY TABLE t (a LONGTEXT)").await;
    rows(&mut session, "INSERT INTO t VALUES (REPEAT('x', 60000))").await;
    let also = ALSO_AT_64_KIB.map(|(expression, function)| (expression, "NULL", function));
    for (expression, length, function) in AT_64_KIB.into_iter().chain(also) {
        let sql = format!("SELECT LENGTH({expression}) FROM t");
        assert_eq!(rows(&mut session, &sql).await, [[length]], "{expression}");
        let warnings = rows(&mut session, "SHOW WARNINGS").await;
        let expected: Vec<Vec<String>> = match function {
            "" => Vec::new(),
            _ => vec![vec![
                "Warning".to_owned(),
                "1301".to_owned(),
                format!(
                    "Result of {function}() was larger than max_allowed_packet (65536) - truncated"
                ),
            ]],
        };
        assert_eq!(warnings, expected, "{expression}");
    }
    // A byte that is no character counts once.
    let bytes = "SELECT LENGTH(CONCAT(REPEAT(X'FF', 60000), REPEAT(X'FF', 5536)))";
    assert_eq!(rows(&mut session, bytes).await, [["65536"]]);
    // What is stored in strict mode must be what was asked for.
    let stored = run(&mut session, "INSERT INTO t VALUES (REPEAT('x', 70000))").await;
    assert_eq!(stored.unwrap_err().code, 1301);
}

/// Rows whose texts take a hundred bytes.
async fn fill(engine: &Engine, count: u64) {
    let mut session = engine.connect();
    rows(&mut session, "CREATE TABLE t (k INT, s VARCHAR(100))").await;
    let sql = format!(
        "INSERT INTO t WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r \
         WHERE n < 1000) SELECT a.n * 1000 + b.n, REPEAT('x', 100) FROM r a, r b \
         WHERE a.n <= {}",
        count / 1000
    );
    rows(&mut session, &sql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_texts_of_a_batch_are_paid_from_the_budget() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(SPILLING, directory.path());
    let mut session = engine.connect();
    // The argument and the result, at the same time.
    let fits = "SELECT LENGTH(CONCAT(REPEAT('x', 2000000), 'y'))";
    assert_eq!(rows(&mut session, fits).await, [["2000001"]]);
    let peak_bytes = engine.space().counters().peak_bytes;
    assert!(peak_bytes >= 4_000_000, "{peak_bytes}");
    fill(&engine, 20_000).await;
    // Each row takes half a MiB.
    let long = "SELECT MAX(LENGTH(REPEAT(s, 5000))) FROM t";
    let refused = run(&mut session, long).await.unwrap_err();
    assert_eq!(refused.code, 1038, "{refused}");
    // One value that is longer than the budget, whose arguments are constants.
    let one = "SELECT LENGTH(CONCAT(REPEAT('x', 9000000), 'y'))";
    assert_eq!(run(&mut session, one).await.unwrap_err().code, 1038);
    let short = "SELECT MAX(LENGTH(REPEAT(s, 2))) FROM t";
    assert_eq!(rows(&mut session, short).await, [["200"]]);
    rows(&mut session, "DROP TABLE t").await;
    drop(session);
    check_nothing_left(&engine, "long results").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_is_killed_in_the_middle_of_a_batch() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(UNLIMITED, directory.path());
    fill(&engine, 8_000).await;
    let mut session = engine.connect();
    let id = session.id();
    // One batch that takes minutes: no pattern is in 16 MB of text. The lock says that it began.
    let task = tokio::spawn(async move {
        let sql = "SELECT COUNT(REGEXP_SUBSTR(REPEAT('ab', 8000000), CONCAT('[bc][^ab]', s, k))) \
                   FROM t WHERE GET_LOCK('begun', 0) = 1";
        let ended = run(&mut session, sql).await;
        (session, ended)
    });
    let mut watcher = engine.connect();
    let started = Instant::now();
    while rows(&mut watcher, "SELECT IS_FREE_LOCK('begun')").await != [["0"]] {
        assert!(!task.is_finished() && started.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    rows(&mut watcher, &format!("KILL QUERY {id}")).await;
    let (session, ended) = tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap();
    assert_eq!(ended.unwrap_err().code, 1317);
    // Its last task is gone: it held the table.
    rows(&mut watcher, "DROP TABLE t").await;
    drop((session, watcher));
    check_nothing_left(&engine, "killed").await;
}
