//! A server for strangers: it answers whatever it is asked, and never with much.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arrow_array::RecordBatch;
use mayfly_types::{CharacterSet, ErrorCode, MySqlError};
use mayfly_wire::{
    Account, Answered, ColumnDefinition, Connection, Cursor, Failure, Login, Method, OpenCursor,
    Parameter, Peer, Prepared, Refresh, Reply, Secret, Server, ServerStatus, SessionChange,
    Summary, TextEncoding, Value,
};

use crate::all_types;

/// Parameters of a statement.
pub const PARAMETERS_MAX: usize = 300;
/// Results of a text.
const RESULTS_MAX: usize = 300;
/// Rows of a cursor.
pub const CURSOR_ROWS: usize = 40;

/// What happened to clients.
#[derive(Default)]
pub struct Seen {
    pub logins: AtomicU32,
    pub results: AtomicU32,
    pub files: AtomicU32,
    pub executions: AtomicU32,
    pub fetches: AtomicU32,
    pub changes_of_user: AtomicU32,
    pub resets: AtomicU32,
}

fn count(counter: &AtomicU32) {
    counter.fetch_add(1, Ordering::Relaxed);
}

pub struct Parrot {
    pub seen: Arc<Seen>,
    last_host: AtomicU32,
}

impl Parrot {
    pub fn new() -> Parrot {
        Parrot {
            seen: Arc::default(),
            last_host: AtomicU32::new(0),
        }
    }

    /// A client from a host that none has come from: hosts that fail to log in are slowed down.
    pub fn next_peer(&self) -> Peer {
        let host = self.last_host.fetch_add(1, Ordering::Relaxed);
        Peer::Tcp((Ipv4Addr::from_bits(0x0A00_0000 | host & 0xFF_FFFF), 1).into())
    }
}

impl Server for Parrot {
    type Place = ();
    type Connection = Voice;

    fn admit(&self, _peer: &Peer) -> Result<(u32, ()), MySqlError> {
        Ok((7, ()))
    }

    async fn account(&self, user: &str, _peer: &Peer) -> Option<Account> {
        let secret = match user {
            "root" => Secret::Empty,
            "native" => Secret::of_password(b"secret", Method::Native).ok()?,
            "sha2" => Secret::of_password(b"secret", Method::CachingSha2).ok()?,
            "locked" => Secret::Locked,
            _ => return None,
        };
        Some(Account {
            secret,
            socket_user_id: None,
        })
    }

    async fn connect(&self, (): (), login: &Login) -> Result<Voice, MySqlError> {
        count(&self.seen.logins);
        Ok(Voice {
            database: login.database.clone().unwrap_or_default(),
            seen: Arc::clone(&self.seen),
        })
    }
}

/// One connection.
pub struct Voice {
    database: Vec<u8>,
    seen: Arc<Seen>,
}

impl Voice {
    /// One statement, which its first letter says.
    async fn run(&mut self, text: &[u8], more: bool, reply: &mut Reply) -> Answered {
        count(&self.seen.results);
        let mut status = ServerStatus::AUTOCOMMIT;
        if more {
            status = status.with(ServerStatus::MORE_RESULTS_EXISTS);
        }
        let text_of = || String::from_utf8_lossy(text).into_owned();
        let summary = Summary {
            info: text_of(),
            changes: vec![
                SessionChange::Schema(text_of()),
                SessionChange::SystemVariable {
                    name: "character_set_results".to_owned(),
                    value: text_of(),
                },
                SessionChange::State,
            ],
            ..Summary::new(status)
        };
        match text.first() {
            Some(b'r') => {
                let (columns, batch) = all_types::all();
                let mut rows = reply.rows(&columns, status).await?;
                rows.push_batch(&batch).await?;
                rows.push_row(columns.iter().map(|_| Value::Null))?;
                rows.finish(&summary).await
            }
            Some(b'f') => {
                let mut file = reply.local_infile(text).await?;
                while file.next().await?.is_some() {}
                count(&self.seen.files);
                reply.done(&summary).await
            }
            Some(b'g') => {
                let mut file = reply.local_infile(text).await?;
                file.next().await?;
                count(&self.seen.files);
                Err(MySqlError::new(ErrorCode::NoSuchTable, &[&"test", &text_of()]).into())
            }
            Some(b'a') => {
                let columns = [ColumnDefinition::parameter()];
                let mut rows = reply.rows(&columns, status).await?;
                rows.push_row([Value::Bytes(text)])?;
                Err(MySqlError::new(ErrorCode::NoSuchTable, &[&"test", &text_of()]).into())
            }
            Some(b'e') => {
                Err(MySqlError::new(ErrorCode::NoSuchTable, &[&"test", &text_of()]).into())
            }
            Some(b'l') => {
                reply.set_text_encoding(TextEncoding::of(CharacterSet::Latin1));
                reply.done(&summary).await
            }
            Some(b'u') => {
                reply.set_text_encoding(TextEncoding::UNCONVERTED);
                reply.done(&summary).await
            }
            _ => reply.done(&summary).await,
        }
    }

