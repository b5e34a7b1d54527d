//! The command line of `mayfly bench`.
//!
//! Owns: the names of the benchmarks and their options, and how sizes are written (`64M`).
//! Never: runs anything.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// Which benchmark to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Benchmark {
    /// GROUP BY over 1 M and 4 M rows of a mostly unique CHAR(32) key.
    Seed0,
    /// Six GROUP BY statements over 2,097,152 rows that carry a TEXT column.
    Seed1,
    /// Thirteen groupings of TPC-H lineitem, thin and wide, at data/limit from 1 to 16.
    Groupings,
    /// The page size of the temp space, on the data of seed0 and seed1.
    Pages,
    /// The temp space alone: device, scatter, huge pages, compression.
    Space,
    /// The structures of tables: dictionary, B+tree, rows, undo, scan.
    Tables,
    /// Time over memory, from eight times the data to a sixteenth of it, by operator.
    Cliff,
    /// The 22 queries of TPC-H, from files and tables, at 25 %, 6 % and 1.5 % of the data.
    Tpch,
    /// Equi-joins by size, payload, skew, type and number, at data/limit from 1 to 16.
    Joins,
    /// Five window functions over 1 to 10 M partitions, at data/limit from 1 to 16.
    Windows,
    /// What idle connections cost, and what 10,000 rounds of temporary tables leave.
    Clients,
    /// How long clients wait for single rows while others work hard.
    Neighbours,
    /// How long plans take to make, over depth and width.
    Planning,
    /// What a correlated subquery that runs row by row costs an outer row.
    Subqueries,
    /// Mixed statements and random kills for 20 minutes, after which nothing may have grown.
    Soak,
    /// All scripts of sysbench on one table, in memory and in a quarter of it.
    Seed2,
    /// Temporary tables by single statements: create, drop, insert, update, delete.
    Seed3,
    /// A derived table with a wide column by mariadb-slap, merged and not merged.
    Seed4,
}

impl Benchmark {
    /// The name as typed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Seed0 => "seed0",
            Self::Seed1 => "seed1",
            Self::Groupings => "groupings",
            Self::Pages => "pages",
            Self::Space => "space",
            Self::Tables => "tables",
            Self::Cliff => "cliff",
            Self::Tpch => "tpch",
            Self::Joins => "joins",
            Self::Windows => "windows",
            Self::Clients => "clients",
            Self::Neighbours => "neighbours",
            Self::Planning => "planning",
            Self::Subqueries => "subqueries",
            Self::Soak => "soak",
            Self::Seed2 => "seed2",
            Self::Seed3 => "seed3",
            Self::Seed4 => "seed4",
        }
    }
}

/// A system that runs beside Mayfly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SystemName {
    /// This program, driven from outside like the others.
    Mayfly,
    /// The Python package `duckdb`.
    Duckdb,
    /// DataFusion without Mayfly's operators, with its own fair pool.
    Datafusion,
    /// SQLite through Python's `sqlite3`.
    Sqlite,
    /// A private `mariadbd`, temporary tables in MEMORY as far as the limit allows.
    Mariadb,
    /// A private MySQL server; takes part in `seed3` and `subqueries`.
    Mysql,
}

impl SystemName {
    /// The name that tables and curves show.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Mayfly => "Mayfly",
            Self::Duckdb => "DuckDB",
            Self::Datafusion => "DataFusion",
            Self::Sqlite => "SQLite",
            Self::Mariadb => "MariaDB",
            Self::Mysql => "MySQL",
        }
    }
}

