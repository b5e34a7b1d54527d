//! The checks of tests/clients with `mysql_async`.
//!
//! Each check connects anew, prints one line, and has its name and meaning in common with the other
//! clients; `tests/clients/README.md` says what each of them asks for.

#![forbid(unsafe_code)]

use std::fmt::{Debug, Write};

use mysql_async::consts::{ColumnFlags, ColumnType};
use mysql_async::prelude::Queryable;
use mysql_async::{
    Conn, Error, IsolationLevel, Opts, OptsBuilder, Params, Pool, PoolConstraints, PoolOpts, Row,
    SslOpts, TxOpts, Value,
};

/// Why a check failed.
type Checked<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A line of types.tsv.
struct Column {
    name: String,
    declared: String,
    kind: String,
    field: u8,
    low_literal: String,
    low: String,
    high_literal: String,
    high: String,
}

/// Compares, or returns with both sides from the check.
macro_rules! equal {
    ($found:expr, $expected:expr) => {
        equal!($found, $expected, stringify!($found))
    };
    ($found:expr, $expected:expr, $what:expr) => {{
        let (found, expected) = (&$found, &$expected);
        if found != expected {
            let place = concat!("line ", line!());
            return Err(different(place, &$what, found, expected).into());
        }
    }};
}

fn different(place: &str, what: &dyn Debug, found: &dyn Debug, expected: &dyn Debug) -> String {
    format!("{place}: {what:?}: {found:?}, expected {expected:?}")
}

fn setting(name: &str) -> String {
    std::env::var(format!("CHECK_{name}")).unwrap_or_default()
}

fn on_mariadb() -> bool {
    setting("SERVER") == "mariadb"
}

fn columns() -> Checked<Vec<Column>> {
    let text = std::fs::read_to_string(setting("TYPES"))?;
    let mut columns = Vec::new();
    for line in text.lines().skip(1) {
        let fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
        let [
            name,
            declared,
            kind,
            field,
            low_literal,
            low,
            high_literal,
            high,
        ] = <[String; 8]>::try_from(fields).map_err(|fields| format!("{fields:?}"))?;
        columns.push(Column {
            name,
            declared,
            kind,
            field: field.parse()?,
            low_literal,
            low,
            high_literal,
            high,
        });
    }
    Ok(columns)
}

fn listed(columns: &[Column], each: impl Fn(&Column) -> String) -> String {
    let parts: Vec<String> = columns.iter().map(each).collect();
    parts.join(", ")
}

fn account() -> Checked<OptsBuilder> {
    Ok(OptsBuilder::default()
        .ip_or_hostname(setting("HOST"))
        .tcp_port(setting("PORT").parse()?)
        .user(Some(setting("USER")))
        .pass(Some(setting("PASSWORD")))
        .db_name(Some(setting("DATABASE")))
        .prefer_socket(false))
}

async fn open() -> Checked<Conn> {
    Ok(Conn::new(account()?).await?)
}

/// The number and SQLSTATE of an error of the server.
fn code<T>(ended: Result<T, Error>) -> Checked<(u16, String)> {
    match ended {
        Err(Error::Server(refused)) => Ok((refused.code, refused.state)),
        Err(other) => Err(other.into()),
        Ok(_) => Err("it was not refused".into()),
    }
}

async fn refused_login(options: OptsBuilder, number: u16) -> Checked {
    equal!(code(Conn::new(options).await)?.0, number, "login");
    Ok(())
}

async fn connect() -> Checked {
    for _ in 0..2 {
        let mut connection = open().await?;
        let query =
            "SELECT 1, DATABASE(), SUBSTRING_INDEX(CURRENT_USER(), '@', 1), CONNECTION_ID()";
        let row: Option<(i64, String, String, u32)> = connection.query_first(query).await?;
        let id = connection.id();
        equal!(row, Some((1, setting("DATABASE"), setting("USER"), id)));
        connection.ping().await?;
        let version: Option<String> = connection.query_first("SELECT VERSION()").await?;
        let (major, ..) = connection.server_version();
        equal!(
            version.map(|text| text.starts_with(&major.to_string())),
            Some(true)
        );
        connection.disconnect().await?;
    }
    refused_login(account()?.pass(Some("wrong")), 1045).await?;
    refused_login(account()?.pass(None::<String>), 1045).await?;
    refused_login(account()?.db_name(Some("nowhere")), 1049).await
}

