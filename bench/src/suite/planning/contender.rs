//! A server that plans.
//!
//! Owns: the server, a client of it, and what it may take. One that ends, because a plan took all
//! of its memory, is started again.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::statements::TABLES;
use crate::args::SystemName;
use crate::cgroup;
use crate::scripts::wire::Client;
use crate::systems::server::{DATABASE, Flavour, Serve, Server, Start};

/// Enough for each of the statements that is to be planned.
const MEMORY_BYTES: u64 = 1 << 30;
/// What a server that has no budget for plans may take before the kernel ends it.
const CAP_BYTES: u64 = 4 << 30;
/// Runs of a statement that is planned in no time.
const RUNS: usize = 5;
/// A statement that takes longer is planned once.
const LONG: Duration = Duration::from_millis(500);

/// One statement on one system.
pub(super) struct Taken {
    pub(super) median: Duration,
    /// The error, where it was refused.
    pub(super) refused: Option<String>,
}

impl Taken {
    /// Whether it was ended by the limit of time, or took the server with it.
    pub(super) fn reached(&self, limit: Duration) -> bool {
        self.refused.is_some() && self.median >= limit / 2
    }
}

/// A server and a client of it.
pub(super) struct Contender {
    pub(super) system: SystemName,
    how: How,
    running: Option<(Server, Client)>,
}

/// How it is started.
struct How {
    threads: usize,
    data_dir: PathBuf,
    temp_dir: PathBuf,
    limit: Duration,
}

impl Contender {
    /// Starts it; `None` where it is not installed.
    pub(super) fn start(
        system: SystemName,
        threads: usize,
        cache_dir: &Path,
        temp_dir: &Path,
        limit: Duration,
    ) -> Result<Option<Contender>, String> {
        if system == SystemName::Mariadb && Flavour::MariaDb.version().is_err() {
            return Ok(None);
        }
        let how = How {
            threads,
            data_dir: cache_dir.join("mariadb"),
            temp_dir: temp_dir.to_owned(),
            limit,
        };
        let running = Some(how.start(system)?);
        Ok(Some(Contender {
            system,
            how,
            running,
        }))
    }

    /// How long it explains a statement, or refuses it.
    pub(super) fn explain(&mut self, statement: &str) -> Result<Taken, String> {
        let (server, client) = match &mut self.running {
            Some(running) => running,
            None => self.running.insert(self.how.start(self.system)?),
        };
        let mut times = Vec::new();
        let mut refused = None;
        let mut is_alive = true;
        while times.len() < RUNS {
            let started = Instant::now();
            let answer = client.query(statement);
            times.push(started.elapsed());
            if let Err(error) = answer {
                is_alive = client.query("DO 1").is_ok();
                refused = Some(if is_alive { error } else { server.why_gone() });
            }
            if !is_alive || times.last().is_some_and(|last| *last > LONG) {
                break;
            }
        }
        if !is_alive {
            if self.system == SystemName::Mayfly {
                return Err(refused.unwrap_or_default());
            }
            self.running = None;
        }
        times.sort_unstable();
        Ok(Taken {
            median: times[times.len() / 2],
            refused,
        })
    }
}

impl How {
    fn start(&self, system: SystemName) -> Result<(Server, Client), String> {
        let milliseconds = self.limit.as_millis();
        let (server, limit) = match system {
            SystemName::Mayfly => {
                let serve = Serve {
                    memory_bytes: MEMORY_BYTES,
                    threads: self.threads,
                    temp_io: None,
                    temp_dir: &self.temp_dir,
                    files: None,
                };
                let limit = format!("SET mayfly_max_planning_time = {milliseconds}");
                (Server::serve(&serve)?, limit)
            }
            _ => {
                let server = Server::start(&Start {
                    flavour: Flavour::MariaDb,
                    data_dir: &self.data_dir,
                    temp_dir: &self.temp_dir,
                    options: Vec::new(),
                    // Where cgroups are not permitted it has the whole machine.
                    cap_bytes: cgroup::available().is_ok().then_some(CAP_BYTES),
                })?;
                (
                    server,
                    format!("SET max_statement_time = {}", self.limit.as_secs()),
                )
            }
        };
        let mut client = Client::connect(&server.socket, DATABASE)?;
        for statement in TABLES {
            client.query(statement)?;
        }
        client.query(&limit)?;
        Ok((server, client))
    }
}
