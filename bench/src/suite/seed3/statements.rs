//! The statements of seed3, and what each line must leave behind.
//!
//! Source: the tables and values of sql-bench (`test-create`, `test-insert`), the lines of
//! "InnoDB Temporary Tables just got faster", which ran it with temporary tables.

use std::cell::RefCell;
use std::rc::Rc;

use crate::data::SplitMix64;
use crate::scripts::{Dialect, Line};

/// Rows of one statement in the lines of many rows.
const BATCH_ROWS: u64 = 1_000;

pub(super) const CREATE: &str = "create";
pub(super) const DROP: &str = "drop";
pub(super) const PAIR: &str = "create+drop";
pub(super) const CREATE_KEYS: &str = "create, 16 keys";
pub(super) const DROP_KEYS: &str = "drop, 16 keys";
pub(super) const PAIR_KEYS: &str = "create+drop, 16 keys";

pub(super) const INSERT_SORTED: &str = "insert sorted";
pub(super) const INSERT_REVERSE: &str = "insert reverse";
pub(super) const INSERT_RANDOM: &str = "insert random";
pub(super) const UPDATE_PRIMARY: &str = "update by primary key";
pub(super) const UPDATE_SECONDARY: &str = "update by secondary key";
pub(super) const UPDATE_ALL: &str = "update all rows twice";
pub(super) const DELETE_PRIMARY: &str = "delete by primary key";
pub(super) const DELETE_SECONDARY: &str = "delete by secondary key";
pub(super) const DELETE_REST: &str = "delete the rest";

pub(super) const INSERT_BATCHES: &str = "insert 1,000 rows a statement";
pub(super) const INSERT_SELECT: &str = "insert select";

/// The lines of single rows, in their order.
pub(super) const ROW_LINES: [&str; 9] = [
    INSERT_SORTED,
    INSERT_REVERSE,
    INSERT_RANDOM,
    UPDATE_PRIMARY,
    UPDATE_SECONDARY,
    UPDATE_ALL,
    DELETE_PRIMARY,
    DELETE_SECONDARY,
    DELETE_REST,
];
/// Those of them that go through a table in no order.
pub(super) const RANDOM_LINES: [&str; 3] = [INSERT_RANDOM, UPDATE_SECONDARY, DELETE_SECONDARY];

/// A table in the words of a system: one statement, or more where keys have their own.
fn create(
    dialect: Dialect,
    name: &str,
    columns: &str,
    primary: &str,
    keys: &[&str],
) -> Vec<String> {
    match dialect {
        Dialect::MySql(options) => {
            let keys: String = keys
                .iter()
                .map(|column| format!(", INDEX ix_{column} ({column})"))
                .collect();
            vec![format!(
                "CREATE TEMPORARY TABLE {name} ({columns}, PRIMARY KEY ({primary}){keys}) {options}"
            )]
        }
        Dialect::Standard => {
            let table =
                format!("CREATE TEMPORARY TABLE {name} ({columns}, PRIMARY KEY ({primary}))");
            let keys = keys
                .iter()
                .map(|column| format!("CREATE INDEX {name}_{column} ON {name} ({column})"));
            std::iter::once(table).chain(keys).collect()
        }
    }
}

