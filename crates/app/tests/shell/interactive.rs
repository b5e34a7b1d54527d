//! The shell on a terminal, which `script` of util-linux provides.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mayfly_testkit::repository;

use crate::signals::LONG;

/// The longest that the shell may take for one answer, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the line editor sends to ask for the position of the cursor.
const QUESTION: &[u8] = b"\x1b[6n";

/// A shell on a terminal of its own.
struct Terminal {
    child: std::process::Child,
    keyboard: std::process::ChildStdin,
    screen: Arc<Mutex<Vec<u8>>>,
    /// End of the last text that was waited for.
    seen: usize,
    /// End of what has been searched for questions.
    answered: usize,
    _home: tempfile::TempDir,
}

impl Terminal {
    fn open() -> Self {
        Self::open_with("", &[])
    }

    /// One with more arguments, and with variables of the environment that count here.
    fn open_with(arguments: &str, variables: &[(&str, &str)]) -> Self {
        Self::open_behind("true", arguments, variables)
    }

    /// One that becomes of a process which runs a command first.
    fn open_behind(command: &str, arguments: &str, variables: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().expect("a fresh directory");
        let program = format!(
            "{command}; stty rows 40 cols 120; exec {} sql --memory 64M --threads 2 {arguments}",
            env!("CARGO_BIN_EXE_mayfly")
        );
        let mut child = Command::new("script")
            .args(["-qefc", &program, "/dev/null"])
            .current_dir(repository())
            .env("MAYFLY_HISTORY", home.path().join("history"))
            .env("NO_COLOR", "1")
            .env("TERM", "xterm")
            .env_remove("PAGER")
            .env_remove("LESS")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("util-linux is installed");
        let mut output = child.stdout.take().expect("piped");
        let keyboard = child.stdin.take().expect("piped");
        let screen = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shared
                    .lock()
                    .expect("nobody panics")
                    .extend_from_slice(&bytes[..count]);
            }
        });
        Self {
            child,
            keyboard,
            screen,
            seen: 0,
            answered: 0,
            _home: home,
        }
    }

    fn press(&mut self, keys: &str) {
        self.keyboard
            .write_all(keys.as_bytes())
            .expect("the shell reads");
        self.keyboard.flush().expect("the shell reads");
    }

    /// Waits for a text after the last one that was waited for. Meanwhile answers the line editor
    /// when it asks where the cursor is, as a terminal does.
    fn wait_for(&mut self, text: &str) {
        let started = Instant::now();
        loop {
            let screen = self.screen.lock().expect("nobody panics").clone();
            while let Some(at) = find(&screen[self.answered..], QUESTION) {
                self.answered += at + QUESTION.len();
                self.press("\x1b[1;1R");
            }
            if let Some(at) = find(&screen[self.seen..], text.as_bytes()) {
                self.seen += at + text.len();
                return;
            }
            let shown = String::from_utf8_lossy(&screen[self.seen..]).into_owned();
            assert!(
                started.elapsed() < PATIENCE,
                "'{text}' did not come; the screen: {shown:?}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether a text has been on the screen.
    fn has_shown(&self, text: &str) -> bool {
        let screen = self.screen.lock().expect("nobody panics");
        find(&screen, text.as_bytes()).is_some()
    }

    /// Waits until the shell has ended and gives its exit code.
    fn wait_for_end(&mut self) -> Option<i32> {
        self.child
            .wait()
            .expect("script ends with its program")
            .code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

#[test]
fn statements_span_lines_and_show_their_rows() {
    let mut terminal = Terminal::open();
    terminal.wait_for("mayfly> ");
    terminal.press("SELECT 1 AS a,\r");
    terminal.wait_for("-> ");
    terminal.press("2 AS b;\r");
    terminal.wait_for("| a | b |");
    terminal.wait_for("1 row in set (");
    terminal.wait_for("mayfly> ");
    terminal.press("SELEC 1;\r");
    terminal.wait_for("ERROR 1064 (42000): ");
    terminal.wait_for("mayfly> ");
    // Up twice finds the first statement again, both of its lines.
    terminal.press("\x1b[A\x1b[A");
    terminal.wait_for("2 AS b;");
    terminal.press("\r");
    terminal.wait_for("1 row in set (");
    terminal.wait_for("mayfly> ");
    terminal.press("quit\r");
    terminal.wait_for("Bye");
    assert_eq!(terminal.wait_for_end(), Some(0));
}

#[test]
fn tab_completes_files_and_commands() {
    let mut terminal = Terminal::open();
    terminal.wait_for("mayfly> ");
    terminal.press("SELECT COUNT(*) AS n FROM 'demo/flights.p\t");
    terminal.wait_for("arquet");
    terminal.press("';\r");
    terminal.wait_for("336776");
    terminal.wait_for("mayfly> ");
    terminal.press("hel\t\r");
    terminal.wait_for("Tab completes names");
    terminal.wait_for("mayfly> ");
    // Ctrl-D leaves.
    terminal.press("\x04");
    assert_eq!(terminal.wait_for_end(), Some(0));
}

#[test]
fn ctrl_c_cancels_the_statement_and_not_the_shell() {
    let mut terminal = Terminal::open();
    terminal.wait_for("mayfly> ");
    terminal.press(&format!("{LONG};\r"));
    // The progress line tells that it runs.
    terminal.wait_for("rows read");
    terminal.wait_for(" in memory, ");
    terminal.wait_for(" on disk");
    terminal.press("\x03");
    terminal.wait_for("ERROR 1317 (70100): Query execution was interrupted");
    terminal.wait_for("mayfly> ");
    terminal.press("SELECT 40 + 2 AS answer;\r");
    terminal.wait_for("|     42 |");
    terminal.wait_for("mayfly> ");
    // Text that is not wanted any more is discarded; that is no press towards leaving.
    terminal.press("SELECT oops\x03");
    terminal.wait_for("mayfly> ");
    terminal.press("SELECT once more");
    terminal.wait_for("more");
    terminal.press("\x03");
    terminal.wait_for("mayfly> ");
    terminal.press("\x03");
    terminal.wait_for("(Ctrl-C again or \\q leaves)");
    terminal.wait_for("mayfly> ");
    terminal.press("SELECT 1\x03");
    terminal.wait_for("mayfly> ");
    terminal.press("use test\r");
    terminal.wait_for("Database changed");
    terminal.wait_for("mayfly> ");
    // Twice in a row with nothing typed leaves.
    terminal.press("\x03");
    terminal.wait_for("(Ctrl-C again or \\q leaves)");
    terminal.wait_for("mayfly> ");
    terminal.press("\x03");
    terminal.wait_for("Bye");
    assert_eq!(terminal.wait_for_end(), Some(0));
}

/// Whether a process runs; one that has ended may stay listed until somebody asks for its code.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().map(str::trim_start);
    state.is_some_and(|state| !state.is_empty() && !state.starts_with('Z'))
}

#[test]
fn the_shell_ends_with_its_terminal_where_no_signal_tells() {
    let directory = tempfile::tempdir().expect("a fresh directory");
    let file = directory.path().join("pid");
    let ignore = format!("trap '' HUP; echo $$ > {}", file.display());
    let mut terminal = Terminal::open_behind(&ignore, "", &[]);
    terminal.wait_for("mayfly> ");
    let pid = std::fs::read_to_string(&file).expect("it was written before the shell began");
    let pid = pid.trim();
    assert!(runs(pid));
    // The terminal goes away with the program that shows it.
    terminal.child.kill().expect("it runs");
    terminal.child.wait().expect("it ends");
    let started = Instant::now();
    while runs(pid) {
        assert!(started.elapsed() < PATIENCE, "it still runs");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn backslash_g_is_no_beginning_of_a_name() {
    let mut terminal = Terminal::open();
    terminal.wait_for("mayfly> ");
    terminal.press("SELECT 1 AS a\\G\t\r");
    terminal.wait_for("*** 1. row ***");
    terminal.wait_for("a: 1");
    terminal.wait_for("mayfly> ");
    // A menu that is open from the word before takes neither the letter nor Enter.
    terminal.press("SELECT 2 AS b\t\\G\r");
    terminal.wait_for("*** 1. row ***");
    terminal.wait_for("b: 2");
    terminal.wait_for("mayfly> ");
}

#[test]
fn errors_show_their_place() {
    let mut terminal = Terminal::open();
    terminal.wait_for("mayfly> ");
    terminal.press("SELECT a,\r");
    terminal.wait_for("-> ");
    terminal.press("a, NoSuch FROM (SELECT 1 AS a) t;\r");
    terminal.wait_for("ERROR 1054 (42S22): Unknown column 'NoSuch' in 'field list'");
    terminal.wait_for("line 2: a, NoSuch FROM (SELECT 1 AS a) t");
    terminal.wait_for("\n           ^");
    terminal.wait_for("mayfly> ");
    terminal.press("SELEC 1;\r");
    terminal.wait_for("ERROR 1064 (42000): ");
    terminal.wait_for("line 1: SELEC 1");
    terminal.wait_for("\n        ^");
    terminal.wait_for("mayfly> ");
    terminal.press("CREATE TEMPORARY TABLE t (a INT);\r");
    terminal.wait_for("Query OK");
    terminal.wait_for("mayfly> ");
    terminal.press("ALTER TABLE t DROP `q`;\r");
    terminal.wait_for("ERROR 1091 (42000): Can't DROP 'q'");
    terminal.wait_for("line 1: ALTER TABLE t DROP `q`");
    terminal.wait_for(&format!("\n{:28}^", ""));
    terminal.wait_for("mayfly> ");
    terminal.press("\\d 'no_such.csv'\r");
    terminal.wait_for("ERROR 1017 (HY000): Can't find file");
    terminal.wait_for("line 1: 'no_such.csv'");
    terminal.wait_for("\n         ^");
    terminal.wait_for("mayfly> ");
}

#[test]
fn a_named_pager_shows_all_results() {
    let mut terminal = Terminal::open();
    terminal.wait_for("mayfly> ");
    terminal.press("pager sed s/^/paged:/\r");
    terminal.wait_for("PAGER set to 'sed s/^/paged:/'");
    terminal.wait_for("mayfly> ");
    terminal.press("SELECT 1 AS a;\r");
    terminal.wait_for("paged:| a |");
    terminal.wait_for("1 row in set (");
    terminal.wait_for("mayfly> ");
    // One that reads no more ends the statement.
    terminal.press("\\P head -n 4\r");
    terminal.wait_for("PAGER set to 'head -n 4'");
    terminal.wait_for("mayfly> ");
    terminal.press("SELECT flight FROM 'demo/flights.parquet';\r");
    terminal.wait_for("| flight |");
    terminal.wait_for("rows read before the pager ended (");
    terminal.wait_for("mayfly> ");
    terminal.press("\\n\r");
    terminal.wait_for("PAGER set to stdout");
    terminal.wait_for("mayfly> ");
    terminal.press("SELECT 40 + 2 AS answer;\r");
    terminal.wait_for("\n| answer |");
    terminal.wait_for("mayfly> ");
}

#[test]
fn the_pager_of_the_environment_shows_what_does_not_fit() {
    let mut terminal = Terminal::open_with("", &[("PAGER", "sed s/^/paged:/")]);
    terminal.wait_for("mayfly> ");
    terminal.press("SELECT 1 AS a;\r");
    terminal.wait_for("1 row in set (");
    terminal.wait_for("mayfly> ");
    assert!(!terminal.has_shown("paged:"));
    terminal.press("SELECT flight FROM 'demo/flights.parquet' LIMIT 100;\r");
    terminal.wait_for("paged:| flight |");
    terminal.wait_for("100 rows in set (");
    terminal.wait_for("mayfly> ");
    // What is too wide does not fit either.
    terminal.press("SELECT REPEAT('x', 200) AS wide;\r");
    terminal.wait_for("paged:| wide ");
    terminal.wait_for("1 row in set (");
    terminal.wait_for("mayfly> ");
}

#[test]
fn long_results_are_cut_and_counted() {
    let mut terminal = Terminal::open_with("--max-rows 3", &[]);
    terminal.wait_for("mayfly> ");
    terminal.press("SELECT flight FROM 'demo/flights.parquet' LIMIT 5;\r");
    terminal.wait_for("... 2 more rows: \\all ");
    terminal.wait_for("5 rows in set (");
    terminal.wait_for("mayfly> ");
    terminal.press("\\all\r");
    terminal.wait_for("--+\r\n5 rows in set (");
    terminal.wait_for("mayfly> ");
}

#[test]
fn the_last_query_runs_again_and_nothing_else_does() {
    let directory = tempfile::tempdir().expect("a fresh directory");
    let script = directory.path().join("script.sql");
    let query = "SELECT flight FROM 'demo/flights.parquet' LIMIT 4;\n";
    std::fs::write(&script, query).expect("a fresh file");
    let mut terminal = Terminal::open_with("--max-rows 3", &[]);
    terminal.wait_for("mayfly> ");
    terminal.press("CREATE TEMPORARY TABLE t (id INT);\r");
    terminal.wait_for("Query OK, 0 rows affected");
    terminal.wait_for("mayfly> ");
    terminal.press("\\all\r");
    terminal.wait_for("ERROR: there is no query to run again");
    terminal.wait_for("mayfly> ");
    terminal.press("SELECT flight FROM 'demo/flights.parquet' LIMIT 5;\r");
    terminal.wait_for("5 rows in set (");
    terminal.wait_for("mayfly> ");
    terminal.press("INSERT INTO t VALUES (7);\r");
    terminal.wait_for("Query OK, 1 row affected");
    terminal.wait_for("mayfly> ");
    terminal.press("\\all\r");
    terminal.wait_for("--+\r\n5 rows in set (");
    terminal.wait_for("mayfly> ");
    terminal.press(&format!("source {}\r", script.display()));
    terminal.wait_for("... 1 more rows: \\all ");
    terminal.wait_for("mayfly> ");
    terminal.press("\\all\r");
    terminal.wait_for("--+\r\n4 rows in set (");
    terminal.wait_for("mayfly> ");
    terminal.press("SELECT COUNT(*) AS n FROM t;\r");
    terminal.wait_for("| 1 |");
    terminal.wait_for("mayfly> ");
}

#[test]
fn wide_rows_turn_or_are_cut() {
    let wide = "SELECT REPEAT('x', 100) AS first, REPEAT('y', 50) AS other;\r";
    let mut terminal = Terminal::open();
    terminal.wait_for("mayfly> ");
    terminal.press(wide);
    terminal.wait_for("*** 1. row ***");
    terminal.wait_for(&format!("first: {}", "x".repeat(100)));
    terminal.wait_for("1 row in set (");
    terminal.wait_for("mayfly> ");
    let mut terminal = Terminal::open_with("--wide-rows cut", &[]);
    terminal.wait_for("mayfly> ");
    terminal.press(wide);
    let first = "x".repeat(60);
    terminal.wait_for(&format!("| {first}... | {} |", "y".repeat(50)));
    terminal.wait_for("Cut to fit the terminal, \\G shows all: first");
    terminal.wait_for("1 row in set (");
    terminal.wait_for("mayfly> ");
}

#[test]
fn programs_of_the_system_run_from_the_prompt() {
    let mut terminal = Terminal::open_with("", &[("EDITOR", "sed -i s/1/7/")]);
    terminal.wait_for("mayfly> ");
    terminal.press("\\! echo out-$((1 + 1))\r");
    terminal.wait_for("out-2");
    terminal.wait_for("mayfly> ");
    terminal.press("SELECT 1 AS a;\r");
    terminal.wait_for("| 1 |");
    terminal.wait_for("mayfly> ");
    // The statement comes back to the prompt as it was edited.
    terminal.press("\\e\r");
    terminal.wait_for("SELECT 7 AS a;");
    terminal.press("\r");
    terminal.wait_for("| 7 |");
    terminal.wait_for("mayfly> ");
    terminal.press("\\T csv\r");
    terminal.wait_for("Results are shown as csv");
    terminal.wait_for("mayfly> ");
    terminal.press("SELECT 1 AS a, 2 AS b;\r");
    terminal.wait_for("a,b\r\n1,2\r\n");
    terminal.wait_for("mayfly> ");
}

#[test]
fn a_text_outlives_an_editor_that_fails() {
    let mut terminal = Terminal::open_with("", &[("EDITOR", "false")]);
    terminal.wait_for("mayfly> ");
    terminal.press("SELECT 5 AS a \\e\r");
    terminal.wait_for("ERROR: the editor failed, the text is as it was");
    terminal.wait_for("SELECT 5 AS a");
    terminal.press(";\r");
    terminal.wait_for("| 5 |");
    terminal.wait_for("mayfly> ");
}

#[test]
fn tab_completes_columns_of_files() {
    let mut terminal = Terminal::open();
    terminal.wait_for("mayfly> ");
    // Ctrl-A goes to the beginning of the line.
    terminal.press(" FROM 'demo/planes.csv' LIMIT 1;\x01SELECT manufac\t");
    terminal.wait_for("turer");
    terminal.press("\r");
    terminal.wait_for("| manufacturer");
    terminal.wait_for("1 row in set (");
    terminal.wait_for("mayfly> ");
    terminal.press("\\d 'demo/planes.csv'\r");
    terminal.wait_for("| Field ");
    terminal.wait_for("| manufacturer | ");
    terminal.wait_for("mayfly> ");
}
