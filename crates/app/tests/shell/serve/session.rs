//! What clients are told of their session beside results: changes, numbers of inserts, counters.

use super::raw::{INTERACTIVE, NO_EOF, OkPacket, Raw, TRACKS};
use super::running::Server;

/// Runs statements and compares what the client is told of its session.
fn told(client: &mut Raw, cases: &[(&str, &[&str])]) {
    for (statement, expected) in cases {
        let answer = client.query(statement);
        let ok = OkPacket::parse(&answer.end);
        assert_eq!(ok.changes, *expected, "{statement}");
    }
}

/// What MariaDB 10.11 sends, but for the order of variables.
#[test]
fn changes_of_the_session_are_told() {
    let server = Server::start(&[]);
    let mut client = Raw::connect(&server, TRACKS | NO_EOF);
    assert_eq!(OkPacket::parse(&client.login).changes, ["1:test"]);
    told(
        &mut client,
        &[
            ("SET autocommit = 1", &["0:autocommit=ON"]),
            (
                "SET NAMES latin1",
                &[
                    "0:character_set_client=latin1",
                    "0:character_set_results=latin1",
                    "0:character_set_connection=latin1",
                ],
            ),
            ("SET time_zone = '+01:00'", &["0:time_zone=+01:00"]),
            ("SET sql_mode = ''", &[]),
            ("SET GLOBAL time_zone = 'SYSTEM'", &[]),
            ("USE test", &["1:test"]),
            ("DO 1", &[]),
            ("SELECT 1", &[]),
            (
                "SET session_track_system_variables = 'sql_mode, last_insert_id'",
                &[],
            ),
            ("SET sql_mode = ''", &["0:sql_mode"]),
            ("SET last_insert_id = 5", &["0:last_insert_id=5"]),
            (
                "SET session_track_system_variables = '*'",
                &["0:session_track_system_variables=*"],
            ),
            ("SET max_error_count = 10", &["0:max_error_count=10"]),
            ("SET session_track_system_variables = ''", &[]),
            ("SET time_zone = 'SYSTEM'", &[]),
            ("SET session_track_schema = 0", &[]),
            ("USE test", &[]),
            ("SET session_track_schema = 1", &[]),
            ("SET session_track_state_change = 1", &["2:1"]),
            ("SET @a = 1", &["2:1"]),
            ("USE test", &["1:test", "2:1"]),
            ("CREATE TEMPORARY TABLE t (a INT)", &["2:1"]),
            ("INSERT INTO t VALUES (1)", &[]),
            ("ALTER TABLE t ADD b INT", &["2:1"]),
            ("DROP TEMPORARY TABLE t", &["2:1"]),
            // Made again as it was made before.
            ("CREATE TEMPORARY TABLE t (a INT)", &["2:1"]),
            ("DROP TEMPORARY TABLE t", &["2:1"]),
            ("CREATE TABLE shared (a INT)", &[]),
            ("CREATE DATABASE d", &[]),
            ("USE d", &["1:d", "2:1"]),
            ("DROP DATABASE d", &["1:"]),
        ],
    );
    // A name that no variable has is passed over with a warning.
    let ok = client.query("SET session_track_system_variables = 'nonsense,time_zone'");
    assert_eq!(&ok.end[5..7], [1, 0]);
    // A state alone has no length of its own.
    let ok = client.query("SET @a = 2").end;
    assert_eq!(ok, *b"\0\0\0\x02\x40\0\0\0\x03\x02\x011");
    client.command(2, b"test");
    assert_eq!(OkPacket::parse(&client.read()).changes, ["1:test", "2:1"]);
    client.command(0x1F, b"");
    assert_eq!(OkPacket::parse(&client.read()).changes, [""; 0]);
    // An EOF packet has no room: the next OK packet tells.
    let mut client = Raw::connect(&server, TRACKS);
    client.command(3, b"SET time_zone = 'SYSTEM'; SELECT 1; SET autocommit = 1");
    assert_eq!(
        OkPacket::parse(&client.answer().end).changes,
        ["0:time_zone=SYSTEM"]
    );
    assert_eq!(client.answer().end.len(), 5);
    assert_eq!(
        OkPacket::parse(&client.answer().end).changes,
        ["0:autocommit=ON"]
    );
    // Nobody asked.
    let mut client = Raw::connect(&server, NO_EOF);
    told(
        &mut client,
        &[("USE test", &[]), ("SET autocommit = 1", &[])],
    );
}

