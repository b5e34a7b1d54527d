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
        let home = tempfile::tempdir().expect("a fresh directory");
        let program = format!(
            "stty rows 40 cols 120; exec {} sql --memory 64M --threads 2",
            env!("CARGO_BIN_EXE_mayfly")
        );
        let mut child = Command::new("script")
            .args(["-qefc", &program, "/dev/null"])
            .current_dir(repository())
            .env("MAYFLY_HISTORY", home.path().join("history"))
            .env("NO_COLOR", "1")
            .env("TERM", "xterm")
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
