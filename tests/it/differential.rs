//! The same statements against Mayfly and a live MariaDB.

use std::ops::Range;

use mayfly_testkit::Random;
use mayfly_tests::mariadb::Server;
use mayfly_tests::scripts;
use sqllogictest::Runner;

use crate::answers::{Answer, answer, answer_of};
use crate::budgets::SPILLING;
use crate::engine::{check_nothing_left, open};
use crate::queries::Queries;
use crate::recorded::{declaration, declared};

const ROWS: u64 = 400;
const STATEMENTS: usize = 400;
const SEED: u64 = 20_260_121;
/// Tables of random queries, and queries over each of them.
const QUERY_SEEDS: Range<u64> = 0..4;
const QUERIES: usize = 75;

fn is_skipped() -> bool {
    if Server::is_installed() {
        return false;
    }
    println!("skipped: mariadbd is not installed");
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb_answers_what_is_recorded() {
    if is_skipped() {
        return;
    }
    let server = Server::start();
    let mut failures = Vec::new();
    for path in scripts::all() {
        server.clear();
        let mut runner = Runner::new(|| async { Ok(server.connect()) });
        runner.set_var("__REPOSITORY__".to_owned(), scripts::repository());
        if let Err(error) = runner.run_file_async(&path).await {
            failures.push(error.to_string());
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn mariadb_declares_the_columns_that_are_recorded() {
    if is_skipped() {
        return;
    }
    let server = Server::start();
    let mut connection = server.connect();
    let (table, columns) = declared();
    connection.rows(&table).unwrap();
    let mut failures = Vec::new();
    for (expression, expected) in columns {
        let create = format!("CREATE TEMPORARY TABLE d AS SELECT {expression} AS c FROM base");
        connection.rows(&create).unwrap();
        let shown = connection.rows("SHOW CREATE TABLE d").unwrap();
        let got = declaration(&shown[1][1]);
        if got != expected {
            failures.push(format!("{expression}: recorded {expected}, MariaDB {got}"));
        }
        connection.rows("DROP TEMPORARY TABLE d").unwrap();
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Statements over a table of every kind of column, from a seed.
struct Statements {
    random: Random,
}

impl Statements {
    fn pick<'a>(&mut self, among: &[&'a str]) -> &'a str {
        among[self.random.below(among.len() as u64) as usize]
    }

    fn value(&mut self, kind: &str) -> String {
        if self.random.chance(0.2) {
            return "NULL".to_owned();
        }
        match kind {
            "i" => format!("{}", self.random.below(20) as i64 - 10),
            "b" => format!("{}", self.random.next_u64() as i64),
            "d" => format!("{}.{:02}", self.random.below(1000), self.random.below(100)),
            "f" => format!("{}", self.random.below(64) as f64 / 8.0 - 4.0),
            "t" => {
                let days = self.random.below(28) + 1;
                format!("'2026-0{}-{days:02}'", self.random.below(9) + 1)
            }
            _ => {
                let longest = if self.random.chance(0.1) { 200 } else { 2 };
                format!("'{}'", self.random.string(longest))
            }
        }
    }

    fn insert(&mut self) -> String {
        let kinds = ["i", "b", "d", "f", "t", "s", "s"];
        let values: Vec<String> = kinds.iter().map(|kind| self.value(kind)).collect();
        format!("INSERT INTO r VALUES ({})", values.join(", "))
    }

    fn key(&mut self) -> &'static str {
        self.pick(&[
            "i",
            "d",
            "t",
            "s",
            "f",
            "i % 3",
            "LEFT(s, 1)",
            "i IS NULL",
            "UPPER(s)",
            "i + 1",
            "LENGTH(l)",
            "YEAR(t)",
            "MONTH(t)",
            "COALESCE(s, 'none')",
            "CONCAT(s, i)",
            "ABS(i)",
            "d > 500",
        ])
    }

    fn aggregate(&mut self) -> &'static str {
        self.pick(&[
            "COUNT(*)",
            "COUNT(i)",
            "COUNT(s)",
            "SUM(i)",
            "SUM(d)",
            "SUM(f)",
            "AVG(i)",
            "AVG(d)",
            "MIN(b)",
            "MAX(b)",
            "MIN(s)",
            "MAX(s)",
            "MIN(t)",
            "MAX(t)",
            "MIN(d)",
            "MAX(f)",
            "COUNT(DISTINCT i)",
            "COUNT(DISTINCT s, i)",
            "SUM(DISTINCT i)",
            "BIT_XOR(i)",
            "MAX(l)",
            "SUM(i * 2)",
            "SUM(IF(i > 0, 1, 0))",
            "SUM(i IS NULL)",
            "GROUP_CONCAT(i ORDER BY i)",
            "GROUP_CONCAT(DISTINCT s ORDER BY s DESC SEPARATOR '-')",
        ])
    }

    fn condition(&mut self) -> &'static str {
        self.pick(&[
            "1 = 1",
            "i > 0",
            "i IS NOT NULL",
            "s LIKE 'a%'",
            "s = ''",
            "d BETWEEN 100 AND 700",
            "t >= '2026-05-01'",
            "i IN (1, 2, NULL)",
            "NOT (i = 3)",
            "i <=> NULL",
            "f < 0 OR i = 1",
            "s > 'm' XOR i > 0",
        ])
    }

    fn query(&mut self) -> String {
        let (a, b) = (self.key(), self.key());
        let (x, y) = (self.aggregate(), self.aggregate());
        let (p, q) = (self.condition(), self.condition());
        match self.random.below(9) {
            0 => format!("SELECT {a} k, {x}, {y} FROM r WHERE {p} GROUP BY k"),
            1 => format!("SELECT {a} k, {b} j, {x} FROM r GROUP BY k, j"),
            2 => format!("SELECT {x}, {y} FROM r WHERE {p}"),
            3 => format!("SELECT DISTINCT {a}, {b} FROM r WHERE {p}"),
            4 => format!("SELECT {a} FROM r WHERE {p} UNION SELECT {a} FROM r WHERE {q}"),
            5 => format!("SELECT {a} k, COUNT(*) c, {x} FROM r GROUP BY k HAVING c > 3"),
            6 => format!("SELECT {a} k, {x} v FROM r WHERE {p} GROUP BY k ORDER BY k LIMIT 5"),
            7 => format!(
                "SELECT COUNT(*), SUM(c) FROM (SELECT {a} k, COUNT(*) c FROM r \
                          GROUP BY k) g"
            ),
            _ => format!(
                "SELECT l.i, {x} FROM r l JOIN (SELECT DISTINCT i AS j FROM r WHERE {p}) \
                          m ON l.i = m.j GROUP BY l.i"
            ),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_statements_have_equal_answers() {
    if is_skipped() {
        return;
    }
    println!("seed {SEED}");
    let server = Server::start();
    let mut theirs = server.connect();
    let directory = tempfile::tempdir().unwrap();
    let engine = open(SPILLING, directory.path());
    let mut ours = engine.connect();
    let mut statements = Statements {
        random: Random::new(SEED),
    };
    let mut script = vec![
        "CREATE TEMPORARY TABLE r (i INT, b BIGINT, d DECIMAL(10,2), f DOUBLE, t DATE, \
         s VARCHAR(300), l TEXT)"
            .to_owned(),
    ];
    script.extend((0..ROWS).map(|_| statements.insert()));
    script.extend((0..STATEMENTS).map(|_| statements.query()));
    let mut failures = Vec::new();
    for sql in &script {
        let (got, expected) = (answer(&mut ours, sql).await, answer_of(&mut theirs, sql));
        if got != expected {
            failures.push(format!(
                "{sql}\n  ours: {}\n  theirs: {}",
                cut(&got),
                cut(&expected)
            ));
        }
    }
    let count = failures.len();
    assert!(
        failures.is_empty(),
        "{count} differ:\n{}",
        failures.join("\n")
    );
    drop(ours);
    check_nothing_left(&engine, "differential").await;
}

/// Each seed has tables of its own. `MAYFLY_SEEDS=100..200` looks at others, which find what nobody
/// has thought of; where MariaDB is wrong, this test is too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_queries_have_equal_rows_each_time() {
    if is_skipped() {
        return;
    }
    let seeds = std::env::var("MAYFLY_SEEDS").ok().and_then(|seeds| {
        let (from, to) = seeds.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    let server = Server::start();
    let mut failures = Vec::new();
    for seed in seeds.unwrap_or(QUERY_SEEDS) {
        let mut theirs = server.connect();
        let directory = tempfile::tempdir().unwrap();
        let engine = open(SPILLING, directory.path());
        let mut ours = engine.connect();
        let mut queries = Queries::new(seed);
        let mode = "SET sql_mode = ''".to_owned();
        for sql in std::iter::once(mode).chain(queries.tables()) {
            let (got, expected) = (answer(&mut ours, &sql).await, answer_of(&mut theirs, &sql));
            assert_eq!(got, expected, "{sql}");
        }
        for _ in 0..QUERIES {
            let sql = queries.query();
            let (first, expected) = (answer(&mut ours, &sql).await, answer_of(&mut theirs, &sql));
            let mut all = vec![first];
            for _ in 0..2 {
                all.push(answer(&mut ours, &sql).await);
            }
            for (time, got) in all.iter().enumerate().filter(|(_, got)| **got != expected) {
                failures.push(format!(
                    "seed {seed}, time {}: {sql}\n  ours: {}\n  theirs: {}",
                    time + 1,
                    cut(got),
                    cut(&expected)
                ));
            }
        }
        drop(ours);
        check_nothing_left(&engine, "random queries").await;
    }
    let count = failures.len();
    let failures = failures.join("\n");
    assert!(failures.is_empty(), "{count} differ:\n{failures}");
}

fn cut(rows: &Answer) -> String {
    format!("{rows:?}").chars().take(300).collect()
}
