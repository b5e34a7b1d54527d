//! The counters of a server over HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;

use super::running::Server;

/// The longest that a test waits for something that comes by itself.
const LIMIT: Duration = Duration::from_secs(20);

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

/// An answer, or the beginning of one; nothing if the server hangs up.
fn try_to_ask(address: &str, request: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    if let Ok(mut stream) = TcpStream::connect(address) {
        // It may have hung up while the rest of the request is still to be sent.
        let _sent = stream.write_all(request);
        let _read = stream.read_to_end(&mut answer);
    }
    answer
}

#[test]
fn strangers_do_not_keep_a_monitor_out() {
    let server = Server::start(&["--metrics-port", "0"]);
    let url = server.metrics.clone().expect("it says where");
    let address = url
        .trim_start_matches("http://")
        .trim_end_matches("/metrics");
    let monitored = |what: &str| {
        let started = Instant::now();
        loop {
            let answer = try_to_ask(address, b"GET /metrics HTTP/1.1\r\n\r\n");
            if answer.starts_with(b"HTTP/1.1 200 OK") {
                break;
            }
            assert!(started.elapsed() < LIMIT, "{what}: the monitor is kept out");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    monitored("at first");
    let (files, threads) = (server.open_files(), server.threads());
    let memory = server.resident_bytes();
    let long_line = [b"GET /".to_vec(), vec![b'x'; 1 << 20]].concat();
    let mut headers = b"GET /metrics HTTP/1.1\r\n".to_vec();
    for number in 0..50_000 {
        headers.extend_from_slice(format!("X-{number}: y\r\n").as_bytes());
    }
    let rubbish: Vec<u8> = (0..40_000_u32).map(|at| ((at * 7919) >> 5) as u8).collect();
    for (what, request) in [
        ("no newline", long_line.as_slice()),
        ("endless headers", &headers),
        ("rubbish", &rubbish),
        ("zeros", &[0; 9000]),
        ("no version", b"GET /metrics\r\n\r\n"),
        ("bytes that are no text", b"\xFF\xFE \xC0 HTTP/1.1\r\n\r\n"),
        ("nothing at all", b""),
    ] {
        if !request.is_empty() {
            let answer = try_to_ask(address, request);
            assert!(!answer.starts_with(b"HTTP/1.1 200"), "{what}");
        }
        monitored(what);
    }
    // One byte now and then, as long as the server listens.
    let mut slow = TcpStream::connect(address).expect("it listens");
    let started = Instant::now();
    while slow.write_all(b"G").is_ok() {
        assert!(started.elapsed() < LIMIT, "a slow client is hung up on");
        std::thread::sleep(Duration::from_millis(100));
    }
    // Many that say nothing, and many that do not read.
    let mut idle = Vec::new();
    for number in 0..300 {
        if let Ok(mut stream) = TcpStream::connect(address) {
            if number % 2 == 0 {
                let _sent = stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
            }
            idle.push(stream);
        }
    }
    assert!(server.threads() <= threads + 17, "{}", server.threads());
    monitored("beside many");
    drop(idle);
    let started = Instant::now();
    // A thread or two may have come for something else.
    while server.open_files() > files || server.threads() > threads + 2 {
        let now = (server.open_files(), server.threads());
        let is_long = started.elapsed() > 3 * LIMIT;
        assert!(!is_long, "given back: {:?} of {now:?}", (files, threads));
        std::thread::sleep(Duration::from_millis(50));
    }
    let grown = server.resident_bytes().saturating_sub(memory);
    assert!(grown < 8 << 20, "{grown} bytes more");
}
