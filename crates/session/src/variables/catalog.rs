//! The list of system variables: name, scope, kind, default, and what it does here.
//!
//! Those that do nothing here have a list of their own, `accepted`.

use std::sync::LazyLock;

use super::accepted::ACCEPTED;
use super::definition::{
    ANY, Definition, ENGINE, Kind, SIZE_32, Where, both, fixed, fixed_number, fixed_switch, from,
    global, new, range,
};

/// No cap: the value of the size limits until they are set.
pub(crate) const NO_CAP: &str = "18446744073709551615";

/// MySQL 8.4's default `sql_mode`.
pub(crate) const SQL_MODE: &str = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,\
                                   NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";

/// MariaDB's flags as well as MySQL's: clients send both.
const OPTIMIZER_SWITCH: &str = "index_merge=on,derived_merge=on,materialization=on,semijoin=on,\
                                firstmatch=on,loosescan=on,subquery_cache=on,in_to_exists=on,\
                                condition_pushdown_for_derived=on,split_materialized=on,\
                                condition_fanout_filter=on,hash_join=on,block_nested_loop=on,\
                                batched_key_access=off,mrr=on,mrr_cost_based=on";

/// Flags of `optimizer_switch` that mean nothing here, which either server takes.
pub(crate) const OTHER_FLAGS: &str = "index_merge_union,index_merge_sort_union,\
     index_merge_intersection,index_merge_sort_intersection,engine_condition_pushdown,\
     index_condition_pushdown,duplicateweedout,subquery_materialization_cost_based,\
     use_index_extensions,derived_condition_pushdown,skip_scan,hash_set_operations,\
     use_invisible_indexes,prefer_ordering_index,subquery_to_derived,hypergraph_optimizer,\
     derived_with_keys,partial_match_rowid_merge,partial_match_table_scan,mrr_sort_keys,\
     outer_join_with_cache,semijoin_with_cache,join_cache_incremental,join_cache_hashed,\
     join_cache_bka,optimize_join_buffer_size,table_elimination,extended_keys,exists_to_in,\
     orderby_uses_equalities,condition_pushdown_for_subquery,rowid_filter,\
     condition_pushdown_from_having,not_null_range_scan,hash_join_cardinality,cset_narrowing,\
     sargable_casefold";
/// What `log_slow_verbosity` takes, of MariaDB and of Percona's server.
pub(crate) const SLOW_VERBOSITY: [&str; 12] = [
    "",
    "all",
    "engine",
    "explain",
    "full",
    "innodb",
    "microtime",
    "minimal",
    "profiling",
    "query_plan",
    "standard",
    "warnings",
];

/// What `session_track_system_variables` tells of if nothing else is said.
const TRACKED: &str = "time_zone,autocommit,character_set_client,character_set_results,\
                       character_set_connection";

const TRANSACTION_INFO: Kind = Kind::Word(&["OFF", "STATE", "CHARACTERISTICS"]);
/// MySQL's; the second one differs where there is a second optimizer.
const EXPLAIN_FORMATS: &[&str] = &["TRADITIONAL", "TRADITIONAL_STRICT", "TREE", "JSON"];

const ISOLATION: Kind = Kind::Word(&[
    "READ-UNCOMMITTED",
    "READ-COMMITTED",
    "REPEATABLE-READ",
    "SERIALIZABLE",
]);

