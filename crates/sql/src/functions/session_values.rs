//! What functions may know of the session that calls them.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryPool;
use mayfly_types::{ErrorCode, Level, MySqlError, Warning};

use super::named_locks::LockHolder;

/// The warnings of a statement that are kept as text at least; the others are only counted.
const KEPT_WARNINGS: u64 = 1024;

/// Where a function may keep its thread.
pub trait Waiting: std::fmt::Debug + Send + Sync {
    /// Runs `wait`, which keeps its thread for a while, so that no other statement has to.
    ///
    /// # Errors
    /// If too many others wait.
    fn wait(&self, wait: &mut dyn FnMut()) -> std::result::Result<(), MySqlError>;
}

/// The values of a session that functions read.
#[derive(Clone, Debug)]
pub struct Values {
    /// VERSION().
    pub version: String,
    /// DATABASE(), if one is selected.
    pub database: Option<String>,
    /// CURRENT_USER(), as `name@host`.
    pub user: String,
    /// CONNECTION_ID().
    pub connection_id: u64,
    /// LAST_INSERT_ID() without an argument.
    pub last_insert_id: u64,
    /// What the statement said by LAST_INSERT_ID(expression), if it did.
    pub said_insert_id: Option<u64>,
    /// ROW_COUNT() of the last statement; -1 after one with a result.
    pub row_count: i64,
    /// FOUND_ROWS() of the last SELECT.
    pub found_rows: u64,
    /// The start of the statement, in microseconds since 1970 UTC: NOW() does not move within it.
    pub now_micros: i64,
    /// Offset of the session's time zone from UTC.
    pub time_zone_seconds: i32,
    /// `@@group_concat_max_len`.
    pub group_concat_max_bytes: u64,
    /// `@@max_allowed_packet`: no string result is longer, NULL and warning 1301 instead.
    pub max_packet_bytes: u64,
    /// `@@default_week_format`.
    pub default_week_format: u8,
    /// `@@div_precision_increment`.
    pub division_digits: u8,
    /// Whether `sql_mode` has ERROR_FOR_DIVISION_BY_ZERO: then a division by zero warns.
    pub warn_on_division_by_zero: bool,
    /// Whether the statement stores values in strict mode: then it does not warn but fails.
    pub refuses_division_by_zero: bool,
    /// Whether a value that is cut or wrong is an error: what is written in strict mode depends on
    /// it.
    pub refuses_misfits: bool,
    /// The first warning that is such an error. Expressions go on; who writes looks here before
    /// anybody sees what was written.
    pub refused: Option<MySqlError>,
    /// Whether `sql_mode` has PIPES_AS_CONCAT.
    pub pipes_as_concat: bool,
    /// Whether the statement is to end: what waits looks at it.
    pub stop: Arc<AtomicBool>,
    /// The memory of the plan that runs: long results of functions are paid from it.
    pub plan_memory: Option<Weak<dyn MemoryPool>>,
    /// The memory that pays where no plan runs.
    pub session_memory: Option<Arc<dyn MemoryPool>>,
    /// Whether the statement has done what is not taken back if it fails, and would be done a
    /// second time if it started again: locks taken or given back, time slept.
    pub took_effect: bool,
    /// Where functions wait; on their thread if nobody says otherwise.
    pub waiting: Option<Arc<dyn Waiting>>,
    /// The named locks of the connection.
    pub locks: LockHolder,
    /// `@@max_error_count`.
    pub warnings_shown: u64,
    /// The warnings of the statement.
    pub warnings: Vec<Warning>,
    /// How many warnings there were, kept or not.
    pub warning_count: u64,
    /// How many warnings the session ever had: it never goes back.
    pub warned: u64,
    /// How often a function read what another statement may find otherwise: it never goes back.
    pub reads: u64,
}

impl Default for Values {
    fn default() -> Self {
        Self {
            version: "8.4.0-Mayfly".to_owned(),
            database: None,
            user: "root@localhost".to_owned(),
            connection_id: 0,
            last_insert_id: 0,
            said_insert_id: None,
            row_count: -1,
            found_rows: 0,
            now_micros: 0,
            time_zone_seconds: 0,
            group_concat_max_bytes: 1024,
            max_packet_bytes: 64 << 20,
            default_week_format: 0,
            division_digits: 4,
            warn_on_division_by_zero: true,
            refuses_division_by_zero: false,
            refuses_misfits: false,
            refused: None,
            pipes_as_concat: false,
            stop: Arc::default(),
            plan_memory: None,
            session_memory: None,
            took_effect: false,
            waiting: None,
            locks: LockHolder::default(),
            warnings_shown: 64,
            warnings: Vec::new(),
            warning_count: 0,
            warned: 0,
            reads: 0,
        }
    }
}

/// The shared values of one session, an extension of DataFusion's configuration.
///
/// Put one into a session's configuration (`options.extensions.insert(SessionValues::default())`)
/// and keep a clone: clones share the values. Between statements set `now_micros` and empty the
/// warnings with [`SessionValues::begin`].
#[derive(Clone, Debug, Default)]
pub struct SessionValues {
    values: Arc<Mutex<Values>>,
}

