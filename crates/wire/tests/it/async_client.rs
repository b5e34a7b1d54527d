//! The client `mysql_async` against a server with canned answers.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use mayfly_wire::Method;
use mysql_async::consts::ColumnType;
use mysql_async::prelude::Queryable;
use mysql_async::{
    ChangeUserOpts, Compression, Conn, Error, OptsBuilder, Params, Row, SslOpts, Value,
    WhiteListFsHandler,
};

use crate::all_types;
use crate::harness::{Running, certificate, start, until};

fn options(server: &Running, user: &str, password: &str) -> OptsBuilder {
    OptsBuilder::default()
        .ip_or_hostname("127.0.0.1")
        .tcp_port(server.port)
        .user(Some(user))
        .pass(Some(password))
        .prefer_socket(false)
        .max_allowed_packet(Some(64 << 20))
        .wait_timeout(Some(100))
}

async fn connect(server: &Running) -> Conn {
    Conn::new(options(server, "root", "")).await.unwrap()
}

fn code(error: &Error) -> u16 {
    match error {
        Error::Server(error) => error.code,
        other => panic!("not an error of the server: {other}"),
    }
}

#[tokio::test]
async fn passwords_of_both_methods_are_checked() {
    for default_method in [Method::Native, Method::CachingSha2] {
        let server = start(|settings, _| settings.default_method = default_method).await;
        // The second time caching_sha2_password answers from its cache.
        for _ in 0..2 {
            for user in ["native", "sha2"] {
                let mut connection = Conn::new(options(&server, user, "secret")).await.unwrap();
                let found: Row = connection.query_first("whoami").await.unwrap().unwrap();
                assert_eq!(found.get::<String, _>(0).unwrap(), user);
                connection.disconnect().await.unwrap();
            }
        }
        for (user, password) in [
            ("native", "wrong"),
            ("native", ""),
            ("sha2", "wrong"),
            ("sha2", ""),
            ("nobody", "secret"),
            ("nobody", ""),
            ("root", "secret"),
            ("peer", "secret"),
        ] {
            let refused = Conn::new(options(&server, user, password)).await;
            let error = refused.expect_err("refused");
            assert_eq!(code(&error), 1045, "{user} {password}: {error}");
            let with = if password.is_empty() { "NO" } else { "YES" };
            let text =
                format!("Access denied for user '{user}'@'localhost' (using password: {with})");
            assert!(error.to_string().contains(&text), "{error}");
        }
        until(&server.shared.places, 0, "places").await;
    }
}

