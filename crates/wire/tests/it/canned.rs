//! A server with canned answers: what a statement says is what its text is.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{Field, Schema};
use mayfly_types::{CharacterSet, ColumnType, ErrorCode, MySqlError};
use mayfly_wire::{
    Account, Answered, ColumnDefinition, Connection, Cursor, Failure, Login, Memory, OpenCursor,
    Parameter, Peer, Prepared, Refresh, Reply, Secret, Server, ServerStatus, SessionChange,
    Summary, TextEncoding, Value, too_many_connections,
};

use tokio::sync::Notify;

use crate::all_types;

/// Rows of a batch of `rows N`.
const BATCH_ROWS: usize = 1000;

/// Users by name, and what happened.
pub struct Canned {
    pub accounts: HashMap<String, Account>,
    pub places_max: usize,
    pub shared: Arc<Shared>,
    pub last_id: AtomicU32,
    pub idle_timeout: Duration,
    /// What all connections together may hold for their clients.
    pub memory_max: usize,
}

/// What tests look at.
#[derive(Default)]
pub struct Shared {
    /// Connections that are open.
    pub places: AtomicUsize,
    /// Statements that were dropped before their end.
    pub stopped: AtomicUsize,
    /// Rows that `rows N` has made.
    pub rows_made: AtomicUsize,
    /// Prepared statements that exist.
    pub statements: AtomicUsize,
    /// Bytes that connections hold for their clients, and the most that they have held.
    pub held_bytes: AtomicUsize,
    pub most_held_bytes: AtomicUsize,
    /// COM_DEBUG that came.
    pub debugged: AtomicUsize,
    /// Ends idle connections.
    pub kill: Notify,
}

pub struct Place(Arc<Shared>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.places.fetch_sub(1, Ordering::SeqCst);
    }
}

pub fn account(secret: Secret) -> Account {
    Account {
        secret,
        socket_user_id: None,
    }
}

impl Server for Canned {
    type Place = Place;
    type Connection = CannedConnection;

    fn admit(&self, _peer: &Peer) -> Result<(u32, Place), MySqlError> {
        if self.shared.places.fetch_add(1, Ordering::SeqCst) >= self.places_max {
            self.shared.places.fetch_sub(1, Ordering::SeqCst);
            return Err(too_many_connections());
        }
        let id = self.last_id.fetch_add(1, Ordering::SeqCst) + 1;
        Ok((id, Place(Arc::clone(&self.shared))))
    }

    async fn account(&self, user: &str, _peer: &Peer) -> Option<Account> {
        self.accounts.get(user).cloned()
    }

    async fn connect(&self, place: Place, login: &Login) -> Result<CannedConnection, MySqlError> {
        check_database(login)?;
        Ok(CannedConnection {
            login: login.clone(),
            temporary: false,
            shared: Arc::clone(&self.shared),
            idle_timeout: self.idle_timeout,
            memory_max: self.memory_max,
            _place: place,
        })
    }
}

fn check_database(login: &Login) -> Result<(), MySqlError> {
    match login.database.as_deref() {
        Some(b"missing") => Err(MySqlError::new(ErrorCode::UnknownDatabase, &[&"missing"])),
        _ => Ok(()),
    }
}

pub struct CannedConnection {
    login: Login,
    /// Whether something exists that a reset must drop.
    temporary: bool,
    shared: Arc<Shared>,
    idle_timeout: Duration,
    memory_max: usize,
    _place: Place,
}

/// Counts what a connection holds, up to a limit for all of them.
struct CannedMemory {
    shared: Arc<Shared>,
    held: usize,
    max: usize,
}

impl Memory for CannedMemory {
    fn resize(&mut self, bytes: usize) -> Result<(), MySqlError> {
        let held = &self.shared.held_bytes;
        let others = held.load(Ordering::SeqCst) - self.held;
        if bytes > self.held && others + bytes > self.max {
            return Err(MySqlError::new(ErrorCode::OutOfResources, &[]));
        }
        held.store(others + bytes, Ordering::SeqCst);
        self.held = bytes;
        let most = &self.shared.most_held_bytes;
        most.fetch_max(others + bytes, Ordering::SeqCst);
        Ok(())
    }
}

