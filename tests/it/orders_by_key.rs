//! Plans that are kept for the first rows of an order, the ends of a key, some rows and values of
//! subqueries: over tables with more rows than such a plan reads, they give what the long way
//! gives.

use mayfly_session::{Outcome, Session};
use mayfly_testkit::Random;

use crate::engine::{check_nothing_left, open, read, reused, rows, run};

const SEED: u64 = 20_261_129;
const ROWS: u64 = 6000;
const ROUNDS: u64 = 4;
const CHANGES: u64 = 6;
/// How often a query comes between two changes; its plan is kept from the second time on.
const TIMES: usize = 3;

/// Queries whose rows have one order, or are one.
const QUERIES: [&str; 36] = [
    "SELECT id, c FROM t WHERE id > 3000 ORDER BY id LIMIT 10",
    "SELECT id, c FROM t WHERE id > 5995 ORDER BY id LIMIT 10",
    "SELECT id, c FROM t ORDER BY id DESC LIMIT 10 OFFSET 3",
    "SELECT id + 1 AS next FROM t WHERE id < 3000 ORDER BY id DESC LIMIT 10",
    "SELECT k, id FROM t WHERE k > 300 ORDER BY k, id LIMIT 10",
    "SELECT k, id FROM t ORDER BY k, id LIMIT 200",
    "SELECT k, id FROM t ORDER BY k DESC, id DESC LIMIT 5",
    "SELECT k, id FROM t WHERE n % 5 = 1 ORDER BY k DESC, id DESC LIMIT 7",
    "SELECT k, id FROM t WHERE n < 0 ORDER BY k, id LIMIT 7",
    "SELECT d, id FROM t WHERE g = 3 ORDER BY d DESC, id DESC LIMIT 4",
    "SELECT d, id FROM t WHERE g = 3 AND d > 40 ORDER BY d, id LIMIT 4",
    "SELECT id FROM t WHERE c LIKE 'c7%' ORDER BY id LIMIT 2, 3",
    "SELECT x.id, x.c FROM (SELECT id, c FROM t WHERE id > 100 ORDER BY id LIMIT 3) x ORDER BY c, id",
    "SELECT MIN(id), MAX(id) FROM t",
    "SELECT MIN(k), MAX(k) FROM t",
    "SELECT MIN(k) FROM t WHERE k > 300",
    "SELECT MAX(k), COUNT(*) FROM t WHERE k BETWEEN 30 AND 31",
    "SELECT MAX(d), MIN(d) FROM t WHERE g = 3",
    "SELECT MIN(d) FROM t WHERE g = 3 AND d > 1000",
    "SELECT MIN(k) + 1, MAX(id) FROM t WHERE n % 7 = 3",
    "SELECT MAX(id) FROM t WHERE n < 0",
    "SELECT MIN(c), MAX(c) FROM t",
    "SELECT MIN(at), MAX(at) FROM t",
    "SELECT EXISTS(SELECT 1 FROM t WHERE id = 70)",
    "SELECT EXISTS(SELECT 1 FROM t WHERE id = 700000)",
    "SELECT EXISTS(SELECT 1 FROM t WHERE n > 3), NOT EXISTS(SELECT 1 FROM t WHERE k > 5)",
    "SELECT c FROM t WHERE id = (SELECT k FROM t WHERE id = 40)",
    "SELECT id, (SELECT MAX(id) FROM t) FROM t WHERE id < (SELECT MIN(k) + 5 FROM t) ORDER BY id",
    "SELECT COUNT(*) FROM t WHERE k = (SELECT k FROM t WHERE id = 41) AND n > (SELECT MIN(v) FROM u)",
    "SELECT c FROM t WHERE id = (SELECT id FROM t WHERE k = 40)",
    "SELECT c FROM t WHERE id = (SELECT v FROM u WHERE v > 1000)",
    "SELECT (SELECT MAX(id) FROM t), (SELECT c FROM t WHERE id = 3), (SELECT MAX(v) FROM u)",
    "SELECT t.id, u.v FROM t JOIN u ON t.id = u.v WHERE t.id > (SELECT MIN(v) FROM u) ORDER BY t.id",
    "SELECT id FROM t WHERE id = 7 FOR UPDATE",
    "SELECT COUNT(*) FROM (SELECT id FROM t WHERE n > 2 LIMIT 20) x",
    "SELECT COUNT(*) FROM (SELECT k FROM t WHERE k > 100 LIMIT 30 OFFSET 5) x",
];

