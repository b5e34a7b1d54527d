//! The engine: one temp space, one worker pool, the shared tables, the global variables.
//!
//! Owns what all sessions share. Never runs a statement: that is `session`.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use mayfly_space::{Account, AccountOptions, Compression, IoMode, PageClass, Space, SpaceOptions};
use mayfly_sql::functions::{NamedLocks, random_uuid};
use mayfly_table::Dictionary;
use mayfly_types::{ErrorCode, MySqlError};
use tokio::runtime::{Handle, Runtime};

use crate::clients::Clients;
use crate::connection::Connection;
use crate::digests::{self, Digests};
use crate::file_access::FileAccess;
use crate::gone_tables::GoneTables;
use crate::local::DEFAULT_DATABASE;
use crate::plan_owner::PlanOwners;
use crate::planning::Planners;
use crate::shortage::Statements;
use crate::slow_log::SlowLog;
use crate::standard_input::StandardInput;
use crate::status::Status;
use crate::variables::Variables;
use crate::version::VERSION;
use crate::waiting::{OTHER_THREADS_MAX, THREAD_NAME, WORKER_STACK_BYTES, WaitingRoom};
use crate::watchdog::{self, Watchdog};
use crate::{client_memory, errors, runtimes, spare_threads};

/// Budgets from which the code that planning runs through (about 70 MB) no longer matters.
const CODE_MATTERS_BELOW: u64 = 1 << 30;

/// Budgets above which a part is left to those who read files: a row group of many columns takes
/// tens of megabytes of heap for each worker. (Smaller budgets meet smaller pieces, or pay for
/// them from what is stated to lie beyond the budget.)
const READERS_ABOVE: u64 = 1 << 30;
const READERS_SHARE: u64 = 16;
const READERS_BYTES_MAX: u64 = 128 << 20;

/// What of a budget pages and reservations may take.
fn memory_of_space(memory_bytes: u64) -> u64 {
    match memory_bytes > READERS_ABOVE {
        true => memory_bytes - (memory_bytes / READERS_SHARE).min(READERS_BYTES_MAX),
        false => memory_bytes,
    }
}

/// Records of text files may be so long, or a part of the budget if that is less: a record is
/// there several times while it becomes a row.
const RECORD_BYTES_MAX: u64 = 64 << 20;
const RECORDS_PER_MEMORY: u64 = 4;

/// The longest record of a text file, unless a session says otherwise.
fn record_bytes_max(memory_bytes: u64) -> u64 {
    (memory_bytes / RECORDS_PER_MEMORY).clamp(1024, RECORD_BYTES_MAX)
}

/// Threads that are there from the start beside the workers: one that answers control statements,
/// one that plans, and one that reads files.
const STARTED_BESIDE_WORKERS: usize = 3;

/// Threads beside the one that answers control statements, made when they are needed.
const CONTROL_THREADS_MAX: usize = 4;

/// What an engine is given at its start.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// The one memory budget, in bytes.
    pub memory_bytes: u64,
    /// Directories of the temp files; empty: the system's.
    pub temp_dirs: Vec<PathBuf>,
    /// Most bytes of temp file in all directories together.
    pub temp_limit_bytes: Option<u64>,
    /// How the temp file is read and written.
    pub io: IoMode,
    /// How temp data are compressed.
    pub compression: Compression,
    /// Size of pages; chosen from the memory when `None`.
    pub page_class: Option<PageClass>,
    /// Temp file space that is allocated at the start.
    pub pre_extend_bytes: u64,
    /// Workers; 0: one for each core.
    pub threads: usize,
    /// Most temp file bytes of one session.
    pub session_quota_bytes: Option<u64>,
    /// Most temp file bytes of one statement.
    pub statement_quota_bytes: Option<u64>,
    /// Memory of the process, in bytes, beyond which the largest statement ends with error 1038;
    /// `None`: nobody watches. Counted is all anonymous memory of the process: a program that
    /// embeds the engine adds its own.
    pub resident_max_bytes: Option<u64>,
    /// The files that statements may name.
    pub files: FileAccess,
    /// Whether statements may read the standard input of the process, as the file `-`.
    pub reads_standard_input: bool,
    /// Where slow statements are logged.
    pub slow_log: Option<PathBuf>,
    /// Where clients come in, which variables tell them.
    pub endpoints: Endpoints,
    /// Who may come in, for FLUSH PRIVILEGES.
    pub accounts: Option<Arc<dyn Accounts>>,
    /// Makes operations of the space fail, for tests.
    pub faults: Option<TestFaults>,
}