/// What MariaDB 10.11 sends; it has InnoDB tables where these are temporary.
#[test]
fn transactions_are_told() {
    let server = Server::start(&[]);
    let mut client = Raw::connect(&server, TRACKS | NO_EOF);
    told(
        &mut client,
        &[
            ("SET session_track_system_variables = ''", &[]),
            ("CREATE TABLE shared (a INT)", &[]),
            ("CREATE TEMPORARY TABLE own (a INT)", &[]),
            (
                "SET session_track_transaction_info = 'STATE'",
                &["5:________"],
            ),
            ("BEGIN", &["5:T_______"]),
            ("SELECT 1", &["5:T_____S_"]),
            ("SELECT * FROM shared", &["5:Tr____S_"]),
            ("SELECT * FROM own", &["5:TrR___S_"]),
            ("INSERT INTO own VALUES (1)", &["5:TrR_W_S_"]),
            ("INSERT INTO own VALUES (2)", &[]),
            ("INSERT INTO shared VALUES (1)", &["5:TrRwW_S_"]),
            ("COMMIT", &["5:________"]),
            ("DO 1", &[]),
            ("SET autocommit = 0", &[]),
            ("SELECT 1", &[]),
            ("UPDATE own SET a = 3", &["5:I___W___"]),
            ("ROLLBACK", &["5:________"]),
            ("SET autocommit = 1", &[]),
            ("LOCK TABLES shared WRITE", &["5:_______L"]),
            ("BEGIN", &["5:T_______"]),
            ("COMMIT", &["5:________"]),
            (
                "SET session_track_transaction_info = 'CHARACTERISTICS'",
                &["5:________", "4:"],
            ),
            ("BEGIN", &["5:T_______", "4:START TRANSACTION;"]),
            ("COMMIT", &["5:________", "4:"]),
            (
                "START TRANSACTION READ WRITE, WITH CONSISTENT SNAPSHOT",
                &[
                    "5:T_R_____",
                    "4:START TRANSACTION WITH CONSISTENT SNAPSHOT, READ WRITE;",
                ],
            ),
            (
                "COMMIT AND CHAIN",
                &["5:T_______", "4:START TRANSACTION READ WRITE;"],
            ),
            ("ROLLBACK", &["5:________", "4:"]),
            (
                "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
                &["4:SET TRANSACTION ISOLATION LEVEL READ COMMITTED;"],
            ),
            (
                "SET TRANSACTION READ ONLY",
                &["4:SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET TRANSACTION READ ONLY;"],
            ),
            (
                "BEGIN",
                &[
                    "5:T_______",
                    "4:SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION READ ONLY;",
                ],
            ),
            ("COMMIT", &["5:________", "4:"]),
            (
                "SET TRANSACTION READ ONLY",
                &["4:SET TRANSACTION READ ONLY;"],
            ),
            ("SELECT * FROM own", &["4:"]),
        ],
    );
    let ok = client.query("START TRANSACTION READ ONLY").end;
    assert_eq!(OkPacket::parse(&ok).status, 0x6003);
}

