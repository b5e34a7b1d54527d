//! Clients that try to fill the server: the others go on.

use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

use mysql_async::prelude::Queryable;

use super::raw::{NO_EOF, Raw};
use super::running::{Server, code};

const OUT_OF_MEMORY: [u8; 3] = [0xFF, 0x11, 0x04];
const MIB: usize = 1 << 20;

fn send_long_data(client: &mut Raw, statement: u8, bytes: usize) {
    let mut packet = vec![statement, 0, 0, 0, 0, 0];
    packet.resize(6 + bytes, b'x');
    client.command(0x18, &packet);
}

fn execute(client: &mut Raw, statement: u8) -> Vec<u8> {
    let parameters = b"\0\0\0\0\x01\0\0\0\0\x01\xFD\0";
    client.command(0x17, &[&[statement], &parameters[..]].concat());
    client.read()
}

#[tokio::test]
async fn what_clients_send_ahead_is_paid_from_the_budget() {
    let server = Server::start(&[]);
    let mut watching = server.connect().await;
    let mut clients = Vec::new();
    for _ in 0..8 {
        let mut client = Raw::connect(&server, NO_EOF);
        client.command(0x16, b"DO ?");
        let prepared = client.read();
        assert_eq!(prepared[0], 0, "{prepared:?}");
        client.read();
        // More than one client may hold of 64 MiB.
        for _ in 0..20 {
            send_long_data(&mut client, 1, MIB);
        }
        // It has read what came, and forgotten it.
        assert_eq!(execute(&mut client, 1)[..3], OUT_OF_MEMORY);
        // What is left to one client, kept until the end.
        for _ in 0..3 {
            send_long_data(&mut client, 1, MIB);
        }
        assert!(client.query("SELECT 1").row(0) == ["1"]);
        clients.push(client);
    }
    // The other half is left to statements.
    let sum: Option<u64> = watching
        .query_first("SELECT COUNT(*) FROM (WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i, COUNT(*) FROM n GROUP BY i) g")
        .await
        .expect("there is memory for it");
    assert_eq!(sum, Some(1000));
}

#[tokio::test]
async fn a_statement_that_is_too_long_for_the_budget_is_an_error() {
    let server = Server::start(&[]);
    let mut connection = server.connect().await;
    let text = format!("SELECT LENGTH('{}')", "x".repeat(40 * MIB));
    let error = connection.query_drop(text).await.expect_err("too long");
    assert_eq!(code(&error), 1041, "{error}");
    // A short one is no worse for it, nor one that is kept.
    let one: Option<u8> = connection
        .query_first("SELECT 1")
        .await
        .expect("it goes on");
    assert_eq!(one, Some(1));
}

#[tokio::test]
async fn a_text_of_many_statements_takes_the_memory_of_one() {
    let server = Server::start(&[]);
    let mut connection = server.connect().await;
    connection.query_drop("SELECT 1; SELECT 2").await.unwrap();
    let before = server.peak_bytes();
    // The first of them fails.
    let text = format!("SELEC 1;{}", "SELECT 1;".repeat(MIB));
    let error = connection.query_drop(text).await.expect_err("it fails");
    assert_eq!(code(&error), 1064, "{error}");
    // What is in a literal is no end.
    let text = format!("DO 1; SELEC '{}'", "a;".repeat(4 * MIB));
    let error = connection.query_drop(text).await.expect_err("it fails");
    assert_eq!(code(&error), 1064, "{error}");
    // The text itself, as it came and as it is run.
    let grown = server.peak_bytes().saturating_sub(before);
    assert!(grown < 80 * MIB as u64, "{} KiB", grown >> 10);
}

/// A literal of 5 MiB is read, and is a value; a plan, which copies all that it is made of again
/// and again, has it once.
#[tokio::test]
async fn long_literals_are_not_copied_with_a_plan() {
    const LITERAL_BYTES: usize = 5 * MIB;
    const COPIES_MAX: usize = 14;
    let server = Server::start(&[]);
    let mut connection = server.connect().await;
    let table = "CREATE TEMPORARY TABLE t (a INT, b LONGTEXT)";
    connection.query_drop(table).await.unwrap();
    let row = "INSERT INTO t VALUES (1, 'x')";
    connection.query_drop(row).await.unwrap();
    let statements = |literal: &str| {
        [
            format!("SELECT LENGTH('{literal}')"),
            format!("SELECT LENGTH(\"{literal}\") AS n FROM t"),
            format!("SELECT COUNT(*) FROM t WHERE b <> '{literal}' AND a = 1"),
            format!("SELECT a, COUNT(*) FROM t GROUP BY a, b = '{literal}'"),
            format!("UPDATE t SET b = '{literal}' WHERE a = 1"),
        ]
    };
    // Shorter ones bring the program's code into memory.
    for sql in statements(&"z".repeat(100_000)) {
        connection.query_drop(sql).await.unwrap();
    }
    let before = server.peak_bytes();
    for sql in statements(&"z".repeat(LITERAL_BYTES)) {
        let label = sql[..40].to_owned();
        let ran = connection.query_drop(sql).await;
        ran.unwrap_or_else(|error| panic!("{label}: {error}"));
        let grown = server.peak_bytes().saturating_sub(before) as usize;
        assert!(
            grown < COPIES_MAX * LITERAL_BYTES,
            "{} KiB: {label}",
            grown >> 10
        );
    }
}

#[tokio::test]
async fn statements_in_front_of_one_that_cannot_be_read_run() {
    let server = Server::start(&[]);
    let mut connection = server.connect().await;
    let sent = "SET @a = 5; SELECT 'open; SET @a = 6";
    let error = connection.query_drop(sent).await.expect_err("it is open");
    assert_eq!(code(&error), 1064, "{error}");
    let a: Option<i64> = connection.query_first("SELECT @a").await.unwrap();
    assert_eq!(a, Some(5));
}

#[tokio::test]
async fn clients_that_say_nothing_keep_nobody_out() {
    let server = Server::start(&[]);
    let mut first = server.connect().await;
    first
        .query_drop("SET GLOBAL max_connections = 2")
        .await
        .expect("fewer clients");
    let mut silent = Vec::new();
    for _ in 0..200 {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).expect("it listens");
        let limit = Some(Duration::from_secs(20));
        stream.set_read_timeout(limit).expect("a limit");
        silent.push(stream);
    }
    // All of them have been greeted, so they are in the handshake or have been told to go.
    for stream in &mut silent {
        stream.read_exact(&mut [0; 5]).expect("a greeting");
    }
    let mut second = server.connect().await;
    let one: Option<u8> = second.query_first("SELECT 1").await.expect("it is served");
    assert_eq!(one, Some(1));
    // The oldest have been hung up on.
    let mut rest = Vec::new();
    silent[0].read_to_end(&mut rest).expect("an end");
}
