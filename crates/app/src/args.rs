//! The command line, exactly as `mayfly --help` prints it.
//!
//! **Owns** the names of commands and options. **Never** decides a default that a configuration
//! file may change; that is `config`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Deserialize;

/// Temporary tables without the cliff: a MySQL-compatible SQL engine that spills.
#[derive(Debug, Parser)]
#[command(
    name = "mayfly",
    version,
    propagate_version = true,
    max_term_width = 100
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run SQL in this process; interactive when a terminal gives neither -e nor FILE
    Sql(SqlArguments),
    /// Serve MySQL clients
    Serve(ServeArguments),
    /// Say who may connect to a server
    User(UserArguments),
    /// Run a benchmark, with other systems beside it where they are installed
    Bench(mayfly_bench::BenchArgs),
}

/// Options of the engine, the same for every command that opens one.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Engine")]
pub struct EngineArguments {
    /// Memory for everything temporary: a size (64M, 2G) or a share of the machine's (50%)
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Memory of the whole process beyond which the largest statement ends: a size, a share of the
    /// machine's, or 0 for none [default: a quarter above --memory, and at least 256M]
    #[arg(long, value_name = "SIZE")]
    pub resident_limit: Option<String>,
    /// Directory of the temporary space; may be repeated [default: the system's]
    #[arg(long, value_name = "DIR")]
    pub temp_dir: Vec<PathBuf>,
    /// Largest size of the temporary space on disk, such as 20G
    #[arg(long, value_name = "SIZE")]
    pub temp_limit: Option<String>,
    /// How the temporary space reads and writes
    #[arg(long, value_enum)]
    pub temp_io: Option<TempIo>,
    /// Size of its pages [default: chosen from the memory]
    #[arg(long, value_enum, value_name = "SIZE")]
    pub page_size: Option<PageSize>,
    /// Threads that compute [default: one per core]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// TOML file with the same names as keys (memory = "64M", temp-dir = ["/fast"])
    #[arg(long, value_name = "FILE", overrides_with = "config")]
    pub config: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TempIo {
    /// O_DIRECT, past the page cache of the system
    Direct,
    /// pread and pwrite through the page cache
    Buffered,
    /// Reads from a capped memory mapping
    Mmap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
pub enum PageSize {
    /// 4 KiB
    #[value(name = "4K")]
    #[serde(rename = "4K")]
    K4,
    /// 16 KiB
    #[value(name = "16K")]
    #[serde(rename = "16K")]
    K16,
    /// 64 KiB
    #[value(name = "64K")]
    #[serde(rename = "64K")]
    K64,
    /// 256 KiB
    #[value(name = "256K")]
    #[serde(rename = "256K")]
    K256,
}

#[derive(Debug, Args)]
pub struct SqlArguments {
    /// Run this SQL and leave; may be repeated
    #[arg(short = 'e', long = "execute", value_name = "SQL")]
    pub execute: Vec<String>,
    /// Run the SQL of this file and leave ("-" is standard input)
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// How rows are written [default: table on a terminal, tsv otherwise]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Tab-separated rows, as the mysql client's -B: short for --format tsv
    #[arg(short = 'B', long, conflicts_with_all = ["format", "table"])]
    pub batch: bool,
    /// Boxes even when nobody looks, as the mysql client's -t: short for --format table
    #[arg(short = 't', long, conflicts_with = "format")]
    pub table: bool,
    /// Rows without column names (JSON keeps them)
    #[arg(short = 'N', long)]
    pub skip_column_names: bool,
    /// After each statement, its figures on standard error
    #[arg(long, value_enum, value_name = "FORMAT", num_args = 0..=1, require_equals = true,
          default_missing_value = "text")]
    pub stats: Option<StatsFormat>,
    /// Show the results at a prompt in a pager: in CMD, or, where they do not fit the terminal, in
    /// $PAGER or less [default: in $PAGER, if it is set]
    #[arg(long, value_name = "CMD", num_args = 0..=1, require_equals = true,
          default_missing_value = "")]
    pub pager: Option<String>,
    /// No pager at a prompt, whatever PAGER says
    #[arg(long, conflicts_with = "pager")]
    pub skip_pager: bool,
    /// Rows of a result that a prompt shows without a pager; 0 for all of them [default: 1000]
    #[arg(long, value_name = "N")]
    pub max_rows: Option<u64>,
    /// What becomes of boxes that are wider than the terminal [default at a prompt: vertical, or
    /// whole in a pager]
    #[arg(long, value_enum, value_name = "HOW")]
    pub wide_rows: Option<WideRows>,
    /// One column per line where boxes are too wide, as the mysql client's: short for --wide-rows
    /// vertical
    #[arg(long, conflicts_with = "wide_rows")]
    pub auto_vertical_output: bool,
    /// Go on after an error of a file, a pipe or -e
    #[arg(short = 'f', long)]
    pub force: bool,
    #[command(flatten)]
    pub engine: EngineArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Boxes, as the mysql client draws them
    Table,
    /// Tab-separated with escapes, byte for byte as `mysql -B`
    Tsv,
    /// Comma-separated (RFC 4180); NULL is an empty field, an empty text is ""
    Csv,
    /// One JSON object a line
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WideRows {
    /// They turn: one column per line
    Vertical,
    /// Their widest columns are cut
    Cut,
    /// They stay as they are, and their lines wrap
    Whole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StatsFormat {
    /// One line for people
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Debug, Args)]
pub struct ServeArguments {
    // What mayfly.service gives, /etc/default/mayfly may give once more: the last one counts.
    /// TCP port
    #[arg(long, default_value_t = 3307)]
    pub port: u16,
    /// Unix socket
    #[arg(long, value_name = "FILE", overrides_with = "socket")]
    pub socket: Option<PathBuf>,
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    pub bind: String,
    /// Users and what their passwords are compared with; see 'mayfly user'. Without it, only your
    /// own processes on this machine may connect
    #[arg(long, value_name = "FILE", overrides_with = "users")]
    pub users: Option<PathBuf>,
    /// Certificate for TLS
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Key for TLS
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Log of statements that take longer than `long_query_time`, in MariaDB's format
    #[arg(long, value_name = "FILE")]
    pub slow_log: Option<PathBuf>,
    /// Ask clients for mysql_native_password first, as old ones want it [default:
    /// caching_sha2_password]
    #[arg(long)]
    pub native_passwords: bool,
    /// Port of this machine where Prometheus reads the status counters [default: none]
    #[arg(long, value_name = "PORT")]
    pub metrics_port: Option<u16>,
    /// Directory whose files statements may read [default: none]
    #[arg(long, value_name = "DIR")]
    pub secure_file_priv: Option<PathBuf>,
    /// What is logged on standard error [default: what RUST_LOG says, or else warn]
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub log_level: Option<LogLevel>,
    /// How it is logged
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub log_format: StatsFormat,
    #[command(flatten)]
    pub engine: EngineArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Nothing
    Off,
    /// Statements that crashed
    Error,
    /// Clients that were refused or went away amid something
    Warn,
    /// Start, stop, and connections that were killed
    Info,
    /// Clients that come
    Debug,
}

#[derive(Debug, Args)]
pub struct UserArguments {
    #[command(subcommand)]
    pub command: UserCommand,
}

#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Add a user to a users file, or change its password; the password is asked for, or read from
    /// standard input. A server that runs reads the file at FLUSH PRIVILEGES and SIGHUP
    Add(AddUserArguments),
}

#[derive(Debug, Args)]
pub struct AddUserArguments {
    /// Name of the user
    pub name: String,
    /// The users file; made if there is none
    #[arg(long, value_name = "FILE")]
    pub users: PathBuf,
    /// Keep the password for mysql_native_password, for clients that know nothing else
    #[arg(long)]
    pub native: bool,
    /// A user without a password
    #[arg(long)]
    pub no_password: bool,
}
