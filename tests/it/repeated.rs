//! Queries that come again: a plan that was kept gives what a new one gives, for other constants
//! too.
//!
//! Four sessions share their tables, and plans over them. Two and two have the same settings and
//! ask the same queries while rows, keys and tables change; in one of the two each text has another
//! comment, so that none comes again.

use mayfly_session::{Outcome, Session};
use mayfly_testkit::Random;

use crate::engine::{check_nothing_left, open, read, reused, rows, run};

const SEED: u64 = 20_261_123;
const ROUNDS: u64 = 6;
const STEPS: u64 = 80;
/// Queries of a round: each comes often enough for its plan to be kept.
const AT_ONCE: usize = 7;

const TABLES: [&str; 3] = [
    "CREATE TABLE a (id INT PRIMARY KEY, b_id BIGINT, s VARCHAR(20), d DECIMAL(8,2), KEY (b_id))",
    "CREATE TABLE b (id INT UNSIGNED NOT NULL, v VARCHAR(20), n INT, UNIQUE KEY (id), KEY (n))",
    "CREATE TABLE c (x INT NOT NULL, y VARCHAR(5) NOT NULL, n INT, PRIMARY KEY (x, y))",
];

/// Queries; rows that their order leaves open are sorted here.
const QUERIES: [&str; 36] = [
    "SELECT * FROM (SELECT id, s, (SELECT v FROM b WHERE b.id = a.b_id) AS v FROM a \
     WHERE id IN (1, 3, 5, 7)) q ORDER BY s, id",
    "SELECT id, (SELECT n + a.id FROM b WHERE b.id = a.b_id) FROM a",
    "SELECT id, (SELECT 100 / n FROM b WHERE b.id = a.b_id) FROM a",
    "SELECT id FROM a WHERE (SELECT n FROM b WHERE b.id = a.b_id AND n > 3) < 8",
    "SELECT id, (SELECT n FROM c WHERE x = a.id AND y = a.s) FROM a",
    "SELECT id, (SELECT n FROM c WHERE x = a.id AND y = 'k1') AS n FROM a ORDER BY n, id LIMIT 5",
    "SELECT COUNT(*), (SELECT v FROM b WHERE b.id = MIN(a.b_id)) FROM a",
    "SELECT s, COUNT(*), SUM(d) FROM a GROUP BY s HAVING COUNT(*) > 1",
    "SELECT COUNT(*) FROM a",
    "SELECT MIN(id), MAX(id), COUNT(n) FROM b",
    "SELECT a.id, b.v FROM a JOIN b ON b.id = a.b_id WHERE a.id < 9",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON b.id = a.b_id AND b.n > 4 ORDER BY a.id DESC LIMIT 4",
    "SELECT b.v, COUNT(*) FROM a JOIN b ON b.id = a.b_id GROUP BY b.v",
    "SELECT DISTINCT s FROM a ORDER BY s",
    "SELECT id FROM a WHERE b_id IN (SELECT id FROM b WHERE n BETWEEN 2 AND 6)",
    "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.id = a.b_id)",
    "SELECT id FROM a UNION SELECT n FROM b ORDER BY 1",
    "SELECT UPPER(s), d * 2 FROM a WHERE s LIKE 'k%' AND d IS NOT NULL",
    "SELECT l.id, r.id FROM a l JOIN a r ON l.b_id = r.b_id AND l.id < r.id",
    "SELECT * FROM b ORDER BY n DESC, id LIMIT 3",
    "SELECT id, s + 1 FROM a WHERE id < 6",
    "SELECT CASE WHEN n > 5 THEN 'more' ELSE 'less' END AS w, COUNT(*) FROM b GROUP BY w",
    "SELECT (SELECT v FROM b WHERE id = 3), (SELECT MAX(n) FROM b)",
    "SELECT id FROM a WHERE (SELECT x FROM c WHERE c.n = a.id) = 2",
    "SELECT a.id FROM a, b, c WHERE a.b_id = b.id AND c.x = b.n",
    "SELECT id FROM a WHERE (SELECT n FROM b WHERE b.id = a.b_id) > 1 \
     AND (SELECT c.x FROM c WHERE c.x = 99 AND c.y = 'none') IS NULL",
    "SELECT id FROM a WHERE (SELECT n FROM b WHERE b.id = a.b_id) \
     = (SELECT MAX(n) FROM c WHERE c.x = a.id)",
    "SELECT id FROM a WHERE (SELECT n FROM b WHERE b.id = a.b_id) \
     <> (SELECT x FROM c WHERE c.n = a.id)",
    "SELECT id FROM a WHERE (SELECT n FROM b WHERE b.id = a.b_id) > 0 \
     AND (SELECT COUNT(*) FROM c WHERE c.n < a.id) > 1",
    "SELECT id FROM a WHERE (SELECT n FROM b WHERE b.id = a.b_id) IN ('1', 'abc', 4) \
     AND s NOT LIKE '|%' ESCAPE '|'",
    "SELECT id FROM a WHERE (SELECT v FROM b WHERE b.id = a.b_id)",
    "SELECT s, COUNT(*) FROM a GROUP BY s HAVING (SELECT n FROM b WHERE b.id = COUNT(*)) > 2",
    "SELECT id, (SELECT v FROM b WHERE b.id = a.b_id) AS v, \
     (SELECT n FROM b WHERE b.id = a.b_id) AS n FROM a WHERE id > 4",
    "SELECT a.id, b.n FROM a JOIN b ON a.id < b.n AND a.id + b.n < 12",
    "SELECT a.id, c.n FROM a LEFT JOIN c ON a.id > c.n AND 9 / c.n > 2 OR a.s = c.n",
    "SELECT a.id, b.n FROM a JOIN b ON a.b_id = b.id AND (b.n = 0 OR 8 / (b.n * a.id) > 2)",
];

