//! Queries over many rows that come again: operators that were kept give what new ones give, while
//! rows, tables and settings change.

use futures::StreamExt;
use mayfly_session::Outcome;
use mayfly_testkit::Random;

use crate::engine::{check_nothing_left, open, reused, rows, run};
use crate::repeated::told;

const SEED: u64 = 20_261_130;
const STEPS: u64 = 150;

/// More rows than a plan over few rows reads.
const TABLES: [&str; 5] = [
    "SET cte_max_recursion_depth = 100000",
    "CREATE TABLE l (id INT NOT NULL, g INT, k INT, s VARCHAR(30), d DECIMAL(12,2))",
    "INSERT INTO l WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n \
     WHERE i < 30000) SELECT i, NULLIF(i % 50, 7), i * 7 % 9000, CONCAT('text ', i * 31 % 4001), \
     i % 997 / 4 FROM n",
    "CREATE TABLE r (id INT NOT NULL, n INT, s VARCHAR(30))",
    "INSERT INTO r SELECT id, NULLIF(id % 13, 5), CONCAT('word ', id % 101) FROM l \
     WHERE id <= 8000",
];

/// Queries; rows that their order leaves open are sorted here.
const QUERIES: [&str; 18] = [
    "SELECT r.s, COUNT(*), SUM(l.d) FROM l JOIN r ON l.k = r.id WHERE l.g < 40 GROUP BY r.s",
    "SELECT COUNT(*), MIN(l.id) FROM l LEFT JOIN r ON l.k = r.id AND r.n > 5 WHERE r.id IS NULL",
    "SELECT COUNT(*), MAX(id) FROM l WHERE k IN (SELECT id FROM r WHERE n < 7)",
    "SELECT COUNT(*), (SELECT COUNT(*) FROM r) FROM l WHERE g < 9",
    "SELECT COUNT(*), MAX(id) FROM l WHERE k NOT IN (SELECT id FROM r WHERE n IS NOT NULL)",
    "SELECT COUNT(*), MAX(id) FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.id = l.k)",
    "SELECT COUNT(*) FROM l WHERE d > (SELECT AVG(d) FROM l)",
    "SELECT g, SUM(d) FROM l GROUP BY g HAVING SUM(d) > (SELECT SUM(d) * 0.02 FROM l)",
    "SELECT SUM(d) FROM l, r WHERE l.k = r.id AND r.n = 3 \
     AND d < (SELECT 1.2 * AVG(d) FROM l m WHERE m.k = r.id)",
    "SELECT COUNT(*) FROM (SELECT k FROM l UNION SELECT id FROM r) u",
    "SELECT s, COUNT(DISTINCT g) FROM l WHERE s LIKE 'text 1%' GROUP BY s ORDER BY 2 DESC, s LIMIT 9",
    "SELECT id, s FROM l ORDER BY d DESC, id LIMIT 20",
    "SELECT l.id, r.s FROM l JOIN r ON l.k = r.id ORDER BY l.id DESC LIMIT 5 OFFSET 10",
    "SELECT COUNT(*), SUM(a.id) FROM r a JOIN r b ON a.n + 3 < b.n AND b.id > 7500 \
     WHERE a.id < 500",
    "SELECT a.g, COUNT(*) FROM l a JOIN l b ON a.id = b.k JOIN r ON r.id = b.id \
     WHERE r.s <> 'word 7' GROUP BY a.g",
    "SELECT CASE WHEN d > 100 THEN 'more' ELSE 'less' END AS w, COUNT(*), AVG(d) FROM l GROUP BY w",
    "SELECT COUNT(*), SUM(place) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY g ORDER BY id) AS place \
     FROM l) w WHERE place < 10",
    "SELECT s + 1, COUNT(*) FROM r WHERE id < 20 GROUP BY 1",
];

