//! The benchmarks of Mayfly: `mayfly bench NAME`.
//!
//! Owns: benchmark data, the drivers of all systems, cells of results, tables and the report.
//! Never: runs the engine in its own process. Mayfly is measured like its peers, as a child
//! process, so that the peak resident size is seen from outside; one such child is this program
//! again as its users embed it. Only `space` and `tables` call floors of Mayfly directly.
//!
//! ```text
//! suite (cases, figures) -> runner (turns, warm-up, checks) -> systems (drivers) -> child, cgroup
//!        |                        |
//!       data                results, state -> report
//!
//! suite::seed3 (lines of statements) -> scripts (turns, checks) -> scripts::process, ::wire
//! suite::seed2, ::seed4 (workloads) -> loads (turns, servers) -> loads::sysbench, ::slap
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod answer;
mod args;
mod cgroup;
mod child;
mod data;
mod digest;
mod error;
mod loads;
mod machine;
mod report;
mod results;
mod runner;
mod scripts;
mod state;
mod suite;
mod systems;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use args::{BenchArgs, Benchmark, Limit, SystemName};
pub use error::BenchError;

use error::{Context, data_error};
use results::Results;
use runner::{Runner, Settings};
use state::State;

/// Runs one benchmark and writes its results.
///
/// # Errors
/// When the benchmark cannot be set up. A system that fails is a result, not an error.
pub fn run(args: BenchArgs) -> Result<(), BenchError> {
    if let Some(request) = &args.stock_datafusion {
        return systems::run_stock(request);
    }
    if let Some(request) = &args.embedded {
        return scripts::run_embedded(request);
    }
    let benchmark = args
        .name
        .ok_or_else(|| BenchError::Setup("name a benchmark".to_owned()))?;
    let cache_dir = cache_dir(&args)?;
    let temp_dir = match &args.temp_dir {
        Some(dir) => dir.join(format!("mayfly-bench-{}", std::process::id())),
        None => cache_dir.join(format!("temp-{}", std::process::id())),
    };
    remove_left_behind(&cache_dir);
    fs::create_dir_all(&temp_dir).context(|| format!("creating {}", temp_dir.display()))?;
    let mut results = Results {
        benchmark: benchmark.name().to_owned(),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        machine: machine::describe(&temp_dir),
        ..Results::default()
    };
    let outcome = measure(&args, benchmark, cache_dir, &temp_dir, &mut results);
    // Whatever a killed peer left behind is ours to remove.
    let removed = fs::remove_dir_all(&temp_dir);
    outcome?;
    removed.context(|| format!("removing {}", temp_dir.display()))?;

    report::text::print_summary(&results);
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&results).map_err(data_error("writing JSON"))?;
        fs::write(path, text).context(|| format!("writing {}", path.display()))?;
    }
    if let Some(path) = &args.report {
        fs::write(path, report::html::page(&results))
            .context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn measure(
    args: &BenchArgs,
    benchmark: Benchmark,
    cache_dir: PathBuf,
    temp_dir: &Path,
    results: &mut Results,
) -> Result<(), BenchError> {
    for (name, value) in &results.machine {
        println!("{name}: {value}");
    }
    if benchmark == Benchmark::Space {
        return suite::space::run(args, temp_dir, results);
    }
    if benchmark == Benchmark::Clients {
        return suite::clients::run(args, temp_dir, results);
    }
    if benchmark == Benchmark::Neighbours {
        return suite::neighbours::run(args, &cache_dir, temp_dir, results);
    }
    if benchmark == Benchmark::Planning {
        return suite::planning::run(args, &cache_dir, temp_dir, results);
    }
    if benchmark == Benchmark::Soak {
        return suite::soak::run(args, temp_dir, results);
    }
    if benchmark == Benchmark::Tables {
        return suite::tables::run(args, temp_dir, results);
    }
    let suffix = if args.full { "-full" } else { "" };
    let state_file = cache_dir.join(format!("{}{suffix}.jsonl", benchmark.name()));
    let settings = settings(args, benchmark, cache_dir, temp_dir);
    let options = format!(
        "systems {:?}, runs {}, threads {}, limits {:?}, scales {:?}, rows {:?}, only {:?}",
        args.systems,
        settings.runs,
        settings.threads,
        args.limits,
        args.scale,
        args.rows,
        args.only
    );
    match benchmark {
        Benchmark::Seed3 => {
            let state = State::open(&state_file, &options, args.resume)?;
            return suite::seed3::run(&settings, &args.systems, args.full, state, results);
        }
        Benchmark::Subqueries => {
            let state = State::open(&state_file, &options, args.resume)?;
            return suite::subqueries::run(&settings, &args.systems, state, results);
        }
        Benchmark::Seed2 | Benchmark::Seed4 => {
            let options = format!(
                "{options}, seconds {:?}, queries {:?}, clients {:?}",
                args.seconds, args.queries, args.clients
            );
            let state = State::open(&state_file, &options, args.resume)?;
            if benchmark == Benchmark::Seed2 {
                return suite::seed2::run(&settings, args, state, results);
            }
            return suite::seed4::run(&settings, args, state, results);
        }
        _ => {}
    }
    let state = State::open(&state_file, &options, args.resume)?;
    let mut runner = Runner::new(settings, &args.systems, state, results);
    match benchmark {
        Benchmark::Seed0 => suite::seed0::run(&mut runner, args.full, results)?,
        Benchmark::Seed1 => suite::seed1::run(&mut runner, args.full, results)?,
        Benchmark::Groupings => {
            suite::groupings::run(&mut runner, args.full, &args.scale, results)?;
        }
        Benchmark::Pages => suite::pages::run(&mut runner, args.full, results)?,
        Benchmark::Cliff => suite::cliff::run(&mut runner, args, results)?,
        Benchmark::Tpch => suite::tpch::run(&mut runner, args, results)?,
        Benchmark::Joins => suite::joins::run(&mut runner, args, results)?,
        Benchmark::Windows => suite::windows::run(&mut runner, args, results)?,
        Benchmark::Space
        | Benchmark::Tables
        | Benchmark::Clients
        | Benchmark::Neighbours
        | Benchmark::Planning
        | Benchmark::Subqueries
        | Benchmark::Soak
        | Benchmark::Seed2
        | Benchmark::Seed3
        | Benchmark::Seed4 => {}
    }
    results.common_figures();
    Ok(())
}

/// What the runners of cells, scripts and loads are told.
fn settings(
    args: &BenchArgs,
    benchmark: Benchmark,
    cache_dir: PathBuf,
    temp_dir: &Path,
) -> Settings {
    // A turn of a script or a load is many statements; a run of a cell is two.
    let many = matches!(
        benchmark,
        Benchmark::Seed2 | Benchmark::Seed3 | Benchmark::Seed4 | Benchmark::Subqueries
    );
    let patience = if many { 5 } else { 1 };
    Settings {
        runs: args.runs.unwrap_or(if args.full { 5 } else { 3 }).max(1),
        threads: args.threads,
        machine_bytes: machine::memory_bytes(),
        temp_dir: temp_dir.to_owned(),
        cache_dir,
        share_s: if args.full { 60.0 } else { 12.0 } * f64::from(patience),
        timeout: Duration::from_secs(if args.full { 600 } else { 120 }) * patience,
        check: !args.no_check,
        cap: !args.no_cap,
        only: args.only.clone(),
        limits: args.limits.clone(),
    }
}

/// Removes the temporary directories of interrupted benchmarks: their process is gone.
fn remove_left_behind(cache_dir: &Path) {
    for entry in fs::read_dir(cache_dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix("temp-"));
        let ended = process
            .and_then(|text| text.parse::<u32>().ok())
            .is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists());
        if ended && let Err(error) = fs::remove_dir_all(entry.path()) {
            eprintln!("{}: {error}", entry.path().display());
        }
    }
}

/// The chosen directory, or the user's cache.
fn cache_dir(args: &BenchArgs) -> Result<PathBuf, BenchError> {
    let dir = match (
        &args.cache_dir,
        std::env::var_os("XDG_CACHE_HOME"),
        std::env::var_os("HOME"),
    ) {
        (Some(dir), ..) => dir.clone(),
        (None, Some(cache), _) if !cache.is_empty() => PathBuf::from(cache).join("mayfly-bench"),
        (None, _, Some(home)) => PathBuf::from(home).join(".cache/mayfly-bench"),
        (None, _, None) => {
            return Err(BenchError::Setup(
                "give --cache-dir: HOME is not set".to_owned(),
            ));
        }
    };
    fs::create_dir_all(&dir).context(|| format!("creating {}", dir.display()))?;
    dir.canonicalize()
        .context(|| format!("using {}", dir.display()))
}
