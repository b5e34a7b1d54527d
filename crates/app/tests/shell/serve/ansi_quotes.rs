//! Clients whose `sql_mode` has ANSI_QUOTES: names in double quotes.

use mysql_async::prelude::Queryable;

use super::raw::{NO_EOF, Raw};
use super::running::Server;

#[tokio::test]
async fn each_statement_of_a_text_is_cut_as_it_is_read_then() {
    let server = Server::start(&[]);
    let mut connection = server.connect().await;
    let text = r#"SELECT "\"; 1"; SET sql_mode = 'ANSI_QUOTES'; CREATE TABLE t ("a\" INT);
        INSERT INTO t VALUES (5); SELECT "a\" FROM t; SET sql_mode = ""; SELECT "\"; 6""#;
    let mut results = connection.query_iter(text).await.unwrap();
    let mut found: Vec<String> = Vec::new();
    while !results.is_empty() {
        found.extend(results.collect::<String>().await.unwrap());
    }
    drop(results);
    assert_eq!(found, ["\"; 1", "5", "\"; 6"]);
}

/// The flag is MariaDB's: 0x8000 beside that of autocommit.
#[test]
fn clients_are_told_of_the_mode() {
    let server = Server::start(&[]);
    let mut client = Raw::connect(&server, NO_EOF);
    for (statement, status) in [
        ("SET sql_mode = 'ANSI'", [0x02, 0x80]),
        ("SET time_zone = \"SYSTEM\"", [0x02, 0x80]),
        ("SET sql_mode = ''", [0x02, 0]),
    ] {
        let ok = client.query(statement).end;
        assert_eq!(&ok[3..5], status, "{statement}");
    }
}
