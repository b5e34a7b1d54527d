//! What clients send and read in their own character sets.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row, Value};

use super::running::{Server, code};

/// The bytes of each cell of the first row.
async fn first(connection: &mut Conn, query: &[u8]) -> Vec<Vec<u8>> {
    let row: Option<Row> = connection.query_first(query).await.unwrap();
    bytes_of(row.unwrap())
}

fn bytes_of(row: Row) -> Vec<Vec<u8>> {
    let cells = row.unwrap().into_iter().map(|cell| match cell {
        Value::Bytes(bytes) => bytes,
        Value::NULL => b"NULL".to_vec(),
        other => panic!("{other:?}"),
    });
    cells.collect()
}

async fn variables(connection: &mut Conn) -> Vec<String> {
    let asked = b"SELECT @@character_set_client, @@character_set_connection, \
                  @@character_set_results, @@collation_connection";
    let cells = first(connection, asked).await.into_iter();
    cells
        .map(|cell| String::from_utf8_lossy(&cell).into_owned())
        .collect()
}

#[tokio::test]
async fn texts_are_read_and_written_in_the_set_of_the_client() {
    let server = Server::start(&[]);
    let mut connection = server.connect().await;
    for statement in [
        "CREATE TEMPORARY TABLE t (a VARCHAR(10), b VARBINARY(10), c TEXT)",
        "INSERT INTO t VALUES ('\u{FC}\u{20AC}\u{6F22}\u{1F600}', x'FCFF', '\u{FC}')",
    ] {
        connection.query_drop(statement).await.unwrap();
    }
    for (set, expected, id, bytes) in [
        ("latin1", &b"\xFC\x80??"[..], 8, 1),
        ("ascii", b"????", 11, 1),
        ("utf8", "\u{FC}\u{20AC}\u{6F22}?".as_bytes(), 33, 3),
        (
            "binary",
            "\u{FC}\u{20AC}\u{6F22}\u{1F600}".as_bytes(),
            63,
            1,
        ),
        (
            "utf8mb4",
            "\u{FC}\u{20AC}\u{6F22}\u{1F600}".as_bytes(),
            255,
            4,
        ),
    ] {
        let names = format!("SET NAMES {set}");
        connection.query_drop(&names).await.unwrap();
        for _ in 0..3 {
            let row: Option<Row> = connection.query_first("SELECT * FROM t").await.unwrap();
            let row = row.unwrap();
            let column = &row.columns_ref()[0];
            assert_eq!(column.character_set(), id, "{set}");
            assert_eq!(column.column_length(), 10 * bytes, "{set}");
            assert_eq!(row.columns_ref()[1].character_set(), 63, "{set}");
            let cells = bytes_of(row);
            assert_eq!(cells[0], expected, "{set}");
            assert_eq!(cells[1], b"\xFC\xFF", "{set}");
        }
        let row: Option<Row> = connection.exec_first("SELECT * FROM t", ()).await.unwrap();
        assert_eq!(bytes_of(row.unwrap())[0], expected, "{set}");
    }
    // A statement in latin1, and a text parameter too.
    connection.query_drop("SET NAMES latin1").await.unwrap();
    let row: Option<Row> = connection
        .query_first(&b"SELECT a AS `\xFC\x80`, '\xE4\x81' AS x FROM t WHERE c = '\xFC'"[..])
        .await
        .unwrap();
    let row = row.unwrap();
    assert_eq!(row.columns_ref()[0].name_ref(), b"\xFC\x80");
    assert_eq!(bytes_of(row)[1], b"\xE4\x81");
    let found: Option<Row> = connection
        .exec_first(
            "SELECT HEX(c), HEX(?) FROM t WHERE c = ?",
            (&b"\xFC"[..], &b"\xFC"[..]),
        )
        .await
        .unwrap();
    assert_eq!(
        bytes_of(found.unwrap()),
        [b"C3BC".to_vec(), b"C3BC".to_vec()]
    );
    let cells = first(&mut connection, b"SELECT HEX('\xFC'), HEX(a) FROM t").await;
    assert_eq!(cells[0], b"C3BC");
    // What the set does not have is spelled in an error.
    connection
        .query_drop("SET character_set_client = utf8mb4")
        .await
        .unwrap();
    let error = connection
        .query_drop("SELECT * FROM `x\u{6F22}`")
        .await
        .unwrap_err();
    assert!(error.to_string().contains("'test.x\\6F22'"), "{error}");
    // The rest of a text is read in the set that its beginning chose.
    let text = b"SELECT HEX('\xFC'); SET NAMES utf8mb4; SELECT HEX('\xC3\xBC'); SELECT 'end'";
    connection.query_drop("SET NAMES latin1").await.unwrap();
    let mut results = connection.query_iter(&text[..]).await.unwrap();
    let mut found: Vec<String> = Vec::new();
    while !results.is_empty() {
        found.extend(results.collect::<String>().await.unwrap());
    }
    drop(results);
    assert_eq!(found, ["C3BC", "C3BC", "end"]);
}

