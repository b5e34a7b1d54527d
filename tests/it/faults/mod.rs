//! Statements that meet faults: every statement with every fault at its n-th operation, for growing
//! n until a run meets none.
//!
//! After each run the error must have MySQL's number for its cause, the session must answer, tables
//! must have all of a statement or nothing of it by every way to their rows, and only the pages of
//! the tables may be left. A run that ends well must have given the right rows, however many faults
//! it met on its way.
//!
//! `MAYFLY_FULL` takes smaller steps.

mod fault;
mod first;
mod limits;
mod neighbours;
mod statements;

use std::path::Path;
use std::sync::Arc;

use mayfly_session::{Engine, Session};
use mayfly_testkit::push_out;

use self::fault::{Fault, Injected};
use self::statements::Statement;
use crate::budgets::MINIMUM;
use crate::engine::{
    Holdings, check_nothing_left, check_only_left, check_tables, make_wide, rows, run,
};

/// Rows of the input: several times the budget.
const ROWS: u32 = 40_000;
/// How many operations pass, and as many do not, on a disk that is full by turns.
const TURNS: [u64; 3] = [1, 7, 40];
const SEED: u64 = 21;
/// Runs that look for an operation of a kind, which some need and others do not.
const TRIES: u32 = 10;

/// Ever larger steps: faults late in a statement are many and alike.
fn next(n: u64) -> u64 {
    match std::env::var_os("MAYFLY_FULL") {
        Some(_) => n + 1 + n / 12,
        None => 2 * n,
    }
}

/// Cells of rows, or the number of the error that a query has.
type Found = Result<Vec<Vec<String>>, u16>;

/// What a statement must have given, and how it must have left its table.
#[derive(PartialEq, Eq)]
struct Answer {
    rows: Vec<Vec<String>>,
    table: Vec<Found>,
}

struct Matrix<'a> {
    statement: &'a Statement,
    directory: &'a Path,
    engine: Engine,
    session: Session,
    injected: Arc<Injected>,
    /// What the input holds.
    held: Holdings,
}

impl Matrix<'_> {
    /// Makes the table that the statement changes, as it was in the beginning. Nothing is in memory
    /// afterwards.
    async fn prepare(&mut self) -> Vec<Found> {
        for sql in &self.statement.each {
            rows(&mut self.session, sql).await;
        }
        let table = self.table().await;
        // What background work pins at this moment stays.
        let _ = push_out(self.engine.space());
        table
    }

    /// The table by every way to its rows.
    async fn table(&mut self) -> Vec<Found> {
        let mut found = Vec::new();
        for sql in self.statement.state {
            let ran = run(&mut self.session, sql).await;
            found.push(
                ran.map(Option::unwrap_or_default)
                    .map_err(|error| error.code),
            );
        }
        found
    }

    /// Runs the statement, which has one fault to meet at most, between `arm` and `disarm`. Gives
    /// what `disarm` gives: whether it met one.
    async fn run(
        &mut self,
        fault: Fault,
        what: &str,
        expected: Option<&Answer>,
        arm: impl Fn(&Injected),
        disarm: impl Fn(&Injected) -> bool,
    ) -> (bool, Option<Answer>) {
        let what = format!("{}, {what}", self.statement.sql);
        let before = self.prepare().await;
        arm(&self.injected);
        let ran = run(&mut self.session, &self.statement.sql).await;
        let has_fired = disarm(&self.injected);
        let after = self.table().await;
        if !self.statement.state.is_empty() {
            check_tables(&self.session, &what).await;
        }
        let answer = match ran {
            Ok(ran) => {
                let rows = self.statement.ordered(ran.unwrap_or_default());
                let answer = Answer { rows, table: after };
                assert!(
                    expected.is_none_or(|expected| *expected == answer),
                    "{what}: wrong rows"
                );
                Some(answer)
            }
            Err(error) => {
                assert!(has_fired, "{what}: {error}");
                fault.check(&error, self.directory, &what);
                assert!(after == before, "{what}: rows left or lost after {error}");
                None
            }
        };
        for sql in self.statement.teardown {
            rows(&mut self.session, sql).await;
        }
        check_only_left(&self.engine, self.held, &what).await;
        (has_fired, answer)
    }
}

