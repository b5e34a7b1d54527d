//! The tables at the end of a history: keys that agree with the rows, the rows that the ledger
//! allows and no others, the same ones by every way to them, and the balances.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mayfly_session::{Engine, Session};
use mayfly_testkit::Random;

use super::ledger;
use super::sessions::{History, row_of};
use super::statement::Model;
use super::sums::SUMS;
use super::tables::{BLOCK, Row, Rows, SharedTable, TABLES};
use crate::engine::{problem_of_tables, rows, run};

/// The longest that statements of clients that went away may go on.
const PATIENCE: Duration = Duration::from_secs(60);
/// Rows of each table that are looked up one by one, and as many that are not there.
const LOOKED_UP: usize = 10;

/// Compares the tables with what the sessions were told.
///
/// # Errors
/// All that is wrong.
pub async fn check(engine: &Engine, history: &History, seed: u64) -> Result<(), String> {
    let mut session = engine.connect();
    until_alone(&mut session).await;
    let mut problems = history.problems.clone();
    problems.extend(problem_of_tables(&session).await);
    for table in &TABLES {
        if table.is_renamed {
            let back = format!("RENAME TABLE {} TO {}", table.other_name(), table.name);
            // It may be back already; then it must be there.
            let _renamed = run(&mut session, &back).await.is_ok();
        }
        if table.is_dropped {
            rows(&mut session, &table.definition()).await;
        }
    }
    let mut blocks: HashMap<u64, Model> = HashMap::new();
    for (number, table) in TABLES.iter().enumerate() {
        let all = every_way(&mut session, table, seed, &mut problems).await;
        for (block, found) in all {
            blocks.entry(block).or_default()[number] = Arc::new(Rows::of(found));
        }
    }
    let emptied = ledger::emptied(&history.logs);
    for log in &history.logs {
        let found = blocks.remove(&log.block).unwrap_or_default();
        problems.extend(ledger::check(log, &emptied, &found).err());
    }
    problems.extend(
        blocks
            .keys()
            .map(|block| format!("rows of nobody, block {block}")),
    );
    let mut balances = BTreeMap::new();
    for (number, table) in SUMS.iter().enumerate() {
        for row in rows(&mut session, &format!("SELECT id, balance FROM {table}")).await {
            let id: u64 = row[0].parse().expect("a number");
            let balance: i64 = row[1].parse().expect("a number");
            if balances.insert((number, id), balance).is_some() {
                problems.push(format!("{table} has row {id} twice"));
            }
        }
    }
    problems.extend(history.tally.check(&balances).err());
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems.join("\n\n")),
    }
}

/// Waits until no statement runs and no other connection is there.
async fn until_alone(session: &mut Session) {
    let started = Instant::now();
    loop {
        let shown = rows(session, "SHOW PROCESSLIST").await;
        if shown.len() == 1 {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "these stay: {shown:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The rows of a table by their blocks, which must be the same whichever way leads to them.
async fn every_way(
    session: &mut Session,
    table: &SharedTable,
    seed: u64,
    problems: &mut Vec<String>,
) -> BTreeMap<u64, Vec<Row>> {
    let name = table.name;
    let mut all: Option<Vec<Vec<String>>> = None;
    for condition in table.all_rows() {
        let sql = format!(
            "SELECT id, origin, v, code, LENGTH(filler), block FROM {name} WHERE {condition}"
        );
        let mut found = rows(session, &sql).await;
        found.sort_unstable();
        let count = format!("SELECT COUNT(*) FROM {name} WHERE {condition}");
        let count = rows(session, &count).await;
        if count[0][0] != found.len().to_string() {
            problems.push(format!("{sql}: {} rows, counted {count:?}", found.len()));
        }
        match &all {
            None => all = Some(found),
            Some(all) if *all == found => {}
            Some(all) => {
                let missing = all.iter().filter(|row| found.binary_search(row).is_err());
                let missing: Vec<_> = missing.take(5).collect();
                let more = found.iter().filter(|row| all.binary_search(row).is_err());
                let more: Vec<_> = more.take(5).collect();
                problems.push(format!(
                    "{sql}: {} rows instead of {}, without {missing:?}, with {more:?}",
                    found.len(),
                    all.len()
                ));
            }
        }
    }
    let all = all.expect("there is a way to the rows");
    look_up(session, table, &all, seed, problems).await;
    let mut blocks: BTreeMap<u64, Vec<Row>> = BTreeMap::new();
    for cells in &all {
        let block: u64 = cells[5].parse().expect("a number");
        blocks.entry(block).or_default().push(row_of(cells, block));
    }
    blocks
}

/// Looks single rows up, and some that are not there.
async fn look_up(
    session: &mut Session,
    table: &SharedTable,
    all: &[Vec<String>],
    seed: u64,
    problems: &mut Vec<String>,
) {
    let mut random = Random::new(seed);
    for key in ["id", "code"] {
        let column = if key == "id" { 0 } else { 3 };
        let mut counts: HashMap<u64, usize> = HashMap::new();
        for row in all {
            let value = row[column].parse().expect("a number");
            *counts.entry(value).or_default() += 1;
        }
        let mut asked: Vec<u64> = Vec::new();
        for _ in 0..LOOKED_UP.min(all.len()) {
            let row = &all[random.below(all.len() as u64) as usize];
            let value: u64 = row[column].parse().expect("a number");
            let block = value / BLOCK * BLOCK;
            asked.extend([value, block + random.below(64)]);
        }
        for value in asked {
            let sql = format!("SELECT id FROM {} WHERE {key} = {value}", table.name);
            let found = rows(session, &sql).await.len();
            let expected = counts.get(&value).copied().unwrap_or_default();
            if found != expected {
                problems.push(format!("{sql}: {found} rows instead of {expected}"));
            }
        }
    }
}
