//! The program from outside: memory as the kernel sees it, and its output against MariaDB's
//! client.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mayfly_testkit::repository;
use mayfly_tests::mariadb::Server;

pub const MIB: u64 = 1 << 20;
/// What the process may hold beside its budget: code, threads, buffers of readers.
pub const SLACK: u64 = 96 * MIB;

/// The program, which every build of the workspace puts beside the directory of the tests.
fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let path = own.parent().and_then(Path::parent).unwrap().join("mayfly");
    assert!(
        path.exists(),
        "{} is missing: cargo build --release --workspace",
        path.display()
    );
    path
}

/// A program that runs SQL within some memory.
pub fn mayfly(memory: &str) -> Command {
    let mut command = Command::new(program());
    command.args(["sql", "--threads", "2", "--memory", memory]);
    command.current_dir(repository());
    command.stdin(Stdio::null());
    command
}

/// Runs a command and gives its standard output and the highest resident size that was seen.
fn measure(command: &mut Command) -> (String, u64) {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0) << 10);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    (String::from_utf8(output.stdout).unwrap(), peak)
}

#[test]
fn the_budget_bounds_the_resident_size() {
    let sql = "SELECT COUNT(*), SUM(n) FROM (SELECT tailnum, flight, time_hour, dep_time, \
               COUNT(*) n FROM 'demo/flights.parquet' \
               GROUP BY tailnum, flight, time_hour, dep_time) g";
    let mut answers = Vec::new();
    for (memory, bytes) in [("8M", 8 * MIB), ("32M", 32 * MIB), ("256M", 256 * MIB)] {
        let (out, peak) = measure(mayfly(memory).args(["-e", sql]));
        assert!(
            peak > 0 && peak <= bytes + SLACK,
            "{memory}: peak of {} MiB",
            peak / MIB
        );
        answers.push(out);
    }
    assert!(
        answers.iter().all(|answer| *answer == answers[0]),
        "{answers:?}"
    );
    assert!(answers[0].contains("336776"), "{answers:?}");
}

#[test]
fn rows_are_printed_as_the_batch_client_prints_them() {
    if !Server::is_installed() {
        println!("skipped: mariadbd is not installed");
        return;
    }
    let server = Server::start();
    let sql = r"
SELECT 1 AS a, NULL AS b, '' AS c, 'x y' AS d;
SELECT 'tab\there', 'line\nfeed', 'back\\slash', 'quote\'s';
SELECT 1.50, 0.1e0, 1e100, 1/3, 100000 * 100000, TRUE;
SELECT CAST('2026-01-31' AS DATE) AS d, CAST('2026-01-31 10:11:12.5' AS DATETIME(3)) AS t;
SELECT 'empty' AS e FROM (SELECT 1 AS a) t WHERE a = 2;
CREATE TEMPORARY TABLE t (a INT, b VARCHAR(10), c DOUBLE, d DECIMAL(10,3), e BLOB);
INSERT INTO t VALUES (1, 'one', 1.5, 1.5, x'4142'), (2, NULL, NULL, NULL, NULL);
SELECT * FROM t ORDER BY a;
SELECT a + 1, CONCAT(b, '!'), COUNT(*) FROM t GROUP BY a, b ORDER BY 1;
SELECT a AS `odd name`, b `second` FROM t ORDER BY a DESC LIMIT 1;
SET @x = 5;
SELECT @x, @x + 1 AS sum;
DROP TEMPORARY TABLE t;
";
    let mut theirs = server.client();
    let theirs = theirs
        .args(["--batch", "test", "-e", sql])
        .output()
        .unwrap();
    assert!(
        theirs.status.success(),
        "{}",
        String::from_utf8_lossy(&theirs.stderr)
    );
    let ours = mayfly("64M").args(["-e", sql]).output().unwrap();
    assert!(
        ours.status.success(),
        "{}",
        String::from_utf8_lossy(&ours.stderr)
    );
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&ours.stdout), text(&theirs.stdout));
}
