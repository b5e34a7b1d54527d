//! space: what the device and the machine can do, and what the temp space makes of it.
//!
//! Owns: the order and the amounts. The measurements behind the constants of the space are its
//! own (`mayfly_space::measure`); the one here fills a whole space with twice its budget and
//! reads it back.

mod whole;

use std::path::Path;
use std::time::Duration;

use mayfly_space::measure::{self, MeasureOptions, Table};

use crate::args::BenchArgs;
use crate::error::{BenchError, data_error};
use crate::results::{Results, Sheet};

pub(crate) fn run(
    args: &BenchArgs,
    temp_dir: &Path,
    results: &mut Results,
) -> Result<(), BenchError> {
    let (options, budget_bytes, rounds) = if args.full {
        let options = MeasureOptions {
            dir: Some(temp_dir.to_owned()),
            point: Duration::from_secs(5),
            bytes: 4 << 30,
            quick: false,
        };
        (options, 1 << 30, 5)
    } else {
        let dir = Some(temp_dir.to_owned());
        (
            MeasureOptions {
                dir,
                ..MeasureOptions::default()
            },
            128 << 20,
            3,
        )
    };
    let wanted = |name: &str| {
        args.only
            .as_ref()
            .is_none_or(|only| name.contains(only.as_str()))
    };
    let mut keep = |sheet: Sheet| {
        crate::report::text::print_sheet(&sheet);
        results.sheets.push(sheet);
    };
    for (name, measure) in measure::ALL {
        if wanted(name) {
            keep(sheet(
                &measure(&options).map_err(data_error("measuring the machine"))?,
            ));
        }
    }
    if wanted("whole") {
        keep(whole::back_ends(
            temp_dir,
            budget_bytes,
            args.runs.unwrap_or(rounds).max(1),
        )?);
    }
    Ok(())
}

/// A table of the space, as text.
fn sheet(table: &Table) -> Sheet {
    let text = |cell: &measure::Cell| match cell {
        measure::Cell::Text(text) => text.clone(),
        measure::Cell::Count(count) => count.to_string(),
        measure::Cell::Value(value) if *value >= 100.0 => format!("{value:.0}"),
        measure::Cell::Value(value) => format!("{value:.2}"),
    };
    let mut sheet = Sheet::new(table.title, table.columns);
    sheet.rows = table
        .rows
        .iter()
        .map(|row| row.iter().map(text).collect())
        .collect();
    sheet
}
