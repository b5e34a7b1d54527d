//! What seed2 shows: queries per second by threads, ratios to MyISAM, figures to reach.

use super::names::{MAYFLY, MMAP, PREAD, QUARTERS};
use super::workloads::WORKLOADS;
use crate::loads::{Rate, kept};
use crate::report::text::print_sheet;
use crate::results::{Figure, Results, Sheet};

/// Least of MyISAM's rate.
const LEAST: f64 = 1.0;

fn rate(results: &Results, load: &str, clients: usize, contender: &str) -> Option<f64> {
    results.load_median(load, clients, contender, Rate::queries_per_second)
}

fn number(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.2}"))
}

fn ratio(above: Option<f64>, below: Option<f64>) -> Option<f64> {
    above.zip(below).map(|(above, below)| above / below)
}

/// The table of the page, with columns of our own.
pub(super) fn rates(results: &mut Results, load: &str, clients: &[usize]) {
    let mut columns = vec!["threads", "pread", "mmap", "mmap/pread"];
    columns.extend(["Mayfly", "Mayfly/pread", "Mayfly/mmap"]);
    columns.extend(QUARTERS.map(|(label, _)| label));
    let mut sheet = Sheet::new(&format!("{load}, queries/s"), &columns);
    for &clients in clients {
        let [pread, mmap, ours] =
            [PREAD, MMAP, MAYFLY].map(|who| rate(results, load, clients, who));
        let mut row = vec![clients.to_string(), number(pread), number(mmap)];
        row.push(number(ratio(mmap, pread)));
        row.push(number(ours));
        row.push(number(ratio(ours, pread)));
        row.push(number(ratio(ours, mmap)));
        row.extend(QUARTERS.map(|(who, _)| number(rate(results, load, clients, who))));
        sheet.rows.push(row);
    }
    print_sheet(&sheet);
    results.sheets.push(sheet);
}

/// The rates in a quarter of the memory, and what each query moved from and to the device.
pub(super) fn beyond(results: &mut Results, clients: &[usize]) {
    let mut columns = vec!["workload".to_owned(), "threads".to_owned()];
    for (_, way) in QUARTERS {
        columns.push(format!("{way} / in memory"));
        columns.push(format!("{way}: device bytes read"));
        columns.push("written".to_owned());
    }
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let title = "in a quarter of the memory: rate to that in memory, bytes a query";
    let mut sheet = Sheet::new(title, &columns);
    for workload in &WORKLOADS {
        for &clients in clients {
            let load = workload.name;
            let inside = rate(results, load, clients, MAYFLY);
            let mut row = vec![load.to_owned(), clients.to_string()];
            for (who, _) in QUARTERS {
                let bytes = |value: fn(&Rate) -> u64| {
                    let each = |rate: &Rate| value(rate) as f64 / rate.queries.max(1) as f64;
                    let found = results.load_median(load, clients, who, each);
                    found.map_or("-".to_owned(), |bytes| format!("{bytes:.0}"))
                };
                row.push(number(ratio(rate(results, load, clients, who), inside)));
                row.push(bytes(|rate| rate.read_bytes));
                row.push(bytes(|rate| rate.written_bytes));
            }
            if row[2..].iter().any(|text| text != "-") {
                sheet.rows.push(row);
            }
        }
    }
    if sheet.rows.is_empty() {
        return;
    }
    print_sheet(&sheet);
    results.sheets.push(sheet);
}

/// The figures to reach, and those that every benchmark has.
pub(super) fn figures(results: &mut Results, clients: &[usize]) {
    for workload in &WORKLOADS {
        for &clients in clients {
            let load = workload.name;
            let ours = rate(results, load, clients, MAYFLY);
            let theirs = [PREAD, MMAP].map(|who| rate(results, load, clients, who));
            let best = theirs.into_iter().flatten().max_by(f64::total_cmp);
            if let Some(found) = ratio(ours, best) {
                let what = format!("{load}, {clients} threads, Mayfly / MyISAM's better way");
                results.figures.push(Figure::at_least(what, found, LEAST));
            }
        }
    }
    kept(results);
}
