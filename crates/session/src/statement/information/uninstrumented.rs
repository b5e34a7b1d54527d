//! Tables of `performance_schema` for what nobody measures or keeps here: single statements, their
//! stages and waits, locks, files, memory by its use, what clients say of themselves, replication.
//!
//! Monitoring and tools with windows read them all, and take an empty one for a server with these
//! instruments off.
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

/// Columns of all events.
macro_rules! event {
    () => {
        "THREAD_ID bigint unsigned, EVENT_ID bigint unsigned, END_EVENT_ID bigint unsigned, \
         EVENT_NAME varchar(128), SOURCE varchar(64), TIMER_START bigint unsigned, TIMER_END bigint \
         unsigned, TIMER_WAIT bigint unsigned"
    };
}

/// Columns of a statement.
macro_rules! statements {
    () => {
        concat!(
            event!(),
            ", LOCK_TIME bigint unsigned, SQL_TEXT longtext, DIGEST varchar(64), DIGEST_TEXT \
             longtext, CURRENT_SCHEMA varchar(64), OBJECT_TYPE varchar(64), OBJECT_SCHEMA \
             varchar(64), OBJECT_NAME varchar(64), OBJECT_INSTANCE_BEGIN bigint unsigned, \
             MYSQL_ERRNO int, RETURNED_SQLSTATE varchar(5), MESSAGE_TEXT varchar(128), ERRORS \
             bigint unsigned, WARNINGS bigint unsigned, ROWS_AFFECTED bigint unsigned, ROWS_SENT \
             bigint unsigned, ROWS_EXAMINED bigint unsigned, CREATED_TMP_DISK_TABLES bigint \
             unsigned, CREATED_TMP_TABLES bigint unsigned, SELECT_FULL_JOIN bigint unsigned, \
             SELECT_FULL_RANGE_JOIN bigint unsigned, SELECT_RANGE bigint unsigned, \
             SELECT_RANGE_CHECK bigint unsigned, SELECT_SCAN bigint unsigned, SORT_MERGE_PASSES \
             bigint unsigned, SORT_RANGE bigint unsigned, SORT_ROWS bigint unsigned, SORT_SCAN \
             bigint unsigned, NO_INDEX_USED bigint unsigned, NO_GOOD_INDEX_USED bigint unsigned, \
             NESTING_EVENT_ID bigint unsigned, NESTING_EVENT_TYPE varchar(11), NESTING_EVENT_LEVEL \
             int, STATEMENT_ID bigint unsigned, CPU_TIME bigint unsigned, MAX_CONTROLLED_MEMORY \
             bigint unsigned, MAX_TOTAL_MEMORY bigint unsigned, EXECUTION_ENGINE varchar(9)"
        )
    };
}

/// Columns of a stage of a statement.
macro_rules! stages {
    () => {
        concat!(
            event!(),
            ", WORK_COMPLETED bigint unsigned, WORK_ESTIMATED bigint unsigned, NESTING_EVENT_ID \
             bigint unsigned, NESTING_EVENT_TYPE varchar(11)"
        )
    };
}

/// Columns of a wait.
macro_rules! waits {
    () => {
        concat!(
            event!(),
            ", SPINS int unsigned, OBJECT_SCHEMA varchar(64), OBJECT_NAME varchar(512), INDEX_NAME \
             varchar(64), OBJECT_TYPE varchar(64), OBJECT_INSTANCE_BEGIN bigint unsigned, \
             NESTING_EVENT_ID bigint unsigned, NESTING_EVENT_TYPE varchar(11), OPERATION \
             varchar(32), NUMBER_OF_BYTES bigint, FLAGS int unsigned"
        )
    };
}

/// Columns of what a client says of itself.
macro_rules! attributes {
    () => {
        "PROCESSLIST_ID bigint unsigned, ATTR_NAME varchar(32), ATTR_VALUE varchar(1024), \
         ORDINAL_POSITION int"
    };
}