/// Arguments of `mayfly bench`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Every time is the median of the timed runs of child processes, each warmed \
    up by one run that is not counted; the systems take turns. A spilling figure is taken twice: \
    under the system's own limit, and with the whole process, page cache included, in a memory \
    cgroup of limit + 200 MiB (the quoted one). `seed3` and `subqueries` time lines of statements, \
    each contender's script in a connection or process of its own. `seed2` and `seed4` are measured by \
    sysbench and mariadb-slap, whose clients speak to one server at a time."
)]
pub struct BenchArgs {
    /// Benchmark to run.
    #[arg(value_enum, required_unless_present_any = ["stock_datafusion", "embedded"])]
    pub name: Option<Benchmark>,
    /// More sizes, limits and runs (an hour or more instead of minutes).
    #[arg(long)]
    pub full: bool,
    /// Keep the finished cells of the last run with the same options.
    #[arg(long)]
    pub resume: bool,
    /// Write all results as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a self-contained HTML page with the curves drawn.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Systems to run (default: all that are installed).
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME,...")]
    pub systems: Vec<SystemName>,
    /// Memory limits instead of the benchmark's own (`all` is three quarters of the machine);
    /// `seed2`, `seed3`, `seed4` and `subqueries` take the first.
    #[arg(long, value_delimiter = ',', value_name = "SIZE,...", value_parser = parse_limit)]
    pub limits: Vec<Limit>,
    /// Scale factors of `groupings` and `tpch` instead of their own; may be below 1.
    #[arg(long, value_delimiter = ',', value_name = "SF,...", value_parser = parse_scale)]
    pub scale: Vec<f64>,
    /// Run only the cases whose name contains this text.
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Rows of the table of `seed2`, of the build side of `joins`, of `windows` and of the curves
    /// of `cliff`; entries of the B+trees of `tables`.
    #[arg(long, value_name = "N")]
    pub rows: Option<u64>,
    /// Seconds of a run of `seed2`; how long each neighbour of `neighbours` works at
    /// least; how long `soak` takes.
    #[arg(long, value_name = "N")]
    pub seconds: Option<u64>,
    /// Statements of a run of `seed4`.
    #[arg(long, value_name = "N")]
    pub queries: Option<u64>,
    /// Clients of `seed2` at the same time, instead of its own.
    #[arg(long, value_delimiter = ',', value_name = "N,...")]
    pub clients: Vec<usize>,
    /// Timed runs of each system in a cell.
    #[arg(long, value_name = "N")]
    pub runs: Option<usize>,
    /// Threads that each system may use.
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub threads: usize,
    /// Skip the second measurement inside a memory cgroup.
    #[arg(long)]
    pub no_cap: bool,
    /// Skip the comparison of answers.
    #[arg(long)]
    pub no_check: bool,
    /// Where generated data is kept (default: $XDG_CACHE_HOME/mayfly-bench).
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
    /// Where temporary files of all systems go (default: below the cache directory).
    #[arg(long, value_name = "DIR")]
    pub temp_dir: Option<PathBuf>,
    /// Run statements on DataFusion alone (used by the benchmark itself).
    #[arg(long, hide = true, value_name = "JSON")]
    pub stock_datafusion: Option<String>,
    /// Run statements in an engine inside this process (used by the benchmark itself).
    #[arg(long, hide = true, value_name = "JSON")]
    pub embedded: Option<String>,
}

impl BenchArgs {
    /// Whether a system is to be run, if it is there.
    pub(crate) fn wants(&self, system: SystemName) -> bool {
        self.systems.is_empty() || self.systems.contains(&system)
    }
}

/// A memory limit given to every system in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// So many bytes.
    Bytes(u64),
    /// Three quarters of the machine: the statement runs in memory.
    All,
}

impl Limit {
    /// A limit of so many MiB.
    #[must_use]
    pub const fn mib(mib: u64) -> Self {
        Self::Bytes(mib << 20)
    }

    /// The bytes that a system is told.
    #[must_use]
    pub fn bytes(self, machine_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::All => machine_bytes / 4 * 3,
        }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{}", size(*bytes)),
            Self::All => write!(f, "all"),
        }
    }
}

/// Bytes for a reader: `64 MiB`, `1.5 GiB`.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a size for a reader")]
pub fn size(bytes: u64) -> String {
    let (unit, name) = if bytes >= 1 << 30 {
        (1_u64 << 30, "GiB")
    } else if bytes >= 1 << 20 {
        (1 << 20, "MiB")
    } else {
        (1 << 10, "KiB")
    };
    let value = bytes as f64 / unit as f64;
    if value >= 100.0 || (value - value.round()).abs() < 0.005 {
        format!("{value:.0} {name}")
    } else {
        format!("{value:.1} {name}")
    }
}

/// Reads a scale factor.
fn parse_scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text
        .parse()
        .map_err(|_| format!("`{text}` is not a number"))?;
    if (0.001..=1000.0).contains(&scale) {
        Ok(scale)
    } else {
        Err("a scale factor is between 0.001 and 1000".to_owned())
    }
}

/// Reads `64M`, `1.5G`, `500000` or `all`.
fn parse_limit(text: &str) -> Result<Limit, String> {
    if text.eq_ignore_ascii_case("all") {
        return Ok(Limit::All);
    }
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: f64 = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024.0 * 1024.0,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        other => return Err(format!("unknown unit `{other}`: use K, M, G or `all`")),
    };
    let value: f64 = digits
        .parse()
        .map_err(|_| format!("`{text}` is not a size"))?;
    if !(value > 0.0 && value * unit < 1e15) {
        return Err(format!("`{text}` is not a size that a machine has"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be positive and below 1e15"
    )]
    Ok(Limit::Bytes((value * unit) as u64))
}
