//! SCHEMATA, TABLES, and the live temporary tables of all sessions.

use mayfly_types::Collation;

use super::super::Job;
use super::super::show::table_status::{status, status_of_log, status_of_view};
use super::system::{CATALOG, MYSQL};
use super::views::all_views;
use super::{closed, kind_of};
use crate::listing::{Listing, some};

pub(super) fn schemata(job: &Job) -> Listing {
    let mut listing = Listing::new(&[
        "CATALOG_NAME",
        "SCHEMA_NAME",
        "DEFAULT_CHARACTER_SET_NAME",
        "DEFAULT_COLLATION_NAME",
        "SQL_PATH",
        "DEFAULT_ENCRYPTION",
    ]);
    let collation = Collation::default();
    for name in job.databases() {
        listing.push(vec![
            some(CATALOG),
            Some(name),
            some(collation.character_set()),
            some(collation),
            None,
            some("NO"),
        ]);
    }
    listing
}

pub(super) fn tables(job: &Job) -> Listing {
    let mut listing = Listing::new(&[
        "TABLE_CATALOG",
        "TABLE_SCHEMA",
        "TABLE_NAME",
        "TABLE_TYPE",
        "ENGINE",
        "VERSION",
        "ROW_FORMAT",
        "TABLE_ROWS",
        "AVG_ROW_LENGTH",
        "DATA_LENGTH",
        "MAX_DATA_LENGTH",
        "INDEX_LENGTH",
        "DATA_FREE",
        "AUTO_INCREMENT",
        "CREATE_TIME",
        "UPDATE_TIME",
        "CHECK_TIME",
        "TABLE_COLLATION",
        "CHECKSUM",
        "CREATE_OPTIONS",
        "TABLE_COMMENT",
    ])
    .with_numbers(&[
        "VERSION",
        "TABLE_ROWS",
        "AVG_ROW_LENGTH",
        "DATA_LENGTH",
        "MAX_DATA_LENGTH",
        "INDEX_LENGTH",
        "DATA_FREE",
        "AUTO_INCREMENT",
        "CHECKSUM",
    ]);
    for system in closed() {
        for name in system.names() {
            let mut row = vec![some(CATALOG), some(system.name), some(name)];
            row.extend([some(system.kind), None, some(10), None]);
            row.extend([some(0), some(0), some(0), some(0), some(0), some(0)]);
            row.extend([None, None, None, None, None, None, some(""), some("")]);
            listing.push(row);
        }
    }
    for (name, definition) in job.logs(MYSQL) {
        let mut row = vec![some(CATALOG), some(MYSQL), some(name), some(kind_of(MYSQL))];
        row.extend(status_of_log(&definition));
        listing.push(row);
    }
    for (database, table, is_temporary) in job.all_tables() {
        let kind = match is_temporary {
            true => "TEMPORARY",
            false => "BASE TABLE",
        };
        let mut row = vec![
            some(CATALOG),
            Some(database),
            some(table.name()),
            some(kind),
        ];
        row.extend(status(&table));
        listing.push(row);
    }
    for (database, view) in all_views(job) {
        let mut row = vec![
            some(CATALOG),
            Some(database),
            some(&view.name),
            some("VIEW"),
        ];
        row.extend(status_of_view());
        listing.push(row);
    }
    listing
}

pub(super) fn temporary_tables(job: &Job) -> Listing {
    let mut listing = Listing::new(&[
        "CONNECTION_ID",
        "TABLE_SCHEMA",
        "TABLE_NAME",
        "KIND",
        "TABLE_ROWS",
        "MEMORY_BYTES",
        "DISK_BYTES",
        "INDEX_COUNT",
    ])
    .with_numbers(&[
        "CONNECTION_ID",
        "TABLE_ROWS",
        "MEMORY_BYTES",
        "DISK_BYTES",
        "INDEX_COUNT",
    ]);
    for connection in job.connection.engine.open_connections() {
        let tables = connection.local().temporary.tables();
        for (database, table) in tables {
            let counters = table.counters();
            listing.push(vec![
                some(connection.id),
                Some(database),
                some(table.name()),
                some("TEMPORARY"),
                some(table.row_count()),
                some(counters.resident_bytes + counters.reserved_bytes),
                some(counters.disk_bytes_used),
                some(table.definition().keys.len()),
            ]);
        }
    }
    listing
}

/// The temp files, what the operating system keeps of them, and how often that helped.
pub(super) fn temp_files(job: &Job) -> Listing {
    let numbers = [
        "FILE_BYTES",
        "USED_BYTES",
        "CACHED_BYTES",
        "DIRTY_BYTES",
        "RECENTLY_EVICTED_BYTES",
        "BYTES_READ",
        "DEVICE_BYTES_READ",
        "BYTES_WRITTEN",
        "DEVICE_BYTES_WRITTEN",
    ];
    let names: Vec<&str> = ["DIRECTORY", "IO"].into_iter().chain(numbers).collect();
    let names: Vec<&str> = names.into_iter().chain(["HIT_RATE"]).collect();
    let mut listing = Listing::new(&names)
        .with_numbers(&numbers)
        .with_seconds(&["HIT_RATE"]);
    let space = job.connection.engine.space();
    let io = format!("{:?}", space.options().io).to_lowercase();
    let (files, counters) = (space.files(), space.counters());
    // The kernel counts for the whole process.
    let is_only = files.len() == 1;
    let of_all = |value: u64| is_only.then(|| value.to_string());
    let missed = counters.device_bytes_read as f64 / counters.bytes_read.max(1) as f64;
    let is_known = is_only && counters.bytes_read > 0;
    for file in files {
        let cached = file.cached;
        listing.push(vec![
            some(file.dir.display()),
            some(&io),
            some(file.allocated_bytes),
            some(file.used_bytes),
            cached.map(|bytes| bytes.cached.to_string()),
            cached.map(|bytes| bytes.dirty.to_string()),
            cached.map(|bytes| bytes.recently_evicted.to_string()),
            of_all(counters.bytes_read),
            of_all(counters.device_bytes_read),
            of_all(counters.bytes_written),
            of_all(counters.device_bytes_written),
            is_known.then(|| format!("{:.6}", (1.0 - missed).max(0.0))),
        ]);
    }
    listing
}
