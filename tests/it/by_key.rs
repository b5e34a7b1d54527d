//! Queries that keys answer, against the same queries over tables without keys: random types with
//! NULLs and repeats, at several budgets.

use mayfly_session::Session;
use mayfly_testkit::Random;

use crate::budgets::{ALL, MINIMUM};
use crate::engine::{check_nothing_left, open, rows};

/// How a number below 40 is written as a value of a type.
type Spelled = fn(u64) -> String;

/// The types of the columns `a` and `b` of the tables.
const TYPES: [(&str, Spelled); 12] = [
    ("TINYINT", |n| format!("{}", n as i64 - 20)),
    ("INT UNSIGNED", |n| format!("{}", n * 100_000_000)),
    ("BIGINT", |n| format!("{}", (n as i64 - 20) * (1 << 58))),
    ("BIGINT UNSIGNED", |n| format!("{}", n * (1 << 58))),
    ("DECIMAL(12,3)", |n| format!("{}.125", n as i64 - 20)),
    ("DECIMAL(50,3)", |n| format!("-{n}0000000000000000000000.5")),
    ("DOUBLE", |n| format!("{}", n as f64 / 8.0 - 1.0)),
    ("VARCHAR(30)", |n| {
        let blanks = " ".repeat(n as usize % 3);
        format!(
            "'{}{blanks}'",
            ["", "a", "A", "ab", "\u{e4}"][n as usize % 5]
        )
    }),
    ("CHAR(12)", |n| format!("'t{}'", n % 13)),
    ("VARBINARY(9)", |n| format!("X'00{n:02x}00'")),
    ("DATETIME(3)", |n| {
        format!("'2026-01-{:02} 10:00:00.5'", n % 28 + 1)
    }),
    ("TIME", |n| format!("'-0{}:00:{:02}'", n % 9, n)),
];

/// What is asked; `#` stands for `k`, the tables with keys, or `p`, those without.
const QUERIES: [&str; 32] = [
    "SELECT o.n, t.n, t.a FROM o JOIN # t ON o.a = t.a",
    "SELECT o.n, t.n FROM o JOIN # t ON o.a = t.a AND o.b = t.b",
    "SELECT o.n, t.n FROM o JOIN # t ON o.b = t.b AND o.n < t.n",
    "SELECT o.n, t.n, t.b FROM o LEFT JOIN # t ON o.a = t.a AND t.n % 3 = 1",
    "SELECT o.n, t.n FROM # t RIGHT JOIN o ON o.b = t.b AND o.n > t.n",
    "SELECT o.n FROM o LEFT JOIN # t ON o.id = t.id WHERE t.id IS NULL",
    "SELECT o.n, t.n, t.a FROM o JOIN # t ON o.id = t.id",
    "SELECT o.n, t.n FROM o JOIN # t ON o.wide = t.id WHERE t.n % 2 = 0",
    "SELECT n FROM # WHERE a IN (SELECT a FROM o)",
    "SELECT n FROM # t WHERE EXISTS (SELECT * FROM o WHERE o.b = t.b AND o.n < t.n)",
    "SELECT n FROM o WHERE EXISTS (SELECT * FROM # t WHERE o.a = t.a AND t.n > o.n)",
    "SELECT n FROM o WHERE NOT EXISTS (SELECT * FROM # t WHERE o.id = t.id)",
    "SELECT n FROM o WHERE a NOT IN (SELECT a FROM # t WHERE a IS NOT NULL)",
    "SELECT COUNT(*), SUM(t.n) FROM o JOIN # t ON o.id = t.id JOIN # u ON t.n = u.id",
    "SELECT t.a, COUNT(*) FROM o JOIN # t ON o.a = t.a GROUP BY t.a",
    "SELECT o.n, d.n FROM o JOIN (SELECT id + 0 i, id, n FROM # WHERE n % 5 < 3) d ON o.id = d.id",
    "SELECT o.n, (SELECT COUNT(*) FROM # t WHERE t.a = o.a) FROM o",
    "SELECT o.n, (SELECT MAX(t.n) FROM # t WHERE t.b = o.b AND t.n > 20) FROM o",
    "SELECT o.n FROM o WHERE (SELECT COUNT(*) FROM # t WHERE t.id = o.wide) = 0",
    "SELECT o.n, d.c FROM o LEFT JOIN (SELECT a, b, COUNT(*) c FROM # GROUP BY a, b) d ON d.a = o.a AND d.b = o.b",
    "SELECT n FROM # WHERE a = (SELECT MAX(a) FROM o)",
    "SELECT n FROM # WHERE b > (SELECT MAX(b) FROM o WHERE n < 3) AND b <= (SELECT MAX(b) FROM o)",
    "SELECT n FROM # WHERE id = (SELECT MAX(wide) FROM o)",
    "SELECT n FROM # WHERE id > (SELECT MAX(id) FROM #) - 3",
    "SELECT MIN(id), MAX(id) FROM #",
    "SELECT MIN(a), MAX(a) FROM #",
    "SELECT MAX(b), MIN(b) FROM # WHERE n % 7 = 3",
    "SELECT MIN(id) FROM # WHERE id > 700 AND n % 2 = 0",
    "SELECT MIN(a) FROM # WHERE a IS NULL",
    "SELECT MAX(id), MIN(a) FROM # WHERE n < 0",
    "SELECT MIN(d.i), MAX(d.a) FROM (SELECT id AS i, a FROM # WHERE n > 5) d",
    "SELECT MIN(n), MAX(id) FROM #",
];

