//! INSERT of many rows of expressions against INSERTs of each row alone.

use mayfly_session::Session;
use mayfly_testkit::repository;

use crate::budgets::UNLIMITED;
use crate::engine::{open, rows, run};

/// Rows of one statement.
const ROWS: usize = 200;

/// What a column has after its expression was inserted alone; `None` where that fails.
async fn alone(session: &mut Session, expression: &str) -> Option<String> {
    rows(session, "TRUNCATE TABLE alone").await;
    let insert = format!("INSERT INTO alone VALUES ({expression})");
    run(session, &insert).await.ok()?;
    rows(session, "SELECT * FROM alone").await.concat().pop()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_together_have_the_values_of_rows_alone() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(UNLIMITED, directory.path());
    let mut session = engine.connect();
    for statement in [
        "SET time_zone = '+00:00'",
        "SET sql_mode = ''",
        "CREATE TEMPORARY TABLE alone (v LONGTEXT)",
        "CREATE TEMPORARY TABLE together (i INT, v LONGTEXT)",
    ] {
        rows(&mut session, statement).await;
    }
    let mut expressions = Vec::new();
    let recorded = repository().join("tests/recorded/functions");
    for entry in std::fs::read_dir(recorded).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let named = lines.filter_map(|line| line.split_once('\t'));
        expressions.extend(named.map(|(expression, _)| expression.to_owned()));
    }
    expressions.sort();
    let mut expected = Vec::new();
    for expression in expressions {
        if let Some(value) = alone(&mut session, &expression).await {
            expected.push((expression, value));
        }
    }
    assert!(expected.len() > 400, "{}", expected.len());
    let mut failures = Vec::new();
    for part in expected.chunks(ROWS) {
        rows(&mut session, "TRUNCATE TABLE together").await;
        let cells = part.iter().enumerate();
        let cells = cells.map(|(number, (expression, _))| format!("({number}, {expression})"));
        let cells: Vec<String> = cells.collect();
        let insert = format!("INSERT INTO together VALUES {}", cells.join(", "));
        rows(&mut session, &insert).await;
        let found = rows(&mut session, "SELECT v FROM together ORDER BY i").await;
        assert_eq!(found.len(), part.len());
        for ((expression, value), found) in part.iter().zip(found) {
            if found[0] != *value {
                let found = &found[0];
                failures.push(format!("{expression}: alone {value}, together {found}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