#[tokio::test]
async fn failures_slow_down() {
    let server = start(|_, _| {}).await;
    let started = Instant::now();
    for _ in 0..5 {
        let refused = Conn::new(options(&server, "native", "wrong")).await;
        assert_eq!(code(&refused.unwrap_err()), 1045);
    }
    // The fourth waits 100 ms, the fifth 200; a right password does not wait.
    assert!(started.elapsed() >= Duration::from_millis(300));
    Conn::new(options(&server, "native", "secret"))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_unix_socket_serves_its_own_user_without_password() {
    let server = start(|_, _| {}).await;
    for (user, password) in [("peer", ""), ("peer", "any"), ("sha2", "secret")] {
        let socket = server.socket.to_str().unwrap();
        let options = options(&server, user, password).socket(Some(socket));
        let mut connection = Conn::new(options).await.unwrap();
        let found: Row = connection.query_first("whoami").await.unwrap().unwrap();
        assert_eq!(found.get::<String, _>(0).unwrap(), user);
    }
}

#[tokio::test]
async fn every_type_is_read_as_text_and_in_binary() {
    let server = start(|_, _| {}).await;
    let mut connection = connect(&server).await;
    let samples = all_types::samples();
    let text: Vec<Row> = connection.query("types").await.unwrap();
    assert_eq!(text.len(), 3);
    for (index, sample) in samples.iter().enumerate() {
        for (row, expected) in text.iter().zip(sample.texts) {
            let found = row.as_ref(index).unwrap();
            let wanted = Value::Bytes(expected.to_vec());
            assert_eq!(found, &wanted, "{}", sample.declared);
        }
        assert_eq!(
            text[2].as_ref(index),
            Some(&Value::NULL),
            "{}",
            sample.declared
        );
    }
    let binary: Vec<Row> = connection.exec("types", ()).await.unwrap();
    assert_eq!(binary.len(), 3);
    for (index, sample) in samples.iter().enumerate() {
        for (row, expected) in binary.iter().zip(sample.texts) {
            let found = row.as_ref(index).unwrap();
            check_binary(found, expected, sample.declared);
        }
        assert_eq!(
            binary[2].as_ref(index),
            Some(&Value::NULL),
            "{}",
            sample.declared
        );
    }
}

/// Compares a value of the binary protocol with its text.
fn check_binary(found: &Value, text: &[u8], declared: &str) {
    let shown = String::from_utf8_lossy(text);
    match found {
        Value::Int(number) => {
            assert_eq!(*number, shown.parse::<i64>().unwrap(), "{declared}");
        }
        Value::UInt(number) => assert_eq!(*number, shown.parse::<u64>().unwrap(), "{declared}"),
        // A text may show fewer digits than there are.
        Value::Float(number) => {
            let close = (f64::from(*number) - shown.parse::<f64>().unwrap()).abs();
            assert!(
                close <= 0.001_f64.max(f64::from(number.abs()) * 1e-5),
                "{declared}"
            );
        }
        Value::Double(number) => {
            let close = (number - shown.parse::<f64>().unwrap()).abs();
            assert!(close < 0.01, "{declared}");
        }
        Value::Date(year, month, day, hour, minute, second, micros) => {
            let all = format!(
                "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}"
            );
            assert!(all.starts_with(&*shown), "{declared}: {all} {shown}");
        }
        Value::Time(negative, days, hours, minutes, seconds, micros) => {
            let sign = if *negative { "-" } else { "" };
            let hours = u32::from(*hours) + days * 24;
            let all = format!("{sign}{hours:02}:{minutes:02}:{seconds:02}.{micros:06}");
            assert!(all.starts_with(&*shown), "{declared}: {all} {shown}");
        }
        Value::Bytes(bytes) => assert_eq!(bytes, text, "{declared}"),
        Value::NULL => panic!("{declared} is NULL"),
    }
}

#[tokio::test]
async fn texts_are_written_in_the_encoding_of_results() {
    let server = start(|_, _| {}).await;
    let mut connection = connect(&server).await;
    connection.query_drop("latin1").await.unwrap();
    let text: Row = connection.query_first("types").await.unwrap().unwrap();
    let binary: Row = connection.exec_first("types", ()).await.unwrap().unwrap();
    for row in [text, binary] {
        let cell = |name: &str| match row.get::<Value, _>(name) {
            Some(Value::Bytes(bytes)) => bytes,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(cell("varchar(40)"), b"gr\xFCn");
        assert_eq!(cell("mediumblob"), b"\xFE\xFE");
    }
}

#[tokio::test]
async fn columns_are_described() {
    let server = start(|_, _| {}).await;
    let mut connection = connect(&server).await;
    let row: Row = connection.query_first("rows 1").await.unwrap().unwrap();
    let columns = row.columns();
    let n = &columns[0];
    assert_eq!(n.schema_str(), "test");
    assert_eq!(n.table_str(), "alias");
    assert_eq!(n.org_table_str(), "numbers");
    assert_eq!(n.name_str(), "n");
    assert_eq!(n.org_name_str(), "number");
    assert_eq!(n.column_type(), ColumnType::MYSQL_TYPE_LONGLONG);
    assert_eq!(n.column_length(), 20);
    assert_eq!(n.character_set(), 63);
    assert_eq!(n.flags().bits(), 0x0001 | 0x0002);
    let word = &columns[1];
    assert_eq!(word.column_type(), ColumnType::MYSQL_TYPE_VAR_STRING);
    assert_eq!(word.column_length(), 256);
    assert_eq!(word.character_set(), 255);
    assert_eq!(word.flags().bits(), 0);
}

#[tokio::test]
async fn an_ok_tells_what_happened() {
    let server = start(|_, _| {}).await;
    let mut connection = connect(&server).await;
    connection.query_drop("insert").await.unwrap();
    assert_eq!(connection.affected_rows(), 3);
    assert_eq!(connection.last_insert_id(), Some(7));
    assert_eq!(connection.get_warnings(), 2);
    assert_eq!(connection.info(), "Records: 3  Duplicates: 0  Warnings: 2");
}

#[tokio::test]
async fn errors_leave_the_connection_usable() {
    let server = start(|_, _| {}).await;
    let mut connection = connect(&server).await;
    for (text, number) in [
        ("fail", 1146),
        ("nonsense", 1064),
        ("failamid", 1041),
        ("forget", 1105),
    ] {
        let error = connection.query_drop(text).await.unwrap_err();
        assert_eq!(code(&error), number, "{text}");
        let error = connection
            .exec_drop(format!(" {text}"), ())
            .await
            .unwrap_err();
        assert_eq!(code(&error), number, "{text}");
        let one: Option<i64> = connection.query_first("one").await.unwrap();
        assert_eq!(one, Some(1));
    }
    let error = connection.prep("fail").await.unwrap_err();
    assert_eq!(code(&error), 1146);
}

#[tokio::test]
async fn parameters_of_all_types_arrive() {
    let server = start(|_, _| {}).await;
    let mut connection = connect(&server).await;
    let values = vec![
        Value::NULL,
        Value::Int(-7),
        Value::UInt(u64::MAX),
        Value::Float(1.5),
        Value::Double(-0.1),
        Value::Bytes(b"text".to_vec()),
        Value::Date(2024, 2, 29, 12, 34, 56, 7),
        Value::Time(true, 2, 3, 4, 5, 6),
    ];
    let text = format!("echo {}", ["?"; 8].join(","));
    for _ in 0..2 {
        let row: Row = connection
            .exec_first(&text, Params::Positional(values.clone()))
            .await
            .unwrap()
            .unwrap();
        let found: Vec<String> = (0..8).map(|index| row.get(index).unwrap()).collect();
        assert_eq!(
            found,
            [
                "Null",
                "Integer(-7)",
                "Unsigned(18446744073709551615)",
                "Float(1.5)",
                "Double(-0.1)",
                "Text(text)",
                "DateTime { year: 2024, month: 2, day: 29, hour: 12, minute: 34, second: 56, \
                 micros: 7 }",
                "Time { negative: true, days: 2, hours: 3, minutes: 4, seconds: 5, micros: 6 }",
            ]
        );
    }
}

#[tokio::test]
async fn statements_are_prepared_and_closed() {
    let server = start(|settings, _| settings.max_statements = 10).await;
    let mut connection = connect(&server).await;
    let statement = connection.prep("echo ?,?").await.unwrap();
    assert_eq!(statement.num_params(), 2);
    assert_eq!(statement.num_columns(), 2);
    connection.close(statement).await.unwrap();
    for _ in 0..10 {
        connection
            .prep(format!("echo {}?", " ".repeat(9)))
            .await
            .unwrap();
    }
    let error = connection.prep("fail").await.unwrap_err();
    assert_eq!(code(&error), 1146);
    connection.reset().await.unwrap();
    until(&server.shared.statements, 0, "statements after a reset").await;
    connection.prep("echo ?").await.unwrap();
    connection.disconnect().await.unwrap();
    until(&server.shared.statements, 0, "statements after the end").await;
}

#[tokio::test]
async fn several_results_of_one_command() {
    let server = start(|_, _| {}).await;
    let mut connection = connect(&server).await;
    let mut results = connection
        .query_iter("rows 3; insert; one; rows 0; fail; one")
        .await
        .unwrap();
    assert_eq!(results.collect::<Row>().await.unwrap().len(), 3);
    assert_eq!(results.affected_rows(), 3);
    assert!(results.collect::<Row>().await.unwrap().is_empty());
    assert_eq!(results.collect::<i64>().await.unwrap(), [1]);
    assert!(results.collect::<Row>().await.unwrap().is_empty());
    let error = results.collect::<Row>().await.unwrap_err();
    assert_eq!(code(&error), 1146);
    drop(results);
    assert_eq!(
        connection.query_first::<i64, _>("one").await.unwrap(),
        Some(1)
    );
}

#[tokio::test]
async fn a_reset_and_another_user_begin_anew() {
    let server = start(|_, _| {}).await;
    let mut connection = connect(&server).await;
    let temporary = async |connection: &mut Conn| {
        let row: Row = connection.query_first("whoami").await.unwrap().unwrap();
        (
            row.get::<String, _>(0).unwrap(),
            row.get::<String, _>(4).unwrap(),
        )
    };
    connection.query_drop("create").await.unwrap();
    assert_eq!(
        temporary(&mut connection).await,
        ("root".into(), "true".into())
    );
    assert!(connection.reset().await.unwrap());
    assert_eq!(
        temporary(&mut connection).await,
        ("root".into(), "false".into())
    );
    for user in ["native", "sha2", "sha2"] {
        connection.query_drop("create").await.unwrap();
        let other = ChangeUserOpts::default()
            .with_user(Some(user.to_owned()))
            .with_pass(Some("secret".to_owned()));
        connection.change_user(other).await.unwrap();
        assert_eq!(
            temporary(&mut connection).await,
            (user.into(), "false".into())
        );
    }
    let other = ChangeUserOpts::default()
        .with_user(Some("native".to_owned()))
        .with_pass(Some("wrong".to_owned()));
    let error = connection.change_user(other).await.unwrap_err();
    assert_eq!(code(&error), 1045);
    assert!(connection.query_drop("one").await.is_err());
    until(&server.shared.places, 0, "places").await;
}

#[tokio::test]
async fn a_database_may_be_missing() {
    let server = start(|_, _| {}).await;
    let named = options(&server, "root", "").db_name(Some("shop"));
    let mut connection = Conn::new(named).await.unwrap();
    let row: Row = connection.query_first("whoami").await.unwrap().unwrap();
    assert_eq!(row.get::<String, _>(2).unwrap(), "shop");
    let missing = options(&server, "root", "").db_name(Some("missing"));
    assert_eq!(code(&Conn::new(missing).await.unwrap_err()), 1049);
}

#[tokio::test]
async fn attributes_reach_the_server() {
    let server = start(|_, _| {}).await;
    let attributes = HashMap::from([("program_name".to_owned(), "a test".to_owned())]);
    let options = options(&server, "root", "").connect_attributes(attributes);
    let mut connection = Conn::new(options).await.unwrap();
    let text = "attribute program_name";
    let name: Option<String> = connection.query_first(text).await.unwrap();
    assert_eq!(name.unwrap(), "a test");
}

#[tokio::test]
async fn packets_beyond_16_mib_in_both_directions() {
    let server = start(|_, _| {}).await;
    let mut connection = connect(&server).await;
    let edge = (1 << 24) - 1;
    // A row has its length before it (four bytes), a query its command (one byte).
    for size in [edge - 5, edge - 4, edge - 3, edge, 2 * edge - 4, 40 << 20] {
        let found: Option<Vec<u8>> = connection.query_first(format!("big {size}")).await.unwrap();
        assert_eq!(found.unwrap().len(), size);
    }
    for size in [edge - 2, edge - 1, edge, 2 * edge - 1, 40 << 20] {
        let text = format!("length {}", "x".repeat(size - 7));
        connection.query_drop(text).await.unwrap();
        assert_eq!(connection.affected_rows(), size as u64);
    }
    // The client sends a long parameter ahead.
    let long = Value::Bytes(vec![b'y'; 20 << 20]);
    connection.exec_drop("length ?", vec![long]).await.unwrap();
    assert_eq!(connection.affected_rows(), 20 << 20);
}

#[tokio::test]
async fn a_packet_that_is_too_large_is_1153() {
    let server = start(|settings, _| settings.max_packet_bytes = 1 << 20).await;
    let mut connection = connect(&server).await;
    let error = connection.query_drop("big 1100000").await.unwrap_err();
    assert_eq!(code(&error), 1153);
    let error = connection
        .query_drop("x".repeat(5 << 20))
        .await
        .unwrap_err();
    assert_eq!(code(&error), 1153);
    assert!(connection.query_drop("one").await.is_err());
    until(&server.shared.places, 0, "places").await;
}

#[tokio::test]
async fn compression_changes_nothing() {
    let server = start(|_, _| {}).await;
    let compressed = options(&server, "root", "").compression(Compression::new(6));
    let mut connection = Conn::new(compressed).await.unwrap();
    for _ in 0..3 {
        assert_eq!(
            connection.query_first::<i64, _>("one").await.unwrap(),
            Some(1)
        );
        let rows: Vec<(i64, Option<String>)> = connection.query("rows 5000").await.unwrap();
        assert_eq!(rows.len(), 5000);
        assert_eq!(rows[4999], (4999, Some("word number 4999".to_owned())));
        let found: Option<Vec<u8>> = connection.query_first("big 20000000").await.unwrap();
        assert_eq!(found.unwrap().len(), 20_000_000);
        connection
            .query_drop(format!("length {}", "x".repeat(20 << 20)))
            .await
            .unwrap();
        assert_eq!(
            code(&connection.query_drop("fail").await.unwrap_err()),
            1146
        );
        let error = connection.query_drop("impatient").await.unwrap_err();
        assert_eq!(code(&error), 1317);
    }
}

#[tokio::test]
async fn tls_is_used_when_it_is_asked_for() {
    let server = start(|settings, _| settings.tls = Some(crate::harness::tls())).await;
    for user in ["native", "sha2"] {
        let encrypted = options(&server, user, "secret")
            .ssl_opts(SslOpts::default().with_root_certs(vec![certificate().into()]));
        let mut connection = Conn::new(encrypted).await.unwrap();
        let row: Row = connection.query_first("whoami").await.unwrap().unwrap();
        assert_eq!(row.get::<String, _>(0).unwrap(), user);
        assert_eq!(row.get::<String, _>(3).unwrap(), "TLSv1.3");
        let rows: Vec<Row> = connection.query("rows 10000").await.unwrap();
        assert_eq!(rows.len(), 10_000);
        let plain = Conn::new(options(&server, user, "secret")).await;
        assert!(plain.is_ok());
    }
}

#[tokio::test]
async fn plain_tcp_may_be_refused() {
    let server = start(|settings, _| {
        settings.tls = Some(crate::harness::tls());
        settings.require_secure_transport = true;
    })
    .await;
    let refused = Conn::new(options(&server, "root", "")).await;
    assert_eq!(code(&refused.err().unwrap()), 3159);
    let socket = server.socket.to_str().unwrap();
    let local = options(&server, "root", "").socket(Some(socket));
    assert!(Conn::new(local).await.is_ok());
}

#[tokio::test]
async fn files_of_the_client_are_read() {
    let server = start(|settings, _| settings.local_infile = true).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), vec![b'z'; 3_000_000]).unwrap();
    let name = file.path().to_str().unwrap();
    for compression in [0, 6] {
        let handler = WhiteListFsHandler::new([file.path()]);
        let mut options = options(&server, "root", "").local_infile_handler(Some(handler));
        if compression > 0 {
            options = options.compression(Compression::new(compression));
        }
        let mut connection = Conn::new(options).await.unwrap();
        connection.query_drop(format!("load {name}")).await.unwrap();
        assert_eq!(connection.affected_rows(), 3_000_000);
        let error = connection
            .query_drop(format!("loadpart {name}"))
            .await
            .unwrap_err();
        assert_eq!(code(&error), 1146);
        assert_eq!(
            connection.query_first::<i64, _>("one").await.unwrap(),
            Some(1)
        );
        let some = format!("loadsome {name}");
        connection.query_drop(some).await.unwrap();
        let text = format!("load {name}; one; load {name}");
        let mut results = connection.query_iter(text).await.unwrap();
        assert_eq!(results.affected_rows(), 3_000_000);
        results.collect::<Row>().await.unwrap();
        assert_eq!(results.collect::<i64>().await.unwrap(), [1]);
        results.drop_result().await.unwrap();
    }
}

#[tokio::test]
async fn files_are_off_by_default() {
    let server = start(|_, _| {}).await;
    let mut connection = connect(&server).await;
    let error = connection.query_drop("load any").await.unwrap_err();
    assert_eq!(code(&error), 3948);
    assert_eq!(
        connection.query_first::<i64, _>("one").await.unwrap(),
        Some(1)
    );
}

#[tokio::test]
async fn too_many_connections_are_1040() {
    let server = start(|_, canned| canned.places_max = 2).await;
    let first = connect(&server).await;
    let second = connect(&server).await;
    let refused = Conn::new(options(&server, "root", "")).await;
    assert_eq!(code(&refused.err().unwrap()), 1040);
    drop(first);
    until(&server.shared.places, 1, "places").await;
    connect(&server).await;
    drop(second);
}