/// What is asked in an order that is the same for all ways.
const ORDERED: [&str; 12] = [
    "SELECT id, a FROM # ORDER BY id LIMIT 7",
    "SELECT id, b FROM # ORDER BY id DESC LIMIT 5 OFFSET 3",
    "SELECT a, id FROM # ORDER BY a, id LIMIT 9",
    "SELECT a, id FROM # ORDER BY a DESC, id DESC LIMIT 9",
    "SELECT a, id FROM # ORDER BY a, id DESC LIMIT 9",
    "SELECT b, a FROM # ORDER BY b DESC, a LIMIT 6",
    "SELECT b, a FROM # ORDER BY b, a DESC LIMIT 6",
    "SELECT id FROM # WHERE n % 97 = 5 ORDER BY id LIMIT 4",
    "SELECT id FROM # WHERE n < 0 ORDER BY id LIMIT 4",
    "SELECT id FROM # WHERE id > 300 AND n % 2 = 0 ORDER BY id LIMIT 6",
    "SELECT id FROM # WHERE a IS NULL ORDER BY id DESC LIMIT 6",
    "SELECT id FROM # WHERE a = (SELECT MAX(a) FROM o) ORDER BY id LIMIT 6",
];

/// What a key may hold in full.
const COVERED: [&str; 6] = [
    "SELECT id FROM # WHERE id BETWEEN 100 AND 140",
    "SELECT a, id FROM # WHERE a IS NULL",
    "SELECT b, a FROM # WHERE b IS NULL",
    "SELECT COUNT(*), MIN(id), MAX(id) FROM # WHERE id > 900",
    "SELECT a FROM # WHERE a IN (SELECT MIN(a) FROM o)",
    "SELECT id FROM # WHERE id IN (5, 7, 5, 9, 100000)",
];

async fn make(session: &mut Session, random: &mut Random, count: u64) -> [&'static str; 2] {
    let pick = |random: &mut Random| TYPES[random.below(TYPES.len() as u64) as usize];
    let ((a_type, a), (b_type, b)) = (pick(random), pick(random));
    let columns = format!("n INT, a {a_type}, b {b_type}");
    let prefix = match b_type.starts_with("VARCHAR") || b_type.starts_with("VARBINARY") {
        true => "b(1), a",
        false => "b DESC, a",
    };
    for sql in [
        format!("CREATE TEMPORARY TABLE o (id INT, wide BIGINT, {columns})"),
        format!("CREATE TEMPORARY TABLE p (id INT, {columns})"),
        format!(
            "CREATE TEMPORARY TABLE k (id INT PRIMARY KEY, {columns}, KEY a (a, id), \
             KEY b ({prefix}))"
        ),
    ] {
        rows(session, &sql).await;
    }
    let value = |random: &mut Random, write: fn(u64) -> String| match random.chance(0.15) {
        true => "NULL".to_owned(),
        false => write(random.below(40)),
    };
    let mut lines = Vec::new();
    for id in 0..count {
        let (a, b) = (value(random, a), value(random, b));
        lines.push(format!("({}, {}, {a}, {b})", id * 2, random.below(count)));
    }
    for part in lines.chunks(700) {
        rows(session, &format!("INSERT INTO k VALUES {}", part.join(","))).await;
    }
    let outer = [1, 5, 30, 300][random.below(4) as usize];
    let mut lines = Vec::new();
    for _ in 0..outer {
        let id = match random.chance(0.1) {
            true => "NULL".to_owned(),
            false => random.below(count * 3).to_string(),
        };
        let wide = match random.chance(0.5) {
            true => (1_u64 << 40).to_string(),
            false => id.clone(),
        };
        let (a, b) = (value(random, a), value(random, b));
        lines.push(format!("({id}, {wide}, {}, {a}, {b})", random.below(count)));
    }
    rows(
        session,
        &format!("INSERT INTO o VALUES {}", lines.join(",")),
    )
    .await;
    // Rows that went and rows that changed leave holes in the pages.
    rows(session, "DELETE FROM k WHERE n % 11 = 3").await;
    rows(session, "UPDATE k SET n = n + 1 WHERE n % 13 = 5").await;
    rows(session, "INSERT INTO p SELECT id, n, a, b FROM k").await;
    [a_type, b_type]
}

