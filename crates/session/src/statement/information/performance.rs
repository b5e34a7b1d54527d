//! `performance_schema`: what statements have cost, by their digest.
//!
//! **Source**: names, types and order of the columns as MySQL 8.4 shows them; behind them columns
//! of our own.

use mayfly_sql::digest::Digest;
use mayfly_types::spelling::write_moment;

use super::super::Job;
use super::system::Make;
use super::{server, threads};
use crate::digests::Figures;
use crate::listing::{Listing, declared_columns, some};

pub(super) const DATABASE: &str = "performance_schema";

/// The table of figures, which TRUNCATE empties.
pub(super) const DIGESTS: &str = "events_statements_summary_by_digest";

/// The cache of names of hosts, which tools empty. It always is: no name is looked up.
pub(super) const HOSTS: &str = "host_cache";

pub(super) const TABLES: [(&str, Make); 9] = [
    (DIGESTS, digests),
    ("global_status", server::global_status),
    ("global_variables", server::global_variables),
    ("session_status", server::session_status),
    ("session_variables", server::session_variables),
    ("setup_actors", threads::actors),
    ("setup_consumers", setup_consumers),
    ("threads", threads::threads),
    ("user_variables_by_thread", threads::user_variables),
];

const MICROS: i64 = 1_000_000;

/// Behind the columns of MySQL: bytes of the temp files, and most bytes of the budget at one time.
const COLUMNS: &str = "SCHEMA_NAME varchar(64), DIGEST varchar(64), DIGEST_TEXT longtext, \
    COUNT_STAR bigint unsigned, SUM_TIMER_WAIT bigint unsigned, MIN_TIMER_WAIT bigint unsigned, \
    AVG_TIMER_WAIT bigint unsigned, MAX_TIMER_WAIT bigint unsigned, \
    SUM_LOCK_TIME bigint unsigned, SUM_ERRORS bigint unsigned, SUM_WARNINGS bigint unsigned, \
    SUM_ROWS_AFFECTED bigint unsigned, SUM_ROWS_SENT bigint unsigned, \
    SUM_ROWS_EXAMINED bigint unsigned, SUM_CREATED_TMP_DISK_TABLES bigint unsigned, \
    SUM_CREATED_TMP_TABLES bigint unsigned, SUM_SELECT_FULL_JOIN bigint unsigned, \
    SUM_SELECT_FULL_RANGE_JOIN bigint unsigned, SUM_SELECT_RANGE bigint unsigned, \
    SUM_SELECT_RANGE_CHECK bigint unsigned, SUM_SELECT_SCAN bigint unsigned, \
    SUM_SORT_MERGE_PASSES bigint unsigned, SUM_SORT_RANGE bigint unsigned, \
    SUM_SORT_ROWS bigint unsigned, SUM_SORT_SCAN bigint unsigned, \
    SUM_NO_INDEX_USED bigint unsigned, SUM_NO_GOOD_INDEX_USED bigint unsigned, \
    SUM_CPU_TIME bigint unsigned, MAX_CONTROLLED_MEMORY bigint unsigned, \
    MAX_TOTAL_MEMORY bigint unsigned, COUNT_SECONDARY bigint unsigned, FIRST_SEEN timestamp(6), \
    LAST_SEEN timestamp(6), QUANTILE_95 bigint unsigned, QUANTILE_99 bigint unsigned, \
    QUANTILE_999 bigint unsigned, QUERY_SAMPLE_TEXT longtext, QUERY_SAMPLE_SEEN timestamp(6), \
    QUERY_SAMPLE_TIMER_WAIT bigint unsigned, MAYFLY_TEMP_BYTES_WRITTEN bigint unsigned, \
    MAYFLY_TEMP_BYTES_READ bigint unsigned, MAYFLY_PEAK_MEMORY_BYTES bigint unsigned";

/// What MySQL can collect. Here that are the figures of digests, and nothing turns them off.
const CONSUMERS: [&str; 16] = [
    "events_stages_current",
    "events_stages_history",
    "events_stages_history_long",
    "events_statements_cpu",
    "events_statements_current",
    "events_statements_history",
    "events_statements_history_long",
    "events_transactions_current",
    "events_transactions_history",
    "events_transactions_history_long",
    "events_waits_current",
    "events_waits_history",
    "events_waits_history_long",
    "global_instrumentation",
    "statements_digest",
    "thread_instrumentation",
];

fn digests(job: &Job) -> Listing {
    let mut listing = Listing::declared(COLUMNS);
    let columns: Vec<(&str, &str)> = declared_columns(COLUMNS).collect();
    let zone = time_zone(job);
    let all = &job.connection.engine.shared().digests;
    all.each(|database, digest, figures| {
        let cell = |&(name, declared): &(&str, &str)| match declared {
            "timestamp(6)" => Some(moment(figures, name, zone)),
            "bigint unsigned" => some(figures.number(name)),
            _ => text(name, database, digest, figures),
        };
        listing.push(columns.iter().map(cell).collect());
    });
    listing
}

fn text(
    column: &str,
    database: Option<&str>,
    digest: Option<&Digest>,
    figures: &Figures,
) -> Option<String> {
    match column {
        "SCHEMA_NAME" => database.map(str::to_owned),
        "DIGEST" => digest.map(Digest::hex),
        "DIGEST_TEXT" => digest.map(|digest| digest.text().to_owned()),
        _ => some(figures.sample()),
    }
}

/// Microseconds from UTC to the session's time.
pub(super) fn time_zone(job: &Job) -> i64 {
    let seconds = job.connection.values.lock().time_zone_seconds;
    i64::from(seconds) * MICROS
}

/// A moment of a row in the session's time.
pub(super) fn moment(figures: &Figures, column: &str, zone: i64) -> String {
    let micros = i64::try_from(figures.micros(column)).unwrap_or(i64::MAX);
    let mut text = String::new();
    write_moment(micros.saturating_add(zone), 6, &mut text);
    text
}

fn setup_consumers(_: &Job) -> Listing {
    let mut listing = Listing::declared("NAME varchar(64), ENABLED varchar(3)");
    for name in CONSUMERS {
        let is_on = matches!(name, "global_instrumentation" | "statements_digest");
        listing.push(vec![some(name), some(if is_on { "YES" } else { "NO" })]);
    }
    listing
}
