//! MariaDB: a private server on a socket of its own, its tables loaded once into the cache.
//!
//! Owns: one `mariadbd` process at a time, ended when dropped, and its data directory.
//! Never: talks to a server that it did not start.
//!
//! The limit is given as `tmp_table_size` and `max_heap_table_size`: internal temporary tables
//! live in MEMORY up to it and are converted to Aria beyond it. A TEXT column sends them to Aria
//! at once. Times are taken inside the server, between two `SYSDATE(6)`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Failure, Job, KILLED, Reply, System, first_line, shortened};
use crate::args::SystemName;
use crate::cgroup::Cap;
use crate::child::{self, Spec, Watch};
use crate::data::Dataset;

const MARK: &str = "mayfly-bench";

pub(crate) struct MariaDb {
    data_dir: PathBuf,
    socket: PathBuf,
    server: Option<Server>,
}

struct Server {
    child: Child,
    key: ServerKey,
    cap: Option<Cap>,
}

/// What cannot be changed while a server runs.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ServerKey {
    cap_bytes: Option<u64>,
    /// Aria's page cache, a part of the limit: at most its default, at least what it accepts.
    page_cache_bytes: u64,
}

impl ServerKey {
    fn of(job: &Job<'_>) -> Self {
        let page_cache_bytes = job.limit_bytes.clamp(8 << 20, 128 << 20);
        Self {
            cap_bytes: job.cap_bytes(),
            page_cache_bytes,
        }
    }
}

impl MariaDb {
    pub(crate) fn new(cache_dir: &Path) -> Self {
        let socket = std::env::temp_dir().join(format!("{MARK}-{}.sock", std::process::id()));
        Self {
            data_dir: cache_dir.join("mariadb"),
            socket,
            server: None,
        }
    }

    fn install(&self) -> Result<(), String> {
        if self.data_dir.join("mysql").is_dir() {
            return Ok(());
        }
        fs::create_dir_all(&self.data_dir).map_err(|error| error.to_string())?;
        let output = Command::new("mariadb-install-db")
            .arg("--no-defaults")
            .arg(format!("--datadir={}", self.data_dir.display()))
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            .args(user_option())
            .output()
            .map_err(|error| format!("mariadb-install-db: {error}"))?;
        if output.status.success() {
            Ok(())
        } else {
            Err(shortened(String::from_utf8_lossy(&output.stderr).trim()))
        }
    }