/// The numbers that MariaDB 10.11 sends.
#[test]
fn inserts_tell_the_number_of_their_row() {
    let server = Server::start(&[]);
    let mut client = Raw::connect(&server, NO_EOF);
    client
        .query("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, k INT UNIQUE, v INT)");
    client.query("CREATE TEMPORARY TABLE n (a INT PRIMARY KEY, b INT)");
    for (statement, affected, number, last) in [
        ("INSERT INTO t (k, v) VALUES (1, 1)", 1, 1, 1),
        ("INSERT INTO t (k, v) VALUES (2, 1), (3, 1)", 2, 2, 2),
        (
            "INSERT INTO t (k) VALUES (1) ON DUPLICATE KEY UPDATE v = 5",
            2,
            1,
            2,
        ),
        (
            "INSERT INTO t (k) VALUES (2) ON DUPLICATE KEY UPDATE v = 6",
            2,
            2,
            2,
        ),
        (
            "INSERT INTO t (k) VALUES (2) ON DUPLICATE KEY UPDATE v = 6",
            0,
            0,
            2,
        ),
        (
            "INSERT INTO t (k, v) VALUES (2, 7), (1, 8) ON DUPLICATE KEY UPDATE v = VALUES(v)",
            4,
            1,
            2,
        ),
        (
            "INSERT INTO t (k, v) VALUES (10, 7), (1, 9) ON DUPLICATE KEY UPDATE v = VALUES(v)",
            3,
            9,
            9,
        ),
        (
            "INSERT INTO t (k) VALUES (1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), v = 11",
            2,
            1,
            1,
        ),
        (
            "INSERT INTO t (k) VALUES (2) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)",
            0,
            2,
            2,
        ),
        (
            "INSERT INTO t (k, v) VALUES (3, LAST_INSERT_ID(55)) ON DUPLICATE KEY UPDATE v = 9",
            2,
            55,
            55,
        ),
        ("INSERT INTO t (id, k) VALUES (500, 500)", 1, 500, 55),
        (
            "INSERT INTO t (id, k) VALUES (7000, 500) ON DUPLICATE KEY UPDATE v = 44",
            2,
            500,
            55,
        ),
        (
            "INSERT INTO t (k) VALUES (500) ON DUPLICATE KEY UPDATE id = 600",
            2,
            600,
            55,
        ),
        (
            "INSERT INTO t (k, v) SELECT 2, 3 ON DUPLICATE KEY UPDATE v = 101",
            2,
            0,
            55,
        ),
        ("UPDATE t SET v = LAST_INSERT_ID(77) WHERE k = 2", 1, 77, 77),
        (
            "UPDATE t SET v = LAST_INSERT_ID(78) WHERE k = 99999",
            0,
            0,
            77,
        ),
        ("UPDATE t SET v = LAST_INSERT_ID(v) WHERE k = 2", 0, 77, 77),
        (
            "UPDATE t SET v = LAST_INSERT_ID(v + 1) WHERE k = 2",
            1,
            78,
            78,
        ),
        (
            "UPDATE t SET v = LAST_INSERT_ID(v + 1) WHERE k = 2",
            1,
            79,
            79,
        ),
        ("DELETE FROM t WHERE k = LAST_INSERT_ID(3)", 1, 0, 3),
        ("DO LAST_INSERT_ID(14)", 0, 0, 14),
        ("CREATE TEMPORARY TABLE m (a INT)", 0, 0, 14),
        ("INSERT INTO m VALUES (1), (2)", 2, 0, 14),
        ("ALTER TABLE m ADD id INT AUTO_INCREMENT UNIQUE", 2, 0, 14),
        ("INSERT INTO n VALUES (1, 1)", 1, 0, 14),
        (
            "INSERT INTO n VALUES (1, 1) ON DUPLICATE KEY UPDATE b = 2",
            2,
            0,
            14,
        ),
        (
            "INSERT INTO n VALUES (1, 1) ON DUPLICATE KEY UPDATE b = LAST_INSERT_ID(33)",
            2,
            33,
            33,
        ),
        ("INSERT INTO n VALUES (2, LAST_INSERT_ID(34))", 1, 34, 34),
        ("REPLACE INTO n VALUES (2, LAST_INSERT_ID(35))", 2, 35, 35),
    ] {
        let ok = OkPacket::parse(&client.query(statement).end);
        assert_eq!(
            (ok.affected, ok.insert_id),
            (affected, number),
            "{statement}"
        );
        let found = client.query("SELECT LAST_INSERT_ID()").row(0);
        assert_eq!(found, [last.to_string()], "{statement}");
    }
    client.query("SELECT LAST_INSERT_ID(13) FROM t WHERE FALSE");
    assert_eq!(client.query("SELECT LAST_INSERT_ID()").row(0), ["35"]);
}

