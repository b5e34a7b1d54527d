//! The tables of what there is not: triggers, routines, events, partitions, roles, grants of less
//! than everything, tablespaces, and all that belongs to InnoDB.
//!
//! Clients look into them before they copy a table or show a page, and take an empty one for an
//! answer. A table of MySQL that would not be empty here is not among them, but for those of what
//! views use, which nobody here follows.
//!
//! **Source**: names, types and order of the columns as MySQL 8.4 shows them; `TABLESPACES`,
//! `INNODB_LOCKS` and `INNODB_LOCK_WAITS` as MariaDB 10.11 does. An ENUM or a SET is a text.

/// The names of the tables, and their columns as `Listing::declared` takes them.
pub(super) const TABLES: [(&str, &str); 44] = [
    (
        "ADMINISTRABLE_ROLE_AUTHORIZATIONS",
        "USER varchar(97), HOST varchar(256), GRANTEE varchar(97), GRANTEE_HOST varchar(256), \
         ROLE_NAME varchar(255), ROLE_HOST varchar(256), IS_GRANTABLE varchar(3), \
         IS_DEFAULT varchar(3), IS_MANDATORY varchar(3)",
    ),
    (
        "APPLICABLE_ROLES",
        "USER varchar(97), HOST varchar(256), GRANTEE varchar(97), GRANTEE_HOST varchar(256), \
         ROLE_NAME varchar(255), ROLE_HOST varchar(256), IS_GRANTABLE varchar(3), \
         IS_DEFAULT varchar(3), IS_MANDATORY varchar(3)",
    ),
    (
        "COLUMN_PRIVILEGES",
        "GRANTEE varchar(292), TABLE_CATALOG varchar(512), TABLE_SCHEMA varchar(64), \
         TABLE_NAME varchar(64), COLUMN_NAME varchar(64), PRIVILEGE_TYPE varchar(64), \
         IS_GRANTABLE varchar(3)",
    ),
    (
        "COLUMN_STATISTICS",
        "SCHEMA_NAME varchar(64), TABLE_NAME varchar(64), COLUMN_NAME varchar(64), \
         HISTOGRAM json",
    ),
    (
        "ENABLED_ROLES",
        "ROLE_NAME varchar(255), ROLE_HOST varchar(255), IS_DEFAULT varchar(3), \
         IS_MANDATORY varchar(3)",
    ),
    (
        "EVENTS",
        "EVENT_CATALOG varchar(64), EVENT_SCHEMA varchar(64), EVENT_NAME varchar(64), \
         DEFINER varchar(288), TIME_ZONE varchar(64), EVENT_BODY varchar(3), \
         EVENT_DEFINITION longtext, EVENT_TYPE varchar(9), EXECUTE_AT datetime, \
         INTERVAL_VALUE varchar(256), INTERVAL_FIELD varchar(18), SQL_MODE varchar(8192), \
         STARTS datetime, ENDS datetime, STATUS varchar(21), ON_COMPLETION varchar(12), \
         CREATED timestamp, LAST_ALTERED timestamp, LAST_EXECUTED datetime, \
         EVENT_COMMENT varchar(2048), ORIGINATOR int unsigned, \
         CHARACTER_SET_CLIENT varchar(64), COLLATION_CONNECTION varchar(64), \
         DATABASE_COLLATION varchar(64)",
    ),
    (
        "FILES",
        "FILE_ID bigint, FILE_NAME text, FILE_TYPE varchar(256), TABLESPACE_NAME varchar(268), \
         TABLE_CATALOG varchar(64), TABLE_SCHEMA varchar(64), TABLE_NAME varchar(64), \
         LOGFILE_GROUP_NAME varchar(256), LOGFILE_GROUP_NUMBER bigint, ENGINE varchar(64), \
         FULLTEXT_KEYS varchar(64), DELETED_ROWS bigint, UPDATE_COUNT bigint, \
         FREE_EXTENTS bigint, TOTAL_EXTENTS bigint, EXTENT_SIZE bigint, INITIAL_SIZE bigint, \
         MAXIMUM_SIZE bigint, AUTOEXTEND_SIZE bigint, CREATION_TIME datetime, \
         LAST_UPDATE_TIME datetime, LAST_ACCESS_TIME datetime, RECOVER_TIME bigint, \
         TRANSACTION_COUNTER bigint, VERSION bigint, ROW_FORMAT varchar(256), \
         TABLE_ROWS bigint, AVG_ROW_LENGTH bigint, DATA_LENGTH bigint, MAX_DATA_LENGTH bigint, \
         INDEX_LENGTH bigint, DATA_FREE bigint, CREATE_TIME datetime, UPDATE_TIME datetime, \
         CHECK_TIME datetime, CHECKSUM bigint, STATUS varchar(256), EXTRA varchar(256)",
    ),
    ("INNODB_BUFFER_PAGE", BUFFER_PAGE),
    (
        "INNODB_BUFFER_POOL_STATS",
        "POOL_ID int unsigned, POOL_SIZE bigint unsigned, FREE_BUFFERS bigint unsigned, \
         DATABASE_PAGES bigint unsigned, OLD_DATABASE_PAGES bigint unsigned, \
         MODIFIED_DATABASE_PAGES bigint unsigned, PENDING_DECOMPRESS bigint unsigned, \
         PENDING_READS bigint unsigned, PENDING_FLUSH_LRU bigint unsigned, \
         PENDING_FLUSH_LIST bigint unsigned, PAGES_MADE_YOUNG bigint unsigned, \
         PAGES_NOT_MADE_YOUNG bigint unsigned, PAGES_MADE_YOUNG_RATE float, \
         PAGES_MADE_NOT_YOUNG_RATE float, NUMBER_PAGES_READ bigint unsigned, \
         NUMBER_PAGES_CREATED bigint unsigned, NUMBER_PAGES_WRITTEN bigint unsigned, \
         PAGES_READ_RATE float, PAGES_CREATE_RATE float, PAGES_WRITTEN_RATE float, \
         NUMBER_PAGES_GET bigint unsigned, HIT_RATE bigint unsigned, \
         YOUNG_MAKE_PER_THOUSAND_GETS bigint unsigned, \
         NOT_YOUNG_MAKE_PER_THOUSAND_GETS bigint unsigned, \
         NUMBER_PAGES_READ_AHEAD bigint unsigned, NUMBER_READ_AHEAD_EVICTED bigint unsigned, \
         READ_AHEAD_RATE float, READ_AHEAD_EVICTED_RATE float, LRU_IO_TOTAL bigint unsigned, \
         LRU_IO_CURRENT bigint unsigned, UNCOMPRESS_TOTAL bigint unsigned, \
         UNCOMPRESS_CURRENT bigint unsigned",
    ),
    (
        "INNODB_CACHED_INDEXES",
        "SPACE_ID int unsigned, INDEX_ID bigint unsigned, N_CACHED_PAGES bigint unsigned",
    ),
    ("INNODB_CMP", COMPRESSION),
    ("INNODB_CMPMEM", COMPRESSED_MEMORY),
    ("INNODB_CMPMEM_RESET", COMPRESSED_MEMORY),
    ("INNODB_CMP_PER_INDEX", COMPRESSION_OF_INDEX),
    ("INNODB_CMP_PER_INDEX_RESET", COMPRESSION_OF_INDEX),
    ("INNODB_CMP_RESET", COMPRESSION),
    (
        "INNODB_COLUMNS",
        "TABLE_ID bigint unsigned, NAME varchar(193), POS bigint unsigned, MTYPE int, \
         PRTYPE int, LEN int, HAS_DEFAULT int, DEFAULT_VALUE text",
    ),
    (
        "INNODB_DATAFILES",
        "SPACE varbinary(256), PATH varchar(512)",
    ),
    (
        "INNODB_FIELDS",
        "INDEX_ID varbinary(256), NAME varchar(64), POS bigint unsigned",
    ),
    (
        "INNODB_FOREIGN",
        "ID varchar(129), FOR_NAME varchar(129), REF_NAME varchar(129), N_COLS bigint, \
         TYPE bigint unsigned",
    ),
    (
        "INNODB_FOREIGN_COLS",
        "ID varchar(129), FOR_COL_NAME varchar(64), REF_COL_NAME varchar(64), \
         POS int unsigned",
    ),
    (
        "INNODB_INDEXES",
        "INDEX_ID bigint unsigned, NAME varchar(193), TABLE_ID bigint unsigned, TYPE int, \
         N_FIELDS int, PAGE_NO int, SPACE int, MERGE_THRESHOLD int",
    ),
    (
        "INNODB_LOCKS",
        "lock_id varchar(81), lock_trx_id bigint unsigned, lock_mode varchar(8), \
         lock_type varchar(6), lock_table varchar(1024), lock_index varchar(1024), \
         lock_space int unsigned, lock_page int unsigned, lock_rec int unsigned, \
         lock_data varchar(8192)",
    ),
    (
        "INNODB_LOCK_WAITS",
        "requesting_trx_id bigint unsigned, requested_lock_id varchar(81), \
         blocking_trx_id bigint unsigned, blocking_lock_id varchar(81)",
    ),
    (
        "INNODB_METRICS",
        "NAME varchar(193), SUBSYSTEM varchar(193), COUNT bigint, MAX_COUNT bigint, \
         MIN_COUNT bigint, AVG_COUNT float, COUNT_RESET bigint, MAX_COUNT_RESET bigint, \
         MIN_COUNT_RESET bigint, AVG_COUNT_RESET float, TIME_ENABLED datetime, \
         TIME_DISABLED datetime, TIME_ELAPSED bigint, TIME_RESET datetime, \
         STATUS varchar(193), TYPE varchar(193), COMMENT varchar(193)",
    ),
    (
        "INNODB_SESSION_TEMP_TABLESPACES",
        "ID int unsigned, SPACE int unsigned, PATH varchar(4001), SIZE bigint unsigned, \
         STATE varchar(192), PURPOSE varchar(192)",
    ),
    (
        "INNODB_TABLES",
        "TABLE_ID bigint unsigned, NAME varchar(655), FLAG int, N_COLS int, SPACE bigint, \
         ROW_FORMAT varchar(12), ZIP_PAGE_SIZE int unsigned, SPACE_TYPE varchar(10), \
         INSTANT_COLS int, TOTAL_ROW_VERSIONS int",
    ),
    (
        "INNODB_TABLESPACES",
        "SPACE int unsigned, NAME varchar(655), FLAG int unsigned, ROW_FORMAT varchar(22), \
         PAGE_SIZE int unsigned, ZIP_PAGE_SIZE int unsigned, SPACE_TYPE varchar(10), \
         FS_BLOCK_SIZE int unsigned, FILE_SIZE bigint unsigned, \
         ALLOCATED_SIZE bigint unsigned, AUTOEXTEND_SIZE bigint unsigned, \
         SERVER_VERSION varchar(10), SPACE_VERSION int unsigned, ENCRYPTION varchar(1), \
         STATE varchar(10)",
    ),
    (
        "INNODB_TABLESPACES_BRIEF",
        "SPACE varbinary(256), NAME varchar(268), PATH varchar(512), FLAG varbinary(256), \
         SPACE_TYPE varchar(7)",
    ),
    (
        "INNODB_TABLESTATS",
        "TABLE_ID bigint unsigned, NAME varchar(193), STATS_INITIALIZED varchar(193), \
         NUM_ROWS bigint unsigned, CLUST_INDEX_SIZE bigint unsigned, \
         OTHER_INDEX_SIZE bigint unsigned, MODIFIED_COUNTER bigint unsigned, \
         AUTOINC bigint unsigned, REF_COUNT int",
    ),
    (
        "INNODB_TEMP_TABLE_INFO",
        "TABLE_ID bigint unsigned, NAME varchar(64), N_COLS int unsigned, SPACE int unsigned",
    ),
    (
        "INNODB_TRX",
        "trx_id bigint unsigned, trx_state varchar(13), trx_started datetime, \
         trx_requested_lock_id varchar(126), trx_wait_started datetime, \
         trx_weight bigint unsigned, trx_mysql_thread_id bigint unsigned, \
         trx_query varchar(1024), trx_operation_state varchar(64), \
         trx_tables_in_use bigint unsigned, trx_tables_locked bigint unsigned, \
         trx_lock_structs bigint unsigned, trx_lock_memory_bytes bigint unsigned, \
         trx_rows_locked bigint unsigned, trx_rows_modified bigint unsigned, \
         trx_concurrency_tickets bigint unsigned, trx_isolation_level varchar(16), \
         trx_unique_checks int, trx_foreign_key_checks int, \
         trx_last_foreign_key_error varchar(256), trx_adaptive_hash_latched int, \
         trx_adaptive_hash_timeout bigint unsigned, trx_is_read_only int, \
         trx_autocommit_non_locking int, trx_schedule_weight bigint unsigned",
    ),
    (
        "INNODB_VIRTUAL",
        "TABLE_ID bigint unsigned, POS int unsigned, BASE_POS int unsigned",
    ),
    (
        "OPTIMIZER_TRACE",
        "QUERY varchar(16383), TRACE varchar(16383), MISSING_BYTES_BEYOND_MAX_MEM_SIZE int, \
         INSUFFICIENT_PRIVILEGES tinyint(1)",
    ),
    (
        "PARAMETERS",
        "SPECIFIC_CATALOG varchar(64), SPECIFIC_SCHEMA varchar(64), SPECIFIC_NAME varchar(64), \
         ORDINAL_POSITION bigint unsigned, PARAMETER_MODE varchar(5), \
         PARAMETER_NAME varchar(64), DATA_TYPE longtext, CHARACTER_MAXIMUM_LENGTH bigint, \
         CHARACTER_OCTET_LENGTH bigint, NUMERIC_PRECISION int unsigned, NUMERIC_SCALE bigint, \
         DATETIME_PRECISION int unsigned, CHARACTER_SET_NAME varchar(64), \
         COLLATION_NAME varchar(64), DTD_IDENTIFIER mediumtext, ROUTINE_TYPE varchar(9)",
    ),
    (
        "PARTITIONS",
        "TABLE_CATALOG varchar(64), TABLE_SCHEMA varchar(64), TABLE_NAME varchar(64), \
         PARTITION_NAME varchar(64), SUBPARTITION_NAME varchar(64), \
         PARTITION_ORDINAL_POSITION int unsigned, SUBPARTITION_ORDINAL_POSITION int unsigned, \
         PARTITION_METHOD varchar(13), SUBPARTITION_METHOD varchar(13), \
         PARTITION_EXPRESSION varchar(2048), SUBPARTITION_EXPRESSION varchar(2048), \
         PARTITION_DESCRIPTION text, TABLE_ROWS bigint unsigned, \
         AVG_ROW_LENGTH bigint unsigned, DATA_LENGTH bigint unsigned, \
         MAX_DATA_LENGTH bigint unsigned, INDEX_LENGTH bigint unsigned, \
         DATA_FREE bigint unsigned, CREATE_TIME timestamp, UPDATE_TIME datetime, \
         CHECK_TIME datetime, CHECKSUM bigint, PARTITION_COMMENT text, \
         NODEGROUP varchar(256), TABLESPACE_NAME varchar(268)",
    ),
    (
        "REFERENTIAL_CONSTRAINTS",
        "CONSTRAINT_CATALOG varchar(64), CONSTRAINT_SCHEMA varchar(64), \
         CONSTRAINT_NAME varchar(64), UNIQUE_CONSTRAINT_CATALOG varchar(64), \
         UNIQUE_CONSTRAINT_SCHEMA varchar(64), UNIQUE_CONSTRAINT_NAME varchar(64), \
         MATCH_OPTION varchar(7), UPDATE_RULE varchar(11), DELETE_RULE varchar(11), \
         TABLE_NAME varchar(64), REFERENCED_TABLE_NAME varchar(64)",
    ),
    (
        "ROUTINES",
        "SPECIFIC_NAME varchar(64), ROUTINE_CATALOG varchar(64), ROUTINE_SCHEMA varchar(64), \
         ROUTINE_NAME varchar(64), ROUTINE_TYPE varchar(9), DATA_TYPE longtext, \
         CHARACTER_MAXIMUM_LENGTH bigint, CHARACTER_OCTET_LENGTH bigint, \
         NUMERIC_PRECISION int unsigned, NUMERIC_SCALE int unsigned, \
         DATETIME_PRECISION int unsigned, CHARACTER_SET_NAME varchar(64), \
         COLLATION_NAME varchar(64), DTD_IDENTIFIER longtext, ROUTINE_BODY varchar(8), \
         ROUTINE_DEFINITION longtext, EXTERNAL_NAME varchar(64), \
         EXTERNAL_LANGUAGE varchar(64), PARAMETER_STYLE varchar(3), \
         IS_DETERMINISTIC varchar(3), SQL_DATA_ACCESS varchar(17), SQL_PATH varchar(64), \
         SECURITY_TYPE varchar(7), CREATED timestamp, LAST_ALTERED timestamp, \
         SQL_MODE varchar(8192), ROUTINE_COMMENT text, DEFINER varchar(288), \
         CHARACTER_SET_CLIENT varchar(64), COLLATION_CONNECTION varchar(64), \
         DATABASE_COLLATION varchar(64)",
    ),
    (
        "SCHEMA_PRIVILEGES",
        "GRANTEE varchar(292), TABLE_CATALOG varchar(512), TABLE_SCHEMA varchar(64), \
         PRIVILEGE_TYPE varchar(64), IS_GRANTABLE varchar(3)",
    ),
    (
        "TABLESPACES",
        "TABLESPACE_NAME varchar(64), ENGINE varchar(64), TABLESPACE_TYPE varchar(64), \
         LOGFILE_GROUP_NAME varchar(64), EXTENT_SIZE bigint unsigned, \
         AUTOEXTEND_SIZE bigint unsigned, MAXIMUM_SIZE bigint unsigned, \
         NODEGROUP_ID bigint unsigned, TABLESPACE_COMMENT varchar(2048)",
    ),
    (
        "TABLE_PRIVILEGES",
        "GRANTEE varchar(292), TABLE_CATALOG varchar(512), TABLE_SCHEMA varchar(64), \
         TABLE_NAME varchar(64), PRIVILEGE_TYPE varchar(64), IS_GRANTABLE varchar(3)",
    ),
    (
        "TRIGGERS",
        "TRIGGER_CATALOG varchar(64), TRIGGER_SCHEMA varchar(64), TRIGGER_NAME varchar(64), \
         EVENT_MANIPULATION varchar(6), EVENT_OBJECT_CATALOG varchar(64), \
         EVENT_OBJECT_SCHEMA varchar(64), EVENT_OBJECT_TABLE varchar(64), \
         ACTION_ORDER int unsigned, ACTION_CONDITION varchar(64), ACTION_STATEMENT longtext, \
         ACTION_ORIENTATION varchar(3), ACTION_TIMING varchar(6), \
         ACTION_REFERENCE_OLD_TABLE varchar(64), ACTION_REFERENCE_NEW_TABLE varchar(64), \
         ACTION_REFERENCE_OLD_ROW varchar(3), ACTION_REFERENCE_NEW_ROW varchar(3), \
         CREATED timestamp(2), SQL_MODE varchar(8192), DEFINER varchar(288), \
         CHARACTER_SET_CLIENT varchar(64), COLLATION_CONNECTION varchar(64), \
         DATABASE_COLLATION varchar(64)",
    ),
    (
        "VIEW_ROUTINE_USAGE",
        "TABLE_CATALOG varchar(64), TABLE_SCHEMA varchar(64), TABLE_NAME varchar(64), \
         SPECIFIC_CATALOG varchar(64), SPECIFIC_SCHEMA varchar(64), SPECIFIC_NAME varchar(64)",
    ),
    (
        "VIEW_TABLE_USAGE",
        "VIEW_CATALOG varchar(64), VIEW_SCHEMA varchar(64), VIEW_NAME varchar(64), \
         TABLE_CATALOG varchar(64), TABLE_SCHEMA varchar(64), TABLE_NAME varchar(64)",
    ),
];