/// Queries with another number in the place of each `#`, and another text in that of `~`.
const OTHER_CONSTANTS: [&str; 42] = [
    "SELECT id, s FROM a WHERE id = # AND s IS NOT NULL",
    "SELECT id, s FROM a WHERE b_id = # AND id > # AND s <> ~",
    "SELECT * FROM a WHERE s = ~ AND d > #",
    "SELECT id FROM a WHERE id BETWEEN # AND # AND d <> # ORDER BY id LIMIT 3",
    "SELECT a.id, b.v, c.n FROM a JOIN b ON b.id = a.b_id JOIN c ON c.x = b.n WHERE a.id = #",
    "SELECT a.id, b.v FROM a LEFT JOIN b ON b.id = a.b_id AND b.n > # WHERE a.id IN (#, #, #)",
    "SELECT id FROM a WHERE id IN (SELECT n FROM b WHERE id = #) OR id = #",
    "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.id = a.b_id AND b.n = #) AND id < #",
    "SELECT id, (SELECT v FROM b WHERE b.id = a.b_id AND b.n <> #) AS v FROM a WHERE id = #",
    "SELECT UPPER(s) FROM a WHERE s IN (~, ~) OR id = #",
    "SELECT s, COUNT(*) FROM a WHERE id > # GROUP BY s HAVING COUNT(*) >= #",
    "SELECT id FROM a WHERE id = # UNION ALL SELECT n FROM b WHERE id = # OR v = ~",
    "SELECT * FROM (SELECT id, s FROM a WHERE id <= #) q WHERE s > ~",
    "SELECT x, y FROM c WHERE (x, y) = (#, ~) OR (x, n) IN ((#, #), (#, 2))",
    "SELECT x FROM c WHERE x = # AND x = # AND n > #",
    "SELECT x FROM c WHERE x > # AND x < # AND x <> #",
    "SELECT id FROM a WHERE id = '#' OR d = '#' OR s = '#'",
    "SELECT id FROM a WHERE id < -# OR d >= -#.5 OR b_id = -#",
    "SELECT id FROM b WHERE id = -# OR id > -# AND n = #",
    "SELECT id FROM a WHERE s = # OR s > ~ AND id = ~",
    "SELECT id, # AS c FROM a WHERE id = # ORDER BY id LIMIT #",
    "SELECT id + # FROM a WHERE id = #",
    "SELECT id FROM a WHERE CASE WHEN id = # THEN s = ~ ELSE d > # END",
    "SELECT id FROM a WHERE s LIKE ~ AND id <> # AND s NOT IN (~, ~)",
    "SELECT id FROM a WHERE (id = # AND b_id = #) OR (id = # AND s = ~)",
    "SELECT a.id FROM a LEFT JOIN b ON b.id = a.b_id WHERE IFNULL(b.n, 0) = # OR b.n = #",
    "SELECT * FROM (SELECT a.id, COALESCE(b.n, 2) AS n FROM a LEFT JOIN b ON b.id = a.b_id) q \
     WHERE n = # OR id = #",
    "SELECT * FROM (SELECT id, 3 AS n FROM a UNION ALL SELECT id, n FROM b) q WHERE n = #",
    "SELECT id, (SELECT COUNT(*) FROM b WHERE b.n = a.id HAVING COUNT(*) = #) AS c FROM a",
    "SELECT id FROM a WHERE (SELECT COUNT(*) FROM b WHERE b.n = a.id AND b.id > #) = #",
    "SELECT * FROM (SELECT id, CASE WHEN s = 'x' THEN 1 ELSE b_id END AS n FROM a) q WHERE n = #",
    "SELECT a.id FROM a LEFT JOIN b ON b.id = a.b_id WHERE b.n <=> # OR b.n + 1 > #",
    "SELECT id FROM a WHERE id <=> # OR NOT (b_id > #) OR d * # < #",
    "SELECT l.id FROM a l JOIN a r ON l.id = r.b_id AND r.id = # WHERE l.id = # OR l.s = ~",
    "SELECT a.id, b.v, c.y FROM a JOIN b ON b.id = a.b_id JOIN c ON c.x = b.n \
     WHERE a.id BETWEEN # AND # AND b.id > # AND c.x <> # AND c.y >= ~",
    "SELECT a.id, b.n FROM a LEFT JOIN b ON b.id = a.b_id AND b.n > # WHERE b.n > # OR a.id = #",
    "SELECT s, COUNT(*), SUM(n) FROM a JOIN b ON b.id = a.b_id WHERE a.id > # AND b.n < # \
     GROUP BY s HAVING SUM(n) > # AND COUNT(*) <> #",
    "SELECT id FROM a WHERE id IN (#, #, #, #, #) AND id NOT IN (#, #) AND b_id IN (#, #, #)",
    "SELECT id FROM b WHERE id IN (#, #) AND id >= # AND id IN (#, 2, 3, NULL)",
    "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.id = a.b_id AND b.n = # AND b.id > #) \
     AND b_id > # AND s <> ~",
    "SELECT q.id, c.x FROM (SELECT id, s, b_id FROM a WHERE id > # AND s >= ~) q \
     JOIN c ON c.x = q.id AND c.n > # WHERE q.id < # AND q.b_id <> #",
    "SELECT id FROM a WHERE id = # AND b_id = # UNION SELECT n FROM b WHERE id = # AND n > # \
     AND v <> ~",
];

