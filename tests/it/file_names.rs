//! Names of files in statements: links, patterns, directories and options.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use mayfly_testkit::repository;
use tokio::time::timeout;

use crate::engine::{error, open, open_with_files_under, rows};

/// The longest that a pattern may take.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_lead_nowhere() {
    let directory = tempfile::tempdir().unwrap();
    let (inside, outside) = (directory.path().join("in"), directory.path().join("out"));
    fs::create_dir_all(inside.join("deep")).unwrap();
    fs::create_dir(&outside).unwrap();
    let flights = repository().join("demo/flights.parquet");
    for (name, to) in [("a.csv", "a.csv"), ("deep/b.csv", "b.csv")] {
        fs::write(inside.join(name), "a\n1\n").unwrap();
        fs::write(outside.join(to), "a\n666\n").unwrap();
    }
    fs::copy(&flights, inside.join("f.parquet")).unwrap();
    symlink(&flights, inside.join("link.parquet")).unwrap();
    symlink(outside.join("a.csv"), inside.join("link.csv")).unwrap();
    symlink(&outside, inside.join("away")).unwrap();
    symlink(inside.join("a.csv"), inside.join("own.csv")).unwrap();
    symlink(outside.join("new"), inside.join("dangling")).unwrap();
    let engine = open_with_files_under(&inside, 64 << 20, directory.path());
    let mut session = engine.connect();
    rows(&mut session, "CREATE TEMPORARY TABLE t (a TEXT)").await;
    let at = |name: &str| inside.join(name).display().to_string();
    for (name, expected) in [
        ("a.csv", "1"),
        ("deep/*.csv", "1"),
        ("{deep/b,c}.csv", "1"),
        ("deep", "1"),
        ("own.csv", "1"),
    ] {
        let sql = format!("SELECT a FROM '{}'", at(name));
        assert_eq!(rows(&mut session, &sql).await, [[expected]], "{name}");
    }
    let sql = format!("SELECT COUNT(*) FROM '{}'", at("f.parquet"));
    assert_eq!(rows(&mut session, &sql).await, [["336776"]]);
    for name in [
        "link.csv",
        "away/a.csv",
        "away/*.csv",
        "l*.csv",
        "{a,link}.csv",
        "{a,../out/a}.csv",
        "{away,deep}/*.csv",
        "away",
        "link.parquet",
        "l*.parquet",
    ] {
        let sql = format!("SELECT COUNT(*) FROM '{}'", at(name));
        let (code, text) = error(&mut session, &sql).await;
        assert_eq!(code, 1290, "{name}: {text}");
        // It is told which file that is, as the statement sees it.
        assert!(text.contains("; file '"), "{name}: {text}");
        assert!(
            text.contains(&inside.display().to_string()),
            "{name}: {text}"
        );
    }
    for sql in ["SELECT * FROM '-'", "SELECT * FROM '/dev/stdin'"] {
        assert_eq!(error(&mut session, sql).await.0, 1290, "{sql}");
    }
    for name in ["link.csv", "away/a.csv"] {
        let sql = format!("LOAD DATA INFILE '{}' INTO TABLE t", at(name));
        assert_eq!(error(&mut session, &sql).await.0, 1290, "{name}");
    }
    let sql = format!("SELECT 1 INTO OUTFILE '{}'", at("dangling"));
    assert_eq!(error(&mut session, &sql).await.0, 1086);
    let sql = format!("SELECT 1 INTO OUTFILE '{}'", at("away/new"));
    assert_eq!(error(&mut session, &sql).await.0, 1290);
    assert!(!outside.join("new").exists());
    // A directory and a pipe are no files, and nobody waits for them.
    let made = Command::new("mkfifo").arg(at("pipe.csv")).status();
    assert!(made.unwrap().success());
    for sql in [
        format!("LOAD DATA INFILE '{}' INTO TABLE t", at("deep")),
        format!("LOAD DATA INFILE '{}' INTO TABLE t", at("pipe.csv")),
        format!("SELECT * FROM '{}'", at("pipe.csv")),
    ] {
        assert_eq!(error(&mut session, &sql).await.0, 1085, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_with_options_are_shown_as_they_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("x.csv");
    fs::write(&path, "a,b\n1,x\n2,y\n").unwrap();
    let path = path.display();
    let select = format!("SELECT b FROM '{path}' (header = on) WHERE a = 1");
    assert_eq!(rows(&mut session, &select).await, [["x"]]);
    for explain in ["EXPLAIN", "EXPLAIN FORMAT=JSON", "EXPLAIN FORMAT=TREE"] {
        let told = rows(&mut session, &format!("{explain} {select}")).await;
        let told = told.concat().join(" ");
        assert!(!told.contains('\0') && !told.contains("u0000"), "{told:?}");
        assert!(told.contains(&path.to_string()), "{told}");
        if explain != "EXPLAIN FORMAT=TREE" {
            assert!(told.contains("x.csv (header = on)"), "{told}");
        }
    }
    // Nobody writes what stands between the name and the options.
    for name in ["\\0(header=off)", "\\0", "\\0(skip=1)\\0"] {
        let sql = format!("SELECT * FROM '{path}{name}'");
        let (code, text) = error(&mut session, &sql).await;
        assert_eq!(code, 1017, "{sql}: {text}");
        assert!(
            text.contains("x.csv\\0") && !text.contains('\0'),
            "{text:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stars_look_at_each_directory_once() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    let files = tempfile::tempdir().unwrap();
    let mut deep = files.path().to_owned();
    for _ in 0..60 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("a.csv"), "a\n1\n").unwrap();
    for stars in ["**/".repeat(12), "**/d/".repeat(12), "**/*/".repeat(12)] {
        let sql = format!(
            "SELECT COUNT(*) FROM '{}/{stars}*.csv'",
            files.path().display()
        );
        let found = timeout(PATIENCE, rows(&mut session, &sql)).await;
        assert_eq!(found.expect("it ends"), [["1"]], "{stars}");
    }
}
