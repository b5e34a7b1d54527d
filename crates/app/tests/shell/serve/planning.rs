//! Statements that are hard to plan, and the clients beside them.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use super::running::{Server, code};

/// A watchdog: what takes longer than this has hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// The states of a statement while it is planned.
const PLANNING: [&str; 2] = ["Optimizing", "Preparing"];

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
        if PLANNING.contains(&state.as_str()) {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "connection {id}: {state}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// What a client asks beside them, of which an answer comes before they are planned.
async fn answered<T, E: std::fmt::Debug>(
    asked: &str,
    answer: impl Future<Output = Result<T, E>>,
) -> T {
    let answer = tokio::time::timeout(PATIENCE, answer).await;
    let answer = answer.unwrap_or_else(|_| panic!("{asked} is not answered"));
    answer.unwrap_or_else(|error| panic!("{asked}: {error:?}"))
}

/// Nothing but a KILL ends them: there is no time limit. The server has as many threads as there
/// are of them.
#[tokio::test]
async fn two_statements_that_are_hard_to_plan_hold_up_nobody() {
    let server = Server::start(&[]);
    let mut watcher = server.connect().await;
    for sql in [
        "CREATE TABLE t1 (a INT, b INT)",
        "INSERT INTO t1 VALUES (1, 2), (2, 3)",
    ] {
        answered(sql, watcher.query_drop(sql)).await;
    }
    let mut hostile = Vec::new();
    for _ in 0..2 {
        let mut client = server.connect().await;
        let id = client.id();
        let unlimited = "SET SESSION max_execution_time = 0";
        answered(unlimited, client.query_drop(unlimited)).await;
        let statement = tokio::spawn(async move {
            let ended = client.query_drop(hard_to_plan()).await;
            (client, ended)
        });
        hostile.push((id, statement));
    }
    for (id, _) in &hostile {
        until_planned(&mut watcher, *id).await;
    }
    // A connection that was there, and one that comes now.
    let mut newcomer = answered("a login", Conn::new(server.options("root", ""))).await;
    for client in [&mut watcher, &mut newcomer] {
        answered("SET", client.query_drop("SET @a = 6")).await;
        let a: Option<i64> = answered("SELECT @a", client.query_first("SELECT @a + 1")).await;
        assert_eq!(a, Some(7));
        answered("a ping", client.ping()).await;
        let sql = "SELECT SUM(b) FROM t1 WHERE b > 1";
        let sum: Option<u64> = answered(sql, client.query_first(sql)).await;
        assert_eq!(sum, Some(5));
        let sql = "SHOW PROCESSLIST";
        let list: Vec<Row> = answered(sql, client.query(sql)).await;
        for (id, statement) in &hostile {
            let is_listed = |row: &Row| row.get::<u32, _>("Id") == Some(*id);
            assert!(list.iter().any(is_listed), "connection {id}");
            assert!(!statement.is_finished(), "connection {id}");
        }
    }
    for (id, _) in &hostile {
        let state = answered("a state", async {
            Ok::<_, ()>(state_of(&mut watcher, *id).await.unwrap_or_default())
        });
        let state = state.await;
        assert!(PLANNING.contains(&state.as_str()), "{state}");
    }
    // The statement of one is killed, and the connection of the other.
    let Ok([(first_id, first), (second_id, second)]) = <[_; 2]>::try_from(hostile) else {
        panic!("there are two");
    };
    let sql = format!("KILL QUERY {first_id}");
    answered(&sql, newcomer.query_drop(&sql)).await;
    let (mut client, ended) = answered(&sql, first).await;
    let error = ended.expect_err("it was killed");
    assert_eq!(code(&error), 1317, "{error}");
    let sql = "SELECT @@max_execution_time";
    let limit: Option<u64> = answered(sql, client.query_first(sql)).await;
    assert_eq!(limit, Some(0));
    assert!(!second.is_finished());
    let sql = format!("KILL {second_id}");
    answered(&sql, newcomer.query_drop(&sql)).await;
    let (_, ended) = answered(&sql, second).await;
    ended.expect_err("it was killed");
    until_gone(&mut watcher, second_id).await;
    answered("a ping", client.ping()).await;
}

async fn until_gone(watcher: &mut Conn, id: u32) {
    let started = Instant::now();
    loop {
        let list: Vec<Row> = watcher.query("SHOW PROCESSLIST").await.unwrap();
        let is_listed = |row: &Row| row.get::<u32, _>("Id") == Some(id);
        if !list.iter().any(is_listed) {
            return;
        }
        assert!(
            started.elapsed() < PATIENCE,
            "connection {id} is still there"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
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
    until_gone(&mut watcher, id).await;
}