impl Drop for CannedMemory {
    fn drop(&mut self) {
        self.resize(0).expect("less is always granted");
    }
}

/// Counts statements that are dropped before their end.
struct Stopped(Option<Arc<Shared>>);

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.stopped.fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn varchar(name: &str) -> ColumnDefinition {
    ColumnDefinition::new(name, ColumnType::VarChar { length: 64 }, true)
}

fn bigint(name: &str) -> ColumnDefinition {
    ColumnDefinition::new(name, ColumnType::BigInt { unsigned: false }, false)
}

pub fn n_columns() -> Vec<ColumnDefinition> {
    let mut n = bigint("n");
    n.schema = "test".into();
    n.table = "alias".into();
    n.original_table = "numbers".into();
    n.original_name = "number".into();
    n.flags = mayfly_wire::ColumnFlags::PRI_KEY;
    vec![n, varchar("word")]
}

pub fn n_batch(start: usize, count: usize) -> RecordBatch {
    let numbers = Int64Array::from_iter_values((start..start + count).map(|n| n as i64));
    let words = StringViewArray::from_iter((start..start + count).map(|n| {
        let is_null = n % 10 == 3;
        (!is_null).then(|| format!("word number {n}"))
    }));
    let schema = Schema::new(vec![
        ColumnType::BigInt { unsigned: false }.to_arrow("n", false),
        ColumnType::VarChar { length: 64 }.to_arrow("word", true),
    ]);
    let arrays: Vec<ArrayRef> = vec![Arc::new(numbers), Arc::new(words)];
    RecordBatch::try_new(Arc::new(schema), arrays).unwrap()
}

fn syntax(text: &str) -> Failure {
    MySqlError::new(ErrorCode::Syntax, &[&text, &1]).into()
}

impl CannedConnection {
    fn last(&self) -> Summary {
        Summary::new(self.status())
    }