/// Queries with constants one after the other, the last of which meet another one: a rule that
/// drops one of two conditions for those before would be wrong for them.
const MEETING: [(&str, &[&str]); 25] = [
    (
        "SELECT id FROM t WHERE s <> ? AND s = ?",
        &["'w1' 'w2'", "'w1' 'w3'", "'w1' 'w4'", "'w1' 'w1'"],
    ),
    (
        "SELECT id FROM t WHERE id > ? AND id > ?",
        &["20 21", "20 22", "20 23", "20 5"],
    ),
    (
        "SELECT id FROM t WHERE id BETWEEN 5 AND 9 AND id > ?",
        &["6", "7", "8", "1"],
    ),
    (
        "SELECT id FROM t WHERE b = ? AND b <> ?",
        &["3 8", "4 8", "5 8", "8 8"],
    ),
    (
        "SELECT id FROM t WHERE b IN (?, ?) AND b NOT IN (7, 8)",
        &["3 1", "4 1", "5 1", "7 8"],
    ),
    (
        "SELECT id FROM t WHERE b > 20 + 3 AND b > ?",
        &["24", "25", "26", "1"],
    ),
    (
        "SELECT id FROM t WHERE b > TRUE AND b >= ?",
        &["24", "25", "26", "0"],
    ),
    (
        "SELECT id FROM t WHERE x > ? AND x > 1.5",
        &["3", "4", "5", "0"],
    ),
    (
        "SELECT b > 20, id FROM t WHERE b > 20 AND b > ?",
        &["24", "25", "26", "0"],
    ),
    (
        "SELECT a, COUNT(*) AS n FROM t GROUP BY a HAVING n <> 3 AND n = ?",
        &["4", "5", "6", "3"],
    ),
    (
        "SELECT a, COUNT(*) AS n FROM t GROUP BY a HAVING a > 3 AND a > ?",
        &["4", "5", "6", "1"],
    ),
    (
        "SELECT id FROM t WHERE LENGTH(s) <> 2 AND LENGTH(s) = ?",
        &["3", "4", "5", "2"],
    ),
    (
        "SELECT id FROM t WHERE d <> ? AND d = ?",
        &[
            "'2024-01-05' '2024-01-06'",
            "'2024-01-05' '2024-01-07'",
            "'2024-01-05' '2024-01-08'",
            "'2024-01-05' '2024-01-05'",
        ],
    ),
    (
        "SELECT t.id FROM t JOIN u ON t.id = u.id WHERE t.id > ? AND u.id > ?",
        &["20 21", "20 22", "20 23", "20 5"],
    ),
    (
        "SELECT t.id, u.id AS i FROM t LEFT JOIN u ON u.b = t.b AND u.b <> 25 WHERE t.b = ?",
        &["24", "23", "22", "25"],
    ),
    (
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.b = t.b AND u.b <> 5) AND t.b = ?",
        &["24", "25", "26", "5"],
    ),
    (
        "SELECT id FROM t WHERE b IN (SELECT b FROM u WHERE b > 20) AND b > ?",
        &["24", "23", "22", "2"],
    ),
    (
        "SELECT id FROM (SELECT id, b FROM t WHERE b > 20) z WHERE b > ?",
        &["24", "25", "26", "0"],
    ),
    (
        "SELECT x.id AS i FROM (SELECT id, b FROM t WHERE b = ? UNION ALL SELECT id, b FROM u) x WHERE x.b <> ?",
        &["3 8", "4 9", "5 7", "8 8"],
    ),
    (
        "SELECT x.id AS i FROM (SELECT id, b FROM t WHERE b = 5 UNION ALL SELECT id, b FROM u) x WHERE x.b = ?",
        &["3", "4", "6", "5"],
    ),
    (
        "SELECT id FROM (SELECT id, 5 AS z FROM t UNION ALL SELECT id, b FROM u) x WHERE z < ?",
        &["3", "4", "2", "9"],
    ),
    (
        "SELECT t.id FROM t LEFT JOIN u ON u.id = t.a + 25 WHERE IFNULL(u.b, 0) = ?",
        &["27", "26", "28", "0"],
    ),
    (
        "SELECT id, (SELECT COUNT(*) FROM u WHERE u.b = t.a + 25 HAVING COUNT(*) = ?) AS c FROM t",
        &["1", "2", "3", "0"],
    ),
    (
        "SELECT id FROM t WHERE y BETWEEN ? AND ?",
        &["2001 2010", "2002 2011", "2003 2012", "3 9"],
    ),
    (
        "SELECT id FROM t WHERE d > ?",
        &["20240105", "20240106", "20240107", "5"],
    ),
];

