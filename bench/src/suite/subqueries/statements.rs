//! The tables and statements of `subqueries`, and the answers that they must give.
//!
//! `t` has the outer rows, `u` the inner ones, ten for each value of `k`. `w` holds the rows of `u`
//! again, since MySQL opens a temporary table once in a statement.

use crate::args::SystemName;
use crate::scripts::{Contender, Dialect, Line};

const OUTER_ROWS: u64 = 2_000;
const ROWS_A_KEY: u64 = 10;
/// Rows of one INSERT.
const BATCH_ROWS: usize = 1_000;
/// How often a quick statement runs in its line. UPDATE runs once: again it would change nothing.
const REPEATS: usize = 3;

/// The inner table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inner {
    pub(super) rows: u64,
    /// Whether there is a key on the column that the subqueries compare.
    pub(super) has_key: bool,
}

/// A row of the inner table.
#[derive(Clone, Copy, Debug)]
struct InnerRow {
    k: u64,
    /// By which some statements group.
    g: u64,
    v: u64,
}

impl Inner {
    fn all_rows(self) -> impl Iterator<Item = InnerRow> {
        let keys = self.rows / ROWS_A_KEY;
        (0..self.rows).map(move |id| InnerRow {
            k: id % keys + 1,
            g: id % 3,
            v: id * 7_919 % 1_000,
        })
    }
}

/// A statement, and what it says of the outer row `k` with these inner rows, which are in the order
/// of `v`. The sum of that over all outer rows is the answer.
struct Statement {
    name: &'static str,
    text: &'static str,
    of_row: fn(k: u64, inner: &[InnerRow]) -> u64,
}

const LATERAL: Statement = Statement {
    name: "LATERAL with the two largest values (LIMIT 2)",
    text: "SELECT SUM(t.k * q.v) FROM t, \
           LATERAL (SELECT u.v FROM u WHERE u.k = t.k ORDER BY u.v DESC LIMIT 2) q",
    of_row: |k, inner| inner.iter().rev().take(2).map(|row| k * row.v).sum(),
};

/// What all systems have.
const STATEMENTS: [Statement; 6] = [
    Statement {
        name: "second smallest value (LIMIT 1 OFFSET 1)",
        text: "SELECT SUM(t.k * (SELECT u.v FROM u WHERE u.k = t.k \
               ORDER BY u.v LIMIT 1 OFFSET 1)) FROM t",
        of_row: |k, inner| k * second(inner),
    },
    Statement {
        name: "MAX of an inner and the outer column",
        text: "SELECT SUM(t.k * (SELECT MAX(u.v + t.k) FROM u WHERE u.k = t.k)) FROM t",
        of_row: |k, inner| inner.last().map_or(0, |row| k * (row.v + k)),
    },
    Statement {
        name: "less than ALL sums of groups",
        text: "SELECT SUM(t.k) FROM t WHERE t.k < \
               ALL (SELECT SUM(u.v) FROM u WHERE u.k = t.k GROUP BY u.g)",
        of_row: |k, inner| {
            let is_less = sums(inner).all(|sum| k < sum);
            if is_less { k } else { 0 }
        },
    },
    Statement {
        name: "a subquery in a subquery",
        text: "SELECT SUM(t.k * (SELECT MAX(u.v + (SELECT w.v FROM w WHERE w.k = u.k \
               ORDER BY w.v LIMIT 1 OFFSET 1)) FROM u WHERE u.k = t.k)) FROM t",
        of_row: |k, inner| inner.last().map_or(0, |row| k * (row.v + second(inner))),
    },
    Statement {
        name: "EXISTS with OFFSET",
        text: "SELECT SUM(t.k) FROM t WHERE EXISTS \
               (SELECT 1 FROM u WHERE u.k = t.k AND u.v < 500 LIMIT 1 OFFSET 4)",
        of_row: |k, inner| {
            let is_there = inner.get(4).is_some_and(|row| row.v < 500);
            if is_there { k } else { 0 }
        },
    },
    Statement {
        name: "EXISTS with sums of groups and HAVING",
        text: "SELECT SUM(t.k) FROM t WHERE EXISTS (SELECT SUM(u.v) FROM u WHERE u.k = t.k \
               GROUP BY u.g HAVING SUM(u.v) > t.k)",
        of_row: |k, inner| {
            let is_there = sums(inner).any(|sum| sum > k);
            if is_there { k } else { 0 }
        },
    },
];

/// The second smallest value, which counts as 0 where there is none.
fn second(inner: &[InnerRow]) -> u64 {
    inner.get(1).map_or(0, |row| row.v)
}

