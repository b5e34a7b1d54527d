//! Measures loads: a client program with many connections against one server at a time.
//!
//! Owns: what a contender is, its running server, the order of runs, what is kept of each.
//! Never: knows a workload or reads what a client program prints; that is `sysbench` and `slap`.
//!
//! Every contender has a server of its own, started and filled when its first run comes and kept
//! for all cells. In each cell the contenders take turns; one that has used up its share of time
//! there gets no further run, and one that fails is not asked again in this cell. Its server is
//! ended then, and the next cell finds a new one. What the tables hold is looked at after the last
//! run of a contender in a cell, between runs and never within one.

mod client;
mod found;
mod kept;
pub(crate) mod slap;
pub(crate) mod sysbench;

use std::time::Instant;

use crate::args::SystemName;
use crate::child::Watch;
use crate::error::BenchError;
use crate::results::{Results, median};
use crate::runner::Settings;
use crate::scripts::wire;
use crate::state::State;
use crate::systems::server::{DATABASE, Flavour, Serve, Server, Start};
pub(crate) use found::{LoadEnd, LoadRun, Rate};

pub(crate) use kept::kept;

/// One system with one way to hold its tables.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    pub(crate) label: &'static str,
    pub(crate) system: SystemName,
    pub(crate) host: Host,
}

/// The server of a contender.
#[derive(Clone, Debug)]
pub(crate) enum Host {
    Mayfly {
        memory_bytes: u64,
        /// How its file is read and written; none for its own choice.
        temp_io: Option<&'static str>,
    },
    MariaDb {
        /// The folder of its data below the cache directory.
        data: &'static str,
        options: Vec<String>,
    },
}

impl Contender {
    /// The budget, of a system that has one for all of its tables.
    fn memory_bytes(&self) -> Option<u64> {
        match self.host {
            Host::Mayfly { memory_bytes, .. } => Some(memory_bytes),
            Host::MariaDb { .. } => None,
        }
    }
}

/// One cell of a table: what all contenders run in turns.
pub(crate) trait Load {
    /// What is known of the tables of one server between runs.
    type Known;

    fn name(&self) -> &str;
    fn clients(&self) -> usize;
    /// Fills a server that has just started.
    fn prepare(&self, contender: &Contender, server: &Server) -> Result<Self::Known, String>;
    /// Runs the client program once.
    fn run(
        &self,
        contender: &Contender,
        server: &Server,
        run: usize,
        known: &mut Self::Known,
    ) -> Result<Rate, String>;
    /// Looks at the tables; what is wrong with them.
    fn check(&self, server: &Server, known: &mut Self::Known) -> Result<Option<String>, String>;
}

/// A server with its tables.
struct Running<K> {
    contender: &'static str,
    server: Server,
    known: K,
}

/// Runs loads, as the runner of scripts runs scripts.
pub(crate) struct Loads<'a, K> {
    settings: &'a Settings,
    chosen: &'a [SystemName],
    state: State<LoadRun>,
    /// Why the client program cannot run here.
    missing_client: Option<String>,
    running: Vec<Running<K>>,
}

impl<'a, K> Loads<'a, K> {
    /// Finds out what is installed; `client` is the name and version of the client program.
    pub(crate) fn new(
        settings: &'a Settings,
        chosen: &'a [SystemName],
        client: (&str, Result<String, String>),
        state: State<LoadRun>,
        results: &mut Results,
    ) -> Self {
        let (name, client) = client;
        let missing_client = client.as_ref().err().cloned();
        let mut facts = vec![(name.to_owned(), client)];
        for system in [SystemName::Mayfly, SystemName::Mariadb] {
            if chosen.is_empty() || chosen.contains(&system) {
                facts.push((system.label().to_owned(), version(system)));
            }
        }
        for (name, version) in facts {
            let version = version.unwrap_or_else(|reason| format!("skipped: {reason}"));
            println!("{name}: {version}");
            results.machine.push((name, version));
        }
        Self {
            settings,
            chosen,
            state,
            missing_client,
            running: Vec::new(),
        }
    }

    /// Whether a load is wanted.
    pub(crate) fn wanted(&self, load: &str) -> bool {
        let only = self.settings.only.as_ref();
        only.is_none_or(|only| load.contains(only.as_str()))
    }

