//! From arguments and the configuration file to the engine's options.
//!
//! **Owns** the defaults of this program and the rule that an argument beats the file.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use mayfly_session::{Engine, EngineOptions, IoMode, PageClass, limit_heaps};
use mayfly_types::MySqlError;
use serde::Deserialize;

use crate::args::{EngineArguments, Format, PageSize, StatsFormat, TempIo, WideRows};
use crate::size;

/// Memory when nobody says anything.
const DEFAULT_MEMORY: &str = "50%";

/// The keys of the configuration file: the long options.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    memory: Option<String>,
    resident_limit: Option<String>,
    temp_dir: Option<Directories>,
    temp_limit: Option<String>,
    temp_io: Option<TempIo>,
    page_size: Option<PageSize>,
    threads: Option<usize>,
    format: Option<Format>,
    stats: Option<Stats>,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    skip_column_names: bool,
    pager: Option<PagerKey>,
    max_rows: Option<u64>,
    wide_rows: Option<WideRows>,
}

/// `true` is the same as the option without a value, `false` the same as `--skip-pager`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "pager must be a command, true or false")]
pub enum PagerKey {
    On(bool),
    Command(String),
}

/// `true` is the same as the option without a value.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "stats must be \"text\", \"json\", true or false"
)]
enum Stats {
    On(bool),
    Format(StatsFormat),
}

#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "temp-dir must be a directory or a list of directories"
)]
enum Directories {
    One(PathBuf),
    Several(Vec<PathBuf>),
}

/// What the program runs with.
pub struct Config {
    pub engine: EngineOptions,
    /// Threads that compute.
    pub threads: usize,
    /// The format that the file asks for.
    pub format: Option<Format>,
    /// The figures that the file asks for.
    pub stats: Option<StatsFormat>,
    /// Whether the file says to go on after an error.
    pub force: bool,
    /// Whether the file says to leave out the names of columns.
    pub skip_column_names: bool,
    /// The pager that the file asks for.
    pub pager: Option<PagerKey>,
    /// Rows that a prompt shows, if the file says it.
    pub max_rows: Option<u64>,
    /// What the file says of boxes that are too wide.
    pub wide_rows: Option<WideRows>,
}

impl Config {
    /// Reads the file that `arguments` name, if any, and puts the arguments over it.
    pub fn load(arguments: &EngineArguments) -> Result<Self> {
        let file = match &arguments.config {
            Some(path) => File::read(path)?,
            None => File::default(),
        };
        let memory = arguments.memory.as_deref().or(file.memory.as_deref());
        let machine_bytes = size::machine_memory_bytes()?;
        let memory_bytes = size::parse_share(memory.unwrap_or(DEFAULT_MEMORY), machine_bytes)
            .context("--memory")?;
        let resident_limit = arguments.resident_limit.as_deref();
        let resident_limit = resident_limit.or(file.resident_limit.as_deref());
        let temp_limit = arguments
            .temp_limit
            .as_deref()
            .or(file.temp_limit.as_deref());
        let temp_dirs = match file.temp_dir {
            _ if !arguments.temp_dir.is_empty() => arguments.temp_dir.clone(),
            Some(Directories::One(dir)) => vec![dir],
            Some(Directories::Several(dirs)) => dirs,
            None => Vec::new(),
        };
        let threads = match arguments.threads.or(file.threads) {
            Some(0) => bail!("--threads must be at least 1"),
            Some(threads) => threads,
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        let io = match arguments.temp_io.or(file.temp_io) {
            Some(TempIo::Direct) | None => IoMode::Direct,
            Some(TempIo::Buffered) => IoMode::Buffered,
            Some(TempIo::Mmap) => IoMode::Mmap,
        };
        let page_size = arguments.page_size.or(file.page_size);
        let engine = EngineOptions {
            memory_bytes,
            temp_dirs,
            temp_limit_bytes: temp_limit
                .map(size::parse_bytes)
                .transpose()
                .context("--temp-limit")?,
            io,
            resident_max_bytes: match resident_limit {
                Some("0") => None,
                Some(limit) => {
                    Some(size::parse_share(limit, machine_bytes).context("--resident-limit")?)
                }
                None => Some(resident_max_bytes(memory_bytes, machine_bytes)),
            },
            page_class: page_size.map(|size| match size {
                PageSize::K4 => PageClass::K4,
                PageSize::K16 => PageClass::K16,
                PageSize::K64 => PageClass::K64,
                PageSize::K256 => PageClass::K256,
            }),
            threads,
            ..EngineOptions::default()
        };
        Ok(Self {
            engine,
            threads,
            format: file.format,
            stats: match file.stats {
                None | Some(Stats::On(false)) => None,
                Some(Stats::On(true)) => Some(StatsFormat::Text),
                Some(Stats::Format(format)) => Some(format),
            },
            force: file.force,
            skip_column_names: file.skip_column_names,
            pager: file.pager,
            max_rows: file.max_rows,
            wide_rows: file.wide_rows,
        })
    }
}

/// What the process may have if nobody says it: more than the budget and what is stated to lie
/// beyond it, and less than what the machine or the control group has, where the kernel ends it.
fn resident_max_bytes(memory_bytes: u64, machine_bytes: u64) -> u64 {
    /// What is stated to lie beyond the budget: the program and its threads.
    const STATED_BYTES: u64 = 96 << 20;
    const SLACK_BYTES_MIN: u64 = 256 << 20;
    let roomy = memory_bytes + (memory_bytes / 4).max(SLACK_BYTES_MIN);
    let of_machine = machine_bytes - machine_bytes / 20;
    roomy.min(of_machine).max(memory_bytes + STATED_BYTES)
}

/// Starts the engine, with no more heaps than suit its memory.
///
/// # Errors
/// Where it cannot be started, with the options as the user writes them.
pub fn open(options: EngineOptions) -> Result<Engine> {
    limit_heaps(options.memory_bytes);
    Engine::open(options).map_err(by_option)
}

fn by_option(error: MySqlError) -> anyhow::Error {
    let Some((option, reason)) = error
        .message
        .strip_prefix("option ")
        .and_then(|rest| rest.split_once(": "))
    else {
        return anyhow::Error::new(error);
    };
    let option = match option {
        "memory_bytes" => "memory",
        "temp_dirs" => "temp-dir",
        "temp_limit_bytes" => "temp-limit",
        "page_class" => "page-size",
        "io" => "temp-io",
        other => other,
    };
    anyhow::anyhow!("--{option}: {reason}")
}

impl File {
    fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("reading the configuration '{}'", path.display()))?;
        toml::from_str(&text).with_context(|| format!("in the configuration '{}'", path.display()))
    }
}