#[test]
fn a_person_may_wait_longer() {
    let server = Server::start(&[]);
    let mut program = Raw::connect(&server, 0);
    program.query("SET GLOBAL interactive_timeout = 77");
    let mut person = Raw::connect(&server, INTERACTIVE);
    assert_eq!(person.query("SELECT @@wait_timeout").row(0), ["77"]);
    assert_eq!(program.query("SELECT @@wait_timeout").row(0), ["28800"]);
    person.command(0x1F, b"");
    person.read();
    assert_eq!(person.query("SELECT @@wait_timeout").row(0), ["77"]);
    let seconds = person
        .query("SELECT @@long_query_time, @@long_query_time + 0.5")
        .row(0);
    assert_eq!(seconds, ["10.000000", "10.500000"]);
}

fn counter(client: &mut Raw, scope: &str, name: &str) -> u64 {
    let answer = client.query(&format!("SHOW {scope} STATUS LIKE '{name}'"));
    answer.row(0)[1].parse().expect("a number")
}

#[test]
fn commands_and_bytes_are_counted() {
    let server = Server::start(&[]);
    let mut client = Raw::connect(&server, NO_EOF);
    client.query("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, v INT)");
    for statement in [
        "REPLACE INTO t VALUES (1, 1)",
        "REPLACE INTO t SELECT 2, 2",
        "INSERT INTO t SELECT 3, 3",
        "UPDATE t JOIN (SELECT 1 AS id) d ON t.id = d.id SET v = 5",
        "DELETE t FROM t JOIN (SELECT 3 AS id) d ON t.id = d.id",
        "CREATE INDEX by_v ON t (v)",
        "DROP INDEX by_v ON t",
        "ALTER TABLE t ADD w INT",
        "SHOW TABLES",
        "SHOW WARNINGS",
        "SHOW ERRORS",
        "SHOW VARIABLES LIKE 'port'",
        "DESCRIBE t",
        "SHOW CREATE TABLE t",
        "DO 1",
        "USE test",
    ] {
        assert_ne!(client.query(statement).end[0], 0xFF, "{statement}");
    }
    for name in [
        "Com_replace",
        "Com_replace_select",
        "Com_insert_select",
        "Com_update_multi",
        "Com_delete_multi",
        "Com_create_index",
        "Com_drop_index",
        "Com_alter_table",
        "Com_show_tables",
        "Com_show_warnings",
        "Com_show_errors",
        "Com_show_variables",
        "Com_show_fields",
        "Com_show_create_table",
        "Com_do",
    ] {
        assert_eq!(counter(&mut client, "SESSION", name), 1, "{name}");
        assert!(counter(&mut client, "GLOBAL", name) >= 1, "{name}");
    }
    for name in ["Com_insert", "Com_update", "Com_delete"] {
        assert_eq!(counter(&mut client, "SESSION", name), 0, "{name}");
    }
    // The command that asks has come, its answer has not gone.
    client.query("FLUSH STATUS");
    let received = counter(&mut client, "SESSION", "Bytes_received");
    assert_eq!(
        received,
        5 + "SHOW SESSION STATUS LIKE 'Bytes_received'".len() as u64
    );
    client.query("FLUSH STATUS");
    assert_eq!(counter(&mut client, "SESSION", "Bytes_sent"), 4 + 7);
    assert!(counter(&mut client, "GLOBAL", "Bytes_sent") > 1000);
}

/// Prepares a statement over the protocol: its number, or the error's.
fn prepare(client: &mut Raw, statement: &str) -> Result<u32, u16> {
    client.command(0x16, statement.as_bytes());
    let packet = client.read();
    if packet[0] == 0xFF {
        return Err(u16::from_le_bytes([packet[1], packet[2]]));
    }
    for _ in 0..packet[5] + packet[7] {
        client.read();
    }
    Ok(u32::from_le_bytes([
        packet[1], packet[2], packet[3], packet[4],
    ]))
}