    /// Whether a system is wanted and can run here.
    pub(crate) fn takes_part(&self, system: SystemName) -> bool {
        let wanted = self.chosen.is_empty() || self.chosen.contains(&system);
        wanted && self.missing_client.is_none() && version(system).is_ok()
    }

    /// Runs a cell on all contenders in turns.
    pub(crate) fn cell(
        &mut self,
        load: &impl Load<Known = K>,
        contenders: &[Contender],
        results: &mut Results,
    ) -> Result<(), BenchError> {
        println!("\n{}, clients: {}", load.name(), load.clients());
        let wanted = |contender: &&Contender| {
            self.chosen.is_empty() || self.chosen.contains(&contender.system)
        };
        let mut waiting: Vec<(&Contender, f64)> = contenders
            .iter()
            .filter(wanted)
            .map(|contender| (contender, 0.0))
            .collect();
        for run in 1..=self.settings.runs {
            let mut left = Vec::new();
            for (contender, spent_s) in waiting {
                let kept = self.state.find(|found: &LoadRun| {
                    found.load == load.name()
                        && found.clients == load.clients()
                        && found.contender == contender.label
                        && found.run == run
                });
                let ran = match kept {
                    Some(kept) => kept,
                    None => self.measure(load, contender, run, spent_s)?,
                };
                if let LoadEnd::Measured(rate) = &ran.end
                    && self.has_share(spent_s + rate.seconds)
                {
                    left.push((contender, spent_s + rate.seconds));
                }
                results.loads.push(ran);
            }
            waiting = left;
        }
        Ok(())
    }

    fn has_share(&self, spent_s: f64) -> bool {
        spent_s <= self.settings.share_s
    }

    /// One run, printed and kept.
    fn measure(
        &mut self,
        load: &impl Load<Known = K>,
        contender: &Contender,
        run: usize,
        spent_s: f64,
    ) -> Result<LoadRun, BenchError> {
        let missing = self.missing_client.clone();
        let missing = missing.or_else(|| version(contender.system).err());
        let end = match missing {
            Some(reason) => LoadEnd::Skipped(reason),
            None => match self.run(load, contender, run, spent_s) {
                Ok(rate) => LoadEnd::Measured(rate),
                Err(reason) => LoadEnd::Failed(self.end_server(contender, reason)),
            },
        };
        let ran = LoadRun {
            load: load.name().to_owned(),
            clients: load.clients(),
            contender: contender.label.to_owned(),
            system: contender.system,
            run,
            memory_bytes: contender.memory_bytes(),
            end,
        };
        print_run(&ran);
        self.state.keep(&ran)?;
        Ok(ran)
    }

    fn run(
        &mut self,
        load: &impl Load<Known = K>,
        contender: &Contender,
        run: usize,
        spent_s: f64,
    ) -> Result<Rate, String> {
        let index = self.server(load, contender)?;
        let settings = self.settings;
        let Running { server, known, .. } = &mut self.running[index];
        server.forget_peak();
        let mut watch = Watch::new(server.process());
        watch.look();
        let (read_before, written_before) = (watch.read_bytes, watch.written_bytes);
        let mut rate = load.run(contender, server, run, known)?;
        watch.look();
        rate.read_bytes = watch.read_bytes - read_before;
        rate.written_bytes = watch.written_bytes - written_before;
        rate.peak_bytes = watch.peak_bytes;
        let last = run == settings.runs || spent_s + rate.seconds > settings.share_s;
        if settings.check && last {
            rate.wrong = load.check(server, known)?;
            rate.checked = true;
        }
        Ok(rate)
    }

    /// The running server of a contender, started and filled before if there is none.
    fn server(
        &mut self,
        load: &impl Load<Known = K>,
        contender: &Contender,
    ) -> Result<usize, String> {
        let same = |running: &Running<K>| running.contender == contender.label;
        if let Some(index) = self.running.iter().position(same) {
            return Ok(index);
        }
        let start = Instant::now();
        let server = self.start(contender)?;
        let known = load
            .prepare(contender, &server)
            .map_err(|reason| format!("preparation: {reason}"))?;
        println!(
            "  {} is filled: {:.1} s",
            contender.label,
            start.elapsed().as_secs_f64()
        );
        self.running.push(Running {
            contender: contender.label,
            server,
            known,
        });
        Ok(self.running.len() - 1)
    }