    /// One statement; `more` says that another result follows.
    async fn run(&mut self, text: &str, more: bool, reply: &mut Reply) -> Answered {
        let mut status = self.status();
        if more {
            status = status | ServerStatus::MORE_RESULTS_EXISTS;
        }
        let end = Summary::new(status);
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match word {
            "SELECT" | "select" if rest.starts_with("@@") => {
                self.variables(rest, &end, reply).await
            }
            "one" => {
                let columns = [bigint("1")];
                let mut rows = reply.rows(&columns, status).await?;
                rows.push_row([Value::Integer(1)])?;
                rows.finish(&end).await
            }
            "types" => {
                let (columns, batch) = all_types::all();
                let mut rows = reply.rows(&columns, status).await?;
                rows.push_batch(&batch).await?;
                rows.finish(&end).await
            }
            "rows" => {
                let Ok(count) = rest.parse::<usize>() else {
                    return Err(syntax(rest));
                };
                let mut stopped = Stopped(Some(Arc::clone(&self.shared)));
                let columns = n_columns();
                let mut rows = reply.rows(&columns, status).await?;
                for start in (0..count).step_by(BATCH_ROWS) {
                    let batch = n_batch(start, BATCH_ROWS.min(count - start));
                    self.shared
                        .rows_made
                        .fetch_add(batch.num_rows(), Ordering::SeqCst);
                    rows.push_batch(&batch).await?;
                }
                stopped.0 = None;
                rows.finish(&end).await
            }
            "big" => {
                let Ok(size) = rest.parse() else {
                    return Err(syntax(rest));
                };
                let value = vec![b'x'; size];
                let columns = [ColumnDefinition::new(
                    "big",
                    ColumnType::Text(mayfly_types::BlobSize::Long),
                    false,
                )];
                let mut rows = reply.rows(&columns, status).await?;
                rows.push_row([Value::Bytes(&value)])?;
                rows.finish(&end).await
            }
            "length" => {
                reply
                    .done(&Summary {
                        affected_rows: text.len() as u64,
                        ..end
                    })
                    .await
            }
            "latin1" => {
                reply.set_text_encoding(TextEncoding::of(CharacterSet::Latin1));
                reply.done(&end).await
            }
            // What clients send by themselves.
            "SET" | "BEGIN" | "COMMIT" | "ROLLBACK" => reply.done(&end).await,
            "insert" => {
                reply
                    .done(&Summary {
                        affected_rows: 3,
                        last_insert_id: 7,
                        warnings: 2,
                        info: "Records: 3  Duplicates: 0  Warnings: 2".to_owned(),
                        ..end
                    })
                    .await
            }
            "track" => {
                let changes = vec![
                    SessionChange::SystemVariable {
                        name: "autocommit".to_owned(),
                        value: "ON".to_owned(),
                    },
                    SessionChange::Schema("other".to_owned()),
                    SessionChange::State,
                ];
                reply.done(&Summary { changes, ..end }).await
            }
            "create" => {
                self.temporary = true;
                reply.done(&end).await
            }
            "whoami" => {
                let columns = ["user", "host", "database", "tls", "temporary", "collation"];
                let columns: Vec<_> = columns.into_iter().map(varchar).collect();
                let login = &self.login;
                let values = [
                    login.user.clone(),
                    login.peer.host(),
                    String::from_utf8_lossy(login.database.as_deref().unwrap_or(b"")).into_owned(),
                    login
                        .tls
                        .as_ref()
                        .map_or(String::new(), |tls| tls.version.clone()),
                    self.temporary.to_string(),
                    login.collation_id.to_string(),
                ];
                let mut rows = reply.rows(&columns, status).await?;
                rows.push_row(values.iter().map(|value| Value::Bytes(value.as_bytes())))?;
                rows.finish(&end).await
            }
            "attribute" => {
                let columns = [varchar("value")];
                let found = self.login.attributes.iter().find(|(name, _)| name == rest);
                let value = found.map_or(Value::Null, |(_, value)| Value::Bytes(value.as_bytes()));
                let mut rows = reply.rows(&columns, status).await?;
                rows.push_row([value])?;
                rows.finish(&end).await
            }
            "load" | "LOAD" => {
                let mut bytes = 0;
                let name = rest.strip_prefix("DATA LOCAL INFILE ").unwrap_or(rest);
                let name = name.trim_matches('\'');
                let mut file = reply.local_infile(name.as_bytes()).await?;
                while let Some(piece) = file.next().await? {
                    bytes += piece.len() as u64;
                }
                reply
                    .done(&Summary {
                        affected_rows: bytes,
                        ..end
                    })
                    .await
            }
            "loadsome" => {
                let mut file = reply.local_infile(rest.as_bytes()).await?;
                file.next().await?;
                reply.done(&end).await
            }
            "loadpart" => {
                let mut file = reply.local_infile(rest.as_bytes()).await?;
                file.next().await?;
                Err(MySqlError::new(ErrorCode::NoSuchTable, &[&"test", &"t"]).into())
            }
            "fail" => Err(MySqlError::new(ErrorCode::NoSuchTable, &[&"test", &"t"]).into()),
            "failamid" => {
                let columns = n_columns();
                let mut rows = reply.rows(&columns, status).await?;
                rows.push_batch(&n_batch(0, 10)).await?;
                Err(MySqlError::new(ErrorCode::OutOfResources, &[]).into())
            }
            "impatient" => {
                let columns = n_columns();
                let mut rows = reply.rows(&columns, status).await?;
                let batch = n_batch(0, BATCH_ROWS);
                let push = async {
                    loop {
                        rows.push_batch(&batch).await?;
                    }
                };
                let limit = Duration::from_millis(100);
                let in_time: Result<Answered, _> = tokio::time::timeout(limit, push).await;
                match in_time {
                    Ok(failed) => failed,
                    Err(_) => Err(MySqlError::new(ErrorCode::QueryInterrupted, &[]).into()),
                }
            }
            "forget" => Ok(()),
            "sleep" => {
                let _stopped = Stopped(Some(Arc::clone(&self.shared)));
                std::future::pending().await
            }
            _ => Err(syntax(text)),
        }
    }