fn change(random: &mut Random) -> String {
    let id = random.below(12);
    let other = random.below(12);
    let text = ["k1", "k2", "x", "9y", ""][random.below(5) as usize];
    match random.below(16) {
        0..4 => format!("REPLACE INTO a VALUES ({id}, {other}, '{text}', {other}.25)"),
        4 => format!("REPLACE INTO a VALUES ({id}, NULL, NULL, NULL)"),
        5..8 => format!("REPLACE INTO b VALUES ({id}, '{text}', {other})"),
        8..10 => format!("REPLACE INTO c VALUES ({id}, '{text}', {other})"),
        10 => format!("UPDATE b SET n = n + 1 WHERE id > {id}"),
        11 => format!("DELETE FROM a WHERE id = {id}"),
        12 => format!("DELETE FROM b WHERE n = {other}"),
        13 => ["TRUNCATE TABLE c", "DELETE FROM c"][random.below(2) as usize].to_owned(),
        14 => [
            "ALTER TABLE b ADD COLUMN w INT DEFAULT 7",
            "ALTER TABLE b DROP COLUMN w",
            "ALTER TABLE a DROP INDEX b_id",
            "CREATE INDEX b_id ON a (b_id)",
        ][random.below(4) as usize]
            .to_owned(),
        _ => format!("UPDATE a SET s = '{text}', b_id = {other} WHERE id = {id}"),
    }
}

