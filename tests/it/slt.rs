//! The SQL logic tests, each at every budget.
//!
//! A comment `# spills` above a query demands that a temporary table of it was written to disk at
//! the least budget. At the largest budget and at the least, a query whose answer does not change
//! is asked three times: the third time its plan may be one that was kept. After each file the
//! space must be empty, and one temp file without a name may be open, however many temporary tables
//! there were.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use mayfly_session::{Engine, Session, StatementStats};
use mayfly_sql::parse::parse;
use mayfly_sql::references::References;
use mayfly_sql::repeatable::is_repeatable;
use mayfly_sql::statement::Statement;
use mayfly_tests::scripts;
use mayfly_types::MySqlError;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Record, Runner};

use crate::budgets;
use crate::engine::{check_nothing_left, open, open_files_below, run};

struct Database {
    session: Session,
    last: Arc<Mutex<StatementStats>>,
}

#[async_trait::async_trait]
impl AsyncDB for Database {
    type Error = MySqlError;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, MySqlError> {
        let ran = run(&mut self.session, sql).await;
        *self.last.lock().unwrap() = self.session.last_stats();
        Ok(match ran? {
            Some(rows) => {
                let columns = rows.first().map_or(0, Vec::len);
                DBOutput::Rows {
                    types: vec![DefaultColumnType::Text; columns],
                    rows,
                }
            }
            None => DBOutput::StatementComplete(0),
        })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "mayfly"
    }

    fn error_sql_state(error: &MySqlError) -> Option<String> {
        Some(error.sqlstate.to_owned())
    }
}

/// Runs one file at one budget; the text of the first failure.
async fn run_file(path: &Path, memory_bytes: u64) -> Result<(), String> {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(memory_bytes, directory.path());
    let ran = run_records(path, &engine, memory_bytes).await;
    let name = path.display();
    ran.map_err(|error| format!("{name} at {} MiB: {error}", memory_bytes >> 20))?;
    check_nothing_left(&engine, &name.to_string()).await;
    let files = open_files_below(directory.path());
    assert!(
        files <= 1,
        "{name}: {files} temp files are open in one directory"
    );
    let visible = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(visible, 0, "{name}: a temp file has a name");
    Ok(())
}

async fn run_records(path: &Path, engine: &Engine, memory_bytes: u64) -> Result<(), String> {
    let last = Arc::new(Mutex::new(StatementStats::default()));
    let mut runner = Runner::new(|| async {
        Ok(Database {
            session: engine.connect(),
            last: Arc::clone(&last),
        })
    });
    runner.set_var("__REPOSITORY__".to_owned(), scripts::repository());
    let records = sqllogictest::parse_file(path).map_err(|error| error.to_string())?;
    // Where statements are counted, and where they take their time, each runs once.
    let asks_again = [budgets::UNLIMITED, budgets::MINIMUM].contains(&memory_bytes)
        && !path.ends_with("status.slt")
        && !path.starts_with(scripts::directory().join("spill"));
    let mut must_spill = false;
    let mut failures = Vec::new();
    for record in records {
        match &record {
            Record::Comment(lines) => {
                must_spill = lines.iter().any(|line| line.trim() == "spills");
                continue;
            }
            Record::Halt { .. } => break,
            _ => {}
        }
        let query = match &record {
            Record::Query { sql, .. } => Some(sql.clone()),
            _ => None,
        };
        let again = match &query {
            Some(sql) if asks_again && returns_the_same(sql) => 2,
            _ => 0,
        };
        let repeated = std::iter::repeat_n(record.clone(), again);
        if let Err(error) = runner.run_async(record).await {
            failures.push(error.to_string());
        }
        for record in repeated {
            if let Err(error) = runner.run_async(record).await {
                failures.push(format!("asked again: {error}"));
            }
        }
        if let Some(sql) = query
            && std::mem::take(&mut must_spill)
            // At twice as much pages of tables may leave instead, which depends on who is faster.
            && memory_bytes <= budgets::MINIMUM
        {
            let stats = *last.lock().unwrap();
            if stats.temp_disk_tables == 0 || stats.temp_bytes_written == 0 {
                failures.push(format!("nothing was written to disk: {sql}\n{stats:?}"));
            }
        }
    }
    runner.shutdown_async().await;
    if failures.is_empty() {
        Ok(())
    } else {
        Err(failures.join("\n"))
    }
}

/// Whether a query may be asked again.
fn returns_the_same(sql: &str) -> bool {
    match parse(sql) {
        Ok((Statement::Query(query), _)) => is_repeatable(&query, &References::of_query(&query)),
        _ => false,
    }
}

fn files_of(group: &str) -> Vec<PathBuf> {
    let in_group = |path: &PathBuf| {
        let inside = path.strip_prefix(scripts::directory()).unwrap();
        (inside.components().count() > 1) == (group == "spill")
    };
    scripts::all().into_iter().filter(in_group).collect()
}

/// Runs every file at one budget and reports all that fail.
async fn run_group(group: &str, memory_bytes: u64) {
    let wanted = std::env::var("MAYFLY_SLT").unwrap_or_default();
    let mut failures = Vec::new();
    for path in files_of(group) {
        if path.display().to_string().contains(&wanted)
            && let Err(failure) = run_file(&path, memory_bytes).await
        {
            failures.push(failure);
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// A test for each budget of [`budgets::ALL`]: they run side by side, and have names of their own.
macro_rules! at_every_budget {
    ($($module:ident: $group:literal;)*) => {$(
        mod $module {
            use crate::budgets;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn without_a_limit() {
                super::run_group($group, budgets::UNLIMITED).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn at_64_mib() {
                super::run_group($group, budgets::ROOMY).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn at_8_mib() {
                super::run_group($group, budgets::SPILLING).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn at_the_minimum() {
                super::run_group($group, budgets::MINIMUM).await;
            }
        }
    )*};
}

at_every_budget! {
    recorded_rows: "";
    recorded_rows_of_statements_that_outgrow_memory: "spill";
}
