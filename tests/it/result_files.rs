//! SELECT ... INTO OUTFILE as Parquet, CSV, TSV and JSON lines: what is written, what of it is read
//! back, and what fails.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch, StructArray};
use arrow::datatypes::{DataType, Field, Fields, Int64Type};
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use mayfly_session::{Engine, Outcome, Session};

use crate::engine::{
    NUMBERS, check_nothing_left, error, make_digits, make_wide, open, open_with_files_under, rows,
};
use crate::parquet_file::write_parquet;

/// A column of each type.
const TABLE: &str = "CREATE TABLE o (i INT, u BIGINT UNSIGNED, m MEDIUMINT, flag TINYINT(1), d DECIMAL(8,3), \
    big DECIMAL(60,5), f DOUBLE, fl FLOAT, s VARCHAR(40), b VARBINARY(10), bl BLOB, dd DATE, dt DATETIME(3), \
    dn DATETIME, ts TIMESTAMP NULL, t TIME(2), y YEAR, e ENUM('a','b'), st SET('x','y'), bi BIT(9), j JSON)";
const ROWS: &str = r#"INSERT INTO o VALUES
    (1, 18446744073709551615, -8388608, 1, 1.5,
     -1234567890123456789012345678901234567890123456789012345.67891, 0.1, 0.25, 'plain', 'bytes', 'x,y', '2024-05-06',
     '2024-01-02 03:04:05.678', '1999-12-31 23:59:59', '2024-02-29 12:00:00', '-838:59:58.99', 2024, 'b', 'x,y', 5,
     '{"a": [1, "x"], "b": null}'),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     NULL, NULL),
    (3, 0, 8388607, 0, -12345.678, 0.00001, 1e300, -2.5, 'tab\there, "quoted" \'s\' \\ n\nl', ' ', '"',
     '0001-01-01', '9999-12-31 23:59:59.999', '1000-01-01 00:00:00', '1970-01-02 00:00:01', '00:00:00', 1901, 'a', 'y',
     256, '{"k": "\u00e4"}')"#;

/// The types of the columns of a query.
async fn types(session: &mut Session, sql: &str) -> Vec<String> {
    match session.execute(sql).await {
        Ok(Outcome::Rows { columns, .. }) => {
            let columns = columns.iter();
            columns
                .map(|column| column.column_type.to_string())
                .collect()
        }
        Ok(Outcome::Done { .. }) => panic!("{sql}: no rows"),
        Err(error) => panic!("{sql}: {error}"),
    }
}

async fn warnings(session: &mut Session) -> Vec<Vec<String>> {
    rows(session, "SHOW WARNINGS").await
}

/// An engine with the table, and a session.
async fn engine_with_table(memory_bytes: u64, directory: &Path) -> (Engine, Session) {
    let engine = open(memory_bytes, directory);
    let mut session = engine.connect();
    rows(&mut session, TABLE).await;
    rows(&mut session, ROWS).await;
    (engine, session)
}

/// Writes the rows of a query to a file, whose name says the format.
async fn export(session: &mut Session, query: &str, path: &str) {
    rows(session, &format!("{query} INTO OUTFILE '{path}'")).await;
}

/// What the rows of `wide` come to, those of the table or of a file.
fn sums_of_wide(from: &str) -> String {
    format!("SELECT COUNT(*), SUM(n), SUM(LENGTH(word)), MAX(k) FROM {from}")
}