#[tokio::test]
async fn each_statement_of_a_text_is_read_in_the_set_that_is_set_then() {
    let server = Server::start(&[]);
    let mut connection = server.connect().await;
    // The first literal is no text in any set; the second is one in its own.
    let text = b"SELECT HEX('\xFF'); SET NAMES latin1; SELECT HEX(UPPER('\xFC'))";
    let mut results = connection.query_iter(&text[..]).await.unwrap();
    let mut found = Vec::new();
    while !results.is_empty() {
        let rows: Vec<Row> = results.collect().await.unwrap();
        found.extend(rows.into_iter().flat_map(bytes_of));
    }
    drop(results);
    assert_eq!(found, [&b"FF"[..], b"C39C"]);
    // However often it changes, nothing is read twice.
    let text = "SET NAMES latin1; SET NAMES utf8mb4;".repeat(10_000);
    connection.query_drop(text).await.unwrap();
}

#[tokio::test]
async fn set_names_sets_what_it_sets_in_mysql() {
    let server = Server::start(&[]);
    let mut connection = server.connect().await;
    let latin1 = ["latin1", "latin1", "latin1", "latin1_swedish_ci"];
    let ours = ["utf8mb4", "utf8mb4", "utf8mb4", "utf8mb4_0900_bin"];
    for (statement, expected) in [
        ("SET NAMES latin1", latin1),
        ("SET NAMES DEFAULT", ours),
        (
            "SET NAMES latin1 COLLATE latin1_bin",
            ["latin1", "latin1", "latin1", "latin1_bin"],
        ),
        (
            "SET CHARACTER SET latin1",
            ["latin1", "utf8mb4", "latin1", "utf8mb4_0900_bin"],
        ),
        ("SET NAMES utf8mb4", ours),
        (
            "SET character_set_connection = latin1",
            ["utf8mb4", "latin1", "utf8mb4", "latin1_swedish_ci"],
        ),
        (
            "SET collation_connection = utf8mb4_bin",
            ["utf8mb4", "utf8mb4", "utf8mb4", "utf8mb4_bin"],
        ),
        (
            "SET character_set_results = NULL",
            ["utf8mb4", "utf8mb4", "NULL", "utf8mb4_bin"],
        ),
        (
            "SET character_set_client = 8",
            ["latin1", "utf8mb4", "NULL", "utf8mb4_bin"],
        ),
    ] {
        connection.query_drop(statement).await.unwrap();
        assert_eq!(variables(&mut connection).await, expected, "{statement}");
    }
    connection.query_drop("SET NAMES latin1").await.unwrap();
    for (statement, number) in [
        ("SET NAMES gbk", 1115),
        ("SET NAMES nope", 1115),
        ("SET NAMES ucs2", 1231),
        ("SET NAMES latin1 COLLATE utf8mb4_bin", 1253),
        ("SET NAMES latin1 COLLATE nope", 1273),
        ("SET collation_connection = gbk_chinese_ci", 1273),
        ("SET character_set_client = NULL", 1231),
        ("SET character_set_results = gbk", 1115),
    ] {
        let refused = connection.query_drop(statement).await.unwrap_err();
        assert_eq!(code(&refused), number, "{statement}");
        assert_eq!(variables(&mut connection).await, latin1, "{statement}");
    }
    // Statements and their parameters that are no text of the set.
    for (set, text) in [
        ("utf8mb4", &b"SELECT 1 AS `\xFC`"[..]),
        ("ascii", "SELECT 1 AS `\u{FC}`".as_bytes()),
    ] {
        let names = format!("SET NAMES {set}");
        connection.query_drop(&names).await.unwrap();
        let refused = connection.query_drop(text).await.unwrap_err();
        assert_eq!(code(&refused), 1300);
        assert!(refused.to_string().contains(set), "{refused}");
    }
    // Literals that are bytes, as clients write them.
    connection.query_drop("SET NAMES utf8mb4").await.unwrap();
    let cells = first(
        &mut connection,
        b"SELECT _binary'\xFF\\0', '\xFE', HEX('\xFF\xFE')",
    )
    .await;
    assert_eq!(
        cells,
        [b"\xFF\0".to_vec(), b"\xFE".to_vec(), b"FFFE".to_vec()]
    );
    connection.query_drop("SET NAMES latin1").await.unwrap();
    assert!(connection.reset().await.unwrap());
    assert_eq!(variables(&mut connection).await, ours);
    assert_eq!(
        first(&mut connection, "SELECT '\u{FC}'".as_bytes()).await[0],
        "\u{FC}".as_bytes()
    );
}

#[test]
fn a_shell_says_its_set_when_it_connects() {
    let server = Server::start(&[]);
    let output = Command::new("mariadb")
        .args([
            "--no-defaults",
            "--host=127.0.0.1",
            "--user=root",
            "-B",
            "test",
        ])
        .args(["--default-character-set=latin1", "-e"])
        .arg(OsStr::from_bytes(
            b"SELECT '\xFC\x80' AS `\xE4`, HEX('\xFC'), @@collation_connection",
        ))
        .arg(format!("--port={}", server.port))
        .output();
    let Ok(output) = output else {
        println!("skipped: mariadb is not installed");
        return;
    };
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let expected =
        b"\xE4\tHEX('\xFC')\t@@collation_connection\n\xFC\x80\tC3BC\tlatin1_swedish_ci\n";
    assert_eq!(output.stdout, expected);
}
