//! `mayfly bench` where it drives Mayfly by itself.

use std::process::Command;

use crate::program::{Ran, run_command};

fn bench(arguments: &[&str], input: &str) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mayfly"));
    run_command(command.arg("bench").args(arguments), input)
}

#[test]
fn the_embedded_engine_answers_a_line_of_statements_and_a_question() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let request = serde_json::json!({
        "memory_bytes": 64 << 20, "threads": 2, "temp_dir": dir.path(),
    });
    let input = "run 2\nCREATE TEMPORARY TABLE t (i INT PRIMARY KEY)\n\
                 INSERT INTO t VALUES (1), (2)\nask\nSELECT COUNT(*), SUM(i), NULL FROM t\n";
    let ran = bench(&["--embedded", &request.to_string()], input);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ran.out);
    assert!(
        lines[0]
            .parse::<u64>()
            .is_ok_and(|nanoseconds| nanoseconds > 0)
    );
    assert_eq!(lines[1], "2\t3\tNULL");

    let ran = bench(
        &["--embedded", &request.to_string()],
        "run 1\nDROP TABLE t\n",
    );
    assert_eq!(ran.code, Some(1), "a statement that fails ends the line");
    assert!(ran.err.contains("Unknown table"), "{}", ran.err);
}

#[test]
fn a_script_is_measured_kept_and_taken_up_again() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("results.json");
    let [cache, json] = [dir.path(), &file].map(|path| path.to_str().expect("a plain path"));
    let arguments = [
        "seed3",
        "--systems",
        "mayfly",
        "--only",
        "16 keys",
        "--runs",
        "1",
        "--cache-dir",
        cache,
        "--json",
        json,
    ];
    let read = || -> serde_json::Value {
        let text = std::fs::read_to_string(&file).expect("the results were written");
        serde_json::from_str(&text).expect("results are JSON")
    };
    let ran = bench(&arguments, "");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let first = read();
    let turns = first["turns"].as_array().expect("a list of turns");
    assert_eq!(
        turns.len(),
        3,
        "as text, embedded, over the wire: {}",
        ran.out
    );
    for turn in turns {
        let lines = turn["end"]["measured"]["lines"]
            .as_array()
            .expect("a turn with its lines");
        assert_eq!(lines.len(), 3, "create, drop, both");
        assert_eq!(lines[0]["checked"], true);
        assert!(lines.iter().all(|line| line["wrong"].is_null()), "{turn}");
    }

    let ran = bench(&[&arguments[..], &["--resume"]].concat(), "");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(
        read()["turns"],
        first["turns"],
        "finished turns are kept, not measured again"
    );
}

/// Where the client program is not installed, the run says so instead of a rate.
fn a_load_is_measured_or_skipped(arguments: &[&str], client: &str) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("results.json");
    let [cache, json] = [dir.path(), &file].map(|path| path.to_str().expect("a plain path"));
    let common = ["--systems", "mayfly", "--runs", "1", "--cache-dir", cache];
    let ran = bench(&[arguments, &common, &["--json", json]].concat(), "");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let text = std::fs::read_to_string(&file).expect("the results were written");
    let results: serde_json::Value = serde_json::from_str(&text).expect("results are JSON");
    let loads = results["loads"].as_array().expect("a list of runs");
    assert!(!loads.is_empty(), "{}", ran.out);
    for load in loads {
        let rate = &load["end"]["measured"];
        if rate.is_null() {
            let reason = load["end"]["skipped"].as_str().unwrap_or_default();
            assert!(reason.contains(client), "{load}");
        } else {
            assert!(rate["queries"].as_u64().is_some_and(|queries| queries > 0));
            assert_eq!(rate["checked"], true);
            assert!(rate["wrong"].is_null(), "{load}");
        }
    }
}

#[test]
fn sysbench_measures_a_table_in_memory_and_in_a_quarter_of_it() {
    let arguments = ["seed2", "--only", "update key", "--clients", "2"];
    let small = ["--rows", "2000", "--seconds", "1"];
    a_load_is_measured_or_skipped(&[&arguments[..], &small].concat(), "sysbench");
}

#[test]
fn mariadb_slap_measures_a_derived_table() {
    let arguments = ["seed4", "--only", "=off", "--queries", "50"];
    a_load_is_measured_or_skipped(&arguments, "mariadb-slap");
}
