//! Files, pipes, `-e`, and the commands of the shell.

use mayfly_testkit::repository;

use crate::program::{mayfly, run, run_command};

#[test]
fn execute_may_be_repeated_and_comes_before_the_file() {
    let ran = run(
        &[
            "-e",
            "SELECT 1 AS a; SELECT 2 AS b",
            "--execute",
            "SELECT 3 AS c",
            "-",
        ],
        "SELECT 4 AS d",
    );
    assert_eq!(ran.out, "a\n1\nb\n2\nc\n3\nd\n4\n", "{}", ran.err);
    // Standard input is not read when -e is there.
    let ran = run(&["-e", "SELECT 1 AS a"], "SELECT 2 AS b;");
    assert_eq!(ran.out, "a\n1\n", "{}", ran.err);
}

#[test]
fn one_session_runs_all_statements() {
    let ran = run(&["-e", "SET @x = 41", "-e", "SELECT @x + 1 AS x"], "");
    assert_eq!(ran.out, "x\n42\n", "{}", ran.err);
}

#[test]
fn quotes_comments_and_delimiters_are_understood() {
    let script = "SELECT ';' AS a; /* ; */ SELECT 2 AS b # ; end\n;\n\
        -- ; a comment\nSELECT 'it''s' AS c; SELECT \"a\\\";b\" AS d;\n\
        delimiter //\nSELECT 5 AS e//\ndelimiter ;\nSELECT 6 AS f;;\nSELECT 7 AS g";
    let ran = run(&[], script);
    assert_eq!(
        ran.out, "a\n;\nb\n2\nc\nit's\nd\na\";b\ne\n5\nf\n6\ng\n7\n",
        "{}",
        ran.err
    );
    assert_eq!(ran.code, Some(0));
}

#[test]
fn statements_that_are_only_a_comment_are_no_errors() {
    let dump = "/*M!999999\\- enable the sandbox mode */ \n-- MariaDB dump 10.19\n--\n\n\
        /*!40101 SET @a = 1 */;\n/*!999999 for nobody */;\n/*! */;\n# so\n/* and so */;\n\
        SELECT @a AS a;\n-- Dump completed";
    let ran = run(&[], dump);
    assert_eq!(
        (ran.out.as_str(), ran.code),
        ("a\n1\n", Some(0)),
        "{}",
        ran.err
    );
}

#[test]
fn another_delimiter_may_end_several_statements() {
    let script =
        "delimiter //\nselect 1 as a; select ';' as b;\n\nselect 3 as c//\nselect 4 as d//\n";
    let ran = run(&[], script);
    assert_eq!(ran.out, "a\n1\nb\n;\nc\n3\nd\n4\n", "{}", ran.err);
    // After an error the rest of the text is left out, and the next one runs with --force.
    let script = "delimiter //\nselect 1 as a;\nselec;\nselect 3 as c//\nselect 4 as d//\n";
    let ran = run(&["--force"], script);
    assert_eq!(ran.out, "a\n1\nd\n4\n");
    assert!(
        ran.err.starts_with("ERROR 1064 (42000) at line 3: "),
        "{}",
        ran.err
    );
}

#[test]
fn use_ends_with_its_line() {
    let ran = run(
        &[],
        "use test\nSELECT DATABASE() AS a;\nUSE test; SELECT 2 AS b;\n",
    );
    assert_eq!(ran.out, "a\ntest\nb\n2\n", "{}", ran.err);
    let ran = run(&[], "use nowhere\nSELECT 1;\n");
    assert!(
        ran.err.starts_with("ERROR 1049 (42000) at line 1: "),
        "{}",
        ran.err
    );
}

#[test]
fn quit_ends_a_script() {
    let ran = run(&[], "SELECT 1 AS a;\nquit\nSELECT 2 AS b;\n");
    assert_eq!((ran.out.as_str(), ran.code), ("a\n1\n", Some(0)));
    let ran = run(&[], "SELECT 1 AS a; \\q SELECT 2 AS b;\n");
    assert_eq!((ran.out.as_str(), ran.code), ("a\n1\n", Some(0)));
}