/// A query with constants.
fn filled(random: &mut Random, query: &str) -> String {
    let mut filled = String::new();
    for sign in query.chars() {
        match sign {
            '#' => {
                filled +=
                    &[random.below(4), random.below(12), 300][random.below(3) as usize].to_string()
            }
            '~' => {
                let texts = [
                    "'k1'", "'k2'", "'x'", "'9y'", "''", "'k1 '", "'%'", "'it''s'",
                ];
                filled += texts[random.below(texts.len() as u64) as usize];
            }
            other => filled.push(other),
        }
    }
    filled
}

/// What belongs to a session only.
fn setting(random: &mut Random) -> &'static str {
    [
        "SET sql_mode = ''",
        "SET sql_mode = 'STRICT_TRANS_TABLES,ONLY_FULL_GROUP_BY'",
        "SET div_precision_increment = 8",
        "SET sql_select_limit = 2",
        "SET sql_select_limit = DEFAULT",
        "CREATE TEMPORARY TABLE b AS SELECT 3 AS id, 'mine' AS v, 4 AS n",
        "DROP TEMPORARY TABLE b",
    ][random.below(7) as usize]
}

/// All that a query tells.
pub async fn told(session: &mut Session, sql: &str) -> String {
    let ended = match session.execute(sql).await {
        Err(error) => format!("{error:?}"),
        Ok(Outcome::Done { .. }) => panic!("{sql} returns no rows"),
        Ok(outcome) => {
            let Outcome::Rows { columns, .. } = &outcome else {
                panic!("{sql} returns no rows");
            };
            let columns = format!("{columns:?}");
            let mut found = read(outcome).await;
            if let Ok(Some(rows)) = &mut found
                && !sql.contains("ORDER BY")
            {
                rows.sort();
            }
            format!("{columns}\n{found:?}")
        }
    };
    // They come in the order of the rows.
    let mut warnings = rows(session, "SHOW WARNINGS").await;
    warnings.sort();
    let counts = rows(session, "SELECT ROW_COUNT(), FOUND_ROWS()").await;
    format!("{ended}\n{warnings:?}\n{counts:?}")
}

