//! Running a schedule: all sessions at once, each of which writes down what it asked, when, and
//! what came back.
//!
//! A client whose connection ends, because it went away in the middle of a statement or was killed,
//! connects again with another block of ids: what the statement without an answer did or still does
//! is seen by nobody but the check at the end.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use mayfly_session::{Engine, Outcome, Session};
use mayfly_testkit::FaultPlan;
use mayfly_types::MySqlError;

use super::ledger::{Answer, ConnectionLog, END, Event};
use super::schedule::{Cut, Schedule, Step};
use super::statement::{Emptying, Place, Statement};
use super::sums::Tally;
use super::tables::{BLOCK, DUPLICATE, OUT_OF_RANGE, Row, Rows, TABLES};
use crate::engine::{read, run};

/// Blocks of one session.
const BLOCKS: u64 = 1 << 20;
/// Longer than any history takes: one that is not over by then hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// Errors of memory, disk and quotas, where there is little of them or operations fail.
const RESOURCES: [u16; 11] = [3, 41, 42, 1021, 1024, 1026, 1030, 1037, 1038, 1041, 1114];
/// The quota of a session was met.
const OF_QUOTAS: [u16; 2] = [41, 1114];
/// Statements of a session between two looks at all tables.
const LOOKS_EVERY: usize = 16;
/// A statement was killed. That others change the same table is no error: each has its turn.
const OF_OTHERS: [u16; 1] = [1317];
const TABLE_EXISTS: u16 = 1050;
const NO_SUCH_TABLE: u16 = 1146;
/// The same to who would drop it.
const UNKNOWN_TABLE: u16 = 1051;
/// What an ALTER would add is there, or what it would drop is not.
const ALTERED_ALREADY: [u16; 4] = [1060, 1061, 1091, 1054];
const NO_SUCH_THREAD: u16 = 1094;
const UNSIGNED_OUT_OF_RANGE: u16 = 1690;

/// What all sessions of a history share.
struct Shared {
    engine: Engine,
    /// Numbers the beginnings and ends of all statements.
    clock: AtomicU64,
    /// The connection of each session.
    connections: Vec<AtomicU64>,
    /// What each session waits for.
    running: Vec<Mutex<String>>,
    /// Where files for LOAD DATA lie.
    directory: PathBuf,
    faults: Option<Arc<FaultPlan>>,
    /// Whether memory is short, or operations fail.
    is_short: bool,
    tally: Mutex<Tally>,
    problems: Mutex<Vec<String>>,
}

/// What a schedule led to.
pub struct History {
    pub logs: Vec<ConnectionLog>,
    pub tally: Tally,
    /// Answers that are wrong at sight.
    pub problems: Vec<String>,
}

/// Runs a schedule to its end.
pub async fn run_schedule(
    engine: &Engine,
    schedule: &Schedule,
    directory: PathBuf,
    faults: Option<Arc<FaultPlan>>,
    is_short: bool,
) -> History {
    let count = schedule.sessions.len();
    let shared = Arc::new(Shared {
        engine: engine.clone(),
        clock: AtomicU64::new(0),
        connections: (0..count).map(|_| AtomicU64::new(0)).collect(),
        running: (0..count).map(|_| Mutex::default()).collect(),
        directory,
        faults,
        is_short,
        tally: Mutex::default(),
        problems: Mutex::default(),
    });
    let clients: Vec<_> = { schedule.sessions.iter().enumerate() }
        .map(|(session, steps)| {
            let client = Client::new(&shared, session);
            tokio::spawn(client.run(steps.clone()))
        })
        .collect();
    let all = async {
        let mut logs = Vec::new();
        for client in clients {
            logs.extend(client.await.expect("no client panics"));
        }
        logs
    };
    let Ok(logs) = tokio::time::timeout(PATIENCE, all).await else {
        let running = shared.running.iter().map(|running| lock(running).clone());
        let running: Vec<_> = running.collect();
        panic!(
            "the sessions do not end; they wait for:\n{}",
            running.join("\n")
        );
    };
    History {
        logs,
        tally: std::mem::take(&mut lock(&shared.tally)),
        problems: std::mem::take(&mut lock(&shared.problems)),
    }
}

