//! SELECT ... INTO: files byte for byte as MariaDB writes them, variables, and what fails.

use std::fs;

use mayfly_testkit::repository;

use crate::engine::{error, open, open_with_files_under, rows};

const TABLE: &str = "CREATE TABLE o (i INT, u BIGINT UNSIGNED, d DECIMAL(8,3), f DOUBLE, s VARCHAR(40), b BLOB, \
    dt DATETIME(3), t TIME, y YEAR, e ENUM('a','b'), bi BIT(9), dd DATE)";
const ROWS: &str = r#"INSERT INTO o VALUES
    (1, 18446744073709551615, 1.5, 0.1, 'plain', 'x', '2024-01-02 03:04:05.678', '10:11:12', 2024, 'b', 5,
     '2024-05-06'),
    (-2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, 0, -1, 1e300, 'tab\there \\ back "quo" \'s\' n\nl', x'00ff27', NULL, NULL, 1901, 'a', 256, NULL),
    (4, 4, 4, 4, CONCAT('ntb,;', _utf8mb4 x'c3a9'), ' ', NULL, NULL, NULL, NULL, 0, NULL)"#;

/// What stands behind the name of the file, for the files in `tests/recorded/outfile`, which
/// MariaDB wrote: version 11.8 those up to the seventh, and 10.11, which writes the same, the rest.
const FORMATS: [&str; 11] = [
    "FROM o",
    r#"FIELDS TERMINATED BY ',' ENCLOSED BY '"' LINES TERMINATED BY '\r\n' FROM o"#,
    r#"FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' ESCAPED BY '' FROM o"#,
    r"FIELDS TERMINATED BY 'n' ESCAPED BY '#' LINES STARTING BY '>>' TERMINATED BY '|\n' FROM o ORDER BY i DESC LIMIT 2",
    "FIELDS TERMINATED BY '1' ENCLOSED BY '0' FROM o",
    "FIELDS TERMINATED BY 't' ENCLOSED BY 'b' FROM o",
    r#"CHARACTER SET latin1 FIELDS TERMINATED BY ';;' ESCAPED BY '"' ENCLOSED BY '"' FROM o"#,
    "FIELDS TERMINATED BY '1' FROM o",
    r"FIELDS TERMINATED BY '\0' FROM o",
    "FIELDS TERMINATED BY '-' OPTIONALLY ENCLOSED BY '2' LINES TERMINATED BY '0' FROM o",
    r"FIELDS TERMINATED BY ',' ENCLOSED BY '\0' FROM o",
];

fn recorded(name: &str) -> Vec<u8> {
    let directory = repository().join("tests/recorded/outfile");
    fs::read(directory.join(name)).expect("it was recorded")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_those_that_mariadb_writes() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(16 << 20, directory.path());
    let mut session = engine.connect();
    rows(&mut session, TABLE).await;
    rows(&mut session, ROWS).await;
    for (number, format) in (1..).zip(FORMATS) {
        let path = directory.path().join(number.to_string());
        let sql = format!("SELECT * INTO OUTFILE '{}' {format}", path.display());
        rows(&mut session, &sql).await;
        assert_eq!(
            String::from_utf8_lossy(&fs::read(&path).unwrap()),
            String::from_utf8_lossy(&recorded(&format!("{number}.txt"))),
            "{format}"
        );
        assert_eq!(error(&mut session, &sql).await.0, 1086);
    }
    let at = |name: &str| directory.path().join(name).display().to_string();
    let dump = at("dump");
    rows(
        &mut session,
        &format!("SELECT i, s, b INTO DUMPFILE '{dump}' FROM o WHERE i = 3"),
    )
    .await;
    assert_eq!(fs::read(dump).unwrap(), recorded("dump.bin"));
    // What was written comes back.
    rows(&mut session, "CREATE TABLE back LIKE o").await;
    let load = format!("LOAD DATA INFILE '{}' INTO TABLE back", at("1"));
    rows(&mut session, &load).await;
    let all = |table: &str| format!("SELECT * FROM {table} ORDER BY i");
    let found = rows(&mut session, &all("back")).await;
    assert_eq!(found, rows(&mut session, &all("o")).await);
    // At the end of the statement, and the counts.
    let end = format!(
        "SELECT i FROM o UNION ALL SELECT 1 INTO OUTFILE '{}'",
        at("end")
    );
    rows(&mut session, &end).await;
    let counts = rows(&mut session, "SELECT ROW_COUNT(), FOUND_ROWS()").await;
    assert_eq!(counts, [["5", "5"]]);
    assert_eq!(fs::read_to_string(at("end")).unwrap().lines().count(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fails_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(16 << 20, directory.path());
    let mut session = engine.connect();
    rows(&mut session, TABLE).await;
    rows(&mut session, ROWS).await;
    let path = directory.path().join("file");
    let to = format!("OUTFILE '{}'", path.display());
    for (sql, expected) in [
        (format!("SELECT (SELECT i FROM o) INTO {to}"), 1242),
        (format!("SELECT nosuch INTO {to} FROM o"), 1054),
        (
            format!("SELECT i INTO DUMPFILE '{}' FROM o", path.display()),
            1172,
        ),
        (format!("SELECT 1 INTO {to} UNION SELECT 2"), 1064),
        (format!("SELECT (SELECT 1 INTO {to})"), 1064),
        (format!("SELECT 1 INTO {to} FIELDS ENCLOSED BY 'ab'"), 1083),
        (format!("SELECT 1 INTO {to} CHARACTER SET nosuch"), 1115),
        (format!("SELECT 1 INTO {to} FIELDS TERMINATED BY ''"), 1235),
        (
            "SELECT 1 INTO OUTFILE '/nosuch/directory/file'".to_owned(),
            1,
        ),
    ] {
        assert_eq!(error(&mut session, &sql).await.0, expected, "{sql}");
        assert!(!path.exists(), "{sql}");
    }
    let below = directory.path().join("in");
    fs::create_dir(&below).unwrap();
    let engine = open_with_files_under(&below, 16 << 20, directory.path());
    let mut session = engine.connect();
    assert_eq!(
        error(&mut session, &format!("SELECT 1 INTO {to}")).await.0,
        1290
    );
    let inside = below.join("file");
    rows(
        &mut session,
        &format!("SELECT 1 INTO OUTFILE '{}'", inside.display()),
    )
    .await;
    assert_eq!(fs::read_to_string(inside).unwrap(), "1\n");
}