async fn native_password() -> Checked {
    let options = account()?.user(Some(setting("NATIVE_USER")));
    let mut connection = Conn::new(options.clone()).await?;
    let query = "SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1)";
    let user: Option<String> = connection.query_first(query).await?;
    equal!(user, Some(setting("NATIVE_USER")));
    refused_login(options.pass(Some("wrong")), 1045).await
}

async fn tls() -> Checked {
    let authority = std::path::PathBuf::from(setting("CA"));
    let tls = SslOpts::default().with_root_certs(vec![authority.into()]);
    let options = account()?.ip_or_hostname("localhost").ssl_opts(tls);
    let mut connection = Conn::new(options).await?;
    let row: Option<(String, String)> = connection
        .query_first("SHOW STATUS LIKE 'Ssl_cipher'")
        .await?;
    equal!(row.map(|(_, cipher)| cipher.is_empty()), Some(false));
    Ok(())
}

async fn socket() -> Checked {
    let mut connection = Conn::new(account()?.socket(Some(setting("SOCKET")))).await?;
    equal!(connection.query_first("SELECT 1").await?, Some(1));
    Ok(())
}

/// Makes a table with a column of each type, with rows of lowest values, highest, and NULLs.
async fn make_types(connection: &mut Conn, columns: &[Column]) -> Checked {
    let declared = listed(columns, |column| {
        format!("{} {} NULL", column.name, column.declared)
    });
    let low = listed(columns, |column| column.low_literal.clone());
    let high = listed(columns, |column| column.high_literal.clone());
    for statement in [
        "SET time_zone = '+00:00'".to_owned(),
        format!("CREATE TEMPORARY TABLE kept (id INT PRIMARY KEY, {declared})"),
        format!("INSERT INTO kept VALUES (1, {low})"),
        format!("INSERT INTO kept VALUES (2, {high})"),
        "INSERT INTO kept (id) VALUES (3)".to_owned(),
    ] {
        connection.query_drop(statement).await?;
    }
    Ok(())
}

fn select(columns: &[Column], from: &str) -> String {
    let names = listed(columns, |column| column.name.clone());
    format!("SELECT {names} FROM {from} ORDER BY id")
}

fn fraction(micros: u32) -> String {
    match micros {
        0 => String::new(),
        micros => format!(".{micros:06}").trim_end_matches('0').to_owned(),
    }
}

/// The text by which types.tsv knows a value, of the text protocol or of the other.
fn shown(column: &Column, value: &Value) -> Option<String> {
    let is_raw = ["bytes", "bits"].contains(&column.kind.as_str());
    Some(match value {
        Value::NULL => return None,
        Value::Bytes(bytes) if is_raw => bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }),
        Value::Bytes(bytes) => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let is_time = ["time", "long_time", "datetime"].contains(&column.kind.as_str());
            match is_time && text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text,
            }
        }
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Date(year, month, day, 0, 0, 0, 0) if column.kind == "date" => {
            format!("{year:04}-{month:02}-{day:02}")
        }
        Value::Date(year, month, day, hour, minute, second, micros) => {
            let clock = format!("{hour:02}:{minute:02}:{second:02}{}", fraction(*micros));
            format!("{year:04}-{month:02}-{day:02} {clock}")
        }
        Value::Time(negative, days, hours, minutes, seconds, micros) => {
            let sign = if *negative { "-" } else { "" };
            let hours = days * 24 + u32::from(*hours);
            format!(
                "{sign}{hours:02}:{minutes:02}:{seconds:02}{}",
                fraction(*micros)
            )
        }
    })
}

fn check_rows(columns: &[Column], rows: &[Row]) -> Checked {
    equal!(rows.len(), 3);
    for (place, row) in rows.iter().enumerate() {
        for (index, column) in columns.iter().enumerate() {
            let expected = [Some(&column.low), Some(&column.high), None][place].cloned();
            let found = shown(column, &row[index]);
            if let ("float", Some(expected), Some(found)) =
                (column.kind.as_str(), &expected, &found)
            {
                equal!(found.parse::<f64>()?, expected.parse::<f64>()?, column.name);
                continue;
            }
            equal!(found, expected, column.name);
        }
    }
    Ok(())
}