/// The variables that mean something, sorted by name.
#[rustfmt::skip]
const CATALOG: &[Definition] = &[
    both("auto_increment_increment", range(1, 65535), "1"),
    both("auto_increment_offset", range(1, 65535), "1"),
    both("autocommit", Kind::Switch, "ON"),
    fixed("basedir", ""),
    both("big_tables", Kind::Switch, "OFF"),
    both("character_set_client", Kind::CharacterSet, "utf8mb4"),
    both("character_set_connection", Kind::CharacterSet, "utf8mb4"),
    both("character_set_database", Kind::CharacterSet, "utf8mb4"),
    both("character_set_filesystem", Kind::CharacterSet, "binary"),
    both("character_set_results", Kind::CharacterSet, "utf8mb4"),
    both("character_set_server", Kind::CharacterSet, "utf8mb4"),
    fixed("character_set_system", "utf8mb3"),
    both("collation_connection", Kind::Collation, "utf8mb4_0900_bin"),
    both("collation_database", Kind::Collation, "utf8mb4_0900_bin"),
    both("collation_server", Kind::Collation, "utf8mb4_0900_bin"),
    global("connect_timeout", range(2, 31_536_000), "10"),
    both("cte_max_recursion_depth", SIZE_32, "1000"),
    fixed("datadir", ""),
    both("default_storage_engine", ENGINE, "Mayfly"),
    both("default_tmp_storage_engine", ENGINE, "Mayfly"),
    both("default_week_format", range(0, 7), "0"),
    both("div_precision_increment", range(0, 30), "4"),
    new("error_count", Where::Session, ANY, "0", true),
    both("explain_format", Kind::Word(EXPLAIN_FORMATS), "TRADITIONAL"),
    both("explain_json_format_version", range(1, 1), "1"),
    both("explicit_defaults_for_timestamp", Kind::Switch, "ON"),
    both("foreign_key_checks", Kind::Switch, "ON"),
    both("group_concat_max_len", from(4, 1), "1024"),
    fixed("have_openssl", "DISABLED"),
    fixed("have_profiling", "YES"),
    fixed("hostname", "localhost"),
    new("identity", Where::Session, ANY, "0", false),
    global("init_connect", Kind::Text, ""),
    new("insert_id", Where::Session, ANY, "0", false),
    both("interactive_timeout", range(1, 31_536_000), "28800"),
    both("internal_tmp_mem_storage_engine", ENGINE, "TempTable"),
    both("join_buffer_size", from(128, 128), "262144"),
    new("last_insert_id", Where::Session, ANY, "0", false),
    both("lc_time_names", Kind::Locale { of_english: true }, "en_US"),
    fixed("license", "Apache-2.0"),
    global("local_infile", Kind::Switch, "ON"),
    both("lock_wait_timeout", range(1, 31_536_000), "31536000"),
    both("log_slow_rate_limit", range(1, u32::MAX as u64), "1"),
    both("log_slow_verbosity", Kind::Text, ""),
    both("long_query_time", Kind::Fraction, "10.000000"),
    fixed_switch("lower_case_file_system", "OFF"),
    fixed_number("lower_case_table_names", "0"),
    both("max_allowed_packet", Kind::Number { least: 1024, most: 1 << 30, block: 1024 }, "67108864"),
    global("max_connections", range(1, 100_000), "151"),
    fixed_number("max_digest_length", "1024"),
    both("max_error_count", range(0, 65535), "1024"),
    both("max_execution_time", SIZE_32, "0"),
    both("max_heap_table_size", from(16384, 1024), NO_CAP),
    both("max_join_size", from(1, 1), NO_CAP),
    both("max_length_for_sort_data", range(4, 8 << 20), "4096"),
    global("max_prepared_stmt_count", range(0, 4_194_304), "16382"),
    both("max_sort_length", range(4, 8 << 20), "1024"),
    both("max_tmp_session_space_usage", ANY, "0"),
    both("max_tmp_tables", range(1, u32::MAX as u64), "32"),
    global("max_tmp_total_space_usage", ANY, "0"),
    both("mayfly_infer_rows", ANY, "20480"),
    both("mayfly_max_planning_time", ANY, "30000"),
    both("mayfly_max_record_bytes", range(1024, 1 << 30), "67108864"),
    both("mayfly_max_tmp_statement_space_usage", ANY, "0"),
    fixed_number("mayfly_memory_bytes", "0"),
    both("mayfly_memory_wait_timeout", range(0, 31_536_000), "300"),
    fixed_number("mayfly_resident_max_bytes", "0"),
    fixed_number("mayfly_threads", "0"),
    both("net_buffer_length", range(1024, 1 << 20), "16384"),
    both("net_read_timeout", range(1, 31_536_000), "30"),
    both("net_write_timeout", range(1, 31_536_000), "60"),
    both("old_alter_table", Kind::Switch, "OFF"),
    fixed_number("open_files_limit", "0"),
    both("optimizer_switch", Kind::Flags, OPTIMIZER_SWITCH),
    fixed_switch("performance_schema", "ON"),
    fixed_number("performance_schema_digests_size", "10000"),
    fixed_number("performance_schema_max_digest_length", "1024"),
    fixed_number("performance_schema_max_digest_sample_age", "60"),
    fixed_number("performance_schema_max_sql_text_length", "1024"),
    fixed("pid_file", ""),
    fixed_number("port", "0"),
    both("profiling", Kind::Switch, "OFF"),
    both("profiling_history_size", range(0, 100), "15"),
    fixed_number("protocol_version", "10"),
    new("pseudo_thread_id", Where::Session, ANY, "0", true),
    both("query_cache_size", ANY, "0"),
    both("query_cache_type", Kind::Word(&["OFF", "ON", "DEMAND", "0", "1", "2"]), "OFF"),
    both("read_buffer_size", from(8192, 4096), "131072"),
    global("read_only", Kind::Switch, "OFF"),
    both("read_rnd_buffer_size", range(1, 2_147_483_647), "262144"),
    fixed("secure_file_priv", ""),
    fixed_number("server_id", "1"),
    both("session_track_schema", Kind::Switch, "ON"),
    both("session_track_state_change", Kind::Switch, "OFF"),
    both("session_track_system_variables", Kind::VariableNames, TRACKED),
    both("session_track_transaction_info", TRANSACTION_INFO, "OFF"),
    fixed_switch("skip_networking", "ON"),
    global("slow_query_log", Kind::Switch, "OFF"),
    fixed("slow_query_log_file", ""),
    fixed("socket", ""),
    both("sort_buffer_size", from(32768, 1), "262144"),
    both("sql_auto_is_null", Kind::Switch, "OFF"),
    both("sql_big_selects", Kind::Switch, "ON"),
    both("sql_buffer_result", Kind::Switch, "OFF"),
    new("sql_log_bin", Where::Session, Kind::Switch, "ON", false),
    both("sql_mode", Kind::SqlMode, SQL_MODE),
    both("sql_notes", Kind::Switch, "ON"),
    both("sql_quote_show_create", Kind::Switch, "ON"),
    both("sql_safe_updates", Kind::Switch, "OFF"),
    both("sql_select_limit", ANY, NO_CAP),
    both("sql_warnings", Kind::Switch, "OFF"),
    fixed("system_time_zone", "UTC"),
    global("temptable_max_mmap", ANY, "0"),
    global("temptable_max_ram", from(2 << 20, 1), "1073741824"),
    global("temptable_use_mmap", Kind::Switch, "OFF"),
    global("thread_cache_size", range(0, 16384), "0"),
    both("time_zone", Kind::TimeZone, "SYSTEM"),
    new("timestamp", Where::Session, Kind::Fraction, "0", false),
    both("tmp_disk_table_size", from(1024, 1), NO_CAP),
    both("tmp_memory_table_size", from(1024, 1), NO_CAP),
    both("tmp_table_size", from(1024, 1), NO_CAP),
    fixed("tmpdir", ""),
    both("transaction_isolation", ISOLATION, "REPEATABLE-READ"),
    both("transaction_read_only", Kind::Switch, "OFF"),
    both("tx_isolation", ISOLATION, "REPEATABLE-READ"),
    both("tx_read_only", Kind::Switch, "OFF"),
    both("unique_checks", Kind::Switch, "ON"),
    both("updatable_views_with_limit", Kind::Switch, "ON"),
    fixed("version", ""),
    fixed("version_comment", "Mayfly: temporary tables without the cliff"),
    fixed("version_compile_machine", std::env::consts::ARCH),
    fixed("version_compile_os", std::env::consts::OS),
    both("wait_timeout", range(1, 31_536_000), "28800"),
    new("warning_count", Where::Session, ANY, "0", true),
];

