//! Random correlated subqueries beside a loop over the outer rows, which runs each subquery by
//! itself with the constants of one row in the place of its columns.
//!
//! The loop knows nothing of joins or of what a subquery is applied to, so what rules make of a
//! subquery and what runs row by row are both compared with the same. Subqueries name outer rows
//! from one, two and three levels below.

use mayfly_session::Session;
use mayfly_testkit::Random;
use mayfly_types::ErrorCode;

use crate::budgets::{MINIMUM, SPILLING, UNLIMITED};
use crate::engine::{open, rows, run};

const SEED: u64 = 20_261_130;
const SUBQUERIES: usize = 150;
/// Subqueries in three inside one another may want more memory than the least budget has.
const DEPTH_MAX: u32 = 2;
const OUTER_ROWS: u64 = 7;
/// Tables with their rows and keys, which subqueries ask for values of outer rows.
const TABLES: [(&str, u64, &str); 3] = [
    ("t", OUTER_ROWS, ""),
    ("u", 25, ", KEY (a), KEY (d)"),
    ("v", 18, ", KEY (b, a)"),
];
const NUMBERS: [&str; 4] = ["id", "a", "b", "d"];

/// A subquery as a text, in which outer columns stand as `o.column`.
struct Writer {
    random: Random,
    names: u32,
}

/// The names of tables that a part of a statement may use, those of the outer row among them.
type Names = Vec<String>;

impl Writer {
    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.random.below(words.len() as u64) as usize]
    }

    fn column(&mut self, names: &Names) -> String {
        let name = &names[self.random.below(names.len() as u64) as usize];
        format!("{name}.{}", self.pick(&NUMBERS))
    }

    fn number(&mut self, names: &Names, depth: u32) -> String {
        match self.random.below(10) {
            0..6 => self.column(names),
            6 => self.random.below(6).to_string(),
            7 | 8 => {
                let operator = self.pick(&["+", "-", "*"]);
                format!("({} {operator} {})", self.column(names), self.column(names))
            }
            _ if depth > 0 => self.value(names, depth - 1),
            _ => self.column(names),
        }
    }

    fn condition(&mut self, names: &Names, depth: u32) -> String {
        match self.random.below(12) {
            0..5 => {
                let operator = self.pick(&["=", "<", ">", "<=", "<>", "<=>"]);
                format!(
                    "{} {operator} {}",
                    self.number(names, depth),
                    self.number(names, depth)
                )
            }
            5 => format!("{} IS NULL", self.column(names)),
            6 => {
                let operator = self.pick(&["AND", "OR"]);
                format!(
                    "({} {operator} {})",
                    self.condition(names, depth),
                    self.condition(names, depth)
                )
            }
            7 => format!("NOT ({})", self.condition(names, depth)),
            8 if depth > 0 => {
                let word = self.pick(&["EXISTS", "NOT EXISTS"]);
                format!("{word} ({})", self.rows(names, depth - 1))
            }
            9 if depth > 0 => {
                let word = self.pick(&["IN", "NOT IN"]);
                format!(
                    "{} {word} ({})",
                    self.number(names, 0),
                    self.rows(names, depth - 1)
                )
            }
            10 if depth > 0 => {
                let operator = self.pick(&["=", "<", ">", "<>", ">="]);
                let word = self.pick(&["ANY", "ALL"]);
                format!(
                    "{} {operator} {word} ({})",
                    self.number(names, 0),
                    self.rows(names, depth - 1)
                )
            }
            _ => format!("{} = {}", self.column(names), self.column(names)),
        }
    }

    /// FROM and WHERE, with the names of the tables.
    fn source(&mut self, names: &Names, depth: u32) -> (String, Names) {
        let table = |writer: &mut Self| {
            writer.names += 1;
            let name = format!("q{}", writer.names);
            (writer.pick(&["t", "u", "v"]), name)
        };
        let (first, name) = table(self);
        let mut text = format!("{first} {name}");
        let mut own = vec![name];
        if self.random.chance(0.25) {
            let (second, name) = table(self);
            own.push(name);
            let kind = self.pick(&["JOIN", "LEFT JOIN"]);
            let condition = self.condition(&own, 0);
            text += &format!(" {kind} {second} {} ON {condition}", own[1]);
        }
        let all: Names = own.iter().chain(names).cloned().collect();
        if self.random.chance(0.9) {
            text += &format!(" WHERE {}", self.condition(&all, depth));
            if self.random.chance(0.5) {
                text += &format!(" AND {}", self.condition(&all, depth));
            }
        }
        (text, own)
    }

    fn aggregate(&mut self, own: &Names, outer: &Names) -> String {
        let column = self.column(own);
        let value = match self.random.chance(0.3) {
            true => format!("{column} + {}", self.column(outer)),
            false => column.clone(),
        };
        match self.random.below(5) {
            0 => "COUNT(*)".to_owned(),
            1 => format!("COUNT(DISTINCT {column})"),
            2 => format!("SUM({value})"),
            3 => format!("MIN({value})"),
            _ => format!("MAX({value})"),
        }
    }

    fn having(&mut self, own: &Names, outer: &Names) -> String {
        let aggregate = match self.random.chance(0.5) {
            true => "COUNT(*)".to_owned(),
            false => format!("MAX({})", self.column(own)),
        };
        let operator = self.pick(&["=", "<", ">"]);
        match self.random.chance(0.6) {
            true => format!(" HAVING {aggregate} {operator} {}", self.column(outer)),
            false => format!(" HAVING {aggregate} {operator} {}", self.random.below(4)),
        }
    }

    /// A query of one column and any number of rows.
    fn rows(&mut self, outer: &Names, depth: u32) -> String {
        let (source, own) = self.source(outer, depth);
        let all: Names = own.iter().chain(outer).cloned().collect();
        match self.random.below(8) {
            0..4 => format!("SELECT {} FROM {source}", self.number(&all, 0)),
            4 => {
                let having = self.having(&own, outer);
                format!(
                    "SELECT {} FROM {source} GROUP BY {}.a{having}",
                    self.aggregate(&own, outer),
                    own[0]
                )
            }
            5 => format!("SELECT {} FROM {source}", self.aggregate(&own, outer)),
            6 => {
                let having = self.having(&own, outer);
                format!(
                    "SELECT {} FROM {source}{having}",
                    self.aggregate(&own, outer)
                )
            }
            _ => {
                let (other, others) = self.source(outer, depth);
                let word = self.pick(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]);
                format!(
                    "SELECT {} FROM {source} {word} SELECT {} FROM {other}",
                    self.column(&own),
                    self.column(&others)
                )
            }
        }
    }

    /// A query in parentheses that has one row at most.
    fn value(&mut self, outer: &Names, depth: u32) -> String {
        let (source, own) = self.source(outer, depth);
        if self.random.chance(0.5) {
            let having = match self.random.chance(0.3) {
                true => self.having(&own, outer),
                false => String::new(),
            };
            return format!(
                "(SELECT {} FROM {source}{having})",
                self.aggregate(&own, outer)
            );
        }
        let all: Names = own.iter().chain(outer).cloned().collect();
        let order: Vec<String> = own.iter().map(|name| format!("{name}.id")).collect();
        let offset = self.pick(&["", "", " OFFSET 1", " OFFSET 2"]);
        let value = self.number(&all, 0);
        format!(
            "(SELECT {value} FROM {source} ORDER BY {} LIMIT 1{offset})",
            order.join(", ")
        )
    }
}

