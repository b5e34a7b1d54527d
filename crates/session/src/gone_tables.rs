//! Large tables that are gone: their pages are freed beside the threads that serve clients.
//!
//! Freeing a page takes about a microsecond, so a table of 10 GB takes a good part of a second. The
//! thread that dropped it may serve other clients, or hold a lock that others wait for.
//!
//! **Owns** what counts as large, and the thread that frees. **Never** frees what others still
//! read: the last of them does that.
//!
//! A statement that dropped a table waits for the thread when its outcome is settled, so that
//! memory and quota are there for the next one, and nobody who stops it meanwhile is told that it
//! did nothing. A connection that ends waits for nothing, but an engine that ends does.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Weak};

use mayfly_table::Table;
use tokio::task::JoinHandle;

use crate::connection::Connection;
use crate::engine::Engine;
use crate::lock::lock;
use crate::running::Running;

/// Tables of so many bytes take less time to free than it takes to hand them to another thread and
/// wait for it.
const SMALL_BYTES_MAX: u64 = 16 << 20;

/// Whether a table is to be freed beside the threads that serve clients.
pub(crate) fn is_large(table: &Table) -> bool {
    table.bytes() + table.index_bytes() > SMALL_BYTES_MAX
}

/// Frees tables that nobody knows any more, before the statement that dropped them is over.
pub(crate) fn free(running: &Running, tables: Vec<Arc<Table>>) {
    if tables.iter().any(|table| is_large(table)) {
        free_beside(running, tables);
    }
}

/// Frees what holds pages on a thread beside the workers, before a statement is over.
pub(crate) fn free_beside<T: Send + 'static>(running: &Running, gone: T) {
    if let Some(freed) = begin(&running.connection().engine, gone) {
        running.ends_after(freed);
    }
}

/// Begins to free what holds pages. `None` where the system does not start the thread: the next one
/// that the engine has frees it.
fn begin<T: Send + 'static>(engine: &Engine, gone: T) -> Option<JoinHandle<()>> {
    let gone: Arc<Gone> = Arc::new(Mutex::new(Some(Box::new(gone))));
    engine.shared().gone_tables.add(&gone);
    let workers = engine.runtime();
    catch_unwind(AssertUnwindSafe(|| {
        workers.spawn_blocking(move || let_go(&gone))
    }))
    .ok()
}

/// What is to be freed; whoever frees it holds the lock meanwhile.
type Gone = Mutex<Option<Box<dyn Send>>>;

fn let_go(gone: &Gone) {
    drop(lock(gone).take());
}

/// What an engine is about to free.
#[derive(Default)]
pub(crate) struct GoneTables(Mutex<Vec<Weak<Gone>>>);

impl GoneTables {
    fn add(&self, gone: &Arc<Gone>) {
        let mut all = lock(&self.0);
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(gone));
    }

    /// Frees what no thread has begun to free, and waits for what one frees.
    pub(crate) fn finish(&self) {
        let all = mem::take(&mut *lock(&self.0));
        for gone in all.iter().filter_map(Weak::upgrade) {
            let_go(&gone);
        }
    }
}

impl Connection {
    /// Lets the tables of a connection that ends go, and what its transaction keeps of them. Gives
    /// what waits until they are freed, if that takes its time.
    pub(crate) fn leave_tables(&self) -> Option<JoinHandle<()>> {
        let gone = {
            let mut local = self.local();
            let tables = local.temporary.tables();
            if !tables.iter().any(|(_, table)| is_large(table)) {
                return None;
            }
            (
                mem::take(&mut local.temporary),
                mem::take(&mut local.transaction),
                tables,
            )
        };
        begin(&self.engine, gone)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread::{self, ThreadId};
    use std::time::Duration;

    use super::*;
    use crate::engine::EngineOptions;
    use crate::local::DEFAULT_DATABASE;

    fn engine() -> Engine {
        let engine = Engine::open(EngineOptions {
            memory_bytes: 64 << 20,
            ..EngineOptions::default()
        });
        engine.unwrap()
    }

    /// Tells which thread drops it.
    struct Told(mpsc::Sender<ThreadId>);

    impl Drop for Told {
        fn drop(&mut self) {
            let _nobody_asks = self.0.send(thread::current().id());
        }
    }

    #[tokio::test]
    async fn what_is_large_is_freed_by_another_thread() {
        let engine = engine();
        let connection = engine.connect().connection;
        let running = Running::begin(&connection, "DROP TABLE t", connection.statement_account());
        let (sender, receiver) = mpsc::channel();
        free_beside(&running, Told(sender));
        // Its outcome is settled.
        running.finish();
        running.let_go(Duration::ZERO).await;
        let freed_by = receiver.try_recv().expect("it is freed when that is told");
        assert_ne!(freed_by, thread::current().id());
    }

    #[test]
    fn all_is_freed_when_the_engine_is_gone() {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..10 {
            let engine = engine();
            let _begun = begin(&engine, Told(sender.clone()));
            drop(engine);
            receiver.try_recv().expect("it is freed by somebody");
        }
    }

    #[tokio::test]
    async fn tables_are_freed_when_their_statement_or_connection_has_ended() {
        let engine = engine();
        let mut session = engine.connect();
        let numbers = "digits a, digits b, digits c, digits d";
        let fill = |table: &str| {
            let number = "a.d * 1000 + b.d * 100 + c.d * 10 + d.d";
            [
                format!("CREATE TEMPORARY TABLE {table} (v TEXT)"),
                format!("INSERT INTO {table} SELECT REPEAT(MD5({number}), 64) FROM {numbers}"),
            ]
        };
        let statements = [
            "CREATE TABLE digits (d INT)".to_owned(),
            "INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)".to_owned(),
        ];
        let filled = ["dropped", "emptied", "left_behind"].map(fill).concat();
        for statement in statements.into_iter().chain(filled) {
            session.execute(&statement).await.unwrap();
        }
        let find = |session: &crate::session::Session, name: &str| {
            let local = session.connection.local();
            local.temporary.table(DEFAULT_DATABASE, name).unwrap()
        };
        for name in ["dropped", "emptied", "left_behind"] {
            assert!(is_large(&find(&session, name)), "{name}");
        }
        let dropped = Arc::downgrade(&find(&session, "dropped"));
        session.execute("DROP TABLE dropped, digits").await.unwrap();
        session.execute("TRUNCATE TABLE emptied").await.unwrap();
        assert_eq!(find(&session, "emptied").bytes(), 0);
        let left_behind = Arc::downgrade(&find(&session, "left_behind"));
        drop(session);
        // Operators of a statement may hold its tables a little longer.
        while dropped.strong_count() + left_behind.strong_count() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
