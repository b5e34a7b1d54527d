//! Two sessions on one disk: what one of them meets, the other one does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mayfly_session::{Engine, Session};

use super::SEED;
use super::fault::Injected;
use super::statements::{self, Statement};
use crate::budgets::SPILLING;
use crate::engine::{check_nothing_left, make_wide, rows, run};

/// Rows of each session: with what they make, more than both have memory for.
const ROWS: u32 = 40_000;
const QUOTA: &str = "SET max_tmp_session_space_usage = 1048576";
/// Rounds of the session that must not fail.
const ROUNDS: usize = 4;

/// What a session does again and again, with what it must give.
struct Work {
    statement: Statement,
    expected: Vec<Vec<String>>,
}

/// The tables of a session, and what its statements give while nobody is beside it.
async fn begin(engine: &Engine) -> (Session, Vec<Work>) {
    let mut session = engine.connect();
    make_wide(&mut session, ROWS).await;
    let nowhere = std::path::Path::new("");
    let mut work = Vec::new();
    for make in [
        statements::group_by_with_states,
        statements::distinct,
        statements::order_by,
        statements::create_temporary_table_select,
        statements::update_temporary,
        statements::insert_into_temporary,
    ] {
        let statement = make(nowhere);
        let expected = ran(&mut session, &statement).await.unwrap();
        work.push(Work {
            statement,
            expected,
        });
    }
    (session, work)
}

/// Runs a statement; gives its rows or those of the table that it changed, or its error.
async fn ran(
    session: &mut Session,
    statement: &Statement,
) -> Result<Vec<Vec<String>>, mayfly_types::MySqlError> {
    let mut result = Ok(Vec::new());
    let before = statement.each.iter().map(String::as_str);
    let after = statement.state.iter().copied();
    for sql in before.chain([statement.sql.as_str()]).chain(after) {
        let Ok(found) = &mut result else { break };
        match run(session, sql).await {
            Ok(more) => found.extend(more.unwrap_or_default()),
            Err(error) => result = Err(error),
        }
    }
    for sql in statement.teardown {
        rows(session, sql).await;
    }
    result.map(|found| statement.ordered(found))
}

/// Does the work until `stop`, or so many rounds of it; errors must be among `allowed`. Gives how
/// many there were.
async fn go_on(
    session: &mut Session,
    work: &[Work],
    allowed: &[u16],
    rounds: usize,
    stop: &AtomicBool,
) -> usize {
    let mut failures = 0;
    for _ in 0..rounds {
        for Work {
            statement,
            expected,
        } in work
        {
            if stop.load(Ordering::Relaxed) {
                return failures;
            }
            match ran(session, statement).await {
                Ok(found) => assert!(found == *expected, "{}: wrong rows", statement.sql),
                Err(error) => {
                    assert!(allowed.contains(&error.code), "{}: {error}", statement.sql);
                    failures += 1;
                }
            }
        }
    }
    failures
}

/// The other session's statements never fail, whatever the quota does to those beside them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_is_its_own_sessions_alone() {
    let directory = tempfile::tempdir().unwrap();
    let injected = Injected::new(SEED);
    let engine = injected.engine(SPILLING, directory.path());
    let (mut free, work) = begin(&engine).await;
    let (mut limited, works) = begin(&engine).await;
    rows(&mut limited, QUOTA).await;
    injected.disk.shorten(true);
    let stop = Arc::new(AtomicBool::new(false));
    let stopping = Arc::clone(&stop);
    let beside = tokio::spawn(async move {
        let failures = go_on(&mut limited, &works, &[41], usize::MAX, &stopping).await;
        // Without its quota it is as it was.
        rows(&mut limited, "SET max_tmp_session_space_usage = 0").await;
        stopping.store(false, Ordering::Relaxed);
        assert_eq!(go_on(&mut limited, &works, &[], 1, &stopping).await, 0);
        failures
    });
    assert_eq!(go_on(&mut free, &work, &[], ROUNDS, &stop).await, 0);
    stop.store(true, Ordering::Relaxed);
    let failures = beside.await.unwrap();
    assert!(failures > 0, "the quota was never met");
    drop(free);
    check_nothing_left(&engine, "a quota").await;
}

/// Both meet a full disk, and nobody loses a row; when there is room again, nobody fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_is_full_by_turns() {
    for turn in super::TURNS {
        let directory = tempfile::tempdir().unwrap();
        let injected = Injected::new(SEED);
        let engine = injected.engine(SPILLING, directory.path());
        let (mut one, work) = begin(&engine).await;
        let (mut two, works) = begin(&engine).await;
        injected.disk.fill_by_turns(turn);
        let stop = Arc::new(AtomicBool::new(false));
        let never = Arc::clone(&stop);
        let beside = tokio::spawn(async move {
            go_on(&mut two, &works, &[1021], ROUNDS, &never).await;
            (two, works)
        });
        go_on(&mut one, &work, &[1021], ROUNDS, &stop).await;
        let (mut two, works) = beside.await.unwrap();
        assert!(injected.disk.refused() > 0);
        injected.disk.fill_by_turns(0);
        assert_eq!(go_on(&mut one, &work, &[], 1, &stop).await, 0);
        assert_eq!(go_on(&mut two, &works, &[], 1, &stop).await, 0);
        drop((one, two));
        check_nothing_left(&engine, "full by turns").await;
    }
}