/// What kept and new plans must have counted alike.
const COUNTED: [&str; 3] = ["Com_select", "Rows_sent", "Created_tmp_tables"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_plan_gives_what_a_new_one_gives() {
    let reused = compare(&QUERIES, ROUNDS, &COUNTED).await;
    assert!(reused > ROUNDS * STEPS / 6, "{reused} plans were reused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_plan_serves_other_constants() {
    // A new plan has no groups and sorts where its constants leave no row.
    let counted = &COUNTED[..2];
    let rounds = OTHER_CONSTANTS.len().div_ceil(AT_ONCE) as u64;
    let reused = compare(&OTHER_CONSTANTS, rounds, counted).await;
    assert!(reused > rounds * STEPS / 8, "{reused} plans were reused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn constants_that_meet_are_compared() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    for table in ["t", "u"] {
        let create = format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, a INT, b BIGINT, s VARCHAR(20), d DATE, \
             x DOUBLE, y YEAR, KEY (a))"
        );
        rows(&mut session, &create).await;
        for id in 0..30 {
            let (a, s, day) = (id % 10, id % 7, id % 28 + 1);
            let insert = format!(
                "INSERT INTO {table} VALUES \
                 ({id}, {a}, {id}, 'w{s}', '2024-01-{day:02}', {id}.5, {})",
                2000 + id
            );
            rows(&mut session, &insert).await;
        }
    }
    for (query, all) in MEETING {
        for (number, constants) in all.iter().enumerate() {
            let mut sql = query.to_owned();
            for constant in constants.split(' ') {
                sql = sql.replacen('?', constant, 1);
            }
            let known = told(&mut session, &sql).await;
            let new = sql.replacen("SELECT", &format!("SELECT /* {number} */"), 1);
            assert_eq!(known, told(&mut session, &new).await, "{sql}");
        }
    }
    rows(&mut session, "DROP TABLE t, u").await;
    drop(session);
    check_nothing_left(&engine, "constants that meet").await;
}

