//! Random queries over a few small tables: joins, subqueries of every form, derived tables, groups,
//! windows and set operations, nested in each other.
//!
//! Owns: what such a query may be. Every query is run by `differential`, several times, since a
//! text that comes again runs from a kept plan.

use mayfly_testkit::Random;

/// The columns of the tables that hold numbers, texts, decimals and dates.
struct Columns {
    numbers: &'static [&'static str],
    texts: &'static [&'static str],
    decimals: &'static [&'static str],
    dates: &'static [&'static str],
}

const TABLES: [(&str, Columns); 4] = [
    (
        "t",
        Columns {
            numbers: &["a", "b"],
            texts: &["c"],
            decimals: &["d"],
            dates: &[],
        },
    ),
    (
        "u",
        Columns {
            numbers: &["a", "b"],
            texts: &[],
            decimals: &[],
            dates: &["e"],
        },
    ),
    (
        "w",
        Columns {
            numbers: &["id", "k"],
            texts: &["v"],
            decimals: &[],
            dates: &[],
        },
    ),
    (
        DERIVED,
        Columns {
            numbers: &["p", "q"],
            texts: &["r"],
            decimals: &[],
            dates: &[],
        },
    ),
];

/// What a derived table has for a name among the tables.
const DERIVED: &str = "derived";

