//! The watchdog of the process' memory: the kernel must not be the one who decides who dies.
//!
//! Accounts count what Mayfly asks for. What a library takes without asking shows only in the size
//! of the process. A look four times a second compares that size with a limit; past it, twice in a
//! row, one statement ends with error 1038, and all others go on.
//!
//! **Which one**: the one whose account is the largest, where that explains the size: it holds at
//! least half as much as nobody's account counts. Where none does, the one that has been planned
//! longest, if it was planned at the look before already: planning is counted in part only. Where
//! none is planned either, the largest account, and of several the youngest statement.
//!
//! Of the last two choices either may be wrong, and the size may stay whatever ends. So another one
//! is made only when the process has grown since the last one.
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

/// What the process must have grown by after a statement has ended that may not be to blame, before
/// another one does.
const GROWTH_BYTES: u64 = 16 << 20;

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
    // The smallest size since a statement ended that may not be to blame.
    let mut settled_bytes: Option<u64> = None;
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(shared) = engine.upgrade() else {
            return;
        };
        let past_limit = resident_bytes().filter(|bytes| *bytes > limit_bytes);
        let Some(bytes) = past_limit else {
            looks_past_limit = 0;
            settled_bytes = None;
            continue;
        };
        settled_bytes = settled_bytes.map(|settled| settled.min(bytes));
        looks_past_limit += 1;
        if looks_past_limit < PATIENCE {
            continue;
        }
        let engine = Engine::of(shared);
        let uncounted_bytes = bytes.saturating_sub(engine.space().memory_used_bytes());
        let has_grown = settled_bytes.is_none_or(|settled| bytes >= settled + GROWTH_BYTES);
        let chosen = choose(&engine, uncounted_bytes);
        if let Some((running, reason)) =
            chosen.filter(|(_, reason)| *reason == Reason::Holds || has_grown)
        {
            if running.end_for_memory(bytes, limit_bytes, reason.text()) {
                let watchdog = &engine.shared().watchdog;
                watchdog.ended.fetch_add(1, Ordering::Relaxed);
            }
            if reason != Reason::Holds {
                settled_bytes = Some(bytes);
            }
            drop((running, engine));
            tokio::time::sleep(INTERVAL * LOOKS_TO_END).await;
        }
        looks_past_limit = 0;
    }
}

/// Why a statement is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// Its account explains the size.
    Holds,
    /// No account does, and it is being planned.
    Planned,
    /// Nothing does.
    Unknown,
}

impl Reason {
    fn text(self) -> &'static str {
        match self {
            Reason::Holds => "this statement holds most of it and ends",
            Reason::Planned => {
                "no statement holds most of it, and this one, which is planned, ends"
            }
            Reason::Unknown => "no statement is known to hold most of it, and this one ends",
        }
    }
}