/// Compares kept and new plans of queries, and returns how many were reused.
async fn compare(queries: &[&str], rounds: u64, counted: &[&str]) -> u64 {
    let mut reused = 0;
    for round in 0..rounds {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(64 << 20, directory.path());
        let mut pairs = [0, 1].map(|_| (engine.connect(), engine.connect()));
        let mut steps = [0, 0];
        let mut writer = engine.connect();
        for sql in TABLES {
            rows(&mut writer, sql).await;
        }
        let mut random = Random::new(SEED + round);
        let first = (round as usize * AT_ONCE) % queries.len();
        let asked = || queries.iter().cycle().skip(first).take(AT_ONCE);
        for step in 0..STEPS {
            for _ in 0..random.below(3) {
                let sql = change(&mut random);
                // A column may be there already, or a key be gone.
                let _ = run(&mut writer, &sql).await;
            }
            let pair = random.below(2) as usize;
            steps[pair] += 1;
            let (kept, new) = &mut pairs[pair];
            if random.chance(0.05) {
                let sql = setting(&mut random);
                let ended = [run(kept, sql).await, run(new, sql).await];
                assert_eq!(ended[0].is_ok(), ended[1].is_ok(), "{sql}");
            }
            let place = random.below(AT_ONCE as u64) as usize;
            let sql = filled(&mut random, asked().nth(place).unwrap());
            let limited = rows(new, "SELECT @@sql_select_limit = 2").await[0][0] == "1";
            if limited && !sql.contains("ORDER BY") {
                continue;
            }
            let again = told(kept, &sql).await;
            // Comments around a statement would make no difference.
            let once = sql.replacen("SELECT", &format!("SELECT /* {step} */"), 1);
            let once = told(new, &once).await;
            assert_eq!(again, once, "round {round}, step {step}: {sql}");
        }
        let count = "SHOW SESSION STATUS WHERE Variable_name IN ('Questions', 'Com_select', \
                     'Rows_sent', 'Created_tmp_tables', 'Mayfly_plans_reused')";
        for ((kept, new), steps) in pairs.iter_mut().zip(steps) {
            let counts = [rows(kept, count).await, rows(new, count).await];
            let value = |session: usize, name: &str| {
                let row = counts[session].iter().find(|row| row[0] == name).unwrap();
                row[1].parse::<u64>().unwrap()
            };
            for &name in counted {
                // The other one has looked at a variable before each query.
                let looked = match name {
                    "Created_tmp_tables" => 0,
                    _ => steps,
                };
                assert_eq!(value(0, name) + looked, value(1, name), "{name}");
            }
            assert_eq!(value(1, "Mayfly_plans_reused"), 0);
            reused += value(0, "Mayfly_plans_reused");
        }
        drop(pairs);
        rows(&mut writer, "DROP TABLE a, b, c").await;
        drop(writer);
        check_nothing_left(&engine, "kept plans").await;
    }
    reused
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_change_is_planned_again() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    rows(&mut session, "CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    rows(&mut session, "INSERT INTO t VALUES (1, 1), (2, 2)").await;
    for (before, query, expected) in [
        (
            "SET @a = 1",
            "SELECT v + @a FROM t JOIN t u USING (id, v)",
            "2",
        ),
        (
            "SET @a = 5",
            "SELECT v + @a FROM t JOIN t u USING (id, v)",
            "6",
        ),
        (
            "DO 0",
            "SELECT CONNECTION_ID() > 0 FROM t, t u LIMIT 1",
            "1",
        ),
        (
            "CREATE DATABASE other",
            "SELECT DATABASE() FROM t, t u LIMIT 1",
            "test",
        ),
    ] {
        rows(&mut session, before).await;
        for _ in 0..4 {
            let found = rows(&mut session, query).await;
            assert_eq!(found[0][0], expected, "{query}");
        }
    }
    // What one session keeps serves another one that is alike, and no other.
    let query = "SELECT SUM(l.v) / 3 FROM t l JOIN t r ON l.id = r.id";
    for _ in 0..2 {
        assert_eq!(rows(&mut session, query).await[0][0], "1.0000");
    }
    let mut other = engine.connect();
    for (before, expected, reuses) in [
        ("DO 0", "1.0000", 1),
        ("SET div_precision_increment = 2", "1.00", 1),
        ("SET div_precision_increment = 4", "1.0000", 2),
        (
            "CREATE TEMPORARY TABLE t AS SELECT 1 AS id, 9 AS v",
            "3.0000",
            2,
        ),
        ("DROP TEMPORARY TABLE t", "1.0000", 3),
    ] {
        rows(&mut other, before).await;
        assert_eq!(rows(&mut other, query).await[0][0], expected, "{before}");
        assert_eq!(reused(&mut other).await, reuses, "{before}");
    }
    // So is a join without an equality.
    let before = reused(&mut session).await;
    for _ in 0..4 {
        let found = rows(
            &mut session,
            "SELECT l.v, r.v FROM t l JOIN t r ON l.v < r.v",
        )
        .await;
        assert_eq!(found, [["1", "2"]]);
    }
    assert_ne!(before, reused(&mut session).await);
    let warns = "SELECT l.id + 'x' FROM t l JOIN t r ON l.id = r.id WHERE l.id = 1";
    for session in [&mut session, &mut other] {
        for _ in 0..3 {
            assert_eq!(rows(session, warns).await[0][0], "1");
            assert_eq!(rows(session, "SHOW WARNINGS").await.len(), 1);
        }
    }
    // A table that grows beyond what is kept for, and shrinks again.
    let query = "SELECT COUNT(*), MAX(l.v) FROM t l JOIN t r ON l.v = r.v";
    let count = |rows: Vec<Vec<String>>| rows[0][0].parse::<u64>().unwrap();
    for _ in 0..3 {
        assert_eq!(count(rows(&mut session, query).await), 2);
    }
    let fill = "INSERT INTO t WITH RECURSIVE n AS (SELECT 3 AS i UNION ALL SELECT i + 1 FROM n \
                WHERE i < 9000) SELECT i, i FROM n";
    rows(&mut session, "SET cte_max_recursion_depth = 10000").await;
    rows(&mut session, fill).await;
    for _ in 0..3 {
        assert_eq!(count(rows(&mut session, query).await), 9000);
    }
    rows(&mut session, "DELETE FROM t WHERE id > 2").await;
    for _ in 0..3 {
        assert_eq!(count(rows(&mut session, query).await), 2);
    }
}