/// Every fault at the n-th operation of a statement.
async fn check(make: fn(&Path) -> Statement) {
    let directory = tempfile::tempdir().unwrap();
    let statement = make(directory.path());
    let injected = Injected::new(SEED);
    let engine = injected.engine(MINIMUM, directory.path());
    let mut session = engine.connect();
    make_wide(&mut session, ROWS).await;
    for sql in statement.setup {
        rows(&mut session, sql).await;
    }
    let held = settled(&engine).await;
    let mut matrix = Matrix {
        statement: &statement,
        directory: directory.path(),
        engine,
        session,
        injected,
        held,
    };
    let nothing = |_: &Injected| false;
    let (_, expected) = matrix
        .run(Fault::Read, "no fault", None, |_| {}, nothing)
        .await;
    let expected = expected.expect("there was no fault");
    let expected = Some(&expected);
    for fault in Fault::LATER {
        let mut n = 1;
        let mut tries = TRIES;
        loop {
            let arm = |injected: &Injected| injected.arm(fault, n);
            let disarm = |injected: &Injected| injected.disarm(fault);
            let what = format!("{fault:?} {n}");
            if matrix.run(fault, &what, expected, arm, disarm).await.0 {
                n = next(n);
                continue;
            }
            // When pages are written depends on who is quicker: a run may find room for all that it
            // writes in what the runs before have left of the file.
            tries -= 1;
            if n > 1 || tries == 0 || statement.unmet.contains(&fault) {
                break;
            }
        }
        let is_met = n > 1 || statement.unmet.contains(&fault);
        assert!(is_met, "{}: never met {fault:?}", statement.sql);
    }
    for turn in TURNS {
        let arm = |injected: &Injected| injected.disk.fill_by_turns(turn);
        let disarm = |injected: &Injected| {
            injected.disk.fill_by_turns(0);
            true
        };
        let what = format!("full by turns of {turn}");
        matrix
            .run(Fault::FullDisk, &what, expected, arm, disarm)
            .await;
    }
    let shortened = matrix.injected.disk.shortened();
    let arm = |injected: &Injected| injected.disk.shorten(true);
    let disarm = |injected: &Injected| {
        injected.disk.shorten(false);
        false
    };
    matrix
        .run(Fault::Read, "short transfers", expected, arm, disarm)
        .await;
    assert!(matrix.injected.disk.shortened() > shortened);
    let Matrix {
        engine, session, ..
    } = matrix;
    drop(session);
    check_nothing_left(&engine, &statement.sql).await;
}

/// What the tables hold, when no statement holds anything.
async fn settled(engine: &Engine) -> Holdings {
    let mut before = (0, 0);
    loop {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let counters = engine.space().counters();
        let found = (counters.pages_live, counters.reserved_bytes);
        if found == before && counters.pinned_bytes == 0 {
            return before;
        }
        before = found;
    }
}

/// A test for each statement, with every fault.
macro_rules! matrix {
    ($($name:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                check(statements::$name).await;
            }
        )*
    };
}

matrix!(
    group_by_with_states,
    group_by_with_kept_rows,
    computed_once,
    distinct_aggregates,
    distinct_aggregates_of_one_group,
    distinct_aggregates_without_groups,
    distinct,
    union,
    order_by,
    order_by_with_limit,
    joins_and_windows,
    windows,
    join_without_equality,
    joins_by_equality,
    join_by_key,
    semi_join_by_key,
    order_by_key,
    create_temporary_table_select,
    create_table_select,
    insert_without_key,
    insert_into_temporary,
    insert_into_shared,
    replace_in_shared,
    insert_or_update_temporary,
    update_temporary,
    update_shared,
    update_of_two_tables,
    delete_from_temporary,
    delete_from_shared,
    load_data_without_key,
    load_data_into_shared,
    alter_table,
);
