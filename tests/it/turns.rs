//! Turns of those who change a shared table: a statement finds the table as it left it, one that
//! fails leaves nothing, no row of others goes with it, and who waits can be stopped.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mayfly_session::{Engine, Session};
use mayfly_types::MySqlError;
use tokio::task::JoinHandle;

use crate::engine::{check_nothing_left, open, rows, run};

/// Longer than anything here takes, unless it waits for ever.
const PATIENCE: Duration = Duration::from_secs(60);

type Ran = Result<Option<Vec<Vec<String>>>, MySqlError>;

fn engine(directory: &Path) -> Engine {
    open(64 << 20, directory)
}

async fn all(session: &mut Session, statements: &[&str]) {
    for sql in statements {
        rows(session, sql).await;
    }
}

/// Runs a statement beside the test.
fn start(mut session: Session, sql: &str) -> JoinHandle<(Session, Ran)> {
    let sql = sql.to_owned();
    tokio::spawn(async move {
        let ran = run(&mut session, &sql).await;
        (session, ran)
    })
}

/// Waits until a statement waits for its turn, or has ended without that.
async fn until_waits(engine: &Engine, sql: &str, statement: &JoinHandle<(Session, Ran)>) {
    let mut watcher = engine.connect();
    let started = Instant::now();
    while !statement.is_finished() {
        let listed = rows(&mut watcher, "SHOW FULL PROCESSLIST").await;
        let waits = |row: &Vec<String>| {
            let is_it = row.last().is_some_and(|text| text == sql);
            is_it
                && row
                    .iter()
                    .any(|cell| cell == "Waiting for table level lock")
        };
        if listed.iter().any(waits) {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{sql}: {listed:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A statement that has its turn on `t`, a table of rows with `id`, until `free` is called.
struct Holder {
    gate: Session,
    statement: JoinHandle<(Session, Ran)>,
}

impl Holder {
    async fn begin(engine: &Engine, sql: &str) -> Holder {
        let mut gate = engine.connect();
        let started = Instant::now();
        // A connection whose client has gone gives its locks back later than its turn.
        let are_free = "SELECT IS_FREE_LOCK('begun') AND IS_FREE_LOCK('gate')";
        while rows(&mut gate, are_free).await != [["1"]] {
            assert!(started.elapsed() < PATIENCE, "a lock is never given back");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let taken = rows(&mut gate, "SELECT GET_LOCK('gate', 0)").await;
        assert_eq!(taken, [["1"]]);
        let statement = start(engine.connect(), sql);
        let started = Instant::now();
        while rows(&mut gate, "SELECT IS_FREE_LOCK('begun')").await == [["1"]] {
            assert!(started.elapsed() < PATIENCE, "{sql} does not begin");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Holder { gate, statement }
    }

    async fn free(mut self) -> Ran {
        rows(&mut self.gate, "SELECT RELEASE_LOCK('gate')").await;
        self.statement.await.unwrap().1
    }
}

/// Waits for the holder's gate; 1.
const GATE: &str = "IF(GET_LOCK('begun', 0), GET_LOCK('gate', 1000), 0)";

/// The numbers from 1 on.
const NUMBERS: &str =
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)";

fn hold() -> String {
    format!("UPDATE t SET a = a + {GATE} WHERE id = 1")
}

async fn make(engine: &Engine) -> Session {
    let mut session = engine.connect();
    let create = "CREATE TABLE t (id INT PRIMARY KEY, a INT)";
    all(
        &mut session,
        &[create, "INSERT INTO t VALUES (1, 1), (2, 2)"],
    )
    .await;
    session
}

/// Inserts rows of one number after the other until it is told to end; returns how many.
fn insert(engine: &Engine, table: &'static str, ends: &Arc<AtomicBool>) -> JoinHandle<usize> {
    let (mut session, ends) = (engine.connect(), Arc::clone(ends));
    tokio::spawn(async move {
        let mut count = 0;
        while !ends.load(Ordering::SeqCst) {
            rows(
                &mut session,
                &format!("INSERT INTO {table} VALUES ({count}, 0)"),
            )
            .await;
            count += 1;
        }
        count
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_on_several_tables_that_fails_keeps_the_rows_of_others() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let mut session = engine.connect();
    all(
        &mut session,
        &[
            "SET cte_max_recursion_depth = 100000",
            "CREATE TABLE log (i INT, a INT)",
            "CREATE TABLE numbers (i INT PRIMARY KEY, a INT)",
            &format!("INSERT INTO numbers {NUMBERS} SELECT i, i FROM n"),
            "INSERT INTO log SELECT -i, a FROM numbers WHERE i <= 10",
        ],
    )
    .await;
    let ends = Arc::new(AtomicBool::new(false));
    let inserting = insert(&engine, "log", &ends);
    for _ in 0..12 {
        // The last number becomes one that is there.
        let sql = "UPDATE log, numbers SET log.a = log.a + 1, \
                   numbers.i = IF(numbers.i = 20000, 1, numbers.i + 1 - 1), \
                   numbers.a = numbers.a + 1 WHERE log.i = IF(numbers.i <= 10, -numbers.i, -10)";
        let failed = run(&mut session, sql).await.unwrap_err();
        assert_eq!(failed.code, 1062, "{failed}");
    }
    ends.store(true, Ordering::SeqCst);
    let inserted = inserting.await.unwrap();
    let found = rows(
        &mut session,
        "SELECT COUNT(*), COUNT(DISTINCT i) FROM log WHERE i >= 0",
    )
    .await;
    let expected = inserted.to_string();
    assert_eq!(found, [[expected.as_str(), expected.as_str()]]);
    // And it has changed nothing itself.
    let sums = "SELECT (SELECT SUM(a) FROM numbers), (SELECT SUM(a) FROM log WHERE i < 0)";
    assert_eq!(rows(&mut session, sums).await, [["200010000", "55"]]);
    all(&mut session, &["DROP TABLE log, numbers"]).await;
    drop(session);
    check_nothing_left(&engine, "statements that failed").await;
}

/// Each changes the rows of a table without a key one batch after the other, and fails at the last
/// row, or its client goes while it is there. Somebody else adds a row meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_fails_midway_keeps_the_rows_of_others() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let mut session = engine.connect();
    all(
        &mut session,
        &[
            "SET cte_max_recursion_depth = 100000",
            "CREATE TABLE log (i INT, a INT)",
            "CREATE TABLE numbers (i INT PRIMARY KEY, a INT)",
            &format!("INSERT INTO numbers {NUMBERS} SELECT i, i FROM n"),
            "INSERT INTO log SELECT -i, a FROM numbers",
        ],
    )
    .await;
    // A pattern that has no end, behind the gate.
    let fails = format!("IF(log.i > -20000, 1, {GATE} AND 'x' REGEXP CONCAT('(', log.i))");
    let joined = "log JOIN numbers ON log.i = -numbers.i";
    let mut inserted = 0;
    for sql in [
        format!("DELETE log, numbers FROM {joined} WHERE {fails}"),
        format!("DELETE FROM log WHERE {fails}"),
        format!("UPDATE log SET a = a + 1 WHERE {fails}"),
        format!("UPDATE {joined} SET log.a = log.a + 1, numbers.a = 0 WHERE {fails}"),
    ] {
        for goes in [false, true] {
            let holder = Holder::begin(&engine, &sql).await;
            let insert = "INSERT INTO log VALUES (1, 0)";
            let inserting = start(engine.connect(), insert);
            until_waits(&engine, insert, &inserting).await;
            if goes {
                holder.statement.abort();
                let _ = holder.statement.await;
                drop(holder.gate);
            } else {
                let failed = holder.free().await.unwrap_err();
                assert_eq!(failed.code, 3691, "{sql}: {failed}");
            }
            let added = inserting.await.unwrap().1;
            added.unwrap_or_else(|error| panic!("{sql}: {error}"));
            inserted += 1;
            let counts = "SELECT (SELECT COUNT(*) FROM log WHERE i = 1), \
                          (SELECT COUNT(*) FROM log WHERE i < 0), (SELECT SUM(a) FROM log), \
                          (SELECT COUNT(*) FROM numbers), (SELECT SUM(a) FROM numbers)";
            let added = inserted.to_string();
            let expected = [added.as_str(), "20000", "200010000", "20000", "200010000"];
            assert_eq!(
                rows(&mut session, counts).await,
                [expected],
                "{sql}, {goes}"
            );
        }
    }
    all(&mut session, &["DROP TABLE log, numbers"]).await;
    drop(session);
    check_nothing_left(&engine, "statements that failed midway").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_writes_part_by_part_is_seen_at_its_end_only() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let mut session = make(&engine).await;
    all(
        &mut session,
        &[
            "SET cte_max_recursion_depth = 100000",
            "CREATE TABLE numbers (i INT)",
            &format!("INSERT INTO numbers {NUMBERS} SELECT i FROM n"),
        ],
    )
    .await;
    for (verb, end) in [
        ("REPLACE", ""),
        ("INSERT IGNORE", ""),
        ("INSERT", "ON DUPLICATE KEY UPDATE a = 100"),
    ] {
        let sql = &format!(
            "{verb} INTO t SELECT i, IF(i < 20000, i, {GATE}) FROM numbers ORDER BY i {end}"
        );
        let before = rows(&mut session, "SELECT * FROM t ORDER BY id").await;
        let holder = Holder::begin(&engine, sql).await;
        assert_eq!(
            rows(&mut session, "SELECT * FROM t ORDER BY id").await,
            before,
            "{sql}"
        );
        holder.statement.abort();
        let _ = holder.statement.await;
        assert_eq!(
            rows(&mut session, "SELECT * FROM t ORDER BY id").await,
            before,
            "{sql}"
        );
        // Nothing keeps the table.
        rows(&mut session, "UPDATE t SET a = a + 1").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_goes_on_with_the_table_that_is_there_then() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    for (first, then, expected) in [
        (
            "ALTER TABLE t ADD COLUMN b INT DEFAULT 7",
            "TRUNCATE TABLE t",
            "0 0",
        ),
        (
            "ALTER TABLE t ADD KEY (a)",
            "REPLACE INTO t VALUES (1, 50), (3, 50)",
            "3 102",
        ),
        (
            "ALTER TABLE t ADD COLUMN b INT FIRST",
            "INSERT IGNORE INTO t (a, id) VALUES (50, 2), (50, 3)",
            "3 54",
        ),
        (
            "TRUNCATE TABLE t",
            "INSERT INTO t VALUES (1, 9) ON DUPLICATE KEY UPDATE a = 100",
            "1 9",
        ),
        (
            "ALTER TABLE t MODIFY a BIGINT",
            "INSERT INTO t VALUES (1, 9) ON DUPLICATE KEY UPDATE a = 100",
            "2 102",
        ),
        (
            "CREATE INDEX a ON t (a)",
            "DELETE FROM t WHERE a < 3",
            "0 0",
        ),
        (
            "ALTER TABLE t MODIFY a BIGINT FIRST",
            "UPDATE t SET a = 5 WHERE id < 10",
            "2 10",
        ),
        // What they name is not there when they begin to wait.
        (
            "ALTER TABLE t ADD COLUMN b INT DEFAULT 7",
            "UPDATE t SET a = b + 1, b = 5 WHERE id < 10",
            "2 16",
        ),
        (
            "ALTER TABLE t ADD COLUMN b INT DEFAULT 7",
            "UPDATE t, (SELECT 3 AS c) u SET b = c, t.a = b + 1 WHERE id < 10",
            "2 16",
        ),
        (
            "ALTER TABLE t ADD COLUMN b INT DEFAULT 7",
            "INSERT INTO t (b, id, a) VALUES (1, 3, 3), (1, 1, 1) ON DUPLICATE KEY UPDATE a = b",
            "3 12",
        ),
    ] {
        let mut session = make(&engine).await;
        let holder = Holder::begin(&engine, &hold()).await;
        let altering = start(engine.connect(), first);
        until_waits(&engine, first, &altering).await;
        let waiting = start(engine.connect(), then);
        until_waits(&engine, then, &waiting).await;
        holder.free().await.unwrap();
        altering
            .await
            .unwrap()
            .1
            .unwrap_or_else(|error| panic!("{first}: {error}"));
        waiting
            .await
            .unwrap()
            .1
            .unwrap_or_else(|error| panic!("{then}: {error}"));
        let found = rows(&mut session, "SELECT COUNT(*), IFNULL(SUM(a), 0) FROM t").await;
        assert_eq!(found[0].join(" "), expected, "{first}; {then}");
        rows(&mut session, "DROP TABLE t").await;
    }
    check_nothing_left(&engine, "tables that were altered").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_may_fill_a_column_that_comes_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let mut session = make(&engine).await;
    let file = directory.path().join("rows");
    std::fs::write(&file, "3,7\n").unwrap();
    let load = format!(
        "LOAD DATA INFILE '{}' INTO TABLE t FIELDS TERMINATED BY ',' (id, b) SET a = b + 1",
        file.display()
    );
    let holder = Holder::begin(&engine, &hold()).await;
    let alter = "ALTER TABLE t ADD COLUMN b INT";
    let altering = start(engine.connect(), alter);
    until_waits(&engine, alter, &altering).await;
    let loading = start(engine.connect(), &load);
    until_waits(&engine, &load, &loading).await;
    holder.free().await.unwrap();
    altering.await.unwrap().1.unwrap();
    loading.await.unwrap().1.unwrap();
    let found = rows(&mut session, "SELECT a, b FROM t WHERE id = 3").await;
    assert_eq!(found, [["8", "7"]]);
    // A name that nobody adds is an error, as ever.
    let failed = run(&mut session, &load.replace("(id, b)", "(id, c)")).await;
    assert_eq!(failed.unwrap_err().code, 1054);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_table_that_goes_does_not_find_it() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    for first in ["DROP TABLE t", "RENAME TABLE t TO s"] {
        let mut session = make(&engine).await;
        let holder = Holder::begin(&engine, &hold()).await;
        let dropping = start(engine.connect(), first);
        until_waits(&engine, first, &dropping).await;
        let then = "DELETE FROM t";
        let waiting = start(engine.connect(), then);
        until_waits(&engine, then, &waiting).await;
        holder.free().await.unwrap();
        dropping.await.unwrap().1.unwrap();
        assert_eq!(waiting.await.unwrap().1.unwrap_err().code, 1146, "{first}");
        rows(&mut session, "DROP TABLE IF EXISTS s").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_can_be_stopped_and_gives_up_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let mut session = make(&engine).await;
    // The shapes are known: they run on the thread that asks, unless they wait.
    let points = [
        "UPDATE t SET a = 3 WHERE id = 2",
        "INSERT INTO t VALUES (7, 7)",
    ];
    for sql in points {
        rows(&mut session, sql).await;
    }
    rows(&mut session, "DELETE FROM t WHERE id = 7").await;
    let holder = Holder::begin(&engine, &hold()).await;
    let limits = ["lock_wait_timeout", "innodb_lock_wait_timeout"];
    let limits = limits.into_iter().cycle();
    let waiting = [
        "UPDATE t SET a = 4 WHERE id = 2",
        "INSERT INTO t VALUES (7, 7)",
        "DELETE FROM t WHERE a > 0",
        "TRUNCATE TABLE t",
        "DROP TABLE t",
        "ALTER TABLE t ADD COLUMN c INT",
        "REPLACE INTO t VALUES (1, 1)",
    ];
    for (sql, limit) in waiting.into_iter().zip(limits) {
        let mut waiter = engine.connect();
        rows(&mut waiter, &format!("SET {limit} = 1")).await;
        let failed = run(&mut waiter, sql).await.unwrap_err();
        assert_eq!(failed.code, 1205, "{sql}: {failed}");
        rows(&mut waiter, &format!("SET {limit} = 1000")).await;
        let cancel = waiter.cancel_handle();
        let waiting = start(waiter, sql);
        until_waits(&engine, sql, &waiting).await;
        cancel.cancel();
        let (_, ran) = waiting.await.unwrap();
        assert_eq!(ran.unwrap_err().code, 1317, "{sql}");
    }
    holder.free().await.unwrap();
    let found = rows(&mut session, "SELECT id, a FROM t ORDER BY id").await;
    assert_eq!(found, [["1", "2"], ["2", "3"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_without_keys_change_beside_steady_inserts() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let mut session = engine.connect();
    all(
        &mut session,
        &[
            "SET cte_max_recursion_depth = 100000",
            "CREATE TABLE log (i INT, a INT)",
            &format!("INSERT INTO log {NUMBERS} SELECT -i, i FROM n"),
        ],
    )
    .await;
    let ends = Arc::new(AtomicBool::new(false));
    let inserting = [insert(&engine, "log", &ends), insert(&engine, "log", &ends)];
    for _ in 0..10 {
        rows(&mut session, "UPDATE log SET a = a + 1 WHERE i < 0").await;
        rows(&mut session, "DELETE FROM log WHERE i = -1").await;
    }
    ends.store(true, Ordering::SeqCst);
    let mut inserted = 0;
    for inserting in inserting {
        inserted += inserting.await.unwrap();
    }
    let counts = "SELECT SUM(i >= 0), SUM(i < 0), SUM(IF(i < 0, a + i, 0)) FROM log";
    let expected = [
        inserted.to_string(),
        "19999".to_owned(),
        (19999 * 10).to_string(),
    ];
    assert_eq!(rows(&mut session, counts).await, [expected]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_sends_its_file_slowly_keeps_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let mut session = make(&engine).await;
    rows(&mut session, "SET GLOBAL local_infile = 1").await;
    let mut client = engine.connect();
    let mut files = client.client_files();
    let load = "LOAD DATA LOCAL INFILE 'rows' REPLACE INTO TABLE t FIELDS TERMINATED BY ','";
    let loading = start(client, load);
    let request = files.recv().await.unwrap();
    request
        .pieces
        .send(Ok(b"2,20\n3,3".to_vec()))
        .await
        .unwrap();
    // Others write meanwhile, and the table changes.
    for sql in [
        "UPDATE t SET a = a + 100",
        "INSERT INTO t VALUES (4, 4)",
        "ALTER TABLE t ADD KEY (a)",
    ] {
        let ran = tokio::time::timeout(PATIENCE, run(&mut session, sql)).await;
        ran.unwrap_or_else(|_| panic!("{sql} waits")).unwrap();
    }
    request.pieces.send(Ok(b"0\n5,5".to_vec())).await.unwrap();
    request.pieces.send(Ok(Vec::new())).await.unwrap();
    loading.await.unwrap().1.unwrap();
    let found = rows(&mut session, "SELECT id, a FROM t ORDER BY id").await;
    let found: Vec<String> = found.iter().map(|row| row.join(" ")).collect();
    assert_eq!(found, ["1 101", "2 20", "3 30", "4 4", "5 5"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_others_make_first_exists() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let mut session = engine.connect();
    for (exists, expected) in [("IF NOT EXISTS ", Ok(())), ("", Err(1050))] {
        let sql = format!("CREATE TABLE {exists}n SELECT {GATE} AS gate");
        let holder = Holder::begin(&engine, &sql).await;
        all(
            &mut session,
            &["CREATE TABLE n (a INT)", "INSERT INTO n VALUES (5)"],
        )
        .await;
        let ran = holder.free().await;
        assert_eq!(ran.map(drop).map_err(|error| error.code), expected, "{sql}");
        assert_eq!(rows(&mut session, "SELECT * FROM n").await, [["5"]]);
        rows(&mut session, "DROP TABLE n").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_is_replaced_is_there_at_any_moment() {
    let directory = tempfile::tempdir().unwrap();
    let engine = engine(directory.path());
    let mut session = engine.connect();
    rows(&mut session, "CREATE TABLE n SELECT 0 AS a").await;
    let ends = Arc::new(AtomicBool::new(false));
    let readers = [0, 1].map(|_| {
        let (mut session, ends) = (engine.connect(), Arc::clone(&ends));
        tokio::spawn(async move {
            while !ends.load(Ordering::SeqCst) {
                rows(&mut session, "SELECT a FROM n").await;
                rows(&mut session, "INSERT INTO n (a) VALUES (-1)").await;
            }
        })
    });
    for number in 0..200 {
        rows(
            &mut session,
            &format!("CREATE OR REPLACE TABLE n SELECT {number} AS a"),
        )
        .await;
    }
    ends.store(true, Ordering::SeqCst);
    for reader in readers {
        reader.await.unwrap();
    }
    rows(&mut session, "DELETE FROM n WHERE a < 0").await;
    assert_eq!(rows(&mut session, "SELECT * FROM n").await, [["199"]]);
}