#[test]
fn prepared_statements_are_counted_and_limited() {
    let server = Server::start(&[]);
    let mut client = Raw::connect(&server, NO_EOF);
    let id = prepare(&mut client, "SELECT SLEEP(0.5)").unwrap();
    assert_eq!(counter(&mut client, "GLOBAL", "Prepared_stmt_count"), 1);
    client.command(0x17, &[&id.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat());
    let mut other = Raw::connect(&server, NO_EOF);
    let list = other.query("SHOW PROCESSLIST");
    let found = (0..list.rows.len()).map(|index| list.row(index));
    let running: Vec<_> = found
        .filter(|row| row[7].starts_with("SELECT SLEEP"))
        .collect();
    assert_eq!(running.len(), 1, "{running:?}");
    assert_eq!(running[0][4], "Execute");
    let (host, port) = running[0][2].split_once(':').expect("a port");
    assert_eq!(host, "localhost");
    assert!(port.parse::<u16>().is_ok(), "{port}");
    client.answer();
    client.command(0x1A, &id.to_le_bytes());
    client.read();
    client.command(0x18, &[&id.to_le_bytes()[..], &[0, 0], b"x"].concat());
    client.command(0x19, &id.to_le_bytes());
    for name in ["prepare", "execute", "reset", "send_long_data", "close"] {
        let name = format!("Com_stmt_{name}");
        assert_eq!(counter(&mut client, "SESSION", &name), 1, "{name}");
    }
    assert_eq!(counter(&mut client, "GLOBAL", "Prepared_stmt_count"), 0);
    client.query("SET GLOBAL max_prepared_stmt_count = 1");
    prepare(&mut client, "SELECT 1").unwrap();
    assert_eq!(prepare(&mut other, "SELECT 2"), Err(1461));
    drop(client);
    let mut is_free = false;
    for _ in 0..400 {
        is_free |= prepare(&mut other, "SELECT 2").is_ok();
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(is_free, "who goes leaves its place");
    other.query("SET GLOBAL max_prepared_stmt_count = DEFAULT");
    other.query("CREATE TEMPORARY TABLE p (a INT PRIMARY KEY, b INT)");
    for (statement, expected) in [
        ("UPDATE nope SET a = ?", Err(1146)),
        ("UPDATE p SET nope = ?", Err(1054)),
        ("UPDATE p SET a = ? WHERE nope = 1", Err(1054)),
        ("UPDATE p JOIN nope ON p.a = nope.a SET p.b = 1", Err(1146)),
        ("DELETE FROM nope", Err(1146)),
        ("DELETE FROM p WHERE nope = ?", Err(1054)),
        ("REPLACE INTO nope VALUES (?)", Err(1146)),
        ("REPLACE INTO p (nope) VALUES (?)", Err(1054)),
        ("INSERT INTO p VALUES (?)", Err(1136)),
        ("INSERT INTO p SELECT nope FROM p", Err(1054)),
        (
            "INSERT INTO p VALUES (?, ?) ON DUPLICATE KEY UPDATE nope = 1",
            Err(1054),
        ),
        (
            "INSERT INTO p VALUES (?, ?) ON DUPLICATE KEY UPDATE b = nope",
            Err(1054),
        ),
        ("CREATE TABLE q AS SELECT * FROM nope", Err(1146)),
        ("INSERT INTO p VALUES (1, 2), (?, nope + 1)", Err(1054)),
        ("DO nope + ?", Err(1054)),
        ("SET @a = nope", Err(1054)),
        ("SET @a = nosuch(?)", Err(1305)),
        ("SET @a = (SELECT a FROM nope)", Err(1146)),
        ("INSERT INTO p VALUES (?, a + ?)", Ok(())),
        ("SET @a = ? + 1, sql_mode = ?, autocommit = ON", Ok(())),
        ("DO SLEEP(?), (SELECT a FROM p WHERE a = ?)", Ok(())),
        ("UPDATE p SET b = ? WHERE a = ?", Ok(())),
        ("DELETE FROM p WHERE a = ? LIMIT 3", Ok(())),
        ("UPDATE p SET b = DEFAULT ORDER BY a LIMIT ?", Ok(())),
        (
            "INSERT INTO p VALUES (?, ?) ON DUPLICATE KEY UPDATE b = VALUES(b)",
            Ok(()),
        ),
        ("REPLACE INTO p SELECT a, ? FROM p", Ok(())),
    ] {
        let prepared = prepare(&mut other, statement).map(drop);
        assert_eq!(prepared, expected, "{statement}");
    }
}

/// Statements that are prepared under a name are counted as what they are, each once, and end with
/// what the session has.
#[test]
fn named_statements_are_counted_and_limited() {
    let server = Server::start(&[]);
    let mut client = Raw::connect(&server, NO_EOF);
    let questions = counter(&mut client, "SESSION", "Questions");
    client.query("SET @v = 7");
    client.query("PREPARE s FROM 'SELECT ? + 1'");
    assert_eq!(client.query("EXECUTE s USING @v").row(0), ["8"]);
    let immediate = client.query("EXECUTE IMMEDIATE 'SELECT 9'");
    assert_eq!(immediate.row(0), ["9"]);
    assert_eq!(counter(&mut client, "GLOBAL", "Prepared_stmt_count"), 1);
    client.query("DEALLOCATE PREPARE s");
    for (name, count) in [
        ("Com_prepare_sql", 1),
        ("Com_execute_sql", 1),
        ("Com_execute_immediate", 1),
        ("Com_dealloc_sql", 1),
        ("Com_stmt_prepare", 0),
        ("Com_stmt_execute", 0),
        ("Com_select", 2),
    ] {
        for scope in ["SESSION", "GLOBAL"] {
            assert_eq!(counter(&mut client, scope, name), count, "{scope} {name}");
        }
    }
    // The statements above, and those that asked.
    assert_eq!(
        counter(&mut client, "SESSION", "Questions"),
        questions + 5 + 1 + 14 + 1
    );
    client.query("SET GLOBAL max_prepared_stmt_count = 1");
    client.query("PREPARE s FROM 'SELECT 1'");
    client.query("PREPARE s FROM 'SELECT 2'");
    let error = |client: &mut Raw, statement: &str| {
        let end = client.query(statement).end;
        assert_eq!(end[0], 0xFF, "{statement}");
        u16::from_le_bytes([end[1], end[2]])
    };
    assert_eq!(error(&mut client, "PREPARE z FROM 'SELECT 3'"), 1461);
    client.command(0x1f, &[]);
    client.read();
    assert_eq!(counter(&mut client, "GLOBAL", "Prepared_stmt_count"), 0);
    assert_eq!(error(&mut client, "EXECUTE s"), 1243);
    // Neither does preparing one over the protocol count as a question.
    let questions = counter(&mut client, "SESSION", "Questions");
    prepare(&mut client, "SELECT 1 + ?").unwrap();
    assert_eq!(counter(&mut client, "SESSION", "Questions"), questions + 1);
}

/// Type, length, decimals and flags of the columns of a query, as MySQL 8.4 describes them.
#[test]
fn computed_columns_are_described() {
    let server = Server::start(&[]);
    let mut client = Raw::connect(&server, NO_EOF);
    client.query(
        "CREATE TEMPORARY TABLE t (i INT PRIMARY KEY, u INT UNSIGNED, d DECIMAL(10,2), e DOUBLE, \
         v VARCHAR(20), tx TEXT, da DATE, dt DATETIME(3))",
    );
    client.query("SET @s = 'abc', @f = 1e3");
    let (long, double, decimal, text, blob) = (8, 5, 246, 253, 252);
    let (not_null, unsigned, binary, is_blob) = (1, 32, 128, 16);
    for (expression, expected) in [
        ("1", (long, 21, 0, not_null | binary)),
        ("1.50", (decimal, 5, 2, not_null | binary)),
        ("1e3", (double, 23, 31, not_null | binary)),
        ("'abc'", (text, 12, 31, not_null)),
        ("''", (text, 0, 31, not_null)),
        ("x'41'", (text, 1, 0, not_null | binary)),
        ("NULL", (6, 0, 0, binary)),
        ("i + 1", (long, 21, 0, not_null | binary)),
        ("u + 1", (long, 21, 0, unsigned | binary)),
        ("i = 1", (long, 21, 0, not_null | binary)),
        ("d / 3", (decimal, 16, 6, binary)),
        ("COUNT(*)", (long, 21, 0, not_null | binary)),
        ("SUM(i)", (decimal, 33, 0, binary)),
        ("SUM(d)", (decimal, 34, 2, binary)),
        ("AVG(i)", (decimal, 16, 4, binary)),
        ("SUM(e)", (double, 23, 31, binary)),
        ("MIN(v)", (text, 80, 31, 0)),
        ("GROUP_CONCAT(v)", (blob, 262_140, 31, is_blob)),
        ("CONCAT(v, 'x')", (text, 84, 31, 0)),
        ("UPPER(v)", (text, 80, 31, 0)),
        ("IF(i > 1, 'a', 'bcd')", (text, 12, 31, not_null)),
        (
            "CASE WHEN i = 1 THEN 'one' ELSE 'other' END",
            (text, 20, 31, not_null),
        ),
        ("COALESCE(v, 'none')", (text, 80, 31, not_null)),
        ("IFNULL(i, 'x')", (text, 44, 31, not_null)),
        ("CAST(i AS CHAR)", (text, 44, 31, 0)),
        ("CAST(v AS BINARY)", (text, 80, 0, binary)),
        ("CAST(v AS DECIMAL(10,2))", (decimal, 12, 2, binary)),
        ("CONCAT(tx, tx)", (blob, 67_108_860, 31, is_blob)),
        ("DATE(dt)", (10, 10, 0, binary)),
        ("dt + INTERVAL 1 DAY", (12, 23, 3, binary)),
        ("DATE_FORMAT(dt, '%Y-%m')", (text, 28, 31, 0)),
        ("VERSION()", (text, 240, 31, not_null)),
        ("DATABASE()", (text, 256, 31, not_null)),
        ("USER()", (text, 1152, 31, not_null)),
        ("@s", (text, 12, 31, not_null)),
        ("@f", (double, 23, 31, not_null | binary)),
        ("@@sql_mode", (text, 500, 31, not_null)),
        ("@@long_query_time", (double, 23, 6, not_null | binary)),
        ("@@max_connections", (long, 21, 0, not_null | binary)),
        ("(SELECT MAX(v) FROM t)", (text, 80, 31, 0)),
        ("@n := i + 1", (long, 21, 0, binary)),
        ("@w := v", (text, 80, 31, 0)),
    ] {
        let query = format!("SELECT {expression} FROM t");
        let of_text = client.query(&query).columns;
        client.command(0x16, query.as_bytes());
        let id = client.read()[1..5].to_vec();
        let of_prepared = client.read();
        client.command(0x17, &[&id[..], &[0, 1, 0, 0, 0]].concat());
        let of_execution = client.answer().columns;
        for column in [&of_text[0], &of_prepared, &of_execution[0]] {
            let facts = &column[column.len() - 12..];
            let length = u32::from_le_bytes([facts[2], facts[3], facts[4], facts[5]]);
            let flags = u16::from_le_bytes([facts[7], facts[8]]);
            let mut found = (facts[6], length, facts[9], flags);
            if expression == "@@sql_mode" {
                // As long as it is.
                found.1 = 500;
            }
            assert_eq!(found, expected, "{expression}");
        }
    }
    let union = client.query("SELECT 'a' UNION SELECT 'bcd'").columns;
    assert_eq!(union[0][union[0].len() - 6], text);
    let derived = client
        .query("SELECT x FROM (SELECT 'abc' AS x) AS d")
        .columns;
    assert_eq!(derived[0][derived[0].len() - 6], text);
}
