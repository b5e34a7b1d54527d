//! Bad SQL and bad options.

use crate::program::{mayfly, run, run_command};

#[test]
fn an_error_stops_and_sets_the_exit_code() {
    let ran = run(
        &[],
        "SELECT 1 AS a;\n\n-- a comment\nSELEC\n 2;\nSELECT 3 AS c;\n",
    );
    assert_eq!(ran.out, "a\n1\n");
    assert!(
        ran.err.starts_with("ERROR 1064 (42000) at line 4: "),
        "{}",
        ran.err
    );
    assert_eq!(ran.err.matches("ERROR ").count(), 1, "{}", ran.err);
    // The place is shown to people only.
    assert!(!ran.err.contains('^'), "{}", ran.err);
    assert_eq!(ran.code, Some(1));
}

#[test]
fn force_goes_on() {
    let ran = run(&["--force"], "SELEC 1;\nSELECT 3 AS c;\n");
    assert_eq!(ran.out, "c\n3\n");
    assert!(
        ran.err.starts_with("ERROR 1064 (42000) at line 1: "),
        "{}",
        ran.err
    );
    assert_eq!(ran.code, Some(1));
}

#[test]
fn missing_tables_columns_and_files_have_their_numbers() {
    let check = |sql: &str, expect: &str| {
        let ran = run(&["-e", sql], "");
        assert!(ran.err.starts_with(expect), "{sql}: {}", ran.err);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{sql}");
    };
    check("SELECT * FROM nowhere", "ERROR 1146 (42S02) at line 1: ");
    check(
        "SELECT\n nothing FROM (SELECT 1 AS a) t",
        "ERROR 1054 (42S22) at line 1: ",
    );
    check("SELECT * FROM '/nonexistent/file.csv'", "ERROR ");
}

#[test]
fn options_are_checked_before_anything_runs() {
    let check = |arguments: &[&str], expect: &str| {
        let ran = run(arguments, "SELECT 1;");
        assert!(ran.err.contains(expect), "{arguments:?}: {}", ran.err);
        assert_ne!(ran.code, Some(0), "{arguments:?}");
        assert_eq!(ran.out, "", "{arguments:?}");
    };
    check(&["--temp-limit", "lots"], "'lots' is not a size");
    check(&["--config", "/nonexistent.toml"], "/nonexistent.toml");
    check(&["/nonexistent.sql"], "/nonexistent.sql");
    check(&["--format", "xml"], "xml");
    check(
        &["--temp-dir", "/nonexistent"],
        "mayfly: --temp-dir: /nonexistent is not a directory",
    );
    let check = |memory: &str, expect: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_mayfly"));
        let ran = run_command(command.args(["sql", "--memory", memory]), "SELECT 1;");
        assert!(ran.err.contains(expect), "{}", ran.err);
        assert_eq!(ran.code, Some(1));
    };
    check("0%", "0%");
    check("0", "--memory: must be between 256 KiB and 2 TiB");
    check("100K", "--memory: must be between 256 KiB and 2 TiB");
    check("", "--memory: '' is not a size; write it like 64M");
    check("x%", "--memory: 'x%' is not a share; write it like 50%");
}

#[test]
fn a_configuration_gives_the_options() {
    let dir = tempfile::tempdir().expect("a fresh directory");
    let path = dir.path().join("mayfly.toml");
    let text = "memory = '32M'\ntemp-io = 'buffered'\nformat = 'csv'\nthreads = 1\n";
    std::fs::write(&path, text).expect("the directory can be written");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_mayfly"));
    let ran = run_command(
        command
            .arg("sql")
            .arg("--config")
            .arg(&path)
            .args(["-e", "SELECT 1 AS a, 'x,y' AS b"]),
        "",
    );
    assert_eq!(ran.out, "a,b\n1,\"x,y\"\n", "{}", ran.err);

    let text = "stats = 'json'\nforce = true\nskip-column-names = true\n";
    std::fs::write(&path, text).expect("the directory can be written");
    let ran = run_command(
        mayfly().arg("--config").arg(&path),
        "SELEC;\nSELECT 2 AS b;\n",
    );
    assert_eq!((ran.out.as_str(), ran.code), ("2\n", Some(1)));
    assert!(ran.err.contains("{\"elapsed_ms\":"), "{}", ran.err);

    std::fs::write(&path, "stats = 'xml'\n").expect("the directory can be written");
    let ran = run_command(mayfly().arg("--config").arg(&path), "SELECT 1;");
    assert!(ran.err.contains("stats must be"), "{}", ran.err);

    let text = "pager = false\nmax-rows = 0\nwide-rows = 'cut'\n";
    std::fs::write(&path, text).expect("the directory can be written");
    let ran = run_command(mayfly().arg("--config").arg(&path), "SELECT 1 AS a;");
    assert_eq!(
        (ran.out.as_str(), ran.code),
        ("a\n1\n", Some(0)),
        "{}",
        ran.err
    );

    std::fs::write(&path, "memroy = '32M'\n").expect("the directory can be written");
    let ran = run_command(
        mayfly().arg("--config").arg(&path).args(["-e", "SELECT 1"]),
        "",
    );
    assert!(ran.err.contains("memroy"), "{}", ran.err);
    assert_eq!(ran.code, Some(1));
}

#[test]
fn bytes_that_are_not_utf8_stand_in_literals_only() {
    let dir = tempfile::tempdir().expect("a fresh directory");
    let path = dir.path().join("dump.sql");
    let script = b"SELECT HEX('\xff\xe4') AS a;\nSELECT \xff;\nSELECT 2 AS b;\n";
    std::fs::write(&path, script).expect("it can be written");
    let ran = run_command(mayfly().arg(&path), "");
    assert_eq!(ran.out, "a\nFFE4\n");
    assert!(
        ran.err.starts_with("ERROR 1300 (HY000) at line 2"),
        "{}",
        ran.err
    );
    assert_eq!(ran.code, Some(1));
    let ran = run_command(mayfly().arg("--force").arg(&path), "");
    assert_eq!(ran.out, "a\nFFE4\nb\n2\n");
}
