//! Statements from a grammar that is MySQL's and more: every construct of the other systems that
//! the parser below knows may stand where it would stand there.
//!
//! Nesting is shallow: what takes long here is planned for long, and that is another test's.

use mayfly_testkit::Random;

use super::vocabulary::{
    AGGREGATES, COLUMNS, ELSEWHERE, FUNCTIONS, JOINS, LITERALS, OPERATORS, TABLES, TYPES, WINDOWS,
};

/// Depth of expressions, and of queries in queries.
const DEPTH: usize = 3;

/// Statements from random numbers.
pub(super) struct Statements<'a> {
    random: &'a mut Random,
    /// Whether constructs of other systems are among them.
    is_mixed: bool,
    /// The tables that can be named where an expression stands, by alias.
    scope: Vec<(String, &'static [&'static str])>,
    aliases: usize,
}

impl Statements<'_> {
    pub(super) fn new(random: &mut Random) -> Statements<'_> {
        let is_mixed = random.chance(0.3);
        Statements {
            random,
            is_mixed,
            scope: Vec::new(),
            aliases: 0,
        }
    }

    /// One of a list whose last ones are of other systems, or wrong.
    fn pick_mixed<'a>(&mut self, among: &[&'a str], wrong: usize) -> &'a str {
        match self.is_mixed {
            true => self.pick(among),
            false => self.pick(&among[..among.len() - wrong]),
        }
    }

    /// A column of a table in scope.
    fn column(&mut self) -> String {
        if self.scope.is_empty() || self.is_mixed && self.chance(8) {
            return self.pick(&COLUMNS).to_owned();
        }
        let (alias, columns) =
            self.scope[self.random.below(self.scope.len() as u64) as usize].clone();
        format!("{alias}.{}", self.pick(columns))
    }

    fn pick<'a>(&mut self, among: &[&'a str]) -> &'a str {
        among[self.random.below(among.len() as u64) as usize]
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.random.below(one_in) == 0
    }

    /// A few statements.
    pub(super) fn script(&mut self) -> String {
        let statements: Vec<String> = (0..=self.random.below(3))
            .map(|_| self.statement())
            .collect();
        statements.join(";\n")
    }

    fn statement(&mut self) -> String {
        self.scope.clear();
        let of = |alias: &str, table: usize| (alias.to_owned(), TABLES[table].1);
        match self.random.below(16) {
            0 => {
                self.scope.push(of("t", 0));
                let (column, value) = (self.column(), self.expression(DEPTH));
                let condition = self.expression(2);
                format!("UPDATE t SET {column} = {value} WHERE {condition}")
            }
            1 => {
                self.scope.push(of("u", 1));
                let condition = self.expression(DEPTH);
                format!("DELETE FROM u WHERE {condition}")
            }
            2 => {
                let query = self.query(2, 3);
                format!("INSERT IGNORE INTO w {query}")
            }
            3 => {
                let values: Vec<String> = (0..3).map(|_| self.expression(2)).collect();
                format!("REPLACE INTO w VALUES ({})", values.join(", "))
            }
            4 => {
                let query = self.query(2, 2);
                format!("CREATE TEMPORARY TABLE made AS {query}")
            }
            5 => {
                let value = self.expression(2);
                format!("SET @v = {value}")
            }
            6 => {
                let value = self.expression(DEPTH);
                format!("DO {value}")
            }
            7 => {
                let query = self.query(2, 2);
                format!("EXPLAIN {query}")
            }
            8 => {
                let (of, value) = (self.pick_mixed(&TYPES, 3), self.expression(2));
                format!("ALTER TABLE t ADD COLUMN n {of} DEFAULT ({value})")
            }
            _ => {
                let columns = 1 + self.random.below(3) as usize;
                self.query(2, columns)
            }
        }
    }

    /// A query of so many columns.
    fn query(&mut self, depth: usize, columns: usize) -> String {
        let outer = self.scope.len();
        let mut query = match self.random.below(12) {
            0 if depth > 0 => {
                let (left, right) = (
                    self.query(depth - 1, columns),
                    self.query(depth - 1, columns),
                );
                let with = self.pick_mixed(
                    &[
                        "UNION",
                        "UNION ALL",
                        "EXCEPT",
                        "INTERSECT",
                        "EXCEPT ALL",
                        "MINUS",
                    ],
                    1,
                );
                format!("({left}) {with} ({right})")
            }
            1 if depth > 0 => {
                let (inner, outer) = (self.query(depth - 1, 2), self.select(depth - 1, columns));
                let recursive = self.pick(&["", "RECURSIVE "]);
                format!("WITH {recursive}q (a, b) AS ({inner}) {outer}")
            }
            2 => {
                let values: Vec<String> = (0..columns).map(|_| self.expression(1)).collect();
                format!("VALUES ROW({})", values.join(", "))
            }
            _ => self.select(depth, columns),
        };
        if self.chance(3) {
            let key = match self.random.below(2) {
                0 => self.pick(&["1", "2", "n", "NULL"]).to_owned(),
                _ => self.expression(2),
            };
            let direction = self.pick_mixed(&["", " DESC", " ASC", " NULLS LAST"], 1);
            query.push_str(&format!(" ORDER BY {key}{direction}"));
        }
        if self.chance(4) {
            query.push_str(self.pick(&[" LIMIT 2", " LIMIT 1, 2", " LIMIT 3 OFFSET 1"]));
        }
        if self.is_mixed && self.chance(6) {
            query.push(' ');
            query.push_str(self.pick(&ELSEWHERE));
        }
        self.scope.truncate(outer);
        query
    }

    /// A select; its tables stay in scope, for ORDER BY.
    fn select(&mut self, depth: usize, columns: usize) -> String {
        let outer = self.scope.len();
        let mut from = String::new();
        if !self.chance(8) {
            from = format!(" FROM {}", self.table(depth));
            for _ in 0..self.random.below(3) {
                let (join, table) = (self.pick_mixed(&JOINS, 5), self.table(depth));
                from.push_str(&format!(" {join} {table}"));
                if join.ends_with("JOIN") && !join.starts_with("NATURAL") && !self.chance(20) {
                    match self.random.below(6) {
                        0 => from.push_str(" USING (a)"),
                        _ => from.push_str(&format!(" ON {}", self.expression(2))),
                    }
                }
            }
        }
        let distinct = match self.random.below(12) {
            0 | 1 => "DISTINCT ",
            2 if self.is_mixed => "DISTINCT ON (a) ",
            3 => "SQL_CALC_FOUND_ROWS ",
            _ => "",
        };
        let groups = self.chance(3) && !from.is_empty();
        let mut keys = Vec::new();
        let mut items = Vec::new();
        if groups {
            keys = (0..=self.random.below(2))
                .map(|_| self.expression(1))
                .collect();
            // What ONLY_FULL_GROUP_BY allows, most of the time.
            items = (0..columns)
                .map(|column| match (keys.get(column), self.chance(12)) {
                    (Some(key), false) => key.clone(),
                    (None, false) => self.aggregate(),
                    (_, true) => self.item(),
                })
                .collect();
        } else {
            items.extend((0..columns).map(|_| self.item()));
        }
        if self.chance(10) && !from.is_empty() {
            items[0] = self.pick_mixed(&["*", "* EXCEPT (a)"], 1).to_owned();
        }
        let mut select = format!("SELECT {distinct}{}{from}", items.join(", "));
        if self.chance(2) {
            select.push_str(&format!(" WHERE {}", self.expression(DEPTH)));
        }
        if groups {
            let with = self.pick_mixed(&["", "", " WITH ROLLUP", " WITH CUBE"], 1);
            select.push_str(&format!(" GROUP BY {}{with}", keys.join(", ")));
            if self.chance(2) {
                select.push_str(&format!(" HAVING {} > 1", self.aggregate()));
            }
        }
        if select.contains("OVER x") {
            select.push_str(&format!(" WINDOW x AS (ORDER BY {})", self.expression(1)));
        }
        if groups {
            self.scope.truncate(outer);
        }
        select
    }

    fn item(&mut self) -> String {
        let value = match self.random.below(6) {
            0 => self.aggregate(),
            1 => self.window(),
            _ => self.expression(DEPTH),
        };
        match self.random.below(4) {
            0 => format!(
                "{value} AS {}",
                self.pick(&["a", "n", "`a b`", "'s'", "rank"])
            ),
            _ => value,
        }
    }

    /// A table, which comes into scope.
    fn table(&mut self, depth: usize) -> String {
        if self.is_mixed && self.chance(6) {
            return self
                .pick(&[
                    "UNNEST(a)",
                    "f(1)",
                    "TABLE(a)",
                    "(t)",
                    "dual",
                    "t PARTITION (p)",
                    "t AS q (a, b)",
                    "missing",
                    "test.t",
                    "a.b.c",
                    "t TABLESAMPLE (10)",
                ])
                .to_owned();
        }
        self.aliases += 1;
        let alias = format!("q{}", self.aliases);
        if depth > 0 && self.chance(6) {
            let scope = std::mem::take(&mut self.scope);
            let query = self.query(depth - 1, 2);
            self.scope = scope;
            self.scope.push((alias.clone(), &["a", "b"]));
            return format!("({query}) AS {alias} (a, b)");
        }
        let (table, columns) = TABLES[self.random.below(TABLES.len() as u64) as usize];
        self.scope.push((alias.clone(), columns));
        let hint = self.pick(&["", "", "", "", " FORCE INDEX FOR JOIN (k)"]);
        format!("{table} AS {alias}{hint}")
    }

    fn aggregate(&mut self) -> String {
        let (function, argument) = (self.pick(&AGGREGATES), self.expression(2));
        let distinct = self.pick(&["", "", "DISTINCT ", "ALL "]);
        let behind = match (function, self.is_mixed) {
            ("GROUP_CONCAT", _) => self.pick(&["", " ORDER BY 1", " SEPARATOR '-'"]),
            (_, true) => self.pick(&["", "", "", " ORDER BY a", " SEPARATOR '-'", " LIMIT 1"]),
            (_, false) => "",
        };
        let filter = self.pick_mixed(&["", "", "", " FILTER (WHERE a > 1)"], 1);
        match self.random.below(6) {
            0 => "COUNT(*)".to_owned(),
            _ => format!("{function}({distinct}{argument}{behind}){filter}"),
        }
    }

    fn window(&mut self) -> String {
        let aggregate = self.aggregate();
        let functions = [&WINDOWS[..], &[aggregate.as_str()]].concat();
        let function = self.pick(&functions).to_owned();
        let (part, key) = (self.expression(1), self.expression(1));
        let frame = self.pick_mixed(
            &[
                "",
                "",
                " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
                " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
                " ROWS UNBOUNDED PRECEDING",
                " RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
                " GROUPS 1 PRECEDING",
            ],
            2,
        );
        match self.random.below(4) {
            0 => format!("{function} OVER ()"),
            1 => format!("{function} OVER x"),
            2 => format!("{function} OVER (ORDER BY {key}{frame})"),
            _ => format!("{function} OVER (PARTITION BY {part} ORDER BY {key}{frame})"),
        }
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 || self.chance(4) {
            return match self.random.below(3) {
                0 => self.pick(&LITERALS).to_owned(),
                _ => self.column(),
            };
        }
        let below = depth - 1;
        match self.random.below(20) {
            0..6 => {
                let (left, right) = (self.expression(below), self.expression(below));
                let operator = self.pick_mixed(&OPERATORS, 4);
                format!("{left} {operator} {right}")
            }
            6..9 => {
                let (function, mut count) =
                    FUNCTIONS[self.random.below(FUNCTIONS.len() as u64) as usize];
                if self.is_mixed && self.chance(6) {
                    count = self.random.below(4);
                }
                let arguments: Vec<String> = (0..count).map(|_| self.expression(below)).collect();
                format!("{function}({})", arguments.join(", "))
            }
            9 => {
                let (value, of) = (self.expression(below), self.pick_mixed(&TYPES, 3));
                format!("CAST({value} AS {of})")
            }
            10 => {
                let parts: Vec<String> = (0..3).map(|_| self.expression(below)).collect();
                format!(
                    "CASE WHEN {} THEN {} ELSE {} END",
                    parts[0], parts[1], parts[2]
                )
            }
            11 => {
                let (value, one) = (self.expression(below), self.expression(below));
                let not = self.pick(&["", "NOT "]);
                format!("{value} {not}IN ({one}, NULL, 'a')")
            }
            12 if depth > 1 => {
                let (value, query) = (self.expression(below), self.query(0, 1));
                let test = self.pick(&["IN", "NOT IN", "= ANY", "> ALL", "<> SOME"]);
                format!("{value} {test} ({query})")
            }
            13 if depth > 1 => {
                let query = self.query(0, 1);
                let exists = self.pick(&["", "EXISTS ", "NOT EXISTS "]);
                format!("{exists}({query})")
            }
            14 => {
                let value = self.expression(below);
                let test = self.pick_mixed(
                    &[
                        "IS NULL",
                        "IS NOT TRUE",
                        "IS UNKNOWN",
                        "BETWEEN 1 AND 5",
                        "NOT BETWEEN 'a' AND 'b'",
                        "COLLATE utf8mb4_bin",
                        "IS DISTINCT FROM 1",
                        "NOT NULL",
                        "AT TIME ZONE 'UTC'",
                        "[1]",
                        "MEMBER OF ('[1]')",
                    ],
                    5,
                );
                format!("{value} {test}")
            }
            15 => {
                let value = self.expression(below);
                let unit = self.pick_mixed(&["DAY", "MONTH", "MINUTE_SECOND", "EPOCH"], 1);
                match self.random.below(3) {
                    0 => format!("EXTRACT({unit} FROM {value})"),
                    1 => format!("{value} + INTERVAL 1 {unit}"),
                    _ => format!("DATE_ADD({value}, INTERVAL '1:1' {unit})"),
                }
            }
            16 => {
                let (one, two) = (self.expression(below), self.expression(below));
                format!("({one}, {two}) = (1, {one})")
            }
            17 => {
                let value = self.expression(below);
                format!(
                    "{} {value}",
                    self.pick(&["NOT", "-", "!", "~", "+", "BINARY"])
                )
            }
            18 if self.is_mixed => self.aggregate(),
            _ => {
                let value = self.expression(below);
                format!("({value})")
            }
        }
    }
}