/// One session, over all its connections.
struct Client {
    shared: Arc<Shared>,
    number: usize,
    /// Statements so far.
    statements: u64,
    /// Whether the connection may have a quota.
    has_quota: bool,
    session: Session,
    log: ConnectionLog,
    ended: Vec<ConnectionLog>,
}

impl Client {
    fn new(shared: &Arc<Shared>, number: usize) -> Client {
        let session = shared.engine.connect();
        shared.connections[number].store(session.id(), Ordering::SeqCst);
        Client {
            shared: Arc::clone(shared),
            number,
            statements: 0,
            has_quota: false,
            session,
            log: ConnectionLog {
                session: number,
                block: 1 + number as u64 * BLOCKS,
                events: Vec::new(),
            },
            ended: Vec::new(),
        }
    }

    async fn run(mut self, steps: Vec<Step>) -> Vec<ConnectionLog> {
        for (number, step) in steps.into_iter().enumerate() {
            self.step(&step).await;
            if number % LOOKS_EVERY == LOOKS_EVERY - 1 {
                self.look();
            }
            if self.session.end_handle().is_set() {
                self.connect_again();
            }
        }
        *lock(&self.shared.running[self.number]) = "nothing more".to_owned();
        self.ended.push(self.log);
        self.ended
    }

    /// Looks whether the keys and the rows of all tables agree while others change them.
    fn look(&self) {
        let problem = match self.session.verify_tables() {
            Ok(problem) => problem,
            Err(error) if self.shared.is_short && RESOURCES.contains(&error.code) => None,
            Err(error) => Some(format!("a look at the tables: {error:?}")),
        };
        lock(&self.shared.problems).extend(problem);
    }

    /// Connects anew, with another block.
    fn connect_again(&mut self) {
        self.has_quota = false;
        self.session = self.shared.engine.connect();
        let id = self.session.id();
        self.shared.connections[self.number].store(id, Ordering::SeqCst);
        let block = self.log.block + 1;
        let log = ConnectionLog {
            session: self.number,
            block,
            events: Vec::new(),
        };
        self.ended.push(std::mem::replace(&mut self.log, log));
    }

    async fn step(&mut self, step: &Step) {
        let statement = &step.statement;
        let sql = match statement {
            Statement::Fault(n) => {
                if let Some(faults) = &self.shared.faults {
                    faults.fail_once(*n);
                }
                return;
            }
            Statement::Kill {
                session,
                only_query,
            } => {
                let query = if *only_query { "QUERY " } else { "" };
                let id = self.shared.connections[*session].load(Ordering::SeqCst);
                format!("KILL {query}{id}")
            }
            statement => {
                let file = self.file();
                let place = Place {
                    block: self.log.block,
                    origin: self.origin(),
                    file: &file,
                };
                if let Some(lines) = statement.file(&place) {
                    std::fs::write(&file, lines).expect("the directory is there");
                }
                statement.sql(&place)
            }
        };
        self.has_quota |= matches!(statement, Statement::Quota(bytes) if *bytes > 0);
        let answer = self.ask(statement, &sql, step.cut).await;
        self.statements += 1;
        let is_drop = matches!(
            statement,
            Statement::Empty {
                how: Emptying::Drop,
                ..
            }
        );
        if matches!(answer, Answer::Nothing) {
            self.connect_again();
        }
        let is_absent = matches!(answer, Answer::Failed { code, .. } if code == NO_SUCH_TABLE);
        for table in statement.tables() {
            let table = &TABLES[table];
            if table.is_dropped && (is_drop || is_absent) {
                // It may fail as any other; then it is tried by whoever misses the table next.
                let _created = run(&mut self.session, &table.definition()).await.is_ok();
            }
        }
    }

    fn origin(&self) -> u64 {
        (self.log.block + (self.statements << 32)) * BLOCK
    }

    fn file(&self) -> PathBuf {
        self.shared.directory.join(format!("{}.tsv", self.number))
    }

