//! The counters of a server over HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;

use mysql_async::prelude::Queryable;

use super::running::Server;

/// Sends some bytes to the port of the counters, and reads the answer.
fn ask(url: &str, request: &str) -> String {
    let address = url
        .trim_start_matches("http://")
        .trim_end_matches("/metrics");
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_monitor_reads_the_counters() {
    let server = Server::start(&["--metrics-port", "0"]);
    let url = server.metrics.clone().expect("it says where");
    let mut client = server.connect().await;
    client
        .query_drop("CREATE TABLE t (a INT)")
        .await
        .expect("a table");
    client
        .query_drop("INSERT INTO t VALUES (1), (1)")
        .await
        .expect("rows");
    for _ in 0..3 {
        let rows: Vec<i32> = client
            .query("SELECT a FROM t GROUP BY a")
            .await
            .expect("rows");
        assert_eq!(rows, [1]);
    }
    let answer = ask(&url, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains(&format!("Content-Length: {}", body.len())),
        "{head}"
    );
    let value = |name: &str| -> u64 {
        let line = body
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is not in {body}"))
            .parse()
            .expect("a number")
    };
    assert_eq!(value("mysql_up"), 1);
    assert!(value("mysql_global_status_commands_total{command=\"select\"}") >= 3);
    assert!(value("mysql_global_status_created_tmp_tables") >= 3);
    assert_eq!(value("mysql_global_status_threads_connected"), 1);
    assert_eq!(value("mysql_global_status_mayfly_memory_bytes"), 64 << 20);
    for line in [
        "# TYPE mysql_up gauge",
        "# TYPE mysql_global_status_commands_total counter",
        "# TYPE mysql_global_status_memory_used gauge",
        "# TYPE mysql_global_status_questions counter",
    ] {
        assert_eq!(
            body.lines().filter(|found| *found == line).count(),
            1,
            "{line}"
        );
    }
    let nothing = ask(&url, "GET /other HTTP/1.1\r\n\r\n");
    assert!(nothing.starts_with("HTTP/1.1 404 "), "{nothing}");
    let refused = ask(&url, "POST /metrics HTTP/1.1\r\n\r\n");
    assert!(refused.starts_with("HTTP/1.1 405 "), "{refused}");
    assert!(ask(&url, "\u{1}\u{2}\r\n\r\n").starts_with("HTTP/1.1 400 "));
    client.disconnect().await.expect("it ends");
}