/// Modes that `sql_mode` takes.
pub(crate) const SQL_MODES: &[&str] = &[
    "REAL_AS_FLOAT",
    "PIPES_AS_CONCAT",
    "ANSI_QUOTES",
    "IGNORE_SPACE",
    "ONLY_FULL_GROUP_BY",
    "NO_UNSIGNED_SUBTRACTION",
    "NO_DIR_IN_CREATE",
    "NO_AUTO_VALUE_ON_ZERO",
    "NO_BACKSLASH_ESCAPES",
    "STRICT_TRANS_TABLES",
    "STRICT_ALL_TABLES",
    "NO_ZERO_IN_DATE",
    "NO_ZERO_DATE",
    "ALLOW_INVALID_DATES",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "TRADITIONAL",
    "HIGH_NOT_PRECEDENCE",
    "NO_ENGINE_SUBSTITUTION",
    "PAD_CHAR_TO_FULL_LENGTH",
    "TIME_TRUNCATE_FRACTIONAL",
    "NO_AUTO_CREATE_USER",
    "ANSI",
];

/// The bits of modes in a number. **Source**: `MODE_...` of MySQL's `sql/system_variables.h`.
pub(crate) const MODE_BITS: &[(u32, &str)] = &[
    (0, "REAL_AS_FLOAT"),
    (1, "PIPES_AS_CONCAT"),
    (2, "ANSI_QUOTES"),
    (3, "IGNORE_SPACE"),
    (5, "ONLY_FULL_GROUP_BY"),
    (6, "NO_UNSIGNED_SUBTRACTION"),
    (7, "NO_DIR_IN_CREATE"),
    (18, "ANSI"),
    (19, "NO_AUTO_VALUE_ON_ZERO"),
    (20, "NO_BACKSLASH_ESCAPES"),
    (21, "STRICT_TRANS_TABLES"),
    (22, "STRICT_ALL_TABLES"),
    (23, "NO_ZERO_IN_DATE"),
    (24, "NO_ZERO_DATE"),
    (25, "ALLOW_INVALID_DATES"),
    (26, "ERROR_FOR_DIVISION_BY_ZERO"),
    (27, "TRADITIONAL"),
    (28, "NO_AUTO_CREATE_USER"),
    (29, "HIGH_NOT_PRECEDENCE"),
    (30, "NO_ENGINE_SUBSTITUTION"),
    (31, "PAD_CHAR_TO_FULL_LENGTH"),
    (32, "TIME_TRUNCATE_FRACTIONAL"),
];