async fn check(seed: u64, memory_bytes: u64) {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(memory_bytes, directory.path());
    let mut random = Random::new(seed);
    let mut session = engine.connect();
    let count = [3, 200, 3000][random.below(3) as usize];
    let types = make(&mut session, &mut random, count).await;
    for (query, is_ordered) in QUERIES
        .iter()
        .chain(&COVERED)
        .map(|query| (query, false))
        .chain(ORDERED.iter().map(|query| (query, true)))
    {
        let mut by_key = rows(&mut session, &query.replace('#', "k")).await;
        let mut plain = rows(&mut session, &query.replace('#', "p")).await;
        if !is_ordered {
            by_key.sort();
            plain.sort();
        }
        let mib = memory_bytes >> 20;
        assert!(
            by_key == plain,
            "{query}, seed {seed}, {count} rows of {types:?} at {mib} MiB:\n{by_key:?}\n{plain:?}"
        );
    }
    drop(session);
    check_nothing_left(&engine, "queries by key").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_give_the_rows_that_scans_give() {
    for seed in 0..40 {
        check(seed, ALL[seed as usize % ALL.len()]).await;
    }
}

/// An outer side that is larger than was thought goes over to a hash join in the middle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_that_finds_too_many_rows_goes_on_by_hash() {
    for memory_bytes in ALL {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(memory_bytes, directory.path());
        let mut session = engine.connect();
        crate::engine::make_wide(&mut session, 60_000).await;
        for sql in [
            "CREATE TEMPORARY TABLE k (n INT PRIMARY KEY, d INT, w VARCHAR(60), KEY d (d))",
            "INSERT INTO k SELECT n, n % 90, word FROM wide",
        ] {
            rows(&mut session, sql).await;
        }
        // Nobody knows how many rows of `wide` these conditions let through.
        for condition in ["n % 3000 = 1", "n % 2 = 1"] {
            for (join, columns) in [
                (
                    "JOIN k ON o.n = k.n",
                    "COUNT(*), SUM(k.d), MAX(k.w), SUM(o.n)",
                ),
                ("LEFT JOIN k ON o.n = k.n", "COUNT(*), SUM(k.d), SUM(o.n)"),
                ("JOIN k ON o.n = k.d", "COUNT(*), SUM(k.d), SUM(o.n)"),
            ] {
                let query = format!("SELECT {columns} FROM wide o {join} WHERE o.{condition}");
                let by_key = rows(&mut session, &query).await;
                let plain = query
                    .replace(" = k.", " + 0 = k.")
                    .replace("k.n", "k.n + 0");
                let plain = plain.replace("k.d WHERE", "k.d + 0 WHERE");
                let by_hash = rows(&mut session, &plain).await;
                assert_eq!(by_key, by_hash, "{query} at {memory_bytes}");
            }
            let sql =
                format!("SELECT o.n, k.w FROM wide o JOIN k ON o.n = k.n WHERE o.{condition}");
            let shown = rows(&mut session, &format!("EXPLAIN ANALYZE FORMAT=TREE {sql}")).await;
            let text = shown.concat().join("\n");
            assert!(text.contains("KeyJoin"), "{text}");
        }
        drop(session);
        check_nothing_left(&engine, "too many rows").await;
    }
}

/// Each connection sees the rows that its statement was planned for, whoever writes meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_with_the_table_that_is_written_sees_the_rows_before() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(MINIMUM, directory.path());
    let mut session = engine.connect();
    for sql in [
        "CREATE TEMPORARY TABLE k (id INT PRIMARY KEY, v INT, KEY v (v))",
        "INSERT INTO k VALUES (1, 2), (2, 3), (3, 4), (4, 1)",
        "CREATE TEMPORARY TABLE o (x INT)",
        "INSERT INTO o VALUES (1), (3), (9)",
        "INSERT INTO k SELECT k.id + 10, o.x FROM o JOIN k ON o.x = k.v",
        "UPDATE k JOIN o ON k.id = o.x SET k.v = k.v * 100",
        "DELETE k FROM k JOIN o ON k.v = o.x WHERE k.id > 10",
        "DELETE FROM k WHERE v IN (SELECT x FROM o)",
    ] {
        rows(&mut session, sql).await;
    }
    let left = rows(&mut session, "SELECT * FROM k ORDER BY id").await;
    assert_eq!(left, [["1", "200"], ["3", "400"]]);
    drop(session);
    check_nothing_left(&engine, "own table").await;
}