fn change(random: &mut Random) -> String {
    let id = random.below(ROWS + 20);
    match random.below(9) {
        0 => "DELETE FROM t ORDER BY id DESC LIMIT 3".to_owned(),
        1 => "DELETE FROM t WHERE k = 0 OR k > 990".to_owned(),
        2 => format!("UPDATE t SET k = NULL, d = {id} WHERE id = {id}"),
        3 => format!("UPDATE t SET k = -{id}, n = -1 WHERE id = {id}"),
        4 => format!("UPDATE t SET g = 3, d = -{id} WHERE id % 50 = {}", id % 50),
        5 => format!("REPLACE INTO u VALUES ({id})"),
        6 => "DELETE FROM u WHERE v > 1000".to_owned(),
        7 => format!("REPLACE INTO t VALUES ({id}, 2000, 3, 3, 3, '9z', '2030-01-01')"),
        _ => "UPDATE t SET k = NULL WHERE k < 100".to_owned(),
    }
}

/// All that a query tells.
async fn told(session: &mut Session, sql: &str) -> String {
    let ended = match session.execute(sql).await {
        Err(error) => format!("{error:?}"),
        Ok(outcome) => {
            let columns = match &outcome {
                Outcome::Rows { columns, .. } => format!("{columns:?}"),
                Outcome::Done { .. } => panic!("{sql} returns no rows"),
            };
            let found = read(outcome).await;
            format!("{columns}\n{found:?}")
        }
    };
    let warnings = rows(session, "SHOW WARNINGS").await;
    format!("{ended}\n{warnings:?}")
}