impl SessionValues {
    /// The values, to read or to change. The guard must be dropped before a plan runs.
    pub fn lock(&self) -> MutexGuard<'_, Values> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The values for a function that reads of them what another statement may find otherwise: a
    /// plan that something was folded in with such a value is good for one statement only, and
    /// who keeps plans counts these reads.
    pub(crate) fn of_statement(&self) -> MutexGuard<'_, Values> {
        let mut values = self.lock();
        match READS_APART.get() {
            Some(reads) => READS_APART.set(Some(reads + 1)),
            None => values.reads += 1,
        }
        values
    }

    /// Whether these are the values of the same session.
    pub fn is(&self, other: &SessionValues) -> bool {
        Arc::ptr_eq(&self.values, &other.values)
    }

    /// Begins a statement: sets its time, and forgets the warnings of the one before.
    pub fn begin(&self, now_micros: i64) {
        let mut values = self.lock();
        values.now_micros = now_micros;
        values.refuses_division_by_zero = false;
        values.refuses_misfits = false;
        values.refused = None;
        values.said_insert_id = None;
        values.warnings.clear();
        values.warning_count = 0;
    }

    /// Adds a warning to the statement's, unless it is an error.
    pub fn warn(&self, warning: Warning) {
        let Some(warning) = put_aside(warning) else {
            return;
        };
        let mut values = self.lock();
        if values.refuses_misfits && is_misfit(&warning) {
            values.warned += 1;
            values.refused.get_or_insert(warning.error);
            return;
        }
        values.keep(warning);
    }

    /// Adds a warning that is one in every mode.
    pub fn note(&self, warning: Warning) {
        if let Some(warning) = put_aside(warning) {
            self.lock().keep(warning);
        }
    }

    /// Whether one more warning would only be counted, so that their order no longer matters.
    pub fn is_full(&self) -> bool {
        let values = self.lock();
        values.is_full() && !values.refuses_misfits
    }

    /// Whether one more note would only be counted: it is an error in no mode.
    pub fn only_counts_notes(&self) -> bool {
        self.lock().is_full()
    }
}

impl Values {
    /// Where long results of functions are paid from.
    pub(super) fn memory(&self) -> Option<Arc<dyn MemoryPool>> {
        let of_plan = self.plan_memory.as_ref().and_then(Weak::upgrade);
        of_plan.or_else(|| self.session_memory.clone())
    }

    fn keep(&mut self, warning: Warning) {
        self.warned += 1;
        self.warning_count += 1;
        if !self.is_full() {
            self.warnings.push(warning);
        }
    }

    fn is_full(&self) -> bool {
        self.warnings.len() as u64 >= self.warnings_shown.max(KEPT_WARNINGS)
    }
}

thread_local! {
    /// The warnings of what this thread tries.
    static ASIDE: RefCell<Option<Vec<Warning>>> = const { RefCell::new(None) };
    /// The reads of what this thread only looks at.
    static READS_APART: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Computes what may not be used, on this thread: what it reads of a statement's own values does
/// not count, and is told beside the result.
pub(crate) fn looked_at<T>(run: impl FnOnce() -> T) -> (T, bool) {
    /// What held before, also after a panic.
    struct Before(Option<u64>);
    impl Drop for Before {
        fn drop(&mut self) {
            READS_APART.set(self.0);
        }
    }
    let _before = Before(READS_APART.replace(Some(0)));
    let result = run();
    (result, READS_APART.get().is_some_and(|reads| reads > 0))
}

/// Runs what may have to be done again in another order, on this thread: its warnings are those of
/// no statement, and are told beside the result.
pub fn aside<T>(run: impl FnOnce() -> T) -> (T, Vec<Warning>) {
    /// What was kept apart before, also after a panic.
    struct Before(Option<Vec<Warning>>);
    impl Drop for Before {
        fn drop(&mut self) {
            ASIDE.set(self.0.take());
        }
    }
    let _before = Before(ASIDE.replace(Some(Vec::new())));
    let result = run();
    (result, ASIDE.take().unwrap_or_default())
}

/// Keeps a warning apart if this thread tries something; gives it back if not.
fn put_aside(warning: Warning) -> Option<Warning> {
    ASIDE.with_borrow_mut(|aside| match aside {
        Some(aside) => {
            aside.push(warning);
            None
        }
        None => Some(warning),
    })
}

/// Whether strict mode makes a warning of an expression an error.
fn is_misfit(warning: &Warning) -> bool {
    const CODES: [ErrorCode; 8] = [
        ErrorCode::CutByGroupConcat,
        ErrorCode::OutOfRange,
        ErrorCode::TruncatedValue,
        ErrorCode::ResultTooLarge,
        ErrorCode::DivisionByZero,
        ErrorCode::TruncatedWrongValueForField,
        ErrorCode::WrongValueForType,
        ErrorCode::DatetimeOverflow,
    ];
    // CAST AS CHAR(n) is meant to cut.
    let is_cut = ["CHAR(", "BINARY("].iter().any(|of| {
        let text = warning.error.message.strip_prefix("Truncated incorrect ");
        text.is_some_and(|text| text.starts_with(of))
    });
    warning.level == Level::Warning && !is_cut && CODES.iter().any(|code| warning.error.is(*code))
}

impl ConfigExtension for SessionValues {
    const PREFIX: &'static str = "mysql";
}

impl ExtensionOptions for SessionValues {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        // Shared on purpose: warnings raised anywhere belong to the one session.
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _value: &str) -> Result<()> {
        Err(DataFusionError::Configuration(format!(
            "mysql.{key} is not set by text"
        )))
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}