const BUFFER_PAGE: &str = "POOL_ID int unsigned, BLOCK_ID bigint unsigned, SPACE int unsigned, \
     PAGE_NUMBER int unsigned, PAGE_TYPE varchar(64), FLUSH_TYPE int unsigned, \
     FIX_COUNT int unsigned, IS_HASHED varchar(3), NEWEST_MODIFICATION bigint unsigned, \
     OLDEST_MODIFICATION bigint unsigned, ACCESS_TIME bigint unsigned, \
     TABLE_NAME varchar(1024), INDEX_NAME varchar(1024), NUMBER_RECORDS bigint unsigned, \
     DATA_SIZE bigint unsigned, COMPRESSED_SIZE bigint unsigned, PAGE_STATE varchar(64), \
     IO_FIX varchar(64), IS_OLD varchar(3), FREE_PAGE_CLOCK bigint unsigned, IS_STALE varchar(3)";

const COMPRESSION: &str = "page_size int, compress_ops int, compress_ops_ok int, \
     compress_time int, uncompress_ops int, uncompress_time int";

const COMPRESSED_MEMORY: &str = "page_size int, buffer_pool_instance int, pages_used int, \
     pages_free int, relocation_ops bigint, relocation_time int";

const COMPRESSION_OF_INDEX: &str = "database_name varchar(192), table_name varchar(192), \
     index_name varchar(192), compress_ops int, compress_ops_ok int, compress_time int, \
     uncompress_ops int, uncompress_time int";