async fn types() -> Checked {
    let (columns, mut connection) = (columns()?, open().await?);
    make_types(&mut connection, &columns).await?;
    check_rows(&columns, &connection.query(select(&columns, "kept")).await?)
}

async fn nulls() -> Checked {
    let (columns, mut connection) = (columns()?, open().await?);
    make_types(&mut connection, &columns).await?;
    for Column { name, .. } in &columns {
        let query =
            format!("SELECT COUNT(*), COUNT({name}), MIN(id) FROM kept WHERE {name} IS NULL");
        let row: Option<(i64, i64, i64)> = connection.query_first(query).await?;
        equal!(row, Some((1, 0, 3)), name);
    }
    let query = "SELECT NULL, id FROM kept WHERE age <=> ?";
    let row: Option<(Option<i64>, i64)> = connection.exec_first(query, (Value::NULL,)).await?;
    equal!(row, Some((None, 3)));
    Ok(())
}

async fn metadata() -> Checked {
    let (columns, mut connection) = (columns()?, open().await?);
    make_types(&mut connection, &columns).await?;
    let text: Row = connection
        .query_first(select(&columns, "kept AS k"))
        .await?
        .ok_or("no row")?;
    let binary: Row = connection
        .exec_first(select(&columns, "kept AS k"), ())
        .await?
        .ok_or("no row")?;
    for row in [text, binary] {
        for (column, told) in columns.iter().zip(row.columns_ref()) {
            let is_text = column.kind == "json" && on_mariadb();
            let expected = if is_text { 252 } else { column.field };
            let found = told.column_type();
            equal!(found, ColumnType::try_from(expected)?, column.name);
            equal!(told.name_str(), column.name);
            equal!(
                (&*told.table_str(), &*told.org_table_str()),
                ("k", "kept"),
                column.name
            );
            if column.kind == "integer" {
                let is_unsigned = told.flags().contains(ColumnFlags::UNSIGNED_FLAG);
                equal!(
                    is_unsigned,
                    column.declared.ends_with("UNSIGNED"),
                    column.name
                );
            }
        }
    }
    Ok(())
}

async fn prepared() -> Checked {
    let (columns, mut connection) = (columns()?, open().await?);
    make_types(&mut connection, &columns).await?;
    connection
        .query_drop("CREATE TEMPORARY TABLE again LIKE kept")
        .await?;
    let query = "SELECT * FROM kept WHERE id > ? ORDER BY id";
    let rows: Vec<Row> = connection.exec(query, (0,)).await?;
    let marks = "?, ".repeat(columns.len());
    let insert = connection
        .prep(format!("INSERT INTO again VALUES ({marks}?)"))
        .await?;
    for row in rows {
        connection
            .exec_drop(&insert, Params::Positional(row.unwrap()))
            .await?;
        equal!(connection.affected_rows(), 1);
    }
    let rows: Vec<Row> = connection
        .exec(select(&columns, "again WHERE id < ?"), (100,))
        .await?;
    check_rows(&columns, &rows)?;

    connection
        .query_drop("CREATE TEMPORARY TABLE numbers (id INT PRIMARY KEY, name VARCHAR(20))")
        .await?;
    let insert = connection.prep("INSERT INTO numbers VALUES (?, ?)").await?;
    let by_key = connection
        .prep("SELECT name FROM numbers WHERE id = ?")
        .await?;
    for number in 0..100 {
        let name = format!("n {number}");
        connection.exec_drop(&insert, (number, &name)).await?;
        let found: Option<String> = connection.exec_first(&by_key, (number,)).await?;
        equal!(found, Some(name));
    }
    connection.close(insert).await?;
    let query = "SELECT COUNT(*) FROM numbers WHERE name LIKE ? AND id > ?";
    let count: Option<i64> = connection.exec_first(query, ("n 1%", 1)).await?;
    equal!(count, Some(10));
    Ok(())
}

