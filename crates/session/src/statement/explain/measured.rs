//! What EXPLAIN ANALYZE tells of the temporary tables of a statement, and why they spilled.

use std::time::Duration;

use mayfly_exec::{TempTable, Why};
use mayfly_space::Counters;

use crate::listing::{Listing, some};
use crate::statement::information::{short_bytes, short_time};

/// The limits that a statement ran under.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The budget of the engine.
    pub(super) memory_bytes: u64,
    /// What `tmp_table_size` and `max_heap_table_size` leave to one temporary table.
    pub(super) table_bytes: Option<u64>,
    /// What the tables take that the statement reads: they share the budget.
    pub(super) read_bytes: u64,
}

/// What each temporary table cost, as a table.
pub(super) fn listing(tables: &[TempTable], limits: Limits) -> Listing {
    let mut listing = Listing::declared(
        "table varchar(64), why varchar(64), rows bigint unsigned, memory_bytes bigint unsigned, \
         limit_bytes bigint unsigned, needed_bytes bigint unsigned, \
         disk_bytes_written bigint unsigned, disk_bytes_read bigint unsigned, \
         passes bigint unsigned, write_wait_ms decimal(20,3), read_wait_ms decimal(20,3), \
         on_disk varchar(3)",
    );
    let millis = |nanos: u64| some(format!("{:.3}", nanos as f64 / 1e6));
    for (index, table) in tables.iter().enumerate() {
        listing.push(vec![
            some(format!("<temporary{}>", index + 1)),
            some(table.why.text()),
            some(table.rows),
            some(table.memory_bytes),
            some(limits.of(table)),
            some(table.live_bytes),
            some(table.disk_bytes_written),
            some(table.disk_bytes_read),
            some(table.passes),
            millis(table.write_wait_nanos),
            millis(table.read_wait_nanos),
            some(if table.on_disk { "YES" } else { "NO" }),
        ]);
    }
    listing
}

/// The same as lines: one for each temporary table, and one more for each that spilled.
pub(super) fn lines(tables: &[TempTable], limits: Limits) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, table) in tables.iter().enumerate() {
        let mut line = format!(
            "Temporary table <temporary{}> for {}: rows={}, memory={}, limit={}, passes={}, \
             on_disk={}",
            index + 1,
            table.why.text(),
            table.rows,
            bytes(table.memory_bytes),
            limits.text(table),
            table.passes,
            if table.on_disk { "YES" } else { "NO" },
        );
        if table.disk_bytes_written > 0 {
            line.push_str(&format!(
                ", disk_written={}, disk_read={}, write_wait={}, read_wait={}",
                bytes(table.disk_bytes_written),
                bytes(table.disk_bytes_read),
                time(table.write_wait_nanos),
                time(table.read_wait_nanos),
            ));
        }
        lines.push(line);
        if table.on_disk {
            let all: u64 = tables.iter().map(|table| table.live_bytes).sum();
            let others_bytes = all - table.live_bytes + limits.read_bytes;
            lines.push(format!(
                "    Spilled: {}",
                limits.reason(table, others_bytes)
            ));
        }
    }
    lines
}

/// What the statement took as a whole.
pub(super) fn summary(took: Duration, counters: &Counters, limits: Limits) -> String {
    let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    format!(
        "Statement: time={}, memory={}, budget={}, write_wait={}, read_wait={}",
        time(took),
        bytes(counters.peak_bytes),
        bytes(limits.memory_bytes),
        time(counters.wait_nanos),
        time(counters.read_wait_nanos),
    )
}

impl Limits {
    /// The most bytes that a temporary table could have in memory, all its partitions together.
    fn of(self, table: &TempTable) -> u64 {
        table.limit_bytes.min(self.memory_bytes)
    }

    /// The same as a text, with what it is a limit of where the table had more than that: limits of
    /// tables are for their pages, those of operators for what cannot be evicted.
    fn text(self, table: &TempTable) -> String {
        let limit = self.of(table);
        let of_what = match self.table_bytes {
            _ if table.memory_bytes <= limit => "",
            Some(cap) if limit <= cap => " of pages",
            _ => " of pinned pages",
        };
        format!("{}{of_what}", bytes(limit))
    }

    /// The budget that would keep a temporary table in memory beside so many bytes of others.
    fn wanted_bytes(self, table: &TempTable, others_bytes: u64) -> u64 {
        let needed = match table.why {
            // What a sort wrote has no more beside it what finds its rows in memory.
            Why::OrderBy | Why::OrderByLimit => table.live_bytes.saturating_mul(2),
            _ => table.live_bytes,
        };
        // An operator leaves a part of the budget to others. With more of it, it also has larger
        // buffers for merges and output; an eighth more is room for these.
        let wanted = u128::from(needed) * u128::from(self.memory_bytes);
        let wanted = wanted.div_ceil(u128::from(self.of(table).max(1)));
        let wanted = wanted + wanted / 8 + u128::from(others_bytes);
        u64::try_from(wanted.next_multiple_of(1 << 20)).unwrap_or(u64::MAX)
    }