async fn fill(session: &mut Session, temporary: &str) {
    for sql in [
        format!(
            "CREATE {temporary} TABLE t (id INT PRIMARY KEY, k INT, n INT NOT NULL, g INT, d INT, \
             c VARCHAR(20), at DATE, KEY (k, id), KEY (g, d, id), KEY (c), KEY (at))"
        ),
        format!("CREATE {temporary} TABLE u (v BIGINT PRIMARY KEY)"),
        "SET cte_max_recursion_depth = 10000".to_owned(),
        format!(
            "INSERT INTO t WITH RECURSIVE i AS (SELECT 1 AS id UNION ALL SELECT id + 1 FROM i \
             WHERE id < {ROWS}) SELECT id, IF(id % 17 = 0, NULL, id * 7919 % 1000), id * 31 % 97, \
             id % 8, id % 101, CONCAT('c', id % 89), '2026-01-01' + INTERVAL id % 300 DAY FROM i"
        ),
        "INSERT INTO u VALUES (3), (40), (47), (90)".to_owned(),
    ] {
        rows(session, &sql).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kept_plans_along_a_key_give_what_the_long_way_gives() {
    for round in 0..ROUNDS {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(64 << 20, directory.path());
        let is_shared = round % 2 == 0;
        let mut kept = engine.connect();
        let mut long = match is_shared {
            true => Some(engine.connect()),
            false => None,
        };
        fill(&mut kept, if is_shared { "" } else { "TEMPORARY" }).await;
        let mut random = Random::new(SEED + round);
        for step in 0..CHANGES {
            for _ in 0..random.below(3) {
                let sql = change(&mut random);
                run(&mut kept, &sql).await.unwrap();
            }
            for query in QUERIES {
                // A text that has not come yet has no plan.
                let once = query.replacen("SELECT", &format!("SELECT /* {step} */"), 1);
                let once = match &mut long {
                    Some(long) => told(long, &once).await,
                    None => told(&mut kept, &once).await,
                };
                for _ in 0..TIMES {
                    let again = told(&mut kept, query).await;
                    assert_eq!(again, once, "round {round}, step {step}: {query}");
                }
            }
        }
        let reused = reused(&mut kept).await;
        let asked = CHANGES * (QUERIES.len() * TIMES) as u64;
        assert!(reused > asked / 3, "{reused} of {asked} plans were reused");
        if is_shared {
            rows(&mut kept, "DROP TABLE t, u").await;
        }
        drop((kept, long));
        check_nothing_left(&engine, "plans along a key").await;
    }
}

/// Each kind of query runs by its kept plan, also where it has more rows than such a plan reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_rows_of_large_tables_need_no_new_plan() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    fill(&mut session, "").await;
    for query in [
        "SELECT id, c FROM t WHERE id > 3 ORDER BY id LIMIT 10",
        "SELECT id, c FROM t WHERE id > 3000 ORDER BY id LIMIT 10",
        "SELECT id, c FROM t ORDER BY id DESC LIMIT 10",
        "SELECT MIN(k), MAX(id) FROM t WHERE n > 5",
        "SELECT EXISTS(SELECT 1 FROM t WHERE id = 50)",
        "SELECT EXISTS(SELECT 1 FROM t WHERE n > 50)",
        "SELECT id, c FROM t WHERE k > 2 LIMIT 1",
        "SELECT c FROM t WHERE id = (SELECT MAX(id) FROM t)",
        "SELECT c FROM t JOIN u ON t.id = u.v WHERE u.v = 40 FOR UPDATE",
    ] {
        let before = reused(&mut session).await;
        for _ in 0..6 {
            rows(&mut session, query).await;
        }
        let more = reused(&mut session).await - before;
        assert!(more >= 2, "{query} ran {more} times by its plan");
    }
    // How often rows warn depends on how many are read: no plan over few rows is kept, but the
    // operators of all of them are, from the second run on.
    let before = reused(&mut session).await;
    for _ in 0..6 {
        rows(
            &mut session,
            "SELECT id FROM t WHERE c + 0 > 2 ORDER BY id LIMIT 5",
        )
        .await;
    }
    assert_eq!(reused(&mut session).await, before + 4);
    // Rows are counted as they are read: no more of them than are asked for.
    let query = "SELECT id, c FROM t ORDER BY id LIMIT 5";
    for _ in 0..3 {
        rows(&mut session, "FLUSH STATUS").await;
        rows(&mut session, query).await;
        let read = "SHOW SESSION STATUS LIKE 'Rows_read'";
        assert_eq!(rows(&mut session, read).await[0][1], "5", "{query}");
    }
}

/// A plan for any constants is kept whichever of them come first, and searches keys for those of
/// each run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_for_any_constants_search_keys_for_those_of_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    fill(&mut session, "").await;
    for (query, most) in [
        ("SELECT id, c FROM t WHERE id > # ORDER BY id LIMIT 10", 16),
        ("SELECT EXISTS(SELECT 1 FROM t WHERE k = #) AS e", 16),
    ] {
        let mut reused_times = 0;
        for constant in [900, 901, 902, 5, 3, 903] {
            let query = query.replace('#', &constant.to_string());
            rows(&mut session, "FLUSH STATUS").await;
            rows(&mut session, &query).await;
            let read = "SHOW SESSION STATUS LIKE 'Rows_read'";
            let read: u64 = rows(&mut session, read).await[0][1].parse().unwrap();
            assert!(read <= most, "{query} read {read} rows");
            reused_times += reused(&mut session).await;
        }
        assert!(
            reused_times >= 3,
            "{query} ran {reused_times} times by its plan"
        );
    }
}
