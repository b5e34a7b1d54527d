//! What statements ask of the variables all the time.
//!
//! A variable is a text that is looked up by its name: some hundred nanoseconds each, which point
//! statements would pay a dozen times.

use std::time::Duration;

use mayfly_types::CharacterSet;

use crate::slow_log::SlowSettings;
use crate::statement::Numbering;
use crate::tracks::Tracks;
use crate::variables::Variables;

/// What statements ask of the variables all the time, as it was at one version of them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Settings {
    version: Option<u64>,
    pub(crate) autocommit: bool,
    /// Whether double quotes enclose names.
    pub(crate) has_ansi_quotes: bool,
    /// Whether transactions are READ ONLY that do not say otherwise.
    pub(crate) only_reads: bool,
    /// Which numbers AUTO_INCREMENT columns get.
    pub(crate) numbering: Numbering,
    /// The first number that the next INSERT gives, if it was said by `insert_id`; else 0.
    pub(crate) insert_id: u64,
    /// Whether changes that read all rows are refused.
    pub(crate) safe_updates: bool,
    /// Whether a SELECT returns all of its rows.
    pub(crate) selects_all: bool,
    /// How long a client may say nothing, in seconds.
    pub(crate) wait_timeout: u64,
    /// How long each read of what it sends may take, in seconds.
    pub(crate) read_timeout: u64,
    /// Whether statements are profiled, and how many of them are kept.
    pub(crate) profiling: bool,
    pub(crate) profiles_max: u64,
    /// How much of the temp file one statement may take.
    pub(crate) statement_quota_bytes: Option<u64>,
    /// How long planning one statement may take, in milliseconds; 0: for ever.
    pub(crate) planning_max_ms: u64,
    /// How long a statement waits for memory that others have.
    pub(crate) memory_wait: Duration,
    /// What the client sends is in this character set.
    pub(crate) client_set: CharacterSet,
    /// What it reads is in this one, with the number of its collation; `None`: nothing is
    /// converted.
    pub(crate) results_set: Option<(CharacterSet, u16)>,
    /// Which changes of the session the client is told.
    pub(crate) tracks: Tracks,
    /// Which statements are slow, and what is said of them.
    pub(crate) slow: SlowSettings,
}

impl Settings {
    /// Whether no variable has changed since.
    pub(crate) fn are_of(&self, variables: &Variables) -> bool {
        self.version == Some(variables.version())
    }

    pub(crate) fn of(variables: &Variables) -> Settings {
        Settings {
            version: Some(variables.version()),
            autocommit: variables.text("autocommit") != "OFF",
            has_ansi_quotes: variables.has_mode("ANSI_QUOTES"),
            only_reads: variables.is_on("transaction_read_only"),
            numbering: Numbering {
                counts_zero: !variables.has_mode("NO_AUTO_VALUE_ON_ZERO"),
                increment: variables.number("auto_increment_increment").max(1),
                offset: variables.number("auto_increment_offset"),
            },
            insert_id: variables.number("insert_id"),
            safe_updates: variables.is_on("sql_safe_updates"),
            selects_all: variables.number("sql_select_limit") == u64::MAX,
            wait_timeout: variables.number("wait_timeout"),
            read_timeout: variables.number("net_read_timeout"),
            profiling: variables.is_on("profiling"),
            profiles_max: variables.number("profiling_history_size"),
            statement_quota_bytes: variables.quota("mayfly_max_tmp_statement_space_usage"),
            planning_max_ms: variables.number("mayfly_max_planning_time"),
            memory_wait: Duration::from_secs(variables.number("mayfly_memory_wait_timeout")),
            client_set: variables.client_set(),
            results_set: variables.results_set(),
            tracks: Tracks::new(variables),
            slow: SlowSettings::new(
                &variables.text("long_query_time"),
                &variables.text("log_slow_verbosity"),
                variables.number("log_slow_rate_limit"),
            ),
        }
    }
}