/// Tables that may be named at a place: their aliases, and what they are.
type Scope = Vec<(String, &'static str)>;

/// Queries from a seed.
pub struct Queries {
    random: Random,
    aliases: usize,
}

impl Queries {
    pub fn new(seed: u64) -> Queries {
        Queries {
            random: Random::new(seed),
            aliases: 0,
        }
    }

    /// The statements that make and fill the tables.
    pub fn tables(&mut self) -> Vec<String> {
        let mut script = vec![
            "CREATE TEMPORARY TABLE t (a INT, b INT NOT NULL, c VARCHAR(10), d DECIMAL(8,2))"
                .to_owned(),
            "CREATE TEMPORARY TABLE u (a INT, b INT, e DATE, KEY (a))".to_owned(),
            "CREATE TEMPORARY TABLE w (id INT PRIMARY KEY, k INT, v VARCHAR(5), KEY (k))"
                .to_owned(),
        ];
        for _ in 0..self.pick(&[5, 12, 40]) {
            let (a, b) = (self.integer(), self.random.below(5));
            let d = self.pick(&["NULL", "1.50", "2.25", "0", "-3.10", "10"]);
            let c = self.text_value();
            script.push(format!("INSERT INTO t VALUES ({a}, {b}, {c}, {d})"));
        }
        for _ in 0..self.pick(&[0, 6, 20]) {
            let (a, b) = (self.integer(), self.integer());
            let e = self.pick(&["NULL", "'2020-01-31'", "'2021-02-28'", "'1999-12-31'"]);
            script.push(format!("INSERT INTO u VALUES ({a}, {b}, {e})"));
        }
        for id in 0..self.pick(&[3, 15, 60]) {
            let (k, v) = (self.integer(), self.text_value());
            script.push(format!("INSERT INTO w VALUES ({id}, {k}, {v})"));
        }
        script
    }

    /// One query.
    pub fn query(&mut self) -> String {
        self.aliases = 0;
        match self.random.below(20) {
            0 | 1 => {
                let (query, scope) = self.derived();
                let (number, text) = (self.number(&scope, 1), self.text(&scope, 1));
                let (alias, condition) = (&scope[0].0, self.condition(&scope, 2));
                format!("SELECT {number}, {text} FROM ({query}) {alias} WHERE {condition}")
            }
            2 | 3 => self.with(),
            4 | 5 => self.window(),
            6 => {
                let (from, scope) = self.tables_of(3);
                let (key, other) = (self.column(&scope), self.column(&scope));
                let keys = match key == other {
                    true => key,
                    false => format!("{key}, {other}"),
                };
                let summed = self.column(&scope);
                format!(
                    "SELECT {keys}, COUNT(*), SUM({summed}) FROM {from} \
                     GROUP BY {keys} WITH ROLLUP"
                )
            }
            7 => {
                let (from, scope) = self.tables_of(3);
                let (one, two) = (self.number(&scope, 1), self.number(&scope, 1));
                let condition = self.condition(&scope, 1);
                let (limit, offset) = (self.random.below(6), self.random.below(4));
                format!(
                    "SELECT {one} AS o1, {two} AS o2 FROM {from} WHERE {condition} \
                     ORDER BY o1, o2 DESC LIMIT {limit} OFFSET {offset}"
                )
            }
            8 => {
                let (left, right) = (self.tables_of(2), self.tables_of(2));
                let (one, two) = (self.number(&left.1, 1), self.number(&right.1, 1));
                let operation = self.pick(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]);
                let (left, right) = (left.0, right.0);
                format!("SELECT {one} FROM {left} {operation} SELECT {two} FROM {right}")
            }
            9..=13 => {
                let (from, scope) = self.tables_of(3);
                let distinct = self.pick(&["", "", "DISTINCT "]);
                let (one, two) = (self.number(&scope, 2), self.text(&scope, 2));
                let condition = self.condition(&scope, 3);
                format!("SELECT {distinct}{one}, {two} FROM {from} WHERE {condition}")
            }
            _ => self.groups(),
        }
    }

    fn with(&mut self) -> String {
        let (first, of_first) = self.derived();
        let (second, of_second) = self.derived();
        let scope: Scope = of_first.into_iter().chain(of_second).collect();
        let (one, two) = (&scope[0].0, &scope[1].0);
        let (number, text) = (self.number(&scope, 1), self.text(&scope, 1));
        let condition = self.condition(&scope, 1);
        let join = self.pick(&["JOIN", "LEFT JOIN"]);
        let (left, right) = (self.pick(&["p", "q"]), self.pick(&["p", "q"]));
        format!(
            "WITH c1 AS ({first}), c2 AS ({second}) SELECT {number}, {text} FROM c1 {one} \
             {join} c2 {two} ON {one}.{left} = {two}.{right} WHERE {condition}"
        )
    }

    fn window(&mut self) -> String {
        let (from, scope) = self.tables_of(3);
        let (number, order) = (self.number(&scope, 0), self.column(&scope));
        let call = self.pick(&["SUM", "COUNT", "MIN", "MAX", "RANK", "DENSE_RANK"]);
        let call = match call.ends_with("RANK") {
            true => format!("{call}()"),
            false => format!("{call}({number})"),
        };
        let parts = match self.random.chance(0.5) {
            true => format!("PARTITION BY {} ", self.column(&scope)),
            false => String::new(),
        };
        format!("SELECT {order}, {number}, {call} OVER ({parts}ORDER BY {order}) FROM {from}")
    }

    fn groups(&mut self) -> String {
        let (from, scope) = self.tables_of(3);
        let keys: Vec<String> = (0..self.random.below(3))
            .map(|_| self.column(&scope))
            .collect();
        let mut items = keys.clone();
        for _ in 0..1 + self.random.below(3) {
            let (number, column) = (self.number(&scope, 1), self.column(&scope));
            items.push(match self.random.below(8) {
                0 => "COUNT(*)".to_owned(),
                1 => format!("COUNT({number})"),
                2 => format!("SUM({number})"),
                3 => format!("MIN({number})"),
                4 => format!("MAX({})", self.text(&scope, 1)),
                5 => format!("COUNT(DISTINCT {number})"),
                6 => format!("AVG({column})"),
                _ => format!("SUM(DISTINCT {column})"),
            });
        }
        let condition = self.condition(&scope, 2);
        let mut query = format!("SELECT {} FROM {from} WHERE {condition}", items.join(", "));
        if !keys.is_empty() {
            query.push_str(&format!(" GROUP BY {}", keys.join(", ")));
        }
        if self.random.chance(0.3) {
            let than = self.pick(&["<", ">", "="]);
            query.push_str(&format!(" HAVING COUNT(*) {than} {}", self.random.below(4)));
        }
        query
    }

    /// A query with the columns `p`, `q` and `r`, and a scope that has it under a new alias.
    fn derived(&mut self) -> (String, Scope) {
        let (from, scope) = self.tables_of(3);
        let query = match self.random.below(7) {
            0..=2 => {
                let (p, q, r) = (
                    self.number(&scope, 1),
                    self.number(&scope, 1),
                    self.text(&scope, 1),
                );
                let condition = self.condition(&scope, 1);
                format!("SELECT {p} AS p, {q} AS q, {r} AS r FROM {from} WHERE {condition}")
            }
            3 | 4 => {
                let (key, text) = (self.column(&scope), self.text(&scope, 0));
                format!(
                    "SELECT {key} AS p, COUNT(*) AS q, MAX({text}) AS r FROM {from} GROUP BY {key}"
                )
            }
            5 => {
                let (other, of_other) = self.tables_of(2);
                let (p, q, r) = (
                    self.number(&scope, 0),
                    self.number(&scope, 0),
                    self.text(&scope, 0),
                );
                let (x, y, z) = (
                    self.number(&of_other, 0),
                    self.number(&of_other, 0),
                    self.text(&of_other, 0),
                );
                let operation = self.pick(&["UNION", "UNION ALL"]);
                format!(
                    "SELECT {p} AS p, {q} AS q, {r} AS r FROM {from} {operation} \
                     SELECT {x}, {y}, {z} FROM {other}"
                )
            }
            _ => {
                let (p, q, r) = (
                    self.number(&scope, 1),
                    self.number(&scope, 0),
                    self.text(&scope, 0),
                );
                format!("SELECT DISTINCT {p} AS p, {q} AS q, {r} AS r FROM {from}")
            }
        };
        (query, vec![(self.alias(), DERIVED)])
    }

    /// Some tables, joined.
    fn tables_of(&mut self, most: u64) -> (String, Scope) {
        let count = 1 + self.random.below(most);
        let (mut from, mut scope) = (String::new(), Scope::new());
        for number in 0..count {
            let (table, alias) = (self.pick(&["t", "u", "w"]), self.alias());
            if number == 0 {
                from = format!("{table} {alias}");
            } else {
                let joins = ["JOIN", "LEFT JOIN", "RIGHT JOIN"];
                let join = self.pick(if count < 3 { &joins } else { &joins[..2] });
                let own = vec![(alias.clone(), table)];
                let (left, right) = (self.column(&own), self.column(&scope));
                from.push_str(&format!(" {join} {table} {alias} ON {left} = {right}"));
            }
            scope.push((alias, table));
        }
        (from, scope)
    }

    fn number(&mut self, scope: &Scope, depth: usize) -> String {
        if depth == 0 || self.random.chance(0.4) {
            return match self.random.below(3) {
                0 => self.pick(&["0", "1", "2", "3"]).to_owned(),
                _ => self.column(scope),
            };
        }
        let depth = depth - 1;
        let (one, two) = (self.number(scope, depth), self.number(scope, depth));
        match self.random.below(14) {
            0..=2 => format!("({one} {} {two})", self.pick(&["+", "-", "*"])),
            3 => format!("COALESCE({one}, {two})"),
            4 => format!("IF({}, {one}, {two})", self.condition(scope, depth)),
            5 => {
                let condition = self.condition(scope, depth);
                format!("CASE WHEN {condition} THEN {one} ELSE {two} END")
            }
            6 => format!("NULLIF({one}, {two})"),
            7 => format!("LENGTH({})", self.text(scope, depth)),
            8 => format!("({})", self.value_of_others(scope, depth)),
            9 => match self.one_of(scope, |columns| columns.decimals) {
                Some(decimal) => format!("ROUND({decimal}, 1)"),
                None => format!("ABS({one})"),
            },
            10 => match self.one_of(scope, |columns| columns.dates) {
                Some(date) => format!("DATEDIFF({date}, '2020-01-01')"),
                None => format!("SIGN({one})"),
            },
            11 => format!("({one} DIV 2)"),
            12 => format!("({one} IS TRUE)"),
            _ => format!("GREATEST({one}, {two})"),
        }
    }

    fn text(&mut self, scope: &Scope, depth: usize) -> String {
        if depth == 0 || self.random.chance(0.5) {
            let column = self.one_of(scope, |columns| columns.texts);
            return match column.filter(|_| self.random.chance(0.7)) {
                Some(column) => column,
                None => self.pick(&["'a'", "'b'"]).to_owned(),
            };
        }
        let one = self.text(scope, depth - 1);
        match self.random.below(4) {
            0 => format!("CONCAT({one}, {})", self.text(scope, depth - 1)),
            1 => format!("UPPER({one})"),
            2 => format!("LEFT({one}, {})", self.random.below(4)),
            _ => format!("IFNULL({one}, {})", self.text(scope, depth - 1)),
        }
    }

    /// One value of other tables, which may depend on the row.
    fn value_of_others(&mut self, scope: &Scope, depth: usize) -> String {
        let (table, inner) = self.other();
        let condition = match self.random.below(3) {
            0 => {
                let (left, right) = (self.column(&inner), self.column(scope));
                format!(" WHERE {left} = {right}")
            }
            1 => format!(" WHERE {}", self.condition(&inner, depth)),
            _ => String::new(),
        };
        let call = self.pick(&["MAX", "MIN", "COUNT", "SUM"]);
        let column = self.column(&inner);
        format!("SELECT {call}({column}) FROM {table}{condition}")
    }

    fn condition(&mut self, scope: &Scope, depth: usize) -> String {
        if depth == 0 || self.random.chance(0.3) {
            let than = self.pick(&["=", "<>", "<", "<=", ">", ">=", "<=>"]);
            return format!("{} {than} {}", self.number(scope, 0), self.number(scope, 0));
        }
        let depth = depth - 1;
        let not = self.pick(&["", "NOT "]);
        match self.random.below(12) {
            0 | 1 => {
                let (one, two) = (self.condition(scope, depth), self.condition(scope, depth));
                format!("({one} {} {two})", self.pick(&["AND", "OR"]))
            }
            2 => format!("NOT ({})", self.condition(scope, depth)),
            3 => format!("{} IS {not}NULL", self.number(scope, depth)),
            4 => {
                let (number, one, two) =
                    (self.number(scope, depth), self.integer(), self.integer());
                format!("{number} {not}IN ({one}, {two})")
            }
            5 => {
                let (low, high) = (self.number(scope, 0), self.number(scope, 0));
                format!("{} BETWEEN {low} AND {high}", self.number(scope, depth))
            }
            6 => {
                let than = self.pick(&["=", "<>", "<"]);
                let (one, two) = (self.text(scope, depth), self.text(scope, depth));
                format!("{one} {than} {two}")
            }
            7 => {
                let pattern = self.pick(&["'a%'", "'%b%'", "'_'", "''"]);
                format!("{} LIKE {pattern}", self.text(scope, 0))
            }
            8 | 9 => {
                let (table, condition, _) = self.rows_of_others(scope, depth);
                format!("{not}EXISTS (SELECT 1 FROM {table}{condition})")
            }
            10 => {
                let (table, condition, inner) = self.rows_of_others(scope, depth);
                let (column, asked) = (self.column(&inner), self.column(scope));
                format!("{asked} {not}IN (SELECT {column} FROM {table}{condition})")
            }
            _ => {
                let than = self.pick(&["=", "<", ">"]);
                let (asked, value) = (self.column(scope), self.value_of_others(scope, depth));
                format!("{asked} {than} ({value})")
            }
        }
    }

    /// A table with a condition that may depend on the row.
    fn rows_of_others(&mut self, scope: &Scope, depth: usize) -> (String, String, Scope) {
        let (table, inner) = self.other();
        let mut terms = Vec::new();
        if self.random.chance(0.6) {
            let (left, right) = (self.column(&inner), self.column(scope));
            terms.push(format!("{left} = {right}"));
        }
        if self.random.chance(0.5) {
            terms.push(self.condition(&inner, depth));
        }
        let condition = match terms.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", terms.join(" AND ")),
        };
        (table, condition, inner)
    }

    fn other(&mut self) -> (String, Scope) {
        let (table, alias) = (self.pick(&["t", "u", "w"]), self.alias());
        (format!("{table} {alias}"), vec![(alias, table)])
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("x{}", self.aliases)
    }

    fn column(&mut self, scope: &Scope) -> String {
        let column = self.one_of(scope, |columns| columns.numbers);
        column.expect("every table has numbers")
    }

    fn one_of(
        &mut self,
        scope: &Scope,
        kind: impl Fn(&Columns) -> &'static [&'static str],
    ) -> Option<String> {
        let tables = scope.iter().flat_map(|(alias, table)| {
            let found = TABLES.iter().find(|(name, _)| name == table);
            let columns = found.map_or(&[][..], |(_, columns)| kind(columns));
            columns
                .iter()
                .map(move |column| format!("{alias}.{column}"))
        });
        let among: Vec<String> = tables.collect();
        let index = self.random.below(among.len().max(1) as u64) as usize;
        among.into_iter().nth(index)
    }

    fn integer(&mut self) -> &'static str {
        self.pick(&["0", "1", "2", "3", "5", "-1", "7", "NULL"])
    }

    fn text_value(&mut self) -> &'static str {
        self.pick(&["'a'", "'b'", "'abc'", "''", "NULL", "'2'"])
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.random.below(among.len() as u64) as usize]
    }
}