    /// Runs a statement, and writes down what came back.
    async fn ask(&mut self, statement: &Statement, sql: &str, cut: Option<Cut>) -> Answer {
        let shared = Arc::clone(&self.shared);
        let shown: String = sql.chars().take(300).collect();
        *lock(&shared.running[self.number]) = shown;
        let tick = || shared.clock.fetch_add(1, Ordering::SeqCst);
        let begin = tick();
        let asked = Box::pin(ask(&mut self.session, sql, self.log.block));
        let answer = match cut_off(asked, cut).await {
            None => Answer::Nothing,
            Some(Ok(answer)) => answer,
            Some(Err(error)) => {
                let is_of_resources = match (shared.is_short, self.has_quota) {
                    (true, _) => RESOURCES.contains(&error.code),
                    (false, true) => OF_QUOTAS.contains(&error.code),
                    (false, false) => false,
                };
                if !is_of_resources && !may_fail(statement, error.code) {
                    lock(&shared.problems).push(format!("{sql}: {error:?}"));
                }
                Answer::Failed {
                    code: error.code,
                    text: error.message,
                }
            }
        };
        let end = match &answer {
            Answer::Nothing => END,
            _ => tick(),
        };
        if let Statement::Sum(sum) = statement {
            let mut tally = lock(&shared.tally);
            match &answer {
                Answer::Done { affected } => {
                    if let Err(problem) = tally.done(sum, *affected) {
                        lock(&shared.problems).push(problem);
                    }
                }
                Answer::Nothing => tally.unknown(sum),
                Answer::Failed { .. } | Answer::Rows(_) => {}
            }
        }
        self.log.events.push(Event {
            statement: statement.clone(),
            sql: sql.to_owned(),
            origin: self.origin(),
            begin,
            end,
            answer: answer.clone(),
        });
        answer
    }
}

/// Runs a statement to the end of its rows.
async fn ask(session: &mut Session, sql: &str, block: u64) -> Result<Answer, MySqlError> {
    match session.execute(sql).await? {
        Outcome::Done { affected_rows, .. } => Ok(Answer::Done {
            affected: affected_rows,
        }),
        outcome => {
            let found = read(outcome).await?.unwrap_or_default();
            let rows = found.iter().map(|cells| row_of(cells, block));
            Ok(Answer::Rows(Rows::of(rows.collect())))
        }
    }
}

/// The row in the cells `id, origin, v, code, LENGTH(filler)`.
pub fn row_of(cells: &[String], block: u64) -> Row {
    let number = |cell: &String| cell.parse::<u64>().expect("all columns are numbers");
    Row {
        // A row of another block has a slot that is nobody's.
        slot: number(&cells[0]).wrapping_sub(block * BLOCK),
        origin: number(&cells[1]),
        v: number(&cells[2]).cast_signed(),
        code: number(&cells[3]).wrapping_sub(block * BLOCK),
        filler: number(&cells[4]),
    }
}

/// Waits for an answer, or does not.
async fn cut_off<F: Future>(asked: F, cut: Option<Cut>) -> Option<F::Output> {
    match cut {
        None => Some(asked.await),
        Some(Cut::Millis(milliseconds)) => {
            let patience = Duration::from_millis(milliseconds);
            tokio::time::timeout(patience, asked).await.ok()
        }
        Some(Cut::Polls(polls)) => {
            let mut asked = pin!(asked);
            let mut left = polls;
            poll_fn(|context| match asked.as_mut().poll(context) {
                Poll::Ready(answer) => Poll::Ready(Some(answer)),
                Poll::Pending if left == 0 => Poll::Ready(None),
                Poll::Pending => {
                    left -= 1;
                    Poll::Pending
                }
            })
            .await
        }
    }
}

/// Whether a statement may fail with an error where there is room for everything. Whether rows must
/// meet others is the ledger's.
fn may_fail(statement: &Statement, code: u16) -> bool {
    let tables: BTreeSet<_> = statement.tables().into_iter().collect();
    let mut tables = tables.into_iter().map(|table| &TABLES[table]);
    if OF_OTHERS.contains(&code) {
        return true;
    }
    match code {
        NO_SUCH_TABLE | UNKNOWN_TABLE => tables.any(|table| table.is_dropped || table.is_renamed),
        TABLE_EXISTS => matches!(statement, Statement::Rename { .. }),
        NO_SUCH_THREAD => matches!(statement, Statement::Kill { .. }),
        UNSIGNED_OUT_OF_RANGE => matches!(statement, Statement::Sum(_)),
        DUPLICATE | OUT_OF_RANGE => statement.counts_rows(),
        code => ALTERED_ALREADY.contains(&code) && matches!(statement, Statement::Alter { .. }),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics with it")
}
