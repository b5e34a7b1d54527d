//! Tables of `performance_schema` for what nobody measures here: waits, files, memory by its use,
//! and replication.
//!
//! Monitoring reads them all, and takes an empty one for a server with these instruments off.
//!
//! **Source**: names, types and order of the columns as MySQL 8.4 shows them. An ENUM is a text.

/// Columns that count and time kinds of events.
macro_rules! timed {
    ($($kind:literal),+) => {
        concat!($(
            ", COUNT_", $kind, " bigint unsigned, SUM_TIMER_", $kind, " bigint unsigned",
            ", MIN_TIMER_", $kind, " bigint unsigned, AVG_TIMER_", $kind, " bigint unsigned",
            ", MAX_TIMER_", $kind, " bigint unsigned"
        ),+)
    };
}

/// Columns that count and time all events.
macro_rules! total {
    () => {
        ", COUNT_STAR bigint unsigned, SUM_TIMER_WAIT bigint unsigned, \
         MIN_TIMER_WAIT bigint unsigned, AVG_TIMER_WAIT bigint unsigned, \
         MAX_TIMER_WAIT bigint unsigned"
    };
}

macro_rules! files {
    () => {
        concat!(
            total!(),
            timed!("READ"),
            ", SUM_NUMBER_OF_BYTES_READ bigint",
            timed!("WRITE"),
            ", SUM_NUMBER_OF_BYTES_WRITE bigint",
            timed!("MISC")
        )
    };
}

macro_rules! table {
    () => {
        "OBJECT_TYPE varchar(64), OBJECT_SCHEMA varchar(64), OBJECT_NAME varchar(64)"
    };
}

macro_rules! rows {
    () => {
        concat!(
            total!(),
            timed!("READ", "WRITE", "FETCH", "INSERT", "UPDATE", "DELETE")
        )
    };
}

/// The names of the tables, and their columns as `Listing::declared` takes them.
pub(super) const TABLES: [(&str, &str); 10] = [
    (
        "events_waits_summary_global_by_event_name",
        concat!("EVENT_NAME varchar(128)", total!()),
    ),
    (
        "file_summary_by_event_name",
        concat!("EVENT_NAME varchar(128)", files!()),
    ),
    (
        "file_summary_by_instance",
        concat!(
            "FILE_NAME varchar(512), EVENT_NAME varchar(128), \
             OBJECT_INSTANCE_BEGIN bigint unsigned",
            files!()
        ),
    ),
    (
        "memory_summary_global_by_event_name",
        "EVENT_NAME varchar(128), COUNT_ALLOC bigint unsigned, COUNT_FREE bigint unsigned, \
         SUM_NUMBER_OF_BYTES_ALLOC bigint unsigned, SUM_NUMBER_OF_BYTES_FREE bigint unsigned, \
         LOW_COUNT_USED bigint, CURRENT_COUNT_USED bigint, HIGH_COUNT_USED bigint, \
         LOW_NUMBER_OF_BYTES_USED bigint, CURRENT_NUMBER_OF_BYTES_USED bigint, \
         HIGH_NUMBER_OF_BYTES_USED bigint",
    ),
    (
        "replication_applier_status_by_worker",
        "CHANNEL_NAME varchar(64), WORKER_ID bigint unsigned, THREAD_ID bigint unsigned, \
         SERVICE_STATE varchar(3), LAST_ERROR_NUMBER int, LAST_ERROR_MESSAGE varchar(1024), \
         LAST_ERROR_TIMESTAMP timestamp(6), LAST_APPLIED_TRANSACTION varchar(90), \
         LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP timestamp(6), \
         LAST_APPLIED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP timestamp(6), \
         LAST_APPLIED_TRANSACTION_START_APPLY_TIMESTAMP timestamp(6), \
         LAST_APPLIED_TRANSACTION_END_APPLY_TIMESTAMP timestamp(6), \
         APPLYING_TRANSACTION varchar(90), \
         APPLYING_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP timestamp(6), \
         APPLYING_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP timestamp(6), \
         APPLYING_TRANSACTION_START_APPLY_TIMESTAMP timestamp(6), \
         LAST_APPLIED_TRANSACTION_RETRIES_COUNT bigint unsigned, \
         LAST_APPLIED_TRANSACTION_LAST_TRANSIENT_ERROR_NUMBER int, \
         LAST_APPLIED_TRANSACTION_LAST_TRANSIENT_ERROR_MESSAGE varchar(1024), \
         LAST_APPLIED_TRANSACTION_LAST_TRANSIENT_ERROR_TIMESTAMP timestamp(6), \
         APPLYING_TRANSACTION_RETRIES_COUNT bigint unsigned, \
         APPLYING_TRANSACTION_LAST_TRANSIENT_ERROR_NUMBER int, \
         APPLYING_TRANSACTION_LAST_TRANSIENT_ERROR_MESSAGE varchar(1024), \
         APPLYING_TRANSACTION_LAST_TRANSIENT_ERROR_TIMESTAMP timestamp(6)",
    ),
    (
        "replication_group_member_stats",
        "CHANNEL_NAME varchar(64), VIEW_ID varchar(60), MEMBER_ID varchar(36), \
         COUNT_TRANSACTIONS_IN_QUEUE bigint unsigned, \
         COUNT_TRANSACTIONS_CHECKED bigint unsigned, \
         COUNT_CONFLICTS_DETECTED bigint unsigned, \
         COUNT_TRANSACTIONS_ROWS_VALIDATING bigint unsigned, \
         TRANSACTIONS_COMMITTED_ALL_MEMBERS longtext, LAST_CONFLICT_FREE_TRANSACTION text, \
         COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE bigint unsigned, \
         COUNT_TRANSACTIONS_REMOTE_APPLIED bigint unsigned, \
         COUNT_TRANSACTIONS_LOCAL_PROPOSED bigint unsigned, \
         COUNT_TRANSACTIONS_LOCAL_ROLLBACK bigint unsigned",
    ),
    (
        "replication_group_members",
        "CHANNEL_NAME varchar(64), MEMBER_ID varchar(36), MEMBER_HOST varchar(255), \
         MEMBER_PORT int, MEMBER_STATE varchar(64), MEMBER_ROLE varchar(64), \
         MEMBER_VERSION varchar(64), MEMBER_COMMUNICATION_STACK varchar(64)",
    ),
    (
        "table_io_waits_summary_by_index_usage",
        concat!(table!(), ", INDEX_NAME varchar(64)", rows!()),
    ),
    (
        "table_io_waits_summary_by_table",
        concat!(table!(), rows!()),
    ),
    (
        "table_lock_waits_summary_by_table",
        concat!(
            table!(),
            total!(),
            timed!(
                "READ",
                "WRITE",
                "READ_NORMAL",
                "READ_WITH_SHARED_LOCKS",
                "READ_HIGH_PRIORITY",
                "READ_NO_INSERT",
                "READ_EXTERNAL",
                "WRITE_ALLOW_WRITE",
                "WRITE_CONCURRENT_INSERT",
                "WRITE_LOW_PRIORITY",
                "WRITE_NORMAL",
                "WRITE_EXTERNAL"
            )
        ),
    ),
];