async fn errors() -> Checked {
    let mut connection = open().await?;
    connection
        .query_drop("CREATE TEMPORARY TABLE t (a TINYINT NOT NULL PRIMARY KEY)")
        .await?;
    connection.query_drop("INSERT INTO t VALUES (1)").await?;
    for (statement, number, state) in [
        ("SELEC 1", 1064, "42000"),
        ("SELECT * FROM nothing", 1146, "42S02"),
        ("SELECT nothing FROM t", 1054, "42S22"),
        ("INSERT INTO t VALUES (1)", 1062, "23000"),
        ("INSERT INTO t VALUES (NULL)", 1048, "23000"),
        ("INSERT INTO t VALUES (300)", 1264, "22003"),
    ] {
        let expected = (number, state.to_owned());
        equal!(
            code(connection.query_drop(statement).await)?,
            expected,
            statement
        );
        equal!(
            code(connection.exec_drop(statement, ()).await)?,
            expected,
            statement
        );
    }
    connection.query_drop("SET sql_mode = ''").await?;
    connection.query_drop("INSERT INTO t VALUES (300)").await?;
    equal!(connection.get_warnings(), 1);
    let kept: Vec<i8> = connection.query("SELECT a FROM t ORDER BY a").await?;
    equal!(kept, [1, 127]);
    Ok(())
}

async fn transactions() -> Checked {
    let mut connection = open().await?;
    connection
        .query_drop("CREATE TEMPORARY TABLE t (a INT)")
        .await?;
    let mut committed = TxOpts::default();
    committed.with_isolation_level(Some(IsolationLevel::ReadCommitted));
    for (options, commits, expected) in [
        (TxOpts::default(), false, 0),
        (committed, true, 2),
        (TxOpts::default(), false, 2),
    ] {
        let mut transaction = connection.start_transaction(options).await?;
        for statement in [
            "INSERT INTO t VALUES (1)",
            "SAVEPOINT s",
            "INSERT INTO t VALUES (2)",
            "ROLLBACK TO SAVEPOINT s",
            "INSERT INTO t VALUES (3)",
        ] {
            transaction.query_drop(statement).await?;
        }
        match commits {
            true => transaction.commit().await?,
            false => transaction.rollback().await?,
        }
        let query = "SELECT COUNT(*) FROM t WHERE a <> 2";
        equal!(connection.query_first(query).await?, Some(expected));
    }
    Ok(())
}

async fn several() -> Checked {
    let mut connection = open().await?;
    let mut results = connection
        .query_iter(
            "CREATE TEMPORARY TABLE t (a INT); INSERT INTO t VALUES (1), (2); SELECT a FROM t; \
             SELECT 3",
        )
        .await?;
    let mut found: Vec<Vec<i64>> = Vec::new();
    while !results.is_empty() {
        found.push(results.collect().await?);
    }
    drop(results);
    equal!(found, [vec![], vec![], vec![1, 2], vec![3]]);
    Ok(())
}

async fn big_result() -> Checked {
    let mut connection = open().await?;
    let query = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400) \
                 SELECT a.i * 1000 + b.i, REPEAT('x', 100) FROM n AS a, n AS b WHERE a.i > ?";
    let add = |(count, total): (u64, u64), (number, text): (u64, String)| {
        (count + 1, total + number + 100 - text.len() as u64)
    };
    let expected = (160_000, 400 * 1001 * 400 * 401 / 2);
    let found = connection.exec_fold(query, (0,), (0, 0), add).await?;
    equal!(found, expected);
    let text = query.replace('?', "0");
    equal!(connection.query_fold(text, (0, 0), add).await?, expected);
    let long: Option<String> = connection
        .query_first("SELECT REPEAT('y', 20000000)")
        .await?;
    equal!(long.map(|text| text.len()), Some(20_000_000));
    let long = "z".repeat(20_000_000);
    let length: Option<u64> = connection.exec_first("SELECT LENGTH(?)", (&long,)).await?;
    equal!(length, Some(20_000_000));
    // Without the cache of statements the text is named by what it is.
    let length: Option<u64> = connection
        .query_first(format!("SELECT LENGTH('{long}')"))
        .await?;
    equal!(length, Some(20_000_000));
    Ok(())
}

