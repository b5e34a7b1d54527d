//! Results as text on standard output.
//!
//! Owns: the lines printed when a cell is finished and the tables at the end.

use crate::args::size;
use crate::results::{Cell, Check, Figure, Outcome, Results, Sheet};

/// Prints a cell as soon as it is finished.
pub(crate) fn print_cell(cell: &Cell) {
    println!("\n{}, memory {}", cell.case, cell.limit_label());
    for entry in &cell.results {
        println!("  {:<24} {}", entry.contender, line(&entry.outcome));
    }
}

/// One contender in one line.
fn line(outcome: &Outcome) -> String {
    let measured = match outcome {
        Outcome::Measured(measured) => measured,
        Outcome::Skipped(reason) => return format!("skipped: {reason}"),
        Outcome::Failed(reason) => return format!("failed: {reason}"),
    };
    let mut text = format!("{:>9}", seconds(measured.median_s));
    if measured.runs_s.len() > 1 {
        let least = measured
            .runs_s
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min);
        let most = measured.runs_s.iter().copied().fold(0.0, f64::max);
        text.push_str(&format!(" ({least:.2} to {most:.2})"));
    }
    if measured.peak_bytes > 0 {
        let anonymous = size(measured.anonymous_bytes);
        text.push_str(&format!(
            ", peak {} ({anonymous} own)",
            size(measured.peak_bytes)
        ));
    }
    if let Some(bytes) = measured.cap_peak_bytes {
        text.push_str(&format!(", with page cache {}", size(bytes)));
    }
    if let Some(bytes) = measured.spilled_bytes.filter(|bytes| *bytes > 0) {
        text.push_str(&format!(", spilled {}", size(bytes)));
    }
    if measured.written_bytes > 0 {
        text.push_str(&format!(", device {}", size(measured.written_bytes)));
    }
    match &measured.check {
        Check::SameAs(peer) => text.push_str(&format!(", same rows as {peer}")),
        Check::Different(how) => text.push_str(&format!(", DIFFERENT ROWS: {how}")),
        Check::Unanswered(why) => text.push_str(&format!(", not compared: {why}")),
        Check::NotChecked => {}
    }
    text
}

/// Prints all cells as one table per benchmark, then the figures.
pub(crate) fn print_summary(results: &Results) {
    let contenders = results.contenders();
    if !results.cells.is_empty() {
        println!("\n{} in seconds (median)", results.benchmark);
        let width = results
            .cells
            .iter()
            .map(|cell| cell.case.len())
            .max()
            .unwrap_or(0)
            .max(4);
        let label = results
            .cells
            .iter()
            .map(|cell| cell.limit_label().len())
            .max()
            .unwrap_or(0);
        let label = label.max(6);
        print!("{:<width$}  {:>label$}", "case", "memory");
        for contender in &contenders {
            print!("  {contender:>12}");
        }
        println!();
        for cell in &results.cells {
            print!("{:<width$}  {:>label$}", cell.case, cell.limit_label());
            for contender in &contenders {
                let column = contender.len().max(12);
                print!("  {:>column$}", cell_text(cell, contender));
            }
            println!();
        }
    }
    if !results.figures.is_empty() {
        println!("\nfigures");
        for figure in &results.figures {
            println!("  {}", figure_text(figure));
        }
    }
}

/// Prints a plain table.
pub(crate) fn print_sheet(sheet: &Sheet) {
    let widths: Vec<usize> = (0..sheet.columns.len())
        .map(|column| {
            let cells = sheet.rows.iter().map(|row| row[column].len());
            cells
                .chain([sheet.columns[column].len()])
                .max()
                .unwrap_or(0)
        })
        .collect();
    println!("\n{}", sheet.title);
    for row in std::iter::once(&sheet.columns).chain(&sheet.rows) {
        for (cell, width) in row.iter().zip(&widths) {
            print!("  {cell:>width$}");
        }
        println!();
    }
}

/// A time, or why there is none.
pub(crate) fn cell_text(cell: &Cell, contender: &str) -> String {
    let entry = cell
        .results
        .iter()
        .find(|entry| entry.contender == contender);
    match entry.map(|entry| &entry.outcome) {
        Some(Outcome::Measured(measured)) => {
            let wrong = matches!(measured.check, Check::Different(_));
            let mark = if wrong { " wrong" } else { "" };
            format!("{:.3}{mark}", measured.median_s)
        }
        Some(Outcome::Failed(_)) => "failed".to_owned(),
        Some(Outcome::Skipped(_)) => "skipped".to_owned(),
        None => "-".to_owned(),
    }
}

/// A figure with its limit.
pub(crate) fn figure_text(figure: &Figure) -> String {
    let found = if figure.found.fract() == 0.0 {
        format!("{:.0}", figure.found)
    } else {
        format!("{:.2}", figure.found)
    };
    let bound = match (figure.at_most, figure.at_least) {
        (Some(most), _) => format!("at most {most}"),
        (None, Some(least)) => format!("at least {least}"),
        (None, None) => return format!("{}: {found}", figure.what),
    };
    let reached = if figure.reached() == Some(true) {
        "reached"
    } else {
        "NOT reached"
    };
    format!("{}: {found} ({bound}: {reached})", figure.what)
}

fn seconds(value: f64) -> String {
    if value < 0.1 {
        format!("{:.1} ms", value * 1000.0)
    } else {
        format!("{value:.2} s")
    }
}
