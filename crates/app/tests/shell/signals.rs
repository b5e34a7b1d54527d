//! Ctrl-C and kill -9 while a statement spills.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mayfly_testkit::repository;

use crate::program::mayfly;

/// Millions of groups from a join of the demo's flights with themselves: seconds of work.
pub const LONG: &str = "SELECT COUNT(*) AS n FROM (SELECT a.tailnum AS x, b.tailnum AS y, \
    a.time_hour AS h, COUNT(*) AS n FROM 'demo/flights.parquet' a \
    JOIN 'demo/flights.parquet' b ON a.time_hour = b.time_hour \
    GROUP BY a.tailnum, b.tailnum, a.time_hour) t";

fn start(temp: &std::path::Path, arguments: &[&str]) -> Child {
    mayfly()
        .current_dir(repository())
        .arg("--temp-dir")
        .arg(temp)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built with this test")
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill")
        .arg(signal)
        .arg(child.id().to_string())
        .status();
    assert!(sent.expect("kill is everywhere").success());
}

/// Waits until the statement has opened its temp file, and a moment more.
fn wait_until_busy(child: &Child) {
    let started = Instant::now();
    let stat = format!("/proc/{}/stat", child.id());
    while started.elapsed() < Duration::from_secs(20) {
        let text = std::fs::read_to_string(&stat).unwrap_or_default();
        // Fields 14 and 15 after the name: clock ticks of 10 ms in user and system mode.
        let ticks: u64 = text
            .rsplit(')')
            .next()
            .map(|rest| rest.split_whitespace().skip(11).take(2))
            .map(|fields| fields.filter_map(|field| field.parse::<u64>().ok()).sum())
            .unwrap_or(0);
        if ticks > 50 {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the statement did not start to work");
}

#[test]
fn ctrl_c_cancels_the_statement_and_ends_a_script() {
    let temp = tempfile::tempdir().expect("a fresh directory");
    let child = start(temp.path(), &["-e", LONG, "-e", "SELECT 2 AS b"]);
    wait_until_busy(&child);
    send("-INT", &child);
    let asked = Instant::now();
    let output = child.wait_with_output().expect("the program ends");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.starts_with("ERROR 1317 (70100) at line 1: "), "{err}");
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert!(
        asked.elapsed() < Duration::from_secs(5),
        "{:?}",
        asked.elapsed()
    );
    assert_eq!(
        std::fs::read_dir(temp.path()).expect("it is there").count(),
        0
    );
}

#[test]
fn kill_leaves_no_file() {
    let temp = tempfile::tempdir().expect("a fresh directory");
    let mut child = start(temp.path(), &["-e", LONG]);
    wait_until_busy(&child);
    send("-KILL", &child);
    child.wait().expect("the program ends");
    assert_eq!(
        std::fs::read_dir(temp.path()).expect("it is there").count(),
        0
    );
}
