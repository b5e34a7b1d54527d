//! planning: how long plans take to make, over depth and width.
//!
//! Owns: the sizes, how a plan is timed, the figures to be reached.
//!
//! Each statement is explained, not run, over a table of two rows: what EXPLAIN takes is the parser
//! and the planner. Shown is the median, and by which power of the size the time grew since the
//! size before: 1 is linear, 2 the square; where a time doubles with each level it goes up and up.
//! A statement that a server refuses shows its error, and how long it took to refuse; where that
//! was its limit of time, larger ones are not tried. All servers have the same limit.

mod contender;
mod statements;

use std::path::Path;
use std::time::Duration;

use crate::args::{BenchArgs, SystemName};
use crate::error::BenchError;
use crate::report::text::print_sheet;
use crate::results::{Figure, Results, Sheet};
use contender::{Contender, Taken};
use statements::{KINDS, Kind};

/// Seconds that a plan may take; the server's own default is six times as much.
const LIMIT_SECONDS: u64 = 5;
/// The limit is of processor time: a machine that does something else, too, shows more.
const SLACK: f64 = 1.5;

pub(crate) fn run(
    args: &BenchArgs,
    cache_dir: &Path,
    temp_dir: &Path,
    results: &mut Results,
) -> Result<(), BenchError> {
    let limit = Duration::from_secs(args.seconds.unwrap_or(LIMIT_SECONDS));
    let systems = [SystemName::Mayfly, SystemName::Mariadb];
    let systems = systems.into_iter().filter(|system| args.wants(*system));
    let mut contenders = Vec::new();
    for system in systems {
        let contender = Contender::start(system, args.threads, cache_dir, temp_dir, limit);
        contenders.extend(contender.map_err(BenchError::Setup)?);
    }
    let mut columns = vec!["statement".to_owned(), "size".to_owned()];
    for contender in &contenders {
        columns.push(format!("{} ms", contender.system.label()));
        columns.push("power".to_owned());
    }
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut sheet = Sheet::new("planning", &columns);
    for kind in &KINDS {
        let is_wanted = args.only.as_deref();
        if !is_wanted.is_none_or(|only| kind.name.contains(only)) {
            continue;
        }
        eprintln!("{} ...", kind.name);
        let longest =
            measure_kind(kind, &mut contenders, limit, &mut sheet).map_err(BenchError::Setup)?;
        results.figures.push(Figure::at_most(
            format!("{}: longest in ms", kind.name),
            longest.as_secs_f64() * 1000.0,
            Some(limit.as_secs_f64() * 1000.0 * SLACK),
        ));
    }
    print_sheet(&sheet);
    results.sheets.push(sheet);
    Ok(())
}

/// Adds the sizes of one kind; the longest time that Mayfly took.
fn measure_kind(
    kind: &Kind,
    contenders: &mut [Contender],
    limit: Duration,
    sheet: &mut Sheet,
) -> Result<Duration, String> {
    let mut before: Vec<Option<(usize, Taken)>> = contenders.iter().map(|_| None).collect();
    let mut longest = Duration::ZERO;
    for size in kind.sizes {
        let statement = format!("EXPLAIN {}", (kind.text)(*size));
        let mut row = vec![kind.name.to_owned(), size.to_string()];
        for (contender, before) in contenders.iter_mut().zip(&mut before) {
            let is_beyond = |(_, taken): &(usize, Taken)| taken.reached(limit);
            if before.as_ref().is_some_and(is_beyond) {
                row.extend(["not tried".to_owned(), String::new()]);
                continue;
            }
            let taken = contender.explain(&statement)?;
            if contender.system == SystemName::Mayfly {
                longest = longest.max(taken.median);
            }
            row.extend(cells(&taken, *size, before.as_ref()));
            *before = Some((*size, taken));
        }
        sheet.rows.push(row);
    }
    Ok(longest)
}

/// The time, and the power of the size with which it grew.
fn cells(taken: &Taken, size: usize, before: Option<&(usize, Taken)>) -> [String; 2] {
    let ms = taken.median.as_secs_f64() * 1000.0;
    if let Some(error) = &taken.refused {
        let words: String = error.chars().take(40).collect();
        return [format!("{ms:.1}: {words}"), String::new()];
    }
    let power = before.filter(|(_, before)| before.refused.is_none());
    let power = power.map(|(smaller, less)| {
        let times = taken.median.as_secs_f64() / less.median.as_secs_f64();
        times.ln() / (size as f64 / *smaller as f64).ln()
    });
    let power = power.map_or_else(String::new, |power| format!("{power:.1}"));
    [format!("{ms:.1}"), power]
}