    fn summary(&self) -> Summary {
        Summary::new(self.status())
    }
}

impl Connection for Voice {
    type Statement = Vec<u8>;
    type Cursor = Rows;

    fn status(&self) -> ServerStatus {
        ServerStatus::AUTOCOMMIT
    }

    async fn query(&mut self, text: &[u8], reply: &mut Reply) -> Answered {
        if !reply.allows_multi_statements() {
            return self.run(text, false, reply).await;
        }
        let mut statements = text
            .split(|byte| *byte == b';')
            .take(RESULTS_MAX)
            .peekable();
        while let Some(statement) = statements.next() {
            let more = statements.peek().is_some();
            self.run(statement, more, reply).await?;
        }
        Ok(())
    }

    async fn prepare(&mut self, text: &[u8]) -> Result<Prepared<Vec<u8>>, MySqlError> {
        let parameters = text.iter().filter(|byte| **byte == b'?').count();
        Ok(Prepared {
            statement: text.to_vec(),
            parameter_count: parameters.min(PARAMETERS_MAX),
            columns: match text.first() {
                Some(b'r') => all_types::all().0,
                _ => Vec::new(),
            },
            warnings: 1,
        })
    }

    async fn execute(
        &mut self,
        statement: &mut Vec<u8>,
        parameters: &[Parameter<'_>],
        reply: &mut Reply,
    ) -> Answered {
        count(&self.seen.executions);
        if parameters.is_empty() {
            return self.run(statement, false, reply).await;
        }
        let texts: Vec<String> = parameters.iter().map(|each| format!("{each:?}")).collect();
        let columns = vec![ColumnDefinition::parameter(); texts.len()];
        let mut rows = reply.rows(&columns, self.status()).await?;
        rows.push_row(texts.iter().map(|text| Value::Bytes(text.as_bytes())))?;
        rows.finish(&self.summary()).await
    }

    async fn open_cursor(
        &mut self,
        statement: &mut Vec<u8>,
        parameters: &[Parameter<'_>],
        reply: &mut Reply,
    ) -> Result<Option<OpenCursor<Rows>>, Failure> {
        if statement.first() != Some(&b'r') {
            self.execute(statement, parameters, reply).await?;
            return Ok(None);
        }
        Ok(Some(OpenCursor {
            columns: all_types::all().0,
            warnings: 0,
            cursor: Rows {
                left: CURSOR_ROWS,
                seen: Arc::clone(&self.seen),
            },
        }))
    }

    async fn use_database(&mut self, name: &[u8]) -> Result<Summary, MySqlError> {
        self.database = name.to_vec();
        Ok(self.summary())
    }

    async fn list_fields(
        &mut self,
        table: &[u8],
        pattern: &[u8],
    ) -> Result<Vec<ColumnDefinition>, MySqlError> {
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut columns = all_types::all().0;
        for column in &mut columns {
            column.name = text_of(pattern);
            column.default_value = Some(Some(text_of(table)));
        }
        Ok(columns)
    }

    async fn refresh(&mut self, what: Refresh) -> Result<Summary, MySqlError> {
        Ok(Summary {
            affected_rows: u64::from(what.bits()),
            ..self.summary()
        })
    }

    async fn process_list(&mut self, reply: &mut Reply) -> Answered {
        self.run(b"rows", false, reply).await
    }

    fn debug(&mut self) {}

    fn statistics(&mut self) -> String {
        String::from_utf8_lossy(&self.database).into_owned()
    }

    async fn kill(&mut self, connection_id: u32) -> Result<Summary, MySqlError> {
        Err(MySqlError::new(ErrorCode::NoSuchThread, &[&connection_id]))
    }

    async fn reset(&mut self) -> Result<Summary, MySqlError> {
        count(&self.seen.resets);
        Ok(self.summary())
    }

    async fn change_user(&mut self, _login: &Login) -> Result<Summary, MySqlError> {
        count(&self.seen.changes_of_user);
        Ok(self.summary())
    }
}

/// Rows of all types, three at most at a time.
pub struct Rows {
    left: usize,
    seen: Arc<Seen>,
}

impl Cursor for Rows {
    async fn next(&mut self, rows_max: usize) -> Result<Option<RecordBatch>, MySqlError> {
        count(&self.seen.fetches);
        let (_, batch) = all_types::all();
        let taken = self.left.min(rows_max).min(batch.num_rows());
        self.left -= taken;
        Ok((taken > 0).then(|| batch.slice(0, taken)))
    }
}