async fn make(session: &mut Session, random: &mut Random) {
    let or_null = |random: &mut Random, below: u64| match random.chance(0.15) {
        true => "NULL".to_owned(),
        false => random.below(below).to_string(),
    };
    for (table, count, keys) in TABLES {
        let columns = "id INT PRIMARY KEY, a INT, b INT, d DECIMAL(6,2)";
        rows(session, &format!("CREATE TABLE {table} ({columns}{keys})")).await;
        for id in 1..=count {
            let values = [5, 7, 10].map(|below| or_null(random, below));
            let insert = format!("INSERT INTO {table} VALUES ({id}, {})", values.join(", "));
            rows(session, &insert).await;
        }
    }
}

/// A subquery with the values of an outer row in the places of its columns.
fn with_constants(subquery: &str, row: &[String]) -> String {
    let mut text = subquery.to_owned();
    for (column, value) in NUMBERS.iter().zip(row) {
        // A constant with the type of the column, NULL too.
        let column_type = if *column == "d" {
            "DECIMAL(6,2)"
        } else {
            "SIGNED"
        };
        text = text.replace(
            &format!("o.{column}"),
            &format!("CAST({value} AS {column_type})"),
        );
    }
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subqueries_are_what_a_loop_over_the_outer_rows_finds() {
    let directory = tempfile::tempdir().unwrap();
    for budget in [UNLIMITED, SPILLING, MINIMUM] {
        let engine = open(budget, directory.path());
        let mut session = engine.connect();
        rows(&mut session, "CREATE DATABASE c").await;
        rows(&mut session, "USE c").await;
        let mut random = Random::new(SEED);
        make(&mut session, &mut random).await;
        let outer = rows(&mut session, "SELECT id, a, b, d FROM t ORDER BY id").await;
        let mut writer = Writer { random, names: 0 };
        let mut compared = 0;
        for _ in 0..SUBQUERIES {
            let names = vec!["o".to_owned()];
            let subquery = match writer.random.chance(0.6) {
                true => writer.value(&names, DEPTH_MAX),
                false => format!("({})", writer.condition(&names, DEPTH_MAX)),
            };
            let all = format!("SELECT o.id, {subquery} FROM t o ORDER BY o.id");
            let found = match run(&mut session, &all).await {
                Ok(found) => found.unwrap_or_default(),
                // What is refused is not answered wrongly, and little room is no wrong answer.
                Err(error) => {
                    let is_refused = error.is(ErrorCode::NotSupportedYet);
                    let is_short = budget < UNLIMITED && [1038, 1041].contains(&error.code);
                    assert!(is_refused || is_short, "{all}: {error}");
                    continue;
                }
            };
            for (row, outer) in found.iter().zip(&outer) {
                let one = format!("SELECT {}", with_constants(&subquery, outer));
                let alone = match run(&mut session, &one).await {
                    Ok(alone) => alone.unwrap_or_default(),
                    Err(_) => continue,
                };
                assert_eq!(row[1..], alone[0], "{all}: {one}");
                compared += 1;
            }
            assert_eq!(found.len() as u64, OUTER_ROWS, "{all}");
        }
        let least = SUBQUERIES as u64 * OUTER_ROWS * 3 / 4;
        assert!(
            compared >= least,
            "{compared} of {least} were compared at {budget}"
        );
    }
}