    /// Sees to it that a server runs inside the asked cgroup, or outside of any.
    fn start(&mut self, job: &Job<'_>) -> Result<(), String> {
        let key = ServerKey::of(job);
        if self.server.as_ref().is_some_and(|server| server.key == key) {
            return Ok(());
        }
        self.stop();
        self.install()?;
        let cap = key.cap_bytes.map(Cap::create).transpose()?;
        // The server must not outlive an interrupted benchmark.
        let wrapped = first_line("setpriv", &["--version"]).is_ok();
        let program = if wrapped { "setpriv" } else { "mariadbd" };
        let mut command = child::command(Path::new(program), cap.as_ref());
        if wrapped {
            command.args(["--pdeathsig", "TERM", "mariadbd"]);
        }
        command
            .arg("--no-defaults")
            .arg(format!("--datadir={}", self.data_dir.display()))
            .arg(format!("--socket={}", self.socket.display()))
            .arg(format!("--tmpdir={}", job.temp_dir.display()))
            .args(["--skip-networking", "--skip-log-bin", "--secure-file-priv="])
            .arg(format!(
                "--aria-pagecache-buffer-size={}",
                key.page_cache_bytes
            ))
            .args(["--key-buffer-size=8M", "--innodb-buffer-pool-size=16M"])
            .args(["--performance-schema=OFF", "--innodb-log-buffer-size=2M"])
            .args(user_option())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command
            .spawn()
            .map_err(|error| format!("mariadbd: {error}"))?;
        self.server = Some(Server { child, key, cap });
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(60) {
            if self
                .client(&["-e", "CREATE DATABASE IF NOT EXISTS bench"], None)
                .is_ok()
            {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.stop();
        Err("mariadbd does not start".to_owned())
    }

    fn client_args(&self, database: Option<&str>) -> Vec<String> {
        let mut args = vec![
            "--no-defaults".to_owned(),
            format!("--socket={}", self.socket.display()),
            "--user=root".to_owned(),
            "--batch".to_owned(),
            "--skip-column-names".to_owned(),
            "--quick".to_owned(),
        ];
        args.extend(database.map(|name| format!("--database={name}")));
        args
    }

    fn client(&self, args: &[&str], database: Option<&str>) -> Result<String, String> {
        let output = Command::new("mariadb")
            .args(self.client_args(database))
            .args(args)
            .output()
            .map_err(|error| format!("mariadb: {error}"))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(last_error(&String::from_utf8_lossy(&output.stderr)))
        }
    }

    /// Loads a table once; a table that was loaded halfway is not found under its name.
    fn load(&self, dataset: &Dataset, tsv: &Path) -> Result<(), String> {
        let table = &dataset.table;
        let found = self.client(
            &["-e", &format!("SHOW TABLES LIKE '{table}'")],
            Some("bench"),
        )?;
        if !found.trim().is_empty() {
            return Ok(());
        }
        let sql = format!(
            "DROP TABLE IF EXISTS loading; \
             CREATE TABLE loading ({}) ENGINE=MyISAM DEFAULT CHARSET=latin1; \
             LOAD DATA INFILE '{}' INTO TABLE loading; \
             RENAME TABLE loading TO {table}",
            dataset.columns,
            tsv.display()
        );
        eprintln!("loading {} into MariaDB ...", tsv.display());
        self.client(&["-e", &sql], Some("bench")).map(drop)
    }

    fn stop(&mut self) {
        let Some(mut server) = self.server.take() else {
            return;
        };
        if let Some(pid) = i32::try_from(server.child.id())
            .ok()
            .and_then(Pid::from_raw)
        {
            // A server that has ended by itself cannot be signalled; the wait below sees it.
            let _signalled = kill_process(pid, Signal::TERM).is_ok();
        }
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(30) {
            if matches!(server.child.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _killed = server.child.kill().is_ok();
        let _waited = server.child.wait().is_ok();
    }

    fn measure(&mut self, job: &Job<'_>, tsv: &Path) -> Result<Reply, String> {
        // Loading happens outside of any cgroup.
        self.start(&Job {
            capped: false,
            setup: Vec::new(),
            ..*job
        })?;
        self.load(job.dataset, tsv)?;
        self.start(job)?;
        let heap = if job.unlimited {
            8 << 30
        } else {
            job.limit_bytes
        };
        let settings = format!(
            "SET SESSION tmp_table_size = {heap}, max_heap_table_size = {heap}, \
             max_statement_time = {}, sql_mode = ''",
            job.timeout.as_secs()
        );
        let statement = job.over_table();
        if job.emit {
            let mut args = self.client_args(Some("bench"));
            args.extend(["-e".to_owned(), format!("{settings}; {statement}")]);
            let spec = Spec {
                program: PathBuf::from("mariadb"),
                args,
                env: Vec::new(),
                cap_bytes: None,
                timeout: job.timeout,
                header_lines: 0,
            };
            let outcome = child::run(&spec)?;
            if !outcome.success {
                return Err(last_error(&outcome.stderr));
            }
            return Ok(Reply {
                digest: outcome.rows,
                seconds: vec![0.0],
                ..Reply::default()
            });
        }
        let clock = format!("SELECT '{MARK}', TIME_TO_SEC(SYSDATE(6)), TO_DAYS(SYSDATE())");
        let mut sql = format!("{settings}; {clock}");
        for _ in 0..job.repeats {
            sql.push_str(&format!("; {statement}; {clock}"));
        }
        let server = self.server.as_ref().expect("the server was started above");
        let process = server.child.id();
        // Begin a fresh high-water mark; without the right to, the mark covers the server's life.
        let _reset = fs::write(format!("/proc/{process}/clear_refs"), "5").is_ok();
        let mut watch = Watch::new(process);
        watch.look();
        let written_before = watch.written_bytes;
        let output = self.client(&["-e", &sql], Some("bench"))?;
        watch.look();
        let marks: Vec<f64> = output
            .lines()
            .filter_map(|line| line.strip_prefix(MARK))
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let second: f64 = words.next()?.parse().ok()?;
                let day: f64 = words.next()?.parse().ok()?;
                Some(day * 86_400.0 + second)
            })
            .collect();
        let seconds: Vec<f64> = marks.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if seconds.len() != job.repeats {
            return Err("no time was reported".to_owned());
        }
        Ok(Reply {
            seconds,
            peak_bytes: watch.peak_bytes,
            anonymous_bytes: watch.anonymous_bytes,
            cap_peak_bytes: server.cap.as_ref().map(|cap| cap.report().peak_bytes),
            written_bytes: watch.written_bytes - written_before,
            ..Reply::default()
        })
    }
}

impl System for MariaDb {
    fn name(&self) -> SystemName {
        SystemName::Mariadb
    }

    fn version(&self) -> Result<String, String> {
        let line = first_line("mariadbd", &["--version"])?;
        let version = line
            .split_whitespace()
            .skip_while(|word| *word != "Ver")
            .nth(1);
        Ok(version.unwrap_or(&line).to_owned())
    }

    fn run(&mut self, job: &Job<'_>) -> Result<Reply, Failure> {
        let Some(tsv) = &job.dataset.tsv else {
            return Err(Failure::Skipped(
                "its table is not loaded for this benchmark".to_owned(),
            ));
        };
        self.measure(job, tsv).map_err(|reason| {
            let cap = self.server.as_ref().and_then(|server| server.cap.as_ref());
            let killed = cap.is_some_and(|cap| cap.report().killed > 0);
            // A server that the kernel killed must not be asked again.
            self.stop();
            Failure::Failed(if killed { KILLED.to_owned() } else { reason })
        })
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The client's message, without the statement that it repeats.
fn last_error(stderr: &str) -> String {
    let line = stderr.lines().rev().find(|line| !line.trim().is_empty());
    shortened(line.unwrap_or("ended without a message").trim())
}

/// A server started by root refuses to run without being told so.
fn user_option() -> Option<&'static str> {
    rustix::process::geteuid()
        .is_root()
        .then_some("--user=root")
}
