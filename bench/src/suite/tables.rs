//! tables: the structures of tables, each beside what the machine allows.
//!
//! Owns: the order and the amounts. The limits are those of "Physical limits" in the design:
//! constants of this machine (a dependent load, a random one, reading and copying memory), measured
//! in the same rounds, times the loads and bytes that a structure cannot do without.

mod bench;
mod dictionary;
mod heap;
mod lines;
mod machine;
mod tree;

use std::path::Path;

use crate::args::BenchArgs;
use crate::error::{BenchError, data_error};
use crate::results::Results;

use bench::Bench;
pub(crate) use lines::Line;
use machine::Machine;

pub(crate) fn run(
    args: &BenchArgs,
    temp_dir: &Path,
    results: &mut Results,
) -> Result<(), BenchError> {
    let machine = Machine::new().map_err(data_error("measuring the machine"))?;
    let mut bench = Bench {
        machine,
        rounds: args.runs.unwrap_or(if args.full { 9 } else { 5 }).max(1),
        only: args.only.clone(),
        threads: args.threads,
        temp_dir: temp_dir.to_owned(),
        results,
    };
    let sheet = bench.machine.sheet();
    bench.keep_sheet(sheet);
    dictionary::run(&mut bench)?;
    let entries = match (args.rows, args.full) {
        (Some(rows), _) => vec![rows.max(1_000)],
        (None, false) => vec![10_000_000],
        (None, true) => vec![1_000_000, 10_000_000, 40_000_000],
    };
    for entries in entries {
        tree::run(&mut bench, entries).map_err(data_error("measuring B+trees"))?;
    }
    let rows = args.rows.unwrap_or(1_000_000).clamp(1_000, 1_000_000);
    heap::run(&mut bench, rows).map_err(data_error("measuring tables"))
}