    /// Ends a contender's server after a failure: what its tables hold is not known any more. One
    /// that has ended already is the reason.
    fn end_server(&mut self, contender: &Contender, reason: String) -> String {
        let same = |running: &Running<K>| running.contender == contender.label;
        let Some(index) = self.running.iter().position(same) else {
            return reason;
        };
        let mut running = self.running.swap_remove(index);
        running.server.ended().unwrap_or(reason)
    }

    /// Asks a contender's server, started and filled before if there is none, for a number.
    pub(crate) fn ask_number(
        &mut self,
        load: &impl Load<Known = K>,
        contender: &Contender,
        query: &str,
    ) -> Result<u64, String> {
        let index = self.server(load, contender)?;
        let answer = ask(&self.running[index].server, query)?;
        answer.parse().map_err(|_| answer)
    }

    /// Ends all servers after a last statement, which keeps their data directories small.
    pub(crate) fn finish(&mut self, statement: &str) {
        for running in self.running.drain(..) {
            if let Err(reason) = all_rows(&running.server, statement) {
                eprintln!("{}: {statement}: {reason}", running.contender);
            }
        }
    }

    fn start(&self, contender: &Contender) -> Result<Server, String> {
        let settings = self.settings;
        match &contender.host {
            Host::Mayfly {
                memory_bytes,
                temp_io,
            } => Server::serve(&Serve {
                memory_bytes: *memory_bytes,
                threads: settings.threads,
                temp_io: *temp_io,
                temp_dir: &settings.temp_dir,
                files: None,
            }),
            Host::MariaDb { data, options } => Server::start(&Start {
                flavour: Flavour::MariaDb,
                data_dir: &settings.cache_dir.join(data),
                temp_dir: &settings.temp_dir,
                options: options.clone(),
                cap_bytes: None,
            }),
        }
    }
}

/// The version of a system, or why it cannot run here.
fn version(system: SystemName) -> Result<String, String> {
    match system {
        SystemName::Mayfly => Ok(env!("CARGO_PKG_VERSION").to_owned()),
        SystemName::Mariadb => Flavour::MariaDb.version(),
        SystemName::Mysql | SystemName::Duckdb | SystemName::Datafusion | SystemName::Sqlite => {
            Err("it is not measured here".to_owned())
        }
    }
}

/// Runs statements in a connection of their own; the last row of the last one.
pub(crate) fn ask(server: &Server, statements: &str) -> Result<String, String> {
    let mut rows = all_rows(server, statements)?;
    rows.pop().ok_or_else(|| "no row".to_owned())
}

/// Runs statements in a connection of their own; the rows of the last one.
pub(crate) fn all_rows(server: &Server, statements: &str) -> Result<Vec<String>, String> {
    let mut client = wire::Client::connect(&server.socket, DATABASE)?;
    let mut rows = Vec::new();
    for statement in statements.split(";\n") {
        rows = client.query(statement)?;
    }
    Ok(rows)
}

impl Results {
    /// The median of what `value` says of all runs of a contender in a cell.
    pub(crate) fn load_median(
        &self,
        load: &str,
        clients: usize,
        contender: &str,
        value: impl Fn(&Rate) -> f64,
    ) -> Option<f64> {
        let values: Vec<f64> = self
            .loads
            .iter()
            .filter(|ran| ran.load == load && ran.clients == clients && ran.contender == contender)
            .filter_map(LoadRun::rate)
            .map(value)
            .collect();
        (!values.is_empty()).then(|| median(&values))
    }
}

/// Prints a run as soon as it is over.
fn print_run(ran: &LoadRun) {
    let text = match &ran.end {
        LoadEnd::Measured(rate) => {
            let mut text = format!("{:>9.0} queries/s", rate.queries_per_second());
            if let Some(latency) = rate.latency_ms {
                text.push_str(&format!(", 95 % within {latency:.2} ms"));
            }
            if rate.ignored_errors > 0 {
                text.push_str(&format!(", {} errors ignored", rate.ignored_errors));
            }
            if let Some(wrong) = &rate.wrong {
                text.push_str(&format!(", WRONG: {wrong}"));
            }
            text
        }
        LoadEnd::Skipped(reason) => format!("skipped: {reason}"),
        LoadEnd::Failed(reason) => format!("failed: {reason}"),
    };
    println!("  run {}, {:<22} {text}", ran.run, ran.contender);
}
