//! Expressions whose answers were recorded from MariaDB: `recorded/functions/*.tsv`.

use std::path::Path;

use mayfly_session::Session;

use crate::budgets::UNLIMITED;
use crate::engine::{open, run};

async fn answer(session: &mut Session, expression: &str) -> String {
    match run(session, &format!("SELECT {expression}")).await {
        Ok(Some(rows)) => {
            let cell = rows
                .first()
                .and_then(|row| row.first())
                .cloned()
                .unwrap_or_default();
            if cell == mayfly_tests::mariadb::EMPTY {
                String::new()
            } else {
                cell
            }
        }
        Ok(None) => "no result set".to_owned(),
        Err(error) => format!("ERROR {}", error.code),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_answer_as_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(UNLIMITED, directory.path());
    let mut session = engine.connect();
    run(&mut session, "SET time_zone = '+00:00'").await.unwrap();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded/functions");
    let mut failures = Vec::new();
    let mut count = 0;
    let mut paths: Vec<_> = std::fs::read_dir(recorded)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        for (index, line) in text.lines().enumerate() {
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            let (expression, expected) = line.split_once('\t').unwrap();
            let got = answer(&mut session, expression).await;
            count += 1;
            if got != expected {
                let file = path.file_name().unwrap().to_string_lossy();
                failures.push(format!(
                    "{file}:{}: {expression}: expected {expected}, got {got}",
                    index + 1
                ));
            }
        }
    }
    assert!(count > 0);
    let failed = failures.len();
    assert!(
        failures.is_empty(),
        "{failed} of {count} differ:\n{}",
        failures.join("\n")
    );
}