/// What changes the rows that are there.
fn change(random: &mut Random) -> String {
    let (id, other) = (random.below(9000), random.below(60));
    match random.below(9) {
        0 => format!("INSERT INTO l VALUES ({id}, {other}, {id}, 'new {other}', {other}.25)"),
        1 => format!("UPDATE l SET g = {other} WHERE id = {id}"),
        2 => format!("DELETE FROM r WHERE id = {id}"),
        3 => format!("UPDATE r SET n = NULL WHERE id > {id} AND n = 3"),
        4 => format!("INSERT INTO r VALUES ({id}, {other}, 'word {other}')"),
        5 => "ALTER TABLE r ADD COLUMN w INT DEFAULT 7 FIRST".to_owned(),
        6 => "ALTER TABLE r DROP COLUMN w".to_owned(),
        7 => format!("DELETE FROM l WHERE id % 60 = {other}"),
        _ => "INSERT INTO l SELECT id + 9000, g, k, s, d FROM l WHERE id < 300".to_owned(),
    }
}

/// What belongs to a session only.
fn setting(random: &mut Random) -> &'static str {
    [
        "SET div_precision_increment = 8",
        "SET div_precision_increment = DEFAULT",
        "SET sql_select_limit = 3",
        "SET sql_select_limit = DEFAULT",
        "CREATE TEMPORARY TABLE r AS SELECT id, 4 AS n, 'mine' AS s FROM l WHERE id < 6000",
        "DROP TEMPORARY TABLE r",
    ][random.below(6) as usize]
}

async fn compare(memory_bytes: u64) {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(memory_bytes, directory.path());
    let mut writer = engine.connect();
    for sql in TABLES {
        rows(&mut writer, sql).await;
    }
    let (mut kept, mut new) = (engine.connect(), engine.connect());
    let mut random = Random::new(SEED);
    for step in 0..STEPS {
        if random.chance(0.03) {
            let _ = run(&mut writer, &change(&mut random)).await;
        }
        if random.chance(0.04) {
            let sql = setting(&mut random);
            let ended = [run(&mut kept, sql).await, run(&mut new, sql).await];
            assert_eq!(ended[0].is_ok(), ended[1].is_ok(), "{sql}");
        }
        // Some come often.
        let place = random
            .below(QUERIES.len() as u64)
            .min(random.below(QUERIES.len() as u64));
        let sql = QUERIES[place as usize];
        let once = sql.replacen("SELECT", &format!("SELECT /* {step} */"), 1);
        let limited = rows(&mut new, "SELECT @@sql_select_limit = 3").await[0][0] == "1";
        if limited && !sql.contains("ORDER BY") {
            continue;
        }
        let again = told(&mut kept, sql).await;
        assert_eq!(again, told(&mut new, &once).await, "step {step}: {sql}");
    }
    assert_eq!(reused(&mut new).await, 0);
    let reused = reused(&mut kept).await;
    assert!(reused > STEPS / 10, "{reused} plans were reused");
    drop((kept, new));
    rows(&mut writer, "DROP TABLE l, r").await;
    drop(writer);
    check_nothing_left(&engine, "operators that were kept").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_that_were_kept_give_what_new_ones_give() {
    compare(64 << 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_spill_as_new_ones_do() {
    compare(8 << 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_plan_is_made_again_while_the_tables_have_the_same_rows() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    for sql in TABLES {
        rows(&mut session, sql).await;
    }
    for sql in QUERIES.iter().filter(|sql| !sql.contains("OVER")) {
        let first = told(&mut session, sql).await;
        for run in 2..5 {
            let before = reused(&mut session).await;
            assert_eq!(told(&mut session, sql).await, first, "{sql}");
            let again = reused(&mut session).await - before;
            assert_eq!(again, u64::from(run > 2), "run {run} of {sql}");
        }
    }
    // A reader that goes away leaves its plan to the next one.
    let sql = "SELECT l.id, r.s FROM l JOIN r ON l.k = r.id";
    let first = told(&mut session, sql).await;
    told(&mut session, sql).await;
    for _ in 0..3 {
        let Outcome::Rows { mut batches, .. } = session.execute(sql).await.unwrap() else {
            panic!("{sql} returns no rows");
        };
        assert!(batches.next().await.is_some());
        drop(batches);
        assert_eq!(told(&mut session, sql).await, first);
    }
    rows(&mut session, "DROP TABLE l, r").await;
    drop(session);
    check_nothing_left(&engine, "operators that were kept").await;
}