#[test]
fn source_runs_a_file_and_names_it_in_errors() {
    let dir = tempfile::tempdir().expect("a fresh directory");
    std::fs::write(dir.path().join("inner.sql"), "SELECT 2 AS b;\nSELEC;\n").expect("written");
    std::fs::write(dir.path().join("loop.sql"), "source loop.sql\n").expect("written");
    let ran = run_command(
        mayfly().current_dir(dir.path()),
        "SELECT 1 AS a;\nsource inner.sql\nSELECT 3 AS c;\n",
    );
    assert_eq!(ran.out, "a\n1\nb\n2\n");
    assert!(
        ran.err
            .starts_with("ERROR 1064 (42000) at line 2 in file: 'inner.sql': "),
        "{}",
        ran.err
    );
    assert_eq!(ran.code, Some(1));
    let ran = run_command(mayfly().current_dir(dir.path()), "source loop.sql\n");
    assert!(ran.err.contains("nested"), "{}", ran.err);
    assert_eq!(ran.code, Some(1));
}

#[test]
fn shortcuts_stand_for_statements() {
    let check = |script: &str, expect: &str| {
        let ran = run(&[], script);
        assert_eq!(ran.out, expect, "{script}: {}", ran.err);
        assert_eq!(ran.code, Some(0), "{script}: {}", ran.err);
    };
    let tables = "CREATE TABLE flights (id INT PRIMARY KEY); CREATE TABLE planes (id INT);\n";
    check(
        &format!("{tables}\\dt\n\\dt fl*;\n"),
        "Tables_in_test\nflights\nplanes\nTables_in_test (fl%)\nflights\n",
    );
    check(
        &format!("{tables}\\d flights\n"),
        "Field\tType\tNull\tKey\tDefault\tExtra\nid\tint\tNO\tPRI\tNULL\t\n",
    );
    check(
        "\\l te%\n\\u test\nSELECT DATABASE() AS d;\n",
        "Database (te%)\ntest\nd\ntest\n",
    );
    check(
        "\\T csv\nSELECT 1 AS a, 2 AS b;\ntableformat TSV;\nSELECT 3 AS c; \\n\n",
        "a,b\n1,2\nc\n3\n",
    );
}

#[test]
fn what_follows_a_command_on_its_line_runs() {
    let columns = "Field\tType\tNull\tKey\tDefault\tExtra\nid\tint\tYES\t\tNULL\t\n";
    for (line, expect) in [
        ("\\dt; SELECT 2 AS b", "Tables_in_test\nx\nb\n2\n"),
        (
            "\\dt 'x'; SELECT ';' AS b;",
            "Tables_in_test (x)\nx\nb\n;\n",
        ),
        ("\\d x; SELECT 2 AS b;", &format!("{columns}b\n2\n")),
        ("\\l test; SELECT 2 AS b;", "Database (test)\ntest\nb\n2\n"),
        ("\\u test; SELECT 2 AS b;", "b\n2\n"),
        ("\\T csv; SELECT 1 AS a, 2 AS b;", "a,b\n1,2\n"),
        ("tableformat csv; SELECT 1 AS a, 2 AS b;", "a,b\n1,2\n"),
        ("nopager; SELECT 2 AS b;", "b\n2\n"),
        ("pager; SELECT 2 AS b;", "b\n2\n"),
        ("clear; SELECT 2 AS b;", "b\n2\n"),
        (
            "delimiter //\n\\dt // SELECT 2 AS b//",
            "Tables_in_test\nx\nb\n2\n",
        ),
    ] {
        let script = format!("CREATE TABLE x (id INT);\n{line}");
        for (arguments, input) in [(vec![], script.as_str()), (vec!["-e", &script], "")] {
            let ran = run(&arguments, input);
            assert_eq!(ran.out, expect, "{line}: {}", ran.err);
            assert_eq!(ran.code, Some(0), "{line}: {}", ran.err);
        }
    }
}

#[test]
fn backslash_g_counts_in_every_format() {
    for format in ["table", "tsv", "csv", "json"] {
        let ran = run(&["--format", format], "SELECT 1 AS a\\G");
        let expect = "*************************** 1. row ***************************\na: 1\n";
        assert_eq!(ran.out, expect, "{format}: {}", ran.err);
    }
}

