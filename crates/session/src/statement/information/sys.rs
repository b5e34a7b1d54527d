//! `sys`: views of `performance_schema` for people; those with `x$` have plain numbers.
//!
//! **Source**: names, order and spelling of MySQL 8.4's `sys` schema, version 2.1; behind the
//! columns of temporary tables stand two of our own.

use std::cmp::Reverse;

use mayfly_sql::digest::Digest;

use super::super::Job;
use super::performance::{moment, time_zone};
use super::system::Make;
use crate::digests::Figures;
use crate::listing::{Listing, declared_columns, some};
use crate::version::VERSION;

pub(super) const DATABASE: &str = "sys";

pub(super) const TABLES: [(&str, Make); 5] = [
    ("statement_analysis", |job| {
        statement_analysis(job, FOR_PEOPLE)
    }),
    ("statements_with_temp_tables", |job| {
        statements_with_temp_tables(job, FOR_PEOPLE)
    }),
    ("version", version),
    ("x$statement_analysis", |job| statement_analysis(job, PLAIN)),
    ("x$statements_with_temp_tables", |job| {
        statements_with_temp_tables(job, PLAIN)
    }),
];

/// The version of `sys` that the views are like.
const SYS_VERSION: &str = "2.1.3";

/// Characters of a statement that people are shown: `statement_truncate_len`.
const STATEMENT_LENGTH: usize = 64;

const ANALYSIS: &str = "query longtext, db varchar(64), full_scan varchar(1), \
    exec_count bigint unsigned, err_count bigint unsigned, warn_count bigint unsigned, \
    total_latency latency, max_latency latency, avg_latency latency, lock_latency latency, \
    cpu_latency latency, rows_sent bigint unsigned, rows_sent_avg bigint unsigned, \
    rows_examined bigint unsigned, rows_examined_avg bigint unsigned, \
    rows_affected bigint unsigned, rows_affected_avg bigint unsigned, \
    tmp_tables bigint unsigned, tmp_disk_tables bigint unsigned, rows_sorted bigint unsigned, \
    sort_merge_passes bigint unsigned, max_controlled_memory bytes, max_total_memory bytes, \
    digest varchar(64), first_seen timestamp(6), last_seen timestamp(6)";

const WITH_TEMP_TABLES: &str = "query longtext, db varchar(64), exec_count bigint unsigned, \
    total_latency latency, memory_tmp_tables bigint unsigned, disk_tmp_tables bigint unsigned, \
    avg_tmp_tables_per_query bigint unsigned, tmp_tables_to_disk_pct bigint unsigned, \
    first_seen timestamp(6), last_seen timestamp(6), digest varchar(64), \
    temp_bytes_written bytes, temp_bytes_read bytes";

/// How times, bytes and statements are spelled.
#[derive(Clone, Copy)]
struct Spelling {
    /// Whether times and bytes are numbers.
    is_plain: bool,
    latency: fn(u64) -> String,
    bytes: fn(u64) -> String,
    statement: fn(&str) -> String,
}

const FOR_PEOPLE: Spelling = Spelling {
    is_plain: false,
    latency: short_time,
    bytes: short_bytes,
    statement: short_statement,
};

const PLAIN: Spelling = Spelling {
    is_plain: true,
    latency: |value| value.to_string(),
    bytes: |value| value.to_string(),
    statement: str::to_owned,
};

fn version(_: &Job) -> Listing {
    let mut listing = Listing::declared("sys_version varchar(5), mysql_version varchar(60)");
    listing.push(vec![some(SYS_VERSION), some(VERSION)]);
    listing
}

fn statement_analysis(job: &Job, spelling: Spelling) -> Listing {
    let by_time = |figures: &Figures| {
        let time = figures.number("SUM_TIMER_WAIT");
        Some(Reverse((time, 0)))
    };
    view(job, ANALYSIS, spelling, by_time)
}

fn statements_with_temp_tables(job: &Job, spelling: Spelling) -> Listing {
    let by_tables = |figures: &Figures| {
        let tables = figures.number("SUM_CREATED_TMP_TABLES");
        let on_disk = figures.number("SUM_CREATED_TMP_DISK_TABLES");
        (tables > 0).then_some(Reverse((on_disk, tables)))
    };
    view(job, WITH_TEMP_TABLES, spelling, by_tables)
}

/// A view of the digests in an order; those without a place in it are left out.
fn view(
    job: &Job,
    declared: &'static str,
    spelling: Spelling,
    order: impl Fn(&Figures) -> Option<Reverse<(u64, u64)>>,
) -> Listing {
    let columns: Vec<(&str, &str)> = declared_columns(declared).collect();
    let zone = time_zone(job);
    let mut rows = Vec::new();
    let all = &job.connection.engine.shared().digests;
    all.each(|database, digest, figures| {
        let Some(place) = order(figures) else {
            return;
        };
        let cell = |&(name, declared): &(&str, &str)| match (name, declared) {
            ("query", _) => digest.map(|digest| (spelling.statement)(digest.text())),
            ("db", _) => database.map(str::to_owned),
            ("digest", _) => digest.map(Digest::hex),
            ("full_scan", _) => {
                let scans = figures.number("SUM_NO_INDEX_USED");
                some(if scans > 0 { "*" } else { "" })
            }
            ("first_seen", _) => Some(moment(figures, "FIRST_SEEN", zone)),
            ("last_seen", _) => Some(moment(figures, "LAST_SEEN", zone)),
            (name, "latency") => Some((spelling.latency)(number(figures, name))),
            (name, "bytes") => Some((spelling.bytes)(number(figures, name))),
            (name, _) => some(number(figures, name)),
        };
        let row: Vec<Option<String>> = columns.iter().map(cell).collect();
        rows.push((place, row));
    });
    rows.sort_by_key(|(place, _)| *place);
    let is_spelled = |column: &&(&str, &str)| matches!(column.1, "latency" | "bytes");
    let spelled: Vec<&str> = { columns.iter() }
        .filter(|column| spelling.is_plain && is_spelled(column))
        .map(|(name, _)| *name)
        .collect();
    let mut listing = Listing::declared(declared).with_numbers(&spelled);
    for (_, row) in rows {
        listing.push(row);
    }
    listing
}

