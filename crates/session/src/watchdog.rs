//! The watchdog of the process' memory: the kernel must not be the one who decides who dies.
//!
//! Accounts count what Mayfly asks for. What a library takes without asking shows only in the size
//! of the process. A look four times a second compares that size with a limit; past it, twice in a
//! row, the statement that holds most of the budget ends with error 1038, and all others go on.
//!
//! **Counted** is memory that the kernel cannot take back: anonymous pages, not those of the
//! program or of mapped files. **Cost**: a file of `/proc` read, some 30 microseconds a look.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::engine::{Engine, Shared};
use crate::running::Running;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(250);

/// Looks past the limit before a statement ends: what comes and goes between two of them passes.
const PATIENCE: u32 = 2;

/// Looks that a statement that was ended is given to let its memory go.
const LOOKS_TO_END: u32 = 8;

/// What the watchdog did.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    ended: AtomicU64,
}

impl Watchdog {
    /// Statements that it has ended.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }
}

/// Bytes of memory that the process has and the kernel cannot take back; `None` where `/proc` does
/// not tell.
pub(crate) fn resident_bytes() -> Option<u64> {
    resident_of(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn resident_of(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Watches until the engine is gone.
pub(crate) async fn watch(engine: Weak<Shared>, limit_bytes: u64) {
    let mut looks_past_limit = 0;
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(shared) = engine.upgrade() else {
            return;
        };
        let past_limit = resident_bytes().filter(|bytes| *bytes > limit_bytes);
        let Some(bytes) = past_limit else {
            looks_past_limit = 0;
            continue;
        };
        looks_past_limit += 1;
        if looks_past_limit < PATIENCE {
            continue;
        }
        let engine = Engine::of(shared);
        if let Some(largest) = largest_statement(&engine) {
            largest.end_for_memory(bytes, limit_bytes);
            let watchdog = &engine.shared().watchdog;
            watchdog.ended.fetch_add(1, Ordering::Relaxed);
            drop((largest, engine));
            tokio::time::sleep(INTERVAL * LOOKS_TO_END).await;
        }
        looks_past_limit = 0;
    }
}

/// The statement that holds most of the budget; of those that hold the same, the oldest one.
fn largest_statement(engine: &Engine) -> Option<Arc<Running>> {
    let connections = engine.open_connections();
    let running = { connections.iter() }.filter_map(|connection| connection.cancel.running());
    running.max_by_key(|running| {
        let counters = running.account.counters();
        let held_bytes = counters.resident_bytes + counters.reserved_bytes;
        (held_bytes, running.elapsed())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineOptions;

    #[tokio::test]
    async fn the_largest_statement_is_found() {
        let engine = Engine::open(EngineOptions {
            memory_bytes: 64 << 20,
            ..EngineOptions::default()
        });
        let engine = engine.unwrap();
        assert!(largest_statement(&engine).is_none());
        let sessions = [0, 3, 2].map(|mib| (engine.connect(), mib));
        let begun = sessions.each_ref().map(|(session, mib)| {
            let account = session.connection.statement_account();
            let memory = account.reserve(mib << 20).unwrap();
            let text = format!("SELECT {mib}");
            let running = Running::begin(&session.connection, &text, account);
            (running, memory)
        });
        let largest = largest_statement(&engine).expect("statements run");
        assert_eq!(largest.text, "SELECT 3");
        begun.iter().for_each(|(running, _)| running.finish());
        assert!(largest_statement(&engine).is_none());
    }

    #[test]
    fn anonymous_pages_are_read() {
        let status = "VmRSS:\t  900 kB\nRssAnon:\t     512 kB\nRssFile:\t  388 kB\n";
        assert_eq!(resident_of(status), Some(512 << 10));
        assert_eq!(resident_of("VmRSS:\t  900 kB\n"), None);
        assert!(resident_bytes().is_some_and(|bytes| bytes > 0));
    }
}