#[test]
fn scripts_run_no_programs() {
    for command in ["\\! echo gone", "system echo gone", "\\e", "edit", "\\all"] {
        let ran = run(&[], &format!("{command}\nSELECT 1 AS a;\n"));
        assert_eq!((ran.out.as_str(), ran.code), ("", Some(1)), "{command}");
        assert!(
            ran.err.contains("works at the prompt only"),
            "{command}: {}",
            ran.err
        );
    }
    let ran = run(&[], "\\T xml\n");
    assert!(
        ran.err.contains("'xml' is no format; there are table, tsv"),
        "{}",
        ran.err
    );
    // A pager is for people; there is none here, and no error.
    let ran = run(&["--pager=false"], "pager false\nSELECT 1 AS a;\nnopager\n");
    assert_eq!((ran.out.as_str(), ran.code), ("a\n1\n", Some(0)));
}

#[test]
fn the_demo_runs_and_spills() {
    let root = repository();
    let temp = tempfile::tempdir().expect("a fresh directory");
    let ran = run_command(
        mayfly()
            .current_dir(root)
            .args(["--stats=json", "demo/flights.sql", "--temp-dir"])
            .arg(temp.path()),
        "",
    );
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let spilled = ran
        .err
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|stats| stats["temp_bytes_written"].as_u64() > Some(0))
        .count();
    assert!(spilled >= 1, "{}", ran.err);
    let left = std::fs::read_dir(temp.path())
        .expect("the directory is there")
        .count();
    assert_eq!(left, 0, "files left behind");
}

#[test]
fn standard_input_is_a_table() {
    let execute = |statements: &[&str], input: &str| {
        let arguments = statements.iter().flat_map(|sql| ["-e", *sql]);
        let ran = run(&arguments.collect::<Vec<_>>(), input);
        assert_eq!(ran.code, Some(0), "{statements:?}: {}", ran.err);
        ran.out
    };
    // It comes once, and is read as often as it is named.
    let out = execute(
        &[
            "SELECT SUM(a) AS s, MAX(b) AS m FROM '-'",
            "SELECT COUNT(*) AS n FROM '-' x JOIN '/dev/stdin' y ON x.a = y.a",
            "SELECT stdin.a FROM '-' (format = csv, delimiter = ';', skip = 1, header = off) z, '-' \
             WHERE column_1 = a AND a > 1",
        ],
        "a;b\n1;x\n2;y\n",
    );
    assert_eq!(out, "s\tm\n3\ty\nn\n2\na\n2\n");
    let out = execute(
        &["SELECT a FROM '-' ORDER BY a DESC"],
        " [{\"a\": 1},\n{\"a\": 2}]",
    );
    assert_eq!(out, "a\n2\n1\n");
    let out = execute(
        &["SELECT column_2 AS b FROM '-' (format = tsv, header = off)"],
        "1\tx,y\n",
    );
    assert_eq!(out, "b\nx,y\n");
    let lines = format!("a\n{}", "7\n".repeat(1_000_000));
    let out = execute(&["SELECT COUNT(*) AS n, SUM(a) AS s FROM '-'"], &lines);
    assert_eq!(out, "n\ts\n1000000\t7000000\n");
    // Not where statements come from there, and not as Parquet.
    for (arguments, input, expected) in [
        (
            &[][..],
            "SELECT * FROM '-';",
            "where statements come from there",
        ),
        (
            &["-e", "SELECT * FROM '/dev/stdin'", "-"],
            "",
            "where statements come from there",
        ),
        (
            &["-e", "SELECT 1", "/dev/stdin"],
            "SELECT * FROM '-';",
            "where statements come from there",
        ),
        (
            &[
                "-e",
                "SELECT COUNT(*) FROM '-'; CREATE TEMPORARY TABLE t (a TEXT); \
                 LOAD DATA INFILE '/dev/stdin' INTO TABLE t",
            ],
            "a\n1\n",
            "'/dev/stdin' as a file where it is a table",
        ),
        (
            &["-e", "SELECT * FROM '-' (format = csv)"],
            "BZh91AY&SY",
            "ERROR 1235 (42000) at line 1: This version of MySQL doesn't yet support 'a table from \
             '-' that bzip2 has compressed'",
        ),
        (&["-e", "SELECT * FROM '-'"], "PAR1", "is a Parquet file"),
        (&["-e", "SELECT * FROM '-'"], "", "is empty"),
    ] {
        let ran = run(arguments, input);
        assert_eq!(ran.code, Some(1), "{arguments:?}: {}", ran.out);
        assert!(ran.err.contains(expected), "{arguments:?}: {}", ran.err);
    }
}
