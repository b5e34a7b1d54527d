//! Expressions whose answers were recorded from MariaDB: `recorded/functions/*.tsv`; and the
//! columns that CREATE TABLE ... SELECT declares for them: `recorded/declared.tsv`.

use mayfly_session::Session;
use mayfly_testkit::repository;

use crate::budgets::UNLIMITED;
use crate::engine::{open, rows, run};

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
    let recorded = repository().join("tests/recorded/functions");
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

/// The statement that makes the table of `declared.tsv`, and its expressions with the types of
/// their columns.
pub fn declared() -> (String, Vec<(String, String)>) {
    let path = repository().join("tests/recorded/declared.tsv");
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let table = lines.next().unwrap().to_owned();
    let columns = lines
        .map(|line| line.split_once('\t').unwrap())
        .map(|(expression, of)| (expression.to_owned(), of.to_owned()))
        .collect();
    (table, columns)
}

/// The declaration of the column `c` in the answer of SHOW CREATE TABLE, without the widths that
/// MariaDB shows of numbers and without the default that MySQL does not show.
pub fn declaration(shown: &str) -> String {
    let of = shown.split("`c` ").nth(1).unwrap_or(shown);
    let of = of.split("\\n").next().unwrap_or(of).trim_end_matches(',');
    let mut words: Vec<String> = Vec::new();
    for word in of.split(' ') {
        let plain = word.split('(').next().unwrap_or(word);
        let is_whole = plain.ends_with("int") && word != "tinyint(1)" || plain == "year";
        words.push(if is_whole { plain } else { word }.to_owned());
    }
    let of = words.join(" ");
    let is_blob = words[0].ends_with("text") || words[0].ends_with("blob");
    match of.strip_suffix(" DEFAULT NULL") {
        Some(rest) if is_blob => rest.to_owned(),
        _ => of,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_are_declared_as_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(UNLIMITED, directory.path());
    let mut session = engine.connect();
    let (table, columns) = declared();
    run(&mut session, &table).await.unwrap();
    let mut failures = Vec::new();
    for (expression, expected) in &columns {
        let create = format!("CREATE TEMPORARY TABLE d AS SELECT {expression} AS c FROM base");
        if let Err(error) = run(&mut session, &create).await {
            failures.push(format!("{expression}: {error}"));
            continue;
        }
        let shown = rows(&mut session, "SHOW CREATE TABLE d").await;
        let got = declaration(&shown[0][1]);
        if got != *expected {
            failures.push(format!("{expression}: expected {expected}, got {got}"));
        }
        run(&mut session, "DROP TEMPORARY TABLE d").await.unwrap();
    }
    let (failed, count) = (failures.len(), columns.len());
    let all = failures.join("\n");
    assert!(failures.is_empty(), "{failed} of {count} differ:\n{all}");
}