/// A figure by the name that it has in the views.
fn number(figures: &Figures, name: &str) -> u64 {
    let count = figures.number("COUNT_STAR");
    let each = |column: &str| rounded(figures.number(column), count);
    let column = match name {
        "exec_count" => "COUNT_STAR",
        "err_count" => "SUM_ERRORS",
        "warn_count" => "SUM_WARNINGS",
        "total_latency" => "SUM_TIMER_WAIT",
        "max_latency" => "MAX_TIMER_WAIT",
        "avg_latency" => "AVG_TIMER_WAIT",
        "lock_latency" => "SUM_LOCK_TIME",
        "cpu_latency" => "SUM_CPU_TIME",
        "rows_sent" => "SUM_ROWS_SENT",
        "rows_examined" => "SUM_ROWS_EXAMINED",
        "rows_affected" => "SUM_ROWS_AFFECTED",
        "tmp_tables" | "memory_tmp_tables" => "SUM_CREATED_TMP_TABLES",
        "tmp_disk_tables" | "disk_tmp_tables" => "SUM_CREATED_TMP_DISK_TABLES",
        "rows_sorted" => "SUM_SORT_ROWS",
        "sort_merge_passes" => "SUM_SORT_MERGE_PASSES",
        "max_controlled_memory" => "MAX_CONTROLLED_MEMORY",
        "max_total_memory" => "MAX_TOTAL_MEMORY",
        "temp_bytes_written" => "MAYFLY_TEMP_BYTES_WRITTEN",
        "temp_bytes_read" => "MAYFLY_TEMP_BYTES_READ",
        "rows_sent_avg" => return each("SUM_ROWS_SENT"),
        "rows_examined_avg" => return each("SUM_ROWS_EXAMINED"),
        "rows_affected_avg" => return each("SUM_ROWS_AFFECTED"),
        "avg_tmp_tables_per_query" => return each("SUM_CREATED_TMP_TABLES"),
        _ => {
            let tables = figures.number("SUM_CREATED_TMP_TABLES");
            let on_disk = figures.number("SUM_CREATED_TMP_DISK_TABLES");
            return rounded(on_disk * 100, tables);
        }
    };
    figures.number(column)
}

/// A quotient, rounded to the nearest; 0 where there is none.
fn rounded(value: u64, by: u64) -> u64 {
    (value + by / 2).checked_div(by).unwrap_or(0)
}

/// Picoseconds as `sys.format_time` writes them.
pub(crate) fn short_time(picos: u64) -> String {
    const UNITS: [(u64, &str); 8] = [
        (604_800_000_000_000_000, "w"),
        (86_400_000_000_000_000, "d"),
        (3_600_000_000_000_000, "h"),
        (60_000_000_000_000, "m"),
        (1_000_000_000_000, "s"),
        (1_000_000_000, "ms"),
        (1_000_000, "us"),
        (1_000, "ns"),
    ];
    match UNITS.iter().find(|(least, _)| picos >= *least) {
        Some((least, unit)) => format!("{:.2} {unit}", picos as f64 / *least as f64),
        None => format!("{picos} ps"),
    }
}

/// Bytes as `FORMAT_BYTES` writes them.
pub(crate) fn short_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut units = (1..).zip(UNITS);
    let unit = units.find(|(power, _)| bytes >> (10 * power) < 1024);
    match unit {
        Some((power, unit)) if bytes >= 1024 => {
            let least = (1_u64 << (10 * power)) as f64;
            format!("{:.2} {unit}", bytes as f64 / least)
        }
        _ => format!("{bytes:>4} bytes"),
    }
}

/// A statement as `sys.format_statement` writes it: a long one without its middle.
fn short_statement(text: &str) -> String {
    let characters: Vec<char> = text.replace('\n', " ").chars().collect();
    if characters.len() <= STATEMENT_LENGTH {
        return characters.into_iter().collect();
    }
    let part = STATEMENT_LENGTH / 2 - 2;
    let (first, last) = (&characters[..part], &characters[characters.len() - part..]);
    let parts = first.iter().chain(&[' ', '.', '.', '.', ' ']).chain(last);
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_spelled_as_in_sys() {
        for (picos, expected) in [
            (0, "0 ps"),
            (999, "999 ps"),
            (1_500, "1.50 ns"),
            (16_750_000_000_000, "16.75 s"),
            (90_000_000_000_000, "1.50 m"),
            (604_800_000_000_000_000, "1.00 w"),
        ] {
            assert_eq!(short_time(picos), expected);
        }
        for (bytes, expected) in [
            (0, "   0 bytes"),
            (512, " 512 bytes"),
            (1024, "1.00 KiB"),
            (3 << 19, "1.50 MiB"),
            (u64::MAX, "16.00 EiB"),
        ] {
            assert_eq!(short_bytes(bytes), expected);
        }
        assert_eq!(short_statement("SELECT\n?"), "SELECT ?");
        let long = short_statement(&"abc".repeat(30));
        assert_eq!(long.len(), STATEMENT_LENGTH + 1);
        assert!(long.contains(" ... "));
        assert_eq!((rounded(5, 2), rounded(4, 3), rounded(1, 0)), (3, 1, 0));
    }
}
