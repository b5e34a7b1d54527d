//! The statements that are planned.

/// What the statements read.
pub(super) const TABLES: [&str; 3] = [
    "DROP TABLE IF EXISTS t1",
    "CREATE TABLE t1 (a INT, b INT)",
    "INSERT INTO t1 VALUES (1, 2), (2, 3)",
];

/// A statement that can be made of any size.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) sizes: &'static [usize],
    pub(super) text: fn(usize) -> String,
}

/// SELECTs inside one another.
const DEPTHS: &[usize] = &[4, 8, 16, 29, 40, 63];
/// The same where each is written several times; the deep ones are refused.
const COPIED: &[usize] = &[2, 4, 6, 8, 10, 20, 29];
/// The same where each names a table expression twice, and the plan doubles.
const DOUBLINGS: &[usize] = &[2, 4, 6, 8, 10, 12, 16, 20, 30];
const CHAIN: &[usize] = &[10, 30, 100, 200];
const TABLES_JOINED: &[usize] = &[5, 10, 20, 40, 60];
const UNITED: &[usize] = &[10, 100, 300, 1000];
const TERMS: &[usize] = &[100, 1000, 3000, 10_000];
const COMPARISONS: &[usize] = &[100, 1000, 10_000, 30_000];
const ROWS: &[usize] = &[100, 300, 1000, 3000];
const ITEMS: &[usize] = &[100, 1000, 5000, 20_000];
const OPERATORS: &[usize] = &[50, 100, 200, 400];
/// Expressions beside one another, each of which is a key or a column of its own.
const KEYS: &[usize] = &[10, 100, 300, 1000];