/// The statement to end where so many bytes are in nobody's account.
fn choose(engine: &Engine, uncounted_bytes: u64) -> Option<(Arc<Running>, Reason)> {
    let connections = engine.open_connections();
    let running = { connections.iter() }.filter_map(|connection| connection.cancel.running());
    let all: Vec<(Arc<Running>, u64)> = running
        .map(|running| {
            let counters = running.account.counters();
            let held_bytes = counters.resident_bytes + counters.reserved_bytes;
            (running, held_bytes)
        })
        .collect();
    let youngest_of_largest = |(running, held_bytes): &&(Arc<Running>, u64)| {
        let elapsed = running.elapsed();
        (*held_bytes, std::cmp::Reverse(elapsed))
    };
    let (largest, held_bytes) = all.iter().max_by_key(youngest_of_largest)?;
    if *held_bytes >= uncounted_bytes / 2 {
        return Some((Arc::clone(largest), Reason::Holds));
    }
    let planned = all.iter().filter_map(|(running, _)| {
        let planned_for = running.planning.planned_for()?;
        (planned_for >= INTERVAL).then_some((running, planned_for))
    });
    Some(match planned.max_by_key(|(_, planned_for)| *planned_for) {
        Some((planned, _)) => (Arc::clone(planned), Reason::Planned),
        None => (Arc::clone(largest), Reason::Unknown),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineOptions;
    use crate::session::Session;

    fn engine() -> Engine {
        let engine = Engine::open(EngineOptions {
            memory_bytes: 64 << 20,
            ..EngineOptions::default()
        });
        engine.unwrap()
    }

    fn begin(session: &Session, text: &str) -> Arc<Running> {
        let account = session.connection.statement_account();
        Running::begin(&session.connection, text, account)
    }

    /// The text of the statement that is chosen.
    fn chosen(engine: &Engine, uncounted_bytes: u64) -> Option<(String, Reason)> {
        let chosen = choose(engine, uncounted_bytes);
        chosen.map(|(running, reason)| (running.text.clone(), reason))
    }

    /// What is planned for less than that was not planned when the limit was passed.
    fn wait_while_new(running: &Running) {
        let planned_for = || running.planning.planned_for();
        while planned_for().is_some_and(|planned| planned < INTERVAL) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn is(text: &str, reason: Reason) -> Option<(String, Reason)> {
        Some((text.to_owned(), reason))
    }

    #[tokio::test]
    async fn the_largest_statement_goes_first_where_it_explains_the_size() {
        let engine = engine();
        assert_eq!(chosen(&engine, 0), None);
        let sessions = [0, 3, 2].map(|mib| (engine.connect(), mib));
        let begun = sessions.each_ref().map(|(session, mib)| {
            let running = begin(session, &format!("SELECT {mib}"));
            let memory = running.account.reserve(mib << 20).unwrap();
            (running, memory)
        });
        let holds = is("SELECT 3", Reason::Holds);
        assert_eq!(chosen(&engine, 6 << 20), holds);
        let unknown = is("SELECT 3", Reason::Unknown);
        assert_eq!(chosen(&engine, 7 << 20), unknown);
        let (smallest, _) = &begun[0];
        let under_way = smallest.planning.begin();
        wait_while_new(smallest);
        assert_eq!(chosen(&engine, 6 << 20), holds);
        assert_eq!(chosen(&engine, 7 << 20), is("SELECT 0", Reason::Planned));
        drop(under_way);
        assert_eq!(chosen(&engine, 7 << 20), unknown);
        begun.iter().for_each(|(running, _)| running.finish());
        assert_eq!(chosen(&engine, 7 << 20), None);
    }

    #[tokio::test]
    async fn the_longest_planned_goes_before_the_youngest() {
        let engine = engine();
        let sessions = [0; 3].map(|_| engine.connect());
        let mut begun = Vec::new();
        for (number, session) in sessions.iter().enumerate() {
            begun.push(begin(session, &format!("SELECT {number}")));
            std::thread::sleep(Duration::from_millis(1));
        }
        let unknown = is("SELECT 2", Reason::Unknown);
        assert_eq!(chosen(&engine, 1 << 30), unknown);
        // The second one is planned before the first one.
        let _second = begun[1].planning.begin();
        std::thread::sleep(Duration::from_millis(1));
        let _first = begun[0].planning.begin();
        wait_while_new(&begun[0]);
        assert_eq!(chosen(&engine, 1 << 30), is("SELECT 1", Reason::Planned));
        begun.iter().for_each(|running| running.finish());
    }

    #[test]
    fn anonymous_pages_are_read() {
        let status = "VmRSS:\t  900 kB\nRssAnon:\t     512 kB\nRssFile:\t  388 kB\n";
        assert_eq!(resident_of(status), Some(512 << 10));
        assert_eq!(resident_of("VmRSS:\t  900 kB\n"), None);
        assert!(resident_bytes().is_some_and(|bytes| bytes > 0));
    }
}