/// Modes that change what statements mean in ways that are not implemented.
pub(crate) const REFUSED_MODES: &[&str] = &[
    "ALLOW_INVALID_DATES",
    "NO_UNSIGNED_SUBTRACTION",
    "PAD_CHAR_TO_FULL_LENGTH",
    "NO_BACKSLASH_ESCAPES",
    "HIGH_NOT_PRECEDENCE",
];

/// Modes that stand for several, with these.
pub(crate) const COMBINED_MODES: &[(&str, &[&str])] = &[
    (
        "ANSI",
        &[
            "REAL_AS_FLOAT",
            "PIPES_AS_CONCAT",
            "ANSI_QUOTES",
            "IGNORE_SPACE",
            "ONLY_FULL_GROUP_BY",
        ],
    ),
    (
        "TRADITIONAL",
        &[
            "STRICT_TRANS_TABLES",
            "STRICT_ALL_TABLES",
            "NO_ZERO_IN_DATE",
            "NO_ZERO_DATE",
            "ERROR_FOR_DIVISION_BY_ZERO",
            "NO_ENGINE_SUBSTITUTION",
        ],
    ),
];

/// MariaDB's and MySQL's two names for one variable; the second is stored.
pub(crate) const ALIASES: &[(&str, &str)] = &[
    ("have_openssl", "have_ssl"),
    ("storage_engine", "default_storage_engine"),
    ("tmp_memory_table_size", "tmp_table_size"),
    ("tx_isolation", "transaction_isolation"),
    ("tx_read_only", "transaction_read_only"),
];

/// All variables, sorted by name.
static ALL: LazyLock<Vec<&'static Definition>> = LazyLock::new(|| {
    let mut all: Vec<_> = CATALOG.iter().chain(ACCEPTED).collect();
    all.sort_unstable_by_key(|definition| definition.name);
    all
});

/// All variables, sorted by name.
pub(crate) fn all() -> &'static [&'static Definition] {
    &ALL
}

/// The definition of a variable; `name` is in lower case.
pub(crate) fn find(name: &str) -> Option<&'static Definition> {
    let found = ALL.binary_search_by_key(&name, |definition| definition.name);
    found.ok().map(|place| ALL[place])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_is_there_once_and_found() {
        for pair in all().windows(2) {
            assert!(pair[0].name < pair[1].name, "{}", pair[0].name);
        }
        for definition in all() {
            assert_eq!(
                find(definition.name).map(|found| found.name),
                Some(definition.name)
            );
        }
        assert!(find("no_such_variable").is_none());
    }

    #[test]
    fn defaults_are_values() {
        for definition in all() {
            let holds = match definition.kind {
                Kind::Switch => ["ON", "OFF"].contains(&definition.default),
                Kind::Off => definition.default == "OFF",
                Kind::Number { least, most, .. } => {
                    let number = definition.default.parse::<u64>();
                    let is_own = definition.place == Where::Session;
                    number.is_ok_and(|number| is_own || (least..=most).contains(&number))
                }
                Kind::Word(words) => words.contains(&definition.default),
                _ => true,
            };
            assert!(holds, "{}", definition.name);
        }
    }
}