    async fn variables(&self, list: &str, end: &Summary, reply: &mut Reply) -> Answered {
        let names: Vec<&str> = list.split(',').map(str::trim).collect();
        let columns: Vec<_> = names.iter().map(|name| varchar(name)).collect();
        let mut rows = reply.rows(&columns, end.status).await?;
        rows.push_row(names.iter().map(|name| match *name {
            "@@max_allowed_packet" => Value::Bytes(b"67108864"),
            "@@wait_timeout" => Value::Bytes(b"28800"),
            "@@version_comment limit 1" => Value::Bytes(b"canned"),
            _ => Value::Null,
        }))?;
        rows.finish(end).await
    }
}

impl Connection for CannedConnection {
    type Statement = CannedStatement;
    type Cursor = CannedCursor;

    fn status(&self) -> ServerStatus {
        ServerStatus::AUTOCOMMIT
    }

    async fn query(&mut self, text: &[u8], reply: &mut Reply) -> Answered {
        let text = String::from_utf8_lossy(text).into_owned();
        if !reply.allows_multi_statements() {
            return match text.split_once(';') {
                Some((_, rest)) => Err(syntax(rest)),
                None => self.run(&text, false, reply).await,
            };
        }
        let mut statements = text.split(';').map(str::trim).peekable();
        while let Some(statement) = statements.next() {
            let more = statements.peek().is_some();
            self.run(statement, more, reply).await?;
        }
        Ok(())
    }

    async fn prepare(&mut self, text: &[u8]) -> Result<Prepared<CannedStatement>, MySqlError> {
        let text = String::from_utf8_lossy(text).into_owned();
        if text.starts_with("fail") {
            return Err(MySqlError::new(ErrorCode::NoSuchTable, &[&"test", &"t"]));
        }
        let count = text.matches('?').count();
        let columns = match text.split(' ').next() {
            Some("echo") => (0..count).map(|_| varchar("value")).collect(),
            Some("rows") => n_columns(),
            Some("types") => all_types::all().0,
            _ => Vec::new(),
        };
        self.shared.statements.fetch_add(1, Ordering::SeqCst);
        Ok(Prepared {
            statement: CannedStatement {
                text,
                shared: Arc::clone(&self.shared),
            },
            parameter_count: count,
            columns,
            warnings: 0,
        })
    }