/// The table of `test-create`, or its other one with 16 keys.
fn create_small(dialect: Dialect, number: u64, keys: bool) -> Vec<String> {
    let name = format!("bench_{number}");
    if !keys {
        let columns = "i INT NOT NULL, d DOUBLE, f FLOAT, s CHAR(10), v VARCHAR(100)";
        return create(dialect, &name, columns, "i", &[]);
    }
    let medium = match dialect {
        Dialect::MySql(_) => "MEDIUMINT",
        Dialect::Standard => "INT",
    };
    let kinds = [
        "TINYINT", medium, "SMALLINT", "CHAR(16)", "INT", "FLOAT", "DOUBLE",
    ];
    let names: Vec<String> = (1..=16).map(|field| format!("field{field}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let columns: Vec<String> = names
        .iter()
        .zip(kinds.into_iter().chain(std::iter::repeat("CHAR(5)")))
        .map(|(name, kind)| format!("{name} {kind} NOT NULL"))
        .collect();
    create(
        dialect,
        &name,
        &columns.join(", "),
        &names.join(", "),
        &names[1..],
    )
}

/// Create `tables`, drop them, then as many pairs of both.
pub(super) fn create_drop(dialect: Dialect, tables: u64, keys: bool) -> Vec<Line> {
    let names = if keys {
        [CREATE_KEYS, DROP_KEYS, PAIR_KEYS]
    } else {
        [CREATE, DROP, PAIR]
    };
    let creates = move |number| create_small(dialect, number, keys);
    let drops = |number| format!("DROP TABLE bench_{number}");
    let line = |name, statements, check| Line {
        name: Some(name),
        operations: tables,
        statements,
        check,
    };
    let query = format!("SELECT COUNT(*) FROM bench_{tables}");
    vec![
        line(
            names[0],
            Box::new(move || (1..=tables).flat_map(creates).collect()),
            Some((query, "0".to_owned())),
        ),
        line(
            names[1],
            Box::new(move || (1..=tables).map(drops).collect()),
            None,
        ),
        line(
            names[2],
            Box::new(move || {
                let pair = |number| {
                    let drop = std::iter::once(drops(number));
                    creates(number).into_iter().chain(drop)
                };
                (1..=tables).flat_map(pair).collect()
            }),
            None,
        ),
    ]
}

/// The table of `test-insert`; `wider` bytes are added to its text.
fn create_bench(dialect: Dialect, name: &str, wider: usize) -> Vec<String> {
    let text = match wider {
        0 => "CHAR(30)".to_owned(),
        wider => format!("VARCHAR({})", 30 + wider),
    };
    let columns = format!("id INT NOT NULL, id2 INT NOT NULL, id3 INT NOT NULL, dummy1 {text}");
    create(dialect, name, &columns, "id, id2", &["id3"])
}

/// What the table holds: the length of `dummy1` of each `id`, 0 where there is no row.
struct Model {
    lengths: Vec<u64>,
    wider: usize,
}

impl Model {
    /// The query of a check; it depends on each row and on no order.
    fn query(table: &str) -> String {
        format!(
            "SELECT COUNT(*), COALESCE(SUM(id), 0), COALESCE(SUM(id3), 0), \
             COALESCE(SUM(id * LENGTH(dummy1)), 0) FROM {table}"
        )
    }

    /// Its right answer.
    fn answer(&self) -> String {
        let (mut count, mut ids, mut weighted) = (0, 0, 0);
        for (id, length) in (0_u64..)
            .zip(&self.lengths)
            .filter(|(_, length)| **length > 0)
        {
            count += 1;
            ids += id;
            weighted += id * length;
        }
        format!("{count}\t{ids}\t{ids}\t{weighted}")
    }

    fn set(&mut self, ids: impl Iterator<Item = u64>, text: &str) {
        let length = if text.is_empty() {
            0
        } else {
            (text.len() + self.wider) as u64
        };
        for id in ids {
            self.lengths[usize::try_from(id).expect("a row of the table")] = length;
        }
    }
}

/// The ids from `n` to `2n` in no order: the same on every machine.
fn shuffled(n: u64) -> Vec<u64> {
    let mut ids: Vec<u64> = (n..2 * n).collect();
    let mut random = SplitMix64::new(3);
    for at in (1..ids.len()).rev() {
        let other = random.next() % (at as u64 + 1);
        ids.swap(at, usize::try_from(other).expect("an index"));
    }
    ids
}

/// What a line does to the row of an id.
#[derive(Clone, Copy)]
enum Change {
    Insert,
    UpdatePrimary,
    UpdateSecondary,
    DeletePrimary,
    DeleteSecondary,
}

impl Change {
    fn statement(self, id: u64, text: &str) -> String {
        match self {
            Self::Insert => format!(
                "INSERT INTO bench1 (id, id2, id3, dummy1) VALUES ({id}, {id}, {id}, '{text}')"
            ),
            Self::UpdatePrimary => {
                format!("UPDATE bench1 SET dummy1 = '{text}' WHERE id = {id} AND id2 = {id}")
            }
            Self::UpdateSecondary => {
                format!("UPDATE bench1 SET dummy1 = '{text}' WHERE id3 = {id}")
            }
            Self::DeletePrimary => format!("DELETE FROM bench1 WHERE id = {id} AND id2 = {id}"),
            Self::DeleteSecondary => format!("DELETE FROM bench1 WHERE id3 = {id}"),
        }
    }
}

/// Insert `3n` rows, update them, delete them: a statement each.
pub(super) fn rows(dialect: Dialect, n: u64, wider: usize) -> Vec<Line> {
    let model = RefCell::new(Model {
        lengths: vec![0; usize::try_from(3 * n).expect("rows fit memory")],
        wider,
    });
    let padded = move |text: &str| format!("{text}{}", "x".repeat(wider));
    let check = || Some((Model::query("bench1"), model.borrow().answer()));
    let line = |name, change: Change, ids: Rc<[u64]>, text: &str| {
        model.borrow_mut().set(ids.iter().copied(), text);
        let text = padded(text);
        Line {
            name: Some(name),
            operations: ids.len() as u64,
            statements: Box::new(move || {
                ids.iter().map(|id| change.statement(*id, &text)).collect()
            }),
            check: check(),
        }
    };
    let sorted: Rc<[u64]> = (0..n).collect();
    let reverse: Rc<[u64]> = (2 * n..3 * n).rev().collect();
    let random: Rc<[u64]> = shuffled(n).into();
    let again = Rc::clone;
    let mut lines = vec![
        Line {
            name: None,
            operations: 1,
            statements: Box::new(move || create_bench(dialect, "bench1", wider)),
            check: None,
        },
        line(INSERT_SORTED, Change::Insert, again(&sorted), "ABCDEFGHIJ"),
        line(INSERT_REVERSE, Change::Insert, reverse, "BCDEFGHIJKL"),
        line(
            INSERT_RANDOM,
            Change::Insert,
            again(&random),
            "CDEFGHIJKLMN",
        ),
        line(
            UPDATE_PRIMARY,
            Change::UpdatePrimary,
            again(&sorted),
            "updated",
        ),
        line(
            UPDATE_SECONDARY,
            Change::UpdateSecondary,
            again(&random),
            "really updated",
        ),
    ];
    let all = ["updated once", "updated twice"];
    for text in all {
        model.borrow_mut().set(0..3 * n, text);
    }
    lines.push(Line {
        name: Some(UPDATE_ALL),
        operations: 6 * n,
        statements: Box::new(move || {
            let statement = |text| format!("UPDATE bench1 SET dummy1 = '{}'", padded(text));
            all.into_iter().map(statement).collect()
        }),
        check: check(),
    });
    lines.extend([
        line(DELETE_PRIMARY, Change::DeletePrimary, sorted, ""),
        line(DELETE_SECONDARY, Change::DeleteSecondary, random, ""),
        line(
            DELETE_REST,
            Change::DeletePrimary,
            (2 * n..3 * n).collect(),
            "",
        ),
    ]);
    lines
}

/// The inserts of `rows` alone: for the size of its table.
pub(super) fn inserts(dialect: Dialect, n: u64, wider: usize) -> Vec<Line> {
    let mut lines = rows(dialect, n, wider);
    lines.truncate(4);
    lines
}

/// Insert `n` rows many at a time, then all of them from one table into another.
pub(super) fn batches(dialect: Dialect, n: u64) -> Vec<Line> {
    let answer = {
        let mut model = Model {
            lengths: vec![0; usize::try_from(n).expect("rows fit memory")],
            wider: 0,
        };
        model.set(0..n, "ABCDEFGHIJ");
        model.answer()
    };
    vec![
        Line {
            name: None,
            operations: 1,
            statements: Box::new(move || {
                let mut both = create_bench(dialect, "bench1", 0);
                both.extend(create_bench(dialect, "bench2", 0));
                both
            }),
            check: None,
        },
        Line {
            name: Some(INSERT_BATCHES),
            operations: n,
            statements: Box::new(move || {
                let statement = |first: u64| {
                    let rows: Vec<String> = (first..n.min(first + BATCH_ROWS))
                        .map(|id| format!("({id}, {id}, {id}, 'ABCDEFGHIJ')"))
                        .collect();
                    format!("INSERT INTO bench1 VALUES {}", rows.join(", "))
                };
                let step = usize::try_from(BATCH_ROWS).expect("a small number");
                (0..n).step_by(step).map(statement).collect()
            }),
            check: Some((Model::query("bench1"), answer.clone())),
        },
        Line {
            name: Some(INSERT_SELECT),
            operations: n,
            statements: Box::new(|| vec!["INSERT INTO bench2 SELECT * FROM bench1".to_owned()]),
            check: Some((Model::query("bench2"), answer)),
        },
    ]
}
