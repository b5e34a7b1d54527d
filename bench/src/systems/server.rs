//! A private server on a socket of its own: MariaDB, MySQL, or Mayfly.
//!
//! Owns: one server process, ended when dropped, and its data directory.
//! Never: talks to a server that it did not start.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::driver::first_line;
use super::mayfly::size_option;
use crate::answer::shortened;
use crate::cgroup::Cap;
use crate::child;
use crate::scripts::wire;

/// The database of all benchmarks.
pub(crate) const DATABASE: &str = "bench";

/// Whose server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    MariaDb,
    MySql,
}

impl Flavour {
    fn program(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadbd",
            Self::MySql => "mysqld",
        }
    }

    /// The version of the installed server, or why there is none.
    pub(crate) fn version(self) -> Result<String, String> {
        let line = first_line(self.program(), &["--version"])?;
        // Debian's packages of MariaDB have a link of this name.
        if self == Self::MySql && line.contains("MariaDB") {
            return Err("`mysqld` is MariaDB's here".to_owned());
        }
        let version = line
            .split_whitespace()
            .skip_while(|word| *word != "Ver")
            .nth(1);
        Ok(version.unwrap_or(&line).to_owned())
    }

    /// Creates the data directory, once.
    fn install(self, data_dir: &Path) -> Result<(), String> {
        if data_dir.join("mysql").is_dir() {
            return Ok(());
        }
        fs::create_dir_all(data_dir).map_err(|error| error.to_string())?;
        let place = format!("--datadir={}", data_dir.display());
        let mut command = match self {
            Self::MariaDb => {
                let mut command = Command::new("mariadb-install-db");
                command.args(["--no-defaults", &place, "--skip-test-db"]);
                command.arg("--auth-root-authentication-method=normal");
                command
            }
            Self::MySql => {
                let mut command = Command::new("mysqld");
                command.args(["--no-defaults", "--initialize-insecure", &place]);
                command
            }
        };
        let output = command
            .args(user_option())
            .output()
            .map_err(|error| format!("{}: {error}", self.program()))?;
        if output.status.success() {
            Ok(())
        } else {
            Err(shortened(String::from_utf8_lossy(&output.stderr).trim()))
        }
    }
}

/// How to start a server.
pub(crate) struct Start<'a> {
    pub(crate) flavour: Flavour,
    pub(crate) data_dir: &'a Path,
    pub(crate) temp_dir: &'a Path,
    pub(crate) options: Vec<String>,
    /// Limit of a memory cgroup around it, page cache included.
    pub(crate) cap_bytes: Option<u64>,
}

/// A running server.
pub(crate) struct Server {
    child: Child,
    pub(crate) socket: PathBuf,
    pub(crate) cap: Option<Cap>,
}

/// How to start `mayfly serve`, which is this program again.
pub(crate) struct Serve<'a> {
    pub(crate) memory_bytes: u64,
    pub(crate) threads: usize,
    /// How its file is read and written; none for its own choice.
    pub(crate) temp_io: Option<&'a str>,
    pub(crate) temp_dir: &'a Path,
    /// The directory of the files that statements may read.
    pub(crate) files: Option<&'a Path>,
}

impl Server {
    /// Starts a server and waits until it answers; its database is there.
    pub(crate) fn start(start: &Start<'_>) -> Result<Self, String> {
        start.flavour.install(start.data_dir)?;
        let cap = start.cap_bytes.map(Cap::create).transpose()?;
        let program = start.flavour.program();
        let socket = new_socket(program);
        let mut command = guarded(Path::new(program), cap.as_ref());
        command
            .arg("--no-defaults")
            .arg(format!("--datadir={}", start.data_dir.display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--tmpdir={}", start.temp_dir.display()))
            .args(["--skip-networking", "--skip-log-bin", "--secure-file-priv="])
            .args(["--performance-schema=OFF", "--loose-mysqlx=OFF"])
            .args(&start.options)
            .args(user_option());
        Self::spawn(program, command, socket, cap)
    }

    /// Starts Mayfly's server and waits until it answers; its database is there.
    pub(crate) fn serve(serve: &Serve<'_>) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let socket = new_socket("mayfly");
        let mut command = guarded(&program, None);
        command.args(["serve", "--port", "0", "--socket"]);
        command.arg(&socket);
        command.args(["--memory", &size_option(serve.memory_bytes)]);
        command.args(["--threads", &serve.threads.to_string()]);
        command.arg("--temp-dir").arg(serve.temp_dir);
        if let Some(way) = serve.temp_io {
            command.args(["--temp-io", way]);
        }
        if let Some(files) = serve.files {
            command.arg("--secure-file-priv").arg(files);
        }
        Self::spawn("mayfly serve", command, socket, None)
    }

    fn spawn(
        name: &str,
        mut command: Command,
        socket: PathBuf,
        cap: Option<Cap>,
    ) -> Result<Self, String> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{name}: {error}"))?;
        let mut server = Self { child, socket, cap };
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(60) {
            if matches!(server.child.try_wait(), Ok(Some(_)) | Err(_)) {
                break;
            }
            let created = wire::Client::connect(&server.socket, "").and_then(|mut client| {
                client.query(&format!("CREATE DATABASE IF NOT EXISTS {DATABASE}"))
            });
            if created.is_ok() {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(format!("{name} does not start"))
    }

    /// The number of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did by itself.
    pub(crate) fn ended(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(format!("the server has ended: {status}")),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Why it does not answer any more.
    pub(crate) fn why_gone(&mut self) -> String {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(5) {
            if let Some(ended) = self.ended() {
                return ended;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        "the server has closed the connection".to_owned()
    }

    /// Begins a fresh high-water mark of its memory; without the right to, the mark covers the
    /// server's life.
    pub(crate) fn forget_peak(&self) {
        let _reset = fs::write(format!("/proc/{}/clear_refs", self.process()), "5").is_ok();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // A server that has ended by itself cannot be signalled; the wait below sees it.
            let _signalled = kill_process(pid, Signal::TERM).is_ok();
        }
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(30) {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _killed = self.child.kill().is_ok();
        let _waited = self.child.wait().is_ok();
        // One that was killed has left its socket behind.
        let _removed = fs::remove_file(&self.socket).is_ok();
    }
}

/// A socket that no other server of this benchmark has.
fn new_socket(name: &str) -> PathBuf {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    std::env::temp_dir().join(format!("mayfly-bench-{name}-{process}-{number}.sock"))
}

/// A command for a server that does not outlive an interrupted benchmark.
fn guarded(program: &Path, cap: Option<&Cap>) -> Command {
    if first_line("setpriv", &["--version"]).is_err() {
        return child::command(program, cap);
    }
    let mut command = child::command(Path::new("setpriv"), cap);
    command.args(["--pdeathsig", "TERM"]).arg(program);
    command
}

/// A server started by root refuses to run without being told so.
fn user_option() -> Option<&'static str> {
    rustix::process::geteuid()
        .is_root()
        .then_some("--user=root")
}