    /// Why a temporary table spilled beside so many bytes of other tables of the statement, and
    /// what would have kept it in memory.
    fn reason(self, table: &TempTable, others_bytes: u64) -> String {
        let (limit, needed) = (self.of(table), table.live_bytes);
        let needs = format!("it had {} of rows", bytes(needed));
        let wanted = self.wanted_bytes(table, others_bytes);
        if needed <= limit {
            let advice = match wanted <= self.memory_bytes {
                true => String::new(),
                false => format!(
                    "; a budget of about {} would have room for all",
                    bytes(wanted)
                ),
            };
            return format!(
                "{needs}; its limit of {} would do, but others held memory of the budget of \
                 {}{advice}",
                bytes(limit),
                bytes(self.memory_bytes)
            );
        }
        match self.table_bytes {
            Some(cap) if limit <= cap => format!(
                "{needs}, and tmp_table_size and max_heap_table_size allow {}; {} would keep it in \
                 memory, within a budget of {}",
                bytes(cap),
                bytes(needed),
                bytes(self.memory_bytes)
            ),
            _ => format!(
                "{needs}, and could hold {} of the budget of {}; a budget of about {} would keep \
                 it in memory",
                bytes(limit),
                bytes(self.memory_bytes),
                bytes(wanted)
            ),
        }
    }
}

fn bytes(bytes: u64) -> String {
    short_bytes(bytes).trim_start().to_owned()
}

fn time(nanos: u64) -> String {
    short_time(nanos.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn table(live_bytes: u64, on_disk: bool) -> TempTable {
        TempTable {
            id: 1,
            why: Why::GroupBy,
            rows: 7,
            memory_bytes: 40 * MIB,
            disk_bytes_written: if on_disk { 30 * MIB } else { 0 },
            disk_bytes_read: if on_disk { 20 * MIB } else { 0 },
            passes: if on_disk { 2 } else { 1 },
            on_disk,
            limit_bytes: 48 * MIB,
            live_bytes,
            write_wait_nanos: 1_500_000,
            read_wait_nanos: 0,
        }
    }

    #[test]
    fn what_stays_in_memory_has_one_line() {
        let limits = Limits {
            memory_bytes: 64 * MIB,
            table_bytes: None,
            read_bytes: 0,
        };
        let expected = "Temporary table <temporary1> for GROUP BY: rows=7, memory=40.00 MiB, \
                        limit=48.00 MiB, passes=1, on_disk=NO";
        assert_eq!(lines(&[table(40 * MIB, false)], limits), [expected]);
    }

    #[test]
    fn what_spills_says_what_would_have_sufficed() {
        let limits = Limits {
            memory_bytes: 64 * MIB,
            table_bytes: None,
            read_bytes: 0,
        };
        let told = lines(&[table(96 * MIB, true)], limits);
        assert_eq!(
            told[0],
            "Temporary table <temporary1> for GROUP BY: rows=7, memory=40.00 MiB, \
             limit=48.00 MiB, passes=2, on_disk=YES, disk_written=30.00 MiB, \
             disk_read=20.00 MiB, write_wait=1.50 ms, read_wait=0 ps"
        );
        assert_eq!(
            told[1],
            "    Spilled: it had 96.00 MiB of rows, and could hold 48.00 MiB of the budget of \
             64.00 MiB; a budget of about 144.00 MiB would keep it in memory"
        );
        let told = lines(&[table(96 * MIB + 1, true)], limits);
        assert!(told[1].contains("about 145.00 MiB"), "{told:?}");
        let reading = Limits {
            read_bytes: 10 * MIB,
            ..limits
        };
        let told = lines(&[table(96 * MIB, true)], reading);
        assert!(told[1].contains("about 154.00 MiB"), "{told:?}");
        let told = lines(&[table(40 * MIB, true)], limits);
        assert!(told[1].ends_with("of the budget of 64.00 MiB"), "{told:?}");
        let told = lines(&[table(44 * MIB, true), table(96 * MIB, false)], limits);
        assert!(
            told[1].ends_with("about 162.00 MiB would have room for all"),
            "{told:?}"
        );
        let sorted = TempTable {
            why: Why::OrderBy,
            ..table(48 * MIB + 1, true)
        };
        let told = lines(&[sorted], limits);
        assert!(told[1].contains("about 145.00 MiB"), "{told:?}");
        let more = TempTable {
            memory_bytes: 50 * MIB,
            ..table(96 * MIB, true)
        };
        let told = lines(std::slice::from_ref(&more), limits);
        assert!(told[0].contains("limit=48.00 MiB of pinned pages,"));
        let limits = Limits {
            table_bytes: Some(48 * MIB),
            ..limits
        };
        let told = lines(&[table(96 * MIB, true)], limits);
        assert!(
            told[1].contains("96.00 MiB would keep it in memory"),
            "{told:?}"
        );
        let told = lines(&[more], limits);
        assert!(told[0].contains("limit=48.00 MiB of pages,"));
    }
}
