//! Statements that are prepared in one database and run in another.

use std::time::Duration;

use mayfly_session::{Parameter, Prepared, Session};

use crate::budgets::UNLIMITED;
use crate::engine::{check_nothing_left, open, read, rows};

async fn prepare(session: &mut Session, sql: &str) -> Prepared {
    let prepared = session.prepare(sql).await;
    prepared.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

async fn execute(
    session: &mut Session,
    prepared: &Prepared,
    values: &[Parameter<'_>],
) -> Vec<Vec<String>> {
    let text = prepared.with(values).unwrap();
    let ran = read(session.execute_prepared(prepared, &text).await.unwrap()).await;
    ran.unwrap().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_runs_where_it_was_prepared() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(UNLIMITED, directory.path());
    let mut session = engine.connect();
    for sql in [
        "CREATE DATABASE one",
        "CREATE DATABASE two",
        "CREATE TABLE one.t (a INT PRIMARY KEY, b INT)",
        "CREATE TABLE two.t (a INT PRIMARY KEY, c INT)",
        "INSERT INTO one.t VALUES (1, 2)",
        "INSERT INTO two.t VALUES (1, 3)",
        "USE one",
    ] {
        rows(&mut session, sql).await;
    }
    let found = prepare(&mut session, "SELECT * FROM t WHERE a = ?").await;
    let added = prepare(&mut session, "INSERT INTO t VALUES (?, ?)").await;
    assert_eq!(found.columns()[1].name, "b");
    // The third time a statement of this shape is known, here as well as there.
    for id in 2..6 {
        let values = [Parameter::Integer(id), Parameter::Integer(7)];
        rows(&mut session, "USE two").await;
        execute(&mut session, &added, &values).await;
        let row = execute(&mut session, &found, &values[..1]).await;
        assert_eq!(row, [[id.to_string(), "7".to_owned()]]);
        let failed = session.execute_prepared(&found, "SELECT nosuch").await;
        assert!(failed.is_err());
        assert_eq!(session.database().as_deref(), Some("two"));
        assert_eq!(
            rows(&mut session, "SELECT * FROM t WHERE a = 1").await,
            [["1", "3"]]
        );
        rows(&mut session, "USE one").await;
        assert_eq!(
            rows(&mut session, "SELECT * FROM t WHERE a = 1").await,
            [["1", "2"]]
        );
    }
    assert_eq!(
        rows(&mut session, "SELECT COUNT(*) FROM two.t").await,
        [["1"]]
    );
    for sql in ["DROP DATABASE one", "DROP DATABASE two"] {
        rows(&mut session, sql).await;
    }
    drop((found, added));
    drop(session);
    check_nothing_left(&engine, "prepared").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_gives_a_statement_up_is_back_for_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(UNLIMITED, directory.path());
    let mut session = engine.connect();
    for sql in ["CREATE DATABASE one", "USE one"] {
        rows(&mut session, sql).await;
    }
    // The first sleeps before it answers, the second while its rows are read.
    let mut slow = Vec::new();
    for sql in ["DO SLEEP(600)", "SELECT SLEEP(600)"] {
        slow.push(prepare(&mut session, sql).await);
    }
    rows(&mut session, "USE test").await;
    for slow in slow.iter().cycle().take(4) {
        let text = slow.with(&[]).unwrap();
        let ended = tokio::time::timeout(Duration::from_millis(50), async {
            read(session.execute_prepared(slow, &text).await?).await
        });
        assert!(ended.await.is_err(), "it sleeps");
        assert_eq!(
            rows(&mut session, "SELECT DATABASE()").await,
            [["test"]],
            "{text}"
        );
        assert_eq!(session.database().as_deref(), Some("test"));
    }
    rows(&mut session, "DROP DATABASE one").await;
    drop(slow);
    drop(session);
    check_nothing_left(&engine, "given up").await;
}