/// The names of the tables, and their columns as `Listing::declared` takes them.
pub(super) const TABLES: [(&str, &str); 29] = [
    (
        "data_lock_waits",
        "ENGINE varchar(32), REQUESTING_ENGINE_LOCK_ID varchar(128), \
         REQUESTING_ENGINE_TRANSACTION_ID bigint unsigned, REQUESTING_THREAD_ID bigint unsigned, \
         REQUESTING_EVENT_ID bigint unsigned, REQUESTING_OBJECT_INSTANCE_BEGIN bigint unsigned, \
         BLOCKING_ENGINE_LOCK_ID varchar(128), BLOCKING_ENGINE_TRANSACTION_ID bigint unsigned, \
         BLOCKING_THREAD_ID bigint unsigned, BLOCKING_EVENT_ID bigint unsigned, \
         BLOCKING_OBJECT_INSTANCE_BEGIN bigint unsigned",
    ),
    (
        "data_locks",
        "ENGINE varchar(32), ENGINE_LOCK_ID varchar(128), ENGINE_TRANSACTION_ID bigint unsigned, \
         THREAD_ID bigint unsigned, EVENT_ID bigint unsigned, OBJECT_SCHEMA varchar(64), \
         OBJECT_NAME varchar(64), PARTITION_NAME varchar(64), SUBPARTITION_NAME varchar(64), \
         INDEX_NAME varchar(64), OBJECT_INSTANCE_BEGIN bigint unsigned, LOCK_TYPE varchar(32), \
         LOCK_MODE varchar(32), LOCK_STATUS varchar(32), LOCK_DATA varchar(8192)",
    ),
    ("events_stages_current", stages!()),
    ("events_stages_history", stages!()),
    ("events_stages_history_long", stages!()),
    ("events_statements_current", statements!()),
    ("events_statements_history", statements!()),
    ("events_statements_history_long", statements!()),
    ("events_waits_current", waits!()),
    ("events_waits_history", waits!()),
    ("events_waits_history_long", waits!()),
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
        "host_cache",
        "IP varchar(64), HOST varchar(255), HOST_VALIDATED varchar(3), SUM_CONNECT_ERRORS bigint, \
         COUNT_HOST_BLOCKED_ERRORS bigint, COUNT_NAMEINFO_TRANSIENT_ERRORS bigint, \
         COUNT_NAMEINFO_PERMANENT_ERRORS bigint, COUNT_FORMAT_ERRORS bigint, \
         COUNT_ADDRINFO_TRANSIENT_ERRORS bigint, COUNT_ADDRINFO_PERMANENT_ERRORS bigint, \
         COUNT_FCRDNS_ERRORS bigint, COUNT_HOST_ACL_ERRORS bigint, COUNT_NO_AUTH_PLUGIN_ERRORS \
         bigint, COUNT_AUTH_PLUGIN_ERRORS bigint, COUNT_HANDSHAKE_ERRORS bigint, \
         COUNT_PROXY_USER_ERRORS bigint, COUNT_PROXY_USER_ACL_ERRORS bigint, \
         COUNT_AUTHENTICATION_ERRORS bigint, COUNT_SSL_ERRORS bigint, \
         COUNT_MAX_USER_CONNECTIONS_ERRORS bigint, COUNT_MAX_USER_CONNECTIONS_PER_HOUR_ERRORS \
         bigint, COUNT_DEFAULT_DATABASE_ERRORS bigint, COUNT_INIT_CONNECT_ERRORS bigint, \
         COUNT_LOCAL_ERRORS bigint, COUNT_UNKNOWN_ERRORS bigint, FIRST_SEEN timestamp, LAST_SEEN \
         timestamp, FIRST_ERROR_SEEN timestamp, LAST_ERROR_SEEN timestamp",
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
        "metadata_locks",
        "OBJECT_TYPE varchar(64), OBJECT_SCHEMA varchar(64), OBJECT_NAME varchar(64), COLUMN_NAME \
         varchar(64), OBJECT_INSTANCE_BEGIN bigint unsigned, LOCK_TYPE varchar(32), LOCK_DURATION \
         varchar(32), LOCK_STATUS varchar(32), SOURCE varchar(64), OWNER_THREAD_ID bigint unsigned, \
         OWNER_EVENT_ID bigint unsigned",
    ),
    (
        "persisted_variables",
        "VARIABLE_NAME varchar(64), VARIABLE_VALUE varchar(1024)",
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
    ("session_account_connect_attrs", attributes!()),
    ("session_connect_attrs", attributes!()),
    (
        "setup_instruments",
        "NAME varchar(128), ENABLED varchar(3), TIMED varchar(3), PROPERTIES varchar(71), FLAGS \
         varchar(10), VOLATILITY int, DOCUMENTATION longtext",
    ),
    (
        "setup_objects",
        "OBJECT_TYPE varchar(9), OBJECT_SCHEMA varchar(64), OBJECT_NAME varchar(64), ENABLED \
         varchar(3), TIMED varchar(3)",
    ),
    (
        "setup_threads",
        "NAME varchar(128), ENABLED varchar(3), HISTORY varchar(3), PROPERTIES varchar(14), \
         VOLATILITY int, DOCUMENTATION longtext",
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