fn reader(path: &Path) -> SerializedFileReader<File> {
    SerializedFileReader::new(File::open(path).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parquet_has_the_values_and_the_types_of_its_query() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(16 << 20, directory.path()).await;
    let at = |name: &str| directory.path().join(name).display().to_string();
    let o = rows(&mut session, "SELECT * FROM o ORDER BY i").await;
    let first = at("1.parquet");
    export(&mut session, "SELECT * FROM o", &first).await;
    assert_eq!(warnings(&mut session).await, Vec::<Vec<String>>::new());
    let read = format!("SELECT * FROM '{first}' ORDER BY i");
    assert_eq!(rows(&mut session, &read).await, o);
    let expect = [
        "int",
        "bigint unsigned",
        "mediumint",
        "tinyint(1)",
        "decimal(8,3)",
        "decimal(60,5)",
        "double",
        "float",
        "longtext",
        "longblob",
        "longblob",
        "date",
        "datetime(3)",
        "datetime",
        "timestamp",
        "time(2)",
        "year",
        "longtext",
        "longtext",
        "bit(9)",
        "longtext",
    ];
    assert_eq!(types(&mut session, &read).await, expect);
    // By FORMAT, below another name; and several files at once.
    let other = at("2.data");
    let format = "FORMAT PARQUET (COMPRESSION snappy)";
    rows(
        &mut session,
        &format!("SELECT * INTO OUTFILE '{other}' {format} FROM o"),
    )
    .await;
    fs::rename(&other, at("2.parquet")).unwrap();
    let both = format!("SELECT * FROM '{}' ORDER BY i", at("*.parquet"));
    assert_eq!(types(&mut session, &both).await, expect);
    let doubled: Vec<_> = o
        .iter()
        .flat_map(|row| [row.clone(), row.clone()])
        .collect();
    assert_eq!(rows(&mut session, &both).await, doubled);
    // A condition on what was declared.
    let found =
        format!("SELECT i FROM '{first}' WHERE dt > '2024-01-02 03:04:05.678' AND y = 1901");
    assert_eq!(rows(&mut session, &found).await, [["3"]]);
    // Where two files differ, the column is what both are.
    let digits = format!(
        "SELECT i, dn AS dt INTO OUTFILE '{}' FROM o",
        at("digits_1.parquet")
    );
    rows(&mut session, &digits).await;
    let digits = format!(
        "SELECT i, dt INTO OUTFILE '{}' FROM o",
        at("digits_2.parquet")
    );
    rows(&mut session, &digits).await;
    let both = format!("SELECT dt FROM '{}'", at("digits_*.parquet"));
    assert_eq!(types(&mut session, &both).await, ["datetime(6)"]);
    rows(&mut session, "DROP TABLE o").await;
    drop(session);
    check_nothing_left(&engine, "Parquet").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_computed_and_what_is_empty_is_parquet_too() {
    let directory = tempfile::tempdir().unwrap();
    let (_engine, mut session) = engine_with_table(16 << 20, directory.path()).await;
    let at = |name: &str| directory.path().join(name).display().to_string();
    let empty = at("empty.parquet");
    export(&mut session, "SELECT * FROM o WHERE i > 9", &empty).await;
    let read = format!("SELECT * FROM '{empty}'");
    assert_eq!(rows(&mut session, &read).await, Vec::<Vec<String>>::new());
    let typed = format!("SELECT i, d, dt, bi FROM '{empty}'");
    let expect = ["int", "decimal(8,3)", "datetime(3)", "bit(9)"];
    assert_eq!(types(&mut session, &typed).await, expect);
    for (name, sql) in [
        ("union", "SELECT i, s FROM o UNION SELECT 4, 'four'"),
        (
            "with",
            "WITH w AS (SELECT i FROM o) SELECT COUNT(*) AS n, SUM(i) AS total FROM w",
        ),
        (
            "null",
            "SELECT NULL AS n, i > 1 AS more, i / 3 AS third, PI() AS pi FROM o",
        ),
        (
            "window",
            "SELECT i, ROW_NUMBER() OVER (ORDER BY i DESC) AS r FROM o",
        ),
    ] {
        let path = at(&format!("{name}.parquet"));
        export(&mut session, sql, &path).await;
        let mut read = rows(&mut session, &format!("SELECT * FROM '{path}'")).await;
        let mut expect = rows(&mut session, sql).await;
        read.sort();
        expect.sort();
        assert_eq!(read, expect, "{name}");
    }
    // Structs and lists stay what they are; documents are texts.
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let lists = vec![Some(vec![Some(1), None]), None];
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
    let fields = Fields::from(vec![Field::new("a", DataType::Int64, true)]);
    let structs = StructArray::new(fields, vec![Arc::clone(&numbers)], None);
    let columns: [(&str, ArrayRef); 2] = [("n", Arc::new(structs)), ("l", Arc::new(lists))];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, it)| (name, it, true)));
    let properties = WriterProperties::builder().build();
    write_parquet(Path::new(&at("n.parquet")), properties, &[batch.unwrap()]);
    fs::write(
        at("n.json"),
        "{\"n\":{\"a\":1},\"l\":[1,2]}\n{\"n\":null,\"l\":[]}\n",
    )
    .unwrap();
    for (name, copy, expect) in [
        ("n.parquet", "struct.parquet", ["json", "json"]),
        ("n.json", "document.parquet", ["longtext", "longtext"]),
    ] {
        let (from, to) = (at(name), at(copy));
        let written = format!("SELECT * FROM '{from}'");
        export(&mut session, &written, &to).await;
        let read = format!("SELECT * FROM '{to}'");
        assert_eq!(
            rows(&mut session, &read).await,
            rows(&mut session, &written).await,
            "{name}"
        );
        assert_eq!(types(&mut session, &read).await, expect, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_groups_are_as_long_as_asked_and_as_memory_allows() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(16 << 20, directory.path());
    let mut session = engine.connect();
    make_wide(&mut session, 50_000).await;
    let at = |name: &str| directory.path().join(name);
    let write = |path: &Path, format: &str| {
        format!(
            "SELECT * FROM wide INTO OUTFILE '{}' {format}",
            path.display()
        )
    };
    let expect = rows(&mut session, &sums_of_wide("wide")).await;
    for (name, format) in [
        ("usual.parquet", ""),
        ("zstd.parquet", "FORMAT PARQUET (COMPRESSION zstd)"),
        ("short.parquet", "FORMAT PARQUET (ROW_GROUP_SIZE 5000)"),
        (
            "plain.parquet",
            "FORMAT PARQUET (COMPRESSION = none, ROW_GROUP_SIZE = 20000)",
        ),
    ] {
        let path = at(name);
        rows(&mut session, &write(&path, format)).await;
        let counts = rows(&mut session, "SELECT ROW_COUNT(), FOUND_ROWS()").await;
        assert_eq!(counts, [["50000", "50000"]]);
        let read = rows(
            &mut session,
            &sums_of_wide(&format!("'{}'", path.display())),
        )
        .await;
        assert_eq!(read, expect, "{name}");
    }
    let groups = |name: &str| {
        let reader = reader(&at(name));
        let groups = reader.metadata().row_groups().to_vec();
        groups
            .iter()
            .map(|group| group.num_rows())
            .collect::<Vec<_>>()
    };
    assert_eq!(groups("short.parquet"), [5000; 10]);
    assert!(groups("plain.parquet").iter().all(|rows| *rows <= 20_000));
    let compressed = |name: &str| {
        let reader = reader(&at(name));
        reader.metadata().row_group(0).column(0).compression()
    };
    // So little memory has room for the contexts of three columns, unless they are asked for.
    assert_eq!(compressed("usual.parquet"), Compression::SNAPPY);
    assert!(matches!(compressed("zstd.parquet"), Compression::ZSTD(_)));
    assert_eq!(compressed("plain.parquet"), Compression::UNCOMPRESSED);
    drop(session);
    check_nothing_left(&engine, "row groups").await;
}

/// Hundreds of columns, and texts of a MiB, in a budget that has no room for many of either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wide_and_long_rows_are_written_within_the_budget() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(32 << 20, directory.path());
    let mut session = engine.connect();
    make_digits(&mut session).await;
    let at = |name: &str| directory.path().join(name).display().to_string();
    let columns = (0..300).map(|column| format!("n + {column} AS c{column}"));
    let columns = columns.collect::<Vec<_>>().join(", ");
    let many = at("many.parquet");
    let sql = format!("SELECT {columns} FROM {NUMBERS} WHERE n < 2000");
    export(&mut session, &sql, &many).await;
    let read = format!("SELECT COUNT(*), SUM(c0), SUM(c299) FROM '{many}'");
    assert_eq!(
        rows(&mut session, &read).await,
        [["2000", "1999000", "2597000"]]
    );
    let long = at("long.parquet");
    let sql = "SELECT d, REPEAT(CONCAT(d, 'ab'), 349525) AS t FROM digits";
    export(&mut session, sql, &long).await;
    let read = format!("SELECT SUM(d), MIN(LENGTH(t)), COUNT(DISTINCT LEFT(t, 3)) FROM '{long}'");
    assert_eq!(rows(&mut session, &read).await, [["45", "1048575", "10"]]);
    drop(session);
    check_nothing_left(&engine, "wide and long rows").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_formats_hold_what_they_say() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(16 << 20, directory.path());
    let mut session = engine.connect();
    let create = "CREATE TABLE few (i INT, d DECIMAL(40,2), s VARCHAR(20), b VARBINARY(9), bi BIT(9), t TIME, \
                  y YEAR, j JSON)";
    rows(&mut session, create).await;
    let insert = r#"INSERT INTO few VALUES
        (1, 12345678901234567890.10, 'a,b "c"', x'00ff', 5, '-10:11:12', 2024, '{"k": [1, 2]}'),
        (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        (3, -0.5, '', 'ab', 256, '00:00:00', 0, '"x"')"#;
    rows(&mut session, insert).await;
    let csv = "i,d,s,b,bi,t,y,j\n\
               1,12345678901234567890.10,\"a,b \"\"c\"\"\",0x00FF,5,-10:11:12,2024,\"{\"\"k\"\": [1, 2]}\"\n\
               2,,,,,,,\n\
               3,-0.50,\"\",ab,256,00:00:00,0000,\"\"\"x\"\"\"\n";
    let json = "{\"i\":1,\"d\":12345678901234567890.10,\"s\":\"a,b \\\"c\\\"\",\"b\":\"0x00FF\",\"bi\":5,\
                \"t\":\"-10:11:12\",\"y\":2024,\"j\":{\"k\": [1, 2]}}\n\
                {\"i\":2,\"d\":null,\"s\":null,\"b\":null,\"bi\":null,\"t\":null,\"y\":null,\"j\":null}\n\
                {\"i\":3,\"d\":-0.50,\"s\":\"\",\"b\":\"ab\",\"bi\":256,\"t\":\"00:00:00\",\"y\":\"0000\",\"j\":\"x\"}\n";
    let tsv = csv.replace(',', "\t");
    // What stands in quotes keeps its commas, and needs none.
    let tsv = tsv.replace("\"a\tb \"\"c\"\"\"", "\"a,b \"\"c\"\"\"");
    let tsv = tsv.replace("[1\t 2]", "[1, 2]");
    let tsv = tsv.as_str();
    let bare = csv
        .split_once('\n')
        .map(|(_, rest)| rest)
        .unwrap_or_default();
    for (name, format, expect) in [
        ("a.csv", "", csv),
        ("a.TSV", "", tsv),
        ("a.tab", "", tsv),
        ("a.json", "", json),
        ("a.jsonl", "", json),
        ("a.ndjson", "", json),
        ("csv", "FORMAT CSV", csv),
        ("b.json", "FORMAT CSV (HEADER OFF)", bare),
        ("tsv", "FORMAT TSV (HEADER ON)", tsv),
        ("json", "FORMAT JSON", json),
    ] {
        let path = directory.path().join(name);
        let sql = format!(
            "SELECT * FROM few ORDER BY i INTO OUTFILE '{}' {format}",
            path.display()
        );
        rows(&mut session, &sql).await;
        // Who knows MySQL is told where the name alone decides.
        let notes = warnings(&mut session).await;
        assert_eq!(
            notes.len(),
            usize::from(format.is_empty()),
            "{name}: {notes:?}"
        );
        assert!(
            notes.iter().all(|note| note[..2] == ["Note", "1105"]),
            "{notes:?}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), expect, "{name}");
        assert_eq!(error(&mut session, &sql).await.0, 1086);
    }
    // MySQL's clauses keep their meaning, whatever the name.
    for (name, format, expect) in [
        ("m.csv", "FIELDS TERMINATED BY ';'", "1;-10:11:12\n"),
        ("m.json", "LINES TERMINATED BY '|'", "1\t-10:11:12|"),
        (
            "m.parquet",
            "FIELDS OPTIONALLY ENCLOSED BY '\"'",
            "1\t\"-10:11:12\"\n",
        ),
        ("m.tsv", "CHARACTER SET latin1", "1\t-10:11:12\n"),
        ("m.txt", "", "1\t-10:11:12\n"),
        ("m.gz", "", "1\t-10:11:12\n"),
    ] {
        let path = directory.path().join(name);
        let to = format!("INTO OUTFILE '{}' {format}", path.display());
        rows(
            &mut session,
            &format!("SELECT i, t {to} FROM few WHERE i = 1"),
        )
        .await;
        assert_eq!(warnings(&mut session).await, Vec::<Vec<String>>::new());
        assert_eq!(fs::read_to_string(path).unwrap(), expect, "{name}");
    }
    // Without rows there is a header, if anything.
    for (name, expect) in [("none.csv", "i,s\n"), ("none.json", "")] {
        let path = directory.path().join(name);
        let sql = format!(
            "SELECT i, s FROM few WHERE i > 9 INTO OUTFILE '{}'",
            path.display()
        );
        rows(&mut session, &sql).await;
        assert_eq!(fs::read_to_string(path).unwrap(), expect, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_formats_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(32 << 20, directory.path()).await;
    rows(&mut session, "CREATE TABLE back LIKE o").await;
    let all = |table: &str| format!("SELECT * FROM {table} ORDER BY i");
    let o = rows(&mut session, &all("o")).await;
    for name in [
        "o.csv",
        "o.tsv",
        "o.json",
        "o.csv.gz",
        "o.csv.zst",
        "o.tsv.gz",
        "o.jsonl.zst",
    ] {
        let path = directory.path().join(name).display().to_string();
        export(&mut session, "SELECT * FROM o", &path).await;
        rows(&mut session, "TRUNCATE back").await;
        rows(
            &mut session,
            &format!("INSERT INTO back SELECT * FROM '{path}'"),
        )
        .await;
        assert_eq!(rows(&mut session, &all("back")).await, o, "{name}");
    }
    // One column, whose NULL is an empty line.
    let one = directory.path().join("one.csv").display().to_string();
    export(&mut session, "SELECT fl FROM o ORDER BY i", &one).await;
    let read = rows(&mut session, &format!("SELECT fl FROM '{one}'")).await;
    assert_eq!(read, [["0.25"], ["NULL"], ["-2.5"]]);
    // More than one buffer, compressed.
    make_wide(&mut session, 20_000).await;
    let expect = rows(&mut session, &sums_of_wide("wide WHERE word <> ''")).await;
    for name in ["w.csv.zst", "w.json.gz"] {
        let path = directory.path().join(name).display().to_string();
        export(&mut session, "SELECT * FROM wide", &path).await;
        let read = rows(
            &mut session,
            &sums_of_wide(&format!("'{path}' WHERE word <> ''")),
        )
        .await;
        assert_eq!(read, expect, "{name}");
    }
    rows(&mut session, "DROP TABLE o, back").await;
    drop(session);
    check_nothing_left(&engine, "text formats").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fails_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, mut session) = engine_with_table(16 << 20, directory.path()).await;
    let at = |name: &str| directory.path().join(name);
    for (name, query, format, expected) in [
        // Fails when it runs, and before.
        ("f.parquet", "SELECT (SELECT i FROM o) AS i", "", 1242),
        ("f.csv.zst", "SELECT (SELECT i FROM o) AS i", "", 1242),
        ("f.json", "SELECT nosuch FROM o", "", 1054),
        // A name that comes twice, in any case; without names it may.
        ("f.parquet", "SELECT 1 AS a, 2 AS A", "", 1060),
        ("f.csv", "SELECT i, i FROM o", "", 1060),
        (
            "f",
            "SELECT 1 AS a, 2 AS a UNION SELECT 3, 4",
            "FORMAT JSON",
            1060,
        ),
        // What can only be read.
        ("f.csv.xz", "SELECT 1 AS a", "", 1235),
        ("f.json.bz2", "SELECT 1 AS a", "", 1235),
        ("f.bz2", "SELECT 1 AS a", "FORMAT CSV", 1235),
        ("f.parquet.gz", "SELECT 1 AS a", "FORMAT PARQUET", 1235),
        (
            "f.parquet",
            "SELECT 1 AS a",
            "FORMAT PARQUET (COMPRESSION lzo)",
            1235,
        ),
        (
            "f.csv",
            "SELECT 1 AS a",
            "FORMAT CSV FIELDS TERMINATED BY ','",
            1221,
        ),
        (
            "f.csv",
            "SELECT 1 AS a",
            "CHARACTER SET latin1 FORMAT CSV",
            1221,
        ),
        ("f.csv", "SELECT 1 AS a", "FORMAT XML", 1064),
        ("nosuch/f.parquet", "SELECT 1 AS a", "", 1),
        // As a whole it would be no Parquet, and a directory is no file.
        ("f.parquet.gz", "SELECT 1 AS a", "", 1235),
        ("f.PQ.zst", "SELECT 1 AS a", "", 1235),
        ("f.csv/", "SELECT 1 AS a", "", 1),
        ("f.csv/.", "SELECT 1 AS a", "", 1),
        // Ends while it waits for a function.
        (
            "f.parquet",
            "SELECT /*+ MAX_EXECUTION_TIME(100) */ SLEEP(60) AS s",
            "",
            3024,
        ),
    ] {
        let path = at(name);
        let sql = format!("{query} INTO OUTFILE '{}' {format}", path.display());
        assert_eq!(error(&mut session, &sql).await.0, expected, "{sql}");
        assert!(!path.exists(), "{sql}");
    }
    assert!(!at("f.csv").exists());
    let taken = format!("SELECT 1 INTO OUTFILE '{}/'", directory.path().display());
    assert_eq!(error(&mut session, &taken).await.0, 1086);
    let nameless = at("nameless").display().to_string();
    let sql = format!("SELECT 1, 1 INTO OUTFILE '{nameless}' FORMAT CSV (HEADER OFF)");
    rows(&mut session, &sql).await;
    assert_eq!(fs::read_to_string(nameless).unwrap(), "1,1\n");
    rows(&mut session, "DROP TABLE o").await;
    drop(session);
    check_nothing_left(&engine, "files that failed").await;
    // Below secure_file_priv alone.
    fs::create_dir(at("in")).unwrap();
    let engine = open_with_files_under(&at("in"), 16 << 20, directory.path());
    let mut session = engine.connect();
    let to = |path: &Path| format!("SELECT 7 AS a INTO OUTFILE '{}'", path.display());
    assert_eq!(error(&mut session, &to(&at("out.parquet"))).await.0, 1290);
    assert!(!at("out.parquet").exists());
    let inside = at("in/a.parquet");
    rows(&mut session, &to(&inside)).await;
    let read = format!("SELECT a FROM '{}'", inside.display());
    assert_eq!(rows(&mut session, &read).await, [["7"]]);
}

/// What LOAD DATA reads is MySQL's text, whatever the name of the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loading_a_file_with_the_name_of_a_format_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(16 << 20, directory.path());
    let mut session = engine.connect();
    rows(&mut session, "CREATE TABLE l (a VARCHAR(20))").await;
    let at = |name: &str| directory.path().join(name).display().to_string();
    let csv = at("l.csv");
    export(&mut session, "SELECT 'x' AS a", &csv).await;
    fs::copy(&csv, at("l.tsv")).unwrap();
    fs::copy(&csv, at("l.txt")).unwrap();
    for (name, clauses, notes) in [
        ("l.csv", "", 1),
        ("l.csv", "FIELDS TERMINATED BY ','", 0),
        ("l.tsv", "", 0),
        ("l.txt", "", 0),
    ] {
        let sql = format!("LOAD DATA INFILE '{}' INTO TABLE l {clauses}", at(name));
        rows(&mut session, &sql).await;
        let told = warnings(&mut session).await;
        assert_eq!(told.len(), notes, "{sql}: {told:?}");
        for note in told {
            assert_eq!(note[..2], ["Note", "1105"]);
            assert!(note[2].contains(&format!("SELECT * FROM '{csv}' reads it as CSV")));
        }
        rows(&mut session, "TRUNCATE l").await;
    }
    rows(
        &mut session,
        &format!("INSERT INTO l SELECT * FROM '{csv}'"),
    )
    .await;
    assert_eq!(rows(&mut session, "SELECT * FROM l").await, [["x"]]);
}