/// Who may come in: only the program that has the server knows them.
pub trait Accounts: std::fmt::Debug + Send + Sync {
    /// Reads them again, from wherever they are kept.
    ///
    /// # Errors
    /// Why they could not be read; those that were known before stay then.
    fn read_again(&self) -> Result<(), String>;
}

/// Where the clients of a server come in.
#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    /// The port that is listened on.
    pub port: Option<u16>,
    /// The path of the Unix socket.
    pub socket: Option<PathBuf>,
    /// Whether connections can be encrypted.
    pub has_tls: bool,
}

/// A hook that makes operations of the space fail; for tests.
#[derive(Clone)]
pub struct TestFaults(pub Arc<dyn mayfly_space::Faults>);

impl std::fmt::Debug for TestFaults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TestFaults")
    }
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            memory_bytes: 1 << 30,
            temp_dirs: Vec::new(),
            temp_limit_bytes: None,
            io: IoMode::default(),
            compression: Compression::default(),
            page_class: None,
            pre_extend_bytes: 0,
            threads: 0,
            session_quota_bytes: None,
            statement_quota_bytes: None,
            resident_max_bytes: None,
            files: FileAccess::default(),
            reads_standard_input: false,
            endpoints: Endpoints::default(),
            accounts: None,
            slow_log: None,
            faults: None,
        }
    }
}

/// A running engine; cheap to clone.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    // fixed
    pub(crate) options: EngineOptions,
    pub(crate) threads: usize,
    pub(crate) started: Instant,
    pub(crate) space: Space,
    /// Pays for tables that all sessions see.
    pub(crate) table_account: Account,
    /// Pays for what clients send and prepare.
    client_account: Account,
    pub(crate) dictionary: Dictionary,
    pub(crate) slow_log: Option<SlowLog>,
    // state
    pub(crate) globals: Mutex<Globals>,
    connections: Mutex<BTreeMap<u64, Weak<Connection>>>,
    last_connection_id: AtomicU64,
    /// Plans that connections keep.
    pub(crate) kept_plans: Arc<AtomicUsize>,
    /// The connections that plan for others.
    pub(crate) plan_owners: PlanOwners,
    /// The clients that came and went.
    clients: Clients,
    /// The locks of GET_LOCK.
    pub(crate) named_locks: Arc<NamedLocks>,
    /// What statements have cost, by their digest.
    pub(crate) digests: Digests,
    /// The threads that plan.
    pub(crate) planners: Arc<Planners>,
    /// Where functions wait.
    pub(crate) waiting_room: Arc<WaitingRoom>,
    /// The statements that run, and those that wait for memory.
    pub(crate) statements: Arc<Statements>,
    pub(crate) watchdog: Watchdog,
    /// Large tables that are being freed.
    pub(crate) gone_tables: GoneTables,
    pub(crate) standard_input: StandardInput,
    // resources
    runtime: Option<Runtime>,
    /// One thread that no query runs on: see [`Engine::control`].
    control: Option<Runtime>,
}

/// What all sessions share and may change.
pub(crate) struct Globals {
    pub(crate) variables: Variables,
    pub(crate) status: Status,
    pub(crate) connections_made: u64,
}

/// The space that the options ask for.
fn open_space(options: &EngineOptions) -> Result<Space, MySqlError> {
    Space::open(SpaceOptions {
        memory_bytes: memory_of_space(options.memory_bytes),
        temp_dirs: options.temp_dirs.clone(),
        temp_limit_bytes: options.temp_limit_bytes,
        io: options.io,
        compression: options.compression,
        page_class: options.page_class,
        pre_extend_bytes: options.pre_extend_bytes,
        faults: options.faults.clone().map(|faults| faults.0),
        ..SpaceOptions::default()
    })
    .map_err(|error| errors::from_space(&error))
}

