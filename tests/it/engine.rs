//! Engines and sessions for tests: statements in, text rows out, and a check that nothing is left.

use std::path::Path;
use std::time::{Duration, Instant};

use futures::StreamExt;
use mayfly_session::{Engine, EngineOptions, FileAccess, Outcome, Session, render};
use mayfly_tests::mariadb::EMPTY;
use mayfly_types::MySqlError;

/// The longest that background work of a stopped statement may hold on to memory.
const PATIENCE: Duration = Duration::from_secs(20);

/// An engine with two workers whose temp files are in `directory`.
pub fn open(memory_bytes: u64, directory: &Path) -> Engine {
    open_with(
        EngineOptions {
            memory_bytes,
            ..EngineOptions::default()
        },
        directory,
    )
}

/// The same with further options.
pub fn open_with(options: EngineOptions, directory: &Path) -> Engine {
    Engine::open(EngineOptions {
        temp_dirs: vec![directory.to_owned()],
        threads: 2,
        ..options
    })
    .unwrap()
}

/// An engine whose statements read and write files below `files` alone.
pub fn open_with_files_under(files: &Path, memory_bytes: u64, directory: &Path) -> Engine {
    open_with(
        EngineOptions {
            memory_bytes,
            files: FileAccess::Under(files.to_owned()),
            ..EngineOptions::default()
        },
        directory,
    )
}

/// Text of the rows of a statement, as `mysql --batch` prints cells; an empty string is
/// [`EMPTY`]. `None` when the statement has no result set.
pub async fn run(session: &mut Session, sql: &str) -> Result<Option<Vec<Vec<String>>>, MySqlError> {
    read(session.execute(sql).await?).await
}

/// Text of the rows of a statement that has begun.
pub async fn read(outcome: Outcome) -> Result<Option<Vec<Vec<String>>>, MySqlError> {
    let (columns, mut batches) = match outcome {
        Outcome::Rows { columns, batches } => (columns, batches),
        Outcome::Done { .. } => return Ok(None),
    };
    let mut rows = Vec::new();
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().zip(&columns).map(|(array, column)| {
                let mut cell = Vec::new();
                match render::write_cell(&mut cell, array, row, &column.column_type) {
                    true => escape(&cell),
                    false => "NULL".to_owned(),
                }
            });
            rows.push(cells.collect());
        }
    }
    Ok(Some(rows))
}

/// How many statements of a session have run a plan that was kept.
pub async fn reused(session: &mut Session) -> u64 {
    let status = "SHOW SESSION STATUS LIKE 'Mayfly_plans_reused'";
    rows(session, status).await[0][1].parse().unwrap()
}

/// The rows of a statement that must succeed.
pub async fn rows(session: &mut Session, sql: &str) -> Vec<Vec<String>> {
    let ran = run(session, sql).await;
    ran.unwrap_or_else(|error| panic!("{sql}: {error}"))
        .unwrap_or_default()
}

/// Number and text of the error of a statement that must fail.
pub async fn error(session: &mut Session, sql: &str) -> (u16, String) {
    let error = run(session, sql).await.expect_err(sql);
    (error.code, error.message)
}

fn escape(cell: &[u8]) -> String {
    if cell.is_empty() {
        return EMPTY.to_owned();
    }
    let mut escaped = Vec::with_capacity(cell.len());
    for byte in cell {
        match byte {
            b'\t' => escaped.extend_from_slice(b"\\t"),
            b'\n' => escaped.extend_from_slice(b"\\n"),
            b'\\' => escaped.extend_from_slice(b"\\\\"),
            0 => escaped.extend_from_slice(b"\\0"),
            other => escaped.push(*other),
        }
    }
    String::from_utf8_lossy(&escaped).into_owned()
}

/// A cell as it was before [`run`] escaped it.
pub fn unescape(cell: &str) -> String {
    let mut text = String::with_capacity(cell.len());
    let mut characters = cell.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('t') => text.push('\t'),
                Some('n') => text.push('\n'),
                Some('0') => text.push('\0'),
                other => text.extend(other),
            },
            other => text.push(other),
        }
    }
    text
}

/// What tables hold while no statement runs: pages, and reserved bytes.
pub type Holdings = (u64, u64);

/// Waits until only the holdings of tables are left and nothing is pinned.
pub async fn check_only_left(engine: &Engine, held: Holdings, what: &str) {
    let space = engine.space();
    let started = Instant::now();
    loop {
        let counters = space.counters();
        let found = (counters.pages_live, counters.reserved_bytes);
        if found == held && counters.pinned_bytes == 0 {
            break;
        }
        let in_time = started.elapsed() < PATIENCE;
        assert!(in_time, "{what}: {held:?} may be left, found {counters:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    space.verify();
}

/// Waits until the space is empty: memory and disk.
pub async fn check_nothing_left(engine: &Engine, what: &str) {
    check_only_left(engine, (0, 0), what).await;
    let started = Instant::now();
    loop {
        let counters = engine.space().counters();
        let used = (engine.space().memory_used_bytes(), counters.disk_bytes_used);
        if used == (0, 0) {
            return;
        }
        assert!(
            started.elapsed() < PATIENCE,
            "{what}: memory and disk bytes left: {used:?}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Asserts that the rows and the keys of all tables agree that a session sees.
pub async fn check_tables(session: &Session, what: &str) {
    let problem = problem_of_tables(session).await;
    assert!(problem.is_none(), "{what}: {problem:?}");
}

/// Where rows and keys do not agree, of all tables that a session sees.
pub async fn problem_of_tables(session: &Session) -> Option<String> {
    let started = Instant::now();
    loop {
        match session.verify_tables() {
            Ok(problem) => return problem,
            // Statements that were stopped may have memory still.
            Err(_) if started.elapsed() < PATIENCE => {}
            Err(error) => return Some(format!("the tables cannot be read: {error}")),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// How many files below `directory` this process has open, deleted ones included.
pub fn open_files_below(directory: &Path) -> usize {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap();
    entries
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target.starts_with(directory))
        .count()
}

/// The tables that many tests use: `digits` with 10 rows and `wide` with `rows` rows (at most
/// 100,000) of a key that is 80 % unique, a skewed number, a text and NULLs.
pub async fn make_wide(session: &mut Session, rows: u32) {
    make_digits(session).await;
    let create = "CREATE TEMPORARY TABLE wide (n INT, k CHAR(32), skewed INT, word VARCHAR(100))";
    self::rows(session, create).await;
    let insert = format!(
        "INSERT INTO wide SELECT n, IF(n % 50 = 0, NULL, MD5(n % {})), n % 10 * (n % 2), \
         REPEAT(CHAR(97 + n % 26), n % 60) FROM {NUMBERS} WHERE n < {rows}",
        rows / 5 * 4
    );
    self::rows(session, &insert).await;
}

/// The numbers below 100,000, from the table of [`make_digits`].
pub const NUMBERS: &str = "(SELECT a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d AS n \
                           FROM digits a, digits b, digits c, digits d, digits e) s";

/// The table `digits` with 10 rows.
pub async fn make_digits(session: &mut Session) {
    rows(session, "CREATE TEMPORARY TABLE digits (d INT)").await;
    let insert = "INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)";
    rows(session, insert).await;
}