pub(super) const KINDS: [Kind; 27] = [
    Kind {
        name: "IN (SELECT",
        sizes: DEPTHS,
        text: |depth| nested("SELECT a FROM t1 WHERE a IN (", "SELECT a FROM t1", depth),
    },
    Kind {
        name: "NOT IN (SELECT",
        sizes: DEPTHS,
        text: |depth| {
            nested(
                "SELECT a FROM t1 WHERE a NOT IN (",
                "SELECT a FROM t1",
                depth,
            )
        },
    },
    Kind {
        name: "EXISTS, not correlated",
        sizes: DEPTHS,
        text: |depth| nested("SELECT a FROM t1 WHERE EXISTS (", "SELECT a FROM t1", depth),
    },
    Kind {
        name: "EXISTS, correlated",
        sizes: DEPTHS,
        text: |depth| {
            let inner: String = (1..depth)
                .map(|at| {
                    format!(
                        "EXISTS (SELECT x{at}.a FROM t1 x{at} WHERE x{at}.a = x{}.a AND ",
                        at - 1
                    )
                })
                .collect();
            format!(
                "SELECT x0.a FROM t1 x0 WHERE {inner}1 = 1{}",
                ")".repeat(depth - 1)
            )
        },
    },
    Kind {
        name: "IN (SELECT in the list",
        sizes: COPIED,
        text: |depth| {
            let ends = " FROM t1)".repeat(depth);
            format!(
                "{}a{ends} FROM t1",
                "SELECT a IN (".repeat(depth) + "SELECT "
            )
        },
    },
    Kind {
        name: "scalar subqueries in the list",
        sizes: DEPTHS,
        text: |depth| nested("SELECT (", "SELECT MAX(a) FROM t1", depth),
    },
    Kind {
        name: "scalar subqueries in WHERE",
        sizes: DEPTHS,
        text: |depth| {
            nested(
                "SELECT MAX(a) FROM t1 WHERE a = (",
                "SELECT MAX(a) FROM t1",
                depth,
            )
        },
    },
    Kind {
        name: "derived tables",
        sizes: DEPTHS,
        text: |depth| {
            let ends: String = (1..=depth).map(|level| format!(") d{level}")).collect();
            format!("{}SELECT a FROM t1{ends}", "SELECT a FROM (".repeat(depth))
        },
    },
    Kind {
        name: "WITH, each from the one before",
        sizes: CHAIN,
        text: |count| with(count, |before| format!("SELECT a FROM w{before}")),
    },
    Kind {
        name: "WITH, each twice from the one before",
        sizes: DOUBLINGS,
        text: |count| {
            with(count, |before| {
                format!("SELECT x.a FROM w{before} x JOIN w{before} y ON x.a = y.a")
            })
        },
    },
    Kind {
        name: "joins ON",
        sizes: TABLES_JOINED,
        text: |count| {
            let joined: String = (1..count)
                .map(|at| format!(" JOIN t1 x{at} ON x{at}.a = x{}.a", at - 1))
                .collect();
            format!("SELECT x0.a FROM t1 x0{joined}")
        },
    },
    Kind {
        name: "joins by commas",
        sizes: TABLES_JOINED,
        text: |count| {
            let tables: Vec<String> = (0..count).map(|at| format!("t1 x{at}")).collect();
            let terms: Vec<String> = (1..count)
                .map(|at| format!("x{at}.a = x{}.a", at - 1))
                .collect();
            let (tables, terms) = (tables.join(", "), terms.join(" AND "));
            format!("SELECT x0.a FROM {tables} WHERE {terms}")
        },
    },
    Kind {
        name: "UNION ALL",
        sizes: UNITED,
        text: |count| {
            format!(
                "SELECT a FROM t1{}",
                " UNION ALL SELECT b FROM t1".repeat(count)
            )
        },
    },
    Kind {
        name: "EXCEPT",
        sizes: UNITED,
        text: |count| {
            format!(
                "SELECT a FROM t1{}",
                " EXCEPT SELECT b FROM t1".repeat(count)
            )
        },
    },
    Kind {
        name: "terms with OR",
        sizes: TERMS,
        text: |count| terms(count, " OR ", |at| format!("a = {at} AND b > {at}")),
    },
    Kind {
        name: "terms with AND",
        sizes: TERMS,
        text: |count| terms(count, " AND ", |at| format!("(a <> {at} OR b > {at})")),
    },
    Kind {
        name: "comparisons with AND",
        sizes: COMPARISONS,
        text: |count| terms(count, " AND ", |at| format!("a = {at}")),
    },
    Kind {
        name: "inequalities with AND",
        sizes: COMPARISONS,
        text: |count| terms(count, " AND ", |at| format!("a <> {at}")),
    },
    Kind {
        name: "arms of a CASE that is compared",
        sizes: TERMS,
        text: |count| {
            let arms = joined(count, " ", |arm| format!("WHEN a = {arm} THEN {arm}"));
            format!("SELECT a FROM t1 WHERE CASE {arms} END = 3")
        },
    },
    Kind {
        name: "rows of IN",
        sizes: ROWS,
        text: |count| {
            let rows = list(count, |row| format!("({row}, {row})"));
            format!("SELECT a FROM t1 WHERE (a, b) IN ({rows})")
        },
    },
    Kind {
        name: "keys of ORDER BY",
        sizes: KEYS,
        text: |count| {
            let keys = list(count, |key| format!("a + {key}"));
            format!("SELECT a FROM t1 ORDER BY {keys}")
        },
    },
    Kind {
        name: "windows",
        sizes: KEYS,
        text: |count| {
            let windows = list(count, |key| format!("SUM(a) OVER (ORDER BY b + {key})"));
            format!("SELECT {windows} FROM t1")
        },
    },
    Kind {
        name: "windows by computed keys",
        sizes: KEYS,
        text: |count| {
            let windows = list(count, |key| {
                format!("SUM(a) OVER (ORDER BY (b > {key}) = 1)")
            });
            format!("SELECT {windows} FROM t1")
        },
    },
    Kind {
        name: "windows in one order",
        sizes: KEYS,
        text: |count| {
            let windows = list(count, |value| format!("SUM(a + {value}) OVER (ORDER BY b)"));
            format!("SELECT {windows} FROM t1")
        },
    },
    Kind {
        name: "keys of PARTITION BY",
        sizes: KEYS,
        text: |count| {
            let keys = list(count, |key| format!("a + {key}"));
            format!("SELECT SUM(b) OVER (PARTITION BY {keys}) FROM t1")
        },
    },
    Kind {
        name: "items of IN",
        sizes: ITEMS,
        text: |count| {
            let items = list(count, |item| item.to_string());
            format!("SELECT a FROM t1 WHERE a IN ({items})")
        },
    },
    Kind {
        name: "operators in a row",
        sizes: OPERATORS,
        text: |count| format!("SELECT a{} FROM t1", " + b".repeat(count)),
    },
];

fn nested(around: &str, inner: &str, depth: usize) -> String {
    format!("{}{inner}{}", around.repeat(depth), ")".repeat(depth))
}

fn with(count: usize, next: impl Fn(usize) -> String) -> String {
    let tables: String = (1..=count)
        .map(|number| format!(", w{number} AS ({})", next(number - 1)))
        .collect();
    format!("WITH w0 AS (SELECT a FROM t1){tables} SELECT a FROM w{count}")
}

fn terms(count: usize, between: &str, term: impl Fn(usize) -> String) -> String {
    format!("SELECT a FROM t1 WHERE {}", joined(count, between, term))
}

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    joined(count, ", ", item)
}

fn joined(count: usize, between: &str, part: impl Fn(usize) -> String) -> String {
    let parts: Vec<String> = (0..count).map(part).collect();
    parts.join(between)
}
