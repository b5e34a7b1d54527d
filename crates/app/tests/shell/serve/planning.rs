//! Statements that are hard to plan, and the clients beside them.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use super::running::{Server, code};

/// A watchdog: what takes longer than this has hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// As deep as MySQL allows, and wide: planned for longer than a test looks.
fn hard_to_plan() -> String {
    let items = (0..24).map(|item| format!("a{} AS c{item}", " + b".repeat(480)));
    format!("SELECT {} FROM t1", items.collect::<Vec<_>>().join(", "))
}

async fn state_of(watcher: &mut Conn, id: u32) -> Option<String> {
    let list: Vec<Row> = watcher.query("SHOW PROCESSLIST").await.unwrap();
    let row = list
        .iter()
        .find(|row| row.get::<u32, _>("Id") == Some(id))?;
    row.get::<Option<String>, _>("State").flatten()
}

async fn until_planned(watcher: &mut Conn, id: u32) {
    let started = Instant::now();
    loop {
        let state = state_of(watcher, id).await.unwrap_or_default();
        if ["Optimizing", "Preparing"].contains(&state.as_str()) {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "connection {id}: {state}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn two_statements_that_are_hard_to_plan_hold_up_nobody() {
    let server = Server::start(&[]);
    let mut watcher = server.connect().await;
    watcher
        .query_drop("CREATE TABLE t1 (a INT, b INT)")
        .await
        .unwrap();
    watcher
        .query_drop("INSERT INTO t1 VALUES (1, 2), (2, 3)")
        .await
        .unwrap();
    let mut hostile = Vec::new();
    for _ in 0..2 {
        let mut client = server.connect().await;
        let id = client.id();
        let statement = tokio::spawn(async move { client.query_drop(hard_to_plan()).await });
        hostile.push((id, statement));
    }
    for (id, _) in &hostile {
        until_planned(&mut watcher, *id).await;
    }
    let mut newcomer = server.connect().await;
    let sum: Option<u64> = newcomer
        .query_first("SELECT SUM(b) FROM t1 WHERE b > 1")
        .await
        .unwrap();
    assert_eq!(sum, Some(5));
    for (id, statement) in hostile {
        assert!(!statement.is_finished());
        newcomer
            .query_drop(format!("KILL QUERY {id}"))
            .await
            .unwrap();
        let error = statement.await.unwrap().unwrap_err();
        assert_eq!(code(&error), 1317, "{error}");
    }
}

#[tokio::test]
async fn planning_ends_when_its_client_goes() {
    let server = Server::start(&[]);
    let mut watcher = server.connect().await;
    watcher
        .query_drop("CREATE TABLE t1 (a INT, b INT)")
        .await
        .unwrap();
    let mut client = server.connect().await;
    let id = client.id();
    let statement = tokio::spawn(async move { client.query_drop(hard_to_plan()).await });
    until_planned(&mut watcher, id).await;
    statement.abort();
    assert!(statement.await.unwrap_err().is_cancelled());
    let started = Instant::now();
    let is_listed = |list: &[Row]| list.iter().any(|row| row.get::<u32, _>("Id") == Some(id));
    loop {
        let list: Vec<Row> = watcher.query("SHOW PROCESSLIST").await.unwrap();
        if !is_listed(&list) {
            break;
        }
        assert!(
            started.elapsed() < PATIENCE,
            "connection {id} is still there"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
