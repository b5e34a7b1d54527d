//! What clients cost while they are there, and what they leave when they are gone.
//!
//! With `MAYFLY_FULL` set, 1,000 connections and 10,000 rounds; without, enough to see what grows.

use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::running::Server;

/// The longest that a test waits for something that comes by itself.
const LIMIT: Duration = Duration::from_secs(20);
/// What one idle connection may cost.
const IDLE_BYTES: u64 = 64 << 10;

/// Whether time does not matter.
fn is_full() -> bool {
    std::env::var_os("MAYFLY_FULL").is_some()
}

/// The connections that this process and the server may have, by their limits of files.
fn connections_max() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").expect("limits");
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = line
        .and_then(|line| line.split_whitespace().nth(3))
        .expect("a limit");
    // What is not a number is `unlimited`.
    let files: usize = soft.parse().unwrap_or(usize::MAX);
    files
        .saturating_sub(200)
        .min(if is_full() { 1000 } else { 300 })
}

async fn status(connection: &mut Conn, name: &str) -> u64 {
    let query = format!("SHOW GLOBAL STATUS LIKE '{name}'");
    let row: Option<(String, u64)> = connection.query_first(query).await.expect("a counter");
    row.expect("it is there").1
}

#[tokio::test]
async fn idle_connections_cost_little() {
    let server = Server::start(&[]);
    let mut first = server.connect().await;
    first
        .query_drop("SET GLOBAL max_connections = 2000")
        .await
        .expect("more clients");
    let work = [
        "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, v VARCHAR(20))",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "SELECT v, COUNT(*) FROM t GROUP BY v",
        "SELECT v FROM t WHERE id = 2",
        "DROP TEMPORARY TABLE t",
    ];
    // What the first clients bring into memory is there for all of them.
    for _ in 0..20 {
        let mut warm = server.connect().await;
        for statement in work {
            warm.query_drop(statement).await.expect(statement);
        }
        warm.disconnect().await.expect("it goes");
    }
    let before = server.resident_bytes();
    let mut idle = Vec::new();
    for number in 0..connections_max() {
        let mut connection = server.connect().await;
        // Some have worked before they rest.
        if number % 10 == 0 {
            for statement in work {
                connection.query_drop(statement).await.expect(statement);
            }
        }
        idle.push(connection);
    }
    let count = idle.len() as u64;
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(
        grown <= count * IDLE_BYTES,
        "{} bytes for each of {count} connections",
        grown / count
    );
    assert_eq!(status(&mut first, "Threads_connected").await, count + 1);
}

/// Creates, fills, reads and drops a table, again and again.
async fn rounds(mut connection: Conn, rounds: u32) -> Conn {
    for round in 0..rounds {
        connection
            .query_drop("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, word VARCHAR(200))")
            .await
            .expect("a table");
        connection
            .query_drop(format!(
                "INSERT INTO t VALUES (1, '{round}'), (2, REPEAT('x', 100)), (3, NULL)"
            ))
            .await
            .expect("rows");
        let rows: Vec<(u32, u64)> = connection
            .query("SELECT id, LENGTH(word) FROM t WHERE word IS NOT NULL ORDER BY 2 DESC")
            .await
            .expect("an answer");
        assert_eq!(rows[0], (2, 100));
        connection
            .query_drop("DROP TEMPORARY TABLE t")
            .await
            .expect("it is dropped");
    }
    connection
}

#[tokio::test]
async fn tables_that_come_and_go_leave_nothing() {
    const CLIENTS: u32 = 64;
    let all = if is_full() { 10_000 } else { 2_000 };
    let server = Server::start(&[]);
    let mut watching = server.connect().await;
    // What plans and functions take once is taken.
    rounds(server.connect().await, 3)
        .await
        .disconnect()
        .await
        .expect("it goes");
    let begun = settled(&server, &mut watching, None).await;
    let mut connections = Vec::new();
    for _ in 0..CLIENTS {
        connections.push(rounds(server.connect().await, 3).await);
    }
    let (memory, files) = (server.resident_bytes(), server.open_files());
    let working = connections
        .into_iter()
        .map(|connection| tokio::spawn(rounds(connection, all / CLIENTS)));
    let mut connections = Vec::new();
    for client in working.collect::<Vec<_>>() {
        connections.push(client.await.expect("all rounds"));
    }
    let grown = server.resident_bytes().saturating_sub(memory);
    assert!(grown < 8 << 20, "{grown} bytes more");
    assert_eq!(server.open_files(), files);
    assert_eq!(status(&mut watching, "Tmp_space_used").await, 0);
    // A plan that is kept may keep a page.
    let used = status(&mut watching, "Memory_used").await;
    assert!(
        used <= u64::from(CLIENTS) * IDLE_BYTES,
        "{used} bytes of the budget"
    );
    for connection in connections {
        connection.disconnect().await.expect("it goes");
    }
    settled(&server, &mut watching, Some(begun)).await;
}

/// What of the budget, of the temp space and of descriptors is in use, when it is no more than it
/// was, or, where nothing is wanted, when it does not change any more: the descriptor of a client
/// that has gone is closed a moment after it is counted no more.
async fn settled(
    server: &Server,
    watching: &mut Conn,
    wanted: Option<(u64, u64, usize)>,
) -> (u64, u64, usize) {
    let started = Instant::now();
    let mut before = None;
    loop {
        let is_alone = status(watching, "Threads_connected").await == 1;
        let found = (
            status(watching, "Memory_used").await,
            status(watching, "Tmp_space_used").await,
            server.open_files(),
        );
        let is_so = match wanted {
            Some(most) => found.0 <= most.0 && found.1 <= most.1 && found.2 <= most.2,
            None => before == Some(found),
        };
        if is_alone && is_so {
            return found;
        }
        before = Some(found);
        assert!(started.elapsed() < LIMIT, "{found:?} where {wanted:?} was");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