    async fn execute(
        &mut self,
        statement: &mut CannedStatement,
        parameters: &[Parameter<'_>],
        reply: &mut Reply,
    ) -> Answered {
        let end = self.last();
        if statement.text.starts_with("echo") {
            let values: Vec<String> = parameters.iter().map(show).collect();
            let columns: Vec<_> = values.iter().map(|_| varchar("value")).collect();
            let mut rows = reply.rows(&columns, end.status).await?;
            rows.push_row(values.iter().map(|value| Value::Bytes(value.as_bytes())))?;
            return rows.finish(&end).await;
        }
        if statement.text.starts_with("length") {
            let Some(Parameter::Text(bytes) | Parameter::Bytes(bytes)) = parameters.first() else {
                return Err(syntax(&statement.text));
            };
            let affected_rows = bytes.len() as u64;
            return reply
                .done(&Summary {
                    affected_rows,
                    ..end
                })
                .await;
        }
        let text = statement.text.trim().to_owned();
        self.run(&text, false, reply).await
    }

    async fn open_cursor(
        &mut self,
        statement: &mut CannedStatement,
        parameters: &[Parameter<'_>],
        reply: &mut Reply,
    ) -> Result<Option<OpenCursor<CannedCursor>>, Failure> {
        let count = statement.text.strip_prefix("rows ");
        let Some(count) = count.and_then(|count| count.parse().ok()) else {
            self.execute(statement, parameters, reply).await?;
            return Ok(None);
        };
        Ok(Some(OpenCursor {
            columns: n_columns(),
            warnings: 0,
            cursor: CannedCursor { next: 0, count },
        }))
    }

    async fn use_database(&mut self, name: &[u8]) -> Result<Summary, MySqlError> {
        let name = String::from_utf8_lossy(name).into_owned();
        self.login.database = Some(name.clone().into_bytes());
        check_database(&self.login)?;
        Ok(Summary {
            changes: vec![SessionChange::Schema(name)],
            ..self.last()
        })
    }

    async fn list_fields(
        &mut self,
        table: &[u8],
        _pattern: &[u8],
    ) -> Result<Vec<ColumnDefinition>, MySqlError> {
        match table {
            b"numbers" => Ok(n_columns()
                .into_iter()
                .map(|column| ColumnDefinition {
                    default_value: Some(None),
                    ..column
                })
                .collect()),
            _ => Err(MySqlError::new(ErrorCode::NoSuchTable, &[&"test", &"?"])),
        }
    }

    async fn refresh(&mut self, what: Refresh) -> Result<Summary, MySqlError> {
        match what.contains(Refresh::BINARY_LOGS) {
            true => Err(MySqlError::new(ErrorCode::NotSupportedYet, &[&"RESET"])),
            false => Ok(Summary {
                affected_rows: u64::from(what.bits()),
                ..self.last()
            }),
        }
    }

    async fn process_list(&mut self, reply: &mut Reply) -> Answered {
        self.run("one", false, reply).await
    }

    fn debug(&mut self) {
        self.shared.debugged.fetch_add(1, Ordering::SeqCst);
    }

    fn statistics(&mut self) -> String {
        "Uptime: 1  Threads: 1  Questions: 2  Slow queries: 0  Opens: 0".to_owned()
    }

    async fn kill(&mut self, connection_id: u32) -> Result<Summary, MySqlError> {
        Err(MySqlError::new(ErrorCode::NoSuchThread, &[&connection_id]))
    }

    async fn reset(&mut self) -> Result<Summary, MySqlError> {
        self.temporary = false;
        Ok(self.last())
    }

    async fn change_user(&mut self, login: &Login) -> Result<Summary, MySqlError> {
        check_database(login)?;
        self.temporary = false;
        self.login = login.clone();
        Ok(self.last())
    }

    fn memory(&self) -> Option<Box<dyn Memory>> {
        Some(Box::new(CannedMemory {
            shared: Arc::clone(&self.shared),
            held: 0,
            max: self.memory_max,
        }))
    }

    fn idle_timeout(&self) -> Duration {
        self.idle_timeout
    }

    async fn killed(&self) {
        self.shared.kill.notified().await;
    }
}

/// A parameter as tests read it.
fn show(parameter: &Parameter<'_>) -> String {
    match parameter {
        Parameter::Text(text) => format!("Text({})", String::from_utf8_lossy(text)),
        Parameter::Bytes(bytes) => format!("Bytes({})", String::from_utf8_lossy(bytes)),
        Parameter::Decimal(text) => format!("Decimal({})", String::from_utf8_lossy(text)),
        other => format!("{other:?}"),
    }
}

pub struct CannedStatement {
    text: String,
    shared: Arc<Shared>,
}

impl Drop for CannedStatement {
    fn drop(&mut self) {
        self.shared.statements.fetch_sub(1, Ordering::SeqCst);
    }
}

pub struct CannedCursor {
    next: usize,
    count: usize,
}

impl Cursor for CannedCursor {
    async fn next(&mut self, rows_max: usize) -> Result<Option<RecordBatch>, MySqlError> {
        if self.next >= self.count {
            return Ok(None);
        }
        let start = self.next;
        self.next = self.count.min(start + BATCH_ROWS.min(rows_max));
        Ok(Some(n_batch(start, self.next - start)))
    }
}

/// A field of a column, for batches of several types.
pub fn field(column: &ColumnDefinition) -> Field {
    column.column_type.to_arrow(&column.name, column.nullable)
}