async fn temp_tables() -> Checked {
    let mut connection = Conn::new(account()?.client_found_rows(true)).await?;
    connection
        .query_drop(
            "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20), \
             KEY (name))",
        )
        .await?;
    connection
        .query_drop("INSERT INTO t (name) VALUES ('first')")
        .await?;
    equal!(connection.last_insert_id(), Some(1));
    let names = (0..999).map(|number| (format!("name {}", number % 10),));
    connection
        .exec_batch("INSERT INTO t (name) VALUES (?)", names)
        .await?;
    connection
        .query_drop("CREATE TEMPORARY TABLE u AS SELECT name, COUNT(*) AS n FROM t GROUP BY name")
        .await?;
    let groups: Vec<(String, i64, i64)> = connection
        .query(
            "SELECT t.name, n, COUNT(*) FROM t JOIN u USING (name) GROUP BY name, n \
             HAVING n < 100 ORDER BY name",
        )
        .await?;
    let expected = [("first", 1, 1), ("name 9", 99, 99)];
    equal!(
        groups,
        expected
            .map(|(name, n, count)| (name.to_owned(), n, count))
            .to_vec()
    );
    let update = "UPDATE t SET name = 'first' WHERE id <= 2";
    connection.query_drop(update).await?;
    equal!(connection.affected_rows(), 2);
    let delete = "DELETE FROM t WHERE name = ?";
    connection.exec_drop(delete, ("first",)).await?;
    equal!(connection.affected_rows(), 2);
    let mut other = open().await?;
    equal!(code(other.query_drop("SELECT * FROM t").await)?.0, 1146);
    connection.query_drop("DROP TEMPORARY TABLE t, u").await?;
    equal!(
        code(connection.query_drop("SELECT * FROM t").await)?.0,
        1146
    );
    Ok(())
}

async fn leave_traces(connection: &mut Conn) -> Checked {
    connection
        .query_drop("CREATE TEMPORARY TABLE t (a INT)")
        .await?;
    connection
        .query_drop("SET @a = 5, sql_select_limit = 3")
        .await?;
    Ok(())
}

async fn check_reset(connection: &mut Conn) -> Checked {
    equal!(
        code(connection.query_drop("SELECT * FROM t").await)?.0,
        1146
    );
    let query = "SELECT @a, @@sql_select_limit > 3, DATABASE()";
    let row: Option<(Option<i64>, i64, String)> = connection.query_first(query).await?;
    equal!(row, Some((None, 1, setting("DATABASE"))));
    Ok(())
}

async fn reset() -> Checked {
    let mut connection = open().await?;
    leave_traces(&mut connection).await?;
    equal!(connection.reset().await?, true);
    check_reset(&mut connection).await?;
    leave_traces(&mut connection).await?;
    connection
        .change_user(mysql_async::ChangeUserOpts::default())
        .await?;
    check_reset(&mut connection).await
}

async fn pool() -> Checked {
    let one = PoolConstraints::new(1, 1).ok_or("one connection")?;
    let options = account()?.pool_opts(PoolOpts::default().with_constraints(one));
    let connections = Pool::new(Opts::from(options));
    let mut connection = connections.get_conn().await?;
    let before = connection.id();
    leave_traces(&mut connection).await?;
    drop(connection);
    let mut connection = connections.get_conn().await?;
    equal!(connection.id(), before);
    check_reset(&mut connection).await?;
    drop(connection);
    connections.disconnect().await?;
    Ok(())
}

/// Prints how a check ended; whether it failed.
fn told(name: &str, ended: Checked) -> bool {
    match ended {
        Ok(()) => println!("{name}\tok"),
        Err(ref problem) => {
            let text = problem.to_string();
            let words: Vec<&str> = text.split_whitespace().collect();
            let text: String = words.join(" ").chars().take(300).collect();
            println!("{name}\tFAIL\t{text}");
        }
    }
    ended.is_err()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::process::ExitCode {
    let mut failed = false;
    macro_rules! checks {
        ($($check:ident)*) => { $(failed |= told(stringify!($check), $check().await);)* };
    }
    checks!(connect native_password tls socket types nulls metadata prepared errors transactions);
    checks!(several big_result temp_tables reset pool);
    std::process::ExitCode::from(u8::from(failed))
}