impl Engine {
    /// Opens the temp space and starts the workers.
    ///
    /// # Errors
    /// When the space cannot be opened or the workers cannot be started.
    pub fn open(options: EngineOptions) -> Result<Engine, MySqlError> {
        let threads = match options.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let space = open_space(&options)?;
        spare_threads::check(threads + STARTED_BESIDE_WORKERS, WORKER_STACK_BYTES)?;
        let runtime = runtimes::start(THREAD_NAME, threads, OTHER_THREADS_MAX)?;
        spare_threads::keep_one(&runtime);
        let control = runtimes::start("mayfly-control", 1, CONTROL_THREADS_MAX)?;
        let planners = Planners::start(threads, WORKER_STACK_BYTES);
        let planners = planners.map_err(|error| {
            MySqlError::with_message(ErrorCode::OutOfResources, error.to_string())
        })?;
        let slow_log = options.slow_log.as_deref().map(SlowLog::open).transpose();
        let slow_log = slow_log.map_err(|error| {
            let message = format!("option slow-log: {error}");
            MySqlError::with_message(ErrorCode::OutOfResources, message)
        })?;
        let dictionary = Dictionary::new();
        dictionary
            .create_database(DEFAULT_DATABASE)
            .map_err(|error| errors::from_table(&error))?;
        let options_of_tables = AccountOptions {
            takes_memory: true,
            ..AccountOptions::default()
        };
        let table_account = space.root().child("tables", options_of_tables);
        let client_account = client_memory::account_of_clients(&space);
        let globals = Globals {
            variables: start_values(&options, threads),
            status: Status::default(),
            connections_made: 0,
        };
        let resident_max_bytes = options.resident_max_bytes;
        let engine = Engine {
            shared: Arc::new(Shared {
                digests: Digests::new(options.memory_bytes),
                options,
                threads,
                started: Instant::now(),
                space,
                table_account,
                client_account,
                dictionary,
                slow_log,
                globals: Mutex::new(globals),
                connections: Mutex::new(BTreeMap::new()),
                last_connection_id: AtomicU64::new(0),
                kept_plans: Arc::default(),
                plan_owners: PlanOwners::default(),
                clients: Clients::default(),
                named_locks: Arc::default(),
                planners: Arc::new(planners),
                waiting_room: Arc::default(),
                statements: Arc::default(),
                watchdog: Watchdog::default(),
                gone_tables: GoneTables::default(),
                standard_input: StandardInput::default(),
                runtime: Some(runtime),
                control: Some(control),
            }),
        };
        if let Some(limit_bytes) = resident_max_bytes {
            let shared = Arc::downgrade(&engine.shared);
            let watch = watchdog::watch(shared, limit_bytes);
            engine.control().spawn(watch);
        }
        Ok(engine)
    }

    pub(crate) fn of(shared: Arc<Shared>) -> Engine {
        Engine { shared }
    }

