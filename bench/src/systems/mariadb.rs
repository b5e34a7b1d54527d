//! MariaDB: a private server, its tables loaded once into the cache.
//!
//! The limit is given as `tmp_table_size` and `max_heap_table_size`: internal temporary tables
//! live in MEMORY up to it and are converted to Aria beyond it. A TEXT column sends them to Aria
//! at once. Times are taken inside the server, between two `SYSDATE(6)`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::server::{DATABASE, Flavour, Server, Start};
use super::system::{Failure, Job, KILLED, Reply, System};
use crate::answer::shortened;
use crate::args::SystemName;
use crate::child::{self, Spec, Watch};
use crate::data::Dataset;

const MARK: &str = "mayfly-bench";
/// What the server says when `max_statement_time` is over.
const TIMED_OUT: &str = "max_statement_time exceeded";

pub(crate) struct MariaDb {
    data_dir: PathBuf,
    server: Option<(ServerKey, Server)>,
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

/// Sets the variables of a session for a job.
fn settings_of(job: &Job<'_>) -> String {
    let heap = if job.unlimited {
        8 << 30
    } else {
        job.limit_bytes
    };
    let mut settings = format!(
        "SET SESSION tmp_table_size = {heap}, max_heap_table_size = {heap}, \
         max_statement_time = {}, sql_mode = ''",
        job.timeout.as_secs()
    );
    for setting in job.settings {
        settings.push_str("; ");
        settings.push_str(setting);
    }
    settings
}

/// The seconds between the marks that a client printed.
fn seconds_between_marks(output: &str) -> Vec<f64> {
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
    marks.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

impl MariaDb {
    pub(crate) fn new(cache_dir: &Path) -> Self {
        Self {
            data_dir: cache_dir.join("mariadb"),
            server: None,
        }
    }

    /// Sees to it that a server runs inside the asked cgroup, or outside of any.
    fn start(&mut self, job: &Job<'_>) -> Result<(), String> {
        let key = ServerKey::of(job);
        if self.server.as_ref().is_some_and(|(found, _)| *found == key) {
            return Ok(());
        }
        self.server = None;
        let server = Server::start(&Start {
            flavour: Flavour::MariaDb,
            data_dir: &self.data_dir,
            temp_dir: job.temp_dir,
            options: vec![
                format!("--aria-pagecache-buffer-size={}", key.page_cache_bytes),
                "--key-buffer-size=8M".to_owned(),
                "--innodb-buffer-pool-size=16M".to_owned(),
                "--innodb-log-buffer-size=2M".to_owned(),
            ],
            cap_bytes: key.cap_bytes,
        })?;
        self.server = Some((key, server));
        Ok(())
    }

    fn server(&self) -> &Server {
        let (_, server) = self.server.as_ref().expect("the server was started before");
        server
    }

    fn client_args(&self, database: Option<&str>) -> Vec<String> {
        let mut args = vec![
            "--no-defaults".to_owned(),
            format!("--socket={}", self.server().socket.display()),
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
    fn load(&self, dataset: &Dataset) -> Result<(), String> {
        let table = &dataset.table;
        let Some(tsv) = &dataset.tsv else {
            return Err(format!("{table} is not there as text"));
        };
        let found = self.client(
            &["-e", &format!("SHOW TABLES LIKE '{table}'")],
            Some(DATABASE),
        )?;
        if !found.trim().is_empty() {
            return Ok(());
        }
        let key = dataset.primary_key.map_or(String::new(), |columns| {
            format!(", PRIMARY KEY ({columns})")
        });
        let sql = format!(
            "DROP TABLE IF EXISTS loading; \
             CREATE TABLE loading ({}{key}) ENGINE=MyISAM DEFAULT CHARSET=latin1; \
             LOAD DATA INFILE '{}' INTO TABLE loading; \
             RENAME TABLE loading TO {table}",
            dataset.columns,
            tsv.display()
        );
        eprintln!("loading {} into MariaDB ...", tsv.display());
        self.client(&["-e", &sql], Some(DATABASE)).map(drop)
    }

    fn measure(&mut self, job: &Job<'_>) -> Result<Reply, String> {
        // Loading happens outside of any cgroup.
        self.start(&Job {
            capped: false,
            setup: Vec::new(),
            ..*job
        })?;
        for dataset in job.datasets() {
            self.load(dataset)?;
        }
        self.start(job)?;
        let settings = settings_of(job);
        let statement = job.over_table();
        if job.emit {
            let mut args = self.client_args(Some(DATABASE));
            args.extend(["-e".to_owned(), format!("{settings}; {statement}")]);
            let spec = Spec {
                program: PathBuf::from("mariadb"),
                args,
                env: Vec::new(),
                cap_bytes: None,
                timeout: job.timeout,
                header_lines: 0,
                keep_lines: job.keep_lines,
            };
            let outcome = child::run(&spec)?;
            if !outcome.success {
                return Err(last_error(&outcome.stderr));
            }
            return Ok(Reply {
                answer: outcome.answer,
                seconds: vec![0.0],
                ..Reply::default()
            });
        }
        let clock = format!("SELECT '{MARK}', TIME_TO_SEC(SYSDATE(6)), TO_DAYS(SYSDATE())");
        let mut sql = format!("{settings}; {clock}");
        for _ in 0..job.repeats {
            sql.push_str(&format!("; {statement}; {clock}"));
        }
        let server = self.server();
        server.forget_peak();
        let mut watch = Watch::new(server.process());
        watch.look();
        let written_before = watch.written_bytes;
        let output = self.client(&["-e", &sql], Some(DATABASE))?;
        watch.look();
        let seconds = seconds_between_marks(&output);
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
        Flavour::MariaDb.version()
    }

    fn run(&mut self, job: &Job<'_>) -> Result<Reply, Failure> {
        if job.dataset.tsv.is_none() {
            return Err(Failure::Skipped(
                "its table is not loaded for this benchmark".to_owned(),
            ));
        }
        self.measure(job).map_err(|reason| {
            if reason.contains(TIMED_OUT) {
                return Failure::TimedOut(job.timeout.as_secs());
            }
            // A server that the kernel killed must not be asked again.
            let server = self.server.take();
            let cap = server.as_ref().and_then(|(_, server)| server.cap.as_ref());
            let killed = cap.is_some_and(|cap| cap.report().killed > 0);
            Failure::Failed(if killed { KILLED.to_owned() } else { reason })
        })
    }
}

/// The client's message, without the statement that it repeats.
fn last_error(stderr: &str) -> String {
    let line = stderr.lines().rev().find(|line| !line.trim().is_empty());
    shortened(line.unwrap_or("ended without a message").trim())
}
