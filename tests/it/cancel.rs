//! Statements that are stopped in the middle: by the handle, by dropping their rows, by dropping
//! their future, by a panic.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use mayfly_session::{CancelHandle, Engine, EngineOptions, Outcome, Session, TestFaults};
use mayfly_space::{Faults, Operation, Space, SpaceOptions};

use crate::budgets::SPILLING;
use crate::engine::{check_nothing_left, check_tables, make_wide, open, open_with, rows, run};

/// Tens of millions of groups: never ends while a test looks.
const ENDLESS: &str = "SELECT COUNT(*) FROM (SELECT a.k, b.n, COUNT(*) FROM wide a, wide b \
                       GROUP BY a.k, b.n) g";

const PATIENCE: Duration = Duration::from_secs(30);

async fn session_with_rows(engine: &Engine) -> Session {
    let mut session = engine.connect();
    make_wide(&mut session, 20_000).await;
    session
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_statement_ends_with_1317_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(SPILLING, directory.path());
    let mut session = session_with_rows(&engine).await;
    {
        let (cancel, progress) = (session.cancel_handle(), session.progress_handle());
        let watcher = tokio::spawn(async move {
            let started = Instant::now();
            while progress.read().temp_bytes_written == 0 && started.elapsed() < PATIENCE {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            cancel.cancel();
            Instant::now()
        });
        let error = run(&mut session, ENDLESS)
            .await
            .expect_err("it was cancelled");
        let cancelled = watcher.await.unwrap();
        assert_eq!(error.code, 1317, "{error}");
        assert!(
            cancelled.elapsed() < Duration::from_secs(10),
            "{:?}",
            cancelled.elapsed()
        );
        assert!(rows(&mut session, "SELECT COUNT(*) FROM wide").await == [["20000"]]);
    }
    drop(session);
    check_nothing_left(&engine, "cancel").await;
}

/// Joins that compare pairs for minutes, and hand none of them on.
const PAIRLESS: [&str; 4] = [
    "SELECT COUNT(*) FROM many a JOIN many b ON a.n + b.n < 0",
    "SELECT COUNT(*) FROM many a LEFT JOIN many b ON a.n > b.n + 9000000000",
    "SELECT COUNT(*) FROM many a WHERE EXISTS (SELECT 1 FROM many b WHERE b.n < a.n AND b.n + a.n < 0)",
    "SELECT COUNT(*) FROM many a JOIN many b ON a.few = b.few AND a.n + b.n < 0",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_without_pairs_are_stopped_and_leave_their_threads_to_others() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(SPILLING, directory.path());
    let mut session = session_with_rows(&engine).await;
    let sql = "CREATE TEMPORARY TABLE many AS \
               SELECT a.n * 20000 + b.n AS n, b.n % 4 AS few FROM wide a JOIN wide b ON a.n < 10";
    run(&mut session, sql).await.unwrap();
    for sql in PAIRLESS {
        let cancel = session.cancel_handle();
        let mut other = engine.connect();
        let watcher = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let started = Instant::now();
            assert!(rows(&mut other, "SELECT 1").await == [["1"]]);
            cancel.cancel();
            started
        });
        let error = run(&mut session, sql).await.expect_err("it was cancelled");
        let ended = watcher.await.unwrap().elapsed();
        assert_eq!(error.code, 1317, "{sql}: {error}");
        assert!(ended < Duration::from_secs(10), "{sql}: {ended:?}");
    }
    drop(session);
    check_nothing_left(&engine, "joins without pairs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_between_statements_does_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(SPILLING, directory.path());
    let mut session = engine.connect();
    session.cancel_handle().cancel();
    assert!(rows(&mut session, "SELECT 1").await == [["1"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_rows_stop_the_statement() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(SPILLING, directory.path());
    let mut session = session_with_rows(&engine).await;
    let sql = "SELECT a.k, b.n FROM wide a, wide b";
    let Outcome::Rows { mut batches, .. } = session.execute(sql).await.unwrap() else {
        panic!("a query has rows");
    };
    assert!(batches.next().await.unwrap().unwrap().num_rows() > 0);
    drop(batches);
    assert!(rows(&mut session, "SELECT COUNT(*) FROM wide").await == [["20000"]]);
    drop(session);
    check_nothing_left(&engine, "dropped rows").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_future_stops_the_statement() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(SPILLING, directory.path());
    let mut session = session_with_rows(&engine).await;
    let timed = tokio::time::timeout(Duration::from_millis(300), run(&mut session, ENDLESS)).await;
    assert!(timed.is_err(), "it ended by itself");
    assert!(rows(&mut session, "SELECT COUNT(*) FROM wide").await == [["20000"]]);
    drop(session);
    check_nothing_left(&engine, "dropped future").await;
}

/// Rows on their way through a pipe: a statement that reads them is in one step, which nothing
/// ends, for as long as the pipe is open.
struct Pipe {
    path: String,
    writer: std::thread::JoinHandle<()>,
    /// Told when rows are in the table, and the statement waits for the pipe.
    begun: tokio::sync::oneshot::Receiver<()>,
    close: std::sync::mpsc::Sender<()>,
}

impl Pipe {
    /// More than a reader takes before it writes rows to a table.
    const ROWS: usize = 100_000;
    /// What a pipe holds: so much is written when all that came before has been read.
    const BYTES: usize = 64 << 10;

    fn open(directory: &std::path::Path) -> Pipe {
        let path = directory.join("pipe").display().to_string();
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let (tell, begun) = tokio::sync::oneshot::channel();
        let (close, closed) = std::sync::mpsc::channel();
        let target = path.clone();
        let writer = std::thread::spawn(move || {
            use std::io::Write;
            let mut pipe = std::fs::File::create(target).unwrap();
            let mut rows = Vec::new();
            for id in 0..Pipe::ROWS {
                writeln!(rows, "{id},theirs").unwrap();
            }
            rows.extend_from_slice(b"-2,a last row without an end");
            pipe.write_all(&rows).unwrap();
            // The second begins to be read when the rows in front of the first have been taken.
            for _ in 0..3 {
                pipe.write_all(&[b'x'; Pipe::BYTES]).unwrap();
            }
            tell.send(()).unwrap();
            let _ = closed.recv();
        });
        Pipe {
            path,
            writer,
            begun,
            close,
        }
    }

    fn load(&self) -> String {
        let path = &self.path;
        format!("LOAD DATA INFILE '{path}' REPLACE INTO TABLE t FIELDS TERMINATED BY ','")
    }

    /// Closes and removes it.
    fn end(self) {
        self.close.send(()).unwrap();
        self.writer.join().unwrap();
        std::fs::remove_file(self.path).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_begins_before_one_that_was_dropped_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    let create = "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, a MEDIUMTEXT)";
    rows(&mut session, create).await;
    rows(&mut session, "INSERT INTO t VALUES (1, 'mine')").await;
    // One that is between two steps when its future is dropped ends there.
    let mut tries = 0..20;
    let pipe = loop {
        tries.next().expect("a dropped statement that goes on");
        let mut pipe = Pipe::open(directory.path());
        let load = pipe.load();
        tokio::select! {
            ended = session.execute(&load) => panic!("{:?}", ended.err()),
            begun = &mut pipe.begun => begun.unwrap(),
        }
        // Its future is gone; what it had done to the table it puts back when it comes to its end.
        let listed = rows(&mut engine.connect(), "SHOW FULL PROCESSLIST").await;
        match listed.iter().any(|row| row.last() == Some(&load)) {
            true => break pipe,
            false => pipe.end(),
        }
    };
    {
        // Runs in its first poll where nothing is in the way.
        let mut commit = std::pin::pin!(session.execute("COMMIT"));
        assert!(futures::poll!(&mut commit).is_pending());
        pipe.close.send(()).unwrap();
        commit.await.unwrap();
    }
    pipe.writer.join().unwrap();
    rows(&mut session, "INSERT INTO t VALUES (-1, 'acknowledged')").await;
    let found = rows(&mut session, "SELECT * FROM t ORDER BY id").await;
    assert_eq!(found, [["-1", "acknowledged"], ["1", "mine"]]);
    drop(session);
    check_nothing_left(&engine, "a dropped future").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shared_table_is_free_when_a_dropped_statement_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut other = engine.connect();
    rows(
        &mut other,
        "CREATE TABLE t (id INT PRIMARY KEY, a MEDIUMTEXT)",
    )
    .await;
    rows(&mut other, "INSERT INTO t VALUES (1, 'mine')").await;
    rows(&mut other, "SET lock_wait_timeout = 1").await;
    let insert = "INSERT INTO t VALUES (2, 'other')";
    // A statement that is between two steps when its client goes ends there. One that waits for the
    // pipe is wanted, and nobody can see that from outside.
    let mut tries = 0..20;
    let pipe = loop {
        tries
            .next()
            .expect("a dropped statement that has the table");
        let mut session = engine.connect();
        let mut pipe = Pipe::open(directory.path());
        let load = pipe.load();
        tokio::select! {
            ended = session.execute(&load) => panic!("{:?}", ended.err()),
            begun = &mut pipe.begun => begun.unwrap(),
        }
        // Its client is gone too; its task has the table still.
        drop(session);
        match run(&mut other, insert).await {
            Err(error) => {
                assert_eq!(error.code, 1205);
                break pipe;
            }
            Ok(_) => pipe.end(),
        }
        rows(&mut other, "DELETE FROM t WHERE id = 2").await;
    };
    rows(&mut other, "SET lock_wait_timeout = 1000").await;
    pipe.close.send(()).unwrap();
    rows(&mut other, insert).await;
    pipe.writer.join().unwrap();
    let found = rows(&mut other, "SELECT * FROM t ORDER BY id").await;
    assert_eq!(found, [["1", "mine"], ["2", "other"]]);
    rows(&mut other, "DROP TABLE t").await;
    drop(other);
    check_nothing_left(&engine, "a client that is gone").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_do_not_disturb_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let engine = engine.clone();
            tokio::spawn(async move {
                let mut session = session_with_rows(&engine).await;
                let sql = "SELECT COUNT(*), SUM(c) FROM (SELECT k, word, COUNT(*) c FROM wide \
                           GROUP BY k, word) g";
                let mut answers = Vec::new();
                for _ in 0..3 {
                    answers.push(rows(&mut session, sql).await);
                }
                answers
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap());
    }
    assert!(all.iter().all(|answer| *answer == all[0]));
    check_nothing_left(&engine, "sessions").await;
}

/// Kills a statement at the n-th grant of memory; nothing fails.
#[derive(Default)]
struct KillAtGrant {
    killed: Mutex<Option<CancelHandle>>,
    /// The grants since it was armed.
    seen: AtomicU64,
    at: AtomicU64,
}

impl KillAtGrant {
    fn arm(&self, killed: CancelHandle, at: u64) {
        *self.killed.lock().unwrap() = Some(killed);
        self.seen.store(0, Ordering::SeqCst);
        self.at.store(at, Ordering::SeqCst);
    }

    /// Kills nobody any more; how many grants there were.
    fn disarm(&self) -> u64 {
        self.at.store(0, Ordering::SeqCst);
        self.seen.load(Ordering::SeqCst)
    }
}

impl Faults for KillAtGrant {
    fn before(&self, operation: Operation) -> std::io::Result<()> {
        if operation == Operation::Grant {
            let seen = self.seen.fetch_add(1, Ordering::SeqCst) + 1;
            if seen == self.at.load(Ordering::SeqCst)
                && let Some(killed) = self.killed.lock().unwrap().as_ref()
            {
                killed.cancel();
            }
        }
        Ok(())
    }
}

/// The rows are all written when the entries of their keys begin to come: what a statement asks of
/// memory beyond what it asks where there are no keys is asked by the commit, which is one step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_is_killed_while_it_commits() {
    let directory = tempfile::tempdir().unwrap();
    let kill = Arc::new(KillAtGrant::default());
    let options = EngineOptions {
        memory_bytes: 64 << 20,
        faults: Some(TestFaults(Arc::clone(&kill) as _)),
        ..EngineOptions::default()
    };
    let engine = open_with(options, directory.path());
    let mut session = session_with_rows(&engine).await;
    let keys = ", PRIMARY KEY (n), KEY (k), KEY (word, n), KEY (k, word, n), KEY (word, k, n)";
    let insert = "INSERT INTO t SELECT n, k, word FROM wide";
    let state = "SELECT COUNT(*), SUM(n), SUM(CRC32(CONCAT_WS(',', n, k, word))) FROM t";
    for kind in ["", "TEMPORARY"] {
        // Without keys nothing but the rows asks for memory.
        let create = |keys: &str| {
            format!("CREATE {kind} TABLE t (n INT, k CHAR(32), word VARCHAR(100){keys})")
        };
        let statements = [
            insert,
            "UPDATE t SET k = REVERSE(k), word = CONCAT(word, n)",
        ];
        let mut grants = [[0; 2]; 2];
        for (which, keys) in ["", keys].into_iter().enumerate() {
            rows(&mut session, &create(keys)).await;
            for (sql, grants) in statements.iter().zip(&mut grants) {
                kill.arm(session.cancel_handle(), 0);
                rows(&mut session, sql).await;
                grants[which] = kill.disarm();
            }
            rows(&mut session, "DROP TABLE t").await;
        }
        rows(&mut session, &create(keys)).await;
        rows(&mut session, "INSERT INTO t VALUES (-1, 'mine', 'own')").await;
        for (sql, [of_rows, of_all]) in statements.into_iter().zip(grants) {
            let of_keys = of_all.saturating_sub(of_rows);
            assert!(of_keys > 50, "{kind}, {sql}: {grants:?}");
            let in_commit = of_rows + of_keys / 2;
            let before = rows(&mut session, state).await;
            kill.arm(session.cancel_handle(), in_commit);
            let error = run(&mut session, sql).await.expect_err("it was killed");
            let seen = kill.disarm();
            assert_eq!(error.code, 1317, "{sql}: {error}");
            // It was killed behind its rows, and before all of its entries were there.
            let in_commit = in_commit..of_all;
            assert!(
                in_commit.contains(&seen),
                "{kind}, {sql}: {seen}, {grants:?}"
            );
            assert_eq!(rows(&mut session, state).await, before, "{sql}");
            check_tables(&session, sql).await;
            // The same statement goes when nobody kills it.
            rows(&mut session, sql).await;
            assert_ne!(rows(&mut session, state).await, before, "{sql}");
            check_tables(&session, sql).await;
        }
        rows(&mut session, "DROP TABLE t").await;
    }
    drop(session);
    check_nothing_left(&engine, "killed in a commit").await;
}

/// A function that panics on its 5000th row.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Panics(Signature);

impl ScalarUDFImpl for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        static ROWS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let seen = ROWS.fetch_add(arguments.number_rows, std::sync::atomic::Ordering::Relaxed);
        assert!(seen < 5000, "on purpose");
        Ok(arguments.args[0].clone())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_in_a_function_leaves_nothing() {
    let space = Space::open(SpaceOptions {
        memory_bytes: SPILLING,
        ..SpaceOptions::default()
    })
    .unwrap();
    let config = SessionConfig::new().with_target_partitions(2);
    let builder = SessionStateBuilder::new()
        .with_default_features()
        .with_config(config);
    let state = mayfly_exec::install(builder, &space).unwrap().build();
    let context = SessionContext::new_with_state(state);
    let signature = Signature::exact(vec![DataType::Int64], Volatility::Volatile);
    context.register_udf(ScalarUDF::new_from_impl(Panics(signature)));
    for sql in [
        "SELECT panics(value) AS v, count(*) FROM range(100000) GROUP BY 1",
        "SELECT panics(value) AS v FROM range(100000) ORDER BY v",
        "SELECT DISTINCT panics(value % 700) AS v FROM range(100000)",
    ] {
        let context = context.clone();
        let sql = sql.to_owned();
        let ended = tokio::spawn(async move { context.sql(&sql).await?.collect().await }).await;
        match ended {
            Err(panicked) => assert_message(panicked.into_panic()),
            Ok(result) => assert!(result.is_err(), "the function panicked"),
        }
    }
    let sum = context
        .sql("SELECT count(*) FROM range(1000)")
        .await
        .unwrap()
        .collect()
        .await;
    assert_eq!(sum.unwrap()[0].num_rows(), 1);
    drop(context);
    let started = Instant::now();
    while space.memory_used_bytes() > 0 && started.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let counters = space.counters();
    assert_eq!(
        (space.memory_used_bytes(), counters.pages_live),
        (0, 0),
        "{counters:?}"
    );
    space.verify();
}

fn assert_message(payload: Box<dyn Any + Send>) {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    let text = text
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    assert!(text.contains("on purpose"), "{text}");
}