    /// A number that no other connection has.
    pub fn next_connection_id(&self) -> u64 {
        let last = &self.shared.last_connection_id;
        last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Opens a connection that has a number already, with the account of its client.
    pub(crate) fn open_connection(&self, id: u64) -> (Arc<Connection>, Account) {
        let connection = Connection::open(self.clone(), id);
        self.globals().connections_made += 1;
        self.register(&connection);
        let client = client_memory::account_of_client(&self.shared.client_account);
        (connection, client)
    }

    /// The counters of the clients that came and went.
    pub fn clients(&self) -> &Clients {
        &self.shared.clients
    }

    /// `@@max_connections`.
    pub fn max_connections(&self) -> u64 {
        self.globals().variables.number("max_connections")
    }

    /// Whether there are sessions, or statements of sessions that are gone which go on.
    pub fn has_connections(&self) -> bool {
        let connections = self.connections();
        connections.values().any(|known| known.strong_count() > 0)
    }

    /// The line that `mysqladmin status` prints.
    pub fn statistics(&self) -> String {
        let uptime = self.shared.started.elapsed().as_secs().max(1);
        let threads = self.open_connections().len();
        let (questions, slow) = {
            let status = &self.globals().status;
            (status.questions, status.slow_queries)
        };
        let dictionary = &self.shared.dictionary;
        let databases = dictionary.databases();
        let tables = databases
            .iter()
            .filter_map(|name| dictionary.tables(name).ok());
        let tables: usize = tables.map(|tables| tables.len()).sum();
        let rate = questions as f64 / uptime as f64;
        format!(
            "Uptime: {uptime}  Threads: {threads}  Questions: {questions}  Slow queries: {slow}  \
             Opens: {tables}  Open tables: {tables}  Queries per second avg: {rate:.3}"
        )
    }

    /// Makes a connection known to all others.
    pub(crate) fn register(&self, connection: &Arc<Connection>) {
        let id = connection.id;
        let mut connections = self.connections();
        connections.insert(id, Arc::downgrade(connection));
        self.shared.clients.are(connections.len() as u64);
    }

    /// Before a statement with a small budget: planning it runs through much code.
    pub(crate) fn make_room_for_planning(&self) {
        let space = self.space();
        if space.memory_bytes() < CODE_MATTERS_BELOW {
            space.make_room_for_code();
        }
    }

    /// Opens the file of the slow query log anew: somebody may have moved it.
    ///
    /// # Errors
    /// 1105 where the file cannot be opened; the log goes on in the one that it has.
    pub fn reopen_slow_log(&self) -> Result<(), MySqlError> {
        let Some(log) = &self.shared().slow_log else {
            return Ok(());
        };
        log.reopen().map_err(|error| {
            let message = format!("the slow query log: {error}");
            MySqlError::with_message(ErrorCode::Unknown, message)
        })
    }

    /// Reads again who may come in; who is in stays.
    ///
    /// # Errors
    /// 1105 where they cannot be read; those that were known before stay.
    pub fn read_accounts_again(&self) -> Result<(), MySqlError> {
        let Some(accounts) = &self.shared().options.accounts else {
            return Ok(());
        };
        let read = accounts.read_again();
        read.map_err(|message| MySqlError::with_message(ErrorCode::Unknown, message))
    }

    /// The temp space.
    pub fn space(&self) -> &Space {
        &self.shared.space
    }

    /// The workers.
    pub fn threads(&self) -> usize {
        self.shared.threads
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(crate) fn globals(&self) -> MutexGuard<'_, Globals> {
        self.shared
            .globals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn runtime(&self) -> &Handle {
        self.shared
            .runtime
            .as_ref()
            .expect("set until the engine is dropped")
            .handle()
    }

    /// Where statements run that must be answered however busy the workers are: KILL, SHOW
    /// PROCESSLIST.
    pub(crate) fn control(&self) -> &Handle {
        self.shared
            .control
            .as_ref()
            .expect("set until the engine is dropped")
            .handle()
    }

    fn connections(&self) -> MutexGuard<'_, BTreeMap<u64, Weak<Connection>>> {
        self.shared
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The sessions that are open.
    pub(crate) fn open_connections(&self) -> Vec<Arc<Connection>> {
        self.connections()
            .values()
            .filter_map(Weak::upgrade)
            .collect()
    }

    /// Forgets a connection that is gone, unless another one took its number.
    pub(crate) fn forget(&self, id: u64) {
        let mut connections = self.connections();
        if connections
            .get(&id)
            .is_some_and(|known| known.strong_count() == 0)
        {
            connections.remove(&id);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.gone_tables.finish();
        for runtime in [self.runtime.take(), self.control.take()] {
            runtime.into_iter().for_each(runtimes::end);
        }
    }
}

fn switch(is_on: bool) -> String {
    if is_on { "ON" } else { "OFF" }.to_owned()
}

/// The name of the machine.
fn host_name() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let name = read.unwrap_or_default().trim().to_owned();
    if name.is_empty() {
        "localhost".to_owned()
    } else {
        name
    }
}

/// Global variables whose values are known only at the start.
fn start_values(options: &EngineOptions, threads: usize) -> Variables {
    let dirs: Vec<String> = if options.temp_dirs.is_empty() {
        vec![std::env::temp_dir().display().to_string()]
    } else {
        options
            .temp_dirs
            .iter()
            .map(|dir| dir.display().to_string())
            .collect()
    };
    let mut variables = Variables::default();
    let values: HashMap<&str, String> = HashMap::from([
        ("version", VERSION.to_owned()),
        ("tmpdir", dirs.join(":")),
        ("hostname", host_name()),
        ("server_uuid", random_uuid()),
        ("port", options.endpoints.port.unwrap_or(0).to_string()),
        (
            "socket",
            { options.endpoints.socket.as_ref() }
                .map_or_else(String::new, |path| path.display().to_string()),
        ),
        ("skip_networking", switch(options.endpoints.port.is_none())),
        (
            "have_ssl",
            {
                if options.endpoints.has_tls {
                    "YES"
                } else {
                    "DISABLED"
                }
            }
            .to_owned(),
        ),
        ("secure_file_priv", options.files.variable()),
        ("slow_query_log", switch(options.slow_log.is_some())),
        (
            "slow_query_log_file",
            { options.slow_log.as_ref() }
                .map_or_else(String::new, |path| path.display().to_string()),
        ),
        ("mayfly_memory_bytes", options.memory_bytes.to_string()),
        (
            "mayfly_resident_max_bytes",
            options.resident_max_bytes.unwrap_or(0).to_string(),
        ),
        ("mayfly_threads", threads.to_string()),
        (
            "performance_schema_digests_size",
            digests::rows_max(options.memory_bytes).to_string(),
        ),
        (
            "mayfly_max_record_bytes",
            record_bytes_max(options.memory_bytes).to_string(),
        ),
        (
            "max_tmp_session_space_usage",
            options.session_quota_bytes.unwrap_or(0).to_string(),
        ),
        (
            "mayfly_max_tmp_statement_space_usage",
            options.statement_quota_bytes.unwrap_or(0).to_string(),
        ),
        (
            "max_tmp_total_space_usage",
            options.temp_limit_bytes.unwrap_or(0).to_string(),
        ),
    ]);
    for (name, value) in values {
        variables.put(name, value);
    }
    variables
}
