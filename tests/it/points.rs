//! Statements on few rows: those that are known by their shape do what the long way does.
//!
//! Two sessions get the same statements. In one of them each has something that makes no
//! difference but is not of the kind that is known (`AS new`, `1 = 1`), so it is parsed,
//! planned and run as any other. Results, errors, counts and rows must be the same.

mod statements;

use futures::StreamExt;
use mayfly_session::{Outcome, RowStream, Session};
use mayfly_testkit::Random;

use statements::{COLUMNS, Statements};

use crate::engine::{check_nothing_left, open, read, rows, run};

const ROUNDS: u64 = 8;
const STATEMENTS: usize = 600;
const SEED: u64 = 20_261_122;

/// What must have been counted alike in the end.
const COUNTED: &str = "SHOW SESSION STATUS WHERE Variable_name IN ('Com_select', 'Rows_sent', \
     'Handler_delete', 'Handler_update', 'Handler_write')";

/// All that a statement tells.
async fn told(session: &mut Session, sql: &str) -> String {
    let ended = match session.execute(sql).await {
        Err(error) => format!("{error:?}"),
        Ok(Outcome::Done {
            affected_rows,
            last_insert_id,
            warnings,
            info,
        }) => format!("{affected_rows} {last_insert_id} {warnings} {info}"),
        Ok(outcome) => {
            let mut found = read(outcome).await;
            if let Ok(Some(rows)) = &mut found {
                rows.sort();
            }
            format!("{found:?}")
        }
    };
    let mut after = Vec::new();
    for query in [
        "SHOW WARNINGS",
        "SELECT ROW_COUNT(), LAST_INSERT_ID(), FOUND_ROWS()",
    ] {
        // Two tables may have the same rows in another order.
        let mut rows = rows(session, query).await;
        rows.sort();
        after.push(rows);
    }
    format!("{ended}\n{after:?}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn known_statements_do_what_the_long_way_does() {
    for round in 0..ROUNDS {
        let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let engines = [
            open(64 << 20, directories[0].path()),
            open(64 << 20, directories[1].path()),
        ];
        // What is known of statements on shared tables is known to all sessions that are alike.
        let is_shared = round % 3 == 0;
        let count = if is_shared { 2 } else { 1 };
        let mut pairs: Vec<[Session; 2]> = (0..count)
            .map(|_| [engines[0].connect(), engines[1].connect()])
            .collect();
        let mut random = Random::new(SEED + round);
        let columns = (0..4)
            .map(|_| random.below(COLUMNS.len() as u64) as usize)
            .collect();
        let mut statements = Statements { random, columns };
        let counts = if round % 2 == 0 { "AUTO_INCREMENT" } else { "" };
        let temporary = if is_shared { "" } else { "TEMPORARY" };
        let mut create = format!("CREATE {temporary} TABLE t (id INT {counts} PRIMARY KEY");
        for (place, column) in statements.columns.iter().enumerate() {
            create += &format!(", c{place} {}", COLUMNS[*column].0);
        }
        create += ", KEY (c0), KEY (c1, c2))";
        for session in &mut pairs[0] {
            rows(session, &create).await;
        }
        for _ in 0..STATEMENTS {
            let place = statements.random.below(count) as usize;
            let sessions = &mut pairs[place];
            if let Some(sql) = statements.between() {
                for session in &mut *sessions {
                    rows(session, sql).await;
                }
            }
            let (text, long) = statements.next();
            let known = told(&mut sessions[0], &text).await;
            let planned = told(&mut sessions[1], &long).await;
            assert_eq!(known, planned, "{create}\n{text}");
        }
        let all = "SELECT * FROM t ORDER BY id";
        for [known, planned] in &mut pairs {
            assert_eq!(rows(known, all).await, rows(planned, all).await, "{create}");
            let counted = (rows(known, COUNTED).await, rows(planned, COUNTED).await);
            assert_eq!(counted.0, counted.1, "{create}");
        }
        for session in &mut pairs[0] {
            rows(session, "DROP TABLE t").await;
        }
        drop(pairs);
        for engine in &engines {
            check_nothing_left(engine, &create).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_ends_where_its_type_does() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    for sql in [
        "CREATE TABLE t (id TINYINT NOT NULL PRIMARY KEY, k INT UNSIGNED NOT NULL, v INT, \
         UNIQUE KEY down (k DESC), KEY (v))",
        "INSERT INTO t VALUES (1, 3, 30), (2, 2, 20), (127, 0, 10)",
    ] {
        rows(&mut session, sql).await;
    }
    let count = vec![vec!["0".to_owned()]];
    for _ in 0..4 {
        for condition in ["id > 127", "id < -128", "k < 0", "k > 4294967295", "0 > k"] {
            let sql = format!("SELECT COUNT(*) FROM t WHERE {condition}");
            assert_eq!(rows(&mut session, &sql).await, count, "{sql}");
            for change in ["UPDATE t SET v = 0", "DELETE FROM t"] {
                rows_of_change(&mut session, &format!("{change} WHERE {condition}")).await;
            }
        }
        // The order of the key is not that of the rows, and no column is read.
        let sql = "SELECT COUNT(*) FROM t WHERE v < 50";
        assert_eq!(rows(&mut session, sql).await, vec![vec!["3".to_owned()]]);
        let sql = "SELECT 1 FROM t WHERE v BETWEEN 5 AND 25";
        assert_eq!(rows(&mut session, sql).await.len(), 2);
        let warned = rows(&mut session, "SELECT 3 * '1x', id FROM t WHERE id = 1; ").await;
        assert_eq!(warned[0][0], "3");
        assert_eq!(rows(&mut session, "SHOW WARNINGS").await.len(), 1);
    }
    let error = run(&mut session, "UPDATE t SET k = k + NULL WHERE id = 1").await;
    assert_eq!(error.unwrap_err().code, 1048);
}

/// A change of no rows.
async fn rows_of_change(session: &mut Session, sql: &str) {
    match session.execute(sql).await.unwrap() {
        Outcome::Done { affected_rows, .. } => assert_eq!(affected_rows, 0, "{sql}"),
        Outcome::Rows { .. } => panic!("{sql} returns no rows"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_known_statement_follows_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    let mut other = engine.connect();
    for sql in [
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))",
        "INSERT INTO t VALUES (1, 'shared')",
        "INSERT INTO t VALUES (2, 'shared')",
    ] {
        rows(&mut session, sql).await;
    }
    let query = "SELECT v FROM t WHERE id = 1";
    let shared = vec![vec!["shared".to_owned()]];
    assert_eq!(rows(&mut session, query).await, shared);
    assert_eq!(rows(&mut session, query).await, shared);
    // A temporary table of the name hides it, also with other columns in another order.
    for sql in [
        "CREATE TEMPORARY TABLE t (v VARCHAR(9), id INT, KEY (id))",
        "INSERT INTO t VALUES ('own', 1)",
        "INSERT INTO t VALUES ('own', 2)",
    ] {
        rows(&mut session, sql).await;
    }
    assert_eq!(
        rows(&mut session, query).await,
        vec![vec!["own".to_owned()]]
    );
    assert_eq!(rows(&mut other, query).await, shared);
    rows(&mut session, "ALTER TABLE t DROP COLUMN v").await;
    let error = run(&mut session, query).await.unwrap_err();
    assert_eq!(error.code, 1054);
    rows(&mut session, "DROP TEMPORARY TABLE t").await;
    assert_eq!(rows(&mut session, query).await, shared);
    rows(&mut other, "DROP TABLE t").await;
    let error = run(&mut session, query).await.unwrap_err();
    assert_eq!(error.code, 1146);
    // Another database.
    rows(&mut session, "CREATE DATABASE d").await;
    rows(
        &mut session,
        "CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(9))",
    )
    .await;
    rows(&mut session, "USE d").await;
    assert!(rows(&mut session, query).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_rows_are_known_by_the_shape_of_one() {
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let engines = [
        open(64 << 20, directories[0].path()),
        open(64 << 20, directories[1].path()),
    ];
    let mut sessions = [engines[0].connect(), engines[1].connect()];
    let create =
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, k INT, v VARCHAR(12), KEY (k))";
    for session in &mut sessions {
        rows(session, create).await;
    }
    // Some of them are too long for the thread that asks.
    for (count, first) in [
        (1, 1),
        (3, 10),
        (6_000, 100),
        (6_001, 10_000),
        (60_000, 20_000),
    ] {
        let row = |id: usize| match id % 5 {
            0 => format!("({id},NULL,'it''s {}')", id % 9),
            1 => format!("(NULL,-{},\"x\")", id % 100),
            _ => format!("({id},{},NULL)", id % 100),
        };
        let list: Vec<String> = (first..first + count).map(row).collect();
        let text = format!("INSERT INTO t VALUES {}", list.join(",\n"));
        for again in ["", "duplicate"] {
            let known = told(&mut sessions[0], &text).await;
            let planned = told(&mut sessions[1], &format!("{text} AS new")).await;
            assert_eq!(known, planned, "{count} rows {again}");
        }
    }
    let all = "SELECT COUNT(*), SUM(id), SUM(k), MIN(v), COUNT(v), SUM(LENGTH(v)) FROM t";
    let [known, planned] = &mut sessions;
    assert_eq!(rows(known, all).await, rows(planned, all).await);
    for (session, engine) in sessions.into_iter().zip(&engines) {
        let mut session = session;
        rows(&mut session, "DROP TABLE t").await;
        drop(session);
        check_nothing_left(engine, create).await;
    }
}

/// A table of rows of which some were changed, some removed and some inserted again.
async fn fill_many(session: &mut Session) {
    let values: Vec<String> = (1..=20_000)
        .map(|id| format!("({id}, {}, 'x')", id % 7))
        .collect();
    let insert = format!("INSERT INTO t VALUES {}", values.join(","));
    for sql in [
        "CREATE TABLE t (id INT PRIMARY KEY, k INT, v VARCHAR(200), KEY (k))",
        &insert,
        "UPDATE t SET v = REPEAT(CONCAT('text ', id), 9) WHERE 1 = 1",
        "DELETE FROM t WHERE id % 13 = 0",
        "UPDATE t SET k = 9 WHERE id % 101 = 0",
        "INSERT INTO t SELECT id * 13, id, NULL FROM t WHERE id <= 1000",
    ] {
        rows(session, sql).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_rows_by_key_are_those_of_the_long_way() {
    for memory in [4 << 20, 64 << 20] {
        let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let engines = [
            open(memory, directories[0].path()),
            open(memory, directories[1].path()),
        ];
        let mut sessions = [engines[0].connect(), engines[1].connect()];
        for session in &mut sessions {
            fill_many(session).await;
        }
        for list in ["v", "*", "id", "t.k, id"] {
            for condition in [
                "id BETWEEN 1 AND 20000",
                "id BETWEEN 3000 AND 9000",
                "id > 17000 AND id <= 19999",
                "k = 3",
                "k IN (1, 5)",
                "id < 60000",
            ] {
                let text = format!("SELECT {list} FROM t WHERE {condition}");
                let long = format!("{text} AND 1 = 1");
                let known = told(&mut sessions[0], &text).await;
                let planned = told(&mut sessions[1], &long).await;
                assert!(known == planned, "{text} in {memory}");
            }
        }
        let [known, planned] = &mut sessions;
        assert_eq!(rows(known, COUNTED).await, rows(planned, COUNTED).await);

        // What bounds the rows or the time goes the long way.
        let text = "SELECT id FROM t WHERE id BETWEEN 1 AND 20000";
        let all = rows(known, text).await.len();
        rows(known, "SET max_execution_time = 60000").await;
        assert_eq!(rows(known, text).await.len(), all);
        rows(known, "SET max_execution_time = 0, sql_select_limit = 1500").await;
        assert_eq!(rows(known, text).await.len(), 1500);
        rows(known, "SET sql_select_limit = DEFAULT").await;
        for (session, engine) in sessions.into_iter().zip(&engines) {
            let mut session = session;
            rows(&mut session, "DROP TABLE t").await;
            drop(session);
            check_nothing_left(engine, "t").await;
        }
    }
}

async fn begin(session: &mut Session, text: &str) -> RowStream {
    match session.execute(text).await.unwrap() {
        Outcome::Rows { batches, .. } => batches,
        Outcome::Done { .. } => panic!("{text} returns rows"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_fetched_can_be_stopped_and_outlive_their_table() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(4 << 20, directory.path());
    let mut session = engine.connect();
    fill_many(&mut session).await;
    let text = "SELECT * FROM t WHERE id BETWEEN 1 AND 20000";
    let count = rows(&mut session, text).await.len();

    // Stopped amid its rows.
    let mut batches = begin(&mut session, text).await;
    batches.next().await.unwrap().unwrap();
    drop(batches);
    let mut batches = begin(&mut session, text).await;
    batches.next().await.unwrap().unwrap();
    session.cancel_handle().cancel();
    let mut ended = None;
    while let Some(batch) = batches.next().await {
        ended = batch.err();
    }
    assert_eq!(ended.unwrap().code, 1317);
    let warned = rows(&mut session, "SHOW WARNINGS").await;
    assert_eq!(warned[0][1], "1317");

    // The table goes, its rows stay for whoever reads them.
    let mut batches = begin(&mut session, text).await;
    let mut read = batches.next().await.unwrap().unwrap().num_rows();
    rows(&mut engine.connect(), "DROP TABLE t").await;
    while let Some(batch) = batches.next().await {
        read += batch.unwrap().num_rows();
    }
    assert_eq!(read, count);
    drop(batches);
    drop(session);
    check_nothing_left(&engine, text).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn known_statements_read_the_clock_and_count_as_the_long_way_does() {
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let engines = directories
        .each_ref()
        .map(|directory| open(64 << 20, directory.path()));
    let mut sessions = engines.each_ref().map(|engine| engine.connect());
    for session in &mut sessions {
        for sql in [
            "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, k INT UNIQUE, `utc_date` DATE)",
            "INSERT INTO t VALUES (1, 1, '2001-01-01'), (2, 2, '2001-01-01'), (3, 3, NULL)",
        ] {
            rows(session, sql).await;
        }
    }
    let [known, planned] = &mut sessions;
    let upsert = "INSERT INTO t (k) VALUES (1) ON DUPLICATE KEY UPDATE k = 1";
    for (text, long) in [
        (
            "SELECT utc_date FROM t WHERE id = 1",
            "SELECT utc_date FROM t WHERE id = 1 AND 1 = 1",
        ),
        (
            "DELETE t FROM t WHERE id = 1",
            "DELETE t FROM t WHERE 1 = 1 AND id = 1",
        ),
        (
            "DELETE t FROM t WHERE id = 3 AND k > -1",
            "DELETE t FROM t WHERE 1 = 1 AND id = 3 AND k > -1",
        ),
        (
            "DELETE FROM t WHERE id = 9",
            "DELETE FROM t WHERE 1 = 1 AND id = 9",
        ),
        ("SET TRANSACTION READ ONLY", "SET TRANSACTION READ ONLY"),
        (upsert, &upsert.replace(") ON", ") AS new ON")),
        ("COMMIT", "COMMIT"),
        (
            "INSERT INTO t (k) VALUES (7)",
            "INSERT INTO t (k) VALUES (7) AS new",
        ),
    ] {
        for _ in 0..2 {
            assert_eq!(told(known, text).await, told(planned, long).await, "{text}");
        }
    }
    let counted = "SHOW SESSION STATUS LIKE 'Com_delete%'";
    assert_eq!(rows(known, counted).await, rows(planned, counted).await);
}

/// As MariaDB 10.11 tells drivers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_insert_tells_the_number_of_its_rows() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    let table =
        "CREATE TABLE t (id TINYINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, b INT, UNIQUE (b))";
    rows(&mut session, table).await;
    for (sql, expected) in [
        ("INSERT INTO t VALUES (5, 1)", 5),
        ("INSERT INTO t VALUES (8, 2), (7, 3)", 7),
        ("INSERT INTO t (b) VALUES (4), (5)", 9),
        ("INSERT INTO t VALUES (NULL, 6), (20, 7)", 11),
        ("INSERT INTO t VALUES (30, 8)", 30),
        ("REPLACE INTO t VALUES (8, 9)", 8),
        ("INSERT INTO t SELECT 40, 10", 40),
        ("UPDATE t SET b = 11 WHERE id = 40", 0),
    ] {
        let Ok(Outcome::Done { last_insert_id, .. }) = session.execute(sql).await else {
            panic!("{sql} failed");
        };
        assert_eq!(last_insert_id, expected, "{sql}");
    }
    let last = rows(&mut session, "SELECT LAST_INSERT_ID()").await;
    assert_eq!(last, [["11"]], "only numbers that were given count");
}