/// The sum of `v` of each group that has rows.
fn sums(inner: &[InnerRow]) -> impl Iterator<Item = u64> {
    (0..3).filter_map(|g| {
        let of_group = || inner.iter().filter(|row| row.g == g);
        of_group().next()?;
        Some(of_group().map(|row| row.v).sum())
    })
}

/// Makes the tables, then runs each statement.
pub(super) fn lines(contender: &Contender, inner: Inner) -> Vec<Line> {
    let outer_rows = OUTER_ROWS / contender.divisor;
    let dialect = contender.dialect;
    let mut lines = vec![Line {
        name: None,
        operations: 1,
        statements: Box::new(move || tables(dialect, outer_rows, inner)),
        check: None,
    }];
    // Not in MariaDB.
    let lateral = (contender.system != SystemName::Mariadb).then_some(&LATERAL);
    let repeats = if contender.divisor == 1 { REPEATS } else { 1 };
    for statement in STATEMENTS.iter().chain(lateral) {
        let text = statement.text;
        lines.push(Line {
            name: Some(statement.name),
            operations: outer_rows * repeats as u64,
            statements: Box::new(move || vec![text.to_owned(); repeats]),
            check: Some((text.to_owned(), answer(statement.of_row, outer_rows, inner))),
        });
    }
    lines.push(Line {
        name: Some("UPDATE ... SET to the second smallest value"),
        operations: outer_rows,
        statements: Box::new(|| {
            let text = "UPDATE t SET a = (SELECT u.v FROM u WHERE u.k = t.k \
                        ORDER BY u.v LIMIT 1 OFFSET 1)";
            vec![text.to_owned()]
        }),
        check: Some((
            "SELECT SUM(k * a) FROM t".to_owned(),
            answer(|k, inner| k * second(inner), outer_rows, inner),
        )),
    });
    lines
}

/// The sum over all outer rows.
fn answer(of_row: fn(u64, &[InnerRow]) -> u64, outer_rows: u64, inner: Inner) -> String {
    let mut rows: Vec<InnerRow> = inner.all_rows().collect();
    rows.sort_by_key(|row| (row.k, row.v));
    let sum: u64 = (1..=outer_rows)
        .map(|k| {
            let first = rows.partition_point(|row| row.k < k);
            let end = rows.partition_point(|row| row.k <= k);
            of_row(k, &rows[first..end])
        })
        .sum();
    sum.to_string()
}

/// Makes and fills the tables.
fn tables(dialect: Dialect, outer_rows: u64, inner: Inner) -> Vec<String> {
    let options = match dialect {
        Dialect::MySql(options) => options,
        Dialect::Standard => "",
    };
    let mut statements = vec![format!(
        "CREATE TEMPORARY TABLE t (k INT NOT NULL, a INT) {options}"
    )];
    for name in ["u", "w"] {
        let key = match dialect {
            Dialect::MySql(_) if inner.has_key => ", KEY by_k (k)",
            Dialect::MySql(_) | Dialect::Standard => "",
        };
        statements.push(format!(
            "CREATE TEMPORARY TABLE {name} \
             (k INT NOT NULL, g INT NOT NULL, v INT NOT NULL{key}) {options}"
        ));
        if dialect == Dialect::Standard && inner.has_key {
            statements.push(format!("CREATE INDEX {name}_by_k ON {name} (k)"));
        }
    }
    let outer = (1..=outer_rows).map(|k| format!("({k}, NULL)"));
    insert(&mut statements, "t", outer.collect());
    let of_row = |InnerRow { k, g, v }| format!("({k}, {g}, {v})");
    insert(&mut statements, "u", inner.all_rows().map(of_row).collect());
    statements.push("INSERT INTO w SELECT * FROM u".to_owned());
    statements
}

fn insert(statements: &mut Vec<String>, table: &str, rows: Vec<String>) {
    for batch in rows.chunks(BATCH_ROWS) {
        statements.push(format!("INSERT INTO {table} VALUES {}", batch.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: Inner = Inner {
        rows: 200,
        has_key: false,
    };

    /// MariaDB 10.11's answers, and DuckDB 2.0's for LATERAL.
    #[test]
    fn answers_are_those_of_other_systems() {
        let expected = [
            "31720", "200190", "2001000", "229040", "164", "210", "374500",
        ];
        for (statement, expected) in STATEMENTS.iter().chain([&LATERAL]).zip(expected) {
            let found = answer(statement.of_row, OUTER_ROWS, FEW);
            assert_eq!(found, expected, "{}", statement.name);
        }
    }
}
